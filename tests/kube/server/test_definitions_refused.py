"""Definitions that are refused, with the places and texts that a real server gave."""

from __future__ import annotations

from typing import Any

import pytest
from tests.kube.server.test_definitions import DEFINITIONS, MERGE, Client, definition, version, walk

LABEL = (
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an "
    "alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', "
    "regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')"
)
SCALAR = (
    "must point to a field of type string, boolean or integer. Enum string fields and strings with "
    "formats are allowed."
)
MISSING = (
    "missing from spec.versions; v1 was previously a storage version, and must remain in "
    "spec.versions until a storage migration ensures no data remains persisted in v1 and removes "
    "v1 from status.storedVersions"
)
CLIENT = "spec.conversion.webhookClientConfig"
REVIEWS = "spec.conversion.conversionReviewVersions"
FORM = "; desired format: https://host[/path]"
APPROVAL = "api-approved.kubernetes.io"
NUMBERED = {f"f{number}": {"type": "string"} for number in range(12)}
FIELDS = {
    "a": {"type": "array", "items": {"type": "string"}},
    "n": {"type": "number"},
    "p": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
    "s": {"type": "string"},
}


def of(fields: dict[str, Any], **more: Any) -> dict[str, Any]:
    spec = {"type": "object", "properties": fields}
    return {"type": "object", "properties": {"spec": spec}} | more


def spec(**changes: Any) -> dict[str, Any]:
    changed = definition()
    changed["spec"] |= changes
    return changed


def versions(*found: dict[str, Any]) -> dict[str, Any]:
    return spec(versions=list(found))


def names(**changes: Any) -> dict[str, Any]:
    return spec(names={"plural": "things", "kind": "Thing"} | changes)


def selecting(*paths: str, fields: dict[str, Any] = FIELDS) -> dict[str, Any]:
    chosen = [{"jsonPath": path} for path in paths]
    return versions(version(schema=of(fields), selectableFields=chosen))


def webhook(*reviews: str, **client: Any) -> dict[str, Any]:
    found = {"conversionReviewVersions": list(reviews) or ["v1"], "clientConfig": client}
    return spec(conversion={"strategy": "Webhook", "webhook": found})


def deprecated(text: str, *, really: bool = True) -> dict[str, Any]:
    return versions(version(deprecated=really, deprecationWarning=text))


def scaled(**paths: str) -> dict[str, Any]:
    right = {"specReplicasPath": ".spec.r", "statusReplicasPath": ".status.r"}
    return versions(version(subresources={"scale": right | paths}))


def approved(group: str, **annotations: str) -> dict[str, Any]:
    found = definition(group=group)
    found["metadata"]["annotations"] = annotations
    return found


