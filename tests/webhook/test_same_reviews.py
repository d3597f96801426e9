"""Reviews are answered with what the interpreter makes of each object, whatever is asked."""

from __future__ import annotations

import copy
import json
import random
import threading
from time import monotonic
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.apis.conversions import (
    DRAWN_FIELDS,
    EVERY_FIELD,
    EVERY_RULE,
    SCHEMAS,
    TEXT,
    converter,
    drawn_converters,
    objects,
    of,
)
from tests.apis.drawn_schemas import Drawn, known_converters, objects_of
from tests.webhook.reviewed import GROUP, KIND, Add, Object, asked, by_rules, thing

from polyver.apis.conversion import Converter, DeclaredEdge, FunctionEdge, Rules
from polyver.webhook import Reviewed, Reviews

Told = tuple[int, Any, dict[tuple[str, str], int], object, str, str]


class NoPaths(dict[tuple[str, str], None]):
    """No conversion path is compiled."""

    def __missing__(self, _: tuple[str, str]) -> None:
        return None


def by_interpreter(known: Converter) -> Converter:
    """The same converter, without compiled rules."""
    made: Any = copy.copy(known)
    made._paths = NoPaths()
    found: Converter = made
    return found


class Pair:
    """The same converters with compiled rules and without."""

    def __init__(self, *known: Converter) -> None:
        self.compiled = Reviews({(each.group, each.kind): each for each in known})
        self.interpreted = Reviews(
            {(each.group, each.kind): by_interpreter(each) for each in known}
        )

    def answer(self, body: bytes, until: float = float("inf")) -> Reviewed:
        """Return the answer, which is the same from both."""
        expected = self.interpreted.answer(body, until)
        # The interpreter decodes all of an object; compiled rules copy what they do not read.
        if b"cannot be read" in expected.body:
            return expected
        for each in (body, bytearray(body)):
            assert told(self.compiled.answer(each, until)) == told(expected)
        return expected

    def objects(self, body: bytes) -> list[Any]:
        found = json.loads(self.answer(body).body)["response"]
        assert found["result"] == {"status": "Success"}
        made: list[Any] = found["convertedObjects"]
        return made


def told(found: Reviewed) -> Told:
    """Return all that an answer says, with the types of its numbers."""
    content = json.loads(
        found.body,
        parse_int=lambda text: ("an integer", int(text)),
        parse_float=lambda text: ("a number", float(text)),
    )
    facts = (found.failed, found.about, repr(found.fault))
    return found.status, content, dict(found.objects), *facts


def crontabs(known: Converter, *given: Object, target: str) -> bytes:
    return asked(*given, desiredAPIVersion=f"{known.group}/{target}")


def named(known: Converter, obj: Object, version: str) -> Object:
    return {"apiVersion": f"{known.group}/{version}", "kind": known.kind, **obj}


# Anything.


@settings(max_examples=60)
@given(drawn_converters(), st.lists(objects(DRAWN_FIELDS), max_size=4), st.data())
def test_any_rules_convert_any_objects_alike(
    known: Converter, things: list[Object], data: st.DataObject
) -> None:
    source, target = (data.draw(st.sampled_from(known.versions)) for _ in range(2))
    pair = Pair(known)
    specs = [each for each in things if isinstance(each.get("spec"), dict)]
    pair.answer(crontabs(known, *[named(known, each, source) for each in things], target=target))
    pair.answer(crontabs(known, *[named(known, each, source) for each in specs], target=target))
    for each in specs:
        pair.answer(crontabs(known, named(known, each, source), target=target))


@settings(max_examples=40)
@given(known_converters(), st.data())
def test_any_schemas_say_the_same_to_both(drawn: Drawn, data: st.DataObject) -> None:
    known, pair = drawn.converter, Pair(drawn.converter)
    source, target = (data.draw(drawn.versions) for _ in range(2))
    things = [data.draw(objects_of(drawn, source)) for _ in range(3)]
    pair.answer(crontabs(known, *things, target=target))
    for each in things:
        pair.answer(crontabs(known, each, target=target))
        pair.answer(crontabs(known, known.convert(each, target), target=source))


