"""The next step of a retirement, from a snapshot of the cluster.

The state of the cluster decides, and not only the recorded progress. So a retirement continues
correctly from every state: after the controller was killed, after a user changed the kind, and
after an abort.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from polyver.core import listed

__all__ = [
    "FIXED_REASONS",
    "PASSES",
    "Blocker",
    "PassProgress",
    "RetirementDecision",
    "RetirementSnapshot",
    "RetirementState",
    "RetirementStep",
    "decide",
]


class RetirementStep(StrEnum):
    """One step of a retirement."""

    STOP_SERVING = "StopServing"
    REWRITE = "RewriteObjects"
    VERIFY = "VerifyObjects"
    TRIM = "TrimStoredVersions"
    OWNERS = "RewriteManagedFields"
    PURGE = "PurgePreservedFields"
    DROP = "DropVersion"
    NARROW = "NarrowConversion"
    SERVE_AGAIN = "ServeAgain"


class RetirementState(StrEnum):
    """The state of a retirement."""

    RUNNING = "Running"
    BLOCKED = "Blocked"
    COMPLETED = "Completed"
    ABORTED = "Aborted"


PASSES: Final = (
    RetirementStep.REWRITE,
    RetirementStep.VERIFY,
    RetirementStep.OWNERS,
    RetirementStep.PURGE,
)
"""The steps that read all objects of the kind."""


@dataclass(frozen=True, slots=True)
class Blocker:
    """A reason why a step cannot run."""

    reason: str
    message: str


FIXED_REASONS: Final = frozenset(
    {
        "NoDefinition",
        "UnknownVersion",
        "StorageVersion",
        "OnlyServedVersion",
        "ConversionPath",
        "Terminating",
        "OtherRetirement",
    }
)
"""The reasons of blockers that stay until a user changes the kind: waiting does not help."""


@dataclass(frozen=True, slots=True)
class PassProgress:
    """The progress of a step that reads all objects."""

    objects: int = 0
    """The number of objects that were read in the current round."""
    changed: int = 0
    """The number of objects that were written in the current round."""
    written: int = 0
    """The number of objects that were written in all rounds."""
    rounds: int = 0
    """The number of completed rounds."""
    done: bool = False
    after: str = ""
    """The namespace and name of the last object that was read in the current round."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RetirementSnapshot:
    """Everything that a decision about a retirement needs."""

    version: str
    exists: bool = True
    """False if there is no CustomResourceDefinition."""
    terminating: bool = False
    """True if the CustomResourceDefinition is being deleted."""
    served: Mapping[str, bool] = field(default_factory=dict)
    """All versions of the CustomResourceDefinition, and whether they are served."""
    storage: str = ""
    """The storage version."""
    generation: int = 0
    """The generation of the CustomResourceDefinition."""
    stored: Sequence[str] = ()
    """`status.storedVersions`."""
    converted: Sequence[str] = ()
    """The versions of the Conversion; empty if there is none."""
    through: Sequence[str] = ()
    """Pairs of other versions, such as `v2 to v3`, that the Conversion connects through the
    version.
    """
    appliers: Sequence[str] = ()
    """The field managers that apply the versions of the CustomResourceDefinition."""
    conversion_appliers: Sequence[str] = ()
    """The field managers that apply the versions of the Conversion."""
    clients: Sequence[str] = ()
    """The clients that have recently used the version."""
    dependents: Sequence[str] = ()
    """The objects of polyver that use the version."""
    others: Sequence[str] = ()
    """The names of other unfinished retirements of the same kind."""
    # The spec of the Retirement.
    aborted: bool = False
    attempt: int = 0
    ignores_clients: bool = False
    ignores_dependents: bool = False
    takes_over: bool = False
    # The status of the Retirement.
    step: str = ""
    state: str = ""
    checked: int | None = None
    """The generation of the CustomResourceDefinition since the first pass; None before it.

    If the definition changes, the storage version may have been another one for some time. All
    objects are then read again.
    """
    stopped: int | None = None
    """The attempt that stopped serving the version; None if the retirement has not done it."""
    passes: Mapping[RetirementStep, PassProgress] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RetirementDecision:
    """The state of a retirement, its next step, and the reasons why this step cannot run."""

    state: RetirementState
    step: RetirementStep | None = None
    blockers: tuple[Blocker, ...] = ()
    resets: bool = False
    """True if all objects must be read again, from the first pass on."""

    @property
    def acts(self) -> bool:
        """Report whether the step may be executed now."""
        return self.step is not None and not self.blockers


def decide(snapshot: RetirementSnapshot) -> RetirementDecision:
    """Return the next step of a retirement."""
    if snapshot.state == RetirementState.COMPLETED:
        return RetirementDecision(RetirementState.COMPLETED)
    if not snapshot.exists:
        return _blocked(None, [Blocker("NoDefinition", "there is no CustomResourceDefinition")])
    if snapshot.version not in snapshot.served:
        return _after_drop(snapshot)
    if snapshot.aborted:
        return _abort(snapshot)
    step, resets = _next_step(snapshot)
    blockers = [*_structure(snapshot), *_needs(snapshot, step)]
    if blockers:
        return _blocked(step, blockers, resets=resets)
    return RetirementDecision(RetirementState.RUNNING, step, resets=resets)