REFUSED: dict[str, tuple[dict[str, Any], list[tuple[str, str]]]] = {
    "a text for a version that is not deprecated": (
        deprecated("x", really=False),
        [
            (
                "spec.versions[0].deprecationWarning",
                'Invalid value: "x": can only be set for deprecated versions',
            )
        ],
    ),
    "an empty text": (
        deprecated(""),
        [
            (
                "spec.versions[0].deprecationWarning",
                'Invalid value: "": must not be an empty string',
            )
        ],
    ),
    "a text of several lines": (
        deprecated("aä\nb"),
        [
            (
                "spec.versions[0].deprecationWarning",
                'Invalid value: "aä\\nb": must only contain printable UTF-8 characters; '
                "non-printable character found at index 3",
            )
        ],
    ),
    "fields to select by that differ while the schemas do not": (
        versions(
            version(schema=of(FIELDS), selectableFields=[{"jsonPath": ".spec.s"}]),
            version("v2", of(FIELDS)),
        ),
        [
            (
                "spec.versions[0].selectableFields",
                'Invalid value: "": may only be set when `version.schema.openAPIV3Schema` is not '
                "included",
            )
        ],
    ),
    "schemas that differ while the fields to select by do not": (
        versions(
            version(schema=of(FIELDS), selectableFields=[{"jsonPath": ".spec.s"}]),
            version("v2", of(FIELDS, title="x"), selectableFields=[{"jsonPath": ".spec.s"}]),
        ),
        [
            (
                "spec.selectableFields",
                'Invalid value: "": may only be set when validations.schema is included',
            )
        ],
    ),
    "too many fields to select by": (
        selecting(*(f".spec.{name}" for name in NUMBERED), fields=NUMBERED),
        [("spec.selectableFields", "Too many: 12: must have at most 8 items")],
    ),
    "a service without a name": (
        webhook(service={"namespace": "b"}),
        [(f"{CLIENT}.service.namespace", "Required value")],
    ),
    "a service in a strange place": (
        webhook(service={"name": "a", "namespace": "b", "port": 70000, "path": "x//y/"}),
        [
            (
                f"{CLIENT}.service.port",
                "Invalid value: 70000: port is not valid: must be between 1 and 65535, inclusive",
            ),
            (f"{CLIENT}.service.path", "Invalid value: \"x//y/\": must start with a '/'"),
            (f"{CLIENT}.service.path", 'Invalid value: "x//y/": segment[0] may not be empty'),
            (f"{CLIENT}.service.path", 'Invalid value: "x//y/": segment[1] may not be empty'),
        ],
    ),
    "a URL without a host": (
        webhook(url="https:///x"),
        [(f"{CLIENT}.url", f'Invalid value: "": host must be specified{FORM}')],
    ),
    "a URL that is none": (
        webhook(url="https://[::1"),
        [
            (
                f"{CLIENT}.url",
                'Required value: url must be a valid URL: parse "https://[::1": missing '
                f"']' in host{FORM}",
            )
        ],
    ),
    "a URL without a scheme": (
        webhook(url="://x"),
        [
            (
                f"{CLIENT}.url",
                'Required value: url must be a valid URL: parse "://x": missing protocol '
                f"scheme{FORM}",
            )
        ],
    ),
    "no strategy": (
        spec(conversion={}),
        [("spec.conversion.strategy", "Required value")],
    ),
    "review versions that are doubled or none": (
        webhook("v1", "v1", "V2", url="https://x"),
        [
            (f"{REVIEWS}[1]", 'Invalid value: "v1": duplicate version'),
            (f"{REVIEWS}[2]", f'Invalid value: "V2": {LABEL}'),
        ],
    ),
    "a list kind that is the kind": (
        names(listKind="Thing"),
        [("spec.names.listKind", 'Invalid value: "Thing": kind and listKind may not be the same')],
    ),
    "an approval that says nothing": (
        approved("x.k8s.io", **{APPROVAL: "yes"}),
        [
            (
                f"metadata.annotations[{APPROVAL}]",
                'Invalid value: "yes": protected groups must have approval annotation '
                f'"{APPROVAL}" with either a URL or a reason starting with "unapproved", see '
                "https://github.com/kubernetes/enhancements/pull/1111",
            )
        ],
    ),
    "a version without a name": (
        versions(version("", storage=True)),
        [("spec.versions[0].name", f'Invalid value: "": {LABEL}')],
    ),
    "a selector that is nowhere": (
        scaled(labelSelectorPath=".x"),
        [
            (
                "spec.subresources.scale.labelSelectorPath",
                'Invalid value: ".x": should be a json path under either .spec or .status',
            )
        ],
    ),
    "replicas that are everything": (
        scaled(specReplicasPath=".", statusReplicasPath=".status"),
        [
            (
                "spec.subresources.scale.specReplicasPath",
                'Invalid value: ".": should be a json path under .spec',
            ),
            (
                "spec.subresources.scale.statusReplicasPath",
                'Invalid value: ".status": should be a json path under .status',
            ),
        ],
    ),
    "a pattern that is none in one of two versions": (
        versions(version(), version("v2", of({"s": {"type": "string", "pattern": "("}}))),
        [
            (
                "spec.versions[1].schema.openAPIV3Schema.properties[spec].properties[s].pattern",
                'Invalid value: "(": must be a valid regular expression, but isn\'t: error parsing '
                "regexp: missing closing ): `(`",
            )
        ],
    ),
}


