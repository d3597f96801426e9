"""What applications ask for: each place that names a definition, and the pin that it has."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Final

from polyver.capability import Refusal
from polyver.core import (
    UNSPECIFIED,
    Dependent,
    Exact,
    FailedMove,
    Index,
    InvalidVersion,
    Lineage,
    Moves,
    Pin,
    Policy,
    PolyverError,
    Selector,
    SemVer,
    affected,
)
from polyver.core.plain import ReadOnlyObject
from polyver.definitions._locks import LOCK_PLACE, Locked, LockedPlaces, carried_lock
from polyver.definitions._policy import policy_for, selector
from polyver.definitions.names import AUTO_UPDATE, PUBLISH_VERSION, SYSTEM_NAMESPACE
from polyver.languages.values.names import label_value_problems

__all__ = [
    "WOULD_DELETE",
    "DefinitionUse",
    "check_application",
    "home_of",
    "is_failing",
    "is_held",
    "moves_of",
    "question_of",
    "settled",
    "users_in",
    "uses_of",
]

WOULD_DELETE: Final = "WouldDelete"
"""The reason of a move that failed because it would delete objects."""
RELOCK = "update or remove the lock: polyver app lock, polyver app unlock"


@dataclass(frozen=True, slots=True)
class DefinitionUse:
    """One place in an application that names a definition."""

    kind: str
    definition: str
    requested: str
    """What stands behind the `@`; empty if nothing is asked for."""
    namespace: str
    """Of the application."""
    place: str
    """What names the place in the application: a component, or a policy or step."""
    dependent: Dependent
    auto_update: str | None = None
    held: bool = False
    """Whether the application keeps what it has until it is published anew."""
    since: str = ""
    """Since when it has its pin."""
    pinned_in: str = ""
    """The namespace of the definition that the pin is of."""
    locked_in: str = ""
    """The namespace of the definition that the application's lock names."""
    problem: str = ""
    """Why its lock gives no answer."""
    is_failing: bool = False
    """Whether nothing was ever applied with its pin, because that fails."""


def uses_of(application: ReadOnlyObject) -> list[DefinitionUse]:
    """All places of an application that name definitions, with the pins in its status."""
    metadata: ReadOnlyObject = application["metadata"]
    annotations: ReadOnlyObject = metadata.get("annotations") or {}
    status: ReadOnlyObject = application.get("status") or {}
    pins = _Pins(status.get("resolutions") or ())
    locks = _Locks(application)
    namespace = metadata.get("namespace", "")
    about = Dependent(
        f"Application {namespace}/{metadata['name']}",
        uid=metadata.get("uid", ""),
        labels=metadata.get("labels") or {},
    )
    found = []
    for kind, place, at, text in _places(application.get("spec") or {}):
        name, _, requested = text.partition("@")
        known = pins.take(kind, place, name)
        pin = _pin_of(known) if known else None
        use = DefinitionUse(
            kind,
            name,
            requested,
            namespace,
            place,
            replace(about, at=at, pin=pin, failed_move=_failed_move(known)),
            annotations.get(AUTO_UPDATE),
            held=pin is not None and is_held(application),
            since=known["since"] if known else "",
            pinned_in=known["definition"].rpartition("/")[0] if known else "",
            is_failing=is_failing(status),
        )
        # What is kept until it is published anew is not asked for now.
        found.append(use if use.held else locks.over(use))
    return found


class _Locks:
    """The lock that an application may carry."""

    def __init__(self, application: ReadOnlyObject) -> None:
        self._problem = ""
        self._places: LockedPlaces | None = None
        try:
            carried = carried_lock(application)
        except PolyverError as error:
            self._problem = f"the lock cannot be read: {error}"
        else:
            self._places = LockedPlaces(carried) if carried is not None else None

    def over(self, use: DefinitionUse) -> DefinitionUse:
        """A use that gets what the lock says of it."""
        if self._problem or self._places is None:
            return replace(use, problem=self._problem)
        locked: Locked | None = self._places.take(use.kind, use.place, use.definition)
        if locked is None:
            return replace(use, problem=f"the lock has no entry for {use.definition} here")
        dependent = replace(use.dependent, lock=locked.pin)
        return replace(use, dependent=dependent, locked_in=locked.home)


class _Pins:
    """The resolutions in a status, by what does not change when places are put in another order."""

    def __init__(self, resolutions: Iterable[ReadOnlyObject]) -> None:
        self._left: dict[tuple[str, str, str], list[ReadOnlyObject]] = {}
        for each in resolutions:
            name = each["definition"].rpartition("/")[2]
            key = f"{each['kind']}Definition", each["component"], name
            self._left.setdefault(key, []).append(each)

    def take(self, kind: str, place: str, name: str) -> ReadOnlyObject | None:
        """The next one that is left for a place and a definition."""
        left = self._left.get((kind, place, name))
        return left.pop(0) if left else None


def _pin_of(known: ReadOnlyObject) -> Pin:
    """The pin in a resolution; revisions that are numbered have a name in their lineage."""
    try:
        return Pin(str(SemVer.parse(known["version"])), known["digest"])
    except InvalidVersion:
        return Pin(str(known["revision"]), known["digest"])


def _failed_move(known: ReadOnlyObject | None) -> FailedMove | None:
    failed = known.get("failedMove") if known else None
    if not failed:
        return None
    deletes = failed.get("reason") == WOULD_DELETE
    return FailedMove(_pin_of(failed), deletes, why=failed.get("message") or "")


