"""Documents are held against a schema, and what is wrong is told where it was written."""

from __future__ import annotations

from typing import Any

import pytest

from polyver.kube.objects import InvalidManifest, load_manifests
from polyver.kube.objects.validation import conformed

STEP = {
    "type": "object",
    "required": ["name"],
    "properties": {"name": {"type": "string"}, "tries": {"type": "integer", "default": 3}},
}
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "spec": {
            "type": "object",
            "properties": {"steps": {"type": "array", "items": STEP}},
        },
        "status": {"type": "object", "properties": {"ready": {"type": "boolean"}}},
    },
}
HEAD = "apiVersion: ex.io/v1\nkind: Plan\nmetadata: {name: a}\n"


def read(text: str) -> dict[str, Any]:
    [document] = load_manifests(HEAD + text, "plan.yaml")
    return conformed(document, SCHEMA)


def test_defaults_are_filled_in_and_the_document_stays_as_it_is() -> None:
    [document] = load_manifests(f"{HEAD}spec: {{steps: [{{name: a}}]}}", "plan.yaml")
    assert conformed(document, SCHEMA)["spec"]["steps"] == [{"name": "a", "tries": 3}]
    assert document.value["spec"]["steps"] == [{"name": "a"}]  # type: ignore[index]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (
            "spec:\n  steps:\n  - {nam: a}",
            'unknown field "nam" (plan.yaml:6, spec.steps[0].nam); did you mean name?',
        ),
        ("spec:\n  quite: other", 'unknown field "quite" (plan.yaml:5, spec.quite)'),
        ("spec:\n  steps:\n  - {}", '"name" is missing (plan.yaml:6, spec.steps[0].name)'),
    ],
)
def test_what_is_wrong_is_told_with_its_place(text: str, told: str) -> None:
    with pytest.raises(InvalidManifest) as caught:
        read(text)
    assert str(caught.value) == told


def test_what_others_wrote_into_a_status_is_no_error() -> None:
    assert read("status: {unknown: 1, ready: 7}")["kind"] == "Plan"
