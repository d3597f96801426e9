"""Rules for keys of maps and for objects around values: both ways, edits, and what survives."""

from __future__ import annotations

from typing import Any

import pytest
from tests.apis.conversions import check_compiled, crontab, of
from tests.apis.test_rules import OTHER, carry, edge

from polyver.apis.checking import ledger
from polyver.apis.conversion import Rules
from polyver.languages.values.strings import same

Object = dict[str, Any]
TEXT = {"type": "string"}
BESIDE = {"name": "a", "namespace": "ours"}


def in_namespace(version: str, spec: Object) -> Object:
    return {**crontab(version, **spec), "metadata": {"name": "a", "namespace": "ours"}}


def rename_keys(e: Rules) -> None:
    e.rename_keys("spec.selector", {"old/os": "os", "os": "old", "x": "y"})


def rename_keys_with_rules(e: Rules) -> None:
    inside = e.rename_keys("spec.pools", {"a": "b"}, to="spec.groups")
    inside.cast("size", "string", "integer")
    inside.drop("note")


def put_in_object(e: Rules) -> None:
    e.object(
        "spec.broker",
        "spec.ref",
        field="name",
        constants={"kind": "Broker", "version": 1},
        references={"namespace": "metadata.namespace"},
    )


def put_items_in_objects(e: Rules) -> None:
    inside = e.each("spec.sinks", key="id").within("to")
    inside.object("broker", "ref", field="name", references={"namespace": "metadata.namespace"})
    e.reverse().within("spec.owner").const("name", reference="metadata.name")


def put_in_map(e: Rules) -> None:
    e.fields({"cpu": "spec.cpuLimit", "memory": "spec.memoryLimit"}, "spec.limits")


def put_in_list(e: Rules) -> None:
    e.fields(["spec.memory", "spec.cpu"], "spec.limits", key="name", value="max")


def put_in_items(e: Rules) -> None:
    e.reverse().fields(["spec.http", "spec.grpc"], "spec.ports", key="name")


@pytest.mark.parametrize(
    ("write", "old", "new"),
    [
        (
            rename_keys,
            {"selector": {"old/os": "1", "os": "2", "z": "3"}},
            {"selector": {"os": "1", "old": "2", "z": "3"}},
        ),
        (rename_keys, {"selector": {}}, {"selector": {}}),
        (rename_keys, {"selector": {"x": None}}, {"selector": {"y": None}}),
        (rename_keys, {}, {}),
        (
            rename_keys_with_rules,
            {"pools": {"a": {"size": "1"}, "c": "d"}},
            {"groups": {"b": {"size": 1}, "c": "d"}},
        ),
        (
            put_in_object,
            {"broker": "a"},
            {"ref": {"name": "a", "kind": "Broker", "version": 1, "namespace": "ours"}},
        ),
        (
            put_items_in_objects,
            {"sinks": [{"id": 1, "to": {"broker": "a"}}], "owner": {"name": "a", "x": 1}},
            {"sinks": [{"id": 1, "to": {"ref": BESIDE}}], "owner": {"x": 1}},
        ),
        (put_in_object, {}, {}),
        (
            put_in_map,
            {"cpuLimit": 1, "memoryLimit": {"a": 1}},
            {"limits": {"cpu": 1, "memory": {"a": 1}}},
        ),
        (
            put_in_list,
            {"cpu": 1, "memory": None},
            {"limits": [{"name": "memory", "max": None}, {"name": "cpu", "max": 1}]},
        ),
        (
            put_in_items,
            {"ports": [{"name": "http", "port": 80}, {"name": "grpc"}]},
            {"http": {"port": 80}, "grpc": {}},
        ),
    ],
)
def test_a_rule_reads_both_ways(write: Any, old: Object, new: Object) -> None:
    known = edge(write)
    one, other = in_namespace("v1", old), in_namespace("v2", new)
    assert same(known.convert(one, "v2"), other)
    assert same(known.convert(other, "v1"), one)
    check_compiled(known, one, "v2")
    check_compiled(known, other, "v1")


