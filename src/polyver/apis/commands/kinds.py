"""Find kinds in Python modules, in files and folders, and in CustomResourceDefinition manifests.

To find kinds in Python, this module imports the code of the project, and so runs it. An exception
in that code is reported as an error of the command.
"""

from __future__ import annotations

import tomllib
import traceback
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from polyver.cli.code import ImportFailed, module_named, module_of, shown, told
from polyver.cli.exit_codes import Misused, UnreadableInput
from polyver.cli.files import SUFFIXES, read_manifests

if TYPE_CHECKING:
    from polyver.apis.declaring import Kind

__all__ = ["find_kinds", "kinds_said", "load_kinds", "project_names", "table"]

_SKIPPED = ("__main__.py", "__pycache__", "node_modules")


def load_kinds(names: Sequence[str], *, show_traceback: bool = False) -> list[Kind]:
    """Find the kinds in modules, .py files, folders and manifests; return them sorted by name.

    Without `names`, use the modules, files and folders that pyproject.toml lists. Raise an error
    for a kind that is invalid, for example because it has two storage versions.
    """
    from polyver.apis.crds import crd_of

    found: dict[str, Kind] = {}
    for kind in find_kinds(names, show_traceback=show_traceback):
        definition = kind.definition()
        other = found.setdefault(definition.name, kind)
        if other is not kind and crd_of(other.definition()) != crd_of(definition):
            places = f"{other.place} and {kind.place}"
            raise UnreadableInput(f"{definition.name} is declared twice", at=places)
    return [found[name] for name in sorted(found)]


def find_kinds(names: Sequence[str], *, show_traceback: bool = False) -> Iterator[Kind]:
    """Yield the kinds in the order in which they are found; do not check if they are valid."""
    folder = Path()
    if not names:
        folder, names = _project()
    for name in names:
        yield from _found(name, folder, show_traceback=show_traceback)


def _project() -> tuple[Path, list[str]]:
    """Return the project's folder, and the entries of the list of kinds in its pyproject.toml.

    The entries are names of modules, files and folders.
    """
    here = Path.cwd()
    for folder in (here, *here.parents):
        file = folder / "pyproject.toml"
        if file.is_file():
            return folder, _kinds_in(file)
    raise Misused("no kinds are given", hint=_HINT)


_HINT = "pass modules, files or folders, or set [tool.polyver] kinds = […] in pyproject.toml"


def _kinds_in(file: Path) -> list[str]:
    found = kinds_said(_project_file(file), shown(file))
    if found is None:
        raise Misused("no kinds are given", at=shown(file), hint=_HINT)
    return found


def _project_file(file: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(file.read_text())
    except (OSError, ValueError) as error:
        raise UnreadableInput(f"{shown(file)} cannot be read: {error}") from None


def kinds_said(project: Mapping[str, Any], at: str) -> list[str] | None:
    """Return the modules, files or folders of kinds that a pyproject.toml lists, or None.

    None means that there is no list. `at` is the path of the pyproject.toml, for errors.
    """
    return names_said(project, "kinds", at)


def names_said(project: Mapping[str, Any], what: str, at: str) -> list[str] | None:
    """Return the list under the key `what` of [tool.polyver] in a pyproject.toml, or None.

    `what` is kinds, functions or catalogues. None means that there is no such list.
    """
    said = table(project, "tool", "polyver").get(what)
    if said is None:
        return None
    if not isinstance(said, list) or not said or not all(isinstance(each, str) for each in said):
        fact = f"tool.polyver.{what} is not a list of names"
        raise UnreadableInput(fact, at=at, hint=f'write {what} = ["myproject.{what}"]')
    return said


def project_names(what: str) -> tuple[Path, list[str]]:
    """Return the project's folder, and the list under the key `what` of [tool.polyver].

    The project is the nearest folder with a pyproject.toml. The list is [] if this file has no such
    key.
    """
    here = Path.cwd()
    for folder in (here, *here.parents):
        file = folder / "pyproject.toml"
        if file.is_file():
            return folder, names_said(_project_file(file), what, shown(file)) or []
    return here, []


def table(project: Mapping[str, Any], *names: str) -> Mapping[str, Any]:
    """Return a TOML table inside a parsed pyproject.toml; {} if there is no such table."""
    for name in names:
        project = project.get(name, {})
        if not isinstance(project, dict):
            return {}
    return project


def _found(name: str, folder: Path, *, show_traceback: bool) -> Iterator[Kind]:
    path = folder / name
    is_path = path.suffix in (".py", *SUFFIXES) or "/" in name or path.is_dir()
    try:
        kinds = list(_in_path(path) if is_path else _kinds_of(module_named(name, folder)))
    except ImportFailed as failed:
        if show_traceback:
            traceback.print_exception(failed.error)
        raise told(failed) from None
    if not kinds:
        raise UnreadableInput(f"{shown(path) if is_path else name} contains no kind")
    yield from kinds


def _in_path(path: Path) -> Iterator[Kind]:
    from polyver.apis.declaring import Kind
    from polyver.apis.manifests import definitions_of

    if path.is_dir():
        for file in sorted(path.rglob("*")):
            if _may_hold_kinds(file, path):
                yield from _in_path(file)
    elif path.suffix == ".py":
        if not path.is_file():
            raise UnreadableInput(f"{shown(path)} cannot be read: there is no such file")
        yield from _kinds_of(module_of(path))
    else:
        yield from map(Kind.of, definitions_of(read_manifests([shown(path)])))


def _may_hold_kinds(file: Path, folder: Path) -> bool:
    """Report whether to read a file: a Python file without the word polyver is not imported."""
    inside = file.relative_to(folder).parts
    hidden = any(part.startswith(".") or part in _SKIPPED for part in inside)
    if hidden or file.suffix not in (".py", *SUFFIXES) or not file.is_file():
        return False
    word = b"polyver" if file.suffix == ".py" else b"CustomResourceDefinition"
    try:
        return word in file.read_bytes()
    except OSError:
        return True  # the file is read later; reading it raises an error with the reason


def _kinds_of(module: ModuleType) -> Iterator[Kind]:
    from polyver.apis.declaring import Kind

    for kind in vars(module).values():
        if isinstance(kind, Kind):
            file, colon, line = kind.place.rpartition(":")
            kind.place = f"{shown(Path(file))}:{line}" if colon else kind.place
            yield kind
