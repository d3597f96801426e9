"""The rules for numbering and selecting revisions of Compositions and of Functions.

Each revision of a Composition or a Function has its own number, and the revision with the current
content has the highest number. A `Policy` of `polyver.core` states how a selector chooses among
these revisions. A RolloutPolicy is something else: it requires a rollout for each new revision.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TypeVar

from polyver.capability import Refusal
from polyver.capability.gates import gate_in
from polyver.core import (
    Exact,
    Gate,
    InvalidVersion,
    Labels,
    Lineage,
    Policy,
    Selector,
    Serial,
    Stage,
    Unspecified,
)
from polyver.kube.objects import InvalidSelector, parse_label_selector

__all__ = [
    "COMPOSITIONS",
    "COMPOSITIONS_MANUAL",
    "REVISIONS",
    "Numbered",
    "check_number",
    "distinct",
    "next_number",
    "number_of_now",
    "renumbered",
    "republished",
    "selector",
    "undecided",
]


@dataclass(frozen=True, slots=True)
class Numbered:
    """The name, the number and the gate of a revision."""

    name: str
    number: int
    gate: Gate | None = field(default=None, kw_only=True)
    """The gate that a rollout or a RolloutPolicy has set; None if the revision is open."""
    is_marked: bool = field(default=False, kw_only=True)
    """True if a rollout or a RolloutPolicy has opened or closed the revision."""


T = TypeVar("T", bound=Numbered)


def next_number(known: Iterable[Numbered]) -> int:
    """Return the next revision number: the highest number plus 1; 1 if there are no revisions."""
    highest = max((Serial(each.number) for each in known), default=None)
    return highest.number + 1 if highest is not None else 1


def distinct(known: Iterable[T]) -> dict[str, T]:
    """Return the revisions by name, each with a number of its own.

    If two revisions have the same number, the second one gets a new number. Two revisions can have
    the same number if two controllers ran at the same time for a short time.
    """
    found: dict[str, T] = {}
    numbers: set[int] = set()
    doubles = []
    for each in known:
        if each.number in numbers:
            doubles.append(each)
        else:
            numbers.add(each.number)
            found[each.name] = each
    for each in doubles:
        found[each.name] = replace(each, number=next_number(found.values()))
    return found


def number_of_now(there: Mapping[str, Numbered], name: str) -> int:
    """Return the number that the revision with the current content should have.

    `there` are all revisions, and `name` is the name of the revision with the current content. If
    no other revision has a higher number, this revision keeps its number. Otherwise it gets the
    next number.

    >>> there = {"a": Numbered("a", 1), "b": Numbered("b", 2)}
    >>> number_of_now(there, "b"), number_of_now(there, "a"), number_of_now(there, "c")
    (2, 3, 3)
    """
    known = there.get(name)
    others = next_number(each for each in there.values() if each.name != name)
    if known is not None and Serial(known.number) >= Serial(others):
        return known.number
    return next_number(there.values())


def check_number(number: int, others: Iterable[Numbered]) -> Iterator[Refusal]:
    """Yield a refusal if another revision has this number already."""
    taken = next((each.name for each in others if each.number == number), "")
    if taken:
        yield Refusal("VersionTaken", f"{taken} has the number {number}", at="spec.revision")


# Gates of rollouts.


def republished(revision: T, policy: str) -> T:
    """Return a revision with the gate that it gets when it becomes the newest revision.

    `policy` is the name of a RolloutPolicy, which closes the revision. If it is empty, the revision
    is open, even if an earlier rollout has closed it.
    """
    gate: Gate | None = gate_in({}, policy=policy)
    if gate is None and not revision.is_marked:
        return revision
    return replace(revision, gate=gate, is_marked=True)


def renumbered(revision: T, number: int, others: Iterable[Numbered], policy: str) -> T:
    """Return a revision with a new number, so that it becomes the newest one again.

    A RolloutPolicy closes it, as it closes a new revision. But if the revision is open and all
    newer ones are closed, composite resources use it already, so it stays open.
    """
    if number == revision.number:
        return revision
    newer = [each for each in others if Serial(each.number) > Serial(revision.number)]
    is_in_use = revision.gate is None and all(each.gate is not None for each in newer)
    again = revision if is_in_use else republished(revision, policy)
    return replace(again, number=number)


def undecided(revisions: Iterable[Numbered]) -> set[str]:
    """Return the names of the revisions that a RolloutPolicy has to close.

    A revision is marked if its annotation opens or closes it. The policy closes an unmarked
    revision if an older revision is marked. Otherwise the unmarked revision is older than the
    policy, and stays open.
    """
    found, after = set(), False
    for each in sorted(revisions, key=lambda each: Serial(each.number)):
        after = after or each.is_marked
        if not each.is_marked and after:
            found.add(each.name)
    return found


# Policies.

REVISIONS = Policy(
    "revisions",
    usable=frozenset({Stage.ACTIVE}),
    best="highest-numbered active revision",
    noun="revision",
)
"""Policy by which pipeline steps select function revisions, with `functionRevisionRef` or
`functionRevisionSelector`.
"""

COMPOSITIONS = Policy(
    "compositions",
    usable=frozenset({Stage.PUBLISHED}),
    best="newest revision",
    noun="revision",
)
"""Policy by which composite resources with `compositionUpdatePolicy: Automatic` select composition
revisions.
"""

COMPOSITIONS_MANUAL = replace(
    COMPOSITIONS,
    name="compositions-manual",
    keeps=frozenset({Unspecified, Labels}),
    keeps_closed=True,
    moves_when_unmatched=True,
)
"""Policy by which composite resources with `compositionUpdatePolicy: Manual` select composition
revisions. Such a composite resource keeps its revision as long as its selector matches this
revision. Rollouts do not move it.
"""


def selector(text: str, _: Lineage) -> Selector:
    """Parse a revision's name, its number, or labels such as `channel=alpha,tier=gold`."""
    if not text:
        raise InvalidVersion(text, "a revision: expected its name, its number, or key=value,…")
    if "=" not in text:
        return Exact(Serial.parse(text) if text.isdecimal() else text)
    try:
        wanted = parse_label_selector(text)
    except InvalidSelector as error:
        raise InvalidVersion(text, f"a label selector: {error}") from None
    labels = {one.key: value for one in wanted for value in one.values}
    if len(labels) < len(wanted) or any(one.operator not in ("=", "==") for one in wanted):
        raise InvalidVersion(text, "a label selector: expected key=value,… with each key once")
    return Labels.of(labels)
