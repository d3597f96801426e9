"""The objects of the comparison: plans of a stated size, with the metadata that objects have."""

from __future__ import annotations

import itertools
from typing import Any

import msgspec

__all__ = ["FIELD", "ITEMS", "plan", "review"]

FIELD, ITEMS = "one preserved field", "preserved fields in list items"

_VERSION = "bench.example.com/v1"


def plan(number: int, size: int) -> dict[str, Any]:
    """A plan in v1 of about so many bytes: what there can be many of, there are as many of."""
    for more in itertools.count():
        made = _plan(number, more)
        if len(msgspec.json.encode(made)) >= size:
            return made
    raise AssertionError


def _plan(number: int, more: int) -> dict[str, Any]:
    return {
        "apiVersion": _VERSION,
        "kind": "Plan",
        "metadata": _metadata(number, more),
        "spec": _spec(more),
        "status": {"conditions": [{"type": "Ready", "status": "True", "message": "all is well"}]},
    }


def _metadata(number: int, more: int) -> dict[str, Any]:
    fields: dict[str, Any] = {f"f:field{each}": {} for each in range(2 + 3 * more)}
    managed = [
        {
            "manager": manager,
            "operation": "Apply",
            "apiVersion": _VERSION,
            "time": "2026-01-01T00:00:00Z",
            "fieldsType": "FieldsV1",
            "fieldsV1": {"f:spec": fields},
        }
        for manager in ("kubectl", "controller")[: 1 + (more > 1)]
    ]
    return {
        "name": f"plan-{number}",
        "namespace": "default",
        "uid": f"0b2c3d4e-0000-4000-8000-{number:012}",
        "resourceVersion": "12345",
        "generation": 3,
        "creationTimestamp": "2026-01-01T00:00:00Z",
        "labels": {"app": "plan", "team": "platform"},
        "annotations": {"owner": "somebody@example.com"},
        "managedFields": managed,
    }


def _spec(more: int) -> dict[str, Any]:
    few = range(1 + more // 2)
    return {
        "cronSpec": "*/5 * * * *",
        "hostPort": "db.example.com:5432",
        "image": "example.com/team/plan:1.2.3",
        "policy": "Allow",
        "replicas": "3",
        "timeoutSeconds": 30,
        "envList": [{"name": f"NAME_{each:03}", "value": "x" * 12} for each in few],
        "containers": [
            {"name": f"c{each}", "cmd": "run", "args": ["--verbose"], "limits": {"cpu": "1"}}
            for each in few
        ],
        "suspend": True,
        "owner": "somebody",
        "team": "platform",
        "region": "north",
        "tier": "gold",
        "description": "as it was",
        "priority": 7,
        "historyLimit": 3,
        "backoffLimit": 6,
        "startingDeadline": 120,
        "nodeSelector": {"disk": "ssd"},
        "parameters": {f"name{each}": "value" for each in few},
        "tolerations": [{"key": "busy", "operator": "Exists", "effect": "NoSchedule"}],
        "volumes": [
            {"name": f"v{each}", "mounts": [{"path": "/data"}], "options": {"mode": "fast"}}
            for each in few
        ],
        "windows": [{"from": "01:00", "to": "05:00", "days": ["Mon", "Tue"]}],
        "notify": {"mail": ["a@example.com"]},
        "delays": [1, 2, 5],
    }


def preserving(obj: dict[str, Any], preserved: str) -> dict[str, Any]:
    """The object, with fields that only v1 has."""
    if preserved == FIELD:
        obj["spec"]["legacyMode"] = "fast"
    elif preserved == ITEMS:
        for each in obj["spec"]["containers"]:
            each["debug"] = "level-1"
    return obj


def review(
    count: int, size: int, to: str = "bench.example.com/v3", *, preserved: str = ""
) -> bytes:
    """A ConversionReview of so many objects of so many bytes."""
    asked = {
        "uid": "705ab4f5-6393-11e8-b7cc-42010a800002",
        "desiredAPIVersion": to,
        "objects": [preserving(plan(number, size), preserved) for number in range(count)],
    }
    about = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview"}
    return msgspec.json.encode(about | {"request": asked})
