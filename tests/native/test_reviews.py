"""Compiled code: it does convert, it leaves out what it cannot, and nothing given to it hurts."""

from __future__ import annotations

import json
import random
import sys
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.apis.conversions import EVERY_RULE, SCHEMAS, converter, drawn_converters
from tests.native.reviewed import (
    Add,
    Object,
    asked,
    by_rules,
    converted,
    native,
    needs_native,
    program,
    thing,
)

from polyver.apis.conversion import Converter, Rules
from polyver.apis.conversion._program import _OPERATIONS

pytestmark = needs_native

# Every operation, there and back.


def _each(rules: Rules) -> None:
    rules.each("spec.items", to="spec.parts").move("cmd", "command")


def _wrapped(rules: Rules) -> None:
    rules.wrap("spec.one", "spec.all").move("a", "b.c")


def _nested(rules: Rules) -> None:
    outer = rules.within("spec.n", to="spec.m").each("items")
    outer.keyed("env", "vars", key="name")
    outer.const("on", True)


RULES: dict[str, tuple[Add, Object, Object]] = {
    "move": (lambda rules: rules.move("spec.a", "spec.b"), {"a": 1.50, "z": 0}, {"z": 0, "b": 1.5}),
    "move out of an object that is empty then": (
        lambda rules: rules.move("spec.n.a", "spec.m.b"),
        {"n": {"a": None}, "z": 1},
        {"z": 1, "m": {"b": None}},
    ),
    "move what keeps its neighbours": (
        lambda rules: rules.move("spec.n.a", "spec.n.b"),
        {"n": {"a": 1, "c": 2}},
        {"n": {"c": 2, "b": 1}},
    ),
    "move from between others": (
        lambda rules: rules.move("spec.x", "spec.y"),
        {"a": 1, "x": {"z": 2}, "b": 3, "c": 4},
        {"a": 1, "b": 3, "c": 4, "y": {"z": 2}},
    ),
    "drop, without anything to drop": (lambda rules: rules.drop("spec.x"), {"a": 1}, {"a": 1}),
    "add, without anything to add": (lambda rules: rules.add("spec.x"), {"a": 1}, {"a": 1}),
    "const": (
        lambda rules: rules.const("spec.x", {"é": [1.0, "x"]}),
        {"a": 1},
        {"a": 1, "x": {"é": [1.0, "x"]}},
    ),
    "values": (
        lambda rules: rules.values("spec.v", {"Allow": "allow", 1: True}),
        {"v": 1},
        {"v": True},
    ),
    "cast": (
        lambda rules: rules.cast("spec.n", "string", "integer"),
        {"n": "-999999999999999999"},
        {"n": -(10**18) + 1},
    ),
    "scale": (lambda rules: rules.scale("spec.s", "spec.ms", 1000), {"s": -7}, {"ms": -7000}),
    "split": (
        lambda rules: rules.split(
            "spec.at", into=["spec.host", "spec.port"], separator="::", types=["string", "integer"]
        ),
        {"at": "é::80"},
        {"host": "é", "port": 80},
    ),
    "split with a part that is not there": (
        lambda rules: rules.split(
            "spec.at", into=["spec.a", "spec.b", "spec.c"], separator=" ", absent="*"
        ),
        {"at": "1 * 2 3"},
        {"a": "1", "c": "2 3"},
    ),
    "split with fewer parts": (
        lambda rules: rules.split("spec.at", into=["spec.a", "spec.b"], separator=":"),
        {"at": "x"},
        {"a": "x"},
    ),
    "wrap": (lambda rules: rules.wrap("spec.one", "spec.all"), {"one": [1]}, {"all": [[1]]}),
    "wrap with rules inside": (_wrapped, {"one": {"a": 1}}, {"all": [{"b": {"c": 1}}]}),
    "each": (
        _each,
        {"items": [{"cmd": "x", "z": 1}, {}, {"z": 2}]},
        {"parts": [{"z": 1, "command": "x"}, {}, {"z": 2}]},
    ),
    "keyed": (
        lambda rules: rules.keyed("spec.list", "spec.map", key="name", value="value"),
        {
            "list": [
                {"name": "", "value": 1},
                {"name": "A", "value": [2]},
                {"name": "a", "value": {}},
            ]
        },
        {"map": {"": 1, "A": [2], "a": {}}},
    ),
    "keyed by the rest": (
        lambda rules: rules.keyed("spec.list", "spec.map", key="name"),
        {"list": [{"name": "a", "x": 1, "y": 2}, {"name": "a!"}, {"name": "b"}, {"name": "é"}]},
        {"map": {"é": {}, "a!": {}, "b": {}, "a": {"x": 1, "y": 2}}},
    ),
    "rules inside of rules": (
        _nested,
        {"n": {"items": [{"env": [{"name": "a", "x": {"y": 1}}]}]}},
        {"m": {"items": [{"vars": {"a": {"x": {"y": 1}}}, "on": True}]}},
    ),
    "spec as a whole": (lambda rules: rules.move("spec", "template"), {"a": {}}, {}),
    "status": (lambda rules: rules.move("status.a", "status.b.c"), {}, {}),
}