SPACES = ["", "", " ", "\n", "\t\r\n "]


class Writer:
    """JSON in any of its forms, as far as one is left to chance."""

    def __init__(self, chance: random.Random) -> None:
        self._chance = chance
        self._odd = chance.choice([0.0, 0.0, 0.02, 0.2])

    def written(self, value: Any) -> str:
        space = self._chance.choice(SPACES) if self._odd else ""
        return space + self._plain(value) + space

    def _plain(self, value: Any) -> str:
        if isinstance(value, dict):
            pairs = list(value.items())
            if self._rarely():
                self._chance.shuffle(pairs)
            if self._rarely():
                pairs += pairs[:1]
            return "{" + ",".join(map(self._pair, pairs)) + "}"
        if isinstance(value, list):
            return "[" + ",".join(map(self.written, value)) + "]"
        if self._rarely():
            return self._chance.choice(ODD)
        return self._text(value) if isinstance(value, str) else json.dumps(value)

    def _pair(self, pair: tuple[str, Any]) -> str:
        return f"{self._text(pair[0])}:{self.written(pair[1])}"

    def _text(self, text: str) -> str:
        if text and self._rarely():
            return f'"\\u{ord(text[0]):04x}{text[1:]}"'
        return json.dumps(text, ensure_ascii=False)

    def _rarely(self) -> bool:
        return self._chance.random() < self._odd


def spoiled(chance: random.Random, body: bytes) -> bytes:
    """A body with a few bytes more, less, or others."""
    made = bytearray(body)
    for _ in range(chance.choice([0, 0, 1, 1, 3])):
        begin = chance.randrange(len(made) + 1)
        end = begin + chance.choice([0, 0, 1, 1, 10])
        new = chance.choice([b"", bytes([chance.randrange(256)]), made[begin:end] * 2])
        made[begin:end] = chance.choice([new, chance.choice([*'{}[]",:\\0-. ', *ODD]).encode()])
    return bytes(made)


EVERY = {known: converter(EVERY_RULE, SCHEMAS if known else None) for known in (False, True)}
USUAL: list[Object] = [
    {"cronSpec": "é", "hostPort": "h:1", "times": "5 * 3", "x": {"a": [1.50, None]}},
    {"replicas": "2", "timeoutSeconds": 3, "envList": [{"name": "a", "value": "b"}]},
    {"containers": [{"name": "a", "cmd": "x"}, {"name": "b"}], "policy": "Allow"},
]
_SPECS = st.sampled_from(USUAL) | objects(EVERY_FIELD).map(lambda obj: obj.get("spec", {}))


@settings(max_examples=150)
@given(st.booleans(), st.lists(_SPECS, max_size=5), st.integers(0, 2**32))
def test_any_text_is_understood_alike(schemas: bool, specs: list[Any], seed: int) -> None:
    chance = random.Random(seed)
    known, writer = EVERY[schemas], Writer(chance)
    things = [named(known, {"metadata": {"name": "a"}, "spec": each}, "v1") for each in specs]
    request = {"uid": "é", "desiredAPIVersion": "stable.example.com/v3", "objects": things}
    about = {"kind": "ConversionReview", "apiVersion": "apiextensions.k8s.io/v1beta1"}
    body = writer.written({**about, "request": request}).encode(errors="surrogatepass")
    pair = Pair(known)
    pair.answer(body)
    pair.answer(spoiled(chance, body))


# Odd texts.

