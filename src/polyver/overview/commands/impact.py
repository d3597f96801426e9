"""`polyver impact`: list the users of a version, who would notice a change of it."""

from __future__ import annotations

from typing import Annotated, Any

from cyclopts import App, Parameter

from polyver.cli.cluster import CLUSTER
from polyver.cli.exit_codes import Misused, UnknownName
from polyver.cli.output import OutputFormat, emit, print_lines, print_table
from polyver.compositions.settings import PACKAGE_NAMES
from polyver.core import Resolution
from polyver.functions.blueprints import PhaseFunctionUse, requests_in, uses_in
from polyver.functions.commands.blueprints import blueprints_among, documents_in
from polyver.functions.commands.catalogues import version_of
from polyver.functions.commands.functions import CatalogueFiles, FunctionFiles, Output, Traceback
from polyver.functions.commands.served_functions import asked_functions
from polyver.functions.loading import load_known
from polyver.functions.registering import Functions, UnknownFunction
from polyver.overview.commands.why import COMPOSITION_NAMES

app = App(name="impact")


@app.default
def impact(
    name: str,
    /,
    *,
    file: Annotated[
        list[str] | None, Parameter(name=["--file", "-f"], negative=(), allow_leading_hyphen=True)
    ] = None,
    functions: FunctionFiles = None,
    catalogue: CatalogueFiles = None,
    output: Output = OutputFormat.TABLE,
    traceback: Traceback = False,
) -> None:
    """List every blueprint, action and phase that uses a function, or one version of it.

    For a package (package/NAME or package/NAME@REVISION), lists every step of a composition and
    every composite resource that uses it. For a composition (composition/NAME or
    composition/NAME@REVISION), lists the composite resources that use it, or would use it now.

    Example: polyver impact KubeExec@v0.1.0 -f blueprints/ --catalogue catalogue.yaml

    Parameters
    ----------
    name
        A function (NAME), or one version of it (NAME@VERSION). A version counts as used by each
        phase that resolves to it, and by each phase that requests it and cannot be resolved.
    file
        A file or folder with blueprints and with ActionSets, which may prefer a version; - for
        standard input; cluster: for the cluster of the current context; cluster:CONTEXT for
        another one. Repeatable. Default: cluster:. With a cluster, its functions are used unless
        --functions or --catalogue name others.
    """
    if name.partition("/")[0].lower() in COMPOSITION_NAMES and name.partition("/")[2]:
        from polyver.compositions.commands.composites import impact_of_composition

        impact_of_composition(name, _context(file or [CLUSTER]), output)
        return
    if name.partition("/")[0].lower() in PACKAGE_NAMES:
        from polyver.compositions.commands.functions_on_cluster import impact_of_package

        impact_of_package(name, _context(file or [CLUSTER]), output)
        return
    name, at, text = name.partition("@")
    version = version_of(text, "NAME@VERSION") if at else None
    known = _functions(file or [CLUSTER], functions, catalogue, traceback=traceback)
    if name not in known.known:
        error = UnknownFunction(name, known)
        raise UnknownName(error.fact, hint=error.hint)
    documents = documents_in(file or [CLUSTER])
    blueprints = blueprints_among(documents)
    requests = [request for _, request in requests_in(documents)]
    uses = [use for use in uses_in(blueprints, known, requests) if use.phase.function == name]
    if version is not None:
        uses = [use for use in uses if use.concerns(version)]
    _print(uses, output)


def _functions(
    names: list[str], functions: list[str] | None, catalogue: list[str] | None, *, traceback: bool
) -> Functions:
    """Return the functions of the first cluster in `names`; without a cluster, the local ones."""
    clusters = [name for name in names if name.startswith(CLUSTER)]
    if not clusters:
        return load_known(functions, catalogue, traceback=traceback)
    context = clusters[0].removeprefix(CLUSTER)
    return asked_functions(context, functions, catalogue, traceback=traceback)


def _context(names: list[str]) -> str:
    """Return the context of the only cluster in `names`; raise Misused for anything else."""
    if len(names) > 1 or not names[0].startswith(CLUSTER):
        hint = f"omit --file, or write {CLUSTER}CONTEXT"
        fact = "packages and compositions are read from one cluster"
        raise Misused(fact, at="--file", hint=hint)
    return names[0].removeprefix(CLUSTER)


def _print(uses: list[PhaseFunctionUse], output: OutputFormat) -> None:
    if output is not OutputFormat.TABLE:
        emit({"uses": [_data(use) for use in uses]}, output)
        return
    if not uses:
        print_lines("not used")
        return
    columns = ("BLUEPRINT", "ACTION", "PHASE", "ACTIONSET", "REQUESTS", "USES", "WHY")
    rows = [
        (
            use.blueprint.label,
            use.action,
            use.phase.label,
            use.asker,
            use.asked or "default",
            use.version or "unresolved",
            _why(use),
        )
        for use in uses
    ]
    print_table(columns, rows)


def _why(use: PhaseFunctionUse) -> str:
    return use.found.reason if isinstance(use.found, Resolution) else str(use.found.fact)


def _data(use: PhaseFunctionUse) -> dict[str, Any]:
    found: dict[str, Any] = {
        "blueprint": use.blueprint.label,
        "action": use.action,
        "phase": use.phase.label,
        "function": use.phase.function,
        "place": use.blueprint.document.place(*use.phase.path),
    }
    found |= {"actionSet": use.asker} if use.asker else {}
    found |= {"asksFor": use.asked} if use.asked else {}
    found |= {"gets": use.version} if use.version else {}
    return found | {"why": _why(use)}
