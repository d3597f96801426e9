"""What a Function means for its revisions: which are made, renumbered, (de)activated, collected.

The decision depends on what is there and what is wanted, so that one that was interrupted is made
again from wherever it got to.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from polyver.capability import Refusal
from polyver.compositions._revision_numbers import distinct, number_of_now
from polyver.compositions.names import revision_name
from polyver.compositions.packages._revisions import (
    KnownFunctionRevision,
    lineage_of,
    new_revision,
    relabelled,
)
from polyver.compositions.packages._spec import DesiredFunction
from polyver.compositions.packages._uses import StepFunctionUse, selected_in
from polyver.core import listed

__all__ = ["FunctionPlan", "Postponed", "decide", "results_of", "users_of"]

Selected = Mapping[str, tuple[str, ...]]
_UNKNOWN = ("users that cannot be listed at the moment",)


@dataclass(frozen=True, slots=True)
class Postponed:
    """Something that waits until nobody selects a revision any more."""

    revision: str
    what: Literal["deactivated", "collected"]
    dependents: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.revision} is not {self.what}: selected by {listed(self.dependents)}"


@dataclass(frozen=True, slots=True)
class FunctionPlan:
    """What is to be done about a function, in this order; nothing if something is refused."""

    create: KnownFunctionRevision | None = None
    changes: tuple[KnownFunctionRevision, ...] = ()
    """Revisions as they are to be."""
    collect: tuple[KnownFunctionRevision, ...] = ()
    postponed: tuple[Postponed, ...] = ()
    current: str = ""
    """The revision of the content that is asked for; empty if that is not known."""
    selected: Selected = field(default_factory=dict)
    """Who selects which revision, whether or not that holds anything up."""
    refusals: tuple[Refusal, ...] = ()

    @property
    def is_empty(self) -> bool:
        return not (self.create or self.changes or self.collect)


def decide(
    function: DesiredFunction,
    known: Sequence[KnownFunctionRevision],
    digest: str | None,
    uses: Sequence[StepFunctionUse] | None = (),
) -> FunctionPlan:
    """The plan for a function; without a digest, for what is there of it already.

    While nobody can tell who uses it (`uses` is None), nothing is taken away.
    """
    before = {each.name: each for each in known}
    refusal = _taken(function, before, digest)
    if refusal is not None:
        return FunctionPlan(refusals=(refusal,))
    there = _distinct(known)
    current = _bring(function, there, digest)
    _activate(function, there)
    selected = selected_in(uses or (), lineage_of(function.name, there.values()))
    holding: Selected = selected if function.strict else {}
    if uses is None and function.strict:
        holding = dict.fromkeys(there, _UNKNOWN)
    postponed = [*_deactivate(function, there, holding)]
    doomed = _surplus(function, there, current)
    postponed += [_late(name, "collected", holding) for name in doomed if name in holding]
    collect = [there.pop(name) for name in doomed if name not in holding]
    return FunctionPlan(
        next((each for name, each in there.items() if name not in before), None),
        _in_order([each for each in there.values() if before.get(each.name, each) != each]),
        tuple(collect),
        tuple(postponed),
        current,
        selected,
    )


def users_of(
    function: str, known: Sequence[KnownFunctionRevision], uses: Sequence[StepFunctionUse]
) -> Mapping[str, tuple[str, ...]]:
    """For each revision that is selected now, by its name: the dependents that select it."""
    return selected_in(uses, lineage_of(function, _distinct(known).values()))


def results_of(
    plan: FunctionPlan, known: Iterable[KnownFunctionRevision]
) -> list[KnownFunctionRevision]:
    """The revisions as they are when a plan has been carried out."""
    found = {each.name: each for each in known}
    made = (plan.create,) if plan.create else ()
    found |= {each.name: each for each in (*made, *plan.changes)}
    gone = {each.name for each in plan.collect}
    return [each for name, each in found.items() if name not in gone]


def _taken(
    function: DesiredFunction, before: Mapping[str, KnownFunctionRevision], digest: str | None
) -> Refusal | None:
    """Refuse content whose revision would be called as that of other content."""
    if digest is None:
        return None
    there = before.get(revision_name(function.name, digest))
    if there is None or revision_name(function.name, there.digest) != there.name:
        return None  # nobody noted what the content of that one is
    if there.digest == digest:
        return None
    fact = f"{there.name} is the revision of other content ({there.digest}, not {digest})"
    return Refusal("NameTaken", fact, at="spec.package", hint="rebuild the package")


def _distinct(known: Sequence[KnownFunctionRevision]) -> dict[str, KnownFunctionRevision]:
    """Revisions by name, with distinct numbers; what is being deleted keeps its own first."""
    return distinct(sorted(known, key=lambda each: (not each.deleting, each.name)))


def _bring(
    function: DesiredFunction, there: dict[str, KnownFunctionRevision], digest: str | None
) -> str:
    """Have the content that is asked for as the highest revision, with the labels of now."""
    if digest is None:
        return ""
    name = revision_name(function.name, digest)
    found, number = there.get(name), number_of_now(there, name)
    if found is None:
        there[name] = new_revision(function, digest, number)
    elif not found.deleting:  # else it is made anew when it is gone
        there[name] = relabelled(replace(found, number=number), function)
    return name


def _wanted(function: DesiredFunction, there: Mapping[str, KnownFunctionRevision]) -> set[str]:
    """The revisions that are to be active: the highest, if that is not left to users."""
    if not function.automatic:
        return {name for name, each in there.items() if each.active}
    staying = [each for each in there.values() if not each.deleting]
    releases = lineage_of("", staying).releases
    return {each.name for each in releases[-function.active_limit :]}


def _activate(function: DesiredFunction, there: dict[str, KnownFunctionRevision]) -> None:
    for name in _wanted(function, there):
        there[name] = replace(there[name], active=True)


def _deactivate(
    function: DesiredFunction, there: dict[str, KnownFunctionRevision], holding: Selected
) -> Iterator[Postponed]:
    wanted = _wanted(function, there)
    for name, each in sorted(there.items()):
        if not each.active or each.deleting or name in wanted:
            continue
        if name in holding:
            yield _late(name, "deactivated", holding)
        else:
            there[name] = replace(each, active=False)


def _late(name: str, what: Literal["deactivated", "collected"], holding: Selected) -> Postponed:
    return Postponed(name, what, holding[name])


def _surplus(
    function: DesiredFunction, there: Mapping[str, KnownFunctionRevision], current: str
) -> list[str]:
    """The revisions that are too many, the lowest first; never an active one, nor the current."""
    staying = {name: each for name, each in there.items() if not each.deleting}
    too_many = len(staying) - function.history_limit
    if function.history_limit == 0 or too_many <= 0:
        return []
    releases = lineage_of("", staying.values()).releases
    kept = current or releases[-1].name
    inactive = [each.name for each in releases if not staying[each.name].active]
    return [name for name in inactive if name != kept][:too_many]


def _in_order(changes: Sequence[KnownFunctionRevision]) -> tuple[KnownFunctionRevision, ...]:
    """What is activated comes before what is not, so that there is always one to call."""
    return tuple(sorted(changes, key=lambda each: (not each.active, each.name)))
