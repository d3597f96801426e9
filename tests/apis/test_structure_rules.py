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


def rename_keys(e: Rules) -> None:
    e.rename_keys("spec.selector", {"old/os": "os", "os": "old", "x": "y"})


def rename_keys_with_rules(e: Rules) -> None:
    inside = e.rename_keys("spec.pools", {"a": "b"}, to="spec.groups")
    inside.cast("size", "string", "integer")
    inside.drop("note")


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
    ],
)
def test_a_rule_reads_both_ways(write: Any, old: Object, new: Object) -> None:
    known = edge(write)
    assert same(known.convert(crontab("v1", **old), "v2"), crontab("v2", **new))
    assert same(known.convert(crontab("v2", **new), "v1"), crontab("v1", **old))


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
]


@pytest.mark.parametrize(("write", "version", "spec", "shown"), LOSSY)
def test_what_a_rule_cannot_express_survives(
    write: Any, version: str, spec: Object, shown: Object
) -> None:
    known, obj = edge(write), crontab(version, **spec)
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
    ],
)
def test_an_edit_leaves_what_does_not_depend_on_it(
    write: Any, version: str, spec: Object, edit: Object, expected: Object
) -> None:
    known = edge(write)
    made = known.convert(crontab(version, **spec), OTHER[version])
    made["spec"].update(edit)
    assert same(known.convert(made, version), crontab(version, **expected))


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
