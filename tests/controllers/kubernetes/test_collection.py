"""What the garbage collector decides, tried on graphs of every shape."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import structs
from tests.client.fake import CONFIG_MAP, NODE, WIDGET, served

from polyver.controllers.identity import ObjectIdentity, Owner
from polyver.controllers.kubernetes._graph import (
    FOREGROUND,
    ORPHAN,
    Coordinates,
    Delete,
    Effect,
    Graph,
    RemoveFinalizer,
    ReportInvalidOwner,
    SetOwners,
    plan,
    touched,
)
from polyver.kube.objects.kinds import ResourceKind


def item(
    uid: str,
    *owners: Owner,
    kind: ResourceKind = CONFIG_MAP,
    namespace: str = "a",
    finalizers: Iterable[str] = (),
    deleting: bool = False,
) -> ObjectIdentity:
    inside = namespace if kind.namespaced else ""
    return ObjectIdentity(kind, inside, uid, uid, "1", owners, tuple(finalizers), deleting)


def owner(uid: str, *, kind: ResourceKind = CONFIG_MAP, block: bool | None = None) -> Owner:
    return Owner(kind.api_version, kind.kind, uid, uid, block_owner_deletion=block)


def graph(*nodes: ObjectIdentity) -> Graph:
    found = Graph()
    found.serve(served(CONFIG_MAP, NODE))
    for node in nodes:
        found.put(node)
    return found


def test_an_object_with_a_live_owner_is_left_alone() -> None:
    assert plan(graph(item("o"), item("d", owner("o"))), "d").effects == ()


def test_an_owner_that_the_graph_does_not_know_is_asked_for() -> None:
    [(asked, kind)] = plan(graph(item("d", owner("o"))), "d").look
    assert (asked.uid, kind) == ("o", CONFIG_MAP)


def test_an_object_goes_with_its_last_owner() -> None:
    dependent = item("d", owner("o"))
    found = graph(item("o"), dependent)
    found.remove("o")
    assert plan(found, "d").effects == (Delete(dependent, "Background"),)


def test_a_dead_reference_is_removed_while_another_owner_lives() -> None:
    dependent = item("d", owner("o"), owner("p"))
    found = graph(item("o"), item("p"), dependent)
    found.remove("o")
    assert plan(found, "d").effects == (SetOwners(dependent, (owner("p"),)),)


def test_an_owner_with_another_uid_is_none() -> None:
    dependent = item("d", owner("o"))
    found = graph(dependent)
    found.lose(Coordinates("", "ConfigMap", "a", "o", "o"))
    found.put(structs.replace(item("o"), uid="other"))
    assert plan(found, "d").effects == (Delete(dependent, "Background"),)


def test_an_owner_of_a_kind_that_is_not_served_saves_its_dependents() -> None:
    dependent = item("d", owner("o", kind=WIDGET))
    found = plan(graph(dependent), "d")
    assert (found.effects, found.unserved) == ((), True)


def test_an_owner_that_went_before_its_kind_is_gone() -> None:
    dependent = item("d", owner("o", kind=WIDGET))
    found = graph(item("o", kind=WIDGET), dependent)
    found.remove("o")
    assert plan(found, "d").effects == (Delete(dependent, "Background"),)


def test_a_cluster_wide_object_owns_across_namespaces() -> None:
    dependent = item("d", owner("n", kind=NODE), namespace="b")
    assert plan(graph(item("n", kind=NODE), dependent), "d").effects == ()


def test_an_owner_in_another_namespace_is_none_and_that_is_told() -> None:
    dependent = item("d", owner("o"), namespace="b")
    found = graph(item("o"), dependent)
    assert plan(found, "d").look
    found.lose(Coordinates("", "ConfigMap", "b", "o", "o"))
    effects = plan(found, "d").effects
    assert effects == (ReportInvalidOwner(dependent, owner("o")), Delete(dependent, "Background"))


def test_a_cluster_wide_object_with_an_owner_in_a_namespace_is_left_alone() -> None:
    dependent = item("d", owner("o"), kind=NODE)
    effects = plan(graph(item("o"), dependent), "d").effects
    assert effects == (ReportInvalidOwner(dependent, owner("o")),)


def test_what_is_being_deleted_is_not_deleted_again() -> None:
    found = graph(item("o"), item("d", owner("o"), deleting=True, finalizers=["ex.io/one"]))
    found.remove("o")
    assert plan(found, "d").effects == ()


@pytest.mark.parametrize(
    ("finalizer", "policy"), [(ORPHAN, "Orphan"), (FOREGROUND, "Foreground"), ("x", "Background")]
)
def test_an_earlier_wish_is_honoured(finalizer: str, policy: str) -> None:
    found = graph(item("o"), item("d", owner("o"), finalizers=[finalizer]))
    found.remove("o")
    [effect] = plan(found, "d").effects
    assert isinstance(effect, Delete)
    assert effect.propagation == policy


def test_in_the_foreground_dependents_go_first() -> None:
    above = item("o", deleting=True, finalizers=[FOREGROUND])
    dependent = item("d", owner("o", block=True))
    found = graph(above, dependent)
    assert plan(found, "o").effects == ()
    assert plan(found, "d").effects == (Delete(dependent, "Background"),)
    found.remove("d")
    assert plan(found, "o").effects == (RemoveFinalizer(above, FOREGROUND),)


def test_in_the_foreground_a_dependent_with_dependents_goes_that_way_too() -> None:
    above = item("o", deleting=True, finalizers=[FOREGROUND])
    dependent = item("d", owner("o", block=True))
    found = graph(above, dependent, item("e", owner("d")))
    assert plan(found, "d").effects == (Delete(dependent, "Foreground"),)


def test_only_dependents_that_block_hold_up_their_owner() -> None:
    above = item("o", deleting=True, finalizers=["ex.io/one", FOREGROUND])
    found = graph(above, item("d", owner("o")))
    assert plan(found, "o").effects == (RemoveFinalizer(above, FOREGROUND),)


def test_a_circle_in_the_foreground_is_cut() -> None:
    below = item("d", owner("o", block=True))
    above = item("o", owner("d", block=True), deleting=True, finalizers=[FOREGROUND])
    effects = plan(graph(above, below), "d").effects
    assert effects == (SetOwners(below, (owner("o", block=False),)),)


def test_a_circle_of_which_all_wait_is_cut() -> None:
    server = Server(
        graph(
            item("a", owner("c", block=True)),
            item("b", owner("a", block=True)),
            item("c", owner("b", block=True)),
        )
    )
    for uid in "abc":
        server.delete(uid, "Foreground")
    server.run()
    assert sorted(server.deleted) == ["a", "b", "c"]


def test_a_chain_in_the_foreground_is_not_cut() -> None:
    found = graph(
        item("a", deleting=True, finalizers=[FOREGROUND]),
        item("b", owner("a", block=True), deleting=True, finalizers=[FOREGROUND]),
        item("c", owner("b", block=True), deleting=True, finalizers=[FOREGROUND]),
        item("d", owner("c", block=True), deleting=True, finalizers=["x"]),
    )
    assert [plan(found, uid).effects for uid in "abcd"] == [(), (), (), ()]


def test_orphans_lose_their_owner_before_it_goes() -> None:
    above = item("o", deleting=True, finalizers=[ORPHAN])
    dependent = item("d", owner("o", block=True), owner("p"))
    found = graph(above, dependent)
    assert plan(found, "o").effects == ()
    assert plan(found, "d").effects == (SetOwners(dependent, (owner("p"),)),)
    found.put(item("d", owner("p")))
    assert plan(found, "o").effects == (RemoveFinalizer(above, ORPHAN),)


def test_nothing_is_orphaned_while_there_may_be_dependents_unknown() -> None:
    found = plan(graph(item("o", deleting=True, finalizers=[ORPHAN])), "o", complete=False)
    assert (found.effects, found.unsure) == ((), True)


def test_owners_that_are_gone_are_not_remembered_for_ever() -> None:
    found = graph(item("d", owner("o0")))
    for number in range(10_001):
        found.lose(Coordinates("", "ConfigMap", "a", f"o{number}", f"o{number}"))
    assert plan(found, "d").look


def test_what_does_not_matter_wakes_nobody() -> None:
    before = item("d", owner("o"))
    after = structs.replace(before, resource_version="2")
    assert touched(graph(item("o"), after), before, after) == []


# From here on whole lives: a server that does what it is told, and a collector that is told all.


@dataclass
class Server:
    """Applies effects as an API server would, and tells the graph at once."""

    graph: Graph
    turn: dict[str, None] = field(default_factory=dict)
    deleted: list[str] = field(default_factory=list)
    steps: int = 0
    chance: random.Random = field(default_factory=lambda: random.Random(0))

    def change(self, uid: str, after: ObjectIdentity | None) -> None:
        before = self.graph.nodes.get(uid)
        if after is not None and after.deleting and not after.finalizers:
            after = None
        if after is None:
            self.graph.remove(uid)
            self.deleted.append(uid)
        else:
            after = structs.replace(after, resource_version=str(self.steps))
            self.graph.put(after)
        self.turn.update(dict.fromkeys(touched(self.graph, before, after)))

    def delete(self, uid: str, propagation: str) -> None:
        node = self.graph.nodes[uid]
        added = {"Foreground": {FOREGROUND}, "Orphan": {ORPHAN}}.get(propagation, set())
        if node.deleting:
            added = set()
        finalizers = tuple(sorted({*node.finalizers, *added}))
        self.change(uid, structs.replace(node, deleting=True, finalizers=finalizers))

    def run(self) -> None:
        while self.turn:
            self.steps += 1
            assert self.steps < 2_000, "it does not come to an end"
            uid = self.chance.choice([*itertools.islice(self.turn, 10)])
            del self.turn[uid]
            found = plan(self.graph, uid)
            for asked, _ in found.look:
                self.graph.lose(Coordinates(asked.group, asked.kind, "a", asked.name, asked.uid))
            if found.look:
                self.turn[uid] = None
            for effect in found.effects:
                self.act(effect)

    def act(self, effect: Effect) -> None:
        node = self.graph.nodes[effect.item.uid]
        assert node == effect.item
        match effect:
            case Delete(_, propagation):
                self.delete(node.uid, propagation)
            case SetOwners(_, owners):
                self.change(node.uid, structs.replace(node, owners=owners))
            case RemoveFinalizer(_, finalizer):
                rest = tuple(each for each in node.finalizers if each != finalizer)
                self.change(node.uid, structs.replace(node, finalizers=rest))
            case ReportInvalidOwner():
                raise AssertionError("all are in one namespace")


Edge = tuple[str, str, bool | None]
UIDS = st.sampled_from([f"u{number}" for number in range(8)])
EDGES = st.lists(st.tuples(UIDS, UIDS, st.sampled_from([True, False, None])), max_size=20)
RANDOMS = st.randoms(use_true_random=False)
WISHES = st.lists(
    st.tuples(UIDS, st.sampled_from(["Background", "Foreground", "Orphan"])), max_size=4
)


def _world(edges: Sequence[Edge], absent: Iterable[str], chance: random.Random) -> Server:
    """`u0` to `u7`, some of which exist only in the references of others."""
    owners: dict[str, dict[str, Owner]] = {f"u{number}": {} for number in range(8)}
    for below, above, block in edges:
        owners[below].setdefault(above, owner(above, block=block))
    nodes = [item(uid, *found.values()) for uid, found in owners.items() if uid not in absent]
    server = Server(graph(*nodes), chance=chance)
    server.turn.update(dict.fromkeys(server.graph.nodes))
    return server


def _expected(nodes: dict[str, ObjectIdentity], roots: Iterable[str]) -> set[str]:
    """All that has owners and no live one, from what is gone downwards."""
    gone = set(roots)
    while True:
        more = {
            node.uid
            for node in nodes.values()
            if node.uid not in gone
            and node.owners
            and all(each.uid in gone or each.uid not in nodes for each in node.owners)
        }
        if not more:
            return gone
        gone |= more


@settings(max_examples=300)
@given(edges=EDGES, chance=RANDOMS, absent=st.sets(UIDS, max_size=3))
def test_it_deletes_exactly_what_has_no_live_owner(
    edges: list[Edge], chance: random.Random, absent: set[str]
) -> None:
    server = _world(edges, absent, chance)
    before = dict(server.graph.nodes)
    server.run()
    assert set(server.deleted) == _expected(before, ())
    for node in server.graph.nodes.values():
        assert all(each.uid in server.graph.nodes for each in node.owners)


@settings(max_examples=300)
@given(
    edges=EDGES,
    chance=RANDOMS,
    roots=st.sets(UIDS, min_size=1, max_size=3),
    policy=st.sampled_from(["Background", "Foreground"]),
)
def test_with_an_owner_goes_what_had_no_other(
    edges: list[Edge], chance: random.Random, roots: set[str], policy: str
) -> None:
    server = _world(edges, set(), chance)
    before = dict(server.graph.nodes)
    server.run()
    for root in roots & set(server.graph.nodes):
        server.delete(root, policy)
    server.run()
    assert set(server.deleted) == _expected(before, roots)


@settings(max_examples=300)
@given(edges=EDGES, chance=RANDOMS, absent=st.sets(UIDS, max_size=2), wishes=WISHES)
def test_whatever_is_asked_for_it_comes_to_an_end(
    edges: list[Edge], chance: random.Random, absent: set[str], wishes: list[tuple[str, str]]
) -> None:
    server = _world(edges, absent, chance)
    for uid, policy in wishes:
        if uid in server.graph.nodes:
            server.delete(uid, policy)
    server.run()
    assert not any(node.deleting for node in server.graph.nodes.values())
    for node in server.graph.nodes.values():
        assert plan(server.graph, node.uid).effects == ()


@settings(max_examples=200)
@given(edges=EDGES, chance=RANDOMS, root=UIDS)
def test_orphaning_deletes_the_owner_alone(
    edges: list[Edge], chance: random.Random, root: str
) -> None:
    server = _world(edges, set(), chance)
    server.delete(root, "Orphan")
    server.run()
    assert server.deleted == [root]
    assert all(
        root not in {each.uid for each in node.owners} for node in server.graph.nodes.values()
    )


@settings(max_examples=200)
@given(edges=EDGES, chance=RANDOMS, root=UIDS)
def test_in_the_foreground_whoever_blocks_goes_first(
    edges: list[Edge], chance: random.Random, root: str
) -> None:
    """In trees; who has another owner that lives is let go by the first, and stays for now."""
    parents = {max(one, two): min(one, two) for one, two, _ in edges if one != two}
    tree: list[Edge] = [(below, owner, True) for below, owner in parents.items()]
    server = _world(tree, set(), chance)
    server.delete(root, "Foreground")
    server.run()
    order = {uid: number for number, uid in enumerate(server.deleted)}
    for below, above, _ in tree:
        if below in order and above in order:
            assert order[below] < order[above]


def test_the_cost_of_a_turn_does_not_grow_with_the_number_of_objects() -> None:
    """Ten thousand dependents of one owner: each has a turn, and none looks at the others."""
    found = graph(
        item("o"), *(item(f"d{number}", owner("o", block=True)) for number in range(10_000))
    )
    server = Server(found, steps=-20_000)
    server.delete("o", "Foreground")
    server.run()
    assert len(server.deleted) == 10_001
    assert server.steps <= 20_000
