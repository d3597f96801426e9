"""The plan of a retirement: its steps with numbers of objects, and the users of the version."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from polyver.apis.conversion import ANNOTATION, preserved_in_version
from polyver.apis.retirement._decisions import (
    FIXED_REASONS,
    Blocker,
    RetirementSnapshot,
    RetirementState,
    RetirementStep,
    decide,
)
from polyver.apis.retirement._usage import VersionClients

__all__ = ["ObjectCounts", "PlannedStep", "RetirementPlan", "plan_retirement"]

_PER_SECOND: Final = 100
"""The number of objects that polyver writes per second, for estimates."""
_READ_PER_SECOND: Final = 2000


@dataclass(slots=True)
class ObjectCounts:
    """Numbers of objects of a kind, by what a retirement has to change in them."""

    total: int = 0
    with_owners: int = 0
    """The number of objects whose managedFields name the version."""
    managers: Counter[tuple[str, str]] = field(default_factory=Counter)
    """The number of these objects by field manager and operation (Apply or Update)."""
    last_write: dict[tuple[str, str], str] = field(default_factory=dict)
    """The newest time in these entries, by field manager and operation."""
    with_preserved: int = 0
    """The number of objects with preserved fields that only the version can restore."""
    preserved: Counter[str] = field(default_factory=Counter)
    """The number of these objects by the path of the field."""
    unknown: int = 0
    """The number of objects whose preserved fields this release cannot read."""

    def add(self, metadata: Mapping[str, Any], api_version: str) -> None:
        """Count an object of which only the metadata was read."""
        self.total += 1
        entries = metadata.get("managedFields") or ()
        owners = {
            (each.get("manager", ""), each.get("operation", "")): each.get("time", "")
            for each in entries
            if each.get("apiVersion") == api_version
        }
        self.with_owners += bool(owners)
        for owner, time in owners.items():
            self.managers[owner] += 1
            self.last_write[owner] = max(self.last_write.get(owner, ""), time)
        text = (metadata.get("annotations") or {}).get(ANNOTATION)
        paths = preserved_in_version(text, api_version.rpartition("/")[2])
        self.unknown += paths is None
        self.with_preserved += bool(paths)
        self.preserved.update(paths or ())


@dataclass(frozen=True, slots=True)
class PlannedStep:
    """One step of a plan."""

    step: RetirementStep
    text: str
    objects: int | None = None
    """The number of objects that the step changes at most; None if it changes no objects."""
    seconds: int = 0
    """The estimated duration."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RetirementPlan:
    """The plan of a retirement."""

    definition: str
    version: str
    steps: Sequence[PlannedStep]
    """The steps that are left."""
    blockers: Sequence[Blocker]
    """The reasons why the next step cannot run."""
    warnings: Sequence[str]
    counts: ObjectCounts
    clients: VersionClients
    snapshot: RetirementSnapshot

    @property
    def data(self) -> dict[str, Any]:
        """The plan as JSON."""
        counts, clients = self.counts, self.clients
        return {
            "definition": self.definition,
            "version": self.version,
            "storedVersions": [*self.snapshot.stored],
            "objects": counts.total,
            "managers": [
                {
                    "manager": manager,
                    "operation": operation,
                    "objects": number,
                    "lastWrite": counts.last_write[manager, operation],
                }
                for (manager, operation), number in sorted(counts.managers.items())
            ],
            "preserved": [
                {"path": path, "objects": number}
                for path, number in sorted(counts.preserved.items())
            ],
            "clients": {
                "since": clients.since or None,
                "requests": clients.requests,
                "lastRequest": clients.last or None,
                "clients": [*clients.clients],
                "otherClients": clients.others,
            },
            "dependents": [*self.snapshot.dependents],
            "steps": [
                {"step": each.step.value, "text": each.text, "seconds": each.seconds}
                | ({} if each.objects is None else {"objects": each.objects})
                for each in self.steps
            ],
            "blockers": [
                {"reason": each.reason, "message": each.message} for each in self.blockers
            ],
            "warnings": [*self.warnings],
        }


def plan_retirement(
    definition: str, snapshot: RetirementSnapshot, counts: ObjectCounts, clients: VersionClients
) -> RetirementPlan:
    """Return the plan of a retirement that has not started."""
    decision = decide(snapshot)
    done = decision.state in (RetirementState.COMPLETED, RetirementState.ABORTED)
    fixed = any(each.reason in FIXED_REASONS for each in decision.blockers)
    return RetirementPlan(
        definition=definition,
        version=snapshot.version,
        steps=[] if done or fixed else [*_steps(snapshot, counts)],
        blockers=decision.blockers,
        warnings=[] if fixed else [*_warnings(snapshot, counts, clients)],
        counts=counts,
        clients=clients,
        snapshot=snapshot,
    )


def _steps(snapshot: RetirementSnapshot, counts: ObjectCounts) -> Iterable[PlannedStep]:
    step, version, storage = RetirementStep, snapshot.version, snapshot.storage
    total = counts.total
    if snapshot.served[version]:
        yield PlannedStep(step.STOP_SERVING, f"stop serving {version}", None, 1)
    text = f"rewrite all objects, so that each is stored in {storage}"
    yield PlannedStep(step.REWRITE, text, total, _time(total, _PER_SECOND))
    text = f"verify that no object is stored in {version}"
    yield PlannedStep(step.VERIFY, text, total, _time(total, _PER_SECOND))
    if version in snapshot.stored:
        text = f"remove {version} from status.storedVersions"
        yield PlannedStep(step.TRIM, text, None, 1)
    owners = counts.with_owners
    seconds = _time(owners, _PER_SECOND) + _time(total, _READ_PER_SECOND)
    text = f"rewrite the managedFields entries of {version} to {storage}"
    yield PlannedStep(step.OWNERS, text, owners, seconds)
    purged = counts.with_preserved
    seconds = _time(purged, _PER_SECOND) + _time(total, _READ_PER_SECOND)
    text = f"purge preserved fields that only {version} can restore"
    yield PlannedStep(step.PURGE, text, purged, seconds)
    yield PlannedStep(
        step.DROP,
        f"drop {version} from the CustomResourceDefinition (no abort after this)",
        None,
        1,
    )
    if version in snapshot.converted:
        yield PlannedStep(step.NARROW, f"remove {version} from the Conversion", None, 1)


def _time(objects: int, per_second: int) -> int:
    return math.ceil(objects / per_second)


def _warnings(
    snapshot: RetirementSnapshot, counts: ObjectCounts, clients: VersionClients
) -> Iterable[str]:
    version = snapshot.version
    if not clients.since:
        yield f"requests were not counted, so it is unknown which clients use {version}"
    elif clients.writes_only:
        yield f"on this cluster, only writes are counted: clients may still read {version}"
    if counts.with_preserved:
        yield (
            f"values that only {version} can express, in {_objects(counts.with_preserved)}, are "
            "lost when polyver purges them, also after an abort"
        )
    if counts.unknown:
        yield (
            f"preserved fields in {_objects(counts.unknown)} have a format that this release "
            "cannot read; they are kept"
        )
    if snapshot.appliers and not snapshot.takes_over:
        yield "polyver waits until the field managers above have changed the definition"


def _objects(number: int) -> str:
    return "1 object" if number == 1 else f"{number} objects"
