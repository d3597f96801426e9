"""Page source of functions and compositions: the lineages of their revisions, and the users.

The users of functions are steps of CompositionRevisions. The page shows the steps of the revisions
in use, and the steps of the newest revision of each Composition, because a new composite resource
would use that revision.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from polyver.client import CRDS, Change, GroupVersionResource, Key
from polyver.compositions._revision_rules import REVISIONS
from polyver.compositions.decisions import Composite
from polyver.compositions.kinds import (
    COMPOSITION_GROUP,
    COMPOSITION_REVISIONS,
    COMPOSITION_STORED,
    DEFINITIONS,
    FUNCTION_REVISIONS,
    FUNCTIONS,
    GROUP,
    STORED,
)
from polyver.compositions.packages import function_of, known_revision, uses_in
from polyver.compositions.page._composites import (
    CompositeKindView,
    CompositionRevisionView,
    composite_of,
    composition_of,
    composition_shown,
    kind_of,
    places_of,
    where_composition,
)
from polyver.core import Dependent, Lineage, PolyverError, Release
from polyver.core.plain import Object
from polyver.web.sources import (
    LineageKey,
    LineageRequest,
    PageInformers,
    PageLineage,
    PageModel,
    PageSource,
    PublisherKey,
    ReleaseDetails,
    UnresolvedRequest,
    WatchedCollection,
)

__all__ = ["RevisionsSource"]

_CAPABILITY = "compositions"
_COMPOSITE = "composite"
_FUNCTIONS = GroupVersionResource(GROUP, STORED, FUNCTIONS.names.plural, namespaced=False)
_REVISIONS = GroupVersionResource(GROUP, STORED, FUNCTION_REVISIONS.names.plural, namespaced=False)
_DEFINITIONS, _COMPOSITIONS = (
    GroupVersionResource(COMPOSITION_GROUP, COMPOSITION_STORED, kind.names.plural, namespaced=False)
    for kind in (DEFINITIONS, COMPOSITION_REVISIONS)
)


@dataclass(frozen=True, slots=True)
class _Function:
    package: str
    problem: str


@dataclass(frozen=True, slots=True)
class _Revision:
    function: str
    release: Release
    endpoint: str
    problem: str


class RevisionsSource(PageSource):
    """Watches functions, compositions and composite resources, and updates the page."""

    capability = _CAPABILITY
    description = "function packages and compositions"

    def __init__(self) -> None:
        self._functions: dict[str, _Function] = {}
        self._revisions: dict[str, dict[str, _Revision]] = {}
        """Function revisions, by the name of the function and the name of the revision."""
        self._compositions: dict[str, dict[str, CompositionRevisionView]] = {}
        """CompositionRevisions, by the name of the Composition and the name of the revision."""
        self._asking: dict[str, set[str]] = {}
        """For each Composition, the names of the revisions whose steps the page shows."""
        self._crds: set[str] = set()
        """Names of the CRDs of composite resources."""
        self._kinds: dict[str, CompositeKindView] = {}
        """Kinds of composite resources, by the name of their CompositeResourceDefinition."""
        self._composites: dict[tuple[GroupVersionResource, Key], Composite] = {}
        self._users: dict[str, set[tuple[GroupVersionResource, Key]]] = {}
        """Composite resources that use a Composition, by the name of the Composition."""
        self._used: dict[str, Counter[str]] = {}
        """Number of composite resources that use each revision, by the name of the Composition."""

    def open(self, book: PageModel, following: PageInformers) -> None:
        self._book = book
        self._following = following
        following.follow(self, WatchedCollection(_FUNCTIONS, _function, self._observe_function))
        following.follow(self, WatchedCollection(_REVISIONS, _revision, self._observe_revision))
        # Watch compositions only if their CRDs exist. An informer of a resource that is not served
        # would never sync.
        following.follow(self, WatchedCollection(CRDS, _role, self._observe_kind, metadata=True))

    async def _observe_kind(self, change: Change[str]) -> None:
        role, is_there = change.after or change.before or "", bool(change.after)
        if role == _COMPOSITE:
            (self._crds.add if is_there else self._crds.discard)(change.key.name)
            await self._follow_composites(change.key.name)
        elif role == _COMPOSITIONS.plural:
            watched = WatchedCollection(_COMPOSITIONS, composition_of, self._observe_composition)
            await self._follow(watched, is_there=is_there)
        elif role == _DEFINITIONS.plural:
            watched_kinds = WatchedCollection(_DEFINITIONS, kind_of, self._observe_definition)
            await self._follow(watched_kinds, is_there=is_there)

    async def _follow(self, watched: WatchedCollection[Any], *, is_there: bool) -> None:
        if is_there:
            self._following.follow(self, watched)
            return
        for key, known in (await self._following.unfollow(self, watched.resource)).items():
            await watched.observe(Change(key, known, None))

    async def _observe_definition(self, change: Change[CompositeKindView | None]) -> None:
        before = self._kinds.pop(change.key.name, None)
        if before is not None and before != change.after:
            await self._follow(self._watched(before), is_there=False)
        if change.after is not None:
            self._kinds[change.key.name] = change.after
        await self._follow_composites(change.key.name)

    async def _follow_composites(self, definition: str) -> None:
        kind = self._kinds.get(definition)
        if kind is not None:
            await self._follow(self._watched(kind), is_there=definition in self._crds)

    def _watched(self, kind: CompositeKindView) -> WatchedCollection[Composite]:
        return WatchedCollection(
            kind.resource,
            lambda obj: composite_of(obj, kind),
            lambda change: self._observe_composite(kind.resource, change),
        )

    async def _observe_composite(
        self, place: GroupVersionResource, change: Change[Composite]
    ) -> None:
        key = place, change.key
        for known in filter(None, (change.before, change.after)):
            self._users.setdefault(known.composition, set()).discard(key)
        if change.after is None:
            if key in self._composites:
                self._book.ask(_CAPABILITY, self._composites.pop(key).shown)
        else:
            self._composites[key] = change.after
            self._users[change.after.composition].add(key)
            self._ask_composite(change.after)
        self._count(change)

    def _count(self, change: Change[Composite]) -> None:
        """Count the composite resources that use each revision of a Composition.

        If a revision gets its first user or loses its last user, update the page.
        """
        for known, number in ((change.before, -1), (change.after, 1)):
            if known is not None:
                used = self._used.setdefault(known.composition, Counter())
                before = used[known.revision]
                used[known.revision] += number
                if not before or not used[known.revision]:
                    self._ask(known.composition)

    def _ask_composite(self, composite: Composite) -> None:
        revisions = self._compositions.get(composite.composition) or {}
        shown = self._book.get(where_composition(composite.composition))
        lineage = shown.shown.lineage if shown is not None and shown.shown is not None else None
        used = revisions.get(composite.revision)
        places = places_of(composite, lineage, used, self._is_shown)
        self._book.ask(_CAPABILITY, composite.shown, places)

    def _is_shown(self, function: str) -> bool:
        return self._book.get(LineageKey(_CAPABILITY, function)) is not None

    async def _observe_function(self, change: Change[_Function]) -> None:
        name = change.key.name
        if change.after is None:
            self._functions.pop(name, None)
        else:
            self._functions[name] = change.after
        self._show(name)

    async def _observe_revision(self, change: Change[_Revision]) -> None:
        for known in filter(None, (change.before, change.after)):
            self._revisions.setdefault(known.function, {}).pop(change.key.name, None)
        if change.after is not None:
            self._revisions[change.after.function][change.key.name] = change.after
        for function in {known.function for known in (change.before, change.after) if known}:
            self._show(function)

    def _show(self, name: str) -> None:
        where, function = LineageKey(_CAPABILITY, name), self._functions.get(name)
        revisions = self._revisions.get(name) or {}
        was_there = self._book.get(where) is not None
        if function is None and not revisions:
            self._book.hide(where)
        else:
            self._book.show(_shown(where, function, revisions))
        if was_there is (self._book.get(where) is None):
            # The function was created or deleted, so requests for it may resolve in another way.
            for composition in self._compositions:
                self._ask(composition)
            for composite in self._composites.values():
                self._ask_composite(composite)

    async def _observe_composition(self, change: Change[CompositionRevisionView]) -> None:
        name = change.key.name
        for known in filter(None, (change.before, change.after)):
            self._compositions.setdefault(known.pipeline.composition, {}).pop(name, None)
        if change.after is not None:
            self._compositions[change.after.pipeline.composition][name] = change.after
        for known in filter(None, (change.before, change.after)):
            self._show_composition(known.pipeline.composition, name)

    def _show_composition(self, composition: str, revision: str) -> None:
        """Update the view of a Composition after a change of its revision `revision`.

        Also update the requests that this change affects.
        """
        where, revisions = where_composition(composition), self._compositions.get(composition)
        was_there = self._book.get(where) is not None
        if revisions:
            self._book.show(composition_shown(composition, revisions))
        else:
            self._compositions.pop(composition, None)
            self._book.hide(where)
        self._ask(composition)
        everyone = was_there is (self._book.get(where) is None)
        for key in self._users.get(composition, ()):
            composite = self._composites[key]
            if everyone or composite.revision == revision:
                self._ask_composite(composite)

    def _ask(self, composition: str) -> None:
        mine = [each.pipeline for each in self._compositions.get(composition, {}).values()]
        used = {name for name, number in self._used.get(composition, Counter()).items() if number}
        places: dict[str, list[LineageRequest | UnresolvedRequest]] = {}
        for use in uses_in(mine, used):
            where = LineageKey(_CAPABILITY, use.function)
            dependent: Dependent = use.dependent
            asked: LineageRequest | UnresolvedRequest = LineageRequest(
                dependent, where, str(use.selector), use.selector, REVISIONS
            )
            if self._book.get(where) is None:
                fact = f"there is no function {use.function}"
                asked = UnresolvedRequest(dependent, use.function, fact)
            places.setdefault(dependent.name, []).append(asked)
        for gone in self._asking.get(composition, set()) - places.keys():
            self._book.ask(_CAPABILITY, gone)
        for name, asked_there in places.items():
            self._book.ask(_CAPABILITY, name, asked_there)
        self._asking[composition] = set(places)


def _role(obj: Object) -> str:
    """Return why the page needs a CRD; "" if it does not need the CRD."""
    metadata = obj["metadata"]
    for each in (_COMPOSITIONS, _DEFINITIONS):
        if metadata["name"] == f"{each.plural}.{each.group}":
            return each.plural
    owners = metadata.get("ownerReferences") or ()
    return _COMPOSITE if any(each.get("kind") == DEFINITIONS.kind for each in owners) else ""


def _function(obj: Object) -> _Function:
    return _Function(obj["spec"].get("package", ""), _problem(obj, "Installed", "Healthy"))


def _revision(obj: Object) -> _Revision:
    endpoint = (obj.get("status") or {}).get("endpoint") or ""
    return _Revision(
        function_of(obj), known_revision(obj).release, endpoint, _problem(obj, "RuntimeHealthy")
    )


def _problem(obj: Object, *types: str) -> str:
    """Return the message of the first condition among `types` that is False.

    Return "" if none of them is False.
    """
    conditions: Iterable[dict[str, Any]] = (obj.get("status") or {}).get("conditions") or ()
    wrong = [
        each for each in conditions if each.get("type") in types and each.get("status") == "False"
    ]
    return str(wrong[0].get("message") or wrong[0].get("reason") or "") if wrong else ""


def _shown(
    where: LineageKey, function: _Function | None, revisions: dict[str, _Revision]
) -> PageLineage:
    problem = function.problem if function else "the function was deleted, but revisions exist"
    try:
        lineage = Lineage(where.path, [each.release for each in revisions.values()])
    except PolyverError as error:
        lineage, problem = Lineage(where.path), str(error)
    return PageLineage(
        where,
        lineage,
        REVISIONS,
        "function package",
        problem=problem,
        facts={"package": function.package} if function else {},
        details={name: _details(each) for name, each in revisions.items()},
        publisher=PublisherKey(GROUP, "Function", "", where.path),
    )


def _details(revision: _Revision) -> ReleaseDetails:
    text = f"served at {revision.endpoint}" if revision.endpoint else ""
    return ReleaseDetails(revision.problem or text, ("not healthy",) if revision.problem else ())
