"""A plan, made with what a cluster has now: nothing is written there."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from polyver.admission.definitions import DefinitionChecks, note
from polyver.capabilities.definitions.choosing import (
    choose_all,
    newest_revision,
    resolution_data,
    revision_of,
)
from polyver.capabilities.definitions.kinds import DEFINITIONS, GROUP
from polyver.capabilities.definitions.planning import (
    Changed,
    PlannedLoss,
    PlannedMove,
    changed,
    moved,
    new_revisions,
)
from polyver.capabilities.definitions.publishing import Decision, GatePolicy, read_definition
from polyver.capabilities.definitions.rendering import (
    Rendered,
    cluster_version,
    render,
    revisions_of,
)
from polyver.capabilities.definitions.uses import uses_of
from polyver.cli._resolving import APPLICATIONS_ON, REVISIONS_ON, State, history_on, state_on
from polyver.client import Client, Resource, find
from polyver.core import PolyverError
from polyver.engine.definitions import PublishedOn
from polyver.objects.status import ApiError
from polyver.rendering import engines

__all__ = ["Plan", "PlannedApplication", "PlannedDefinition", "plan_on"]

Object = dict[str, Any]
_PLURALS = {kind.kind: kind.names.plural for kind in DEFINITIONS}
_NOTHING = Rendered()


@dataclass(frozen=True, slots=True)
class PlannedDefinition:
    """What would become of a definition."""

    name: str
    decision: Decision
    refused: tuple[str, ...]
    moves: Sequence[PlannedMove]
    losses: Sequence[PlannedLoss]


@dataclass(frozen=True, slots=True)
class PlannedApplication:
    """What would become of an application: what it could not get, and what it would render to."""

    name: str
    written: bool
    """Whether it is in the files."""
    errors: Sequence[PolyverError]
    """Why it would get nothing."""
    moves: Sequence[PlannedMove] = ()
    """Of what is in the files."""
    changes: Sequence[Changed] = ()
    unrendered: Sequence[PolyverError] = ()
    """Why there is nothing to compare."""
    refused: str = ""
    """Why it would not be taken."""


@dataclass(slots=True)
class Plan:
    """What would happen."""

    definitions: list[PlannedDefinition] = field(default_factory=list)
    applications: list[PlannedApplication] = field(default_factory=list)


async def plan_on(
    client: Client, definitions: Iterable[Object], applications: Iterable[Object], gate: GatePolicy
) -> Plan:
    """What would become of a cluster if these were applied, in this order."""
    cluster = cluster_version(await client.release())
    planner = _Planner(client, await state_on(client), gate, cluster)
    for each in definitions:
        await planner.publish(each)
    wanted = {_name(each): each for each in applications}
    for name in sorted({*wanted, *planner.touched}):
        await planner.deploy(name, wanted.get(name))
    return planner.plan


def _name(obj: Object) -> str:
    return f"{obj['metadata']['namespace']}/{obj['metadata']['name']}"


class _Planner:
    """Goes through what is to be applied, and keeps what there would be then."""

    def __init__(self, client: Client, state: State, gate: GatePolicy, cluster: Object) -> None:
        self._client = client
        self._cluster = cluster
        self._state = state
        self._checks = DefinitionChecks(PublishedOn(client), gate=gate)
        self._live = {_name(each): each for each in state.applications}
        self._uses = [use for each in state.applications for use in uses_of(each)]
        self._revisions: dict[tuple[str, str], Any] = {}
        self._engines = engines()
        self.touched: set[str] = set()
        self.plan = Plan()

    async def publish(self, written: Object) -> None:
        kind, metadata = written["kind"], written["metadata"]
        namespace, name = metadata["namespace"], metadata["name"]
        version = written["apiVersion"].rpartition("/")[2]
        resource = Resource(GROUP, version, _PLURALS[kind])
        old = await find(self._client, resource, name, namespace)
        new = _over(written, old)
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
        label = f"{kind} {namespace}/{name}"
        planned = PlannedDefinition(label, decision, tuple(refused), moves, losses)
        self.plan.definitions.append(planned)

    async def _tried(self, resource: Resource, new: Object, old: Object | None) -> list[str]:
        """Why the server itself would refuse a write."""
        try:
            if old is None:
                await self._client.create(resource, new, dry_run=True)
            else:
                await self._client.update(resource, new, dry_run=True)
        except ApiError as error:
            return [error.message]
        return []

    async def deploy(self, name: str, written: Object | None) -> None:
        live = self._live.get(name)
        wanted = _over(written, live) if written is not None else live
        assert wanted is not None
        refused = await self._tried(APPLICATIONS_ON, wanted, live) if written else []
        chosen, errors = choose_all(wanted, self._state.homes)
        made = PlannedApplication(name, written is not None, errors, refused="; ".join(refused))
        if not errors and not refused:
            resolutions = [resolution_data(each, now="") for each in chosen]
            made = await self._compared(made, live, wanted, resolutions)
        self.plan.applications.append(made)

    async def _compared(
        self, made: PlannedApplication, live: Object | None, wanted: Object, after: list[Object]
    ) -> PlannedApplication:
        """What an application would render to, beside what it renders to now."""
        metadata, said = wanted["metadata"], (live or {}).get("status") or {}
        before = said.get("resolutions") or []
        history = await history_on(self._client, metadata["name"], metadata["namespace"])
        revision, _ = revision_of(wanted, after, newest_revision(history))
        was = _NOTHING
        if live is not None and before:
            latest = (said.get("latestRevision") or {}).get("name", "")
            was = await self._rendered(live, before, latest)
        will_be = await self._rendered(wanted, after, revision["metadata"]["name"])
        problems = [*dict.fromkeys((*was.errors, *will_be.errors))]
        changes = [] if problems else changed(was, will_be)
        moves = _moves(made.name, before, after) if made.written else []
        return replace(made, moves=moves, changes=changes, unrendered=problems)

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


def _over(written: Object, old: Object | None) -> Object:
    """What is written, over what is there, as an apply of all of it would leave it."""
    if old is None:
        return {**written, "metadata": {**written["metadata"]}}
    metadata = {**old["metadata"]}
    for part in ("labels", "annotations"):
        said = written["metadata"].get(part) or {}
        if said:
            metadata[part] = {**(metadata.get(part) or {}), **said}
    return {**old, "spec": written.get("spec") or {}, "metadata": metadata}


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
