"""Every rule: there and back, what it cannot express, what edits do, and how much is carried."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from tests.apis.conversions import (
    EVERY_RULE,
    MAP,
    SCHEMAS,
    TEXT,
    WHOLE,
    converter,
    crontab,
    listed,
    of,
)

from polyver.apis.conversion import ANNOTATION, CarryTooLarge, Converter, DeclaredEdge, Rules
from polyver.languages.values.strings import same

Object = dict[str, Any]
Writer = Callable[[Rules], object]
PLAIN, KNOWN = converter(EVERY_RULE), converter(EVERY_RULE, SCHEMAS)
OTHER = {"v1": "v2", "v2": "v1"}


def edge(write: Writer, schemas: Mapping[str, Any] | None = None) -> Converter:
    rules = Rules()
    write(rules)
    edges = [DeclaredEdge("v1", "v2", rules.block())]
    return Converter("stable.example.com", "CronTab", ["v1", "v2"], edges, schemas=schemas)


def carry(obj: Object) -> Any:
    text = obj["metadata"].get("annotations", {}).get(ANNOTATION)
    return json.loads(text)["lost"] if text else {}


def move(e: Rules) -> None:
    e.move("spec.cronSpec", "spec.schedule")


def split(e: Rules) -> None:
    into = ("spec.host", "spec.port")
    e.split("spec.hostPort", into=into, separator=":", types=("string", "integer"))


def split_with_a_text_for_none(e: Rules) -> None:
    into = ("spec.at.minute", "spec.at.hour", "spec.at.day")
    e.split("spec.times", into=into, separator=" ", absent="*")


def wrap(e: Rules) -> None:
    e.wrap("spec.image", "spec.images")


def values(e: Rules) -> None:
    e.values("spec.policy", {"Allow": "allow", "Forbid": "forbid", "1": 1, "yes": True})


def cast(e: Rules) -> None:
    e.cast("spec.replicas", "string", "integer")


def scale(e: Rules) -> None:
    e.scale("spec.timeoutSeconds", "spec.timeoutMillis", 1000)


def keyed(e: Rules) -> None:
    e.keyed("spec.envList", "spec.env", key="name", value="value")


def keyed_by_the_rest(e: Rules) -> None:
    e.keyed("spec.ports", "spec.portMap", key="name")


def drop(e: Rules) -> None:
    e.drop("spec.legacyMode")


def add(e: Rules) -> None:
    e.add("spec.newMode")


def const(e: Rules) -> None:
    e.const("spec.engine", "cron")


def each(e: Rules) -> None:
    inside = e.each("spec.containers", key="name")
    inside.move("cmd", "command")
    inside.drop("debug")


def within(e: Rules) -> None:
    e.within("spec.old", to="spec.new").move("a", "b")


def nested(e: Rules) -> None:
    ports = e.each("spec.containers", key="name").each("ports", key="name")
    ports.cast("number", "string", "integer")


def annotation(e: Rules) -> None:
    e.move('metadata.annotations["ex.io/mode"]', "spec.mode")


def label(e: Rules) -> None:
    e.move("metadata.labels.tier", "spec.tier")


@pytest.mark.parametrize(
    ("write", "old", "new"),
    [
        (move, {"cronSpec": "@daily"}, {"schedule": "@daily"}),
        (move, {"cronSpec": {"a": [1]}}, {"schedule": {"a": [1]}}),
        (move, {"cronSpec": None}, {"schedule": None}),
        (move, {"other": 1}, {"other": 1}),
        (split, {"hostPort": "a:80"}, {"host": "a", "port": 80}),
        (split, {"hostPort": "a"}, {"host": "a"}),
        (split, {"hostPort": ":80"}, {"host": "", "port": 80}),
        (split, {}, {}),
        (split_with_a_text_for_none, {"times": "5 * 3"}, {"at": {"minute": "5", "day": "3"}}),
        (split_with_a_text_for_none, {"times": "* 4 *"}, {"at": {"hour": "4"}}),
        (
            split_with_a_text_for_none,
            {"times": "1 2 3 4"},
            {"at": {"minute": "1", "hour": "2", "day": "3 4"}},
        ),
        (split_with_a_text_for_none, {"at": {}}, {"at": {}}),
        (wrap, {"image": "a"}, {"images": ["a"]}),
        (wrap, {"image": {"name": "a"}}, {"images": [{"name": "a"}]}),
        (values, {"policy": "Allow"}, {"policy": "allow"}),
        (values, {"policy": "Forbid"}, {"policy": "forbid"}),
        (values, {"policy": "1"}, {"policy": 1}),
        (values, {"policy": "yes"}, {"policy": True}),
        (cast, {"replicas": "3"}, {"replicas": 3}),
        (cast, {"replicas": "-3"}, {"replicas": -3}),
        (scale, {"timeoutSeconds": 3}, {"timeoutMillis": 3000}),
        (scale, {"timeoutSeconds": -1}, {"timeoutMillis": -1000}),
        (keyed, {"envList": [{"name": "a", "value": "b"}]}, {"env": {"a": "b"}}),
        (keyed, {"envList": []}, {"env": {}}),
        (keyed_by_the_rest, {"ports": [{"name": "a", "x": 1}]}, {"portMap": {"a": {"x": 1}}}),
        (const, {}, {"engine": "cron"}),
        (
            each,
            {"containers": [{"name": "a", "cmd": 1}]},
            {"containers": [{"name": "a", "command": 1}]},
        ),
        (each, {"containers": {"a": {"cmd": 1}}}, {"containers": {"a": {"command": 1}}}),
        (each, {"containers": [1, None]}, {"containers": [1, None]}),
        (within, {"old": {"a": 1, "c": 2}}, {"new": {"b": 1, "c": 2}}),
        (
            nested,
            {"containers": [{"name": "a", "ports": [{"name": "b", "number": "8"}]}]},
            {"containers": [{"name": "a", "ports": [{"name": "b", "number": 8}]}]},
        ),
    ],
)
def test_a_rule_reads_both_ways(write: Writer, old: Object, new: Object) -> None:
    """With nothing carried in either direction."""
    known = edge(write)
    assert same(known.convert(crontab("v1", **old), "v2"), crontab("v2", **new))
    assert same(known.convert(crontab("v2", **new), "v1"), crontab("v1", **old))


LOSSY: list[tuple[Writer, str, Object, Object]] = [
    # What the other version cannot express, and what it shows instead.
    (move, "v1", {"cronSpec": "a", "schedule": "b"}, {"schedule": "a"}),
    (split, "v1", {"hostPort": "a:080"}, {"host": "a", "port": 80}),
    (split, "v1", {"hostPort": "a:b"}, {"host": "a"}),
    (split, "v1", {"hostPort": "a:1:2"}, {"host": "a"}),
    (split, "v1", {"hostPort": 80}, {}),
    (split, "v2", {"port": 80}, {}),
    (split, "v2", {"host": "a:b", "port": 80}, {"hostPort": "a:b:80"}),
    (split, "v2", {"host": "a", "port": "80"}, {"hostPort": "a"}),
    (split_with_a_text_for_none, "v1", {"times": "5"}, {"at": {"minute": "5"}}),
    (split_with_a_text_for_none, "v1", {"times": "* * *"}, {}),
    (split_with_a_text_for_none, "v2", {"at": {"minute": "*", "hour": "1"}}, {"times": "* 1 *"}),
    (wrap, "v2", {"images": ["a", "b", "c"]}, {"image": "a"}),
    (wrap, "v2", {"images": []}, {}),
    (wrap, "v2", {"images": "a"}, {}),
    (wrap, "v1", {"image": None}, {}),
    (values, "v1", {"policy": "Replace"}, {}),
    (values, "v1", {"policy": "allow"}, {}),
    (values, "v2", {"policy": "Allow"}, {}),
    (values, "v2", {"policy": {"a": 1}}, {}),
    (cast, "v1", {"replicas": "abc"}, {}),
    (cast, "v1", {"replicas": "08080"}, {"replicas": 8080}),
    (cast, "v1", {"replicas": "+1"}, {"replicas": 1}),
    (cast, "v1", {"replicas": "9" * 30}, {}),
    (cast, "v1", {"replicas": 3}, {}),
    (cast, "v2", {"replicas": True}, {}),
    (scale, "v2", {"timeoutMillis": 1500}, {"timeoutSeconds": 1}),
    (scale, "v2", {"timeoutMillis": -1500}, {"timeoutSeconds": -1}),
    (scale, "v1", {"timeoutSeconds": 2**62}, {}),
    (scale, "v1", {"timeoutSeconds": "3"}, {}),
    (keyed, "v1", {"envList": [{"name": "a", "value": "b"}] * 2}, {"env": {"a": "b"}}),
    (keyed, "v1", {"envList": [{"name": "a", "value": "b", "note": "c"}]}, {"env": {"a": "b"}}),
    (keyed, "v1", {"envList": [{"name": "a"}]}, {"env": {}}),
    (keyed, "v1", {"envList": ["a"]}, {"env": {}}),
    (
        keyed,
        "v1",
        {"envList": [{"name": "b", "value": "1"}, {"name": "a", "value": "2"}]},
        {"env": {"a": "2", "b": "1"}},
    ),
    (
        keyed_by_the_rest,
        "v2",
        {"portMap": {"a": {"x": 1}, "b": 5}},
        {"ports": [{"name": "a", "x": 1}]},
    ),
    (drop, "v1", {"legacyMode": {"a": [None]}}, {}),
    (drop, "v2", {"legacyMode": 1}, {}),
    (add, "v2", {"newMode": "a"}, {}),
    (const, "v2", {"engine": "other"}, {}),
    (const, "v2", {}, {}),
    (const, "v1", {"engine": "other"}, {"engine": "cron"}),
    (
        each,
        "v1",
        {"containers": [{"name": "a", "cmd": 1, "command": 2, "debug": 3}, {"name": "b"}]},
        {"containers": [{"name": "a", "command": 1}, {"name": "b"}]},
    ),
    (each, "v1", {"containers": {"a": {"debug": 1}}}, {"containers": {"a": {}}}),
    (within, "v2", {"new": {"a": 1, "b": 2}}, {"old": {"a": 2}}),
    (
        nested,
        "v1",
        {"containers": [{"name": "a", "ports": [{"name": "b", "number": "x"}]}]},
        {"containers": [{"name": "a", "ports": [{"name": "b"}]}]},
    ),
]


@pytest.mark.parametrize(("write", "version", "spec", "shown"), LOSSY)
def test_what_a_rule_cannot_express_survives(
    write: Writer, version: str, spec: Object, shown: Object
) -> None:
    known, obj = edge(write), crontab(version, **spec)
    made = known.convert(obj, OTHER[version])
    assert same(made["spec"], shown)
    assert [*carry(made)] == [version]
    assert same(known.convert(made, version), obj)


@pytest.mark.parametrize(("write", "version", "spec", "shown"), LOSSY)
def test_an_edit_elsewhere_survives_together_with_what_was_carried(
    write: Writer, version: str, spec: Object, shown: Object
) -> None:
    known = edge(write)
    made = known.convert(crontab(version, **spec), OTHER[version])
    made["spec"]["other"] = 5
    made["metadata"]["labels"] = {"a": "b"}
    back = known.convert(made, version)
    assert same(back["spec"], {**spec, "other": 5})
    assert back["metadata"] == {"name": "a", "labels": {"a": "b"}}


@pytest.mark.parametrize(
    ("write", "version", "spec", "edit", "expected"),
    [
        (split, "v1", {"hostPort": "a:080"}, {"host": "b"}, {"hostPort": "b:80"}),
        (split, "v1", {"hostPort": "a:b"}, {"port": 9}, {"hostPort": "a:9"}),
        (split, "v2", {"port": 80}, {"hostPort": "a"}, {"host": "a"}),
        (
            split_with_a_text_for_none,
            "v1",
            {"times": "5"},
            {"at": {"hour": "6"}},
            {"times": "* 6 *"},
        ),
        (wrap, "v2", {"images": []}, {"image": "b"}, {"images": ["b"]}),
        (values, "v1", {"policy": "Replace"}, {"policy": "allow"}, {"policy": "Allow"}),
        (cast, "v1", {"replicas": "abc"}, {"replicas": 5}, {"replicas": "5"}),
        (cast, "v1", {"replicas": "08080"}, {"replicas": 5}, {"replicas": "5"}),
        (scale, "v2", {"timeoutMillis": 1500}, {"timeoutSeconds": 2}, {"timeoutMillis": 2000}),
        (
            keyed,
            "v1",
            {"envList": [{"name": "a", "value": "b"}] * 2},
            {"env": {"c": "d"}},
            {"envList": [{"name": "c", "value": "d"}]},
        ),
        (
            each,
            "v1",
            {"containers": [{"name": "a", "debug": 1}]},
            {"containers": [{"name": "b"}]},
            {"containers": [{"name": "b"}]},
        ),
    ],
)
def test_an_edit_of_what_it_belongs_to_makes_a_carry_stale(
    write: Writer, version: str, spec: Object, edit: Object, expected: Object
) -> None:
    known, other = edge(write), OTHER[version]
    made = known.convert(crontab(version, **spec), other)
    made["spec"].update(edit)
    back = known.convert(made, version)
    assert same(back, crontab(version, **expected))


@pytest.mark.parametrize(
    ("write", "version", "spec", "edit", "expected"),
    [
        # The first image is another one: those behind it are still there.
        (wrap, "v2", {"images": ["a", "b"]}, {"image": "c"}, {"images": ["c", "b"]}),
        (
            keyed,
            "v1",
            {"envList": [{"name": "b", "value": "1", "note": "x"}, {"name": "a", "value": "2"}]},
            {"env": {"a": "3", "b": "1", "c": "4"}},
            {
                "envList": [
                    {"name": "b", "value": "1", "note": "x"},
                    {"name": "a", "value": "3"},
                    {"name": "c", "value": "4"},
                ]
            },
        ),
        (
            keyed,
            "v1",
            {"envList": [{"name": "a"}, {"name": "b", "value": "1"}]},
            {"env": {"b": "2"}},
            {"envList": [{"name": "a"}, {"name": "b", "value": "2"}]},
        ),
        (
            nested,
            "v1",
            {"containers": [{"name": "a", "ports": [{"name": "b", "number": "08"}]}]},
            {"containers": [{"name": "a", "ports": [{"name": "c"}, {"name": "b", "number": 8}]}]},
            {
                "containers": [
                    {"name": "a", "ports": [{"name": "c"}, {"name": "b", "number": "08"}]}
                ]
            },
        ),
    ],
)
def test_an_edit_beside_it_leaves_the_rest_of_a_carry(
    write: Writer, version: str, spec: Object, edit: Object, expected: Object
) -> None:
    known = edge(write)
    made = known.convert(crontab(version, **spec), OTHER[version])
    made["spec"].update(edit)
    assert same(known.convert(made, version), crontab(version, **expected))


def test_a_stale_carry_is_never_resurrected() -> None:
    """Even if the field gets its old value again in a version further away."""
    for known in (PLAIN, KNOWN):
        v3 = known.convert(crontab("v1", hostPort="a:080", cronSpec="b"), "v3")
        v3["spec"]["port"] = 9
        v2 = known.convert(v3, "v2")
        assert "spec.hostPort" not in carry(v2).get("v1", {})
        v2["spec"]["port"] = 80
        assert known.convert(v2, "v1")["spec"]["hostPort"] == "a:80"


def test_what_a_version_lost_stays_with_it_on_any_way() -> None:
    old = crontab("v1", hostPort="a:080", image="i", legacyMode={"a": 1}, policy="Other")
    obj = old
    for version in ("v2", "v3", "v2", "v3", "v2"):
        obj = PLAIN.convert(obj, version)
        assert [*carry(obj)] == ["v1"]
    assert PLAIN.convert(obj, "v1") == old


# Lists


def drop_in_items(e: Rules) -> None:
    e.each("spec.containers").drop("debug")


def drop_by_key(e: Rules) -> None:
    e.each("spec.containers", key="name").drop("debug")


TWO = [{"name": "a", "debug": 1}, {"name": "b", "debug": 2}]


def test_items_are_matched_by_their_key_however_they_are_ordered() -> None:
    known = edge(drop_by_key)
    made = known.convert(crontab("v1", containers=TWO), "v2")
    made["spec"]["containers"] = [{"name": "c"}, {"name": "b", "x": 1}, {"name": "a"}]
    assert known.convert(made, "v1")["spec"]["containers"] == [
        {"name": "c"},
        {"name": "b", "x": 1, "debug": 2},
        {"name": "a", "debug": 1},
    ]


def test_without_a_key_items_are_matched_by_position_and_only_if_unchanged() -> None:
    known = edge(drop_in_items)
    made = known.convert(crontab("v1", containers=TWO), "v2")
    made["spec"]["containers"][1]["x"] = 1
    assert known.convert(made, "v1")["spec"]["containers"] == [
        {"name": "a", "debug": 1},
        {"name": "b", "x": 1},
    ]
    made["spec"]["containers"].reverse()
    assert known.convert(made, "v1")["spec"]["containers"] == [{"name": "b", "x": 1}, {"name": "a"}]


def test_the_keys_of_a_schema_tell_items_apart() -> None:
    keyed = {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]}
    old = {**listed(name=TEXT, debug=WHOLE), **keyed}
    new = {**listed(name=TEXT), **keyed}
    schemas = {"v1": of(spec=of(containers=old)), "v2": of(spec=of(containers=new))}
    for write in (drop_in_items, lambda _: None):
        known = edge(write, schemas)
        made = known.convert(crontab("v1", containers=TWO), "v2")
        assert made["spec"]["containers"] == [{"name": "a"}, {"name": "b"}]
        made["spec"]["containers"].reverse()
        assert known.convert(made, "v1")["spec"]["containers"] == TWO[::-1]


def test_items_with_one_key_twice_are_matched_by_position() -> None:
    known = edge(drop_by_key)
    old = crontab("v1", containers=[TWO[0], {"name": "a", "debug": 2}])
    assert known.convert(known.convert(old, "v2"), "v1") == old


def test_a_key_may_have_another_name_in_the_other_version() -> None:
    def write(e: Rules) -> None:
        inside = e.each("spec.containers", key="name")
        inside.move("name", "id")
        inside.drop("debug")

    known = edge(write)
    made = known.convert(crontab("v1", containers=TWO), "v2")
    assert made["spec"]["containers"] == [{"id": "a"}, {"id": "b"}]
    made["spec"]["containers"].reverse()
    assert known.convert(made, "v1")["spec"]["containers"] == TWO[::-1]


# What schemas say


def test_a_field_that_the_other_schema_lacks_is_carried_without_a_rule() -> None:
    old = crontab("v1", only1={"a": "x", "b": 1}) | {"status": {"ready": 1}}
    made = KNOWN.convert(old, "v2")
    assert (made["spec"], "status" in made) == ({"engine": "cron"}, False)
    assert carry(made) == {
        "v1": {"spec.only1": {"is": {"a": "x", "b": 1}}, "status": {"is": {"ready": 1}}}
    }
    assert KNOWN.convert(made, "v1") == old


def test_without_schemas_unknown_fields_are_passed_on() -> None:
    made = PLAIN.convert(crontab("v1", only1={"a": "x"}), "v2")
    assert made["spec"] == {"only1": {"a": "x"}, "engine": "cron"}


def test_defaults_that_the_server_fills_in_are_no_edit() -> None:
    old = crontab("v1", hostPort="a", times="* * *")
    made = KNOWN.convert(old, "v2")
    KNOWN.schemas["v2"].default(made)
    assert (made["spec"]["port"], made["spec"]["at"]) == (80, {"minute": "5"})
    assert KNOWN.convert(made, "v1")["spec"]["times"] == "* * *"


def test_unknown_fields_are_kept_where_the_schema_preserves_them() -> None:
    known = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    schemas = {"v1": of(spec=of(a=known)), "v2": of(spec=of(a=of(b=TEXT)))}
    one = edge(lambda _: None, schemas)
    old = crontab("v1", a={"b": "x", "c": {"d": [1]}})
    made = one.convert(old, "v2")
    assert made["spec"] == {"a": {"b": "x"}}
    made["spec"]["a"]["b"] = "y"
    assert one.convert(made, "v1")["spec"]["a"] == {"b": "y", "c": {"d": [1]}}


def test_values_of_maps_lose_what_the_other_schema_lacks() -> None:
    old = {"type": "object", "additionalProperties": of(a=TEXT, b=TEXT)}
    new = {"type": "object", "additionalProperties": of(a=TEXT)}
    one = edge(lambda _: None, {"v1": of(spec=of(m=old, n=MAP)), "v2": of(spec=of(m=new, n=MAP))})
    before = crontab("v1", m={"x": {"a": "1", "b": "2"}, "y": {"b": "3"}}, n={"p": "q"})
    made = one.convert(before, "v2")
    assert made["spec"] == {"m": {"x": {"a": "1"}, "y": {}}, "n": {"p": "q"}}
    del made["spec"]["m"]["y"]
    assert one.convert(made, "v1")["spec"]["m"] == {"x": {"a": "1", "b": "2"}}


# Metadata


def test_annotations_and_labels_can_be_fields() -> None:
    for write, place, name, field in [
        (annotation, "annotations", "ex.io/mode", "mode"),
        (label, "labels", "tier", "tier"),
    ]:
        known = edge(write)
        old = crontab("v1") | {"metadata": {"name": "a", place: {name: "x", "b": "c"}}}
        new = crontab("v2", **{field: "x"}) | {"metadata": {"name": "a", place: {"b": "c"}}}
        assert known.convert(old, "v2") == new
        assert known.convert(new, "v1") == old


def test_what_can_be_no_label_is_carried() -> None:
    known = edge(label)
    for value in (5, "not a label", "x" * 64, {"a": 1}):
        new = crontab("v2", tier=value)
        made = known.convert(new, "v1")
        assert "labels" not in made["metadata"]
        assert known.convert(made, "v2") == new


def test_an_annotations_map_that_conversion_made_goes_with_the_carry() -> None:
    old = crontab("v1", policy="Other")
    made = PLAIN.convert(old, "v2")
    assert [*made["metadata"]["annotations"]] == [ANNOTATION]
    assert PLAIN.convert(made, "v1")["metadata"] == {"name": "a"}
    old["metadata"]["annotations"] = {}
    assert PLAIN.convert(PLAIN.convert(old, "v2"), "v1") == old
    old["metadata"]["annotations"] = {"b": "c"}
    made = PLAIN.convert(old, "v2")
    assert {*made["metadata"]["annotations"]} == {"b", ANNOTATION}
    assert PLAIN.convert(made, "v1") == old


def test_the_carry_is_json_in_a_known_format() -> None:
    made = PLAIN.convert(crontab("v1", legacyMode="x"), "v3")
    text = made["metadata"]["annotations"][ANNOTATION]
    assert text == '{"format":1,"lost":{"v1":{"spec.legacyMode":{"is":"x"}}}}'


def test_who_loses_the_carry_has_what_is_visible() -> None:
    made = PLAIN.convert(crontab("v1", hostPort="a:080", legacyMode="x"), "v2")
    del made["metadata"]["annotations"]
    assert PLAIN.convert(made, "v1")["spec"] == {"hostPort": "a:80"}


def test_a_carry_is_bounded_and_says_what_is_too_large() -> None:
    old = crontab("v1", legacyMode="x" * 200_000, policy="y" * 70_000, image="a")
    before = copy.deepcopy(old)
    for version in ("v2", "v3"):
        with pytest.raises(CarryTooLarge) as caught:
            PLAIN.convert(old, version)
        assert str(caught.value) == (
            "preserved fields take 270106 bytes, and at most 262116 are allowed: "
            "spec.legacyMode of v1 (200009 bytes), spec.policy of v1 (70035 bytes); "
            "make these fields smaller, or add fields for them to the other versions"
        )
    assert old == before
    old["spec"]["policy"] = "y" * 1000
    assert PLAIN.convert(PLAIN.convert(old, "v3"), "v1") == old


def test_the_other_annotations_count_as_well() -> None:
    """An API server allows so much in all, and refuses a conversion that brings more."""
    old = crontab("v1", legacyMode="x" * 200_000)
    old["metadata"]["annotations"] = {"note": "ü" * 30_000}
    for convert in (PLAIN.convert, raw):
        assert convert(old, "v2")["metadata"]["annotations"].keys() == {"note", ANNOTATION}
        old["metadata"]["annotations"]["note"] = "ü" * 31_100
        with pytest.raises(
            CarryTooLarge, match=r"take 200056 bytes, and at most 199912 are allowed"
        ):
            convert(old, "v2")
        old["metadata"]["annotations"]["note"] = "ü" * 30_000


def raw(obj: Object, version: str) -> Object:
    made: Object = json.loads(PLAIN.convert_raw(json.dumps(obj).encode(), version))
    return made


# Partial objects, and others


@pytest.mark.parametrize(
    "rest",
    [
        {},
        {"metadata": {}},
        {"metadata": None},
        {"metadata": {"name": "a"}},
        {"metadata": {"name": "a", "annotations": None}},
        {"metadata": {"name": "a"}, "status": {"a": 1}},
        {"metadata": {"name": "a"}, "spec": {}},
        {"metadata": {"name": "a"}, "spec": None},
        {"metadata": {"name": "a"}, "spec": "text"},
        {"metadata": {"name": "a"}, "spec": []},
    ],
)
def test_partial_objects_convert(rest: Object) -> None:
    for source in PLAIN.versions:
        obj = {"apiVersion": f"stable.example.com/{source}", "kind": "CronTab", **rest}
        for target in PLAIN.versions:
            made = PLAIN.convert(obj, target)
            assert made["apiVersion"] == f"stable.example.com/{target}"
            assert same(PLAIN.convert(made, source), obj)
            assert "spec" in made or "spec" not in rest
            assert "spec" not in made or "spec" in rest


def test_conversion_fills_in_nothing_and_checks_nothing() -> None:
    old = crontab("v1", timeoutSeconds="never", unknown=1)
    assert KNOWN.convert(old, "v1") == old
    assert "port" not in KNOWN.convert(old, "v2")["spec"]
    assert KNOWN.convert(KNOWN.convert(old, "v2"), "v1") == old
