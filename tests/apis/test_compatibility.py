"""Compatibility: each kind of change is found, at its place, and is as bad as it is called."""

from __future__ import annotations

import copy
from collections import Counter
from typing import Any

import pytest
from tests.apis.changes import (
    INT_OR_STRING,
    NUMBER,
    ROWS,
    TEXT,
    WITNESSED,
    Json,
    Row,
    fields,
    identity,
    schema,
)

from polyver.apis.compatibility import (
    RULES,
    CompatibilityFinding,
    FindingSeverity,
    compare_definitions,
    compare_schemas,
)
from polyver.kube.objects.schema import Schema, check_schema, compile_schema


def compared(row: Row) -> list[CompatibilityFinding]:
    return compare_schemas(schema(row.old), schema(row.new), least=FindingSeverity.SAFE)


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


@pytest.mark.parametrize("row", WITNESSED, ids=identity)
def test_what_was_right_is_refused_or_lost_afterwards(row: Row) -> None:
    before, after = compile_schema(schema(row.old)), compile_schema(schema(row.new))
    kept = stored(before, {"f": row.value})
    assert kept is not None
    assert stored(after, {"f": row.value}) != kept


def test_every_breaking_change_of_a_schema_has_a_witness() -> None:
    shown = {row.rule for row in WITNESSED}
    named = {row.rule for row in ROWS if RULES[row.rule].severity is FindingSeverity.BREAKING}
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
    everything = compare_schemas(before, after, least=FindingSeverity.SAFE)
    assert [each.rule for each in everything] == ["limit-added", "nullable-added"]
    assert (
        compare_schemas(after, before, least=FindingSeverity.BREAKING)[0].rule == "nullable-removed"
    )


def test_words_for_people_are_no_change() -> None:
    described = TEXT | {"description": "A text.", "title": "F", "example": "x"}
    assert compare_schemas(schema(TEXT), schema(described), least=FindingSeverity.SAFE) == []


def test_a_field_called_description_is_a_field() -> None:
    before, after = schema(fields(description=TEXT)), schema(fields(text=NUMBER))
    assert [each.path for each in compare_schemas(before, after)] == ["f.description"]


def test_what_every_object_has_need_not_be_declared() -> None:
    named = {"type": "object", "properties": {"name": TEXT}}
    declared = {"apiVersion": TEXT, "kind": TEXT, "metadata": named}
    before = schema(TEXT)
    after = before | {"properties": before["properties"] | declared}
    assert compare_schemas(before, after, least=FindingSeverity.SAFE) == []
    assert compare_schemas(after, before, least=FindingSeverity.SAFE) == []
    assert compare_schemas(before, before | {"required": [*declared]}) == []


def test_int_or_string_says_its_alternatives_twice() -> None:
    options = [{"type": "integer"}, {"type": "string"}]
    before = schema({INT_OR_STRING: True})
    for more in ({"anyOf": options}, {"allOf": [{"anyOf": options}]}):
        after = schema({INT_OR_STRING: True} | more)
        assert compare_schemas(before, after, least=FindingSeverity.SAFE) == []
        assert compare_schemas(after, before, least=FindingSeverity.SAFE) == []


def test_the_advice_for_a_rename_names_the_nearest_new_field() -> None:
    before = schema(fields(cronSpec=TEXT))
    after = schema(fields(image=TEXT, spec=TEXT, size=NUMBER))
    [finding] = compare_schemas(before, after)
    assert (
        finding.fact
        == "string was removed; values are dropped; the new field spec has the same schema"
    )
    assert "renamed to spec," in finding.advice


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
        "fact": "string changed to integer",
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
    found = compare_definitions(old, new, least=FindingSeverity.SAFE)
    assert (rule, path) in [(each.rule, each.path) for each in found]
    assert min(each.severity.rank for each in found) == RULES[rule].severity.rank


def test_names_that_follow_from_the_kind_need_not_be_declared() -> None:
    declared = definition(V1, names={"singular": "thing", "listKind": "ThingList"})
    assert compare_definitions(ONE, declared, least=FindingSeverity.SAFE) == []


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
