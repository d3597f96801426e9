"""Compatibility: each kind of change is found, at its place, and is as bad as it is called."""

from __future__ import annotations

import copy
from collections import Counter
from dataclasses import dataclass
from typing import Any

import pytest

from polyver.capabilities.apis.compatibility import (
    RULES,
    Finding,
    Severity,
    compare_definitions,
    compare_schemas,
)
from polyver.objects.schema import Schema, check_schema, compile_schema

Json = dict[str, Any]
PRESERVE = "x-kubernetes-preserve-unknown-fields"
EMBEDDED = "x-kubernetes-embedded-resource"
INT_OR_STRING = "x-kubernetes-int-or-string"
RULES_IN_CEL = "x-kubernetes-validations"
NOTHING = object()

TEXT, NUMBER = {"type": "string"}, {"type": "integer"}
KEYED = {"type": "object", "properties": {"k": TEXT, "l": TEXT}, "required": ["k", "l"]}
DOUBLES = [{"k": "a", "l": "a"}, {"k": "a", "l": "b"}]


@dataclass(frozen=True)
class Row:
    """A change of the field `f`, what is found, and what shows that it is as bad as that."""

    rule: str
    old: Json | None
    new: Json | None
    value: Any = NOTHING
    """What was right in `f` and is refused, dropped or filled in afterwards."""
    path: str = "f"


def fields(**schemas: Json) -> Json:
    return {"type": "object", "properties": schemas}


def items(schema: Json, **more: Any) -> Json:
    return {"type": "array", "items": schema} | more


def keyed(kind: str, *keys: str) -> Json:
    said = {"x-kubernetes-list-type": kind}
    more = {"x-kubernetes-list-map-keys": [*keys]} if keys else {}
    return items(KEYED if kind == "map" else TEXT, **said, **more)


