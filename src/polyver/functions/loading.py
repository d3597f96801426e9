"""Loads functions and catalogues from installed Python packages, modules and files.

If an installed package cannot be loaded, its functions are left out with a warning. If a module or
file that the user names cannot be loaded, an error is raised.
"""

from __future__ import annotations

import hashlib
import traceback
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from types import ModuleType

from polyver.apis.commands.kinds import project_names
from polyver.cli.code import ImportFailed, module_named, module_of, shown, shown_places, told
from polyver.cli.exit_codes import UnreadableInput
from polyver.cli.output import warn
from polyver.core import PolyverError
from polyver.functions.catalogue import FunctionCatalogue
from polyver.functions.commands.catalogues import CATALOGUE, catalogue_files, load_listed
from polyver.functions.registering import (
    Function,
    Functions,
    InvalidFunction,
    Origin,
    Registry,
    check_registered,
    known_functions,
)

__all__ = ["built_in_functions", "load_functions", "load_known", "registered_functions"]

_GROUP = "polyver.functions"


@dataclass(slots=True)
class _Loaded:
    """The functions and catalogues that have been loaded so far."""

    functions: list[Function] = field(default_factory=list)
    catalogues: list[FunctionCatalogue] = field(default_factory=list)


def load_known(
    functions: Sequence[str] | None, catalogues: Sequence[str] | None, *, traceback: bool
) -> Functions:
    """Load the functions and catalogues that options of a command name.

    Without such options, load the functions and catalogues that pyproject.toml lists.
    """
    folder, said = (Path(), functions) if functions else project_names("functions")
    return load_functions(
        said, catalogue_files(catalogues), folder=folder, show_traceback=traceback
    )


def load_functions(
    names: Sequence[str],
    catalogues: Sequence[str],
    *,
    folder: Path | None = None,
    show_traceback: bool = False,
) -> Functions:
    """Load the built-in functions, and the functions of installed Python packages and of `names`.

    `names` are modules and files, relative to `folder`. Combine the functions with the stages from
    `catalogues`.
    """
    loaded = _Loaded()
    own, listing = built_in()
    for entry in sorted(entry_points(group=_GROUP), key=lambda each: each.name):
        _add_installed(entry, loaded, show_traceback=show_traceback)
    for name in names:
        registry = _named(name, folder or Path(), show_traceback=show_traceback)
        if not len(registry):
            raise UnreadableInput(f"{name} registers no function")
        loaded.functions += map(_placed, registry)
    known_files = {_resolved(each.source) for each in loaded.catalogues}
    more = [name for name in catalogues if _resolved(name) not in known_files]
    loaded.catalogues += load_listed(more)
    known = _with_built_in(loaded, own, listing)
    for warning in known.warnings:
        warn(warning)
    return replace(known, origin=_origin(names, folder or Path(), loaded.functions))


def registered_functions(names: Sequence[str], folder: Path) -> list[Function]:
    """Load the same functions as `load_functions`, without catalogues and warnings.

    The fork server of worker processes calls this function. It needs no catalogues, because polyver
    chooses the version to call before it starts a worker.
    """
    found, _ = built_in()
    for entry in sorted(entry_points(group=_GROUP), key=lambda each: each.name):
        with suppress(Exception):  # polyver has already warned about it
            found += _installed(entry)[0]
    for name in names:
        found += map(_placed, _named(name, folder, show_traceback=False))
    return found


def _origin(names: Sequence[str], folder: Path, functions: Iterable[Function]) -> Origin:
    files = {Path(each.place.rpartition(":")[0]).absolute() for each in functions}
    digests = {
        str(file): hashlib.sha256(file.read_bytes()).hexdigest()
        for file in sorted(files)
        if file.is_file()
    }
    return Origin(tuple(names), str(folder.absolute()), digests)


# A function of a project or package replaces the built-in function of the same name.


def built_in() -> tuple[list[Function], FunctionCatalogue]:
    """Load the built-in functions, and their catalogue."""
    from polyver.functions import builtin

    [catalogue] = load_listed([shown(Path(builtin.__file__).with_name(CATALOGUE))])
    return [*map(_placed, Registry.of(builtin))], catalogue


def built_in_functions() -> Functions:
    """Load only the built-in functions. Functions of packages and projects are not loaded."""
    own, listing = built_in()
    return replace(known_functions(own, [listing]), origin=Origin())


def _with_built_in(loaded: _Loaded, own: list[Function], listing: FunctionCatalogue) -> Functions:
    registered = {each.name for each in loaded.functions}
    taken = registered | {each.name for one in loaded.catalogues for each in one.functions}
    functions = [each for each in own if each.name not in registered]
    rest = replace(
        listing, functions=tuple(each for each in listing.functions if each.name not in taken)
    )
    known = known_functions([*loaded.functions, *functions], [*loaded.catalogues, rest])
    # The catalogue releases of a project must not remove versions of polyver's own catalogue.
    return replace(known, catalogues=tuple(loaded.catalogues) or (rest,))


def _resolved(name: str) -> Path:
    return Path(name).resolve()


def _placed(function: Function) -> Function:
    return replace(function, place=shown_places(function.place))


# Named modules and files.


def _named(name: str, folder: Path, *, show_traceback: bool) -> Registry:
    path = folder / name
    is_path = path.suffix == ".py" or "/" in name
    try:
        if is_path and not path.is_file():
            why = "it is a folder" if path.is_dir() else "there is no such file"
            hint = "pass a .py file or a module"
            raise UnreadableInput(f"{shown(path)} cannot be read: {why}", hint=hint)
        return Registry.of(module_of(path) if is_path else module_named(name, folder))
    except ImportFailed as failed:
        if show_traceback:
            traceback.print_exception(failed.error)
        raise told(failed) from None


# Installed packages.


def _add_installed(entry: EntryPoint, loaded: _Loaded, *, show_traceback: bool) -> None:
    """Load the functions of an installed package, and add them to `loaded`.

    If one of them is invalid, print a warning and add no function of this package.
    """
    try:
        functions, catalogues = _installed(entry)
        check_registered([*loaded.functions, *functions])
        known_functions([*loaded.functions, *functions], [*loaded.catalogues, *catalogues])
    except Exception as error:
        if show_traceback:
            traceback.print_exception(error)
        reason = str(error) if isinstance(error, PolyverError) else repr(error)
        package = entry.dist.name if entry.dist else entry.value
        warn(f"the functions of {package} ({entry.value}) are ignored: {reason}")
    else:
        loaded.functions += functions
        loaded.catalogues += catalogues


def _installed(entry: EntryPoint) -> tuple[list[Function], list[FunctionCatalogue]]:
    try:
        found = entry.load()
    except SystemExit as error:
        raise InvalidFunction(f"it ended with {error}") from None
    if isinstance(found, Registry):
        return [*map(_placed, found)], []
    if not isinstance(found, ModuleType):
        raise InvalidFunction("its entry point names neither a module nor a Registry")
    functions = [*map(_placed, Registry.of(found))]
    if not functions:
        raise InvalidFunction("it registers no function")
    inside = [Path(folder) / CATALOGUE for folder in getattr(found, "__path__", ())]
    return functions, [*load_listed([shown(file) for file in inside if file.is_file()])]