_ODD = [
    "-0 0 00 01 -1 1.0 1.50 -0.0 1e5 1E+2 1e-7 1. .5 1e 1e+ + - -a +1 0x1 1e400 NaN".split(),
    [str(sign * (10**18 + more)) for sign in (1, -1) for more in (-1, 0, 1)],
    [str(2**63 - 1), str(2**63), str(-(2**63)), str(2**64), "1" * 30],
    'null nul nulll true false tru [] [1,] [,] [[]] [null] [{}] {} {,} {1:2} {"a"} {"a":}'.split(),
    ['{"":1}', '{"a":1,"a":2}', '{"a":1,}', '{"a":1 "b":2}', '{"\\u0061":1,"a":2}', "[1 2]", ""],
    ['""', '"', '"\\', '"\\"', '"a\\"b"', '"\\/"', '"\\x"', '"\\u12"', '"\\u00e9"', '"\\u0000"'],
    [
        '"\\ud800"',
        '"\\udc00\\ud800"',
        '"\\ud83d\\ude00"',
        '"\\uD83Dx"',
        '"\\ud7ff\\ue000"',
        '"\\uDBFF"',
    ],
    ['"é"', '"\U0001f600"', '"\x7f"', '"\u2028"', '"\ufeff"', '"\n"', '"\t"', '"\0"', '"a\x1fb"'],
    ['"h:1"', '"h:01"', '"h:-0"', '"h:"', '":"', '"h:1:2"', '"h:\u0661"', '"h: 1"', '"h:+1"'],
    ['"7"', '"08"', '"-7"', '"-0"', '" 7"', '"7 "', '"7.0"', '"999999999999999999"'],
    ['"1000000000000000000"', '"-1000000000000000000"', '"0"', '"00"', '"*"', '"* * *"', '"1 2"'],
    [
        '"Allow"',
        '"1 2 3"',
        '"conversion.polyver.dev/carry"',
        '"x"/**/',
        '"x",',
        "'x'",
        "\ufeff1",
        "\u00a01",
        "\v1",
    ],
]
ODD = [text for texts in _ODD for text in texts]

PLACES = {
    "what no rule knows": '"other":{}',
    "what is moved": '"cronSpec":{}',
    "what is split": '"hostPort":{}',
    "what is split into more": '"times":{}',
    "what is wrapped": '"image":{}',
    "a word": '"policy":{}',
    "what is cast": '"replicas":{}',
    "what is scaled": '"timeoutSeconds":{}',
    "a list with keys": '"envList":[{{"name":"a","value":{}}}]',
    "a key": '"envList":[{{"name":{},"value":1}}]',
    "items": '"containers":[{{"name":"a","cmd":{}}}]',
    "an item": '"containers":[{}]',
}


@pytest.mark.parametrize("place", PLACES)
def test_odd_texts_are_taken_as_the_interpreter_takes_them(place: str) -> None:
    pair = Pair(EVERY[False])
    text = '{{"apiVersion":"stable.example.com/v1","kind":"CronTab","metadata":{},"spec":{{{}}}}}'
    for odd in ODD:
        metadata = ("{}", f'{{"note":{odd}}}')
        things = [text.format(each, PLACES[place].format(odd)) for each in metadata]
        for body in (things[:1], things[:1] * 5 + things[1:]):
            objects_ = [each.encode() for each in body]
            pair.answer(asked(*objects_, desiredAPIVersion="stable.example.com/v2"))


@pytest.mark.parametrize("place", ['"n":{}', '"ms":{}', '"m":{{"a":{}}}', '"all":[{}]', '"all":{}'])
def test_odd_texts_are_taken_alike_on_the_way_back(place: str) -> None:
    def add(rules: Rules) -> None:
        rules.cast("spec.n", "string", "integer")
        rules.scale("spec.s", "spec.ms", 1000)
        rules.keyed("spec.list", "spec.m", key="name")
        rules.wrap("spec.one", "spec.all")

    pair = Pair(by_rules(add))
    for odd in ODD:
        spec = place.format(odd)
        text = f'{{"apiVersion":"ex.io/v2","kind":"Thing","spec":{{{spec}}}}}'
        pair.answer(asked(text.encode(), version="v1"))