ROWS = [
    Row("field-removed", TEXT, None, "a"),
    Row("field-removed", fields(a=TEXT), fields(b=NUMBER), {"a": "x"}, "f.a"),
    Row("field-removed", items(fields(a=TEXT)), items(fields(b=NUMBER)), [{"a": "x"}], "f[].a"),
    Row("field-removed", fields(a=TEXT), {"type": "object", "additionalProperties": False},
        {"a": "x"}, "f.a"),
    Row("field-renamed", fields(cron=TEXT), fields(schedule=TEXT), {"cron": "x"}, "f.cron"),
    Row("field-added", None, TEXT),
    Row("field-added", fields(a=TEXT), fields(a=TEXT, b=NUMBER | {"default": 1}), path="f.b"),
    Row("field-claimed", fields(a=TEXT) | {PRESERVE: True},
        fields(a=TEXT, b=TEXT) | {PRESERVE: True}, {"b": 1}, "f.b"),
    Row("field-freed", fields(a=TEXT) | {PRESERVE: True}, {"type": "object", PRESERVE: True},
        path="f.a"),
    Row("field-filled-in", fields(a=TEXT) | {"maxProperties": 1},
        fields(a=TEXT, b=NUMBER | {"default": 1}) | {"maxProperties": 1}, {"a": "x"}, "f.b"),
    Row("field-filled-in", fields(a=fields(b=TEXT)) | {"not": {"enum": [{"a": {"c": 1}}]}},
        fields(a=fields(b=TEXT, c=NUMBER | {"default": 1}))
        | {"not": {"enum": [{"a": {"c": 1}}]}}, {"a": {}}, "f.a.c"),
    Row("default-refused", {"type": "object", "additionalProperties": fields(a=TEXT)},
        {"type": "object", "additionalProperties":
         fields(a=TEXT, b=NUMBER | {"default": 5, "maximum": 3})}, {"x": {}}, "f{}.b"),
    Row("type-changed", TEXT, NUMBER, "a"),
    Row("type-changed", {"type": "number"}, NUMBER, 1.5),
    Row("type-changed", {INT_OR_STRING: True}, NUMBER, "50%"),
    Row("type-changed", {INT_OR_STRING: True}, TEXT, 5),
    Row("type-changed", {PRESERVE: True}, {"type": "object", PRESERVE: True}, [1]),
    Row("type-changed", items(TEXT), items(NUMBER), ["a"], "f[]"),
    Row("type-changed", {"type": "object", "additionalProperties": TEXT},
        {"type": "object", "additionalProperties": NUMBER}, {"a": "x"}, "f{}"),
    Row("type-widened", NUMBER, {"type": "number"}),
    Row("type-widened", NUMBER, {INT_OR_STRING: True}),
    Row("enum-added", TEXT, TEXT | {"enum": ["a"]}, "b"),
    Row("enum-narrowed", TEXT | {"enum": ["a", "b"]}, TEXT | {"enum": ["a", "c"]}, "b"),
    Row("enum-widened", TEXT | {"enum": ["a"]}, TEXT | {"enum": ["b", "a"]}),
    Row("enum-widened", TEXT | {"enum": ["a"]}, TEXT),
    Row("required-field-added", fields(a=TEXT), fields(a=TEXT, b=NUMBER) | {"required": ["b"]},
        {"a": "x"}, "f.b"),
    Row("required-added", fields(a=TEXT, b=TEXT), fields(a=TEXT, b=TEXT) | {"required": ["b"]},
        {"a": "x"}, "f.b"),
    Row("required-exposed", fields(a=TEXT | {"default": "x"}) | {"required": ["a"]},
        fields(a=TEXT) | {"required": ["a"]}, {}, "f.a"),
    Row("required-filled-in", fields(a=TEXT | {"default": "x"}),
        fields(a=TEXT | {"default": "x"}) | {"required": ["a"]}, path="f.a"),
    Row("required-removed", fields(a=TEXT) | {"required": ["a"]}, fields(a=TEXT), path="f.a"),
    Row("limit-added", NUMBER, NUMBER | {"minimum": 1}, 0),
    Row("limit-added", NUMBER, NUMBER | {"maximum": 1}, 2),
    Row("limit-added", NUMBER, NUMBER | {"multipleOf": 2}, 3),
    Row("limit-added", TEXT, TEXT | {"minLength": 1}, ""),
    Row("limit-added", TEXT, TEXT | {"maxLength": 1}, "ab"),
    Row("limit-added", items(TEXT), items(TEXT, minItems=1), []),
    Row("limit-added", items(TEXT), items(TEXT, maxItems=1), ["a", "b"]),
    Row("limit-added", fields(a=TEXT), fields(a=TEXT) | {"minProperties": 1}, {}),
    Row("limit-added", fields(a=TEXT, b=TEXT), fields(a=TEXT, b=TEXT) | {"maxProperties": 1},
        {"a": "", "b": ""}),
    Row("limit-tightened", NUMBER | {"minimum": 1}, NUMBER | {"minimum": 2}, 1),
    Row("limit-tightened", NUMBER | {"minimum": 1},
        NUMBER | {"minimum": 1, "exclusiveMinimum": True}, 1),
    Row("limit-tightened", NUMBER | {"maximum": 2}, NUMBER | {"maximum": 1}, 2),
    Row("limit-tightened", NUMBER | {"maximum": 2},
        NUMBER | {"maximum": 2, "exclusiveMaximum": True}, 2),
    Row("limit-tightened", NUMBER | {"multipleOf": 2}, NUMBER | {"multipleOf": 4}, 2),
    Row("limit-tightened", TEXT | {"maxLength": 2}, TEXT | {"maxLength": 1}, "ab"),
    Row("limit-tightened", items(TEXT, minItems=1), items(TEXT, minItems=2), ["a"]),
    Row("limit-widened", NUMBER | {"minimum": 1}, NUMBER | {"minimum": 0}),
    Row("limit-widened", NUMBER | {"maximum": 1}, NUMBER),
    Row("limit-widened", NUMBER | {"multipleOf": 4}, NUMBER | {"multipleOf": 2}),
    Row("limit-widened", NUMBER | {"minimum": 1, "exclusiveMinimum": True},
        NUMBER | {"minimum": 1}),
    Row("limit-changed", NUMBER | {"multipleOf": 4}, NUMBER | {"multipleOf": 6}, 4),
    # A bound that is no integer refuses them all.
    Row("limit-changed", NUMBER | {"minimum": 3}, NUMBER | {"minimum": 2.5}, 3),
    # Integers are compared with the whole part of a bound.
    Row("limit-changed", {"type": "number", "minimum": 2.2},
        {"type": "number", "minimum": 2.1, "exclusiveMinimum": True}, 2),
    Row("pattern-changed", TEXT, TEXT | {"pattern": "^a"}, "b"),
    Row("pattern-changed", TEXT | {"pattern": "^b"}, TEXT | {"pattern": "^a"}, "b"),
    Row("pattern-removed", TEXT | {"pattern": "^a"}, TEXT),
    Row("format-changed", TEXT, TEXT | {"format": "date"}, "a"),
    Row("format-changed", TEXT | {"format": "ipv6"}, TEXT | {"format": "ipv4"}, "::1"),
    Row("format-changed", NUMBER | {"format": "int64"}, NUMBER | {"format": "int32"}, 2**40),
    Row("format-widened", NUMBER | {"format": "int32"}, NUMBER | {"format": "int64"}),
    Row("format-widened", NUMBER, NUMBER | {"format": "int64"}),
    Row("format-widened", TEXT | {"format": "date"}, TEXT),
    Row("nullable-removed", TEXT | {"nullable": True}, TEXT, None),
    Row("nullable-added", TEXT, TEXT | {"nullable": True}),
    Row("null-kept", TEXT | {"enum": ["a"]}, TEXT | {"enum": ["a"], "nullable": True}),
    Row("default-changed", TEXT | {"default": "a"}, TEXT | {"default": "b"}),
    Row("default-removed", TEXT | {"default": "a"}, TEXT),
    Row("default-added", TEXT, TEXT | {"default": "a"}),
    Row("unknown-dropped", fields(a=TEXT) | {PRESERVE: True}, fields(a=TEXT), {"b": 1}),
    Row("unknown-dropped", items(fields(a=TEXT), **{PRESERVE: True}), items(fields(a=TEXT)),
        [{"b": 1}], "f[]"),
    Row("unknown-dropped", {"type": "object", "additionalProperties": True},
        {"type": "object", "additionalProperties": False}, {"a": 1}),
    Row("unknown-kept", fields(a=TEXT), fields(a=TEXT) | {PRESERVE: True}),
    Row("unknown-refused", {"type": "object"}, {"type": "object", "additionalProperties": False}),
    Row("values-narrowed", {"type": "object", "additionalProperties": TEXT}, {"type": "object"},
        {"a": "x"}, "f{}"),
    Row("values-narrowed", {"type": "object", PRESERVE: True},
        {"type": "object", "additionalProperties": TEXT}, {"a": 1}),
    Row("values-widened", {"type": "object", "additionalProperties": TEXT},
        {"type": "object", PRESERVE: True}, path="f{}"),
    Row("values-widened", {"type": "object"}, {"type": "object", "additionalProperties": TEXT}),
    Row("embedded-added", {"type": "object", PRESERVE: True},
        {"type": "object", PRESERVE: True, EMBEDDED: True}, {"a": 1}),
    Row("embedded-removed", fields(spec=TEXT) | {EMBEDDED: True}, fields(spec=TEXT),
        {"apiVersion": "v1", "kind": "Pod"}),
    Row("list-keyed", items(TEXT), keyed("set"), ["a", "a"]),
    Row("list-keyed", items(KEYED), keyed("map", "k"), DOUBLES),
    Row("list-keyed", keyed("map", "k", "l"), keyed("map", "k"), DOUBLES),
    Row("list-merged", keyed("set"), items(TEXT)),
    Row("map-merged", fields(a=TEXT), fields(a=TEXT) | {"x-kubernetes-map-type": "atomic"}),
    Row("unique-added", items(TEXT), items(TEXT, uniqueItems=True)),
    Row("unique-removed", items(TEXT, uniqueItems=True), items(TEXT)),
    Row("alternatives-changed", TEXT, TEXT | {"anyOf": [{"pattern": "a"}]}, "b"),
    Row("alternatives-changed", TEXT | {"anyOf": [{"maxLength": 1}]},
        TEXT | {"anyOf": [{"maxLength": 0}]}, "b"),
    Row("alternatives-changed", TEXT | {"oneOf": [{"maxLength": 1}]},
        TEXT | {"oneOf": [{"maxLength": 1}, {"maxLength": 2}]}, "b"),
    Row("alternatives-changed", TEXT | {"not": {"maxLength": 1}}, TEXT | {"not": {"maxLength": 2}},
        "bb"),
    Row("alternatives-changed", TEXT | {"allOf": [{"maxLength": 2}]},
        TEXT | {"allOf": [{"maxLength": 2}, {"pattern": "a"}]}, "b"),
    Row("alternatives-changed", fields(a=TEXT) | {"anyOf": [{"required": ["a"]}, {}]},
        fields(a=TEXT) | {"anyOf": [{"required": ["a"]}]}, {}),
    Row("alternatives-widened", TEXT | {"anyOf": [{"maxLength": 1}]},
        TEXT | {"anyOf": [{"pattern": "a"}, {"maxLength": 2}]}),
    Row("alternatives-widened", TEXT | {"allOf": [{"maxLength": 1}, {"pattern": "a"}]},
        TEXT | {"allOf": [{"maxLength": 2}]}),
    Row("alternatives-widened", TEXT | {"not": {"maxLength": 1}}, TEXT),
    Row("rule-added", TEXT, TEXT | {RULES_IN_CEL: [{"rule": "self != ''"}]}),
    Row("rule-removed", TEXT | {RULES_IN_CEL: [{"rule": "self != ''"}]}, TEXT),
    Row("keyword-changed", TEXT, TEXT | {"x-kubernetes-of-tomorrow": True}),
]  # fmt: skip


