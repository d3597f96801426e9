"""`polyver functions`: lists blueprint functions, and changes the stages of their versions."""

from __future__ import annotations

import os
from collections.abc import Iterator
from difflib import get_close_matches
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import App, Parameter

from polyver.cli.exit_codes import Misused, UnknownName
from polyver.cli.output import OutputFormat, emit, print_lines, print_table, warn
from polyver.core import PolyverError, SemVer, listed
from polyver.functions.catalogue_edits import deprecate, promote, remove
from polyver.functions.commands.catalogues import edit_catalogue, holder_of, version_of

if TYPE_CHECKING:
    from polyver.functions.catalogue import FunctionCatalogue

app = App(
    name="functions",
    help="""List the functions that blueprints can call, and change the stages of their versions.

Example: polyver functions list --functions backup.py --catalogue catalogue.yaml""",
)

CatalogueFiles = Annotated[
    list[str] | None,
    Parameter(
        negative=(),
        help=(
            "A catalogue file, which lists the stages of function versions; repeatable. Default:"
            " the catalogues that pyproject.toml lists ([tool.polyver] catalogues = […]) or, if it"
            " lists none, catalogue.yaml in the current folder."
        ),
    ),
]
FunctionFiles = Annotated[
    list[str] | None,
    Parameter(
        negative=(),
        help=(
            "A .py file or a module that registers functions; repeatable. Default: the files and"
            " modules that pyproject.toml lists ([tool.polyver] functions = […]). Functions of"
            " installed Python packages (entry point group polyver.functions) are always loaded."
        ),
    ),
]
Server = Annotated[
    str | None,
    Parameter(
        help=(
            "A context of the kubeconfig. The command shows the functions of the control plane in"
            " this context. If --functions or --catalogue is also set, the command shows the local"
            " functions instead, and warns about differences from the control plane. If none of"
            " these options is set, the command shows the functions of the project in the current"
            " folder; but it uses the current context if KUBECONFIG is set, or if the project has"
            " neither functions nor a catalogue."
        )
    ),
]
Output = Annotated[OutputFormat, Parameter(name=["--output", "-o"], help="The output format.")]
Traceback = Annotated[
    bool,
    Parameter(
        negative=(),
        help=(
            "If your code raises an exception while polyver imports it, also print the Python"
            " traceback."
        ),
    ),
]
DryRun = Annotated[
    bool,
    Parameter(negative=(), help="Print the changes to the catalogue file, but do not write it."),
]
Users = Annotated[
    list[str] | None,
    Parameter(
        name=["--file", "-f"],
        negative=(),
        help=(
            "A file or folder with blueprints, 'cluster:' (all blueprints in the cluster of the"
            " current context) or 'cluster:CONTEXT'; repeatable. The command refuses a change that"
            " breaks one of these blueprints, unless --force is set."
        ),
    ),
]
Force = Annotated[
    bool,
    Parameter(
        negative=(),
        help=(
            "Make the change even if it breaks blueprints of --file. The command prints a warning"
            " with the names of these blueprints."
        ),
    ),
]
RemovedIn = Annotated[
    str | None,
    Parameter(
        help=(
            "The catalogue release that removes the deprecated version. Default, if the version was"
            " not deprecated before: the second minor release after the current catalogue release."
        )
    ),
]


@app.command(name="list")
def list_functions(
    *,
    functions: FunctionFiles = None,
    catalogue: CatalogueFiles = None,
    context: Server = None,
    output: Output = OutputFormat.TABLE,
    traceback: Traceback = False,
) -> None:
    """List every function, with its versions and their stages.

    Example: polyver functions list -o json
    """
    data = _data(functions, catalogue, context, traceback=traceback)
    if output is not OutputFormat.TABLE:
        emit(data, output)
        return
    rows = [row for each in data["functions"] for row in _rows(each)]
    print_table(("NAME", "VERSION", "STAGE", "SINCE", "REMOVED IN", "USE"), rows)


