"""Server-side apply and managedFields: what a user sees of who owns what."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.kube.applies import GROUP, SCHEMAS

from polyver.kube.objects.apply import (
    Entry,
    Fields,
    Scope,
    apply,
    resets_of,
    times_kept,
    track_scale,
    track_update,
)
from polyver.kube.objects.apply._fields import difference, union
from polyver.kube.objects.apply._types import type_of
from polyver.kube.objects.apply._walk import compare
from polyver.kube.objects.builtin import shape_of
from polyver.kube.objects.schema import compile_schema
from polyver.kube.objects.status import ApiError
from polyver.kube.objects.type_shapes import Shape

Object = dict[str, Any]
VERSION = f"{GROUP}/v1"
COMPILED = {version: compile_schema(schema) for version, schema in SCHEMAS.items()}
SHAPES = {version: schema.shape for version, schema in COMPILED.items()}
THINGS = Scope(VERSION, "Thing", SHAPES, resets=resets_of(VERSION))
CONFIGMAPS = Scope("v1", "ConfigMap", {"v1": shape_of("", "v1", "ConfigMap")})
EARLIER, NOW = "2026-01-31T11:00:00Z", "2026-01-31T12:00:00Z"
LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"


def _thing(spec: Object | None = None, **metadata: Any) -> Object:
    found = {"apiVersion": VERSION, "kind": "Thing", "metadata": {"name": "a", **metadata}}
    return found if spec is None else {**found, "spec": spec}


def _data(data: Object, **metadata: Any) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "a", **metadata},
        "data": data,
    }


def _with(value: Object, entries: list[Entry]) -> Object:
    return {**value, "metadata": {**value["metadata"], "managedFields": entries}}


def _applied(
    live: Object | None, config: Object, manager: str, *, force: bool = False, now: str = NOW
) -> Object:
    found, entries = apply(live, config, scope=THINGS, manager=manager, force=force, now=now)
    return _with(found, entries)


def _updated(old: Object | None, new: Object, manager: str, now: str = NOW) -> Object:
    return _with(new, track_update(old, new, scope=THINGS, manager=manager, now=now))


def _owned(value: Object, manager: str) -> Fields:
    entries = value["metadata"]["managedFields"]
    found: Fields = next(each["fieldsV1"] for each in entries if each["manager"] == manager)
    return found


texts = st.sampled_from("xyz")
maps = st.dictionaries(st.sampled_from("klm"), texts)
ports = st.lists(
    st.fixed_dictionaries(
        {"port": st.sampled_from([9, 10, 80])},
        optional={"protocol": st.sampled_from(["TCP", "UDP"]), "name": texts},
    ),
    max_size=3,
    unique_by=lambda port: (port["port"], port.get("protocol", "TCP")),
)
anything = st.recursive(
    st.none() | st.booleans() | st.integers(0, 2) | texts,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(texts, inner, max_size=2),
    max_leaves=4,
)
specs = st.fixed_dictionaries(
    {},
    optional={
        "color": texts,
        "note": texts | st.none(),
        "size": st.integers(0, 2) | texts,
        "limits": maps,
        "frozen": maps,
        "tags": st.lists(texts, max_size=3, unique=True),
        "args": st.lists(texts, max_size=2),
        "ports": ports,
        "inner": st.fixed_dictionaries({}, optional={"a": texts, "b": st.just({"c": "x"})}),
        "extra": st.dictionaries(texts, anything, max_size=2),
    },
)
few = settings(max_examples=40)  # besides them hundreds of recorded writes
LEAVES = ("color", "note", "size", "frozen", "args")
managers = st.sampled_from(["ann", "bob", "cyd"])
writes = st.lists(st.tuples(st.sampled_from(["apply", "update"]), managers, specs), max_size=5)


def _after(history: list[tuple[str, str, Object]]) -> Object | None:
    """An object after some writes; those that conflict are forced."""
    live: Object | None = None
    for operation, manager, spec in history:
        if operation == "apply":
            live = _applied(live, _thing(spec), manager, force=True)
        else:
            live = _updated(live, _thing(spec), manager)
    return live


def _all_fields(value: Object) -> Fields:
    return compare(THINGS.empty, value, type_of(SHAPES[VERSION])).added


def _dense(value: Any) -> Any:
    """A value without anything in it that holds nothing."""
    if isinstance(value, dict):
        inner = {key: _dense(each) for key, each in value.items()}
        return {key: each for key, each in inner.items() if each not in ({}, [], None)}
    return [_dense(each) for each in value] if isinstance(value, list) else value


@few
@given(writes, managers, specs.map(_dense))
def test_applying_the_same_again_changes_nothing(
    history: list[tuple[str, str, Object]], manager: str, spec: Object
) -> None:
    # What holds nothing may go or become null with its last neighbour, as on the real server.
    dense = [(operation, who, _dense(each)) for operation, who, each in history]
    once = _applied(_after(dense), _thing(spec or None), manager, force=True, now=EARLIER)
    again = _applied(once, _thing(spec or None), manager, now=NOW)
    assert again == once


@few
@given(writes, managers, specs)
def test_what_is_forced_is_there_afterwards(
    history: list[tuple[str, str, Object]], manager: str, spec: Object
) -> None:
    found = _applied(_after(history), _thing(spec), manager, force=True).get("spec") or {}
    for key in LEAVES:
        if key in spec:
            assert found[key] == spec[key]
    assert set(spec.get("tags", ())) <= set(found.get("tags") or ())
    names = [port["port"] for port in found.get("ports") or ()]
    assert {port["port"] for port in spec.get("ports", ())} <= set(names)


@few
@given(writes)
def test_nobody_owns_what_is_not_there(history: list[tuple[str, str, Object]]) -> None:
    live = _after(history)
    entries = live["metadata"]["managedFields"] if live else []
    # Who applied nothing inside of it keeps the spec that went, as on the real server.
    known = union(_all_fields(live or {}), {"f:spec": {}})
    for entry in entries:
        assert not difference(entry["fieldsV1"], known)


@few
@given(writes, managers, specs)
def test_an_apply_adds_nothing_that_nobody_wrote(
    history: list[tuple[str, str, Object]], manager: str, spec: Object
) -> None:
    live = _after(history)
    found = _applied(live, _thing(spec), manager, force=True)
    known = union(_all_fields(live or {}), _all_fields(_thing(spec)))
    assert not difference(_all_fields(found), union(known, {"f:metadata": {"f:managedFields": {}}}))


@few
@given(writes, managers, specs)
def test_what_is_given_stays_as_it_is(
    history: list[tuple[str, str, Object]], manager: str, spec: Object
) -> None:
    live, config = _after(history), _thing(spec)
    before = copy.deepcopy((live, config))
    _applied(live, config, manager, force=True)
    assert (live, config) == before


@few
@given(writes, specs)
def test_without_others_nothing_conflicts(
    history: list[tuple[str, str, Object]], spec: Object
) -> None:
    mine = [("apply", "ann", each) for _, _, each in history]
    found = _applied(_after(mine), _thing(spec), "ann")
    for key in LEAVES:
        if key in spec:
            assert found["spec"][key] == spec[key]


def test_an_update_owns_what_it_changes_and_loses_what_it_removes() -> None:
    live = _updated(None, _thing({"color": "x", "tags": ["a"]}), "ann", EARLIER)
    live = _updated(live, _thing({"color": "y", "tags": ["a", "b"]}), "bob")
    assert _owned(live, "ann") == {"f:spec": {".": {}, "f:tags": {".": {}, 'v:"a"': {}}}}
    assert _owned(live, "bob") == {"f:spec": {"f:color": {}, "f:tags": {'v:"b"': {}}}}
    assert [each["time"] for each in live["metadata"]["managedFields"]] == [EARLIER, NOW]
    live = _updated(live, _thing({"tags": ["a"]}), "cyd")
    assert [each["manager"] for each in live["metadata"]["managedFields"]] == ["ann"]


def test_appliers_come_first_then_the_longest_ago() -> None:
    live = _updated(None, _thing({"color": "x"}), "zed", EARLIER)
    live = _updated(live, {**live, "spec": {"color": "x", "count": 2}}, "ann", NOW)
    live = _applied(live, _thing({"on": True}), "yan", now=NOW)
    live = _applied(live, _thing({"args": []}), "xen", now=EARLIER)
    found = [(each["manager"], each["operation"]) for each in live["metadata"]["managedFields"]]
    assert found == [("xen", "Apply"), ("yan", "Apply"), ("zed", "Update"), ("ann", "Update")]


def test_more_than_ten_updaters_become_ancient_changes() -> None:
    value = _data({"a": "1"})
    live = _with(value, track_update(None, value, scope=CONFIGMAPS, manager="x", now=EARLIER))
    for number in range(14):
        new = {**live, "data": {**live["data"], f"k{number}": "2"}}
        who = f"u{number:02}"
        live = _with(new, track_update(live, new, scope=CONFIGMAPS, manager=who, now=EARLIER))
    entries = live["metadata"]["managedFields"]
    assert [each["manager"] for each in entries] == [
        "ancient-changes",
        *(f"u{number:02}" for number in range(6, 14)),
        "x",
    ]
    assert set(entries[0]["fieldsV1"]["f:data"]) == {f"f:k{number}" for number in range(6)}


@pytest.mark.parametrize("scope", [THINGS, CONFIGMAPS])
def test_a_client_makes_all_owners_forgotten_with_one_empty_entry(scope: Scope) -> None:
    value = _thing({"color": "x"}) if scope is THINGS else _data({"color": "x"})
    live = _with(value, track_update(None, value, scope=scope, manager="ann", now=EARLIER))
    cleared = track_update(live, _with(value, [{}]), scope=scope, manager="bob", now=NOW)
    assert cleared == []
    assert track_update(value, value, scope=scope, manager="bob", now=NOW) == []


def test_an_empty_list_forgets_the_owners_of_built_in_objects_alone() -> None:
    value = _data({"a": "1"})
    live = _with(value, track_update(None, value, scope=CONFIGMAPS, manager="ann", now=NOW))
    assert track_update(live, _with(value, []), scope=CONFIGMAPS, manager="bob", now=NOW) == []
    thing = _updated(None, _thing({"color": "x"}), "ann")
    assert _updated(thing, _with(thing, []), "bob") == thing


@pytest.mark.parametrize(
    "wrong",
    [
        {"operation": "Wrong"},
        {"apiVersion": ""},
        {"fieldsType": "FieldsV9"},
        {"fieldsV1": {"f:data": 1}},
        {"time": "yesterday"},
    ],
)
def test_owners_that_a_client_makes_up_wrongly_are_ignored(wrong: Object) -> None:
    entry: Object = {"manager": "zed", "operation": "Update", "apiVersion": VERSION}
    entry |= {"fieldsType": "FieldsV1", "fieldsV1": {"f:spec": {"f:color": {}}}}
    live = _updated(None, _thing({"color": "x"}), "ann")
    assert _updated(live, _with(live, [{**entry, **wrong}]), "bob") == live
    changed = _updated(live, _with(live, [entry]), "bob")
    assert [each["manager"] for each in changed["metadata"]["managedFields"]] == ["zed"]


def test_owners_cannot_be_changed_through_a_subresource() -> None:
    live = _updated(None, _thing({"color": "x"}), "ann")
    resets = resets_of(VERSION, subresource="status")
    scope = Scope(VERSION, "Thing", SHAPES, "status", resets)
    entries = track_update(live, _with(live, [{}]), scope=scope, manager="bob", now=NOW)
    assert entries == live["metadata"]["managedFields"]


def test_what_has_no_place_in_its_shape_leaves_owners_as_they_were() -> None:
    live = _updated(None, _thing({"color": "x"}), "ann")
    mistakes: list[Object] = [{"limits": []}, {"zzz": 1}, {"ports": [1]}, {"tags": [{}]}]
    for wrong in mistakes:
        assert (
            track_update(live, _thing(wrong), scope=THINGS, manager="bob", now=NOW)
            == (live["metadata"]["managedFields"])
        )


def _in_version(live: Object, version: str) -> Object:
    entries = live["metadata"]["managedFields"]
    return _with(live, [{**each, "apiVersion": version} for each in entries])


def test_what_was_owned_in_a_version_that_is_gone_is_owned_by_nobody() -> None:
    _, entries = apply(None, _data({"a": "x"}), scope=CONFIGMAPS, manager="ann", now=NOW)
    live = _in_version(_with(_data({"a": "x"}), entries), "v0")
    _, entries = apply(live, _data({"a": "y"}), scope=CONFIGMAPS, manager="bob", now=NOW)
    assert [each["manager"] for each in entries] == ["bob"]


def test_while_somebody_owns_a_custom_object_in_a_version_that_is_gone_nobody_can_apply() -> None:
    live = _in_version(_updated(None, _thing({"color": "x"}), "ann"), f"{GROUP}/v0")
    with pytest.raises(ApiError) as refused:
        _applied(live, _thing({"color": "y"}), "bob")
    text = f"request to convert CR to an invalid group/version: {GROUP}/v0"
    assert (refused.value.code, refused.value.message) == (500, text)
    written = _updated(live, {**live, "spec": {"color": "y"}}, "bob")
    assert written["metadata"]["managedFields"] == live["metadata"]["managedFields"]
    cleaned = _updated(live, _with({**live, "spec": {"color": "y"}}, [{}]), "bob")
    assert cleaned["metadata"]["managedFields"] == []


def test_what_has_become_atomic_is_owned_as_a_whole() -> None:
    live = _applied(None, _thing({"limits": {"k": "x"}, "tags": ["a"]}), "ann")
    spec = Shape("object", fields=dict(SHAPES[VERSION].fields["spec"].fields))
    spec.fields = {
        **spec.fields,
        "limits": Shape("object", values=Shape("string"), atomic=True),
        "tags": Shape("array", items=Shape("string")),
    }
    scope = Scope(VERSION, "Thing", {VERSION: Shape("object", fields={"spec": spec})})
    new = {**live, "spec": {**live["spec"], "color": "x"}}
    entries = track_update(live, new, scope=scope, manager="bob", now=NOW)
    assert entries[0]["fieldsV1"] == {"f:spec": {"f:limits": {}, "f:tags": {}}}


def test_owners_in_another_version_see_the_object_in_theirs() -> None:
    old, new = "ex.io/v1", "ex.io/v2"
    text = Shape("string")
    shapes = {
        old: Shape("object", fields={"spec": Shape("object", fields={"hostPort": text})}),
        new: Shape("object", fields={"spec": Shape("object", fields={"host": text, "port": text})}),
    }

    def convert(value: Object, version: str) -> Object:
        spec = value["spec"]
        if version == new:
            host, _, port = spec["hostPort"].partition(":")
            return {**value, "apiVersion": new, "spec": {"host": host, "port": port}}
        return {**value, "apiVersion": old, "spec": {"hostPort": f"{spec['host']}:{spec['port']}"}}

    first = Scope(old, "Gadget", shapes, convert=convert)
    second = Scope(new, "Gadget", shapes, convert=convert)
    made = {"apiVersion": old, "kind": "Gadget", "metadata": {"name": "a"}}
    made["spec"] = {"hostPort": "h:1"}
    made = _with(made, track_update(None, made, scope=first, manager="ann", now=NOW))
    config = {"apiVersion": new, "kind": "Gadget", "metadata": {"name": "a"}, "spec": {"port": "2"}}
    with pytest.raises(ApiError, match=r'"ann" using ex.io/v1: .spec.hostPort$'):
        apply(convert(made, new), config, scope=second, manager="bob", now=NOW)


def test_new_items_go_where_the_configuration_has_them_among_those_it_shares() -> None:
    live = _updated(None, _thing({"tags": ["a", "b", "c", "d"]}), "ann")
    found = _applied(live, _thing({"tags": ["d", "x", "b", "z"]}), "bob")
    assert found["spec"]["tags"] == ["a", "c", "d", "x", "b", "z"]


def test_items_of_one_name_have_one_owner() -> None:
    scope = Scope("v1", "Pod", {"v1": shape_of("", "v1", "Pod")})
    pod: Object = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}}
    pod["spec"] = {"containers": [{"name": "c", "env": [{"name": "A"}, {"name": "A"}]}]}
    live = _with(pod, track_update(None, pod, scope=scope, manager="ann", now=NOW))
    [entry] = live["metadata"]["managedFields"]
    env = entry["fieldsV1"]["f:spec"]["f:containers"]['k:{"name":"c"}']["f:env"]
    assert env == {".": {}, 'k:{"name":"A"}': {}}
    config = {**pod, "spec": {"containers": [{"name": "c", "env": [{"name": "A", "value": "3"}]}]}}
    with pytest.raises(ApiError, match=r'env\[name="A"\]$'):
        apply(live, config, scope=scope, manager="bob", now=NOW)
    found, _ = apply(live, config, scope=scope, manager="bob", force=True, now=NOW)
    assert found["spec"]["containers"][0]["env"] == [{"name": "A", "value": "3"}]


def test_an_item_does_not_take_over_what_several_of_its_name_held() -> None:
    scope = Scope("v1", "Pod", {"v1": shape_of("", "v1", "Pod")})
    pod: Object = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}}
    twins = [{"name": "A", "value": "1"}, {"name": "A", "value": "2"}]
    pod["spec"] = {"containers": [{"name": "c", "env": twins}]}
    config = {**pod, "spec": {"containers": [{"name": "c", "env": [{"name": "A"}]}]}}
    found, _ = apply(pod, config, scope=scope, manager="ann", force=True, now=NOW)
    assert found["spec"]["containers"][0]["env"] == [{"name": "A"}]


def test_a_built_in_item_without_its_key_has_the_empty_one() -> None:
    scope = Scope("v1", "Pod", {"v1": shape_of("", "v1", "Pod")})
    pod: Object = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}}
    pod["spec"] = {"containers": [{"image": "i"}, {"name": ""}]}
    with pytest.raises(ApiError, match=r'duplicate entries for key \[name=""\]$'):
        apply(None, pod, scope=scope, manager="ann", now=NOW)


def test_below_what_keeps_unknown_fields_no_field_is_unknown() -> None:
    spec = {"type": "object", "properties": {"a": {"type": "string"}}}
    embedded = {"type": "object", "x-kubernetes-embedded-resource": True}
    embedded["x-kubernetes-preserve-unknown-fields"] = True
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    shape = compile_schema({**schema, "properties": {"spec": spec, "pod": embedded}}).shape
    config = _thing({"a": "x", "zz": {"q": 1}})
    config["pod"] = {"kind": "Pod", "metadata": {"name": "x", "finalizers": ["f"]}, "x": {"y": 1}}
    scope = Scope(VERSION, "Thing", {VERSION: shape})
    _, [entry] = apply(None, config, scope=scope, manager="ann", now=NOW)
    assert entry["fieldsV1"] == {
        "f:pod": {
            "f:kind": {},
            "f:metadata": {"f:finalizers": {'v:"f"': {}}, "f:name": {}},
            "f:x": {".": {}, "f:y": {}},
        },
        "f:spec": {"f:a": {}, "f:zz": {".": {}, "f:q": {}}},
    }


def _client_side_applied() -> Object:
    last = _thing({"color": "x", "count": 2, "limits": {"k": "<v>"}})
    made = _thing(last["spec"], annotations={LAST_APPLIED: json.dumps(last)})
    live = _updated(None, made, "kubectl-client-side-apply", EARLIER)
    return _updated(live, {**live, "spec": {**live["spec"], "count": 3}}, "edit")


def test_kubectl_does_not_conflict_with_its_own_client_side_apply() -> None:
    live = _client_side_applied()
    config = _thing({"color": "y", "count": 4, "limits": {"k": "w"}})
    with pytest.raises(ApiError) as refusal:
        _applied(live, config, "kubectl")
    assert refusal.value.message == (
        f'Apply failed with 1 conflict: conflict with "edit" using {VERSION}: .spec.count'
    )
    with pytest.raises(ApiError, match="3 conflicts"):
        _applied(live, config, "other")
    config["spec"]["count"] = 3
    found = _applied(live, config, "kubectl")
    assert found["spec"] == config["spec"]
    assert found["metadata"]["annotations"][LAST_APPLIED] == (
        f'{{"apiVersion":"{VERSION}","kind":"Thing","metadata":{{"name":"a"}},'
        '"spec":{"color":"y","count":3,"limits":{"k":"w"}}}\n'
    )


def test_an_annotation_that_is_too_large_is_given_up() -> None:
    live = _client_side_applied()
    config = _thing({"count": 3, "limits": {"k": "w" * 300_000}})
    found = _applied(live, config, "kubectl")
    assert LAST_APPLIED not in found["metadata"]["annotations"]


def test_a_write_that_comes_to_nothing_keeps_its_times() -> None:
    live = _applied(None, _thing({"color": "x", "count": 1}), "ann", now=EARLIER)
    later = _with(live, [{**each, "time": NOW} for each in live["metadata"]["managedFields"]])
    assert times_kept(live, later) == live
    assert times_kept(live, {**later, "spec": {}}) == {**later, "spec": {}}
    assert times_kept(live, _thing({"color": "x"})) == _thing({"color": "x"})


def test_whoever_scales_owns_the_replicas_alone() -> None:
    paths = {VERSION: ("spec", "count")}
    live = _applied(None, _thing({"count": 2, "color": "x"}), "ann")
    live = _updated(live, {**live, "spec": {"count": 3, "color": "x"}}, "bob")
    before = live["metadata"]["managedFields"]
    entries = track_scale(before, manager="cyd", api_version=VERSION, paths=paths)
    assert [(each["manager"], each.get("subresource")) for each in entries] == [
        ("ann", None),
        ("cyd", "scale"),
    ]
    assert entries[1]["fieldsV1"] == {"f:spec": {"f:count": {}}}
    assert "time" not in entries[1]


def test_nobody_begins_to_own_replicas_by_scaling_what_nobody_owns() -> None:
    live = _applied(None, _thing({"color": "x"}), "ann")
    before = live["metadata"]["managedFields"]
    paths = {VERSION: ("spec", "count")}
    assert track_scale(before, manager="cyd", api_version=VERSION, paths=paths) == before
    assert track_scale(before, manager="cyd", api_version=VERSION, paths={}) == []


TYPE_MISTAKES = [
    ({"color": 1}, ".color: expected string, got &value.valueUnstructured{Value:1}"),
    (
        {"color": {"a": 1, "b": "x"}},
        ".color: expected string, got &value.valueUnstructured"
        '{Value:map[string]interface {}{"a":1, "b":"x"}}',
    ),
    (
        {"color": [1, "x", None]},
        ".color: expected string, got &value.valueUnstructured"
        '{Value:[]interface {}{1, "x", interface {}(nil)}}',
    ),
    ({"count": True}, ".count: expected numeric (int or float), got bool"),
    ({"count": {}}, ".count: expected numeric (int or float), got map[string]interface {}"),
    ({"on": "yes"}, ".on: expected boolean, got &{yes}"),
    ({"on": {"a": 1}}, ".on: expected boolean, got &{map[a:1]}"),
    ({"limits": "x"}, ".limits: expected map, got &{x}"),
    ({"limits": [1]}, ".limits: expected map, got &{[1]}"),
    ({"tags": "x"}, ".tags: expected list, got &{x}"),
    (
        {"tags": [None]},
        ".tags: element 0: associative list without keys has an element that's an explicit null",
    ),
    ({"tags": [[1]]}, ".tags: element 0: not supported: associative list with lists as elements"),
    (
        {"ports": ["x"]},
        ".ports: element 0: associative list with keys may not have non-map elements",
    ),
    ({"args": ["x", 1]}, ".args[1]: expected string, got &value.valueUnstructured{Value:1}"),
    ({"inner": {"b": {"zz": 1}}}, ".inner.b.zz: field not declared in schema"),
]


@pytest.mark.parametrize(("spec", "text"), TYPE_MISTAKES)
def test_a_mistake_in_a_type_is_told_in_the_real_servers_words(spec: Object, text: str) -> None:
    with pytest.raises(ApiError) as refusal:
        _applied(None, _thing(spec), "ann")
    intro = f"failed to create typed patch object (/a; {VERSION}, Kind=Thing): .spec"
    assert (refusal.value.code, refusal.value.message) == (500, intro + text)


def test_several_mistakes_are_told_together() -> None:
    with pytest.raises(ApiError) as refusal:
        _applied(None, _thing({"color": 1, "count": "x"}), "ann")
    first, *rest = refusal.value.message.split("\n")
    assert first.endswith(": errors:")
    assert [line.partition(":")[0] for line in rest] == ["  .spec.color", "  .spec.count"]