def schema(field: Json | None) -> Json:
    return {"type": "object", "properties": {"g": TEXT} | ({"f": field} if field else {})}


def compared(row: Row) -> list[Finding]:
    return compare_schemas(schema(row.old), schema(row.new), least=Severity.SAFE)


def identity(row: Row) -> str:
    return f"{row.rule}-{row.path}"


@pytest.mark.parametrize("row", ROWS, ids=identity)
def test_a_change_is_found_at_its_place(row: Row) -> None:
    found = compared(row)
    assert (row.rule, row.path) in [(each.rule, each.path) for each in found]
    worst = min(each.severity.rank for each in found)
    assert RULES[row.rule].severity.rank == worst


def stored(checked: Schema, obj: Json) -> Json | None:
    """What a server keeps of an object; nothing if it refuses it."""
    kept = copy.deepcopy(obj)
    checked.prune(kept)
    checked.default(kept)
    return None if checked.validate(kept) else kept


WITNESSED = [row for row in ROWS if row.value is not NOTHING]


@pytest.mark.parametrize("row", WITNESSED, ids=identity)
def test_what_was_right_is_refused_or_lost_afterwards(row: Row) -> None:
    before, after = compile_schema(schema(row.old)), compile_schema(schema(row.new))
    kept = stored(before, {"f": row.value})
    assert kept is not None
    assert stored(after, {"f": row.value}) != kept


