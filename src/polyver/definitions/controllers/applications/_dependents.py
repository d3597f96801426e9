"""Index of the applications that use each definition. Watches keep the index up to date.

When a definition changes, the index finds the applications that the change moves to another
release. Only these applications are reconciled.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from polyver.client import Change, Key
from polyver.core import Index, Lineage, Loss, Move, Pin, PolyverError, Release, affected
from polyver.core.plain import Object
from polyver.definitions.resolution import Homes, lineage_in
from polyver.definitions.uses import DefinitionUse, home_of, question_of, settled
from polyver.definitions.versions import is_legacy
from polyver.kube.objects.kinds import ResourceKind

__all__ = ["ComparableLineage", "DefinitionUseIndex", "published_in"]

_Named = tuple[str, str]
"""Kind and name of a definition."""


@dataclass(slots=True)
class _Followed:
    """The definitions of one kind and name in all namespaces, and the references to them."""

    lineages: dict[str, Lineage] = field(default_factory=dict)
    """Lineages by the namespace of the definition."""
    uses: dict[Key, list[DefinitionUse]] = field(default_factory=dict)
    indexes: dict[str, Index] = field(default_factory=dict)
    failed: dict[Pin, set[Key]] = field(default_factory=dict)
    """Applications that failed to move to a release, by the pin of the release."""


class DefinitionUseIndex:
    """Finds the applications that use a definition."""

    def __init__(self) -> None:
        self._known: dict[_Named, _Followed] = {}

    def homes(self, kind: str, name: str) -> Homes:
        known = self._known.get((kind, name))
        return known.lineages if known is not None else {}

    def lineages(self, uses: Iterable[DefinitionUse]) -> list[Lineage]:
        """Return the lineages of all definitions that these references may mean.

        If a definition changes, the index has a new lineage object for it. So callers can compare
        two results to find out whether a definition has changed.
        """
        known = [self.homes(each.kind, each.definition) for each in uses]
        return [lineage for homes in known for _, lineage in sorted(homes.items())]

    def observe_definition(
        self, kind: ResourceKind, change: Change[ComparableLineage]
    ) -> Iterable[Key]:
        if change.before == change.after:
            return ()
        known = self._known.setdefault((kind.kind, change.key.name), _Followed())
        namespace = change.key.namespace
        before = known.lineages.pop(namespace, None)
        after = change.after.lineage if change.after is not None else None
        if after is not None:
            known.lineages[namespace] = after
        if before is None or after is None or is_legacy(before) is not is_legacy(after):
            # A reference may now refer to a definition in another namespace. Its requested version
            # may also be parsed in another way.
            known.indexes = {each: Index() for each in known.lineages}
            for uses in known.uses.values():
                for use in uses:
                    _put(known, use)
            return [*known.uses]
        moves = affected(known.indexes[namespace], before, after)
        changed: list[Move | Loss] = [*moves.moves, *moves.losses]
        names = [each.dependent.name.removeprefix("Application ") for each in changed]
        keys = {Key(*name.split("/")) for name in names}
        # If a release has changed, applications that failed to move to it try again. If the move is
        # no longer needed, the failure is removed from their status.
        for release in before:
            if after.get(release.name) != release:
                keys |= known.failed.get(release.pin, set())
        return keys

    def use(
        self, key: Key, before: Iterable[DefinitionUse], after: Iterable[DefinitionUse]
    ) -> None:
        """Update the references of an application from `before` to `after`."""
        for use in before:
            known = self._known.setdefault((use.kind, use.definition), _Followed())
            known.uses.pop(key, None)
            failed = use.dependent.failed_move
            if failed is not None and failed.to in known.failed:
                known.failed[failed.to].discard(key)
                if not known.failed[failed.to]:
                    del known.failed[failed.to]
            for index in known.indexes.values():
                index.remove(use.dependent)
        for use in after:
            known = self._known.setdefault((use.kind, use.definition), _Followed())
            known.uses.setdefault(key, []).append(use)
            if use.dependent.failed_move is not None:
                known.failed.setdefault(use.dependent.failed_move.to, set()).add(key)
            _put(known, use)


def _put(known: _Followed, use: DefinitionUse) -> None:
    home = home_of(use, known.lineages)
    if home is None:
        return
    lineage, mine = known.lineages[home], settled(use, home)
    try:
        asked, policy = question_of(mine, lineage)
    except PolyverError:
        return  # no new version resolves an invalid reference
    known.indexes[home].put(mine.dependent, lineage.name, asked, policy)


def published_in(kind: ResourceKind, obj: Object) -> ComparableLineage:
    del kind
    return ComparableLineage(lineage_in(obj))


class ComparableLineage:
    """Wraps a lineage or None. Two of these objects are equal if they have the same releases."""

    __slots__ = ("lineage",)

    def __init__(self, lineage: Lineage | None) -> None:
        self.lineage = lineage

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ComparableLineage) and self._releases == other._releases

    def __hash__(self) -> int:
        return hash(self._releases)

    @property
    def _releases(self) -> tuple[Release, ...]:
        return self.lineage.releases if self.lineage is not None else ()
