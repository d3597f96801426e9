"""Computes how definitions, applications and releases would affect a cluster.

The module writes nothing to the cluster. Both `polyver plan` and the preflight of rollouts use it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from polyver.capability.followers import lineage_with_open
from polyver.capability.planning import applied_to
from polyver.client import Client, Discovery, GroupVersionResource, find, for_each
from polyver.core import PolyverError
from polyver.core.plain import Object
from polyver.core.preflight import Identity, Outcome, Preflight, PreflightReport, identity_of
from polyver.definitions.admission import DefinitionChecks, note
from polyver.definitions.commands.state import (
    APPLICATIONS_ON,
    REVISIONS_ON,
    ApplicationsSnapshot,
    history_on,
    state_on,
)
from polyver.definitions.controllers.definitions import ClientDefinitionLookup
from polyver.definitions.cue import engines
from polyver.definitions.kinds import DEFINITIONS, GROUP
from polyver.definitions.names import ALLOW_DELETION
from polyver.definitions.plan import PlannedLoss, PlannedMove, moved, new_revisions
from polyver.definitions.publishing import Decision, GatePolicy, read_definition
from polyver.definitions.rendered_objects import UnknownKind, place_all
from polyver.definitions.rendering import (
    Rendered,
    RenderedObject,
    cluster_version,
    render,
    revisions_of,
)
from polyver.definitions.resolution import (
    choose_all,
    newest_revision,
    recorded_revision,
    resolution_data,
    revision_of,
)
from polyver.definitions.uses import uses_of
from polyver.kube.objects.status import ApiError

__all__ = [
    "DefinitionsPlan",
    "PlannedApplication",
    "PlannedDefinition",
    "plan_on",
    "preflight_of",
]

_PLURALS = {kind.kind: kind.names.plural for kind in DEFINITIONS}
_NOTHING = Rendered()


@dataclass(frozen=True, slots=True)
class PlannedDefinition:
    """The effects of a plan on one definition, and on the applications that use it."""

    name: str
    decision: Decision
    refused: tuple[str, ...]
    moves: Sequence[PlannedMove]
    losses: Sequence[PlannedLoss]


@dataclass(frozen=True, slots=True)
class PlannedApplication:
    """The effects of a plan on one application.

    The changed objects of the application are in the field `report` of the DefinitionsPlan.
    """

    name: str
    written: bool
    """True if the files contain the application."""
    outcome: Outcome
    errors: Sequence[str] = ()
    """The reasons why the application would fail, or fails already."""
    moves: Sequence[PlannedMove] = ()
    """Moves of the application's references. Empty if the files do not contain the application.

    In this case, the planned definitions have the moves.
    """
    refused: bool = False
    """True if the API server would refuse the application."""
    not_compared: Sequence[str] = ()
    """The reasons why the application's future objects cannot be compared with its current objects.
    """
    may_lose: bool = False
    """True if each definition that moves the application allows deletions with the annotation
    `polyver.dev/allow-deletion`. Always False if the files contain the application.
    """


@dataclass(slots=True)
class DefinitionsPlan:
    """The effects of a plan on all definitions and applications."""

    definitions: list[PlannedDefinition] = field(default_factory=list)
    applications: list[PlannedApplication] = field(default_factory=list)
    report: PreflightReport = field(default_factory=lambda: Preflight().report())
    failing: PreflightReport = field(default_factory=lambda: Preflight().report())
    """Applications that fail now, and that would still fail if the plan were applied."""


async def plan_on(
    client: Client, definitions: Iterable[Object], applications: Iterable[Object], gate: GatePolicy
) -> DefinitionsPlan:
    """Compute what happens if these definitions and applications are applied to a cluster.

    The plan assumes that the definitions are applied first.
    """
    cluster = cluster_version(await client.release())
    planner = _Planner(client, await state_on(client), gate, cluster, await client.discover())
    for each in definitions:
        await planner.publish(each)
    wanted = {_name(each): each for each in applications}
    names = sorted({*wanted, *planner.touched})
    await for_each(names, lambda name: planner.deploy(name, wanted.get(name)), at_once=_AT_ONCE)
    return planner.finished()


async def preflight_of(
    client: Client, definition: tuple[str, str, str], release: str, names: Sequence[str]
) -> PreflightReport:
    """Compute what happens if the gate of a release is removed for some applications.

    `names` are these applications, as NAMESPACE/NAME. `definition` is the kind, namespace and name
    of the definition.
    """
    kind, namespace, name = definition
    cluster = cluster_version(await client.release())
    state = await state_on(client)
    known = state.lineages.setdefault((kind, name), {})
    opened = lineage_with_open(known.get(namespace), release)
    if opened is not None:
        known[namespace] = opened
    planner = _Planner(client, state, "refuse", cluster, await client.discover())
    await for_each(names, planner.deploy_live, at_once=_AT_ONCE)
    return planner.finished().report


_AT_ONCE: Final = 4
"""Number of concurrent renderings.

