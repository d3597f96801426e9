"""Finding kinds: in modules of a project, in files and folders, in CRD manifests.

A project's own code is run to do so; what goes wrong in it is told as any other error.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
import tomllib
import traceback
from collections.abc import Iterator, Mapping, Sequence
from contextlib import redirect_stdout
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from polyver.cli._exit import Misused, Unreadable
from polyver.cli._files import SUFFIXES, read_manifests
from polyver.core import PolyverError

if TYPE_CHECKING:
    from polyver.apis import Kind

__all__ = ["find_kinds", "kinds_said", "load_kinds", "table"]

_SKIPPED = ("__main__.py", "__pycache__", "node_modules")
_POLYVER = Path(__file__).parents[1]


def load_kinds(names: Sequence[str], *, show_traceback: bool = False) -> list[Kind]:
    """The kinds in modules, .py files, folders and manifests, in the order of their names.

    Without any, pyproject.toml says where they are. Each is complete, or an error was raised.
    """
    from polyver.apis import crd_of

    found: dict[str, Kind] = {}
    for kind in find_kinds(names, show_traceback=show_traceback):
        definition = kind.definition()
        other = found.setdefault(definition.name, kind)
        if other is not kind and crd_of(other.definition()) != crd_of(definition):
            places = f"{other.place} and {kind.place}"
            raise Unreadable(f"{definition.name} is there twice", at=places)
    return [found[name] for name in sorted(found)]


def find_kinds(names: Sequence[str], *, show_traceback: bool = False) -> Iterator[Kind]:
    """The same as they are found, complete or not."""
    folder = Path()
    if not names:
        folder, names = _project()
    for name in names:
        yield from _found(name, folder, show_traceback=show_traceback)


def _project() -> tuple[Path, list[str]]:
    """The folder of the project around here, and where it says that its kinds are."""
    here = Path.cwd()
    for folder in (here, *here.parents):
        file = folder / "pyproject.toml"
        if file.is_file():
            return folder, _kinds_in(file)
    raise Misused("no kinds are named", hint=_HINT)


_HINT = "name modules, files or folders, or write [tool.polyver] kinds = […] in pyproject.toml"


def _kinds_in(file: Path) -> list[str]:
    try:
        said = tomllib.loads(file.read_text())
    except (OSError, ValueError) as error:
        raise Unreadable(f"{_shown(file)} cannot be read: {error}") from None
    found = kinds_said(said, _shown(file))
    if found is None:
        raise Misused("no kinds are named", at=_shown(file), hint=_HINT)
    return found


def kinds_said(project: Mapping[str, Any], at: str) -> list[str] | None:
    """Where a project says that its kinds are; `at` is where it says so."""
    said = table(project, "tool", "polyver").get("kinds")
    if said is None:
        return None
    if not isinstance(said, list) or not said or not all(isinstance(each, str) for each in said):
        fact = "tool.polyver.kinds is not a list of names"
        raise Unreadable(fact, at=at, hint='write kinds = ["myproject.kinds"]')
    return said


def table(project: Mapping[str, Any], *names: str) -> Mapping[str, Any]:
    """A section of pyproject.toml; one that is not there, or is none, is empty."""
    for name in names:
        project = project.get(name, {})
        if not isinstance(project, dict):
            return {}
    return project


def _found(name: str, folder: Path, *, show_traceback: bool) -> Iterator[Kind]:
    path = folder / name
    is_path = path.suffix in (".py", *SUFFIXES) or "/" in name or path.is_dir()
    try:
        kinds = list(_in_path(path) if is_path else _in_module(name, folder))
    except _Failed as failed:
        if show_traceback:
            traceback.print_exception(failed.error)
        raise _told(failed) from None
    if not kinds:
        raise Unreadable(f"{_shown(path) if is_path else name} holds no kind")
    yield from kinds


def _in_path(path: Path) -> Iterator[Kind]:
    from polyver.apis import Kind, definitions_of

    if path.is_dir():
        for file in sorted(path.rglob("*")):
            if _may_hold_kinds(file, path):
                yield from _in_path(file)
    elif path.suffix == ".py":
        if not path.is_file():
            raise Unreadable(f"{_shown(path)} cannot be read: there is no such file")
        yield from _kinds_of(_module(path))
    else:
        yield from map(Kind.of, definitions_of(read_manifests([_shown(path)])))


def _may_hold_kinds(file: Path, folder: Path) -> bool:
    """Whether a file of a folder is one to read; code that has nothing to do with us is not run."""
    inside = file.relative_to(folder).parts
    hidden = any(part.startswith(".") or part in _SKIPPED for part in inside)
    if hidden or file.suffix not in (".py", *SUFFIXES) or not file.is_file():
        return False
    word = b"polyver" if file.suffix == ".py" else b"CustomResourceDefinition"
    try:
        return word in file.read_bytes()
    except OSError:
        return True  # who reads it will say why it cannot be


def _in_module(name: str, folder: Path) -> Iterator[Kind]:
    for each in (folder / "src", folder):
        _reach(each)
    try:
        yield from _kinds_of(_imported(name))
    except _Failed as failed:
        missing = failed.error
        if isinstance(missing, ModuleNotFoundError) and f"{name}.".startswith(f"{missing.name}."):
            raise Unreadable(f"there is no module {missing.name}") from None
        raise


def _kinds_of(module: ModuleType) -> Iterator[Kind]:
    from polyver.apis import Kind

    for kind in vars(module).values():
        if isinstance(kind, Kind):
            file, colon, line = kind.place.rpartition(":")
            kind.place = f"{_shown(Path(file))}:{line}" if colon else kind.place
            yield kind


# Running a project's code.


class _Failed(Exception):
    """Code that raised something when it was imported."""

    def __init__(self, name: str, error: BaseException) -> None:
        super().__init__(name)
        self.name = name
        self.error = error


def _module(path: Path) -> ModuleType:
    """The module of a file, by the name that others of its project import it by."""
    path = path.resolve()
    root, steps = path.parent, [] if path.stem == "__init__" else [path.stem]
    while (root / "__init__.py").exists():
        steps.insert(0, root.name)
        root = root.parent
    _reach(root)
    first = path if root == path.parent else root / steps[0] / "__init__.py"
    if _origin(steps[0]) == str(first):
        return _imported(".".join(steps))
    return _loaded(path, f"kinds_in_{path.stem}")


def _origin(name: str) -> str:
    """The file that a name means to an import, if it means any."""
    try:
        found = importlib.util.find_spec(name)
    except (ImportError, ValueError):
        return ""
    return str(found.origin) if found else ""


def _reach(folder: Path) -> None:
    found = str(folder.resolve())
    if Path(found).is_dir() and found not in sys.path:
        sys.path.insert(0, found)


def _imported(name: str) -> ModuleType:
    try:
        with redirect_stdout(sys.stderr):  # what is printed is for people, and no manifest
            return importlib.import_module(name)
    except (Exception, SystemExit) as error:
        raise _Failed(name, error) from None


def _loaded(path: Path, name: str) -> ModuleType:
    """The module of a file whose name means another module to others."""
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    try:
        with redirect_stdout(sys.stderr):
            spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        raise _Failed(str(path), error) from None
    return module


def _told(failed: _Failed) -> Unreadable:
    """What went wrong in somebody's code: the last line of it, and what was raised."""
    error = failed.error
    if isinstance(error, PolyverError):
        at = ", ".join(filter(None, (_line(error), error.at)))
        return Unreadable(error.fact, at=at, hint=error.hint)
    text = " ".join(str(error).split())
    fact = f"{failed.name} cannot be imported: {type(error).__name__}: {text}".rstrip(": ")
    if isinstance(error, SyntaxError) and error.filename:
        at = f"{_shown(Path(error.filename))}:{error.lineno}"
        return Unreadable(f"{failed.name} cannot be imported: {error.msg}", at=at)
    return Unreadable(fact, at=_line(error), hint="--traceback shows how it came to that")


def _line(error: BaseException) -> str:
    frames = traceback.extract_tb(error.__traceback__)
    theirs = [
        frame
        for frame in frames
        if not frame.filename.startswith("<") and _POLYVER not in Path(frame.filename).parents
    ]
    last = theirs[-1:] or frames[-1:]
    return f"{_shown(Path(last[0].filename))}:{last[0].lineno}" if last else ""


def _shown(path: Path) -> str:
    """A path as it is seen from here."""
    found, here = path.resolve(), Path.cwd()
    return str(found.relative_to(here)) if here in found.parents else str(path)
