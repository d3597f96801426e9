"""The contribution of Compositions and Functions to `polyver plan`.

The command composes live composite resources twice: with the revisions in use, and with the
revisions that they would use if the files were applied. It applies nothing. The decisions and the
pipelines are those of the controllers. The functions run on the machine of the command, because it
usually cannot reach the functions of a cluster.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

from polyver.capability.gates import LineageName
from polyver.capability.planning import (
    OUTCOME_KEYS,
    DependentNoun,
    PlannedChanges,
    PlannedRow,
    Planner,
    PlanQuestion,
    applied_to,
    may_not_write,
)
from polyver.capability.rollouts import holding_policy
from polyver.cli.files import data_folder
from polyver.client import GroupVersionResource, find
from polyver.compositions.commands.composites import composed_on, composites_on
from polyver.compositions.commands.planning.functions import (
    ADDRESS_HINT,
    read_addresses,
    records_references,
    serve_functions,
)
from polyver.compositions.commands.planning.input_files import KINDS, check_others, read_written
from polyver.compositions.commands.planning.live_objects import LiveObjects
from polyver.compositions.commands.rendering.function_calls import (
    FunctionNotServed,
    FunctionServer,
    functions,
)
from polyver.compositions.commands.rendering.input_files import (
    LocatedObject,
    read_credentials,
)
from polyver.compositions.controllers.composites import (
    Combined,
    ComparedComposites,
    Work,
    detached_preflight,
)
from polyver.compositions.controllers.compositions import COMPOSITIONS
from polyver.compositions.controllers.packages import FUNCTIONS
from polyver.compositions.decisions import composition_warnings
from polyver.compositions.lineages import content_digest
from polyver.compositions.options import CompositionPlanOptions
from polyver.compositions.packages import (
    ignored_fields,
    known_revision,
    read_function,
    recorded_digest,
)
from polyver.compositions.planning import (
    CompositionSnapshot,
    PlannedComposite,
    callable_functions,
    pinned_functions,
    planned_composite,
    sampled,
    selecting_fields,
    with_composition,
    with_function,
)
from polyver.core import PolyverError
from polyver.core.plain import Object
from polyver.kube.objects import type_of
from polyver.kube.objects.status import ApiError

if TYPE_CHECKING:
    from polyver.client import Client
    from polyver.client.cluster import ClusterAccess

__all__ = ["PLANNER"]

_COMPOSITES = DependentNoun("composite resource", "composite resources", "compositeResources")


@dataclass(slots=True)
class _Published:
    """The revision that a Composition or a Function in the files would publish."""

    obj: Object
    revision: str = ""
    """The name of the revision that the object would publish. Empty if there is none."""
    number: int = 0
    is_active: bool = True
    """False if composite resources cannot use the revision, because users activate revisions."""
    policy: str = ""
    """The RolloutPolicy that brings the revision to composite resources in steps."""
    refusals: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)

    @property
    def name(self) -> str:
        return f"{self.obj['kind']} {self.obj['metadata']['name']}"

    @property
    def lines(self) -> Iterator[str]:
        for refusal in self.refusals:
            yield f"{self.name} is refused: {refusal}"
        if self.refusals:
            return
        if not self.revision:
            yield f"{self.name} publishes nothing new"
            return
        line = f"{self.name} publishes {self.revision}, revision {self.number}"
        if not self.is_active:
            line += "; it is inactive until a user activates it"
        elif self.policy:
            line += f"; the RolloutPolicy {self.policy} brings it to composite resources in steps"
        yield line

    @property
    def data(self) -> dict[str, Any]:
        found: dict[str, Any] = {self.obj["kind"].lower(): self.obj["metadata"]["name"]}
        found["refusals"] = [*self.refusals]
        if self.revision:
            found |= {"publishes": self.revision, "revision": self.number}
        return found | ({"rolloutPolicy": self.policy} if self.policy else {})


async def _plan(
    client: Client, access: ClusterAccess, question: PlanQuestion
) -> PlannedChanges | None:
    del access
    documents, written = question.documents, read_written(question.documents)
    if not any(type_of(each) in KINDS for each in documents):
        return None
    options: CompositionPlanOptions = question.options
    addresses = read_addresses(options.function_address or ())
    given = options.function_credentials
    secrets = read_credentials(given) if given else {}
    now = await composed_on(client)
    composites = {(each.group, each.kind) for each in now.kinds}
    discovery = await client.discover()
    await check_others(client, documents, composites, discovery, question.namespace)
    live = [
        each
        for each in await composites_on(client, now, keep=selecting_fields)
        if "deletionTimestamp" not in each["metadata"]
    ]
    async with functions(options.data or data_folder(), options.settings()) as served:
        planner = _CompositionPlanner(client, served, addresses, now, live)
        for each in written:
            await planner.publish(each)
        moving = planner.moving()
        chosen = sampled(moving, question.sample)
        needed = planner.functions_of(chosen)
        places = {each.name: each.document.place("spec", "package") for each in written}
        await serve_functions(served, needed, addresses, places)
        compared = await planner.compare(chosen, LiveObjects(client, secrets))
    return _changes(planner.published, moving, chosen, compared, composites)


PLANNER = Planner(kinds=KINDS, plan=_plan)


class _CompositionPlanner:
    """Computes the effects of applying Compositions and Functions."""

    def __init__(
        self,
        client: Client,
        served: FunctionServer,
        addresses: Mapping[str, str],
        now: CompositionSnapshot,
        live: Sequence[Object],
    ) -> None:
        self._client = client
        self._served = served
        self._addresses = addresses
        self._now = self._after = now
        self._live = live
        self.published: list[_Published] = []

    async def publish(self, written: LocatedObject) -> None:
        """Add the revisions that a Composition or a Function would publish."""
        resource = COMPOSITIONS if written.kind == "Composition" else FUNCTIONS
        live = await find(self._client, resource, written.name)
        found = _Published(_with_uid(applied_to(live, written.obj)))
        self.published.append(found)
        await self._try(resource, found, live)
        if found.refusals:
            return
        if written.kind == "Composition":
            self._publish_composition(found)
        else:
            await self._publish_function(found, written)
        if found.revision:
            lineage = LineageName(resource.group, written.kind, "", written.name)
            labels = found.obj["metadata"].get("labels") or {}
            try:
                found.policy = await holding_policy(self._client, lineage, labels)
            except ApiError as error:
                if error.code != 403:
                    raise
                told = "you may not read RolloutPolicies: one may bring it to users in steps"
                found.warnings.append(f"{found.name}: {told}")

    async def _try(
        self, resource: GroupVersionResource, found: _Published, live: Object | None
    ) -> None:
        """Send a write as a dry run, and record the object as the API server would store it."""
        obj = found.obj
        typed = {name: obj[name] for name in ("apiVersion", "kind")}
        try:
            if live is None:
                made = await self._client.create(resource, obj, dry_run=True)
            else:
                made = await self._client.update(resource, obj, dry_run=True)
        except ApiError as error:
            if may_not_write(error):
                told = "you may not write it, so the API server has not checked it"
                found.warnings.append(f"{found.name}: {told}")
            else:
                found.refusals.append(error.message)
        else:
            found.obj = _with_uid({**made, **typed})

    def _publish_composition(self, found: _Published) -> None:
        found.warnings += composition_warnings(found.obj)
        before = {each["metadata"]["name"]: each for each in self._now.revisions}
        changes, self._after = with_composition(self._after, found.obj)
        found.refusals += map(str, changes.refusals)
        if not changes.refusals:
            _note(found, changes.current, before, self._after.revisions)

    async def _publish_function(self, found: _Published, written: LocatedObject) -> None:
        found.warnings += ignored_fields(found.obj)
        before = {each["metadata"]["name"]: each for each in self._now.function_revisions}
        digest = await self._digest(found.obj, written)
        plan, self._after = with_function(self._after, found.obj, digest, self._live)
        found.refusals += map(str, plan.refusals)
        if not plan.refusals:
            _note(found, plan.current, before, self._after.function_revisions)

    async def _digest(self, obj: Object, written: LocatedObject) -> str:
        """Return the digest by which the control plane would identify the package of a Function."""
        function, every = read_function(obj), self._now.function_revisions
        ours = [known_revision(each) for each in every]
        recorded = recorded_digest(function, obj, ours)
        if recorded is not None:
            return recorded
        if function.address or records_references(every):
            return content_digest(function.package)
        try:
            return await self._served.digest(function.package, "")
        except PolyverError as error:
            if written.name in self._addresses:
                return content_digest(function.package)
            place = written.document.place("spec", "package")
            hint = "; ".join(filter(None, (error.hint, ADDRESS_HINT)))
            raise FunctionNotServed(error.fact, at=place, hint=hint) from None

    # The composite resources that move.

    def moving(self) -> list[PlannedComposite]:
        written = [each.obj for each in self.published if not each.refusals]
        found = (planned_composite(each, self._now, self._after, written) for each in self._live)
        return [each for each in found if each is not None]

    def functions_of(self, chosen: Sequence[PlannedComposite]) -> list[Object]:
        """Return the function revisions with which composite resources have to be composed."""
        names = {name for each in chosen if not each.errors for name in each.functions}
        known = self._revisions()
        return [known[name] for name in sorted(names) if name in known]

    def _revisions(self) -> dict[str, Object]:
        """Return all function revisions by name: also those that would be deleted."""
        every = (*self._now.function_revisions, *self._after.function_revisions)
        return {each["metadata"]["name"]: each for each in every}

    async def compare(
        self, chosen: Sequence[PlannedComposite], live: LiveObjects
    ) -> ComparedComposites:
        """Compose composite resources with the revisions in use and with the new ones."""
        resolvable = {each.key: each for each in chosen if not each.errors}
        after = callable_functions(self._after.function_revisions)
        every = (*self._now.revisions, *self._after.revisions)
        known = self._revisions()

        def new(work: Work) -> Combined:
            return Combined(resolvable[work.key].revision, lambda: after)

        def used(work: Work) -> Combined:
            installed = partial(pinned_functions, known, work.found)
            return Combined(work.composite.revision, installed)

        async with detached_preflight(
            live,
            self._served,
            discovery=await self._client.discover(),
            kinds=self._now.definitions.values(),
            revisions={each["metadata"]["name"]: each for each in every}.values(),
        ) as preflight:
            found = await preflight.compare([*resolvable], used, new)
        for each in chosen:
            if each.errors:
                found.outcomes[each.key] = _unresolved(each, found)
        return found


def _with_uid(obj: Object) -> Object:
    """Return an object with a uid, which a new object does not have yet."""
    return {**obj, "metadata": {"uid": "", **obj["metadata"]}}


def _note(
    found: _Published, current: str, before: dict[str, Object], after: Sequence[Object]
) -> None:
    """Record the revision with the current content, if it is new or gets a new number."""
    [revision] = [each for each in after if each["metadata"]["name"] == current]
    number = revision["spec"]["revision"]
    if current not in before or before[current]["spec"]["revision"] != number:
        found.revision, found.number = current, number
        found.is_active = revision["spec"].get("desiredState") != "Inactive"


def _unresolved(each: PlannedComposite, found: ComparedComposites) -> Any:
    """Record a composite resource that could not choose its revisions."""
    if not each.fails_already:
        return found.report.fail(each.key.label, each.errors)
    found.failing.fail(each.key.label, each.errors)
    return found.report.compare(each.key.label, (), ())


# The result.


def _changes(
    published: Sequence[_Published],
    moving: Sequence[PlannedComposite],
    chosen: Sequence[PlannedComposite],
    compared: ComparedComposites,
    composites: Collection[tuple[str, str]],
) -> PlannedChanges:
    outcomes = compared.outcomes
    losing = [e for e in chosen if outcomes.get(e.key) == "loses" and not e.allows_deletion]
    rows: dict[PlannedRow, set[str]] = {}
    for each in moving:
        for row in each.rows:
            rows.setdefault(row, set()).add(each.key.label)
    notes = []
    if len(chosen) < len(moving):
        count = _COMPOSITES.count(len(moving))
        notes.append(f"composed {len(chosen)} of {count} that would move; see --sample")
    warned = [text for each in published for text in each.warnings]
    warned += [text for each in moving for text in each.after.warnings]
    return PlannedChanges(
        noun=_COMPOSITES,
        kinds=composites,
        report=compared.report.report(),
        failing=compared.failing.report(),
        notes=notes,
        published=[line for each in published for line in each.lines],
        warnings=[*dict.fromkeys(warned)],
        column="REFERENCE",
        moves=rows,
        refused=[each.name for each in published if each.refusals],
        losing=len(losing),
        data=_data(published, moving, chosen, compared),
    )


def _data(
    published: Sequence[_Published],
    moving: Sequence[PlannedComposite],
    chosen: Sequence[PlannedComposite],
    compared: ComparedComposites,
) -> dict[str, Any]:
    return {
        "compositions": [each.data for each in published if each.obj["kind"] == "Composition"],
        "functions": [each.data for each in published if each.obj["kind"] == "Function"],
        "compositeMoves": [
            {"compositeResource": each.key.label, "reference": name, "to": to, "reason": reason}
            | ({"from": was} if was else {})
            for each in moving
            for name, was, to, reason in each.rows
        ],
        "sample": {"moving": len(moving), "composed": len(compared.outcomes)},
        "compositeResources": [
            {
                "compositeResource": each.key.label,
                "outcome": OUTCOME_KEYS[compared.outcomes[each.key]],
                "errors": [*each.errors],
            }
            for each in chosen
            if each.key in compared.outcomes
        ],
    }
