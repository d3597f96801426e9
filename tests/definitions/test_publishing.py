"""Publishing as a decision: the same versions in any order give the same lineage."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.definitions.samples import SYSTEM, definition, entry, legacy

from polyver.core import Stage
from polyver.definitions.publishing import (
    Decision,
    decide,
    known_revision,
    lineage_of,
    read_definition,
    revision_object,
    status_of,
)

Object = dict[str, Any]
VERSIONS = ["0.1", "1", "1.0.1", "1.2.0-rc.1", "1.2", "1.10.0", "2"]


class Published:
    """What is published so far, by decisions alone."""

    def __init__(self) -> None:
        self.revisions: list[Object] = []
        self.status: Object = {}

    def apply(self, obj: Object) -> Decision:
        whole = {**obj, "metadata": {**obj["metadata"], "uid": "u", "generation": 1}}
        whole["status"] = self.status
        wanted, problems = read_definition(whole)
        assert not problems
        known = [known_revision(each) for each in self.revisions]
        decision = decide(wanted, [each for each in known if each is not None])
        if not decision.refusals:
            self.revisions += [revision_object(wanted, each, whole) for each in decision.create]
        self.status = status_of(whole, decision, decision.refusals, now="2026-01-01T00:00:00Z")
        return decision

    @property
    def lineage(self) -> list[tuple[str, str, str]]:
        return [(e["version"], e["revision"], e["digest"]) for e in self.status["versions"]]


def published_in_lists(order: list[str]) -> Published:
    """Each version is added to the list, wherever its place is."""
    made = Published()
    for count in range(1, len(order) + 1):
        entries = [entry(each, podSpecPath=each) for each in order[:count]]
        assert not made.apply(definition("web", *entries)).refusals
    return made


def published_one_by_one(order: list[str]) -> Published:
    """Each version takes the place of the one before, as in v1beta1."""
    made = Published()
    for each in order:
        assert not made.apply(legacy("web", each, version=each)).refusals
    return made


@settings(max_examples=40)
@given(st.permutations(VERSIONS), st.permutations(VERSIONS))
def test_any_order_of_publishing_gives_the_same_lineage(one: list[str], other: list[str]) -> None:
    first = published_in_lists(one)
    assert published_in_lists(other).lineage == first.lineage
    assert published_one_by_one(other).lineage == first.lineage
    assert first.status["latestRevision"]["name"] == "web-v2.0.0"


@settings(max_examples=20)
@given(st.permutations(VERSIONS))
def test_publishing_again_changes_nothing(order: list[str]) -> None:
    made = published_in_lists(order)
    before = made.lineage, len(made.revisions)
    decision = made.apply(definition("web", *(entry(each, podSpecPath=each) for each in order)))
    assert not decision.create
    assert (made.lineage, len(made.revisions)) == before


def test_a_revision_holds_the_definition_as_it_was() -> None:
    made = Published()
    made.apply(definition("web", entry("3.4", podSpecPath="a"), "2"))
    first = next(each for each in made.revisions if each["metadata"]["name"] == "web-v3.4.0")
    assert first["metadata"]["labels"] == {"componentdefinition.oam.dev/name": "web"}
    spec = first["spec"]
    assert (spec["version"], spec["definitionType"], spec["revision"]) == ("3.4.0", "Component", 0)
    assert spec["digest"] == spec["revisionHash"]
    assert spec["componentDefinition"]["metadata"] == {"name": "web", "namespace": SYSTEM}
    assert spec["componentDefinition"]["spec"] == entry("3.4.0", podSpecPath="a")


def test_the_digest_is_of_the_content_alone() -> None:
    one, _ = read_definition(definition("web", "1.0.0"))
    other, _ = read_definition(definition("api", entry("2", deprecated={"use": "3"})))
    assert one.entries[0].digest == other.entries[0].digest
    assert other.entries[0].stage is Stage.DEPRECATED


def test_a_legacy_definition_is_numbered_as_it_changes() -> None:
    made = Published()
    for content in ("a", "b", "b", "a"):
        made.apply(legacy("web", content))
    names = [each["metadata"]["name"] for each in made.revisions]
    assert names == ["web-v1", "web-v2", "web-v3"]


def test_a_named_revision_takes_a_number_as_well() -> None:
    made = Published()
    made.apply(legacy("web", "a"))
    made.apply(legacy("web", "b", named="4.4"))
    made.apply(legacy("web", "c"))
    names = [(each["metadata"]["name"], each["spec"]["revision"]) for each in made.revisions]
    assert names == [("web-v1", 1), ("web-v4.4", 2), ("web-v3", 3)]


def test_a_named_revision_does_not_change() -> None:
    made = Published()
    made.apply(legacy("web", "a", named="4.4"))
    [refusal] = made.apply(legacy("web", "b", named="4.4")).refusals
    assert refusal.reason == "VersionTaken"
    assert "web-v4.4 exists with other content (sha256:" in refusal.fact


def test_a_list_without_a_version_removes_it_and_one_alone_does_not() -> None:
    made = Published()
    made.apply(definition("web", "1.0.0", "1.1.0", "1.2.0"))
    assert [each.name for each in made.apply(definition("web", "1.1.0", "1.2.0")).remove] == [
        "web-v1.0.0"
    ]
    alone = Published()
    alone.apply(legacy("web", "a", version="1.0.0"))
    assert not alone.apply(legacy("web", "b", version="1.1.0")).remove


@pytest.mark.parametrize(
    "broken", [{}, {"spec": {}}, {"spec": {"revision": 0}}, {"spec": {"version": "junk"}}]
)
def test_revisions_that_make_no_sense_are_passed_over(broken: Object) -> None:
    assert known_revision({"metadata": {"name": "web-v1"}, **broken}) is None


def test_the_newest_is_the_newest_final_one() -> None:
    wanted, _ = read_definition(definition("web", "1.0.0", "2.0.0-rc.1"))
    made = Published()
    made.apply(definition("web", "1.0.0", "2.0.0-rc.1"))
    known = [known for known in map(known_revision, made.revisions) if known is not None]
    assert len(lineage_of(wanted, known)) == 2
    assert made.status["latestRevision"]["name"] == "web-v1.0.0"


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "object", "properties": "x"},
        {"type": ["object"]},
        {"type": "object", "properties": {"a": []}},
        {"type": "object", "properties": {"a": {"type": "string", "format": {}}}},
        [],
        "object",
    ],
)
def test_what_is_no_schema_of_parameters_is_refused(schema: Any) -> None:
    entry_ = entry("1.0.0", schematic={"gotemplate": {"template": "", "parameters": schema}})
    _, refusals = read_definition(definition("web", entry_))
    assert [each.reason for each in refusals] == ["InvalidParameters"]
    assert refusals[0].at == "spec.versions[0].schematic.gotemplate.parameters"


def test_nulls_in_a_schema_of_parameters_are_read_as_api_servers_do() -> None:
    field = {"type": "string", "enum": None}
    schema = {"type": "object", "required": None, "properties": {"a": field}}
    schematic = {"gotemplate": {"template": "", "parameters": schema}}
    versions = [entry(each, schematic=schematic) for each in ("1.0.0", "1.0.1")]
    decision = Published().apply(definition("web", *versions))
    assert not decision.refusals


def test_a_go_template_that_cannot_be_read_is_refused() -> None:
    schematic = {"gotemplate": {"template": "kind: A\nname: {{ .context.name | uper }}\n"}}
    _, refusals = read_definition(definition("web", entry("1.0.0", schematic=schematic)))
    assert [(each.reason, str(each)) for each in refusals] == [
        (
            "InvalidTemplate",
            'line 2: function "uper" not defined, near {{ .context.name | uper }} '
            "(spec.versions[0].schematic.gotemplate.template); did you mean upper?",
        )
    ]
