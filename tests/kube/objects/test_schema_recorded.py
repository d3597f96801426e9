"""What the real server did with custom objects and CRDs, done again with schemas alone."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from string import Template
from typing import Any

import pytest
from tests.kube.cases import HERE, Case, Step, load_cases, load_given
from tests.kube.paths import pick
from tests.kube.record import transcript

from polyver.kube.objects import apply_json_patch, apply_merge_patch, load_manifests
from polyver.kube.objects.schema import MalformedMetadata, Schema, check_schema, compile_schema
from polyver.kube.objects.status import Cause

CASES = load_cases()


def cases_in(name: str) -> list[str]:
    text = (HERE / "cases" / name).read_text()
    return [document.read(Case).case for document in load_manifests(text, name)]


class Played:
    """The little of a server that has no metadata of its own: one case, step by step."""

    def __init__(self, case: Case) -> None:
        self.case = case
        self.variables = {"group": f"{case.case}.ex.io", "ns": case.case, "case": case.case}
        self.crds: dict[str, Any] = {}
        self.objects: dict[tuple[str, str], Any] = {}
        for name in case.given:
            for document in load_given(name):
                crd = self.filled(document.value)
                self.crds[crd["spec"]["names"]["plural"]] = crd

    def filled(self, value: Any) -> Any:
        text = Template(json.dumps(value)).safe_substitute(self.variables)
        return json.loads(text)

    def schema(self, plural: str, version: str) -> Schema:
        versions = self.crds[plural]["spec"]["versions"]
        [found] = [each for each in versions if each["name"] == version]
        return compile_schema(found["schema"]["openAPIV3Schema"])

    def play(self, step: Step, answer: Any) -> None:
        path, _, query = step.path.partition("?")
        body: Any = self.filled(step.body) if step.has_body else None
        body = json.loads(body) if isinstance(body, str) else body
        parts = path.split("/")
        if "customresourcedefinitions" in parts:
            plural = parts[-1].partition(".")[0]
            patch = apply_json_patch if step.type == "json-patch" else apply_merge_patch
            self.crds[plural] = patch(self.crds[plural], body)
            return
        version, plural = parts[3], parts[6]
        name = parts[7] if len(parts) > 7 else ""
        schema = self.schema(plural, version)
        if step.method == "GET":
            if name:
                found = copy.deepcopy(self.objects[plural, name])
                schema.default(found)
                check_same(step, answer, found)
            return
        old = self.objects.get((plural, name))
        if step.method == "PATCH":
            assert old is not None
            old = copy.deepcopy(old)
            schema.default(old)
            patch = apply_json_patch if step.type == "json-patch" else apply_merge_patch
            body = patch(old, body)
        saved = self.write(schema, step, answer, body=body, old=old)
        if saved is not None and "dryRun" not in query:
            key = (plural, name or body["metadata"]["name"])
            if answer["status"] == 409:
                assert key in self.objects
            else:
                self.objects[key] = saved

    def write(self, schema: Schema, step: Step, answer: Any, *, body: Any, old: Any) -> Any | None:
        query = step.path.partition("?")[2]
        if ".metadata: Invalid" in answer["body"].get("message", ""):
            with pytest.raises(MalformedMetadata) as problem:
                schema.prune(body)
            assert answer["body"]["message"].endswith(f": {problem.value}")
            return None
        dropped = schema.prune(body)
        if answer["status"] == 400 or "fieldValidation=Strict" in query:
            return None  # metadata that cannot be read, or fields that a strict request refuses
        if "fieldValidation" not in query:
            warned = [text for text in warnings(answer) if '"metadata.' not in text]
            assert [f'unknown field "{path}"' for path in dropped] == warned
        schema.default(body)
        causes = schema.validate(body) if old is None else schema.validate_update(body, old)
        if answer["status"] == 422:
            assert causes == list(recorded_causes(answer))
            return None
        assert causes == []
        check_same(step, answer, body)
        return body


def warnings(answer: Any) -> list[str]:
    found = answer["headers"].get("Warning", [])
    return [text.removeprefix('299 - "')[:-1].replace('\\"', '"') for text in found]


def recorded_causes(answer: Any) -> Iterator[Cause]:
    """The mistakes that schemas find: those in metadata and of the scale are others' to find."""
    for cause in answer["body"]["details"]["causes"]:
        if not cause["field"].startswith(("metadata.", ".")):
            yield Cause(cause["field"], cause["message"], cause["reason"])


def check_same(step: Step, answer: Any, found: Any) -> None:
    if answer["status"] == 409:
        return
    if step.pick:
        for path in step.pick:
            if not path.startswith("metadata"):
                assert pick(found, path) == answer["body"][path]
        return
    for key in {*found, *answer["body"]} - {"metadata"}:
        assert found.get(key) == answer["body"].get(key), key


@pytest.mark.parametrize("name", cases_in("schemas.yaml"))
def test_objects_are_pruned_filled_in_and_refused_as_recorded(name: str) -> None:
    played = Played(CASES[name])
    answers = transcript(name)
    assert answers is not None
    for step, answer in zip(CASES[name].steps, answers, strict=True):
        played.play(step, answer)


def crd_steps() -> Iterator[Any]:
    for name in (*cases_in("crds.yaml"), *cases_in("rules.yaml")):
        answers = transcript(name) or []
        for number, (step, answer) in enumerate(zip(CASES[name].steps, answers, strict=True)):
            posted = step.method == "POST" and "customresourcedefinitions" in step.path
            if posted and isinstance(step.body, dict) and "/v1/" in step.path:
                yield pytest.param(name, step, answer, id=f"{name}-{number}")


@pytest.mark.parametrize(("name", "step", "answer"), [*crd_steps()])
def test_the_schemas_of_crds_are_refused_as_recorded(name: str, step: Step, answer: Any) -> None:
    body = json.loads(Template(json.dumps(step.body)).safe_substitute(group="g.ex.io"))
    found = list(crd_causes(body["spec"].get("versions") or []))
    details = answer["body"].get("details") or {}
    theirs = [
        Cause(each["field"], each["message"], each["reason"])
        for each in details.get("causes") or ()
        if "openAPIV3Schema" in each.get("field", "") and not is_missing(each)
    ]
    # Where one key has two problems, the real server tells them in the order of a random map.
    assert sorted(found, key=str) == sorted(theirs, key=str)


def is_missing(cause: Any) -> bool:
    """Whether there is no schema at all."""
    return bool(cause["message"] == "Required value") and cause["field"].endswith("V3Schema")


def crd_causes(versions: list[Any]) -> Iterator[Cause]:
    schemas = [(each.get("schema") or {}).get("openAPIV3Schema") for each in versions]
    alike = all(schema == schemas[0] for schema in schemas)
    for number, schema in enumerate(schemas[:1] if alike else schemas):
        place = "spec.validation" if alike else f"spec.versions[{number}].schema"
        if schema is not None:
            yield from check_schema(schema, f"{place}.openAPIV3Schema")
