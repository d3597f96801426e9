"""References of applications to definitions, with their pins and locks.

A pin is the release that a reference uses, as recorded in the status of the application.
"""

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
from polyver.definitions._locks import LOCK_PLACE, Locked, carried_lock
from polyver.definitions.names import AUTO_UPDATE, PUBLISH_VERSION, SYSTEM_NAMESPACE, TYPES
from polyver.definitions.versions import policy_for, selector
from polyver.languages.values.names import label_value_problems

__all__ = [
    "WOULD_DELETE",
    "DefinitionUse",
    "check_application",
    "home_of",
    "is_failing",
    "is_healthy",
    "is_held",
    "moves_of",
    "question_of",
    "settled",
    "users_in",
    "uses_of",
]

WOULD_DELETE: Final = "WouldDelete"
"""The reason, in the status, of a move that failed because it would delete objects."""
RELOCK = "update or remove the lock: polyver app lock, polyver app unlock"


@dataclass(frozen=True, slots=True)
class DefinitionUse:
    """One reference of an application to a definition."""

    kind: str
    definition: str
    requested: str
    """The requested version or series, after the `@`; empty if no version is requested."""
    namespace: str
    """Namespace of the application."""
    place: str
    """Name of the component, policy or workflow step that has the reference."""
    dependent: Dependent
    auto_update: str | None = None
    held: bool = False
    """True if the reference keeps its pin until publishVersion of the application changes."""
    since: str = ""
    """Time at which the reference got its pin; empty without a pin."""
    pinned_in: str = ""
    """Namespace of the definition to which the pin belongs; empty without a pin."""
    locked_in: str = ""
    """Namespace of the definition in the lock entry of this reference; empty without a lock."""
    problem: str = ""
    """The reason why the lock cannot be used. Empty if the lock can be used, or if there is no
    lock.
    """
    is_failing: bool = False
    """True if the application has failed and was never applied completely."""


def uses_of(application: ReadOnlyObject) -> list[DefinitionUse]:
    """Return the references of an application to definitions, with their pins and locks."""
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
            replace(
                about, at=at, pin=pin, failed_move=_failed_move(known), previous=_previous(known)
            ),
            annotations.get(AUTO_UPDATE),
            held=pin is not None and is_held(application),
            since=known["since"] if known else "",
            pinned_in=known["definition"].rpartition("/")[0] if known else "",
            is_failing=is_failing(status),
        )
        # A reference that keeps its pin until publishVersion changes does not use the lock.
        found.append(use if use.held else locks.over(use))
    return found


class _Locks:
    """Assigns each entry in the lock annotation of an application to one of its references."""

    def __init__(self, application: ReadOnlyObject) -> None:
        self._problem = ""
        self._left: dict[tuple[str, str, str], list[Locked]] | None = None
        """The entries that are not assigned to a reference yet. None if the application has no
        lock.
        """
        try:
            carried = carried_lock(application)
        except PolyverError as error:
            self._problem = f"the lock cannot be read: {error}"
            return
        if carried is not None:
            self._left = {}
            for each in carried:
                self._left.setdefault(each.key, []).append(each)

    def over(self, use: DefinitionUse) -> DefinitionUse:
        """Return a reference with the version of its lock entry.

        If the lock cannot be read, or has no entry for the reference, return the reference with
        this reason in its field `problem`.
        """
        if self._problem or self._left is None:
            return replace(use, problem=self._problem)
        left = self._left.get((TYPES[use.kind], use.place, use.definition))
        if not left:
            return replace(use, problem=f"the lock has no entry for {use.definition} here")
        locked = left.pop(0)
        dependent = replace(use.dependent, lock=locked.pin)
        return replace(use, dependent=dependent, locked_in=locked.home)


class _Pins:
    """Assigns each resolution in an application's status to one of its references.

    The resolutions may have another order than the references.
    """

    def __init__(self, resolutions: Iterable[ReadOnlyObject]) -> None:
        self._left: dict[tuple[str, str, str], list[ReadOnlyObject]] = {}
        for each in resolutions:
            name = each["definition"].rpartition("/")[2]
            key = f"{each['kind']}Definition", each["component"], name
            self._left.setdefault(key, []).append(each)

    def take(self, kind: str, place: str, name: str) -> ReadOnlyObject | None:
        """Return the next resolution of a reference, and remove it from those to assign.

        `place` is the name of the component, policy or step. Return None if no resolution is left.
        """
        left = self._left.get((kind, place, name))
        return left.pop(0) if left else None


def _pin_of(known: ReadOnlyObject) -> Pin:
    """Return the pin that a resolution records.

    For a semantic version, the pin contains the version; for a numbered revision, the name of the
    revision.
    """
    try:
        return Pin(str(SemVer.parse(known["version"])), known["digest"])
    except InvalidVersion:
        return Pin(str(known["revision"]), known["digest"])