def _data(
    functions: list[str] | None,
    catalogue: list[str] | None,
    context: str | None,
    *,
    traceback: bool,
) -> dict[str, Any]:
    """Return the functions of a control plane, or the local functions, as plain data.

    The options choose between them. If the options name both, return the local functions, and warn
    about differences from the control plane.
    """
    from polyver.functions.commands.served_functions import functions_on, warn_of_differences
    from polyver.functions.loading import load_known
    from polyver.functions.registering import functions_data

    if not functions and not catalogue:
        if context is not None or os.environ.get("KUBECONFIG"):
            return functions_on(context or "").data
        if _is_pointed_at_server():
            try:
                return functions_on("").data
            except PolyverError as error:
                warn(f"{error}; showing the local functions")
    known = load_known(functions, catalogue, traceback=traceback)
    if context is not None:
        warn_of_differences(known, functions_on(context))
    return functions_data(known)


def _is_pointed_at_server() -> bool:
    """Report whether to use the current context although no option names a control plane.

    This is the case if a cluster is configured, and the project has no functions and no catalogue.
    """
    from polyver.apis.commands.kinds import project_names
    from polyver.functions.commands.catalogues import catalogue_files

    if project_names("functions")[1] or catalogue_files(None):
        return False
    usual = Path.home() / ".kube" / "config"
    return usual.is_file() or bool(os.environ.get("KUBERNETES_SERVICE_HOST"))


def _rows(function: dict[str, Any]) -> list[tuple[str, ...]]:
    return [
        (
            function["name"],
            each["version"],
            ", ".join([each["stage"], *_remarks(each)]),
            *(each.get(name, "") for name in ("since", "removedIn", "use")),
        )
        for each in function["versions"]
    ]


def _remarks(version: dict[str, Any]) -> Iterator[str]:
    if not version["registered"] and not _is_gone(version):
        yield "without code"
    if "gate" in version:
        yield str(version["gate"]["text"])


def _is_gone(version: dict[str, Any]) -> bool:
    return bool(version["stage"] == "removed")


@app.command
def show(
    name: str,
    /,
    *,
    functions: FunctionFiles = None,
    catalogue: CatalogueFiles = None,
    context: Server = None,
    output: Output = OutputFormat.TABLE,
    traceback: Traceback = False,
) -> None:
    """Show the arguments of all versions of a function, or of one version.

    Example: polyver functions show KubeExec@v0.1.0

    Parameters
    ----------
    name
        A function (NAME), or one version of it (NAME@VERSION).
    """
    name, at, text = name.partition("@")
    data = _data(functions, catalogue, context, traceback=traceback)
    found = _function(data, name)
    if at:
        wanted = version_of(text, "NAME@VERSION")
        versions = [each for each in found["versions"] if _is(each["version"], wanted)]
        if not versions:
            names = listed([each["version"] for each in found["versions"]])
            raise UnknownName(f"{name} has no v{wanted}", hint=f"known: {names}")
        found["versions"] = versions
    if output is not OutputFormat.TABLE:
        emit(found, output)
        return
    _print(found)


def _function(data: dict[str, Any], name: str) -> dict[str, Any]:
    known = {each["name"]: each for each in data["functions"]}
    if name not in known:
        close = get_close_matches(name, known, n=1)
        hint = f"did you mean {close[0]}?" if close else f"known: {listed(sorted(known))}"
        raise UnknownName(f"there is no function {name}", hint=hint)
    return dict(known[name])


def _is(text: str, wanted: SemVer) -> bool:
    """Report whether a version equals `wanted`, apart from build metadata."""
    return not SemVer.complete(text) < wanted and not wanted < SemVer.complete(text)


def _print(function: dict[str, Any]) -> None:
    for number, version in enumerate(function["versions"]):
        mark = ", default" if version["version"] == function["default"] else ""
        if number:
            print_lines("")
        print_lines(f"{function['name']} {version['version']}: {version['stage']}{mark}")
        print_lines(*_dates(version))
        if version.get("description"):
            print_lines("", *version["description"].splitlines())
        if version.get("arguments"):
            print_lines("")
            print_table(
                ("ARGUMENT", "TYPE", "REQUIRED", "DEFAULT", "DESCRIPTION"), _rows_of(version)
            )


