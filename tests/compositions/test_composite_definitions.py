"""Which kind a definition of composite resources defines, and what is wrong with one."""

from __future__ import annotations

from typing import Any

import pytest
from tests.compositions.composing import (
    GROUP,
    KIND,
    SEED_BUCKET,
    SEED_COMPOSITION,
    composition,
    definition,
    manifest,
    step,
    version,
)

from polyver.apis.conversion_kind import converter_of
from polyver.apis.crds import crd_of
from polyver.capability import Refusal
from polyver.compositions.decisions import (
    check_composition,
    check_conversion,
    check_definition,
    composition_revision_object,
    composition_warnings,
    definition_crd,
    known_composition_revision,
    lost_fields,
    unheeded_fields,
)
from polyver.compositions.decisions._revisions import composition_changes
from polyver.compositions.kinds import COMPOSITION_KINDS, COMPOSITIONS, DEFINITIONS, KINDS
from polyver.kube.objects.schema import check_schema, compile_schema
from polyver.kube.objects.webhooks import Webhook

Object = dict[str, Any]


KEEPS_UNKNOWN: Object = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}


def inside(**properties: Object) -> Object:
    return {"type": "object", "properties": properties}


def mapped(values: Object) -> Object:
    return {"type": "object", "additionalProperties": values}


def listing() -> Object:
    return {"type": "array", "items": inside(c={"type": "string"})}


def schema_of(crd: Object, number: int = 0) -> Object:
    found: Object = crd["spec"]["versions"][number]["schema"]["openAPIV3Schema"]
    return found


def problems(schema: Object, obj: Object) -> list[str]:
    """What an API server with this schema says of an object: what it drops, and what is wrong."""
    compiled = compile_schema(schema)
    dropped = compiled.prune(obj)
    compiled.default(obj)
    return dropped + [f"{cause.field}: {cause.message}" for cause in compiled.validate(obj)]


def declared(kind: Any) -> Object:
    return schema_of(crd_of(kind.definition()))


def test_the_seeds_bucket_is_one_of_the_kind_that_its_definition_defines() -> None:
    crd = definition_crd(definition())
    assert crd["metadata"]["name"] == f"acmebuckets.{GROUP}"
    assert crd["spec"]["scope"] == "Cluster"
    assert crd["spec"]["names"]["categories"] == ["composite"]
    assert problems(schema_of(crd), manifest(SEED_BUCKET)) == []
    wrong = manifest(SEED_BUCKET)
    wrong["spec"]["compositionUpdatePolicy"] = "Sometimes"
    assert "spec.compositionUpdatePolicy" in problems(schema_of(crd), wrong)[0]


def test_the_seeds_composition_and_its_revision_are_of_their_kinds() -> None:
    found = manifest(SEED_COMPOSITION)
    assert problems(declared(COMPOSITIONS), found) == []
    assert check_composition(found, several=True) == []
    changes = composition_changes(found, [])
    assert changes.create is not None
    revision = composition_revision_object(changes.create, found)
    assert problems(declared(COMPOSITION_KINDS[2]), revision) == []
    assert known_composition_revision(revision) == changes.create


def test_the_kinds_are_as_an_api_server_wants_them() -> None:
    for kind in (*KINDS, *COMPOSITION_KINDS):
        status = kind.definition().versions[0].status
        assert check_schema(declared(kind), "", status=status) == []
    assert problems(declared(DEFINITIONS), definition()) == []


def test_the_older_mode_of_compositions_is_refused() -> None:
    problem, *_ = problems(declared(COMPOSITIONS), composition(mode="Resources"))
    assert problem.startswith("spec.mode: ")