@pytest.mark.parametrize("name", RULES)
def test_every_rule_is_followed_there_and_back(name: str) -> None:
    add, old, new = RULES[name]
    known = by_rules(add)
    one = thing(old, status={"a": 1}) if name == "status" else thing(old)
    [made] = converted(known, one)
    assert made == known.convert(one, "v2")
    if name not in ("spec as a whole", "status"):
        assert made == thing(new, "v2")
        [again] = converted(known, thing(new, "v2"), source="v2", target="v1")
        assert again == one
    elif name == "status":
        assert made["status"] == {"b": {"c": 1}}
    else:
        assert made["template"] == old


def test_a_constant_is_not_added_to_what_is_not_there() -> None:
    known = by_rules(lambda rules: rules.const("spec.x", 1))
    bare = {"apiVersion": "ex.io/v1", "kind": "Thing", "metadata": {}}
    [made] = converted(known, bare)
    assert made == {**bare, "apiVersion": "ex.io/v2"}
    assert converted(known, made, source="v2", target="v1") == [bare]


def _operations(block: Any) -> Iterator[str]:
    for rule in block[7]:
        yield _OPERATIONS[rule[0]]
        if rule[7] is not None:
            yield from _operations(rule[7])


def test_these_rules_are_all_operations() -> None:
    seen = set()
    for add, *_ in RULES.values():
        for pair in (("v1", "v2"), ("v2", "v1")):
            for block in program(by_rules(add), *pair)[4]:  # type: ignore[attr-defined]
                seen |= {*_operations(block)}
    assert seen == {*_OPERATIONS}


def test_a_way_over_several_versions_is_gone_at_once() -> None:
    known = by_rules(
        lambda rules: rules.split("spec.at", into=["spec.host", "spec.port"], separator=":"),
        lambda rules: rules.wrap("spec.host", "spec.hosts"),
        lambda rules: rules.move("spec.hosts", "spec.net.hosts"),
    )
    [made] = converted(known, thing({"at": "h:1"}), target="v4")
    assert made == thing({"port": "1", "net": {"hosts": ["h"]}}, "v4")
    [again] = converted(known, made, source="v4", target="v1")
    assert again == thing({"at": "h:1"})


@pytest.mark.parametrize("schemas", [None, SCHEMAS])
def test_the_conversion_of_the_reference_is_done_by_it(schemas: Any) -> None:
    known = converter(EVERY_RULE, schemas)
    spec: Object = {
        "cronSpec": "x",
        "hostPort": "h:1",
        "times": "5 * 3",
        "image": "i",
        "policy": "Allow",
    }
    spec |= {"replicas": "2", "envList": [{"name": "a", "value": "b"}], "timeoutSeconds": 3}
    given = {"kind": "CronTab", "metadata": {}, "spec": {**spec, "containers": [{"name": "a"}]}}
    for target in ("v2", "v3"):
        obj = {"apiVersion": "stable.example.com/v1", **given}
        made = known.natively(obj, target)
        assert made == known.convert(obj, target)
        assert made is not None
        assert known.natively(made, "v1") == obj


def test_fields_are_written_in_the_order_that_python_writes_them() -> None:
    known = converter(EVERY_RULE)
    spec = '{"replicas":"2","x":1.0,"hostPort":"h:1","cronSpec":"c","at":{"z":1},"times":"1 * 2"}'
    text = '{"apiVersion":"stable.example.com/v1","kind":"CronTab","status":{},"spec":' + spec + "}"
    body = asked(text.encode(), desiredAPIVersion="stable.example.com/v2")
    told = native().answer(native().table((program(known, "v1", "v2"),)), body)
    assert told is not None
    assert bytes(known.convert_raw(text.encode(), "v2")) in told[0]
    assert told[3] is None