LOSSY: list[tuple[Any, str, Object, Object]] = [
    (rename_keys, "v1", {"selector": {"x": "1", "y": "2"}}, {"selector": {"y": "1"}}),
    (rename_keys, "v1", {"selector": {"y": "2"}}, {"selector": {}}),
    (rename_keys, "v2", {"selector": {"x": "2"}}, {"selector": {}}),
    (rename_keys, "v2", {"selector": {"old/os": 1, "os": 2}}, {"selector": {"old/os": 2}}),
    (rename_keys, "v1", {"selector": [{"x": 1}]}, {}),
    (rename_keys, "v2", {"selector": None}, {}),
    (
        rename_keys_with_rules,
        "v1",
        {"pools": {"a": {"size": "01", "note": 1}, "b": {"size": "2"}}},
        {"groups": {"b": {"size": 1}}},
    ),
    # An object in which a constant or a reference has another value is another object.
    (put_in_object, "v2", {"ref": {"name": "a", "kind": "Sink"}}, {}),
    (put_in_object, "v2", {"ref": {"name": "a", "namespace": "theirs"}}, {}),
    (put_in_object, "v2", {"ref": {"name": "a", "version": True}}, {}),
    # Fields that are missing or unknown do not make it another object.
    (put_in_object, "v2", {"ref": {"name": "a"}}, {"broker": "a"}),
    (put_in_object, "v2", {"ref": {"name": "a", "kind": "Broker", "key": {}}}, {"broker": "a"}),
    (put_in_object, "v2", {"ref": {"kind": "Broker"}}, {}),
    (put_in_object, "v2", {"ref": "a"}, {}),
    (put_in_object, "v2", {"ref": {"name": None}}, {}),
    (put_in_object, "v1", {"broker": ["a"]}, {}),
    (put_in_object, "v1", {"broker": None}, {}),
    (
        put_items_in_objects,
        "v2",
        {"sinks": [{"id": 1, "to": {"ref": {"name": "a", "namespace": "x"}}}]},
        {"sinks": [{"id": 1, "to": {}}]},
    ),
    (put_items_in_objects, "v1", {"owner": {"name": "z", "x": 1}}, {"owner": {"x": 1}}),
    (put_in_map, "v2", {"limits": {"cpu": 1, "gpu": 2}}, {"cpuLimit": 1}),
    (put_in_map, "v2", {"limits": {"gpu": 2}}, {}),
    (put_in_map, "v2", {"limits": {}}, {}),
    (put_in_map, "v2", {"limits": [1]}, {}),
    (put_in_list, "v2", {"limits": []}, {}),
    (put_in_list, "v2", {"limits": [{"name": "gpu", "max": 1}]}, {}),
    (
        put_in_list,
        "v2",
        {"limits": [{"name": "cpu", "max": 1}, {"name": "memory", "max": 2}]},
        {"cpu": 1, "memory": 2},
    ),
    (put_in_list, "v2", {"limits": [{"name": "cpu", "max": 1, "note": "x"}]}, {"cpu": 1}),
    (put_in_list, "v2", {"limits": [{"name": "cpu"}]}, {}),
    (put_in_list, "v2", {"limits": [{"name": "cpu", "max": 1}] * 2}, {"cpu": 1}),
    (put_in_list, "v2", {"limits": [{"name": "cpu", "max": 1}, "x", None]}, {"cpu": 1}),
    (put_in_items, "v2", {"http": 80, "grpc": {"a": 1}}, {"ports": [{"name": "grpc", "a": 1}]}),
    (put_in_items, "v2", {"http": {"name": "x"}}, {}),
]


@pytest.mark.parametrize(("write", "version", "spec", "shown"), LOSSY)
def test_what_a_rule_cannot_express_survives(
    write: Any, version: str, spec: Object, shown: Object
) -> None:
    known, obj = edge(write), in_namespace(version, spec)
    made = known.convert(obj, OTHER[version])
    assert same(made["spec"], shown)
    assert [*carry(made)] == [version]
    assert same(known.convert(made, version), obj)
    check_compiled(known, obj, OTHER[version])
    check_compiled(known, made, version)
    made["spec"]["other"] = 5
    assert same(known.convert(made, version)["spec"], {**spec, "other": 5})


