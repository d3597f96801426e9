"""Reads and edits catalogue files. An edit replaces the file atomically, or only prints a diff."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from difflib import unified_diff
from pathlib import Path

from polyver.apis.commands.kinds import project_names
from polyver.cli.code import shown
from polyver.cli.exit_codes import Misused, RequestRefused, UnreadableInput
from polyver.cli.file_writes import File, write_all
from polyver.cli.files import read_manifests
from polyver.cli.output import print_lines, warn
from polyver.core import InvalidVersion, SemVer, listed
from polyver.functions.catalogue import FunctionCatalogue, read_catalogue
from polyver.functions.catalogue_edits import Edited, EditRefused

__all__ = [
    "CATALOGUE",
    "catalogue_files",
    "edit_catalogue",
    "holder_of",
    "load_listed",
    "only_catalogue",
    "version_of",
]

CATALOGUE = "catalogue.yaml"
_NONE = "pass it with --catalogue, or set [tool.polyver] catalogues = […] in pyproject.toml"
_BOM = "\ufeff"


def catalogue_files(given: Sequence[str] | None) -> list[str]:
    """Return the catalogue files to use: `given`, if it is not empty.

    Otherwise, return the files that pyproject.toml lists. If it lists none, return catalogue.yaml
    in the current folder if this file exists.
    """
    if given:
        return [*given]
    folder, said = project_names("catalogues")
    if said:
        return [shown(folder / name) for name in said]
    return [CATALOGUE] if _is_ours(Path(CATALOGUE)) else []


def _is_ours(path: Path) -> bool:
    """Report whether a file may be a catalogue of functions; other tools use the same file name.

    polyver only looks for the word `functions` in the file.
    """
    try:
        return b"functions" in path.read_bytes()
    except OSError:
        return False


def load_listed(names: Sequence[str]) -> Iterator[FunctionCatalogue]:
    """Read the catalogues in files. Raise an error if a file is not a catalogue."""
    for name in dict.fromkeys(names):
        documents = read_manifests([name])
        if not documents:
            raise UnreadableInput(f"{name} is empty, expected a catalogue")
        yield from map(read_catalogue, documents)


def version_of(text: str, at: str) -> SemVer:
    """Parse a version from the command line. `at` names the option or argument for errors."""
    try:
        return SemVer.complete(text)
    except InvalidVersion as error:
        raise Misused(error.fact, at=at) from None


def holder_of(name: str, given: Sequence[str] | None) -> str:
    """Return the catalogue file that lists a function.

    If there is only one catalogue file, it is returned even if it does not list the function.
    """
    files = catalogue_files(given)
    if not files:
        raise Misused("there is no catalogue", hint=_NONE)
    if len(files) == 1:
        return files[0]
    holding = [file for file in files for each in load_listed([file]) if each.get(name)]
    if not holding:
        raise RequestRefused(f"there is no function {name} in {listed(files)}")
    if len(holding) > 1:
        hint = "list the function in only one catalogue"
        raise UnreadableInput(f"{name} is in {listed(holding)}", hint=hint)
    return holding[0]


def only_catalogue(given: Sequence[str] | None) -> str:
    """Return the only catalogue file. Raise Misused if there is no file, or more than one."""
    files = catalogue_files(given)
    if len(files) != 1:
        fact = (
            f"there are several catalogues: {listed(files)}" if files else "there is no catalogue"
        )
        hint = "choose one with --catalogue" if files else _NONE
        raise Misused(fact, hint=hint)
    return files[0]


def edit_catalogue(
    file: str,
    edit: Callable[[str, str], Edited],
    *,
    dry_run: bool,
    users: Sequence[str] = (),
    force: bool = False,
    check: Callable[[FunctionCatalogue], None] | None = None,
) -> None:
    """Edit a catalogue file, or only print the diff if `dry_run` is True.

    `users` are files, folders and clusters with blueprints. If a phase of these blueprints uses a
    version that the edit removes, the edit is refused; with `force`, the command only warns.
    `check` may also raise an error to refuse the new catalogue. If the edit is refused, the file
    stays unchanged.
    """
    text = _text(file)
    mark = _BOM if text.startswith(_BOM) else ""
    try:
        made = edit(text.removeprefix(mark), file)
    except EditRefused as error:
        raise RequestRefused(error.fact, at=error.at, hint=error.hint) from None
    if users:
        _check_users(users, text.removeprefix(mark), made.text, file, force=force)
    if check is not None:
        from polyver.kube.objects import load_manifests

        [catalogue] = map(read_catalogue, load_manifests(made.text, file))
        check(catalogue)
    if dry_run:
        names = (file, file)
        lines = unified_diff(
            text.removeprefix(mark).splitlines(), made.text.splitlines(), *names, lineterm=""
        )
        print_lines(*lines)
        return
    if _text(file) != text:
        raise RequestRefused(f"{file} was changed by another process", hint="try again")
    write_all([File(Path(file), mark + made.text, text)])
    print_lines(*made.said)


def _check_users(
    users: Sequence[str], before: str, after: str, source: str, *, force: bool
) -> None:
    """Raise RequestRefused if an edit removes versions that blueprints use.

    The error names the blueprints. With `force`, print a warning instead.
    """
    from polyver.functions.blueprints import losses_between
    from polyver.functions.commands.blueprints import known_blueprints
    from polyver.functions.registering import known_functions
    from polyver.kube.objects import load_manifests

    blueprints = known_blueprints(users)
    was, is_then = (
        known_functions((), map(read_catalogue, load_manifests(text, source)))
        for text in (before, after)
    )
    losing = [
        f"{use.blueprint.label} ({use.blueprint.document.place(*use.phase.path)})"
        for use, _ in losses_between(was, is_then, blueprints)
    ]
    if losing and force:
        warn(f"this removes versions that are in use by {listed(losing)}")
    elif losing:
        hint = "use --force to do it anyway"
        fact = f"this would remove versions that are in use by {listed(losing)}"
        raise RequestRefused(fact, hint=hint)


def _text(file: str) -> str:
    """Return the content of a file as text, without changing its line endings."""
    try:
        return Path(file).read_bytes().decode()
    except OSError as error:
        raise UnreadableInput(f"{file} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise UnreadableInput(f"{file} is not UTF-8 text") from None