def test_fields_of_composite_resources_are_put_in_and_win() -> None:
    mine = version(compositionRef={"type": "string"}, size={"type": "integer", "maximum": 9})
    crd = definition_crd(definition(mine, defaultCompositionUpdatePolicy="Manual"))
    spec = schema_of(crd)["properties"]["spec"]["properties"]
    assert spec["compositionRef"]["type"] == "object"
    assert spec["size"] == {"type": "integer", "maximum": 9}
    assert spec["compositionUpdatePolicy"]["default"] == "Manual"
    assert schema_of(crd)["properties"]["metadata"]["properties"]["name"]["maxLength"] == 63
    [told] = unheeded_fields(definition(mine))
    assert "properties.spec.properties.compositionRef has no effect" in told


def test_what_a_schema_demands_is_kept() -> None:
    mine = version()
    schema = mine["schema"]["openAPIV3Schema"]
    rules = [{"rule": "self.size > 1"}]
    schema["properties"]["spec"] |= {"required": ["size"], "x-kubernetes-validations": rules}
    schema["properties"]["status"] = {"type": "object", "properties": {"url": {"type": "string"}}}
    made = schema_of(definition_crd(definition(mine)))
    assert made["properties"]["spec"]["required"] == ["size"]
    assert made["properties"]["spec"]["x-kubernetes-validations"] == rules
    assert {"url", "conditions", "pipeline"} <= made["properties"]["status"]["properties"].keys()
    assert made["required"] == ["spec"]


def test_names_of_claims_are_taken_and_warned_about() -> None:
    claimed = definition(claimNames={"kind": "B", "plural": "bs"})
    assert check_definition(claimed) == []
    [told] = unheeded_fields(claimed)
    assert told.startswith("spec.claimNames has no effect: claims are not supported")
    assert definition_crd(claimed) == definition_crd(definition())


@pytest.mark.parametrize("scope", ["Namespaced", "Cluster"])
def test_the_newer_scopes_have_the_fields_in_one_place(scope: str) -> None:
    crd = definition_crd(definition(scope=scope))
    spec = schema_of(crd)["properties"]["spec"]["properties"]
    assert spec.keys() == {"size", "crossplane"}
    assert "resourceRefs" in spec["crossplane"]["properties"]
    assert crd["spec"]["scope"] == scope
    paths = [each["jsonPath"] for each in crd["spec"]["versions"][0]["additionalPrinterColumns"]]
    assert ".spec.crossplane.compositionRef.name" in paths


def test_the_definitions_labels_annotations_and_columns_are_the_kinds() -> None:
    column = {"name": "SIZE", "type": "integer", "jsonPath": ".spec.size"}
    about = {"labels": {"b": "2"}, "annotations": {"c": "3"}}
    made = definition({**version(), "additionalPrinterColumns": [column]}, metadata=about)
    made["metadata"]["labels"] = {"a": "1", "b": "1"}
    crd = definition_crd(made)
    assert crd["metadata"]["labels"] == {"a": "1", "b": "2"}
    assert crd["metadata"]["annotations"] == {"c": "3"}
    assert crd["metadata"]["ownerReferences"][0]["uid"] == "uid-of-definition"
    names = [each["name"] for each in crd["spec"]["versions"][0]["additionalPrinterColumns"]]
    assert names == ["SIZE", "SYNCED", "READY", "COMPOSITION", "COMPOSITIONREVISION", "AGE"]


def test_several_versions_are_converted_by_a_conversion() -> None:
    crd = definition_crd(
        definition(
            version("v1", gigabytes={"type": "integer"}),
            version("v1alpha1", referenceable=False, size={"type": "integer"}),
        )
    )
    assert [each["storage"] for each in crd["spec"]["versions"]] == [True, False]
    rules = [{"move": {"from": "spec.size", "to": "spec.gigabytes"}}]
    conversion = {
        "apiVersion": "polyver.dev/v1alpha1",
        "kind": "Conversion",
        "metadata": {"name": f"acmebuckets.{GROUP}"},
        "spec": {
            "group": GROUP,
            "kind": KIND,
            "versions": ["v1", "v1alpha1"],
            "edges": [{"from": "v1alpha1", "to": "v1", "rules": rules}],
        },
    }
    old = manifest(SEED_BUCKET)
    old["spec"]["size"] = 3
    made = converter_of(conversion, crd).convert(old, "v1")
    assert made["spec"] == {**manifest(SEED_BUCKET)["spec"], "gigabytes": 3}