# What it leaves out.


def test_objects_that_it_does_not_convert_are_holes() -> None:
    known = by_rules(lambda rules: rules.cast("spec.n", "string", "integer"))
    table = native().table((program(known, "v1", "v2"),))
    odd = [thing({"n": "08"}), thing({}, "v2"), thing({}, more=1), None, thing({"n": "8"})]
    body = asked(thing({}), odd[0], odd[1], thing({"n": "7"}), *odd[2:])
    told = native().answer(table, body)
    assert told is not None
    text, count, place, left_out = told
    assert left_out is not None
    wanted, holes = left_out
    assert (count, place, wanted) == (3, 0, "ex.io/v2")
    assert [json.loads(body[begin:end]) for _, begin, end in holes] == odd[:4]
    filled, written = b"", 0
    for number, (at, _, _) in enumerate(holes):
        filled, written = filled + text[written:at] + b"%d" % number, at
    made = json.loads(filled + text[written:])["response"]["convertedObjects"]
    assert [each for each in made if isinstance(each, int)] == [0, 1, 2, 3]
    assert made[3]["spec"] == {"n": 7}


@pytest.mark.parametrize(
    "count",
    [pytest.param(10_001, id="holes"), pytest.param(1_000_000, id="more of them")],
)
def test_a_review_of_anything_else_is_left_to_python(count: int) -> None:
    assert native().answer(native().table(()), asked(b",".join([b"{}"] * count))) is None


def test_an_object_for_which_much_memory_would_be_needed_is_left_to_python() -> None:
    known = by_rules(_each)
    table = native().table((program(known, "v1", "v2"),))
    items = b",".join([b"{}"] * 500_000)
    obj = b'{"apiVersion":"ex.io/v1","kind":"Thing","spec":{"items":[' + items + b"]}}"
    assert native().answer(table, asked(obj)) is None


@pytest.mark.parametrize("levels", [100, 199, 200, 250, 100_000])
def test_what_is_nested_deeply_is_converted_or_left_to_python(levels: int) -> None:
    known = by_rules(lambda rules: rules.move("spec.a", "spec.b"))
    text = b'{"apiVersion":"ex.io/v1","kind":"Thing","spec":{"a":%s%s}}'
    told = native().answer(
        native().table((program(known, "v1", "v2"),)),
        asked(text % (b"[" * levels, b"]" * levels)),
    )
    assert (told is not None and told[1] == 1) is (levels <= 200)


def test_objects_with_many_fields_are_converted_or_left_to_python() -> None:
    known = by_rules(lambda rules: rules.move("spec.a", "spec.b"))
    few, many = ({f"k{number}": 1 for number in range(count)} for count in (200, 100_000))
    [made] = converted(known, thing({"a": 1, **few}))
    assert made["spec"] == {**few, "b": 1}
    told = native().answer(native().table((program(known, "v1", "v2"),)), asked(thing(many)))
    assert told is not None
    assert told[1] == 0


# What is given to it.


@pytest.mark.parametrize(
    "given",
    [(), (b"",), (None, b""), (5, b""), (b"", b""), (native, b"")],
)
def test_answers_want_a_table_and_a_body(given: Any) -> None:
    with pytest.raises((TypeError, ValueError)):
        native().answer(*given)


@pytest.mark.parametrize("body", [None, "{}", 5, memoryview(b"abcd")[::2]])
def test_bodies_are_bytes(body: Any) -> None:
    with pytest.raises((TypeError, ValueError, BufferError)):
        native().answer(native().table(()), body)


@pytest.mark.parametrize("body", [b"", b" ", b"{", b"[]", b"\xff" * 9, b'{"a":', b'"', b"\0"])
def test_bytes_that_are_no_review_are_not_answered(body: bytes) -> None:
    for each in (body, bytearray(body), memoryview(body)):
        assert native().answer(native().table(()), each) is None  # type: ignore[arg-type]


def _blocks(**parts: Any) -> Any:
    names = "containers allowed refused anchors reads cleans strays rules".split()
    return (tuple(parts.get(name, ()) for name in names),)


