"""Controller of Retirements: removes a version of a kind, one small step at a time.

Each reconciliation reads the state of the kind, decides with `polyver.apis.retirement` which step
is next, executes this step or one chunk of it, and writes the status. Every step can be repeated.
So the controller may be killed at any time: the next one reads the same state and continues.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

from polyver.apis.controllers.retirement_observing import (
    RETIREMENTS_ON,
    ObservedKind,
    VersionUsers,
    observe,
    progress_in,
)
from polyver.apis.controllers.retirement_passes import (
    ObjectPass,
    RefusedWrite,
    version_change,
)
from polyver.apis.conversion import ANNOTATION, BESIDE, Converter
from polyver.apis.conversion_kind import CONVERSIONS, converter_left, converter_of
from polyver.apis.declaring import Kind as DeclaredKind
from polyver.apis.retirement import (
    PASSES,
    Blocker,
    PassProgress,
    RetirementDecision,
    RetirementState,
    RetirementStep,
    conversion_without,
    decide,
    versions_served,
    versions_without,
)
from polyver.client import (
    CRDS,
    Change,
    Client,
    Clock,
    GroupVersionResource,
    SystemClock,
    find,
    precondition,
    timestamp,
)
from polyver.client.field_managers import POLYVER
from polyver.controllers.controller import Controller, Requeue, Watch, exactly
from polyver.controllers.statuses import write_status
from polyver.core import PolyverError
from polyver.core.plain import Object
from polyver.kube.objects.conditions import ConditionStatus, DesiredCondition, set_conditions
from polyver.kube.objects.kinds import ResourceKind
from polyver.kube.objects.status import ApiError

__all__ = ["RetirementController"]

_CONVERSIONS: Final = GroupVersionResource(
    CONVERSIONS.group, "v1alpha1", CONVERSIONS.names.plural, namespaced=False
)
_LOOK_AGAIN: Final = 5.0
"""Seconds until a blocked retirement is decided again."""
_HISTORY: Final = 50
"""The maximum number of entries of the history."""
_NEXT = Requeue(0.0)


@dataclass(slots=True)
class _Result:
    """The result of a reconciliation, which becomes the status."""

    state: RetirementState
    step: RetirementStep | None
    blockers: Sequence[Blocker] = ()
    passes: Mapping[RetirementStep, PassProgress] | None = None
    total: int | None = None
    checked: int | None = None
    stopped: int | None = None
    purged: Counter[str] | None = None


class RetirementController(Controller[str]):
    """Reconciles Retirements. The key of a Retirement in the work queue is its name."""

    name = "retirements"

    def __init__(
        self,
        client: Client,
        *,
        kinds: Sequence[DeclaredKind] = (),
        users: Sequence[VersionUsers] = (),
        clock: Clock | None = None,
    ) -> None:
        """Create the controller.

        `kinds` are the kinds declared in Python, which polyver converts. `users` find the objects
        of polyver that use a version of a kind.
        """
        self._client = client
        self._declared = {kind.definition().name: kind for kind in kinds}
        self._users = users
        self._clock: Clock = clock or SystemClock()
        self._of_definition: dict[str, set[str]] = {}
        """The names of the Retirements of each CustomResourceDefinition."""
        self._passes: dict[str, tuple[object, ObjectPass]] = {}
        """The current pass of each Retirement, and the state from which it was made."""

    @property
    def watches(self) -> Sequence[Watch[Any, str]]:
        return [
            Watch(kinds=exactly(RETIREMENTS_ON), observe=self._observe, keep=_retirement),
            *(
                Watch(kinds=exactly(each), observe=self._observe_kind, keep=_state, metadata=True)
                for each in (CRDS, _CONVERSIONS)
            ),
        ]

    def _observe(self, kind: ResourceKind, change: Change[tuple[Any, ...]]) -> Sequence[str]:
        del kind
        for state, is_new in ((change.before, False), (change.after, True)):
            if state is not None:
                names = self._of_definition.setdefault(state[0], set())
                (names.add if is_new else names.discard)(change.key.name)
        if change.after is None:
            self._passes.pop(change.key.name, None)
        return (change.key.name,) if change.before != change.after else ()

    def _observe_kind(self, kind: ResourceKind, change: Change[Any]) -> Sequence[str]:
        del kind
        if change.before == change.after:
            return ()
        return [*self._of_definition.get(change.key.name, ())]

    async def reconcile(self, key: str) -> Requeue | None:
        retirement = await find(self._client, RETIREMENTS_ON, key)
        if retirement is None or "deletionTimestamp" in retirement["metadata"]:
            return None
        observed = await observe(self._client, retirement, users=self._users, now=self._clock.now())
        decision = decide(observed.snapshot)
        result = await self._executed(key, retirement, observed, decision)
        status = self._status(retirement, result)
        await write_status(self._client, RETIREMENTS_ON, retirement, status)
        if result.state == RetirementState.RUNNING:
            return _NEXT
        return Requeue(_LOOK_AGAIN) if result.state == RetirementState.BLOCKED else None

    async def _executed(
        self, key: str, retirement: Object, observed: ObservedKind, decision: RetirementDecision
    ) -> _Result:
        """Execute the step of a decision, and return the result for the status."""
        status = retirement.get("status") or {}
        result = _Result(decision.state, decision.step, decision.blockers)
        result.passes = {} if decision.resets else progress_in(status)
        result.checked = None if decision.resets else status.get("checked")
        result.stopped, result.total = status.get("stopped"), status.get("total")
        result.purged = Counter({e["path"]: e["objects"] for e in status.get("purged") or ()})
        # The first reconciliation of a step only records the step. So after a restart, the status
        # names every step that may have begun.
        if not decision.acts or decision.step is None or status.get("step") != decision.step:
            return result
        try:
            await self._execute(key, observed, decision.step, result)
        except RefusedWrite as error:
            result.blockers = [Blocker("ObjectRefused", str(error))]
        except ApiError as error:
            if error.code == 409:  # another client was faster; decide again
                return result
            result.blockers = [_refused(error, observed)]
            if decision.step == RetirementStep.DROP:
                result.passes = {}  # the server has found an object that needs the version
        if result.blockers:
            result.state = RetirementState.BLOCKED
        return result

    async def _execute(
        self,
        key: str,
        observed: ObservedKind,
        step: RetirementStep,
        result: _Result,
    ) -> None:
        crd, version = observed.crd, observed.snapshot.version
        assert crd is not None
        match step:
            case RetirementStep.STOP_SERVING:
                result.stopped = observed.snapshot.attempt
                await self._define(crd, versions_served(crd, version, served=False))
            case RetirementStep.SERVE_AGAIN:
                await self._define(crd, versions_served(crd, version, served=True))
            case RetirementStep.TRIM:
                await self._trim(crd, version)
            case RetirementStep.DROP:
                await self._define(crd, versions_without(crd, version))
            case RetirementStep.NARROW:
                await self._narrow(observed)
            case _:
                await self._run_chunk(key, observed, step, result)

    async def _define(self, crd: Object, versions: Sequence[Object]) -> None:
        change = {"metadata": precondition(crd), "spec": {"versions": versions}}
        await self._client.patch(CRDS, crd["metadata"]["name"], change=change, manager=POLYVER)

    async def _trim(self, crd: Object, version: str) -> None:
        stored = [each for each in crd["status"]["storedVersions"] if each != version]
        await self._client.patch(
            CRDS,
            crd["metadata"]["name"],
            change={"metadata": precondition(crd), "status": {"storedVersions": stored}},
            subresource="status",
            manager=POLYVER,
        )

    async def _narrow(self, observed: ObservedKind) -> None:
        conversion = observed.conversion
        assert conversion is not None
        change = {
            "metadata": precondition(conversion),
            "spec": conversion_without(conversion, observed.snapshot.version),
        }
        name = conversion["metadata"]["name"]
        await self._client.patch(_CONVERSIONS, name, change=change, manager=POLYVER)

    # Steps over all objects.

    async def _run_chunk(
        self, key: str, observed: ObservedKind, step: RetirementStep, result: _Result
    ) -> None:
        passes = dict(result.passes or {})
        chunk = await self._pass(key, observed, step).run_chunk(passes.get(step, PassProgress()))
        passes[step] = chunk.progress
        if chunk.returns_to is not None:
            passes.pop(chunk.returns_to, None)
        result.passes, result.total = passes, chunk.total
        result.checked = observed.snapshot.generation
        result.purged = (result.purged or Counter()) + chunk.purged

    def _pass(self, key: str, observed: ObservedKind, step: RetirementStep) -> ObjectPass:
        """Return the pass of a step; keep it between chunks, with its position in the list."""
        crd, snapshot = observed.crd, observed.snapshot
        assert crd is not None
        conversion = observed.conversion
        revisions = [each and each["metadata"]["resourceVersion"] for each in (crd, conversion)]
        made_from = (step, *revisions)
        known = self._passes.get(key)
        if known is not None and known[0] == made_from:
            return known[1]
        resource = observed.resource
        converter = self._converter(observed)
        is_known = converter is not None or _only_versions_differ(crd)
        change = version_change(crd, snapshot.version, resource.version, converter)
        made = ObjectPass(
            self._client,
            resource,
            f"{resource.group}/{snapshot.version}",
            step,
            change=change if is_known else None,
            places=converter.keeping.paths if converter else _USUAL_PLACES,
        )
        self._passes[key] = (made_from, made)
        return made

    def _converter(self, observed: ObservedKind) -> Converter | None:
        """Return the converter of a kind; None if polyver does not convert it."""
        crd, conversion = observed.crd, observed.conversion
        assert crd is not None
        if conversion is not None:
            try:
                return converter_of(conversion, crd)
            except PolyverError:
                return converter_left(conversion, crd)
        declared = self._declared.get(crd["metadata"]["name"])
        return declared.converter if declared is not None else None

    # The status.

    def _status(self, retirement: Object, result: _Result) -> Object:
        before = retirement.get("status") or {}
        now = timestamp(self._clock)
        step = result.step or (before.get("step") and RetirementStep(before["step"]))
        progress = (result.passes or {}).get(step) if step else None
        status: Object = {
            "state": result.state.value,
            "step": step.value if step else None,
            "progress": f"{progress.objects}/{result.total}" if progress else None,
            "total": result.total,
            "checked": result.checked,
            "stopped": result.stopped,
            "passes": [
                {"step": each.value, **asdict(found), "after": found.after or None}
                for each in PASSES
                if (found := (result.passes or {}).get(each)) is not None
            ],
            "blockers": [asdict(each) for each in result.blockers],
            "purged": [
                {"path": path, "objects": number}
                for path, number in sorted((result.purged or Counter()).items())
            ],
            "history": _history(before, result, now),
            "conditions": set_conditions(retirement, [_condition(retirement, result)], now=now),
        }
        return {
            name: _compact(value) for name, value in status.items() if value not in (None, [], "")
        }


_USUAL_PLACES: Final = tuple(("metadata", "annotations", name) for name in (ANNOTATION, BESIDE))


def _compact(value: Any) -> Any:
    """Remove fields that are None from the items of a list."""
    if not isinstance(value, list):
        return value
    return [{name: each for name, each in item.items() if each is not None} for item in value]


def _history(before: Mapping[str, Any], result: _Result, now: str) -> list[Object]:
    """Return the history, with an entry for a new step or a new state."""
    known = list(before.get("history") or [])
    final = result.state in (RetirementState.COMPLETED, RetirementState.ABORTED)
    step = result.state.value if final else (result.step.value if result.step else "")
    message = "; ".join(each.message for each in result.blockers)
    entry = {"time": now, "step": step, "message": message}
    if known and all(known[-1].get(name) == entry[name] for name in ("step", "message")):
        return known
    return [*known, entry][-_HISTORY:]


def _condition(retirement: Object, result: _Result) -> DesiredCondition:
    version = retirement["spec"]["version"]
    status: ConditionStatus = "True" if result.state == RetirementState.COMPLETED else "False"
    match result.state:
        case RetirementState.COMPLETED:
            message = f"{version} is removed"
        case RetirementState.ABORTED:
            message = f"{version} is served again"
        case _:
            message = "; ".join(each.message for each in result.blockers)
    reason = result.blockers[0].reason if result.blockers else result.state.value
    return DesiredCondition("Retired", status, reason, message)


def _refused(error: ApiError, observed: ObservedKind) -> Blocker:
    if error.code != 403 or observed.crd is None:
        return Blocker("RequestRefused", error.message)
    name = observed.crd["metadata"]["name"]
    text = (
        f"{error.message}; polyver needs the rights to list and patch {name}: create a ClusterRole "
        "with these rights, and pass its name to `polyver install --role`"
    )
    return Blocker("Forbidden", text)


def _only_versions_differ(crd: Mapping[str, Any]) -> bool:
    """Report whether the versions of a CRD have the same fields (conversion strategy None)."""
    strategy: str = (crd["spec"].get("conversion") or {}).get("strategy", "None")
    return strategy == "None"


def _retirement(kind: ResourceKind, obj: Object) -> tuple[Any, ...]:
    del kind
    metadata = obj["metadata"]
    going = "deletionTimestamp" in metadata
    return obj["spec"]["definition"], metadata["uid"], metadata.get("generation"), going


def _state(kind: ResourceKind, obj: Object) -> tuple[Any, ...]:
    del kind
    metadata = obj["metadata"]
    return metadata["uid"], metadata.get("generation"), "deletionTimestamp" in metadata