MOVED = by_rules(lambda rules: rules.move("spec.a", "spec.b"))
REVIEWS = [
    b'{"request":%s,"kind":"ConversionReview","apiVersion":"apiextensions.k8s.io/v1"}',
    b'{"kind":"ConversionReview","apiVersion":"apiextensions.k8s.io/v1","request":%s} ',
    b'{"kind":"ConversionReview","apiVersion":"apiextensions.k8s.io/v1","request":%s}x',
    b'{"kind":"ConversionReview","apiVersion":"apiextensions.k8s.io/v2","request":%s}',
    b'{"kind":"Review","apiVersion":"apiextensions.k8s.io/v1","request":%s}',
    b'{"kind":"ConversionReview","kind":"x","apiVersion":"apiextensions.k8s.io/v1","request":%s}',
    b'{"kind":"ConversionReview","apiVersion":"apiextensions.k8s.io/v1","request":null,"request":%s}',
    b'{"kind":"ConversionReview","apiVersion":"apiextensions.k8s.io/v1","request":%s,"more":[1]}',
    b'{"kind":"ConversionReview","apiVersion":"apiextensions.k8s.io/v1","request":%s,"request":{}}',
    b'\xef\xbb\xbf{"kind":"ConversionReview","apiVersion":"apiextensions.k8s.io/v1","request":%s}',
    b'[{"kind":"ConversionReview","apiVersion":"apiextensions.k8s.io/v1","request":%s}]',
]
REQUESTS = [
    b'{"desiredAPIVersion":"ex.io/v2","objects":[%s]}',
    b'{"uid":"1","desiredAPIVersion":"ex.io/v2","objects":[%s],"uid":"2"}',
    b'{"desiredAPIVersion":"ex.io/v2","objects":[%s],"uid":"2"}',
    b'{"uid":"1","desiredAPIVersion":"ex.io/v2","objects":[%s],"desiredAPIVersion":"ex.io/v1"}',
    b'{"uid":"1","uid":"2","desiredAPIVersion":"ex.io/v2","objects":[%s]}',
    b'{"uid":"\\u0031","desiredAPIVersion":"ex.io/v2","objects":[%s]}',
    b'{"uid":null,"desiredAPIVersion":"ex.io/v2","objects":[%s]}',
    b'{"uid":"1","objects":[%s],"desiredAPIVersion":"ex.io/v2"}',
    b'{"uid":"1","desiredAPIVersion":"v2","objects":[%s]}',
    b'{"uid":"1","desiredAPIVersion":"ex.io\\/v2","objects":[%s]}',
    b'{"uid":"1","desiredAPIVersion":"other/v2","objects":[%s]}',
    b'{"uid":"1","desiredAPIVersion":"ex.io/v2","objects":[%s,]}',
    b'{"uid":"1","desiredAPIVersion":"ex.io/v2","objects":[%s],"objects":[]}',
    b'{"uid":"1","desiredAPIVersion":"ex.io/v2","objects":null,"objects":[%s]}',
    b'{"uid":"1","desiredAPIVersion":"ex.io/v2","objects":%s}',
    b'{"uid":"1","desiredAPIVersion":"ex.io/v2","objects":[%s],"more":{"a":[]}}',
]
OBJECTS = [
    b'{"apiVersion":"ex.io/v1","kind":"Thing","spec":{"a":1}}',
    b'{"kind":"Thing","spec":{"a":1},"metadata":{},"apiVersion":"ex.io/v1","status":[]}',
    b'{"apiVersion":"ex.io/v1","kind":"Thing","spec":{"a":1},"spec":{"c":1}}',
    b'{"apiVersion":"ex.io/v1","kind":"Thing","spec":{"a":1},"data":{}}',
    b'{"apiVersion":"ex.io/v1","kind":"Thing","spec":{"a":1,"b":2}}',
    b'{"apiVersion":"ex.io/v1","kind":"Thing","spec":null}',
    b'{"apiVersion":"ex.io/v1","kind":"Thing"}',
    b'{"apiVersion":"ex.io/v1","kind":"Thing","metadata":null,"spec":{"a":[1 , 2]}}',
    b'{"apiVersion":"ex.io/v1","kind":"Thing","metadata":{"annotations":'
    b'{"conversion.polyver.dev/carry":"{}"}},"spec":{"a":1}}',
    b'{"apiVersion":"ex.io/v2","kind":"Thing","spec":{"a": 1}}',
    b'{"apiVersion":"ex.io/v3","kind":"Thing","spec":{"a":1}}',
    b'{"apiVersion":"v1","kind":"Thing","spec":{"a":1}}',
    b'{"apiVersion":"ex.io/v1","kind":"Other","spec":{"a":1}}',
    b'{"apiVersion":"ex.io/v1","spec":{"a":1}}',
    b'{"apiVersion":1,"kind":"Thing","spec":{"a":1}}',
    b"null",
    b"",
]