def _program(blocks: Any, **parts: Any) -> Any:
    named = {"wanted": b'"ex.io/v2"', "version": b'"ex.io/v1"', "kind": b'"Thing"', "carry": b""}
    return (*(named | parts).values(), blocks)


def _move(**parts: Any) -> tuple[Any, ...]:
    usual = {"operation": 0, "first": 0, "count": 1, "writes": ((1, b'"b"'),)}
    usual |= {"anchor": -1, "number": 0, "words": (), "inside": None}
    return tuple((usual | parts).values())


SPEC, READ = (0, b'"spec"', 4), (1, b'"a"')


def _ruled(**parts: Any) -> Any:
    return _program(_blocks(containers=(SPEC,), reads=(READ,), rules=(_move(**parts),)))


def _deep(levels: int) -> Any:
    inside: Any = _blocks()[0]
    for _ in range(levels):
        rule = _move(writes=((0, b'"a"'),), inside=inside)
        [inside] = _blocks(reads=((0, b'"a"'),), rules=(rule,))
    return (inside,)


MALFORMED: dict[str, tuple[Any, type[Exception]]] = {
    "no tuple": ([], TypeError),
    "no program": ((None,), TypeError),
    "a program without blocks": ((_program(())[:4],), TypeError),
    "a kind that is no bytes": ((_program((), kind="Thing"),), TypeError),
    "a block that is no tuple": ((_program((None,)),), TypeError),
    "a block without rules": ((_program((_blocks()[0][:7],)),), TypeError),
    "a list of blocks": ((_program([]),), TypeError),
    "a container in itself": ((_program(_blocks(containers=((1, b'"a"', 0),))),), ValueError),
    "a container in a later one": (
        (_program(_blocks(containers=((2, b'"a"', 0), SPEC))),),
        ValueError,
    ),
    "a container twice": ((_program(_blocks(containers=(SPEC, SPEC))),), ValueError),
    "a container that is taken": (
        (_program(_blocks(containers=(SPEC,), reads=((0, b'"spec"'),))),),
        ValueError,
    ),
    "a container without a name": ((_program(_blocks(containers=((0, b"", 0),))),), ValueError),
    "a name without an end": ((_program(_blocks(containers=((0, b'"a', 0),))),), ValueError),
    "a name with two ends": ((_program(_blocks(containers=((0, b'"a"a"', 0),))),), ValueError),
    "a name of one mark": ((_program(_blocks(containers=((0, b'"', 0),))),), ValueError),
    "flags that nobody knows": ((_program(_blocks(containers=((0, b'"a"', 8),))),), ValueError),
    "a flag that is a text": ((_program(_blocks(containers=((0, b'"a"', b""),))),), TypeError),
    "containers in each other": (
        (_program(_blocks(containers=tuple((each, b'"a"', 0) for each in range(60)))),),
        ValueError,
    ),
    "too many containers": (
        (_program(_blocks(containers=tuple((0, b'"%d"' % n, 0) for n in range(10_001)))),),
        ValueError,
    ),
    "fields of nothing": ((_program(_blocks(allowed=((1, ()),))),), ValueError),
    "a field that is a number": ((_program(_blocks(refused=((0, (5,)),))),), TypeError),
    "a read of nothing": ((_program(_blocks(reads=((1, b'"a"'),))),), ValueError),
    "a read without a name": ((_program(_blocks(reads=((0,),))),), TypeError),
    "a cleaned root": ((_program(_blocks(cleans=((0, 1),))),), ValueError),
    "an operation that nobody knows": ((_ruled(operation=16),), ValueError),
    "an operation below all": ((_ruled(operation=-1),), ValueError),
    "a read behind the last": ((_ruled(first=1),), ValueError),
    "more reads than there are": ((_ruled(count=2),), ValueError),
    "a huge count": ((_ruled(count=2**70),), ValueError),
    "a read of two rules": (
        (_program(_blocks(containers=(SPEC,), reads=(READ,), rules=(_move(), _move()))),),
        ValueError,
    ),
    "no write": ((_ruled(writes=()),), ValueError),
    "a write to nothing": ((_ruled(writes=((2, b'"b"'),)),), ValueError),
    "an anchor that is not there": ((_ruled(anchor=0),), ValueError),
    "a number that is too large": ((_ruled(number=10**19),), ValueError),
    "a number that is none": ((_ruled(number=1.0),), TypeError),
    "a constant that is no JSON": ((_ruled(operation=3, writes=(), words=(b"{",)),), ValueError),
    "a constant that is nothing": ((_ruled(operation=3, writes=(), words=(None,)),), ValueError),
    "words without a pair": ((_ruled(operation=4, words=(b"1",)),), ValueError),
    "a word of one mark": ((_ruled(operation=4, words=(b'"', b"1")),), ValueError),
    "division by zero": ((_ruled(operation=8, number=0),), ValueError),
    "no separator": ((_ruled(operation=9, words=(b"", None, b"")),), ValueError),
    "too few words for a split": ((_ruled(operation=9, words=(b":", None)),), ValueError),
    "a key that is no text": ((_ruled(operation=14, words=(b"1",)),), ValueError),
    "keyed by nothing": ((_ruled(operation=15, words=()),), ValueError),
    "something inside that is no block": ((_ruled(inside=5),), TypeError),
    "too many levels": ((_program(_deep(60)),), ValueError),
}