def _dates(version: dict[str, Any]) -> list[str]:
    told = {"since": "deprecated since", "removedIn": "removed in", "use": "use"}
    found = [f"{words} {version[name]}" for name, words in told.items() if name in version]
    return [", ".join(found)] if found else []


def _rows_of(version: dict[str, Any]) -> list[tuple[str, ...]]:
    return [
        (
            each["name"],
            each["type"],
            "yes" if each["required"] else "no",
            str(each.get("default", "")),
            each.get("description", "").replace("\n", " "),
        )
        for each in version["arguments"]
    ]


@app.command(name="promote")
def promote_version(
    name: str,
    /,
    *,
    catalogue: CatalogueFiles = None,
    functions: FunctionFiles = None,
    file: Users = None,
    removed_in: RemovedIn = None,
    force: Force = False,
    dry_run: DryRun = False,
    traceback: Traceback = False,
) -> None:
    """Make a version of a function stable, and deprecate the version that was stable before.

    Phases that request no version call the stable version, so a promotion changes the version that
    they call. With --file, the command refuses a promotion that breaks such a phase. A phase breaks
    if the promoted version requires an argument that the phase does not pass, does not have an
    argument that the phase passes, or does not return an output that a template reads. The error
    lists the phases that would break.

    Example: polyver functions promote KubeExec@v0.2.0 -f blueprints/ -f cluster: --dry-run

    Parameters
    ----------
    name
        The function and the version to promote: NAME@VERSION.
    """
    name, version = _named(name)
    from polyver.functions.commands._promotion import check_promotion
    from polyver.functions.loading import load_known

    edit = partial(promote, name=name, version=version, removed_in=_removal(removed_in))
    holder = holder_of(name, catalogue)
    known = load_known(functions, catalogue, traceback=traceback)

    def check(after: FunctionCatalogue) -> None:
        check_promotion(name, known, after, file or (), force=force)

    edit_catalogue(holder, edit, dry_run=dry_run, check=check)


@app.command(name="deprecate")
def deprecate_version(
    name: str,
    /,
    *,
    catalogue: CatalogueFiles = None,
    use: str | None = None,
    removed_in: RemovedIn = None,
    dry_run: DryRun = False,
) -> None:
    """Deprecate a candidate, or change the removal or the replacement of a deprecated version.

    This command cannot deprecate the stable version. Promote another version instead: this
    deprecates the version that was stable before.

    Example: polyver functions deprecate KubeExec@v0.3.0 --use v0.2.0

    Parameters
    ----------
    name
        The function and the version to deprecate: NAME@VERSION.
    use
        The version that replaces the deprecated version. Default, if the version was not deprecated
        before: the stable version.
    """
    name, version = _named(name)
    edit = partial(
        deprecate,
        name=name,
        version=version,
        use=version_of(use, "--use") if use else None,
        removed_in=_removal(removed_in),
    )
    edit_catalogue(holder_of(name, catalogue), edit, dry_run=dry_run)


@app.command(name="remove")
def remove_version(
    name: str,
    /,
    *,
    catalogue: CatalogueFiles = None,
    file: Users = None,
    force: Force = False,
    dry_run: DryRun = False,
) -> None:
    """Mark a deprecated version as removed, if enough catalogue releases followed its deprecation.

    The earliest catalogue release that can remove a version is the second minor or major release
    after the deprecation of the version. The catalogue continues to list the removed version, so
    that its number is never used again.

    Example: polyver functions remove KubeExec@v0.0.0

    Parameters
    ----------
    name
        The function and the version to remove: NAME@VERSION.
    """
    name, version = _named(name)
    edit = partial(remove, name=name, version=version)
    holder = holder_of(name, catalogue)
    edit_catalogue(holder, edit, dry_run=dry_run, users=file or (), force=force)


def _named(text: str) -> tuple[str, SemVer]:
    name, at, version = text.partition("@")
    if not name or not at:
        raise Misused(f"{text} is not NAME@VERSION", hint="write KubeExec@v0.2.0")
    return name, version_of(version, "NAME@VERSION")


def _removal(text: str | None) -> SemVer | None:
    return version_of(text, "--removed-in") if text else None
