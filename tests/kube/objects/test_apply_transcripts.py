"""The recorded cases of server-side apply, done with functions alone: what came of each step."""

from __future__ import annotations

import copy
from string import Template
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from tests.kube.cases import Case, Step, load_cases, load_given
from tests.kube.record import transcript

from polyver.kube.objects.apply import Scope, apply, resets_of, track_update
from polyver.kube.objects.builtin import shape_of
from polyver.kube.objects.patch import apply_json_patch, apply_merge_patch
from polyver.kube.objects.schema import Schema, compile_schema
from polyver.kube.objects.status import ApiError

Object = dict[str, Any]
NOW = "2026-01-31T12:00:00Z"
FIELDS = ("spec", "data", "status")
REFUSALS = ("Apply failed", "failed to create typed", "metadata.managedFields", "invalid object")
"""How the refusals begin that these functions decide on; others are the server's."""
# The bodies of one are texts in YAML; of another there is nothing but what the server checks.
# One defines a kind of its own.
NOT_HERE = {
    "apply-accepts-yaml-text",
    "apply-drops-nulls",
    "apply-field-managers",
    "apply-in-a-missing-namespace",
}
CASES = {
    name: case
    for name, case in load_cases().items()
    if name.startswith(("apply-", "managed-fields-")) and name not in NOT_HERE
}


class _Kind:
    """A kind with its versions, as far as owners depend on it."""

    def __init__(self, name: str, shapes: Object, schemas: dict[str, Schema]) -> None:
        self.name, self._shapes, self._schemas = name, shapes, schemas

    @property
    def _has_status(self) -> bool:
        return self.name == "Widget"

    def scope(self, version: str, subresource: str) -> Scope:
        resets = resets_of(version, subresource=subresource) if self._has_status else {}
        return Scope(version, self.name, self._shapes, subresource, resets)

    def completed(self, value: Object, version: str) -> Object:
        """An object as the server stores and answers it."""
        value = copy.deepcopy(value)
        schema = self._schemas.get(version)
        if schema is not None:
            schema.prune(value)
            schema.default(value)
        filled = {key: each for key, each in value["metadata"].items() if each not in ([], {})}
        if self.name == "Secret" and "stringData" in value:
            value["data"] = {"k": "dg=="}
            del value["stringData"]
        return {**value, "metadata": filled}

    def stored(self, value: Object, version: str) -> Object:
        """An object after it was stored, in the version that is the first."""
        for schema in list(self._schemas.values())[:1]:
            schema.prune(value := copy.deepcopy(value))
        return self.completed(value, version)

    def kept(self, value: Object, old: Object | None, subresource: str) -> Object:
        """What a write through here may change of an object."""
        if not self._has_status:
            return value
        if subresource and old is not None:
            return {**old, "status": value.get("status")}
        before = {"status": old["status"]} if old and "status" in old else {}
        return {key: each for key, each in value.items() if key != "status"} | before