@pytest.mark.parametrize("name", MALFORMED)
def test_a_malformed_program_is_refused(name: str) -> None:
    programs, error = MALFORMED[name]
    with pytest.raises(error):
        native().table(programs)


def test_a_program_like_those_is_taken_if_nothing_is_wrong_with_it() -> None:
    for blocks in (_blocks(containers=(SPEC,), reads=(READ,), rules=(_move(),)), _deep(50)):
        assert native().table((_program(blocks),)) is not None


def _places(value: Any, at: tuple[int, ...] = ()) -> Iterator[tuple[int, ...]]:
    yield at
    for number, each in enumerate(value if isinstance(value, tuple) else ()):
        yield from _places(each, (*at, number))


def _at(value: Any, place: tuple[int, ...]) -> Any:
    return _at(value[place[0]], place[1:]) if place else value


def _with(value: Any, place: tuple[int, ...], new: Any) -> Any:
    if not place:
        return new
    first = place[0]
    return (*value[:first], _with(value[first], place[1:], new), *value[first + 1 :])


ODD = [0, 1, 2, 7, -1, 2**31, 2**64, b"", b'"', b'"a"', b'"spec"', b"{", None, (), "x", 1.5]


@settings(max_examples=60)
@given(drawn_converters(), st.integers(0, 2**32))
def test_no_program_breaks_it(known: Converter, seed: int) -> None:
    chance = random.Random(seed)
    right: Any = tuple(filter(None, (known.program("v1", "v2"), known.program("v2", "v1"))))
    body = asked({"apiVersion": "stable.example.com/v1", "kind": "CronTab", "spec": SPECS})
    for _ in range(10):
        places = list(_places(right))
        new = chance.choice([*ODD, _at(right, chance.choice(places))])
        try:
            table = native().table(_with(right, chance.choice(places), new))
        except (TypeError, ValueError):
            continue
        native().answer(table, body.replace(b"ex.io", b"stable.example.com"))


SPECS: Object = {"a": {"x": 1}, "b": "b:1", "n": {"a": [{"name": "a"}], "b": {}}, "m": {"a": "7"}}


# Several at once, and again and again.


def test_threads_get_the_same_answers() -> None:
    known = by_rules(_each)
    items = [{"cmd": str(number)} for number in range(100)]
    bodies = [asked(*[thing({"items": items[:size]})] * size) for size in (1, 3, 90)]
    assert len(bodies[2]) > 64 * 1024
    table = native().table((program(known, "v1", "v2"),))
    expected = [native().answer(table, body) for body in bodies]
    wrong: list[object] = []

    def ask() -> None:
        for _ in range(20):
            found = [native().answer(table, body) for body in bodies]
            wrong.extend(each for each in found if each not in expected)

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert wrong == []
    assert all(each is not None and each[3] is None for each in expected)


def test_nothing_is_held_that_was_given() -> None:
    known = by_rules(_each)
    programs = (program(known, "v1", "v2"),)
    body = asked(thing({"items": []}), 1)
    bad: Any = (*programs, None)
    held = [programs, programs[0], body, bad]
    before = [sys.getrefcount(each) for each in held]
    for _ in range(50):
        assert native().answer(native().table(programs), body) is not None
        with pytest.raises(TypeError):
            native().table(bad)
    assert [sys.getrefcount(each) for each in held] == before
