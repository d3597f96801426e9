"""Random writes to a real server, and the same here: every field has the same owners after each.

tests/kube/applies.py records them; each step here begins with what the real server had before.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.kube.applies import API_VERSIONS, GROUP, SCHEMAS

from polyver.kube.objects.apply import Entry, Scope, apply, resets_of, track_update
from polyver.kube.objects.builtin import shape_of
from polyver.kube.objects.patch import apply_merge_patch
from polyver.kube.objects.schema import compile_schema
from polyver.kube.objects.status import ApiError

Object = dict[str, Any]
NOW = "2026-01-31T12:00:00Z"
RECORDED = json.loads(Path(__file__).with_name("recorded_apply.json").read_text())
THINGS = {version: compile_schema(schema) for version, schema in SCHEMAS.items()}
SHAPES = {version: schema.shape for version, schema in THINGS.items()}
BUILT_IN = {
    "ConfigMap": shape_of("", "v1", "ConfigMap"),
    "Service": shape_of("", "v1", "Service"),
    "Deployment": shape_of("apps", "v1", "Deployment"),
}
ASSIGNED = ("clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy")
"""What a real server gives to services after it has looked who wrote what."""


def _scope(kind: str, step: Object) -> Scope:
    version = f"{GROUP}/{step['version']}" if "version" in step else API_VERSIONS[kind]
    if kind != "Thing":
        resets = {} if kind == "ConfigMap" else resets_of(version, kind=kind, custom=False)
        return Scope(version, kind, {version: BUILT_IN[kind]}, resets=resets)
    subresource = step.get("subresource", "")
    versions = tuple(SHAPES) if subresource else (version,)
    resets = resets_of(*versions, subresource=subresource)
    return Scope(version, kind, SHAPES, subresource, resets)


def _steps(number: int | None = None) -> Iterator[tuple[str, Object, Object | None]]:
    """Each step, of one sequence or of all, with its kind and with what there was before it."""
    for sequence in RECORDED if number is None else [RECORDED[number]]:
        live: Object | None = None
        for step in sequence["steps"]:
            yield sequence["kind"], step, live
            live = _answered(sequence["kind"], step) if "object" in step else live


def _answered(kind: str, step: Object) -> Object:
    """The object that the real server answered."""
    metadata = {**step["object"]["metadata"], "namespace": "default"}
    if step["owners"]:
        metadata["managedFields"] = [_entry(*owner) for owner in step["owners"]]
    return {"kind": kind, **step["object"], "metadata": metadata}


def _entry(manager: str, operation: str, version: str, subresource: str, fields: Object) -> Object:
    entry = {"manager": manager, "operation": operation, "apiVersion": version, "time": NOW}
    entry |= {"subresource": subresource} if subresource else {}
    return entry | {"fieldsType": "FieldsV1", "fieldsV1": fields}


def _owners(entries: list[Object]) -> list[Object]:
    kept = [{**entry, "time": NOW} for entry in entries]
    return sorted(kept, key=lambda entry: json.dumps(entry, sort_keys=True))


def _real_owners(step: Object) -> list[Object]:
    return _owners([_entry(*owner) for owner in step["owners"]])


def _in_version(value: Object, version: str) -> Object:
    return {**value, "apiVersion": version}


def _configuration(scope: Scope, step: Object, name: str) -> Object:
    body = step["body"]
    metadata = {**body.get("metadata", {}), "name": name}
    return {"apiVersion": scope.api_version, "kind": scope.kind, **body, "metadata": metadata}


def _name(step: Object, live: Object | None) -> str:
    return str((live or step.get("object") or {"metadata": {"name": "x"}})["metadata"]["name"])


# What is not found is refused before anybody looks at owners, what is invalid afterwards.
ELSEWHERE = (404, 422)


def test_there_are_recorded_steps_of_every_sort() -> None:
    steps = [step for _, step, _ in _steps()]
    assert {step["code"] for step in steps} == {200, 201, 404, 409, 422, 500}
    assert {step["op"] for step in steps} == {"create", "put", "merge", "apply"}
    assert len(steps) > 500


@pytest.mark.parametrize("number", range(len(RECORDED)))
def test_writes_come_to_what_they_come_to_on_a_real_server(number: int) -> None:
    for kind, step, live in _steps(number):
        if step["op"] == "apply" and step["code"] not in ELSEWHERE:
            _check_apply(kind, step, live)
        elif step["op"] != "apply" and "object" in step:
            _check_update(kind, step, live)


def _check_update(kind: str, step: Object, live: Object | None) -> None:
    scope = _scope(kind, step)
    old = _in_version(live, scope.api_version) if live else None
    new = _written(scope, step, old) if kind == "Thing" else _seen(scope, step, old)
    entries = track_update(old, new, scope=scope, manager=step["manager"], now=NOW)
    assert _owners(entries) == _real_owners(step)


def _written(scope: Scope, step: Object, old: Object | None) -> Object:
    """What a client wrote, as the server reads it."""
    new = _configuration(scope, step, _name(step, old))
    if step["op"] == "merge":
        new = apply_merge_patch(old, new)
    new = copy.deepcopy(new)
    schema = THINGS[scope.api_version]
    schema.prune(new)
    schema.default(new)
    new["metadata"] = _filled(new["metadata"])
    return new


def _seen(scope: Scope, step: Object, old: Object | None) -> Object:
    """What a client wrote, as the server answered it: built-in kinds have many defaults."""
    new = _in_version(copy.deepcopy(_answered(scope.kind, step)), scope.api_version)
    new["metadata"].pop("managedFields", None)
    if "managedFields" in step["body"].get("metadata", {}):
        new["metadata"]["managedFields"] = step["body"]["metadata"]["managedFields"]
    for name in ASSIGNED if old is None and scope.kind == "Service" else ():
        new["spec"].pop(name, None)
    return new


def _filled(metadata: Object) -> Object:
    """Metadata as typed code writes it: without what holds nothing."""
    return {key: each for key, each in metadata.items() if each not in (None, {}, [])}


def _check_apply(kind: str, step: Object, live: Object | None) -> None:
    scope = _scope(kind, step)
    there = _in_version(live, scope.api_version) if live else None
    config = _configuration(scope, step, _name(step, live))
    given = copy.deepcopy((there, config))
    if "text" in step:
        with pytest.raises(ApiError) as refusal:
            _apply(there, config, scope, step)
        assert (refusal.value.code, refusal.value.message) == (step["code"], step["text"])
        return
    found, entries = _apply(there, config, scope, step)
    assert given == (there, config)
    assert _owners(entries) == _real_owners(step)
    real = _bare(_in_version(_answered(kind, step), scope.api_version))
    if kind == "Thing":
        assert _completed(found, scope, there) == real
    else:
        assert _holds(real, found)


def _apply(
    there: Object | None, config: Object, scope: Scope, step: Object
) -> tuple[Object, list[Entry]]:
    force = step.get("force", False)
    return apply(there, config, scope=scope, manager=step["manager"], force=force, now=NOW)


def _bare(value: Object) -> Object:
    metadata = {key: each for key, each in value["metadata"].items() if key != "managedFields"}
    return {**value, "metadata": metadata}


def _completed(found: Object, scope: Scope, there: Object | None) -> Object:
    """What the server makes of it: without what the schema does not know, with defaults."""
    found = copy.deepcopy(found)
    if scope.subresource and there is not None:
        found = {**copy.deepcopy(_bare(there)), "status": found.get("status")}
    elif there is None or "status" not in there:
        found.pop("status", None)
    else:
        found["status"] = there["status"]
    schema = THINGS[scope.api_version]
    THINGS[f"{GROUP}/v1"].prune(found)
    schema.prune(found)
    schema.default(found)
    found["metadata"] = _filled(found["metadata"]) | {"namespace": "default"}
    return found


def _holds(whole: Any, part: Any) -> bool:
    """Whether all of a part is in the whole, nulls and emptiness aside."""
    if not part:
        return not whole or part is not False
    if isinstance(part, dict):
        return all(_holds(whole.get(key), each) for key, each in part.items())
    if isinstance(part, list):
        return len(whole) == len(part) and all(map(_holds, whole, part))
    return bool(whole == part)
