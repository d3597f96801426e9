"""Drafts of Conversions: what they recover, and that `polyver check` accepts every draft."""

from __future__ import annotations

from time import process_time
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.apis.conversions import SCHEMAS, listed
from tests.apis.conversions import of as fields
from tests.apis.drawn_schemas import drawn_schemas
from tests.apis.edits import EDITS, SchemaEdit, edited, edits, of, usual_schemas

from polyver.apis import DefinedVersion, Definition, Names
from polyver.apis.compatibility import FindingSeverity
from polyver.apis.suggesting import SuggestedConversion, suggest, suggestion_text
from polyver.apis.trials import CheckedKind, check
from polyver.kube.objects import load_manifests

Schema = dict[str, Any]
TEXT, WHOLE = {"type": "string"}, {"type": "integer"}


def drafted(*schemas: Schema, minimum: float = 0.6) -> SuggestedConversion:
    versions = tuple(
        DefinedVersion(f"v{number}", schema=schema, storage=number == 1)
        for number, schema in enumerate(schemas, 1)
    )
    definition = Definition("ex.io", Names("Toy", "toys"), versions)
    return suggest(definition, [each.name for each in versions], minimum=minimum)


def rules(old: Schema, new: Schema, **options: Any) -> list[Any]:
    """The rules for two schemas of the spec."""
    [edge] = drafted(fields(spec=old), fields(spec=new), **options).edges
    return [each.as_data() for each in edge.rules]


def breaking(conversion: SuggestedConversion, examples: int) -> list[str]:
    subject = CheckedKind(conversion.converter(), conversion.schemas, "toys.ex.io")
    found = check(subject, examples=examples).findings
    return [each.fact for each in found if each.severity is FindingSeverity.BREAKING]


# Properties.


@given(usual_schemas())
@settings(max_examples=20)
def test_equal_schemas_need_no_rule(schema: Schema) -> None:
    assert [edge.rules for edge in drafted(schema, schema).edges] == [()]


@given(edits())
@settings(max_examples=40)
def test_a_draft_recovers_a_known_change(edit: SchemaEdit) -> None:
    [edge] = drafted(edit.old, edit.new).edges
    found = {(".".join(each.source), ".".join(each.target)): each.name for each in edge.rules}
    expected = "move" if edit.name in ("rename", "move object") else edit.name
    assert found == {(edit.source, edit.target): expected}


@given(st.data())
@settings(max_examples=25)
def test_every_draft_passes_the_check(data: st.DataObject) -> None:
    schemas = data.draw(drawn_schemas(["v1", "v2", "v3"]))
    if len(schemas) > 1:
        made = drafted(*schemas.values(), minimum=0.3)
        assert made == drafted(*schemas.values(), minimum=0.3)
        assert breaking(made, 0) == []


@pytest.mark.parametrize("name", EDITS)
def test_a_recovered_change_passes_the_check_on_generated_objects(name: str) -> None:
    template = of({"cachePath": TEXT, "queueMode": WHOLE})
    schema = of({"spec": of({"workerZone": TEXT, "probeLimit": WHOLE, "template": template})})
    edit = edited(name, schema, "workerZone")
    assert breaking(drafted(edit.old, edit.new), 40) == []


# Rules.


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        (
            fields(cmd=TEXT),
            fields(command=TEXT),
            {"move": {"from": "spec.cmd", "to": "spec.command"}},
        ),
        (
            fields(timeoutSeconds=WHOLE),
            fields(timeoutMillis=WHOLE),
            {"scale": {"from": "spec.timeoutSeconds", "to": "spec.timeoutMillis", "factor": 1000}},
        ),
        (
            fields(sizeMiB=WHOLE),
            fields(sizeGiB={"type": "number"}),
            {
                "scale": {
                    "from": "spec.sizeMiB",
                    "to": "spec.sizeGiB",
                    "factor": "1/1024",
                    "types": ["integer", "number"],
                }
            },
        ),
        (
            fields(timeout=TEXT),
            fields(timeoutSeconds=WHOLE),
            {"duration": {"from": "spec.timeout", "to": "spec.timeoutSeconds", "unit": "s"}},
        ),
        (
            fields(idleMillis={"type": "number"}),
            fields(idle=TEXT),
            {
                "duration": {
                    "from": "spec.idleMillis",
                    "to": "spec.idle",
                    "unit": "ms",
                    "types": ["number", "string"],
                }
            },
        ),
        (
            fields(port=TEXT),
            fields(port=WHOLE),
            {"cast": {"at": "spec.port", "from": "string", "to": "integer"}},
        ),
        (
            fields(image=TEXT),
            fields(images={"type": "array", "items": TEXT}),
            {"wrap": {"from": "spec.image", "to": "spec.images"}},
        ),
        (
            fields(env=listed(name=TEXT, value=TEXT)),
            fields(env={"type": "object", "additionalProperties": TEXT}),
            {"keyed": {"from": "spec.env", "to": "spec.env", "key": "name", "value": "value"}},
        ),
        (
            fields(policy=TEXT | {"enum": ["Always", "IfNotPresent"]}),
            fields(policy=TEXT | {"enum": ["always", "if-not-present", "never"]}),
            {
                "values": {
                    "at": "spec.policy",
                    "map": {"Always": "always", "IfNotPresent": "if-not-present"},
                }
            },
        ),
        (
            fields(hostPort=TEXT),
            fields(host=TEXT, port=WHOLE),
            {
                "split": {
                    "from": "spec.hostPort",
                    "into": ["spec.host", "spec.port"],
                    "separator": ":",
                    "types": ["string", "integer"],
                }
            },
        ),
        (
            fields(strategy=fields(type=TEXT)),
            fields(strategyType=TEXT),
            {"move": {"from": "spec.strategy.type", "to": "spec.strategyType"}},
        ),
        (
            fields(containers=listed(name=TEXT, cmd=TEXT)),
            fields(containers=listed(name=TEXT, command=TEXT)),
            {
                "each": {
                    "at": "spec.containers",
                    "rules": [{"move": {"from": "cmd", "to": "command"}}],
                }
            },
        ),
        (
            fields(job=fields(image=TEXT, cmd=TEXT, args=TEXT)),
            fields(template=fields(job=fields(image=TEXT, command=TEXT, args=TEXT))),
            {
                "within": {
                    "at": "spec.job",
                    "as": "spec.template.job",
                    "rules": [{"move": {"from": "cmd", "to": "command"}}],
                }
            },
        ),
    ],
)
def test_a_change_gets_its_rule(old: Schema, new: Schema, expected: Schema) -> None:
    assert rules(old, new) == [expected]


