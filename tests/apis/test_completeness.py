"""Fail-closed conversions: somebody must name each field that is preserved."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest
from tests.apis.conversions import TEXT, listed, of
from tests.walks.support import eventually

from polyver import apis
from polyver.apis.checking import ConversionFinding
from polyver.apis.conversion import build_converter, read_conversion
from polyver.apis.conversion.completeness import covers
from polyver.apis.conversion_kind import converter_of, definition_of
from polyver.apis.definition import InvalidKind
from polyver.apis.trials import CheckedKind, check
from polyver.core import PolyverError
from polyver.kube.objects import dump_yaml, load_manifests
from polyver.kube.objects.status import ApiError
from polyver.testing import EmbeddedServer

Object = dict[str, Any]
NAME = "jobs.closed.example.com"
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
CONVERSIONS = "/apis/polyver.dev/v1alpha1/conversions"
V1 = {"cron": TEXT, "mode": TEXT, "ports": listed(name=TEXT, note=TEXT)}
V2 = {"schedule": TEXT, "zone": TEXT, "ports": listed(name=TEXT)}
RULES: list[Object] = [
    {"move": {"from": "spec.cron", "to": "spec.schedule"}},
    {"drop": {"at": "spec.mode"}},
]
NAMED = [
    {"version": "v1", "fields": ["spec.ports[].note"], "editsLose": ["spec.ports[]"]},
    {"version": "v2", "fields": ["spec.zone"]},
]


def crd(v1: Object = V1, v2: Object = V2) -> Object:
    versions = [
        {
            "name": name,
            "served": True,
            "storage": name == "v2",
            "schema": {"openAPIV3Schema": of(spec=of(**fields))},
        }
        for name, fields in (("v1", v1), ("v2", v2))
    ]
    names = {"kind": "Job", "plural": "jobs", "singular": "job", "listKind": "JobList"}
    spec = {"group": "closed.example.com", "names": names, "scope": "Namespaced"}
    about = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition"}
    return {**about, "metadata": {"name": NAME}, "spec": {**spec, "versions": versions}}


def conversion(*, rules: list[Object] = RULES, **spec: Any) -> Object:
    edge: Object = {"from": "v1", "to": "v2", "rules": rules}
    known: Object = {"group": "closed.example.com", "kind": "Job", "versions": ["v1", "v2"]}
    return {
        "apiVersion": "polyver.dev/v1alpha1",
        "kind": "Conversion",
        "metadata": {"name": NAME},
        "spec": {**known, "edges": [edge], "completeness": "acknowledged", **spec},
    }


def findings(written: Object, definition: Object | None = None) -> list[tuple[str, str, str]]:
    return [(e.rule, e.versions[0], e.path) for e in checked(written, definition)]


def checked(written: Object, definition: Object | None = None) -> list[ConversionFinding]:
    [document] = load_manifests(dump_yaml(written), "jobs.yaml")
    declared, known = read_conversion(document), definition_of(definition or crd())
    schemas = {each.name: each.schema for each in known.versions if each.schema is not None}
    made = build_converter(declared, known)
    subject = CheckedKind(made, schemas, NAME, "jobs.yaml:1", declared.completeness)
    return [*check(subject, examples=0).findings]


def test_every_field_that_is_preserved_must_be_named() -> None:
    assert findings(conversion()) == [
        ("unacknowledged", "v1", "spec.ports[]"),
        ("unacknowledged", "v1", "spec.ports[].note"),
        ("unacknowledged", "v2", "spec.zone"),
    ]
    [_, note, _] = checked(conversion())
    assert note.severity.value == "breaking"
    assert note.place.endswith(", spec.edges[0]")
    assert note.fact == "v2 cannot express it, and nobody has decided to preserve it"


def test_names_and_rules_decide() -> None:
    assert findings(conversion(preserved=NAMED)) == []
    rules = [*RULES, {"add": {"at": "spec.zone"}}]
    inside = [{"drop": {"at": "note"}}]
    rules += [{"each": {"at": "spec.ports", "key": "name", "rules": inside}}]
    assert findings(conversion(rules=rules)) == []


def test_without_completeness_nothing_must_be_named() -> None:
    written = conversion()
    del written["spec"]["completeness"]
    assert findings(written) == [("edits-lose", "v1", "spec.ports[]")]
    written["spec"]["preserved"] = NAMED
    assert findings(written) == []


def test_a_new_field_in_one_schema_needs_a_decision() -> None:
    known = crd(V1 | {"tier": TEXT})
    assert findings(conversion(preserved=NAMED), known) == [("unacknowledged", "v1", "spec.tier")]
    both = crd(V1 | {"tier": TEXT}, V2 | {"tier": TEXT})
    assert findings(conversion(preserved=NAMED), both) == []


def test_a_name_of_an_object_stands_for_the_fields_inside() -> None:
    known = crd(V1 | {"owner": of(team=TEXT, mail=TEXT)})
    named = [{**NAMED[0], "fields": ["spec.ports[].note", "spec.owner"]}, NAMED[1]]
    assert findings(conversion(preserved=named), known) == []
    assert covers("spec.a", "spec.a")
    assert not covers("spec.a", "spec.ab")


def test_a_name_that_stands_for_nothing_is_found() -> None:
    named = [{**NAMED[0], "fields": ["spec.ports[].note", "spec.cron", "spec.gone"]}, NAMED[1]]
    assert findings(conversion(preserved=named)) == [
        ("outdated-name", "v1", "spec.cron"),
        ("outdated-name", "v1", "spec.gone"),
    ]


def test_without_a_schema_nothing_is_complete() -> None:
    known = crd()
    del known["spec"]["versions"][1]["schema"]
    rules = {(rule, version) for rule, version, _ in findings(conversion(), known)}
    assert {("unacknowledged", "v2"), ("no-schema", "v2")} <= rules


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ({"completeness": "full"}, "spec.completeness"),
        ({"preserved": [{"version": "v9"}]}, "v9 is not declared"),
        ({"preserved": [NAMED[0], NAMED[0]]}, "v1 is named twice"),
        ({"preserved": [{"version": "v1", "field": "spec.a"}]}, "field"),
    ],
)
def test_what_cannot_be_read_is_refused(spec: Object, message: str) -> None:
    [document] = load_manifests(dump_yaml(conversion(**spec)), "jobs.yaml")
    with pytest.raises(PolyverError, match=message):
        read_conversion(document)


def test_a_conversion_that_names_too_little_does_not_fit_its_definition() -> None:
    with pytest.raises(PolyverError, match=r"spec.ports\[\].note of v1: v2 cannot express it"):
        converter_of(conversion(), crd())
    assert converter_of(conversion(preserved=NAMED), crd()).versions == ("v1", "v2")


# Python.


def job(**arguments: Any) -> apis.Kind:
    kind = apis.Kind("Job", group="closed.example.com", **arguments)

    @kind.version("v1")
    class V1(apis.Fields):
        cron: str | None = None
        note: str | None = None

    @kind.version("v2", storage=True)
    class V2(apis.Fields):
        cron: str | None = None

    return kind


def test_kinds_in_python_are_fail_closed_too() -> None:
    kind = job(completeness="acknowledged")
    kind.edge("v1", "v2")(lambda _: None)
    [finding] = check(kind, examples=0).findings
    assert (finding.rule, finding.versions, finding.path) == (
        "unacknowledged",
        ("v1", "v2"),
        "note",
    )
    kind.preserves("v1", "note")
    assert check(kind, examples=0).findings == ()


def test_functions_are_observed() -> None:
    kind = job(completeness="acknowledged")
    kind.converts("v1", "v2")(forth)
    kind.converts("v2", "v1")(back)
    found = [each for each in check(kind, examples=40).findings if each.rule == "unacknowledged"]
    assert [(each.path, each.versions) for each in found] == [("note", ("v1", "v2"))]
    kind.preserves("v1", "note")
    assert check(kind, examples=40).findings == ()


def forth(obj: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in obj.items() if name != "note"}


def back(obj: dict[str, Any]) -> dict[str, Any]:
    return obj


def test_a_version_that_is_not_declared_preserves_nothing() -> None:
    kind = job()
    kind.edge("v1", "v2")(lambda _: None)
    kind.preserves("v3", "note")
    with pytest.raises(InvalidKind, match="Job preserves fields of v3, which is not declared"):
        kind.definition()


# On a server.


@pytest.fixture
def server(kube_server: EmbeddedServer) -> Iterator[EmbeddedServer]:
    kube_server.request("POST", DEFINITIONS, crd())
    yield kube_server
    for path in (DEFINITIONS, CONVERSIONS):
        with suppress(ApiError):
            kube_server.request("DELETE", f"{path}/{NAME}")


def serving(server: EmbeddedServer) -> tuple[str, str]:
    conditions = server.request("GET", f"{CONVERSIONS}/{NAME}").get("status", {})
    [one] = conditions.get("conditions") or [{"status": "", "message": ""}]
    return one["status"], one["message"]


def test_a_server_refuses_what_names_too_little_and_tells_of_new_fields(
    server: EmbeddedServer,
) -> None:
    with pytest.raises(ApiError, match="nobody has decided to preserve it"):
        server.request("POST", CONVERSIONS, conversion())
    server.request("POST", CONVERSIONS, conversion(preserved=NAMED))
    eventually(lambda: serving(server)[0] == "True")
    # The definition may change first. Objects are still converted; the condition names the field.
    found = server.request("GET", f"{DEFINITIONS}/{NAME}")
    found["spec"]["versions"] = crd(V1 | {"tier": TEXT})["spec"]["versions"]
    server.request("PUT", f"{DEFINITIONS}/{NAME}", found)
    eventually(lambda: "spec.tier of v1" in serving(server)[1])
    assert serving(server)[0] == "False"