def test_every_breaking_change_of_a_schema_has_a_witness() -> None:
    shown = {row.rule for row in WITNESSED}
    named = {row.rule for row in ROWS if RULES[row.rule].severity is Severity.BREAKING}
    assert named - shown == {"unique-added"}  # which no server takes


def is_kept(row: Row, *, beside: bool) -> bool:
    """Whether an update passes that leaves a mistake as it is and changes something else."""
    checked = compile_schema(schema(row.new))
    held = copy.deepcopy(row.value)
    if beside:
        held["a"] = "y"
    old, new = {"f": row.value, "g": "before"}, {"f": held, "g": "after"}
    checked.default(new)
    return not checked.validate_update(new, old)


@pytest.mark.parametrize(
    "row",
    [row for row in WITNESSED if "Kubernetes 1.30" in RULES[row.rule].advice],
    ids=identity,
)
def test_an_update_passes_that_leaves_the_mistake_as_it_is(row: Row) -> None:
    assert is_kept(row, beside=False)


@pytest.mark.parametrize(
    "row", [row for row in ROWS if row.rule in ("required-added", "required-field-added")]
)
def test_a_missing_field_is_kept_only_while_nothing_beside_it_changes(row: Row) -> None:
    assert not is_kept(row, beside=True)


def test_doubles_that_are_there_may_stay() -> None:
    for row in (row for row in ROWS if row.rule == "list-keyed"):
        assert is_kept(row, beside=False)