def is_failing(status: ReadOnlyObject) -> bool:
    """Return True if an application has failed and was never applied as a whole."""
    return status.get("status") == "failed" and not status.get("appliedDigest")


def _places(spec: ReadOnlyObject) -> Iterator[tuple[str, str, str, str]]:
    for number, component in enumerate(spec.get("components") or ()):
        at, name = f"spec.components[{number}]", component.get("name", "")
        yield "ComponentDefinition", name, f"{at}.type", component.get("type", "")
        for place, trait in enumerate(component.get("traits") or ()):
            yield "TraitDefinition", name, f"{at}.traits[{place}].type", trait.get("type", "")
    for number, policy in enumerate(spec.get("policies") or ()):
        at = f"spec.policies[{number}].type"
        yield "PolicyDefinition", policy.get("name", ""), at, policy.get("type", "")
    steps = (spec.get("workflow") or {}).get("steps") or ()
    yield from _steps(steps, "spec.workflow.steps")


def _steps(steps: Iterable[ReadOnlyObject], at: str) -> Iterator[tuple[str, str, str, str]]:
    for number, step in enumerate(steps):
        here = f"{at}[{number}]"
        yield "WorkflowStepDefinition", step.get("name", ""), f"{here}.type", step.get("type", "")
        yield from _steps(step.get("subSteps") or (), f"{here}.subSteps")


def check_application(application: ReadOnlyObject) -> None:
    """Refuse annotations that contradict each other, and names that revisions cannot have."""
    annotations: ReadOnlyObject = application["metadata"].get("annotations") or {}
    auto_update = annotations.get(AUTO_UPDATE)
    if problems := label_value_problems(application["metadata"].get("name", "")):
        # As a label its revisions have it, by which they are found.
        fact = f"its name cannot be a label: {problems[0]}"
        raise Refusal("InvalidName", fact, at="metadata.name")
    carried_lock(application)
    at = f"metadata.annotations[{AUTO_UPDATE}]"
    if auto_update not in (None, "true", "false"):
        fact = f'{AUTO_UPDATE} is "{auto_update}"'
        raise Refusal("InvalidAnnotation", fact, at=at, hint='expected "true" or "false"')
    if auto_update == "true" and PUBLISH_VERSION in annotations:
        fact = f'{AUTO_UPDATE} is "true", but {PUBLISH_VERSION} requires moves on demand'
        raise Refusal("InvalidAnnotation", fact, at=at, hint="remove one of them")


def home_of(use: DefinitionUse, known: Iterable[str]) -> str | None:
    """The namespace whose definition a use means: its own one's, else the one for all.

    `known` are the namespaces that have a definition of that kind and name.
    """
    there = set(known)
    return next((each for each in (use.namespace, SYSTEM_NAMESPACE) if each in there), None)


def settled(use: DefinitionUse, home: str) -> DefinitionUse:
    """A use as one of the definition in a namespace: a pin of another one counts no longer."""
    if use.locked_in and use.locked_in != home and not use.problem:
        meant = f"but {home}/{use.definition} is requested"
        use = replace(use, problem=f"the lock has {use.locked_in}/{use.definition}, {meant}")
    if use.dependent.pin is None or use.pinned_in == home:
        return use
    unpinned = replace(use.dependent, pin=None, failed_move=None)
    return replace(use, dependent=unpinned, since="", held=False)


def is_held(application: ReadOnlyObject) -> bool:
    """Whether an application keeps what it has until it is published anew."""
    annotations: ReadOnlyObject = application["metadata"].get("annotations") or {}
    status: ReadOnlyObject = application.get("status") or {}
    wanted = annotations.get(PUBLISH_VERSION)
    return wanted is not None and wanted == status.get("publishVersion")


def question_of(use: DefinitionUse, lineage: Lineage) -> tuple[Selector, Policy]:
    """What a use asks of a lineage, and by which policy it is answered."""
    if use.problem:
        raise Refusal("LockMismatch", use.problem, at=LOCK_PLACE, hint=RELOCK)
    policy = policy_for(use.auto_update, lineage)
    if use.held and use.dependent.pin is not None:
        return Exact(use.dependent.pin.release), policy
    return (selector(use.requested, lineage) if use.requested else UNSPECIFIED), policy


def users_in(uses: Sequence[DefinitionUse], lineage: Lineage) -> dict[str, list[str]]:
    """For each release that is used, by its name: the dependents that have it, or get it now.

    A dependent with a pin uses it until the move is made. A dependent that fails with a release
    does not use it, nor does one that asks for what cannot be read.
    """
    found: dict[str, set[str]] = {}
    for use in uses:
        pin = use.dependent.pin
        release = lineage.get(pin.release) if pin is not None else None
        # What is gone is used by nobody, whoever still has it as a pin.
        there = release is not None and release.pin == pin and not release.stage.is_gone
        if release is not None and there and not use.is_failing:
            found.setdefault(release.name, set()).add(use.dependent.name)
    for move in affected(_index(uses, lineage), lineage, lineage).moves:
        found.setdefault(move.to.name, set()).add(move.dependent.name)
    return {name: sorted(dependents) for name, dependents in found.items()}


def moves_of(uses: Iterable[DefinitionUse], before: Lineage, after: Lineage) -> Moves:
    """Whom a change of a lineage moves, and who would lose what it has."""
    return affected(_index(uses, after), before, after)


def _index(uses: Iterable[DefinitionUse], lineage: Lineage) -> Index:
    entries = []
    for use in uses:
        with suppress(PolyverError):
            asked, policy = question_of(use, lineage)
            entries.append((use.dependent, lineage.name, asked, policy))
    return Index.of(entries)
