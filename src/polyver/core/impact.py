"""Find the dependents that a change of a lineage affects.

The index of dependents makes this fast. Dependents with the same selector, policy, pin, lock and
failed move get the same release. Such dependents form a bucket, and the release is resolved once
for each bucket. So the cost grows with the number of buckets and with the number of dependents that
move, not with the number of all dependents.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from operator import itemgetter

from polyver.core.lineage import Dependent, FailedMove, Gate, Lineage, Pin, Release
from polyver.core.resolve import NoMatch, Policy, Resolution, resolve
from polyver.core.selectors import Selector

__all__ = ["Answer", "Index", "Loss", "Move", "Moves", "affected", "answers"]

# The pin, the lock, the failed move and the previous pin of a dependent.
_Pins = tuple[Pin | None, Pin | None, FailedMove | None, Pin | None]
# The last item of a key has a flag for each gate with labels: True if the dependent has these
# labels.
_Key = tuple[Selector, Policy, _Pins, tuple[bool, ...]]
_Place = tuple[str, str]  # a dependent's name and the field in it
_Member = tuple[float, _Place, Dependent, Selector]
_ORDER = itemgetter(0, 1)  # of members: by position, then by place


@dataclass(frozen=True, slots=True)
class Move:
    """A dependent that moves, and the release to which it moves."""

    dependent: Dependent
    to: Release
    reason: str


@dataclass(frozen=True, slots=True)
class Loss:
    """A dependent that has a release now and would have none after the change.

    `error` states why.
    """

    dependent: Dependent
    error: NoMatch


@dataclass(frozen=True, slots=True)
class Moves:
    """The effects of a change of a lineage: which dependents move, and which lose their release."""

    lineage: str
    moves: tuple[Move, ...]
    losses: tuple[Loss, ...]
    buckets: int
    """The number of groups of dependents that were resolved together."""

    def __bool__(self) -> bool:
        return bool(self.moves or self.losses)


@dataclass(frozen=True, slots=True)
class Answer:
    """A group of dependents that get the same release, and the result of resolving them."""

    found: Resolution | NoMatch
    """The result for the first dependent of the group; a `NoMatch` names only this dependent."""
    dependents: tuple[Dependent, ...]


@dataclass(slots=True)
class _Bucket:
    """Dependents that get the same result, unless the share of a gate admits only some of them."""

    # Sorted by position, so that a gate's share is a slice.
    members: list[_Member] = field(default_factory=list)

    def add(self, member: _Member) -> None:
        insort(self.members, member, key=_ORDER)

    def remove(self, dependent: Dependent) -> None:
        order = (dependent.position, _place(dependent))
        del self.members[bisect_left(self.members, order, key=_ORDER)]

    def cohorts(self, shares: Sequence[float]) -> Iterator[tuple[int, int]]:
        """Split the members into ranges, such that each share admits a whole range or none of it.

        `shares` has the shares of all gates, in ascending order. A range is a pair: the index of
        its first member, and the index after its last member.
        """
        edges = [bisect_left(self.members, share, key=itemgetter(0)) for share in shares]
        for start, end in zip([0, *edges], [*edges, len(self.members)], strict=True):
            if start < end:
                yield start, end


def _member(dependent: Dependent, selector: Selector) -> _Member:
    return dependent.position, _place(dependent), dependent, selector


def _place(dependent: Dependent) -> _Place:
    return dependent.name, dependent.at


class Index:
    """All known dependents, grouped by lineage, selector, policy, pin, lock and failed move."""

    def __init__(self) -> None:
        self._lineages: dict[str, dict[_Key, _Bucket]] = {}
        self._places: dict[_Place, tuple[Dependent, str, _Key]] = {}
        self._gate_labels: dict[str, tuple[Mapping[str, str], ...]] = {}

    @classmethod
    def of(cls, entries: Iterable[tuple[Dependent, str, Selector, Policy]]) -> Index:
        """Build an index of many dependents; each entry has the arguments of `put`."""
        index = cls()
        last = {_place(entry[0]): entry for entry in entries}  # as in `put`, the last entry counts
        for dependent, lineage, selector, policy in last.values():
            index._note(dependent, lineage, selector, policy).members.append(
                _member(dependent, selector)
            )
        for buckets in index._lineages.values():
            for bucket in buckets.values():
                bucket.members.sort(key=_ORDER)
        return index

    def __len__(self) -> int:
        return len(self._places)

    def put(self, dependent: Dependent, lineage: str, selector: Selector, policy: Policy) -> None:
        """Add a dependent, or replace the known dependent with the same object and field."""
        self.remove(dependent)
        self._note(dependent, lineage, selector, policy).add(_member(dependent, selector))

    def remove(self, dependent: Dependent) -> None:
        """Remove the dependent with the same object and field, if the index has one."""
        known = self._places.pop(_place(dependent), None)
        if known is None:
            return
        was, lineage, key = known
        buckets = self._lineages[lineage]
        buckets[key].remove(was)
        if not buckets[key].members:
            del buckets[key]

    def _note(
        self, dependent: Dependent, lineage: str, selector: Selector, policy: Policy
    ) -> _Bucket:
        pins = dependent.pin, dependent.lock, dependent.failed_move, dependent.previous
        key = (selector, policy, pins, self._sides(lineage, dependent))
        self._places[_place(dependent)] = (dependent, lineage, key)
        return self._lineages.setdefault(lineage, {}).setdefault(key, _Bucket())

    def _sides(self, lineage: str, dependent: Dependent) -> tuple[bool, ...]:
        """Return a flag for each set of labels in gates: True if the dependent has these labels."""
        gates = self._gate_labels.get(lineage, ())
        return tuple(labels.items() <= dependent.labels.items() for labels in gates)

    def buckets(self, lineage: str, gates: Iterable[Gate]) -> dict[_Key, _Bucket]:
        """Return the buckets of a lineage: groups of dependents that are resolved together.

        All dependents in a bucket have the same selector, policy and pins, and match the same sets
        of labels in `gates`.
        """
        wanted = {labels: None for gate in gates for labels in gate.cohorts}
        if set(self._gate_labels.get(lineage, ())) != wanted.keys():
            self._regroup(lineage, tuple(wanted))
        return self._lineages.get(lineage, {})

    def _regroup(self, lineage: str, gates: tuple[Mapping[str, str], ...]) -> None:
        """Build the buckets of a lineage again, because the labels of its gates have changed."""
        self._gate_labels[lineage] = gates
        regrouped: dict[_Key, list[_Member]] = {}
        for (selector, policy, pins, _), bucket in self._lineages.pop(lineage, {}).items():
            groups: dict[tuple[bool, ...], list[_Member]] = {}
            for member in bucket.members:
                groups.setdefault(self._sides(lineage, member[2]), []).append(member)
            for sides, members in groups.items():
                regrouped.setdefault((selector, policy, pins, sides), []).extend(members)
        for key, members in regrouped.items():
            members.sort(key=_ORDER)
            self._places |= {member[1]: (member[2], lineage, key) for member in members}
        self._lineages[lineage] = {key: _Bucket(members) for key, members in regrouped.items()}


def affected(index: Index, lineage_before: Lineage, lineage_after: Lineage) -> Moves:
    """Find the dependents that move, or lose their release, when a lineage changes.

    The pin of a dependent names the release that it has now, so the result is the same after
    polyver restarts. A dependent without a pin that had no release before the change is not a loss.
    """
    gates = [r.gate for r in (*lineage_before, *lineage_after) if r.gate is not None]
    shares = sorted({gate.share for gate in gates})
    buckets = index.buckets(lineage_after.name, gates)
    moves: list[Move] = []
    losses: list[Loss] = []
    for (selector, policy, (pin, *_), _), bucket in buckets.items():
        for start, end in bucket.cohorts(shares):
            one = bucket.members[start][2]
            found = _attempt(lineage_after, selector, policy, one)
            if isinstance(found, Resolution):
                if found.release.pin != pin:
                    moves += (
                        Move(dependent, found.release, found.reason)
                        for _, _, dependent, _ in bucket.members[start:end]
                    )
            elif pin is not None or isinstance(
                _attempt(lineage_before, selector, policy, one), Resolution
            ):
                losses += _losses(bucket.members[start:end], lineage_after, policy)
    return Moves(lineage_after.name, tuple(moves), tuple(losses), len(buckets))


def answers(index: Index, lineage: Lineage) -> Iterator[Answer]:
    """Resolve each group of equal dependents once; yield each group with its result.

    >>> from polyver.core import SemVer, Series, Stage
    >>> policy = Policy("example", usable=frozenset({Stage.PUBLISHED}), best="newest release")
    >>> lineage = Lineage("web", [Release(SemVer.parse("1.2.3"))])
    >>> index = Index.of((Dependent(str(n)), "web", Series(1), policy) for n in range(1000))
    >>> [(each.found.release.name, len(each.dependents)) for each in answers(index, lineage)]
    [('1.2.3', 1000)]
    """
    gates = [release.gate for release in lineage if release.gate is not None]
    shares = sorted({gate.share for gate in gates})
    for (selector, policy, _, _), bucket in index.buckets(lineage.name, gates).items():
        for start, end in bucket.cohorts(shares):
            alike = tuple(dependent for _, _, dependent, _ in bucket.members[start:end])
            yield Answer(_attempt(lineage, selector, policy, alike[0]), alike)


def _attempt(
    lineage: Lineage, selector: Selector, policy: Policy, dependent: Dependent
) -> Resolution | NoMatch:
    try:
        return resolve(lineage, selector, policy, dependent)
    except NoMatch as error:
        return error


def _losses(members: Iterable[_Member], lineage: Lineage, policy: Policy) -> Iterator[Loss]:
    """Yield a `Loss` for each dependent that gets no release.

    Each dependent is resolved by itself, so that its error names its own selector and field.
    """
    for _, _, dependent, selector in members:
        found = _attempt(lineage, selector, policy, dependent)
        if isinstance(found, NoMatch):
            yield Loss(dependent, found)
