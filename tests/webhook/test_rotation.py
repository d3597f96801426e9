"""Rotation among replicas, as it is decided: at every step everybody believes what is shown."""

from __future__ import annotations

import datetime
from dataclasses import dataclass, field, replace
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from polyver.webhook.rotation import (
    DROPPED_AFTER,
    SETTLED_AFTER,
    AuthorityState,
    Create,
    Drop,
    Issue,
    LeafState,
    Observe,
    Publish,
    RotationState,
    plan,
)

DAY = datetime.timedelta(days=1)
MINUTE = datetime.timedelta(minutes=1)
START = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)
NAMES = ["hooks.shop.svc"]


@dataclass
class Replica:
    signer: str = "ca1"
    leaf: int = 1
    noted: int = 1
    behind: datetime.datetime | None = None
    """Since when there is another leaf."""


@dataclass
class Holder:
    """Something with a bundle, and an API server that may have read the one before."""

    written: tuple[str, ...] = ("ca1",)
    believed: tuple[str, ...] = ("ca1",)
    behind: datetime.datetime | None = None


@dataclass
class World:
    """An authority that is about to be followed by another."""

    now: datetime.datetime = START
    state: RotationState = field(
        default_factory=lambda: RotationState(
            (AuthorityState("ca1", START + 729 * DAY),),
            LeafState("ca1", frozenset(NAMES), START, START + 365 * DAY),
            ("ca1",),
        )
    )
    leaf: int = 1
    published_at: datetime.datetime = START
    replicas: list[Replica] = field(default_factory=lambda: [Replica(), Replica(), Replica()])
    holders: list[Holder] = field(default_factory=lambda: [Holder(), Holder()])

    @property
    def bundle(self) -> tuple[str, ...]:
        return tuple(each.serial for each in self.state.authorities)

    def pass_time(self, lasting: datetime.timedelta) -> None:
        """Nobody is behind for longer than is reckoned with."""
        self.now += lasting
        for number, replica in enumerate(self.replicas):
            if replica.behind and self.now - replica.behind >= DROPPED_AFTER - MINUTE:
                self.catch_up(number)
        for number, holder in enumerate(self.holders):
            if holder.behind and self.now - holder.behind >= SETTLED_AFTER - MINUTE:
                self.believe(number)

    def catch_up(self, number: int) -> None:
        assert self.state.leaf is not None
        replica = self.replicas[number]
        replica.signer, replica.leaf, replica.behind = self.state.leaf.signer, self.leaf, None

    def note(self, number: int) -> None:
        self.replicas[number].noted = self.replicas[number].leaf

    def believe(self, number: int) -> None:
        holder = self.holders[number]
        holder.believed, holder.behind = holder.written, None

    def lead(self, *, ends_after: int | None) -> None:
        """Take one step; whoever leads may end after some of what belongs to it."""
        shown = all(each.noted == self.leaf for each in self.replicas)
        step = plan(replace(self.state, shown=shown), NAMES, self.now)
        if isinstance(step, Publish):
            for holder in self.holders[:ends_after]:
                self._write(holder)
        if ends_after is not None:
            return
        match step:
            case Create():
                made = AuthorityState("ca2", self.now + 3650 * DAY)
                authorities = (*self.state.authorities, made)
                self.state = replace(self.state, authorities=authorities, observed=False)
            case Publish():
                self.state = replace(self.state, published=step.serials, observed=False)
                self.published_at = self.now
            case Observe():
                settled = self.now - self.published_at >= SETTLED_AFTER
                seen = settled and all(each.written == self.bundle for each in self.holders)
                self.state = replace(self.state, observed=seen)
            case Issue():
                leaf = LeafState(step.signer, frozenset(NAMES), self.now, self.now + 365 * DAY)
                self.state = replace(self.state, leaf=leaf)
                self.leaf += 1
                for replica in self.replicas:
                    replica.behind = replica.behind or self.now
            case Drop():
                left = tuple(e for e in self.state.authorities if e.serial != step.serial)
                self.state = replace(self.state, authorities=left)

    def _write(self, holder: Holder) -> None:
        if holder.written != self.bundle:
            holder.written = self.bundle
            holder.behind = holder.behind or self.now

    def check(self) -> None:
        for replica in self.replicas:
            for holder in self.holders:
                assert replica.signer in holder.written
                assert replica.signer in holder.believed


ACTIONS = st.one_of(
    st.tuples(st.just("time"), st.integers(1, 4)),
    st.tuples(st.just("time"), st.integers(60, 3000)),
    st.tuples(st.just("lead"), st.none() | st.integers(0, 2)),
    st.tuples(st.just("lead"), st.none()),
    st.tuples(st.sampled_from(["catch_up", "note"]), st.integers(0, 2)),
    st.tuples(st.just("believe"), st.integers(0, 1)),
)


@settings(max_examples=150)
@given(st.lists(ACTIONS, min_size=20, max_size=60))
def test_every_replica_is_believed_by_everyone_at_every_step(
    actions: list[tuple[str, Any]],
) -> None:
    world = World()
    for act, value in actions:
        match act:
            case "time":
                world.pass_time(value * MINUTE)
            case "lead":
                world.lead(ends_after=value)
            case _:
                getattr(world, act)(value)
        world.check()
    for _ in range(20):  # and it comes to its end, whatever was before
        world.pass_time(DAY)
        world.lead(ends_after=None)
        world.check()
    assert world.bundle == ("ca2",)
    assert {each.signer for each in world.replicas} == {"ca2"}
    assert {each.written for each in world.holders} == {("ca2",)}