def test_fields_without_a_partner_are_listed_as_preserved() -> None:
    old, new = fields(legacyMode=TEXT), fields(engine=fields(size=WHOLE))
    assert rules(old, new) == [{"drop": {"at": "spec.legacyMode"}}, {"add": {"at": "spec.engine"}}]


def test_a_field_that_changes_to_a_type_without_a_rule_is_preserved_on_both_sides() -> None:
    old, new = fields(schedule=TEXT), fields(schedule=fields(hour=TEXT))
    assert rules(old, new) == [{"drop": {"at": "spec.schedule"}}, {"add": {"at": "spec.schedule"}}]


def test_a_list_that_becomes_a_single_value_turns_the_edge() -> None:
    [edge] = drafted(
        fields(spec=fields(images={"type": "array", "items": TEXT})),
        fields(spec=fields(image=TEXT)),
    ).edges
    assert (edge.source, edge.target) == ("v2", "v1")
    assert [each.name for each in edge.rules] == ["wrap"]


def test_the_least_confidence_decides_which_rules_are_written() -> None:
    old, new = fields(cronSpec=TEXT, a=WHOLE), fields(schedule=TEXT, a=WHOLE)
    assert [[*each] for each in rules(old, new)] == [["drop"], ["add"]]
    assert [[*each] for each in rules(old, new, minimum=0.4)] == [["move"]]


def test_the_only_required_field_without_a_partner_is_a_rename() -> None:
    old = fields(cronSpec=TEXT) | {"required": ["cronSpec"]}
    new = fields(schedule=TEXT, policy=TEXT) | {"required": ["schedule"]}
    assert [[*each] for each in rules(old, new)] == [["move"], ["add"]]


def test_each_version_is_connected_to_the_most_similar_one() -> None:
    made = drafted(SCHEMAS["v1"], SCHEMAS["v3"], SCHEMAS["v2"])
    assert [(each.source, each.target) for each in made.edges] == [("v1", "v3"), ("v2", "v3")] or [
        (each.source, each.target) for each in made.edges
    ] == [("v1", "v3"), ("v3", "v2")]
    assert breaking(made, 40) == []


def test_the_text_is_the_conversion_with_a_reason_for_each_rule() -> None:
    made = drafted(SCHEMAS["v1"], SCHEMAS["v2"])
    text = suggestion_text(made)
    [document] = load_manifests(text, "draft.yaml")
    assert document.value == made.as_data()
    lines = text.splitlines()
    for number, line in enumerate(lines):
        if line.lstrip().startswith("- ") and line.lstrip()[2:].partition(":")[0] in _RULES:
            assert lines[number - 1].lstrip().startswith("# ")


_RULES = ("move", "wrap", "scale", "cast", "keyed", "each", "split", "drop", "add", "values")


# Cost.


def test_thousands_of_fields_are_matched_in_a_time_that_grows_with_their_number() -> None:
    def cost(count: int) -> float:
        old = of({f"item{n}Setting{n % 7}": TEXT for n in range(count)})
        new = of({f"item{n}Option{n % 7}": TEXT for n in range(count)})
        start = process_time()
        drafted(of({"spec": old}), of({"spec": new}))
        return process_time() - start

    small = max(cost(250), 0.05)
    assert cost(2000) < 24 * small
