"""Reads which revisions composite resources on a cluster use, and which they would use now."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from polyver.cli.cluster import list_all, on_cluster
from polyver.cli.exit_codes import Misused, ProblemsFound, UnknownName
from polyver.cli.output import OutputFormat, emit, print_lines, print_table, warn
from polyver.client import GroupVersionResource, find
from polyver.compositions.controllers.compositions import (
    COMPOSITION_REVISIONS,
    COMPOSITIONS,
    DEFINITIONS,
)
from polyver.compositions.controllers.packages import FUNCTION_REVISIONS, composites
from polyver.compositions.decisions import (
    ChosenComposition,
    CompositeExplanation,
    FunctionLineages,
    StepResolution,
    candidate_of,
    check_definition,
    read_definition,
)
from polyver.compositions.planning import CompositionSnapshot
from polyver.core import Resolution, listed
from polyver.core.plain import Object
from polyver.kube.objects.conditions import find_condition
from polyver.kube.objects.status import ApiError

if TYPE_CHECKING:
    from polyver.capability import Refusal
    from polyver.client import Client
    from polyver.client.cluster import ClusterAccess
    from polyver.kube.objects.kinds import ResourceKind

__all__ = [
    "ANY",
    "composed_on",
    "explained_on",
    "impact_of_composition",
    "impact_rows",
    "print_composites",
    "why_composite",
]

ANY = ("xr", "xrs", "composite", "composites")
"""The names that mean any kind of composite resource, as in `polyver why xr/NAME`."""


def _whole(obj: Object) -> Object:
    return obj


async def composed_on(client: Client) -> CompositionSnapshot:
    """Read the objects of a cluster that decide which revisions composite resources use."""
    definitions = {}
    for each in await _all(client, DEFINITIONS):
        if not check_definition(each):
            defined = read_definition(each)
            definitions[defined.group, defined.kind] = defined
    discovery = await client.discover()
    kinds = []
    for kind in composites(discovery):
        known = definitions.get((kind.group, kind.kind))
        kinds.append((discovery.find(known.api_version, kind.kind) if known else None) or kind)
    functions = tuple(await _all(client, FUNCTION_REVISIONS))
    return CompositionSnapshot(
        tuple(kinds),
        definitions,
        tuple(candidate_of(each) for each in await _all(client, COMPOSITIONS)),
        tuple(await _all(client, COMPOSITION_REVISIONS)),
        functions,
        FunctionLineages(functions),
    )


async def _all(
    client: Client, resource: GroupVersionResource, keep: Callable[[Object], Object] = _whole
) -> list[Object]:
    try:
        return await list_all(client, resource, keep=keep)
    except ApiError as error:
        if error.code == 404:
            return []  # the kind is not served
        raise


async def composites_on(
    client: Client, composed: CompositionSnapshot, *, keep: Callable[[Object], Object] = _whole
) -> list[Object]:
    """Read all composite resources, and set the apiVersion and kind of each.

    API servers leave these fields out in lists. `keep` returns the fields to keep of an object.
    """
    found = []
    for kind in composed.kinds:
        resource = GroupVersionResource.of(kind)
        found += await _all(client, resource, partial(_kept, kind, keep))
    return found


def _kept(kind: ResourceKind, keep: Callable[[Object], Object], obj: Object) -> Object:
    return keep({"apiVersion": kind.api_version, "kind": kind.kind, **obj})


# `polyver why`.


def why_composite(
    kind: str, name: str, namespace: str, context: str, output: OutputFormat, *, explain: bool
) -> None:
    """Print which revisions a composite resource uses, which it would use now, and why."""

    async def read(client: Client, access: ClusterAccess) -> CompositeExplanation:
        composed = await composed_on(client)
        inside = namespace or access.namespace
        return composed.explain(await _named(client, composed, kind, name, inside))

    found = on_cluster(context, read)
    if output is OutputFormat.TABLE:
        _print(found, explain=explain)
    else:
        emit(_data(found, explain=explain), output)
    if found.refusals:
        raise ProblemsFound("; ".join(map(str, found.refusals)))


async def _named(
    client: Client, composed: CompositionSnapshot, kind: str, name: str, namespace: str
) -> Object:
    wanted = [each for each in composed.kinds if kind.lower() in (*ANY, *_names(each))]
    if not wanted:
        known = listed(sorted(each.singular for each in composed.kinds))
        told = (
            f"xr/NAME, or KIND/NAME with {known}" if known else "no composite resource is defined"
        )
        hint = f"write actionset/NAME, app/NAME, package/NAME, {told}"
        raise Misused(f"{kind}/{name} is not an object that this command explains", hint=hint)
    found = []
    for each in wanted:
        obj = await find(
            client, GroupVersionResource.of(each), name, namespace if each.namespaced else ""
        )
        if obj is not None:
            found.append((each, obj))
    if not found:
        place = f" in the namespace {namespace}" if any(each.namespaced for each in wanted) else ""
        kinds = listed([each.kind for each in wanted])
        raise UnknownName(
            f"there is no composite resource {name}{place}", hint=f"searched kinds: {kinds}"
        )
    if len(found) > 1:
        names = listed([f"{each.plural}.{each.group}/{name}" for each, _ in found])
        raise Misused(f"{name} is the name of {len(found)} composite resources", hint=names)
    [(_, obj)] = found
    return obj


def _names(kind: ResourceKind) -> Iterator[str]:
    for each in (kind.kind.lower(), kind.singular, kind.plural, *kind.short_names):
        yield each
        yield f"{each}.{kind.group}"


def _print(found: CompositeExplanation, *, explain: bool) -> None:
    print_lines(found.composite.shown)
    for kind in ("Synced", "Ready"):
        each = find_condition(found.composite.obj, kind)
        if each is not None:
            told = f"{kind}={each['status']} ({each['reason']})"
            print_lines(f"{told}: {each['message']}" if each.get("message") else told)
    print_lines("")
    rows = [
        (each.part, each.asks or "default", each.has or "none", each.gets or "unresolved", each.why)
        for each in _rows(found)
    ]
    print_table(("PART", "REQUESTS", "USES", "WOULD USE NOW", "WHY"), rows)
    for warning in found.warnings:
        warn(warning)
    for row in _rows(found) if explain else ():
        if row.rejected:
            print_lines("", row.part)
            print_table(("NOT CHOSEN", "WHY"), row.rejected)


@dataclass(frozen=True, slots=True)
class _Row:
    """A table row: the composition, its revision, or the function revision of a step."""

    part: str
    asks: str
    has: str
    answer: ChosenComposition | Resolution | Refusal
    function: str = ""

    @property
    def gets(self) -> str:
        match self.answer:
            case ChosenComposition(composition=name):
                return name
            case Resolution(release=release):
                return release.name
        return ""

    @property
    def why(self) -> str:
        answer = self.answer
        return answer.reason if isinstance(answer, ChosenComposition | Resolution) else answer.fact

    @property
    def rejected(self) -> list[tuple[str, str]]:
        if not isinstance(self.answer, Resolution):
            return []
        return [(each.release.name, each.why) for each in self.answer.rejected]

    def data(self, *, explain: bool) -> Object:
        found: Object = {"asksFor": self.asks, "has": self.has, "gets": self.gets, "why": self.why}
        found = {name: value for name, value in found.items() if value}
        found["moves"] = bool(self.gets) and self.has != self.gets
        rejected = [{"name": name, "why": why} for name, why in self.rejected]
        return found | ({"rejected": rejected} if explain else {})


def _rows(found: CompositeExplanation) -> Iterator[_Row]:
    composite = found.composite
    has = composite.composition
    yield _Row("composition", found.asks_composition, has, found.composition)
    if found.revision is not None:
        yield _Row("revision", found.asks_revision, composite.revision, found.revision)
    for step in found.steps:
        yield _step_row(step)


def _step_row(step: StepResolution) -> _Row:
    part, has = f"step {step.name}: {step.function}", step.used.release if step.used else ""
    return _Row(part, str(step.selector), has, step.answer, step.function)


def _data(found: CompositeExplanation, *, explain: bool) -> Object:
    obj, metadata = found.composite.obj, found.composite.obj["metadata"]
    composition, *rest = _rows(found)
    told: Object = {"apiVersion": obj["apiVersion"], "kind": obj["kind"], "name": metadata["name"]}
    told |= {"namespace": metadata["namespace"]} if metadata.get("namespace") else {}
    told["conditions"] = (obj.get("status") or {}).get("conditions") or []
    told["composition"] = composition.data(explain=explain)
    if found.revision is not None:
        told["revision"] = rest.pop(0).data(explain=explain)
    told["steps"] = [
        {"step": step.name, "function": step.function, **row.data(explain=explain)}
        for step, row in zip(found.steps, rest, strict=True)
    ]
    return told | {"warnings": [*found.warnings], "errors": [*map(str, found.refusals)]}


# `polyver impact`.


@dataclass(frozen=True, slots=True)
class ImpactRow:
    """A table row: a composite resource, and a revision that it uses or would use now."""

    who: str
    place: str
    has: str
    gets: str
    why: str

    def concerns(self, release: str) -> bool:
        return release in (self.has, self.gets)

    @property
    def data(self) -> Object:
        found = {"who": self.who, "place": self.place, "has": self.has, "gets": self.gets}
        return {k: v for k, v in found.items() if v} | {"why": self.why}


def impact_rows(explained: Iterable[CompositeExplanation], function: str) -> list[ImpactRow]:
    """Return one row for each step that calls this function, in each composite resource."""
    return [
        ImpactRow(each.composite.shown, f"step {step.name}", row.has, row.gets, row.why)
        for each in explained
        for step in each.steps
        if step.function == function
        for row in (_step_row(step),)
    ]


def print_composites(rows: Sequence[ImpactRow]) -> None:
    """Print a table of composite resources, with the revisions that they use."""
    columns = ("USED BY", "REFERENCE", "USES", "WOULD USE NOW", "WHY")
    print_table(columns, [(each.who, each.place, each.has, each.gets, each.why) for each in rows])


async def explained_on(client: Client) -> list[CompositeExplanation]:
    """Return, for all composite resources, the revisions that they use and would use now."""
    composed = await composed_on(client)
    return [composed.explain(each) for each in await composites_on(client, composed)]


def impact_of_composition(text: str, context: str, output: OutputFormat) -> None:
    """Print the composite resources that use a Composition, or would use it now.

    If `text` names a revision, print only the composite resources that use it, or would use it now.
    """
    name, _, revision = text.partition("/")[2].partition("@")

    async def read(
        client: Client, access: ClusterAccess
    ) -> tuple[CompositionSnapshot, list[CompositeExplanation]]:
        del access
        composed = await composed_on(client)
        found = [composed.explain(each) for each in await composites_on(client, composed)]
        return composed, found

    composed, found = on_cluster(context, read)
    rows = [_composition_row(each) for each in found if _has(each, name)]
    if revision:
        wanted = _revision(composed, name, revision)
        rows = [each for each in rows if each.concerns(wanted)]
    elif name not in {each.name for each in composed.candidates}:
        known = listed(sorted(each.name for each in composed.candidates)) or "none"
        raise UnknownName(f"there is no composition {name}", hint=f"known: {known}")
    if output is not OutputFormat.TABLE:
        emit({"composites": [each.data for each in rows]}, output)
    elif rows:
        print_composites(rows)
    else:
        print_lines("not used")


def _has(explained: CompositeExplanation, composition: str) -> bool:
    chosen = explained.composition
    gets = chosen.composition if isinstance(chosen, ChosenComposition) else ""
    return composition in (explained.composite.composition, gets)


def _composition_row(explained: CompositeExplanation) -> ImpactRow:
    rows = [*_rows(explained)][:2]
    last = rows[-1]
    gets, why = (last.gets, last.why) if len(rows) > 1 else ("", last.why)
    composite = explained.composite
    return ImpactRow(composite.shown, composite.at, composite.revision, gets, why)


def _revision(composed: CompositionSnapshot, composition: str, text: str) -> str:
    from polyver.compositions.commands.functions_on_cluster import revision_called
    from polyver.compositions.decisions import (
        composition_lineage,
        composition_of,
        known_composition_revision,
    )

    ours = [each for each in composed.revisions if composition_of(each) == composition]
    lineage = composition_lineage(composition, map(known_composition_revision, ours))
    return revision_called(composition, lineage, text).name