@pytest.mark.parametrize("form", [*REVIEWS, *REQUESTS])
def test_odd_reviews_are_answered_alike(form: bytes) -> None:
    pair = Pair(MOVED)
    usual = OBJECTS[0]
    pair.answer(asked(usual))
    for each in OBJECTS:
        for things in (each, b",".join([usual] * 5 + [each])):
            if form in REVIEWS:
                pair.answer(form % (REQUESTS[0] % things))
            else:
                pair.answer(REVIEWS[1] % (form % things))


# Objects that lose something.


def _split(rules: Rules) -> None:
    rules.split("spec.at", into=["spec.a", "spec.b", "spec.c"], separator=":", absent="*")


OPEN = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
LOST: dict[str, tuple[Add, str, Any, Any]] = {
    "an object that is empty": (
        lambda rules: rules.move("spec.n.a", "spec.m.a"),
        "v1",
        {"n": {}, "x": 1},
        None,
    ),
    "what is dropped": (lambda rules: rules.drop("spec.x"), "v1", {"x": 1}, None),
    "what is in the way": (lambda rules: rules.move("spec.a", "spec.b"), "v1", {"b": 1}, None),
    "a field that only a part of is known of": (
        lambda rules: rules.move("spec.a", "spec.b"),
        "v1",
        {"x": {"c": "1"}},
        (of(a=TEXT, x=OPEN), of(b=TEXT, x=of(a=TEXT))),
    ),
    "a field that is not known": (
        lambda rules: rules.move("spec.a", "spec.b"),
        "v1",
        {"c": "1"},
        (of(a=TEXT) | OPEN, of(b=TEXT)),
    ),
    "what is left of an object": (
        lambda rules: rules.move("spec.n.a", "spec.b"),
        "v1",
        {"n": {"a": "1", "c": 2}},
        (of(n=of(a=TEXT) | OPEN), of(b=TEXT)),
    ),
    "keys in another order": (
        lambda rules: rules.keyed("spec.list", "spec.map", key="name"),
        "v1",
        {"list": [{"name": "b"}, {"name": "a"}]},
        None,
    ),
    "a key that is there twice": (
        lambda rules: rules.keyed("spec.list", "spec.map", key="name"),
        "v1",
        {"list": [{"name": "a"}, {"name": "a"}]},
        None,
    ),
    "more than a key and a value": (
        lambda rules: rules.keyed("spec.list", "spec.map", key="name", value="value"),
        "v1",
        {"list": [{"name": "a", "value": 1, "more": 2}]},
        None,
    ),
    "a key in the rest": (
        lambda rules: rules.keyed("spec.list", "spec.map", key="name"),
        "v2",
        {"map": {"a": {"name": "b"}}},
        None,
    ),
    "two where one can be": (
        lambda rules: rules.wrap("spec.one", "spec.all"),
        "v2",
        {"all": [1, 2]},
        None,
    ),
    "another constant": (lambda rules: rules.const("spec.x", 1), "v2", {"x": 1.0}, None),
    "no constant": (lambda rules: rules.const("spec.x", 1), "v2", {"y": 1}, None),
    "an unknown word": (lambda rules: rules.values("spec.v", {"a": "b"}), "v1", {"v": "c"}, None),
    "a separator in a part": (_split, "v2", {"a": "1:2", "b": "3", "c": "4"}, None),
    "a part that is what stands for none": (_split, "v2", {"a": "*", "b": "1", "c": "2"}, None),
    "too few parts": (_split, "v1", {"at": "1:2"}, None),
    "a product that is too large": (
        lambda rules: rules.scale("spec.s", "spec.ms", 1000),
        "v1",
        {"s": 10**17},
        None,
    ),
    "what is inside and dropped": (
        lambda rules: rules.each("spec.items").drop("x"),
        "v1",
        {"items": [{"x": 1}]},
        None,
    ),
}