class _Server:
    """Just enough of a server to keep one object of a case and its owners."""

    def __init__(self, case: Case) -> None:
        self._names = {"ns": case.case, "group": f"{case.case}.ex.io", "rv": "1"}
        self._kinds = {
            "configmaps": _Kind("ConfigMap", {"v1": shape_of("", "v1", "ConfigMap")}, {}),
            "secrets": _Kind("Secret", {"v1": shape_of("", "v1", "Secret")}, {}),
        }
        for given in case.given:
            for document in load_given(given):
                self._define(self.filled(document.value)["spec"])
        self._stored: dict[tuple[str, str], Object] = {}

    def _define(self, spec: Object) -> None:
        schemas = {
            f"{spec['group']}/{each['name']}": compile_schema(each["schema"]["openAPIV3Schema"])
            for each in spec["versions"]
        }
        shapes = {version: schema.shape for version, schema in schemas.items()}
        self._kinds[spec["names"]["plural"]] = _Kind(spec["names"]["kind"], shapes, schemas)

    def filled(self, value: Any) -> Any:
        match value:
            case dict():
                return {self.filled(key): self.filled(each) for key, each in value.items()}
            case list():
                return [self.filled(each) for each in value]
            case str():
                return Template(value).safe_substitute(self._names)
        return value

    def perform(self, step: Step, *, keep: bool) -> Object:
        """What is answered; it is kept if the real server kept it."""
        address = urlsplit(self.filled(step.path))
        query = {key: values[0] for key, values in parse_qs(address.query).items()}
        version, plural, name, subresource = _parts(address.path)
        body = copy.deepcopy(self.filled(step.body)) if step.has_body else {}
        name = name or body["metadata"]["name"]
        kind = self._kinds[plural]
        old = self._stored.get((plural, name))
        old = {**old, "apiVersion": version} if old else None
        if step.method == "GET":
            return old or {}
        agent = step.headers.get("User-Agent", "case/1").partition("/")[0]
        query.setdefault("fieldManager", agent)
        scope = kind.scope(version, subresource)
        new, entries = _written(step, query, old, body, scope=scope, kind=kind)
        new = kind.stored(kind.kept(new, old, subresource), version)
        new["metadata"] = {**new["metadata"], "managedFields": entries, "uid": "1"}
        if keep and "dryRun" not in query:
            self._stored[plural, name] = new
        return new


def _written(
    step: Step, query: Object, old: Object | None, body: Any, *, scope: Scope, kind: _Kind
) -> tuple[Object, list[Object]]:
    manager = query["fieldManager"]
    if step.type == "apply":
        force = query.get("force") == "true"
        return apply(old, body, scope=scope, manager=manager, force=force, now=NOW)
    new = body
    if step.type == "merge":
        new = apply_merge_patch(old, body)
    if step.type == "json-patch":
        new = apply_json_patch(old, body)
    new = kind.completed(new, scope.api_version)
    return new, track_update(old, new, scope=scope, manager=manager, now=NOW)


def _parts(path: str) -> tuple[str, str, str, str]:
    """API version, plural, name and subresource."""
    steps = path.strip("/").split("/")
    at = steps.index("namespaces")
    rest = [*steps[at + 2 :], "", ""]
    return "/".join(steps[1:at]), rest[0], rest[1], rest[2]


def _owners(entries: list[Object]) -> list[Object]:
    return [{**entry, "time": None} for entry in entries]


@pytest.mark.parametrize("name", CASES)
def test_a_case_comes_to_what_it_comes_to_on_a_real_server(name: str) -> None:
    case, answers = CASES[name], transcript(name) or []
    server = _Server(case)
    assert len(answers) == len(case.steps)
    for step, real in zip(case.steps, answers, strict=True):
        if real["status"] < 400:
            _check_answer(server.perform(step, keep=True), real["body"])
        elif real["body"]["message"].startswith(REFUSALS):
            _check_refusal(server, step, real)


def _check_answer(answer: Object, body: Object) -> None:
    for field in FIELDS:
        if field in body:
            assert answer.get(field) == body[field]
    if "managedFields" in body.get("metadata", {}):
        real = _owners(body["metadata"]["managedFields"])
        found = _owners(answer["metadata"]["managedFields"])
        assert sorted(found, key=_who) == sorted(real, key=_who)


def _who(entry: Object) -> tuple[str, ...]:
    return tuple(str(entry.get(key, "")) for key in ("manager", "operation", "subresource"))


def _check_refusal(server: _Server, step: Step, real: Object) -> None:
    with pytest.raises(ApiError) as refusal:
        server.perform(step, keep=False)
    status = refusal.value.status
    assert (status["code"], status["message"]) == (real["status"], real["body"]["message"])
    assert status.get("reason") == real["body"].get("reason")
    if "details" in real["body"]:
        assert status["details"] == real["body"]["details"]


def test_the_cases_are_of_many_sorts() -> None:
    assert len(CASES) >= 28
