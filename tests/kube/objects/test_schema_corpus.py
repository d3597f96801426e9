"""Hundreds of random schemas and objects, on which the real server was asked once.

tests/kube/schemas.py asks it. Siblings come in no order from the real server: none is compared.
"""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest

from polyver.kube.objects.schema import MalformedMetadata, Schema, check_schema, compile_schema
from polyver.kube.objects.status import Cause


def number(text: str) -> int | float:
    """An integer as the real server reads it: one that is too large is no integer."""
    return int(text) if -(2**63) <= int(text) < 2**63 else float(text)


TEXT = (Path(__file__).parent / "recorded_schemas.json").read_text()
RECORDED = json.loads(TEXT, parse_int=number)


def known(causes: list[list[str]]) -> list[Cause]:
    return sorted((Cause(*cause) for cause in causes), key=str)


def the_object(spec: Any) -> dict[str, Any]:
    return {"apiVersion": "schemas.ex.io/v1", "kind": "S", "spec": copy.deepcopy(spec)}


def is_unreadable(schema: Schema, found: dict[str, Any], case: Any) -> bool:
    """Whether metadata inside cannot be read, in which case that is all that is said."""
    if "message" not in case:
        return False
    with pytest.raises(MalformedMetadata) as problem:
        schema.prune(found)
    assert case["message"].endswith(f": {problem.value}")
    return True


@pytest.mark.parametrize("kind", RECORDED["created"], ids=range(len(RECORDED["created"])))
def test_objects_are_created_or_refused_as_by_the_real_server(kind: Any) -> None:
    schema = compile_schema(kind["schema"])
    for case in kind["objects"]:
        found = the_object(case["sent"])
        if is_unreadable(schema, found, case):
            continue
        dropped = schema.prune(found)
        schema.default(found)
        causes = schema.validate(found)
        assert sorted(causes, key=str) == known(case.get("causes", []))
        if "causes" not in case:
            assert dropped == case["dropped"]
            assert found.get("spec") == case["spec"]


@pytest.mark.parametrize("kind", RECORDED["updated"], ids=range(len(RECORDED["updated"])))
def test_objects_are_updated_or_refused_as_by_the_real_server(kind: Any) -> None:
    schema = compile_schema(kind["schema"])
    for case in kind["updates"]:
        old, found = the_object(case["old"]), the_object(case["sent"])
        if is_unreadable(schema, found, case):
            continue
        schema.prune(found)
        schema.default(found)
        causes = schema.validate_update(found, old)
        assert sorted(causes, key=str) == known(case.get("causes", []))
        if "causes" not in case:
            assert found.get("spec") == case["spec"]


@pytest.mark.parametrize("case", RECORDED["refused"], ids=range(len(RECORDED["refused"])))
def test_schemas_are_refused_as_by_the_real_server(case: Any) -> None:
    causes = check_schema(case["schema"], "spec.validation.openAPIV3Schema")
    assert sorted(causes, key=str) == known(case["causes"])