async def _causes(client: Client, *request: Any) -> list[tuple[str, str]]:
    status, answer = await client.ask(*request)
    assert status == 422, answer
    return [(each["field"], each["message"]) for each in answer["details"]["causes"]]


@pytest.mark.parametrize("about", REFUSED)
def test_a_definition_is_refused_as_by_the_real_server(about: str) -> None:
    wrong, causes = REFUSED[about]

    async def steps(client: Client) -> None:
        assert await _causes(client, "POST", DEFINITIONS, wrong) == causes

    walk(steps)


@pytest.mark.parametrize(
    ("path", "problem"),
    [
        (".spec.a[0]", "is an invalid path: array notation is not allowed"),
        ("spec.a", "is an invalid path: expected [ or . but got: spec"),
        (".spec..a", "is an invalid path: does not refer to a valid field"),
        (".spec.a.", "is an invalid path: unexpected end of JSON path"),
        (".", "is an invalid path: unexpected end of JSON path"),
        (".spec.p.q", "is an invalid path: does not refer to a valid field"),
        (".status", "is an invalid path: does not refer to a valid field"),
        (".spec.n", SCALAR),
    ],
)
def test_a_field_to_select_by_leads_to_a_text_a_truth_or_a_number(path: str, problem: str) -> None:
    async def steps(client: Client) -> None:
        causes = await _causes(client, "POST", DEFINITIONS, selecting(path))
        field = "spec.selectableFields[0].jsonPath"
        assert causes == [(field, f'Invalid value: "{path}": {problem}')]

    walk(steps)


def test_what_was_stored_once_stays_a_version() -> None:
    async def steps(client: Client) -> None:
        await client.define(definition())
        moved = {"spec": {"versions": [version("v2", storage=True)]}}
        causes = await _causes(client, "PATCH", f"{DEFINITIONS}/things.ex.io", moved, MERGE)
        assert causes == [("status.storedVersions[0]", f'Invalid value: "v1": {MISSING}')]

    walk(steps)


def test_a_certificate_that_is_none_is_refused_once_the_kind_is_served() -> None:
    broken = webhook(url="https://x", caBundle="eA==")["spec"]["conversion"]

    async def steps(client: Client) -> None:
        await client.define(definition())
        change = {"spec": {"conversion": broken}}
        causes = await _causes(client, "PATCH", f"{DEFINITIONS}/things.ex.io", change, MERGE)
        text = "unable to load root certificates: unable to parse bytes as PEM block"
        assert causes == [(f"{CLIENT}.caBundle", f'Invalid value: "eA==": {text}')]
        rest = definition("others")
        rest["spec"]["conversion"] = broken
        assert (await client.ask("POST", DEFINITIONS, rest))[0] == 201

    walk(steps)


def test_a_status_is_refused_for_its_names_alone() -> None:
    async def steps(client: Client) -> None:
        await client.define(definition())
        change = {"status": {"acceptedNames": {"plural": "X"}, "storedVersions": ["v9"]}}
        path = f"{DEFINITIONS}/things.ex.io/status"
        causes = await _causes(client, "PATCH", path, change, MERGE)
        assert causes == [("status.acceptedNames.plural", f'Invalid value: "X": {LABEL}')]

    walk(steps)


def test_formats_that_nothing_checks_are_warned_of_when_they_are_new() -> None:
    odd = of({"a": {"type": "string", "format": "nope"}, "b": {"type": "number", "format": "x"}})
    odder = of(odd["properties"]["spec"]["properties"] | {"c": {"type": "string", "format": "y"}})

    async def steps(client: Client) -> None:
        await client.ask("POST", DEFINITIONS, versions(version(schema=odd)))
        assert client.warnings == [
            r'299 - "unrecognized format \"nope\""',
            r'299 - "unrecognized format \"x\""',
        ]
        change = {"spec": {"versions": [version(schema=odder)]}}
        await client.ask("PATCH", f"{DEFINITIONS}/things.ex.io", change, MERGE)
        assert client.warnings == [r'299 - "unrecognized format \"y\""']

    walk(steps)
