"""Compositions and Functions in the form that rollouts need: releases, followers, the preflight.

A follower is a composite resource that moves to new revisions automatically. Rollouts read the
state of a follower from its status, in which the controller of composite resources reports moves,
failures and readiness.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final, Literal, NamedTuple

from polyver.capability.followers import (
    FollowerIndex,
    has_same_followers,
    lineage_with_open,
)
from polyver.capability.gates import (
    STATE,
    SYSTEM_NAMESPACE,
    LineageName,
    ReleaseObject,
    gate_annotations,
)
from polyver.capability.rollouts import LineagesChanged, ObservedCalls
from polyver.client import Change, Client, GroupVersionResource, Key
from polyver.client.field_managers import POLYVER
from polyver.compositions._revision_rules import COMPOSITIONS_MANUAL, REVISIONS
from polyver.compositions.controllers.composites import (
    CompositeController,
    CompositeKey,
    TriedRevision,
)
from polyver.compositions.controllers.compositions import COMPOSITION_REVISIONS, COMPOSITIONS
from polyver.compositions.controllers.packages import FUNCTION_REVISIONS, FUNCTIONS, composites
from polyver.compositions.decisions import (
    FunctionLineages,
    composite_entry,
    composition_lineage,
    known_composition_revision,
    presumed_definition,
    read_composite,
)
from polyver.compositions.names import COMPOSITION, CONTENT, PACKAGE
from polyver.compositions.packages import (
    CompositionPipeline,
    StepCall,
    calls_in,
    pipeline_of,
)
from polyver.compositions.pipeline import WOULD_DELETE, FailedCompositeMove, failed_move_in
from polyver.controllers.controller import Watch, exactly
from polyver.core import (
    Dependent,
    Exact,
    Gate,
    Lineage,
    NoMatch,
    Pin,
    Policy,
    PolyverError,
    Release,
    Selector,
    resolve,
)
from polyver.core.cohorts import WORST_FIRST, Cohorts, FollowerState
from polyver.core.plain import Object
from polyver.core.preflight import PreflightReport
from polyver.core.rollout import Exposure
from polyver.kube.objects import encode_json
from polyver.kube.objects.conditions import find_condition
from polyver.kube.objects.kinds import ResourceKind
from polyver.kube.objects.status import ApiError

__all__ = ["LiveController", "RevisionTargets", "rollout_targets"]

_ADDED_LABELS: Final = (CONTENT, COMPOSITION, PACKAGE)
"""Labels that polyver adds to revisions. A user does not set them."""


@dataclass(slots=True)
class LiveController:
    """Gives rollouts access to the controller of composite resources that runs in this process.

    A preflight calls functions through the controller. The checks of errors and latency read the
    calls that the controller has made.
    """

    controller: CompositeController | None = None

    @property
    def running(self) -> CompositeController:
        if self.controller is None:
            raise PolyverError("the controller of composite resources does not run in this process")
        return self.controller


@dataclass(frozen=True, slots=True)
class _Composite:
    """The fields of a composite resource that decide which revisions it uses, and its health."""

    composition: str
    used: str
    """Name of the CompositionRevision that the composite resource uses."""
    previous: str
    dependent: Dependent
    selector: Selector
    policy: Policy
    calls: tuple[StepCall, ...]
    failed: FailedCompositeMove | None
    health: FollowerState
    """`healthy` or `unhealthy`; `moved` if the health is not known yet."""


class _Use(NamedTuple):
    """A reference of a composite resource to a Composition or to a function."""

    lineage: str
    used: str
    """Name of the revision that it uses; empty if the composite resource was never composed."""
    previous: str
    selector: Selector
    policy: Policy


@dataclass(frozen=True, slots=True)
class _Revised:
    """Describes one of the two kinds of objects with revisions: Composition or Function."""

    kind: Literal["Composition", "Function"]
    owners: GroupVersionResource
    revisions: GroupVersionResource
    label: str
    """Key of a label of revisions. The value of the label is the name of their Composition or
    Function.
    """
    has_calls: bool
    lineage: Callable[[str, Iterable[Object]], Lineage]
    is_published: Callable[[Object], bool]
    """Reports whether composite resources can use a revision now."""


def _composition_lineage(name: str, revisions: Iterable[Object]) -> Lineage:
    return composition_lineage(name, [known_composition_revision(each) for each in revisions])


def _function_lineage(name: str, revisions: Iterable[Object]) -> Lineage:
    return FunctionLineages(revisions).lineage(name)


def _is_served(revision: Object) -> bool:
    served = bool((revision.get("status") or {}).get("endpoint"))
    return served and revision["spec"].get("desiredState") == "Active"


_COMPOSITIONS: Final = _Revised(
    kind="Composition",
    owners=COMPOSITIONS,
    revisions=COMPOSITION_REVISIONS,
    label=COMPOSITION,
    has_calls=False,
    lineage=_composition_lineage,
    is_published=lambda _: True,
)
_FUNCTIONS: Final = _Revised(
    kind="Function",
    owners=FUNCTIONS,
    revisions=FUNCTION_REVISIONS,
    label=PACKAGE,
    has_calls=True,
    lineage=_function_lineage,
    is_published=_is_served,
)


def rollout_targets(client: Client, live: LiveController) -> list[RevisionTargets]:
    """Return the rollout targets for Compositions and for Functions."""
    return [RevisionTargets(client, live, each) for each in (_COMPOSITIONS, _FUNCTIONS)]


class RevisionTargets:
    """The lineages of Compositions or of Functions. Their followers are composite resources."""

    noun = "composite resources"

    def __init__(self, client: Client, live: LiveController, revised: _Revised) -> None:
        self._client = client
        self._live = live
        self._revised = revised
        self.kinds: Sequence[tuple[str, str]] = [(revised.owners.group, revised.kind)]
        self.has_calls = revised.has_calls
        self._labels: dict[str, Mapping[str, str]] = {}
        """The labels of each Composition or Function, by its name."""
        self._revisions: dict[str, dict[str, Object]] = {}
        """The revisions, by the name of their Composition or Function and by their own name."""
        self._pipelines: dict[str, CompositionPipeline] = {}
        """The steps of each CompositionRevision, by the name of the revision."""
        self._users: dict[str, set[CompositeKey]] = {}
        """The composite resources that use a CompositionRevision, by the name of the revision."""
        self._composites = FollowerIndex[CompositeKey, _Composite](
            topics=lambda each: [use.lineage for use in self._uses(each)],
            topic=lambda lineage: lineage.name,
            opened=self._opened,
            state=self._state,
        )

    def _name(self, owner: object) -> LineageName:
        return LineageName(self._revised.owners.group, self._revised.kind, "", str(owner))

    def _lineage(self, owner: str) -> Lineage:
        return self._revised.lineage(owner, self._revisions.get(owner, {}).values())

    # Watches.

    def watches(
        self, released: LineagesChanged, moved: LineagesChanged
    ) -> Sequence[Watch[Any, Any]]:
        def report(
            to: LineagesChanged, observe: Callable[[ResourceKind, Change[Any]], set[object]]
        ) -> Any:
            def observed(kind: ResourceKind, change: Change[Any]) -> Iterable[Any]:
                names = observe(kind, change) if change.before != change.after else set()
                return to(map(self._name, names))

            return observed

        def forget(kind: ResourceKind, known: Iterable[_Composite]) -> Iterable[Any]:
            del known
            names: set[object] = set()
            for key, obj in self._composites.known():
                if key[:2] == (kind.group, kind.kind):
                    names |= self._observe_composite(kind, Change(Key(*key[2:]), obj, None))
            return moved(map(self._name, names))

        steps = Watch(
            kinds=exactly(COMPOSITION_REVISIONS),
            observe=report(moved, self._observe_steps),
            keep=_steps_in,
        )
        return [
            Watch(
                kinds=exactly(self._revised.owners),
                observe=report(released, self._observe_owner),
                keep=_labels_in,
            ),
            Watch(
                kinds=exactly(self._revised.revisions),
                observe=report(released, self._observe_revision),
                keep=_revision_in,
            ),
            *([steps] if self._revised is _FUNCTIONS else []),
            Watch(
                kinds=composites,
                observe=report(moved, self._observe_composite),
                keep=_composite_in,
                forget=forget,
            ),
        ]

    def _observe_owner(self, kind: ResourceKind, change: Change[dict[str, str]]) -> set[object]:
        del kind
        self._labels.pop(change.key.name, None)
        if change.after is not None:
            self._labels[change.key.name] = change.after
        return {change.key.name}

    def _observe_revision(self, kind: ResourceKind, change: Change[Object]) -> set[object]:
        """Record a change of a revision. Return the names of the lineages that have changed."""
        del kind
        owners = {self._owner(each) for each in (change.before, change.after) if each is not None}
        before = {owner: self._lineage(owner) for owner in owners}
        for owner in owners:
            self._revisions.get(owner, {}).pop(change.key.name, None)
        if change.after is not None:
            self._revisions.setdefault(self._owner(change.after), {})[change.key.name] = (
                change.after
            )
        for owner, was in before.items():
            self._composites.changed(owner, partial(has_same_followers, was, self._lineage(owner)))
        return {*owners}

    def _owner(self, revision: Object) -> str:
        """Return the name of the Composition or Function to which a revision belongs."""
        return str((revision["metadata"].get("labels") or {}).get(self._revised.label, ""))

    def _observe_steps(
        self, kind: ResourceKind, change: Change[CompositionPipeline]
    ) -> set[object]:
        del kind
        name = change.key.name
        self._pipelines.pop(name, None)
        if change.after is not None:
            self._pipelines[name] = change.after
        touched: set[object] = set()
        for key in self._users.get(name, ()):
            touched |= self._composites.again(key)
        return touched

    def _observe_composite(self, kind: ResourceKind, change: Change[_Composite]) -> set[object]:
        key = CompositeKey(kind.group, kind.kind, *change.key)
        if change.before is not None:
            self._users.get(change.before.used, set()).discard(key)
        if change.after is not None:
            self._users.setdefault(change.after.used, set()).add(key)
        return {*self._composites.observe(key, change.after)}

    # Releases.

    def lineages(self, namespace: str) -> Mapping[LineageName, Mapping[str, str]]:
        if namespace != SYSTEM_NAMESPACE:
            return {}
        return {self._name(name): labels for name, labels in self._labels.items()}

    async def releases(self, lineage: LineageName) -> Sequence[ReleaseObject]:
        revised = self._revised
        labels = f"{revised.label}={lineage.name}"
        found = (await self._client.list(revised.revisions, labels=labels)).items
        objects = {each["metadata"]["name"]: each for each in found}
        return [
            ReleaseObject(
                release.name,
                order,
                release.gate,
                STATE in (objects[release.name]["metadata"].get("annotations") or {}),
                revised.is_published(objects[release.name]),
                _series(release),
            )
            for order, release in enumerate(revised.lineage(lineage.name, found))
        ]

    async def write_gate(self, lineage: LineageName, release: str, gate: Gate | None) -> None:
        del lineage
        change = {"metadata": {"annotations": gate_annotations(gate)}}
        try:
            await self._client.patch(
                self._revised.revisions, release, change=change, manager=POLYVER
            )
        except ApiError as error:
            if error.code != 404:  # it has just been deleted
                raise

    # Followers.

    async def followers(self, lineage: LineageName, release: str) -> Cohorts:
        return await self._composites.followers(lineage, release)

    def _opened(self, lineage: LineageName, release: str) -> Lineage | None:
        return lineage_with_open(self._lineage(lineage.name), release)

    def _uses(self, composite: _Composite) -> Iterator[_Use]:
        """Yield the references of a composite resource to its Composition, or to its functions.

        For Compositions, this is at most one reference, and none if the update policy is Manual.
        For Functions, there is one reference for each step that calls a function.
        """
        if self._revised is _COMPOSITIONS:
            if composite.composition and composite.policy is not COMPOSITIONS_MANUAL:
                yield _Use(
                    composite.composition,
                    composite.used,
                    composite.previous,
                    composite.selector,
                    composite.policy,
                )
            return
        calls = {(each.step, each.function): each for each in composite.calls}
        pipeline = self._pipelines.get(composite.used)
        for use in pipeline.uses if pipeline is not None else ():
            call = calls.get((use.step, use.function))
            used = call.pin.release if call is not None else ""
            before = call.previous if call is not None else None
            previous = before.release if before is not None else ""
            yield _Use(use.function, used, previous, use.selector, REVISIONS)

    def _state(
        self,
        key: CompositeKey,
        composite: _Composite,
        lineage: LineageName,
        opened: Lineage,
        to: str,
    ) -> tuple[Dependent, FollowerState] | None:
        """Return the state of a composite resource as a follower of the release `to`.

        It is the worst state of its references to the lineage. Return None if none of them follows.
        """
        del key
        states = {
            _towards(composite, use, opened, to)
            for use in self._uses(composite)
            if use.lineage == lineage.name
        }
        worst = next((each for each in WORST_FIRST if each in states), None)
        return (composite.dependent, worst) if worst is not None else None

    async def preflight(
        self, lineage: LineageName, release: str, sample: int | None
    ) -> PreflightReport:
        cohorts = await self.followers(lineage, release)
        names = cohorts.names(Exposure(1.0), "waiting", "failing", "held")[:sample]
        keys = [CompositeKey(*name.split("/")) for name in names]
        tried = TriedRevision(self._revised.kind, release)
        return await self._live.running.preflight(tried, keys)

    def calls(
        self, lineage: LineageName, release: str, *, since: float
    ) -> tuple[ObservedCalls, ObservedCalls]:
        history = self._live.running.history
        others = [name for name in self._revisions.get(lineage.name, {}) if name != release]
        return history.since([release], since), history.since(others, since)


def _towards(composite: _Composite, use: _Use, opened: Lineage, to: str) -> FollowerState | None:
    """Return the state of a reference as a follower of the release `to`.

    Return None if the reference does not follow the release. `opened` is the lineage in which the
    gate of the release is removed.
    """
    if isinstance(use.selector, Exact):
        return None
    pins = [_pin(opened, each) for each in (use.used, use.previous)]
    dependent = replace(composite.dependent, pin=pins[0], previous=pins[1])
    try:
        found = resolve(opened, use.selector, use.policy, dependent).release
    except NoMatch:
        return None
    if found.name != to:
        return None
    if use.used == to:
        return composite.health
    failed = composite.failed
    if failed is None or to not in failed.revisions or failed.passes:
        return "waiting"
    return "held" if failed.reason == WOULD_DELETE else "failing"


def _pin(lineage: Lineage, revision: str) -> Pin | None:
    known = lineage.get(revision) if revision else None
    return known.pin if known is not None else None


def _series(release: Release) -> str:
    """Return the labels of a release, without those that polyver adds, as JSON.

    Releases with different labels may have different followers.
    """
    chosen = {name: text for name, text in release.labels.items() if name not in _ADDED_LABELS}
    return encode_json(dict(sorted(chosen.items()))).decode()


# Fields that are kept of each object.


def _labels_in(kind: ResourceKind, obj: Object) -> dict[str, str]:
    del kind
    return dict(obj["metadata"].get("labels") or {})


def _revision_in(kind: ResourceKind, obj: Object) -> Object:
    """Return the fields of a revision that decide which composite resources may use it."""
    del kind
    metadata, spec = obj["metadata"], obj["spec"]
    names = ("name", "labels", "annotations", "deletionTimestamp", "ownerReferences")
    about = {name: metadata[name] for name in names if metadata.get(name)}
    if CONTENT not in (metadata.get("labels") or {}) and "compositeTypeRef" in spec:
        content = known_composition_revision(obj).content
        about["labels"] = {**about.get("labels", {}), CONTENT: content}
    fields = ("revision", "desiredState", "digest", "image")
    endpoint = (obj.get("status") or {}).get("endpoint", "")
    kept = {name: spec[name] for name in fields if name in spec}
    return {"metadata": about, "spec": kept, "status": {"endpoint": endpoint}}


def _steps_in(kind: ResourceKind, obj: Object) -> CompositionPipeline:
    del kind
    return pipeline_of(obj)


def _composite_in(kind: ResourceKind, obj: Object) -> _Composite:
    named = {**obj, "apiVersion": kind.api_version, "kind": kind.kind}
    composite = read_composite(named, presumed_definition(named))
    dependent, _, selector, policy = composite_entry(composite, Lineage(composite.composition))
    return _Composite(
        composite.composition,
        composite.revision,
        composite.previous,
        replace(dependent, pin=None, previous=None),
        selector,
        policy,
        calls_in(named),
        failed_move_in(named),
        _health(named),
    )


def _health(obj: Object) -> FollowerState:
    """Return the health of a composite resource.

    It is `moved`, which means that the health is not known yet, if the composite resource is not
    ready, or if its conditions are about an earlier generation: it has begun to move, or a user has
    edited it.
    """
    synced, ready = find_condition(obj, "Synced") or {}, find_condition(obj, "Ready") or {}
    if synced.get("observedGeneration") != obj["metadata"].get("generation"):
        return "moved"
    if synced.get("status") == "False":
        return "unhealthy"
    return "healthy" if ready.get("status") == "True" else "moved"