@pytest.mark.parametrize("name", LOST)
def test_whatever_is_lost_or_in_the_way_is_preserved_alike(name: str) -> None:
    add, version, spec, specs = LOST[name]
    schemas = specs and {f"v{number}": of(spec=each) for number, each in enumerate(specs, 1)}
    pair = Pair(by_rules(add, schemas=schemas))
    target = "v1" if version == "v2" else "v2"
    pair.objects(asked(thing(spec, version), version=target))
    pair.objects(asked(*[thing({}, version)] * 9, thing(spec, version), version=target))


def test_a_field_may_be_written_into_an_object_that_is_not_there() -> None:
    pair = Pair(by_rules(lambda rules: rules.move("status.a", "spec.b")))
    bare = {"apiVersion": "ex.io/v1", "kind": "Thing", "metadata": {}, "status": {"a": 1}}
    [made] = pair.objects(asked(bare))
    assert made["spec"] == {"b": 1}


def test_rules_inside_of_very_many_rules_are_run() -> None:
    rules = Rules()
    inside = rules
    for _ in range(12):
        inside = inside.within("spec" if inside is rules else "a")
    inside.move("x", "y")
    known = Converter(GROUP, KIND, ["v1", "v2"], [DeclaredEdge("v1", "v2", rules.block())])
    pair = Pair(known)
    assert pair.objects(asked(thing({"b": 1}))) == [thing({"b": 1}, "v2")]


def other(kind: str, **options: Any) -> Converter:
    """Another kind, by functions."""

    def there(obj: Object) -> Object:
        if obj["spec"].get("wrong"):
            raise ValueError("a secret")
        return {**obj, "spec": {"other": obj["spec"]}}

    edge = FunctionEdge("v1", "v2", there, lambda obj: {**obj, "spec": obj["spec"]["other"]})
    return Converter(GROUP, kind, ["v1", "v2"], [edge], **options)


def test_a_few_by_functions_are_put_between_the_others_and_counted() -> None:
    pair = Pair(MOVED, other("Other"))
    many = [thing({"a": number}) for number in range(12)]
    many[3:3] = [{**thing({"a": "other"}), "kind": "Other"}]
    many[0:0] = [thing({"a": 1, "b": "in the way"}), thing({"c": 2}, "v2")]
    for _ in range(2):
        made = pair.objects(asked(*many))
        assert [each["kind"] for each in made] == [each["kind"] for each in many]
        assert made[5]["spec"] == {"other": {"a": "other"}}
        assert made[1] == many[1]
    found = pair.compiled.answer(asked(*many))
    assert dict(found.objects) == {(GROUP, KIND): 13, (GROUP, "Other"): 1}