def _blocked(
    step: RetirementStep | None, blockers: Sequence[Blocker], *, resets: bool = False
) -> RetirementDecision:
    return RetirementDecision(RetirementState.BLOCKED, step, tuple(blockers), resets)


def _abort(snapshot: RetirementSnapshot) -> RetirementDecision:
    if snapshot.served[snapshot.version]:
        return RetirementDecision(RetirementState.ABORTED)
    return RetirementDecision(RetirementState.RUNNING, RetirementStep.SERVE_AGAIN)


def _after_drop(snapshot: RetirementSnapshot) -> RetirementDecision:
    """Return the decision for a version that the CustomResourceDefinition does not have."""
    if not snapshot.step:
        known = listed([*snapshot.served])
        text = f"the CustomResourceDefinition has no version {snapshot.version}; it has {known}"
        return _blocked(None, [Blocker("UnknownVersion", text)])
    if snapshot.version not in snapshot.converted:
        return RetirementDecision(RetirementState.COMPLETED)
    step, names = RetirementStep.NARROW, snapshot.conversion_appliers
    if names and not snapshot.takes_over:
        return _blocked(step, [_applied("the Conversion", names, f"remove {snapshot.version}")])
    return RetirementDecision(RetirementState.RUNNING, step)


def _next_step(snapshot: RetirementSnapshot) -> tuple[RetirementStep, bool]:
    """Return the first step that is not done; also whether the passes must start again."""
    step, known = RetirementStep, snapshot.passes
    if snapshot.served[snapshot.version]:
        return step.STOP_SERVING, bool(known)
    if snapshot.checked not in (None, snapshot.generation):
        return step.REWRITE, True
    for each in PASSES[:2]:
        if not _is_done(known, each):
            return each, False
    if snapshot.version in snapshot.stored:
        return step.TRIM, False
    for each in PASSES[2:]:
        if not _is_done(known, each):
            return each, False
    return step.DROP, False


def _is_done(passes: Mapping[RetirementStep, PassProgress], step: RetirementStep) -> bool:
    return step in passes and passes[step].done


def _structure(snapshot: RetirementSnapshot) -> list[Blocker]:
    """Return the reasons in the definition of the kind that forbid every step."""
    version, found = snapshot.version, list[Blocker]()
    if snapshot.terminating:
        found.append(Blocker("Terminating", "the CustomResourceDefinition is being deleted"))
    if snapshot.storage == version:
        text = f"{version} is the storage version; first make another version the storage version"
        found.append(Blocker("StorageVersion", text))
    if not any(served for name, served in snapshot.served.items() if name != version):
        found.append(Blocker("OnlyServedVersion", "no other version is served"))
    if snapshot.through:
        text = (
            f"the Conversion leads from {listed(snapshot.through)} through {version}; change its "
            "edges so that no path between other versions needs it"
        )
        found.append(Blocker("ConversionPath", text))
    if snapshot.others:
        text = f"another retirement of this kind is not finished: {listed(snapshot.others)}"
        found.append(Blocker("OtherRetirement", text))
    return found


def _needs(snapshot: RetirementSnapshot, step: RetirementStep) -> list[Blocker]:
    """Return the reasons why this step must wait for users of the version."""
    found, version = list[Blocker](), snapshot.version
    if step == RetirementStep.STOP_SERVING:
        if snapshot.stopped is not None and snapshot.stopped >= snapshot.attempt:
            text = (
                f"another client serves {version} again; if this was a mistake, confirm the "
                "retirement again, or else abort it"
            )
            found.append(Blocker("ServedAgain", text))
        if snapshot.dependents and not snapshot.ignores_dependents:
            text = f"objects use {version}: {listed(snapshot.dependents)}"
            found.append(Blocker("Dependents", text))
        if snapshot.clients and not snapshot.ignores_clients:
            text = f"clients have recently used {version}: {listed(snapshot.clients)}"
            found.append(Blocker("Clients", text))
    wanted = {
        RetirementStep.STOP_SERVING: "set `served: false`",
        RetirementStep.DROP: f"remove {version}",
    }
    if step in wanted and snapshot.appliers and not snapshot.takes_over:
        what = "the CustomResourceDefinition"
        found.append(_applied(what, snapshot.appliers, wanted[step]))
    return found


def _applied(what: str, managers: Sequence[str], change: str) -> Blocker:
    shown = listed([_OWN_SOURCES if each == "polyver" else each for each in managers])
    text = f"{shown} applies {what}, and would undo the change; {change} in its source"
    return Blocker("AppliedElsewhere", text)


_OWN_SOURCES: Final = "polyver itself (from the files of `polyver up -f`, or from Python kinds)"