@pytest.mark.parametrize(
    ("write", "version", "spec", "edit", "expected"),
    [
        # A key that only one version can have stays while other keys change.
        (
            rename_keys,
            "v1",
            {"selector": {"x": "1", "y": "2"}},
            {"selector": {"z": "3"}},
            {"selector": {"z": "3", "y": "2"}},
        ),
        (rename_keys, "v1", {"selector": [1]}, {"selector": {"y": "3"}}, {"selector": {"x": "3"}}),
        (
            rename_keys_with_rules,
            "v1",
            {"pools": {"a": {"size": "01", "note": 1}, "c": {"note": 2}}},
            {"groups": {"b": {"size": 2}}},
            {"pools": {"a": {"size": "2", "note": 1}}},
        ),
        # Another scalar: it means what it means for a new object, and other fields stay.
        (
            put_in_object,
            "v2",
            {"ref": {"name": "a", "kind": "Broker", "key": "k"}},
            {"broker": "b"},
            {"ref": {**BESIDE, "name": "b", "kind": "Broker", "version": 1, "key": "k"}},
        ),
        (
            put_in_object,
            "v2",
            {"ref": {"name": "a", "kind": "Sink", "key": "k"}},
            {"broker": "b"},
            {"ref": {**BESIDE, "name": "b", "kind": "Broker", "version": 1}},
        ),
        (
            put_in_list,
            "v2",
            {"limits": [{"name": "gpu", "max": 1}, {"name": "cpu", "max": 2, "note": "x"}]},
            {"cpu": 3, "memory": 4},
            {
                "limits": [
                    {"name": "gpu", "max": 1},
                    {"name": "cpu", "max": 3, "note": "x"},
                    {"name": "memory", "max": 4},
                ]
            },
        ),
        (
            put_in_map,
            "v2",
            {"limits": {"cpu": 1, "gpu": 2}},
            {"cpuLimit": 3},
            {"limits": {"cpu": 3, "gpu": 2}},
        ),
        # The lost value of a field depends only on the item of this field.
        (
            put_in_items,
            "v2",
            {"http": 80, "grpc": {"a": 1}},
            {"ports": [{"name": "grpc", "a": 2}]},
            {"http": 80, "grpc": {"a": 2}},
        ),
        (
            put_in_items,
            "v2",
            {"http": 80, "grpc": {"a": 1}},
            {"ports": [{"name": "http", "a": 2}]},
            {"http": {"a": 2}},
        ),
    ],
)
def test_an_edit_leaves_what_does_not_depend_on_it(
    write: Any, version: str, spec: Object, edit: Object, expected: Object
) -> None:
    known = edge(write)
    made = known.convert(in_namespace(version, spec), OTHER[version])
    made["spec"].update(edit)
    assert same(known.convert(made, version), in_namespace(version, expected))
    check_compiled(known, made, version)


def test_values_of_renamed_keys_lose_what_the_other_schema_lacks() -> None:
    old = {"type": "object", "additionalProperties": of(size=TEXT, extra=TEXT)}
    new = {"type": "object", "additionalProperties": of(size=TEXT)}
    schemas = {"v1": of(spec=of(pools=old)), "v2": of(spec=of(pools=new))}
    known = edge(lambda e: e.rename_keys("spec.pools", {"a": "b"}), schemas)
    obj = crontab("v1", pools={"a": {"size": "1", "extra": "2"}})
    made = known.convert(obj, "v2")
    assert made["spec"] == {"pools": {"b": {"size": "1"}}}
    made["spec"]["pools"]["b"]["size"] = "3"
    assert known.convert(made, "v1")["spec"] == {"pools": {"a": {"size": "3", "extra": "2"}}}
    found = ledger(known, schemas, "v1", "v2")
    assert found is not None
    assert [(each.path, each.how, each.to) for each in found.fates] == [
        ("spec.pools{}.size", "transformed", ("spec.pools{}.size",)),
        ("spec.pools{}.extra", "carried", ()),
    ]