def _previous(known: ReadOnlyObject | None) -> Pin | None:
    previous = known.get("previous") if known else None
    return _pin_of(previous) if previous else None


def _failed_move(known: ReadOnlyObject | None) -> FailedMove | None:
    failed = known.get("failedMove") if known else None
    if not failed:
        return None
    deletes = failed.get("reason") == WOULD_DELETE
    return FailedMove(_pin_of(failed), deletes, why=failed.get("message") or "")


def is_failing(status: ReadOnlyObject) -> bool:
    """Report whether an application with this status failed and was never applied completely."""
    return status.get("status") == "failed" and not status.get("appliedDigest")


def is_healthy(status: ReadOnlyObject) -> bool:
    """Report whether an application with this status is running and ready."""
    ready = any(
        each.get("type") == "Ready" and each.get("status") == "True"
        for each in status.get("conditions") or ()
    )
    return ready and status.get("status") == "running"


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
    """Raise Refusal for contradictory annotations, an invalid lock, or an unsuitable name."""
    annotations: ReadOnlyObject = application["metadata"].get("annotations") or {}
    auto_update = annotations.get(AUTO_UPDATE)
    if problems := label_value_problems(application["metadata"].get("name", "")):
        # The revisions of an application have a label with the name of the application.
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
    """Return the namespace of the definition that a reference means; None if there is none.

    `known` are the namespaces that have a definition with the kind and name in the reference. The
    namespace of the application has precedence over the system namespace.
    """
    there = set(known)
    return next((each for each in (use.namespace, SYSTEM_NAMESPACE) if each in there), None)


def settled(use: DefinitionUse, home: str) -> DefinitionUse:
    """Return a reference whose pin and lock belong to the definition in the namespace `home`.

    This is the definition that the reference means now. If the pin belongs to a definition in
    another namespace, it is removed. If the lock does, the reference gets a problem.
    """
    if use.locked_in and use.locked_in != home and not use.problem:
        meant = f"but {home}/{use.definition} is requested"
        use = replace(use, problem=f"the lock has {use.locked_in}/{use.definition}, {meant}")
    if use.dependent.pin is None or use.pinned_in == home:
        return use
    unpinned = replace(use.dependent, pin=None, failed_move=None)
    return replace(use, dependent=unpinned, since="", held=False)


def is_held(application: ReadOnlyObject) -> bool:
    """Report whether an application keeps its versions until its publishVersion changes."""
    annotations: ReadOnlyObject = application["metadata"].get("annotations") or {}
    status: ReadOnlyObject = application.get("status") or {}
    wanted = annotations.get(PUBLISH_VERSION)
    return wanted is not None and wanted == status.get("publishVersion")


def question_of(use: DefinitionUse, lineage: Lineage) -> tuple[Selector, Policy]:
    """Return the selector and the policy with which a reference is resolved.

    Raise Refusal if the lock of the reference cannot be used.
    """
    if use.problem:
        raise Refusal("LockMismatch", use.problem, at=LOCK_PLACE, hint=RELOCK)
    policy = policy_for(use.auto_update, lineage)
    if use.held and use.dependent.pin is not None:
        return Exact(use.dependent.pin.release), policy
    return (selector(use.requested, lineage) if use.requested else UNSPECIFIED), policy


def users_in(uses: Sequence[DefinitionUse], lineage: Lineage) -> dict[str, list[str]]:
    """Return the names of the applications that use each release, by the name of the release.

    A reference with a pin uses the pinned release until it has moved. There is one exception: an
    application that has failed and was never applied completely does not use the pinned release. A
    reference also uses the release to which it will move. A reference with an invalid selector does
    not move.
    """
    found: dict[str, set[str]] = {}
    for use in uses:
        pin = use.dependent.pin
        release = lineage.get(pin.release) if pin is not None else None
        # A removed release has no users. References may still have a pin to this release.
        there = release is not None and release.pin == pin and not release.stage.is_gone
        if release is not None and there and not use.is_failing:
            found.setdefault(release.name, set()).add(use.dependent.name)
    for move in affected(_index(uses, lineage), lineage, lineage).moves:
        found.setdefault(move.to.name, set()).add(move.dependent.name)
    return {name: sorted(dependents) for name, dependents in found.items()}


def moves_of(uses: Iterable[DefinitionUse], before: Lineage, after: Lineage) -> Moves:
    """Return the references that move, or lose their release, if a lineage changes."""
    return affected(_index(uses, after), before, after)


def _index(uses: Iterable[DefinitionUse], lineage: Lineage) -> Index:
    entries = []
    for use in uses:
        with suppress(PolyverError):
            asked, policy = question_of(use, lineage)
            entries.append((use.dependent, lineage.name, asked, policy))
    return Index.of(entries)