There is a limit because some engines, such as cue, start a process for each rendering.
"""


def _name(obj: Object) -> str:
    return f"{obj['metadata']['namespace']}/{obj['metadata']['name']}"


class _Planner:
    """Computes the effects of applying definitions and applications one after the other."""

    def __init__(
        self,
        client: Client,
        state: ApplicationsSnapshot,
        gate: GatePolicy,
        cluster: Object,
        discovery: Discovery,
    ) -> None:
        self._client = client
        self._cluster = cluster
        self._state = state
        self._checks = DefinitionChecks(ClientDefinitionLookup(client), gate=gate)
        self._live = {_name(each): each for each in state.applications}
        self._uses = [use for each in state.applications for use in uses_of(each)]
        self._revisions: dict[tuple[str, str], Any] = {}
        self._engines = engines()
        self._kinds = {(each.api_version, each.kind): each for each in discovery.kinds}
        self._preflight, self._failing = Preflight(), Preflight()
        self._plan = DefinitionsPlan()
        self.touched: set[str] = set()
        self._unallowed: set[str] = set()
        """Applications that move because of a definition without the annotation
        `polyver.dev/allow-deletion`.
        """

    def finished(self) -> DefinitionsPlan:
        """Write the reports about all applications to the plan, and return the plan."""
        self._plan.applications.sort(key=lambda each: each.name)
        self._plan.report = self._preflight.report()
        self._plan.failing = self._failing.report()
        return self._plan

    async def publish(self, written: Object) -> None:
        kind, metadata = written["kind"], written["metadata"]
        namespace, name = metadata["namespace"], metadata["name"]
        version = written["apiVersion"].rpartition("/")[2]
        resource = GroupVersionResource(GROUP, version, _PLURALS[kind])
        old = await find(self._client, resource, name, namespace)
        new = applied_to(old, written)
        note(new, old, version)
        decision = await self._checks.decided(new, old, version)
        refused = [*map(str, decision.refusals)] or await self._tried(resource, new, old)
        known = self._state.lineages.setdefault((kind, name), {})
        moves, losses = moved(kind, namespace, decision, self._uses, known)
        if not refused:
            known[namespace] = decision.after
            self._revisions |= new_revisions(read_definition(new)[0], decision)
            self.touched |= {each.application for each in moves}
            self.touched |= {each.application for each in losses}
            if (new["metadata"].get("annotations") or {}).get(ALLOW_DELETION) != "true":
                self._unallowed |= {each.application for each in moves}
        label = f"{kind} {namespace}/{name}"
        planned = PlannedDefinition(label, decision, tuple(refused), moves, losses)
        self._plan.definitions.append(planned)

    async def _tried(
        self, resource: GroupVersionResource, new: Object, old: Object | None
    ) -> list[str]:
        """Send the write of `new` as a dry run. Return the reasons for a refusal, if any."""
        try:
            if old is None:
                await self._client.create(resource, new, dry_run=True)
            else:
                await self._client.update(resource, new, dry_run=True)
        except ApiError as error:
            return [error.message]
        return []

    async def deploy_live(self, name: str) -> None:
        """Plan an application that is not in the files. Do nothing if it was deleted."""
        if name in self._live:
            await self.deploy(name, None)

    async def deploy(self, name: str, written: Object | None) -> None:
        live = self._live.get(name)
        wanted = applied_to(live, written) if written is not None else live
        assert wanted is not None
        refused = await self._tried(APPLICATIONS_ON, wanted, live) if written else []
        chosen, errors = choose_all(wanted, self._state.homes)
        if refused or errors:
            told = [*refused, *map(str, errors)]
            outcome = self._preflight.fail(name, told)
            made = PlannedApplication(
                name, written is not None, outcome, told, refused=bool(refused)
            )
        else:
            resolutions = [resolution_data(each, now="") for each in chosen]
            made = await self._compared(name, written is not None, live, wanted, resolutions)
        self._plan.applications.append(made)

    async def _compared(
        self,
        name: str,
        written: bool,
        live: Object | None,
        wanted: Object,
        after: list[Object],
    ) -> PlannedApplication:
        """Compare the objects that an application would have with its current objects."""
        said = (live or {}).get("status") or {}
        before = said.get("resolutions") or []
        was = _NOTHING
        if live is not None and before:
            latest = (said.get("latestRevision") or {}).get("name", "")
            was = await self._rendered(live, before, latest)
        will_be = await self._rendered(wanted, after, await self._revision(wanted, after))
        errors = [*map(str, will_be.errors or self._misplaced(wanted, will_be))]
        moves = _moves(name, before, after) if written else []
        if errors:
            fails_already = bool(was.errors) and said.get("status") == "failed" and not written
            outcome = self._failed(name, errors, fails_already=fails_already)
            return PlannedApplication(name, written, outcome, errors, moves)
        objects = [each.object for each in will_be.outputs]
        applied = said.get("appliedResources") or []
        known = _known(applied, objects) if was.errors else [each.object for each in was.outputs]
        sources = _sources(applied, (*was.outputs, *will_be.outputs))
        outcome = self._preflight.compare(name, known, objects, sources)
        return PlannedApplication(
            name,
            written,
            outcome,
            moves=moves,
            not_compared=[*map(str, was.errors)],
            may_lose=not written and name not in self._unallowed,
        )

    def _failed(self, name: str, errors: Sequence[str], *, fails_already: bool) -> Outcome:
        if not fails_already:
            return self._preflight.fail(name, errors)
        self._failing.fail(name, errors)
        return self._preflight.compare(name, (), ())

    def _misplaced(self, application: Object, rendered: Rendered) -> list[PolyverError]:
        """Return an error for each rendered object that cannot be applied, such as an invalid name.

        An object of an unknown kind is not an error if the application also renders a
        CustomResourceDefinition.
        """
        about = {**application, "metadata": {"uid": "", **application["metadata"]}}
        _, errors = place_all(about, rendered.outputs, lambda *named: self._kinds.get(named))
        if any(each.object["kind"] == "CustomResourceDefinition" for each in rendered.outputs):
            errors = [each for each in errors if not isinstance(each, UnknownKind)]
        return errors

    async def _revision(self, wanted: Object, after: Sequence[Object]) -> str:
        """Return the name of the ApplicationRevision that would record the versions in `after`."""
        metadata = wanted["metadata"]
        newest: Mapping[str, Any] | None = recorded_revision(wanted)
        if newest is None:
            history = await history_on(self._client, metadata["name"], metadata["namespace"])
            newest = newest_revision(history)
        revision, _ = revision_of(wanted, after, newest)
        return str(revision["metadata"]["name"])

    async def _rendered(
        self, application: Object, resolutions: Sequence[Object], revision: str
    ) -> Rendered:
        for namespace, name in sorted(revisions_of(resolutions)):
            if (namespace, name) not in self._revisions:
                found = await find(self._client, REVISIONS_ON, name, namespace)
                if found is not None:
                    self._revisions[namespace, name] = found
        return await asyncio.to_thread(
            render,
            application,
            resolutions,
            self._revisions,
            self._engines,
            app_revision=revision,
            context={"clusterVersion": self._cluster},
        )


def _moves(name: str, before: Sequence[Object], after: Sequence[Object]) -> list[PlannedMove]:
    was = {each["at"]: each for each in before}
    found = []
    for each in after:
        old = was.get(each["at"]) or {}
        if old.get("revision") != each["revision"] or old.get("digest") != each["digest"]:
            found.append(
                PlannedMove(
                    name,
                    each["at"],
                    each["definition"],
                    old.get("version", ""),
                    each["version"],
                    each["reason"],
                )
            )
    return found


def _known(applied: Iterable[Object], objects: Sequence[Object]) -> list[Object]:
    """Return the applied objects, for a comparison that shows only added and lost objects.

    The status of an application has only the names of applied objects, not their content. If
    `objects` has an object with the same name as an applied one, the result has the object of
    `objects`, so the comparison shows no change. Objects are matched without their namespaces,
    because rendered objects of cluster-scoped kinds still have a namespace.
    """
    there = {_identity(each): each for each in objects}
    return [there.get(_identity(each), each) for each in map(_bare, applied)]


def _bare(applied: Object) -> Object:
    return {"metadata": applied, **{name: applied[name] for name in ("apiVersion", "kind")}}


def _identity(obj: Object) -> tuple[str, str, str]:
    return obj["apiVersion"].rpartition("/")[0], obj["kind"], obj["metadata"]["name"]


def _sources(applied: Iterable[Object], outputs: Iterable[RenderedObject]) -> dict[Identity, str]:
    """Return the component that renders each object, by the identity of the object."""
    found = {identity_of(_bare(each)): each.get("component") or "" for each in applied}
    return found | {identity_of(each.object): each.component for each in outputs}