def test_two_kinds_in_one_review_are_counted_each() -> None:
    rules = Rules()
    rules.move("spec.a", "spec.b")
    edges = [DeclaredEdge("v1", "v2", rules.block())]
    pair = Pair(MOVED, Converter(GROUP, "Second", ["v1", "v2"], edges))
    many = [thing({"a": 1})] * 9 + [{**thing({"a": 1}), "kind": "Second"}]
    pair.answer(asked(many[-1]))
    for _ in range(2):
        found = pair.answer(asked(*many))
    assert dict(found.objects) == {(GROUP, KIND): 9, (GROUP, "Second"): 1}


@pytest.mark.parametrize(
    "odd",
    [
        thing({"a": 1}, "v7"),
        {**thing({"a": 1}), "kind": "Unknown"},
        {**thing({"wrong": True}), "kind": "Other"},
        thing({"large": "x" * 300_000}),
        {"apiVersion": "ex.io/v1"},
        None,
    ],
    ids=["version", "kind", "function", "carry", "no kind", "null"],
)
def test_one_that_cannot_be_converted_is_reported_alike(odd: Any) -> None:
    def add(rules: Rules) -> None:
        rules.move("spec.a", "spec.b")
        rules.drop("spec.large")

    pair = Pair(by_rules(add), other("Other"))
    usual = [thing({"a": number}) for number in range(9)]
    pair.answer(asked(*usual))
    found = pair.answer(asked(*usual[:4], odd, *usual[4:]))
    message = json.loads(found.body)["response"]["result"]["message"]
    assert "(objects[4]) cannot be converted to ex.io/v2" in message
    assert found.failed is not None


def test_who_waits_no_longer_is_told_so() -> None:
    reviews = Reviews({(GROUP, KIND): MOVED})
    late = reviews.answer(asked(*[thing({"a": 1})] * 9), monotonic() - 1)
    message = json.loads(late.body)["response"]["result"]["message"]
    assert message.endswith("the timeout is over with 0 of 9 objects converted")


@pytest.mark.parametrize("name", ["\ud800", "a" * 5000, '"\\', "é"])
def test_any_name_of_a_field_is_one_for_both(name: str) -> None:
    path = "spec[" + json.dumps(name, ensure_ascii=False) + "]"
    pair = Pair(by_rules(lambda rules: rules.move(path, "spec.b")))
    assert pair.objects(asked(thing({"c": 1})))[0]["spec"] == {"c": 1}
    if name != "\ud800":
        assert pair.objects(asked(thing({name: 1})))[0]["spec"] == {"b": 1}


def test_spec_may_become_a_part_of_itself() -> None:
    pair = Pair(by_rules(lambda rules: rules.move("spec", "spec.inner")))
    [made] = pair.objects(asked(thing({"a": 1})))
    assert made["spec"] == {"inner": {"a": 1}}


def test_what_is_kept_in_a_field_is_found_there_by_both() -> None:
    known = by_rules(lambda rules: rules.drop("spec.x"), carry="kept")
    pair = Pair(known)
    [made] = pair.objects(asked(thing({"x": 1, "a": 2})))
    assert made["spec"] == {"a": 2}
    assert pair.objects(asked(made, version="v1"))[0]["spec"] == {"a": 2, "x": 1}
    pair.objects(asked(thing({"a": 2})))


def test_threads_compile_paths_beside_each_other() -> None:
    known = EVERY[False]
    reviews = Reviews({(known.group, known.kind): known})
    things = named(known, {"metadata": {}, "spec": USUAL[0]}, "v1")
    pairs = [(one, two) for one in known.versions for two in known.versions if one != two]
    bodies = [crontabs(known, *[known.convert(things, one)] * 9, target=two) for one, two in pairs]
    interpreted = Reviews({(known.group, known.kind): by_interpreter(known)})
    expected = [told(interpreted.answer(body)) for body in bodies]
    wrong: list[object] = []

    def ask(start: int) -> None:
        for turn in range(12):
            number = (start + turn) % len(bodies)
            found = told(reviews.answer(bodies[number]))
            if found != expected[number]:
                wrong.append(found)

    threads = [threading.Thread(target=ask, args=[start]) for start in range(6)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert wrong == []