def test_a_removed_scalar_removes_its_object() -> None:
    known = edge(put_in_object)
    made = known.convert(in_namespace("v2", {"ref": {"name": "a", "key": "k"}}), "v1")
    del made["spec"]["broker"]
    assert known.convert(made, "v2") == in_namespace("v2", {})


def test_objects_without_a_namespace_get_none() -> None:
    known = edge(put_in_object)
    ref = {"name": "a", "kind": "Broker", "version": 1}
    assert known.convert(crontab("v1", broker="a"), "v2")["spec"] == {"ref": ref}
    assert known.convert(crontab("v2", ref=ref), "v1") == crontab("v1", broker="a")
    other = crontab("v2", ref={**ref, "namespace": "x"})
    made = known.convert(other, "v1")
    assert made["spec"] == {"broker": "a"}  # no namespace to which it could be compared
    assert known.convert(made, "v2") == other
    bare = {"apiVersion": "stable.example.com/v1", "kind": "CronTab", "spec": {"broker": "a"}}
    check_compiled(known, bare, "v2")
    assert known.convert(known.convert(bare, "v2"), "v1") == bare


def test_fields_lose_what_the_schema_of_their_item_lacks() -> None:
    one = of(cpu=of(a=TEXT, b=TEXT), memory=TEXT)
    item = {"type": "array", "items": of(name=TEXT, max=of(a=TEXT))}
    schemas = {"v1": of(spec=one), "v2": of(spec=of(limits=item))}
    known = edge(put_in_list, schemas)
    old = crontab("v1", cpu={"a": "1", "b": "2"})
    made = known.convert(old, "v2")
    assert made["spec"] == {"limits": [{"name": "cpu", "max": {"a": "1"}}]}
    assert known.convert(made, "v1") == old
    made["spec"]["limits"].append({"name": "gpu", "max": {"a": "3"}})
    made["spec"]["limits"][0]["max"]["a"] = "4"
    assert known.convert(made, "v1")["spec"] == {"cpu": {"a": "4", "b": "2"}}


def test_the_ledger_names_the_fields_around_values() -> None:
    reference = of(name=TEXT, kind=TEXT, version={"type": "integer"}, namespace=TEXT)
    schemas = {"v1": of(spec=of(broker=TEXT)), "v2": of(spec=of(ref=reference))}
    found = ledger(edge(put_in_object, schemas), schemas, "v1", "v2")
    assert found is not None
    assert [(each.to, each.rules, each.exact) for each in found.fates] == [
        (("spec.ref",), ("object",), True)
    ]
    found = ledger(edge(put_in_object, schemas), schemas, "v2", "v1")
    assert found is not None
    assert {(each.to, each.rules, each.exact) for each in found.fates} == {
        (("spec.broker",), ("object",), False)
    }


def test_references_work_where_rules_are_applied_again() -> None:
    def tree(e: Rules) -> None:
        node = e.within("spec.node")
        node.const("namespace", reference="metadata.namespace")
        node.object("owner", "ref", field="name", references={"namespace": "metadata.namespace"})
        node.recurse("next")
        node.each("children").recurse("node", up=1)

    known = edge(tree)
    old = {"owner": "a", "next": {"owner": "a"}, "children": [{"node": {"owner": "a"}}]}
    made = {"namespace": "ours", "ref": BESIDE}
    new = {**made, "next": made, "children": [{"node": made}]}
    one, other = in_namespace("v1", {"node": old}), in_namespace("v2", {"node": new})
    assert known.convert(one, "v2") == other
    assert known.convert(other, "v1") == one
    check_compiled(known, one, "v2")
    check_compiled(known, other, "v1")
    other["spec"]["node"]["children"][0]["node"]["namespace"] = "theirs"
    check_compiled(known, other, "v1")
    assert known.convert(known.convert(other, "v1"), "v2") == other