def test_what_is_found_concerns_people_who_ask_for_it() -> None:
    before, after = schema(TEXT), schema(TEXT | {"minLength": 1, "nullable": True})
    assert [each.rule for each in compare_schemas(before, after)] == ["limit-added"]
    everything = compare_schemas(before, after, least=Severity.SAFE)
    assert [each.rule for each in everything] == ["limit-added", "nullable-added"]
    assert compare_schemas(after, before, least=Severity.BREAKING)[0].rule == "nullable-removed"


def test_words_for_people_are_no_change() -> None:
    described = TEXT | {"description": "A text.", "title": "F", "example": "x"}
    assert compare_schemas(schema(TEXT), schema(described), least=Severity.SAFE) == []


def test_a_field_called_description_is_a_field() -> None:
    before, after = schema(fields(description=TEXT)), schema(fields(text=NUMBER))
    assert [each.path for each in compare_schemas(before, after)] == ["f.description"]


def test_what_every_object_has_need_not_be_declared() -> None:
    named = {"type": "object", "properties": {"name": TEXT}}
    declared = {"apiVersion": TEXT, "kind": TEXT, "metadata": named}
    before = schema(TEXT)
    after = before | {"properties": before["properties"] | declared}
    assert compare_schemas(before, after, least=Severity.SAFE) == []
    assert compare_schemas(after, before, least=Severity.SAFE) == []


def test_int_or_string_says_its_alternatives_twice() -> None:
    options = [{"type": "integer"}, {"type": "string"}]
    before = schema({INT_OR_STRING: True})
    for more in ({"anyOf": options}, {"allOf": [{"anyOf": options}]}):
        after = schema({INT_OR_STRING: True} | more)
        assert compare_schemas(before, after, least=Severity.SAFE) == []
        assert compare_schemas(after, before, least=Severity.SAFE) == []


def test_the_advice_for_a_rename_names_the_nearest_new_field() -> None:
    before = schema(fields(cronSpec=TEXT))
    after = schema(fields(image=TEXT, spec=TEXT, size=NUMBER))
    [finding] = compare_schemas(before, after)
    assert finding.fact == "string is gone, and dropped; spec is new and has the same schema"
    assert "became spec," in finding.advice


def test_a_name_with_dots_is_quoted_in_paths() -> None:
    before, after = schema(fields(**{"a.b": TEXT})), schema(fields(c=NUMBER))
    assert compare_schemas(before, after)[0].path == 'f["a.b"]'


def test_a_finding_is_plain_data() -> None:
    [finding] = compare_schemas(schema(TEXT), schema(NUMBER), version="v1")
    assert finding.as_data() == {
        "version": "v1",
        "path": "f",
        "rule": "type-changed",
        "severity": "breaking",
        "fact": "string became integer",
        "advice": RULES["type-changed"].advice,
    }


def version(name: str, **more: Any) -> Json:
    given = {"name": name, "served": True, "storage": name == "v1"}
    return given | {"schema": {"openAPIV3Schema": schema(TEXT)}} | more


def definition(*versions: Json, **more: Any) -> Json:
    names = {"plural": "things", "kind": "Thing", "shortNames": ["th"]} | more.pop("names", {})
    spec = {"group": "ex.io", "scope": "Namespaced", "names": names, "versions": [*versions]}
    status = {"storedVersions": more.pop("stored", ["v1"])}
    return {"spec": spec | more, "status": status}