STRING: Object = {"type": "string"}


@pytest.mark.parametrize(
    ("before", "after", "lost"),
    [
        ({"size": STRING}, {"gigabytes": STRING}, ["spec.size"]),
        ({"size": STRING}, {"size": STRING, "more": STRING}, []),
        ({"a": inside(b=STRING, c=STRING)}, {"a": inside(c=STRING)}, ["spec.a.b"]),
        ({"a": {"type": "array", "items": inside(b=STRING)}}, {"a": listing()}, ["spec.a[].b"]),
        ({"a": mapped(inside(b=STRING))}, {"a": mapped(inside(c=STRING))}, ["spec.a.*.b"]),
        ({"a": inside(b=STRING)}, {"a": mapped(STRING)}, []),
        ({"a": inside(b=STRING)}, {"a": KEEPS_UNKNOWN}, []),
    ],
)
def test_fields_that_stored_objects_would_lose_are_named(
    before: Object, after: Object, lost: list[str]
) -> None:
    crd = definition_crd(definition(version("v1alpha1", **before)))
    new = version("v1", **after), version("v1alpha1", referenceable=False, **before)
    assert lost_fields(definition(*new), crd) == lost
    found = check_conversion(definition(*new), crd, ["AcmeBucket one"])
    assert [each.reason for each in found] == ["ConversionMissing"] * bool(lost)
    assert check_conversion(definition(*new), crd, []) == []
    added = version("v1", referenceable=False, **after), version("v1alpha1", **before)
    assert lost_fields(definition(*added), crd) == []
    said = {"strategy": "Webhook", "webhook": {"clientConfig": {"url": "https://x.example.org"}}}
    crd["spec"]["conversion"] = said
    assert lost_fields(definition(*new), crd) == []


def test_who_converts_is_who_the_definition_says() -> None:
    versions = version("v1"), version("v1alpha1", referenceable=False)
    client = {"url": "https://hooks.example.org/convert"}
    webhook = {"clientConfig": client, "conversionReviewVersions": ["v1"]}
    said = definition(*versions, conversion={"strategy": "Webhook", "webhook": webhook})
    ours = Webhook(url="https://polyver.example.org/convert")
    found = definition_crd(said, ours)["spec"]["conversion"]
    assert found["webhook"]["clientConfig"]["url"] == client["url"]
    found = definition_crd(definition(*versions), ours)["spec"]["conversion"]
    assert found["webhook"]["clientConfig"]["url"] == ours.url
    none = definition(*versions, conversion={"strategy": "None"})
    assert definition_crd(none, ours)["spec"]["conversion"] == {"strategy": "None"}


@pytest.mark.parametrize("given", [{}, {"schema": {}}, {"schema": {"openAPIV3Schema": {}}}])
def test_without_a_schema_there_are_the_fields_that_all_have(given: Object) -> None:
    bare = {"name": "v1alpha1", "served": True, "referenceable": True, **given}
    made = schema_of(definition_crd(definition(bare)))
    assert problems(made, manifest(SEED_BUCKET)) == []
    assert "compositionRef" in made["properties"]["spec"]["properties"]


def with_schema(schema: object) -> Object:
    return definition({**version(), "schema": {"openAPIV3Schema": schema}})


def nested(field: str, schema: object) -> Object:
    inside = {"type": "object", "properties": {field: schema}}
    return with_schema({"type": "object", "properties": {"status": inside, "spec": inside}})


AT = "spec.versions[0].schema.openAPIV3Schema"


