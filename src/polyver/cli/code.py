"""Import the Python code of a project to find its declarations.

An exception in that code is reported like other errors, with the line that raised it.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
import traceback
from contextlib import redirect_stdout
from pathlib import Path
from types import ModuleType

from polyver.cli.exit_codes import UnreadableInput
from polyver.core import PolyverError

__all__ = [
    "ImportFailed",
    "imported",
    "module_named",
    "module_of",
    "reach",
    "shown",
    "shown_places",
    "told",
]

_POLYVER = Path(__file__).parents[1]


class ImportFailed(Exception):
    """The import of a module raised an error."""

    def __init__(self, name: str, error: BaseException) -> None:
        super().__init__(name)
        self.name = name
        self.error = error


def module_of(path: Path) -> ModuleType:
    """Import the module in a file, under the name by which the code of the project imports it."""
    path = path.resolve()
    root, steps = path.parent, [] if path.stem == "__init__" else [path.stem]
    while (root / "__init__.py").exists():
        steps.insert(0, root.name)
        root = root.parent
    reach(root)
    first = path if root == path.parent else root / steps[0] / "__init__.py"
    if _origin(steps[0]) == str(first):
        return imported(".".join(steps))
    return _loaded(path, f"loaded_from_{path.stem}")


def _origin(name: str) -> str:
    """Return the file that `import NAME` would load; empty if there is none."""
    try:
        found = importlib.util.find_spec(name)
    except (ImportError, ValueError):
        return ""
    return str(found.origin) if found else ""


def module_named(name: str, folder: Path) -> ModuleType:
    """Import a module by name, from a project's folder or from Python's module search path."""
    for each in (folder / "src", folder):
        reach(each)
    try:
        return imported(name)
    except ImportFailed as failed:
        missing = failed.error
        if isinstance(missing, ModuleNotFoundError) and f"{name}.".startswith(f"{missing.name}."):
            raise UnreadableInput(f"there is no module {missing.name}") from None
        raise


def reach(folder: Path) -> None:
    """Add a folder to Python's module search path, if it is not in it."""
    found = str(folder.resolve())
    if Path(found).is_dir() and found not in sys.path:
        sys.path.insert(0, found)


def imported(name: str) -> ModuleType:
    """Import a module; raise ImportFailed for every exception that its code raises."""
    try:
        with redirect_stdout(sys.stderr):  # stdout is for manifests only
            return importlib.import_module(name)
    except (Exception, SystemExit) as error:
        raise ImportFailed(name, error) from None


def _loaded(path: Path, name: str) -> ModuleType:
    """Load a module from its file, for a name that an import would resolve to another file."""
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    try:
        with redirect_stdout(sys.stderr):
            spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        raise ImportFailed(str(path), error) from None
    return module


def told(failed: ImportFailed) -> UnreadableInput:
    """Build the error that reports an exception in a user's code, with the line that raised it."""
    error = failed.error
    if isinstance(error, PolyverError):
        line, said = _line(error), shown_places(error.at)
        at = said if said.startswith(line) else ", ".join(filter(None, (line, said)))
        return UnreadableInput(error.fact, at=at, hint=error.hint)
    text = " ".join(str(error).split())
    fact = f"{failed.name} cannot be imported: {type(error).__name__}: {text}".rstrip(": ")
    if isinstance(error, SyntaxError) and error.filename:
        at = f"{shown(Path(error.filename))}:{error.lineno}"
        return UnreadableInput(f"{failed.name} cannot be imported: {error.msg}", at=at)
    return UnreadableInput(fact, at=_line(error), hint="--traceback shows the traceback")


def _line(error: BaseException) -> str:
    frames = traceback.extract_tb(error.__traceback__)
    theirs = [
        frame
        for frame in frames
        if not frame.filename.startswith("<") and _POLYVER not in Path(frame.filename).parents
    ]
    last = theirs[-1:] or frames[-1:]
    return f"{shown(Path(last[0].filename))}:{last[0].lineno}" if last else ""


def shown_places(text: str) -> str:
    """Return a text in which all paths inside the current folder are relative."""
    return text.replace(f"{Path.cwd()}/", "")


def shown(path: Path) -> str:
    """Return a path relative to the current folder; return an outside path unchanged."""
    found, here = path.resolve(), Path.cwd()
    return str(found.relative_to(here)) if here in found.parents else str(path)