V1, V2 = version("v1"), version("v2")
SCALE = {"specReplicasPath": ".spec.a", "statusReplicasPath": ".status.a"}
ONE = definition(V1)
CHANGES: list[tuple[str, Json, Json, str]] = [
    ("identity-changed", ONE, definition(V1, group="ex.com"), "spec.group"),
    ("identity-changed", ONE, definition(V1, scope="Cluster"), "spec.scope"),
    ("identity-changed", ONE, definition(V1, names={"plural": "t"}), "spec.names.plural"),
    ("identity-changed", ONE, definition(V1, names={"kind": "T", "singular": "thing",
     "listKind": "ThingList"}), "spec.names.kind"),
    ("names-changed", ONE, definition(V1, names={"singular": "t"}), "spec.names.singular"),
    ("names-changed", ONE, definition(V1, names={"listKind": "T"}), "spec.names.listKind"),
    ("names-changed", ONE, definition(V1, names={"shortNames": []}), "spec.names.shortNames"),
    ("names-added", ONE, definition(V1, names={"categories": ["all"]}), "spec.names.categories"),
    ("stored-version-removed", definition(V1, V2), definition(V2 | {"storage": True}),
     "spec.versions[v1]"),
    ("stored-version-removed", definition(V1, V2, stored=["v1", "v2"]), ONE, "spec.versions[v2]"),
    ("served-version-removed", definition(V1, V2), ONE, "spec.versions[v2]"),
    ("version-removed", definition(V1, V2 | {"served": False}), ONE, "spec.versions[v2]"),
    ("version-added", ONE, definition(V1, V2), "spec.versions[v2]"),
    ("version-unserved", definition(V1, V2), definition(V1, V2 | {"served": False}),
     "spec.versions[v2].served"),
    ("version-served", definition(V1, V2 | {"served": False}), definition(V1, V2),
     "spec.versions[v2].served"),
    ("version-deprecated", ONE, definition(V1 | {"deprecated": True}),
     "spec.versions[v1].deprecated"),
    ("storage-moved", definition(V1, V2),
     definition(V1 | {"storage": False}, V2 | {"storage": True}), "spec.versions[v2].storage"),
    ("status-removed", definition(V1 | {"subresources": {"status": {}}}), ONE,
     "spec.versions[v1].subresources.status"),
    ("status-added", ONE, definition(V1 | {"subresources": {"status": {}}}),
     "spec.versions[v1].subresources.status"),
    ("scale-removed", definition(V1 | {"subresources": {"scale": SCALE}}), ONE,
     "spec.versions[v1].subresources.scale"),
    ("scale-added", ONE, definition(V1 | {"subresources": {"scale": SCALE}}),
     "spec.versions[v1].subresources.scale"),
    ("scale-changed", definition(V1 | {"subresources": {"scale": SCALE}}),
     definition(V1 | {"subresources": {"scale": SCALE | {"specReplicasPath": ".spec.b"}}}),
     "spec.versions[v1].subresources.scale"),
    ("selectable-removed", definition(V1 | {"selectableFields": [{"jsonPath": ".f"}]}), ONE,
     "spec.versions[v1].selectableFields"),
    ("selectable-added", ONE, definition(V1 | {"selectableFields": [{"jsonPath": ".f"}]}),
     "spec.versions[v1].selectableFields"),
    ("columns-changed", ONE,
     definition(V1 | {"additionalPrinterColumns": [{"name": "F", "jsonPath": ".f"}]}),
     "spec.versions[v1].additionalPrinterColumns"),
    ("conversion-changed", definition(V1, V2, conversion={"strategy": "Webhook"}),
     definition(V1, V2), "spec.conversion.strategy"),
    ("unknown-dropped", definition(V1, preserveUnknownFields=True), ONE,
     "spec.preserveUnknownFields"),
    ("unknown-dropped", definition(V1 | {"schema": None}), ONE, ""),
    ("field-removed", ONE, definition(version("v1", schema={"openAPIV3Schema": schema(None)})),
     "f"),
]  # fmt: skip


@pytest.mark.parametrize(("rule", "old", "new", "path"), CHANGES)
def test_a_change_of_a_definition_is_found(rule: str, old: Json, new: Json, path: str) -> None:
    found = compare_definitions(old, new, least=Severity.SAFE)
    assert (rule, path) in [(each.rule, each.path) for each in found]
    assert min(each.severity.rank for each in found) == RULES[rule].severity.rank


def test_names_that_follow_from_the_kind_need_not_be_declared() -> None:
    declared = definition(V1, names={"singular": "thing", "listKind": "ThingList"})
    assert compare_definitions(ONE, declared, least=Severity.SAFE) == []


def test_findings_in_a_schema_name_their_version() -> None:
    changed = version("v2", schema={"openAPIV3Schema": schema(NUMBER)})
    found = compare_definitions(definition(V1, V2), definition(V1, changed))
    assert [(each.version, each.path, each.rule) for each in found] == [("v2", "f", "type-changed")]


def test_every_rule_has_a_row() -> None:
    shown = {row.rule for row in ROWS} | {rule for rule, *_ in CHANGES}
    assert shown == {*RULES}


def test_rows_are_schemas_that_a_server_takes() -> None:
    refused = Counter(
        row.rule
        for row in ROWS
        for each in (row.old, row.new)
        if check_schema(schema(each), "schema")
    )
    assert {*refused} == {"unique-added", "unique-removed"}