@pytest.mark.parametrize(
    ("wrong", "reason", "at"),
    [
        (definition(group="other.org"), "InvalidName", "metadata.name"),
        (definition(version(), version()), "InvalidVersion", "spec.versions[1].name"),
        (definition(version("V 1")), "InvalidVersion", "spec.versions[0].name"),
        (definition(version(referenceable=False)), "InvalidVersion", "spec.versions"),
        (definition(version("v1"), version("v2")), "InvalidVersion", "spec.versions"),
        (definition({**version(), "served": False}), "InvalidVersion", "spec.versions[0].served"),
        (
            definition(conversion={"strategy": "Webhook"}),
            "InvalidConversion",
            "spec.conversion.webhook",
        ),
        (with_schema({"type": "object", "properties": {"spec": 3}}), "InvalidSchema", AT),
        (nested("size", {}), "InvalidSchema", f"{AT}.properties[spec].properties[size].type"),
        (
            nested("pipeline", {"type": "string"}),
            "InvalidSchema",
            f"{AT}.properties.status.properties.pipeline",
        ),
    ],
)
def test_a_definition_that_cannot_be_is_refused_with_its_place(
    wrong: Object, reason: str, at: str
) -> None:
    assert (reason, at) in [(each.reason, each.at) for each in check_definition(wrong)]
    with pytest.raises(Refusal):
        definition_crd(wrong)


@pytest.mark.parametrize(
    ("steps", "reason", "at"),
    [
        ([step("a"), step("a")], "InvalidPipeline", "spec.pipeline[1].step"),
        (
            [step(functionRevisionSelector={"matchLabels": {"a b": "c"}})],
            "InvalidSelector",
            "spec.pipeline[0].functionRevisionSelector.matchLabels",
        ),
        (
            [step(functionRevisionSelector={"matchLabels": {"pkg.crossplane.io/package": "x"}})],
            "InvalidSelector",
            "spec.pipeline[0].functionRevisionSelector.matchLabels",
        ),
        (
            [step(credentials=[{"name": "c", "source": "Secret"}])],
            "InvalidPipeline",
            "spec.pipeline[0].credentials[0].secretRef",
        ),
        (
            [
                step(
                    requirements={
                        "requiredResources": [
                            {"requirementName": "r", "apiVersion": "v1", "kind": "Node"}
                        ]
                    }
                )
            ],
            "InvalidPipeline",
            "spec.pipeline[0].requirements.requiredResources[0]",
        ),
    ],
)
def test_a_composition_that_cannot_be_is_refused_with_its_place(
    steps: list[Object], reason: str, at: str
) -> None:
    [found] = check_composition(composition("example", *steps), several=True)
    assert (found.reason, found.at) == (reason, at)


def test_a_composition_has_steps_and_a_name_that_fits_into_a_label() -> None:
    found = check_composition(composition("x" * 64, pipeline=[]), several=True)
    assert [each.at for each in found] == ["metadata.name", "spec.pipeline"]


def test_without_the_feature_the_fields_for_function_revisions_are_refused() -> None:
    named: Object = {"functionRevisionRef": {"name": "x-0123456789ab"}}
    labelled: Object = {"functionRevisionSelector": {"matchLabels": {"a": "b"}}}
    made = composition("example", step("a", **named), step("b", **labelled), step("c"))
    assert check_composition(made, several=True) == []
    found = check_composition(made, several=False)
    assert [(each.reason, each.at) for each in found] == [
        ("FeatureOff", "spec.pipeline[0].functionRevisionRef"),
        ("FeatureOff", "spec.pipeline[1].functionRevisionSelector"),
    ]


def test_a_ref_and_a_selector_together_are_warned_about() -> None:
    both: Object = {
        "functionRevisionRef": {"name": "x-0123456789ab"},
        "functionRevisionSelector": {"matchLabels": {"a": "b"}},
    }
    [told] = composition_warnings(composition("example", step("a"), step("b", **both)))
    assert told.startswith("spec.pipeline[1]: ")
    assert told.endswith("functionRevisionRef is used")
