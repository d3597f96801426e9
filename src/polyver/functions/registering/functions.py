"""All blueprint functions: the registered code, combined with the stages from catalogues.

The module also converts functions to plain data, for `GET /functions` and the command line.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from enum import Enum
from typing import Any

import msgspec

from polyver.capability.gates import gate_data
from polyver.core import (
    UNSPECIFIED,
    Dependent,
    FailedMove,
    Lineage,
    NoMatch,
    PolyverError,
    Release,
    SemVer,
    Stage,
    listed,
    resolve,
)
from polyver.functions.catalogue import FunctionCatalogue
from polyver.functions.policy import FUNCTIONS
from polyver.functions.registering._hints import InvalidFunction
from polyver.functions.registering._types import ArgumentField
from polyver.functions.registering.function import Function

__all__ = [
    "Functions",
    "KnownFunction",
    "Origin",
    "UnknownFunction",
    "check_registered",
    "function_data",
    "functions_data",
    "implementation",
    "known_functions",
]


class UnknownFunction(PolyverError):
    """There is no function with this name."""

    def __init__(self, name: str, functions: Functions, *, at: str = "") -> None:
        super().__init__(f"there is no function {name}", at=at, hint=functions.advice(name))
        self.name = name


@dataclass(frozen=True, slots=True)
class KnownFunction:
    """A function: its versions with stages, the code of each version, and the catalogue."""

    lineage: Lineage
    code: Mapping[SemVer, Function]
    """The Python code of each version. Empty if only a catalogue lists the function."""
    catalogue: FunctionCatalogue | None = None
    earlier: tuple[Release, ...] = ()
    """The versions that were stable before, the newest first. Empty if the stable version has no
    gate. Each of these versions may have a gate of its own.
    """

    @property
    def name(self) -> str:
        return self.lineage.name

    @property
    def stable(self) -> Release | None:
        """The version with the stage `stable` in the catalogue, even if it has a gate."""
        return next((each for each in self.lineage if each.stage is Stage.STABLE), None)

    def dependent(self, user: Dependent, *, misfits: bool = False) -> Dependent:
        """Return `user` with a pin to an earlier version, if the stable version has a gate.

        The user keeps the pinned version if the gate does not admit it. `misfits` is True if the
        stable version does not take the arguments of the user; the user then keeps its version even
        if the gate admits it.
        """
        kept = (each for each in self.earlier if each.gate is None or each.gate.admits(user))
        release, stable = next(kept, None), self.stable
        if release is None or stable is None:
            return user
        failed = FailedMove(stable.pin) if misfits else None
        return replace(user, pin=release.pin, failed_move=failed)

    def implementation(self, release: Release) -> Function:
        """Return the Python code of a version."""
        assert isinstance(release.version, SemVer)
        return self.code[release.version]


@dataclass(frozen=True, slots=True)
class Origin:
    """The files and modules that register the functions.

    The fork server loads them, so that its workers have the same functions as polyver.
    """

    names: tuple[str, ...] = ()
    """The files and modules that the user names. Installed Python packages and built-in functions
    are not listed here.
    """
    folder: str = ""
    files: Mapping[str, str] = field(default_factory=dict)
    """The digest of each file that registers functions, by the path of the file."""


@dataclass(frozen=True, slots=True)
class Functions:
    """All functions by name, and the warnings that occurred when they were loaded."""

    known: Mapping[str, KnownFunction]
    catalogues: tuple[FunctionCatalogue, ...] = ()
    """The catalogues of the project.

    If there are none, polyver's own catalogue. The method `at` changes only functions of these
    catalogues.
    """
    warnings: tuple[str, ...] = ()
    origin: Origin | None = None
    """The files and modules from which another process can load the functions; None if no other
    process can load them.
    """

    def __iter__(self) -> Iterator[KnownFunction]:
        return (self.known[name] for name in sorted(self.known))

    def get(self, name: str) -> KnownFunction:
        """Return the function with this name. Raise UnknownFunction if there is no code for it."""
        if name not in self.known or not self.known[name].code:
            raise UnknownFunction(name, self)
        return self.known[name]

    def advice(self, name: str) -> str:
        """Return a hint for a function name without code: `did you mean KubeExec?`."""
        listed_in = self.known[name].catalogue if name in self.known else None
        if listed_in is not None:
            return f"{listed_in.place(name)} lists it, but no code registers it"
        names = sorted(each.name for each in self if each.code)
        close = get_close_matches(name, names, n=1)
        if close:
            return f"did you mean {close[0]}?"
        return f"known: {listed(names)}" if names else "no functions are loaded"

    def at(self, release: SemVer) -> Functions:
        """Return the functions with the stages that versions have in a future catalogue release."""
        moved = {id(each): each.at(release) for each in self.catalogues}
        known = {
            each.name: _moved(each, moved[id(each.catalogue)])
            if each.catalogue and id(each.catalogue) in moved
            else each
            for each in self
        }
        return replace(self, known=known, catalogues=tuple(moved.values()))


def implementation(functions: Functions, name: str, version: str) -> Function | None:
    """Return the code of a resolved version. Return None if the code is not loaded any more."""
    known = functions.known.get(name)
    return known.code.get(SemVer.complete(version)) if known else None


def _moved(function: KnownFunction, catalogue: FunctionCatalogue) -> KnownFunction:
    listed_now = catalogue.get(function.name)
    assert listed_now is not None
    stages = {release.version: release.stage for release in listed_now}
    releases = [replace(r, stage=stages.get(r.version, r.stage)) for r in function.lineage]
    return replace(function, lineage=Lineage(function.name, releases), catalogue=catalogue)


def check_registered(functions: Iterable[Function]) -> dict[str, dict[SemVer, Function]]:
    """Return the functions by name and version.

    Raise InvalidFunction if two functions have the same name and version.

    If two modules contain the same registration, this is no error: the function is used once.
    """
    found: dict[str, dict[SemVer, Function]] = {}
    for function in functions:
        versions = found.setdefault(function.name, {})
        taken = versions.setdefault(function.version, function)
        if (taken.code, taken.place) != (function.code, function.place):
            at = f"{taken.place} and {function.place}"
            hint = "give one of them another version"
            raise InvalidFunction(f"{function.label} is registered twice", at=at, hint=hint)
    return found


def known_functions(
    functions: Iterable[Function], catalogues: Iterable[FunctionCatalogue] = ()
) -> Functions:
    """Combine registered functions with the stages in catalogues.

    Raise InvalidFunction if the registrations and the catalogues contradict each other.
    """
    listing = tuple(catalogues)
    listings = _listings(listing)
    known: dict[str, KnownFunction] = {}
    warnings: list[str] = []
    for name, catalogue in listings.items():
        lineage = catalogue.get(name)
        assert lineage is not None
        known[name] = KnownFunction(lineage, {}, catalogue)
    for name, code in check_registered(functions).items():
        if name in listings:
            known[name] = _listed(name, code, listings[name], warnings)
        else:
            known[name] = KnownFunction(_unlisted(name, code), code)
    return Functions(known, listing, tuple(warnings))


def _listings(catalogues: Iterable[FunctionCatalogue]) -> dict[str, FunctionCatalogue]:
    found: dict[str, FunctionCatalogue] = {}
    for catalogue in catalogues:
        for lineage in catalogue.functions:
            other = found.setdefault(lineage.name, catalogue)
            if other is not catalogue:
                at = f"{other.place(lineage.name)} and {catalogue.place(lineage.name)}"
                hint = "list the function in only one catalogue"
                raise InvalidFunction(f"{lineage.name} is in two catalogues", at=at, hint=hint)
    return found


# Functions without a catalogue.


def _unlisted(name: str, code: Mapping[SemVer, Function]) -> Lineage:
    stable = _stable(name, code)
    releases = [
        Release(
            version,
            stage=Stage.STABLE if function is stable else Stage.CANDIDATE,
            name=f"v{version}",
        )
        for version, function in code.items()
    ]
    return Lineage(name, releases, versioned=any(each.said for each in code.values()))


def _stable(name: str, code: Mapping[SemVer, Function]) -> Function:
    said = [function for function in code.values() if function.stable]
    if len(said) > 1:
        at = " and ".join(function.place for function in said)
        names = listed([f"v{function.version}" for function in said])
        raise InvalidFunction(f"{name} has the stable versions {names}", at=at, hint="keep one")
    found = said[0] if said else code.get(_FIRST)
    if found is None:
        at = " and ".join(function.place for function in code.values())
        hint = "register one of them with stable=True, or list it in a catalogue"
        raise InvalidFunction(f"{name} has neither v0.0.0 nor a stable version", at=at, hint=hint)
    if found.version.is_prerelease:
        fact = f"{found.label} is stable and a prerelease"
        raise InvalidFunction(fact, at=found.place)
    return found


_FIRST = SemVer.parse("v0.0.0")


# Functions in a catalogue.


def _listed(
    name: str, code: Mapping[SemVer, Function], catalogue: FunctionCatalogue, warnings: list[str]
) -> KnownFunction:
    lineage = catalogue.get(name)
    assert lineage is not None
    for version in catalogue.tombstones[name] & code.keys():
        at = f"{code[version].place} and {catalogue.place(name, version)}"
        fact = f"{name} v{version} is registered, and the catalogue lists it as removed"
        raise InvalidFunction(
            fact, at=at, hint="a version number is never reused: use the next one"
        )
    for release in lineage:
        assert isinstance(release.version, SemVer)
        if release.stage in FUNCTIONS.usable and release.version not in code:
            at = f"{catalogue.place(name, release.version)} and {_places(code)}"
            fact = f"{name} {release.name} is {release.stage.value}, and no code registers it"
            raise InvalidFunction(fact, at=at, hint=f"registered: {_names(code)}")
    more = [
        Release(version, stage=Stage.CANDIDATE, name=f"v{version}")
        for version in code
        if lineage.get(version) is None
    ]
    for each in more:
        place, where = code[_semver(each)].place, catalogue.place(name)
        warnings.append(
            f"{name} {each.name} ({place}) is not in the catalogue ({where}): it counts as a "
            "candidate; list it to reserve its number"
        )
    return KnownFunction(Lineage(name, [*lineage, *more]), code, catalogue)


def _semver(release: Release) -> SemVer:
    assert isinstance(release.version, SemVer)
    return release.version


def _places(code: Mapping[SemVer, Function]) -> str:
    return " and ".join(function.place for function in code.values())


def _names(code: Mapping[SemVer, Function]) -> str:
    return listed([f"v{version}" for version in code])


# Functions as plain data.


def functions_data(functions: Functions) -> dict[str, Any]:
    """Convert all functions to plain data, with their versions, arguments, stages and removals."""
    return {"functions": [function_data(known) for known in functions]}


def function_data(known: KnownFunction) -> dict[str, Any]:
    """Convert one function to plain data. Its versions are in ascending order."""
    found: dict[str, Any] = {"name": known.name}
    try:
        anyone = known.dependent(Dependent())
        found["default"] = resolve(known.lineage, UNSPECIFIED, FUNCTIONS, anyone).release.name
    except NoMatch:
        found["default"] = None
    if known.catalogue is not None:
        found["release"] = str(known.catalogue.now)
    found["versioned"] = known.lineage.versioned
    if known.earlier:
        found["earlier"] = [each.name for each in known.earlier]
    found["versions"] = [_version(known, release) for release in known.lineage]
    return found


def _version(known: KnownFunction, release: Release) -> dict[str, Any]:
    assert isinstance(release.version, SemVer)
    notes, code = release.notes, known.code.get(release.version)
    found: dict[str, Any] = {"version": release.name, "stage": release.stage.value}
    found["registered"] = code is not None
    dates = {"since": notes.since, "removedIn": notes.removed_in}
    found |= {name: str(date) for name, date in dates.items() if date is not None}
    if notes.use:
        found["use"] = notes.use
    if release.gate is not None:
        found["gate"] = {**gate_data(release.gate), "text": str(release.gate)}
    return found | (_code(code) if code is not None and not release.stage.is_gone else {})


def _code(function: Function) -> dict[str, Any]:
    found: dict[str, Any] = {"description": function.description} if function.description else {}
    found["idempotent"] = function.idempotent
    found |= {"sensitive": [*function.sensitive]} if function.sensitive else {}
    if function.outputs is not None:
        found["outputs"] = [*function.outputs.names]
        found["furtherOutputs"] = function.outputs.others
    found["arguments"] = [_argument(each) for each in function.arguments.fields]
    if function.arguments.further is not None:
        found["furtherArguments"] = function.arguments.further.schema
    return found


def _argument(argument: ArgumentField) -> dict[str, Any]:
    found: dict[str, Any] = {"name": argument.name, "required": argument.required}
    found |= {"type": argument.type.words, "schema": argument.type.schema}
    if not argument.required and argument.default is not None:
        found["default"] = msgspec.to_builtins(argument.default, enc_hook=_plain)
    return found | ({"description": argument.description} if argument.description else {})


def _plain(value: object) -> object:
    """Convert a value that JSON lacks: an enum member to its value, others to a string."""
    if isinstance(value, Enum):
        return value.value
    return str(value)
