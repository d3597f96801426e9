"""AdmissionReviews: what an API server asks about a write, and what it is answered."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import Callable
from typing import Any

import pytest
from tests.walks.admitted import GROUP, LAMPS
from tests.webhook.test_app import Answer, answer

from polyver.apis.admission.kinds import ConvertedKinds
from polyver.apis.conversion import ANNOTATION, Converter
from polyver.kube.objects.kinds import ResourceKind
from polyver.kube.objects.patch import apply_json_patch
from polyver.kube.objects.status import forbidden
from polyver.kube.server.admission import Admission, AdmissionChain, AdmissionRequest
from polyver.webhook import ReviewHandlers, WebhookApp

Object = dict[str, Any]
CARRY = '{"v": 1}'


def converter(kind: ResourceKind) -> Converter | None:
    return LAMPS.converter if (kind.group, kind.kind) == (GROUP, "Lamp") else None


def app(*links: Admission) -> WebhookApp:
    named = {LAMPS.definition().name: LAMPS}
    chain = AdmissionChain(links or [ConvertedKinds(converter, named)])
    return WebhookApp(ReviewHandlers({}, chain, frozenset({(GROUP, "Lamp")})))


def lamp(version: str = "v1", name: str = "a", **spec: Any) -> Object:
    named = {"apiVersion": f"{GROUP}/{version}", "kind": "Lamp"}
    return named | {"metadata": {"name": name, "namespace": "default"}, "spec": spec}


def request(obj: Object | None, old: Object | None = None, **more: Any) -> Object:
    about = obj or old or lamp()
    version = about["apiVersion"].rpartition("/")[2]
    return {
        "uid": "705ab4f5",
        "kind": {"group": GROUP, "version": version, "kind": "Lamp"},
        "resource": {"group": GROUP, "version": version, "resource": "lamps"},
        "name": about["metadata"].get("name", ""),
        "namespace": "default",
        "operation": "UPDATE" if obj and old else "CREATE" if obj else "DELETE",
        "userInfo": {"username": "me", "groups": ["us"], "extra": {"scopes": ["a"]}},
        "object": obj,
        "oldObject": old,
        "dryRun": False,
    } | more


def body(asked: object, version: str = "admission.k8s.io/v1") -> bytes:
    named = {"apiVersion": version, "kind": "AdmissionReview"}
    return json.dumps(named | {"request": asked}).encode()


def post(act: str, content: bytes, app: WebhookApp) -> Answer:
    return answer("POST", f"/admit/{act}?timeout=10s", content, app=app)


def admitted(act: str, asked: Object, *links: Admission) -> Object:
    found = post(act, body(asked), app(*links))
    assert found.status == 200, found.body
    assert found.json["kind"] == "AdmissionReview"
    assert found.json["response"]["uid"] == "705ab4f5"
    response: Object = found.json["response"]
    return response


def operations(response: Object) -> list[Object]:
    assert response["patchType"] == "JSONPatch"
    found: list[Object] = json.loads(base64.b64decode(response["patch"]))
    return found


def test_what_is_filled_in_is_a_patch_of_that_alone() -> None:
    response = admitted("mutate", request(lamp(power=40)))
    assert response["allowed"] is True
    assert operations(response) == [{"op": "add", "path": "/spec/colour", "value": "white"}]


def test_what_stays_as_it_is_has_no_patch() -> None:
    response = admitted("mutate", request(lamp(power=40, colour="red")))
    assert response == {"uid": "705ab4f5", "allowed": True}


@pytest.mark.parametrize("annotations", [None, {}, {"other": "kept"}])
def test_a_carry_that_was_left_out_comes_back(annotations: Object | None) -> None:
    old, new = lamp("v2", watts=40), lamp("v2", watts=50)
    old["metadata"]["annotations"] = {ANNOTATION: CARRY}
    if annotations is not None:
        new["metadata"]["annotations"] = annotations
    patched = apply_json_patch(new, operations(admitted("mutate", request(new, old))))
    expected = {**(annotations or {}), ANNOTATION: CARRY}
    assert patched == new | {"metadata": new["metadata"] | {"annotations": expected}}


def test_a_carry_that_is_there_is_left_alone() -> None:
    old, new = lamp("v2", watts=40), lamp("v2", watts=50)
    for each, carry in ((old, CARRY), (new, "{}")):
        each["metadata"]["annotations"] = {ANNOTATION: carry}
    assert "patch" not in admitted("mutate", request(new, old))


def test_a_refusal_is_a_status() -> None:
    response = admitted("validate", request(lamp("v2", watts=101)))
    assert response["allowed"] is False
    status = response["status"]
    assert (status["code"], status["reason"]) == (422, "Invalid")
    assert status["message"].endswith('"a" is invalid: spec.watts: Invalid value: is too bright')
    assert [each["field"] for each in status["details"]["causes"]] == ["spec.watts"]


def test_what_user_code_raised_is_not_told(capsys: pytest.CaptureFixture[str]) -> None:
    response = admitted("validate", request(lamp("v2", "broken", watts=1)))
    assert (response["allowed"], response["status"]["code"]) == (False, 500)
    assert "secret" not in json.dumps(response)
    assert "a secret of user code" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["leaves", "stops"])
def test_user_code_cannot_end_the_process(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    response = admitted("validate", request(lamp("v2", name, watts=1)))
    assert (response["allowed"], response["status"]["code"]) == (False, 500)
    assert "a hook failed" in capsys.readouterr().err


def test_an_object_that_is_nested_too_deeply_is_refused() -> None:
    inside = "[" * 700 + "]" * 700
    content = body(request(lamp(power=1, colour="HERE"))).replace(b'"HERE"', inside.encode())
    assert post("mutate", content, app()).status == 400


def test_a_hook_that_takes_too_long_is_not_waited_for() -> None:
    content = body(request(lamp("v2", "slow", watts=1)))
    found = answer("POST", "/admit/validate?timeout=200ms", content, app=app()).json["response"]
    assert found["allowed"] is False
    text = "Internal error occurred: a hook did not answer within 0.2 s"
    assert found["status"]["message"] == text


def test_each_version_is_answered_in_kind() -> None:
    asked = body(request(lamp(power=40)), "admission.k8s.io/v1beta1")
    assert post("mutate", asked, app()).json["apiVersion"] == "admission.k8s.io/v1beta1"


@pytest.mark.parametrize("act", ["mutate", "validate"])
@pytest.mark.parametrize(
    "asked",
    [
        request(None, lamp(power=1)),
        request(None, None, operation="CONNECT", object={"kind": "PodExecOptions"}),
        request(lamp(power=1), kind={"group": "", "version": "v1", "kind": "Pod"}),
        request(
            {"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {}, "spec": {}},
            {"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {}, "spec": {}},
            kind={"group": "autoscaling", "version": "v1", "kind": "Scale"},
            subResource="scale",
        ),
    ],
    ids=["delete", "connect", "another-kind", "scale"],
)
def test_what_nobody_has_a_say_in_is_allowed_as_it_is(act: str, asked: Object) -> None:
    assert admitted(act, asked) == {"uid": "705ab4f5", "allowed": True}


def test_a_status_is_not_filled_in() -> None:
    asked = request(lamp(power=1), lamp(power=1), subResource="status")
    assert "patch" not in admitted("mutate", asked)


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"hello", "the body is not JSON"),
        (b"[]", "the body is not an object, so it is not an AdmissionReview"),
        (b'{"kind": "ConversionReview"}', "not an AdmissionReview of admission.k8s.io/v1 or"),
        (body(None), "the AdmissionReview has no request"),
        (body({}), "missing required field `uid` - at `$.request`"),
        (body(request(lamp(power=1), uid=7)), "Expected `str`, got `int` - at `$.request.uid`"),
        (body(request(None, None, operation="CREATE")), "has no request.object"),
        (body(request(lamp(), None, operation="UPDATE")), "has no request.oldObject"),
        (
            body(request(lamp(), object=lamp() | {"metadata": []})),
            "request.object is not an object: Expected",
        ),
        (
            body(request(lamp() | {"metadata": {"annotations": {"a": 1}}})),
            "request.object is not an object: Expected `str`, got `int`",
        ),
    ],
)
def test_what_is_no_review_is_refused(content: bytes, told: str) -> None:
    for act in ("mutate", "validate"):
        found = post(act, content, app())
        assert (found.status, found.json["reason"]) == (400, "BadRequest")
        assert told in found.json["message"]


class Link:
    """Has a say in everything."""

    def __init__(self, says: Callable[[AdmissionRequest], None]) -> None:
        self._says = says

    def handles(self, kind: ResourceKind, operation: str) -> bool:
        del kind, operation
        return True

    async def mutate(self, review: AdmissionRequest) -> None:
        self._says(review)

    validate = mutate


def test_the_chain_is_told_all_about_the_request() -> None:
    told: list[AdmissionRequest] = []
    asked = request(None, lamp(power=1), dryRun=True, subResource="")
    admitted("validate", asked, Link(told.append))
    [review] = told
    assert (review.operation, review.namespace, review.name) == ("DELETE", "default", "a")
    assert (review.dry_run, review.object, review.old) == (True, None, lamp(power=1))
    assert (review.user.name, review.user.groups) == ("me", ("us",))
    assert review.user.extra == {"scopes": ("a",)}


def test_warnings_come_with_every_answer() -> None:
    def warn(review: AdmissionRequest) -> None:
        review.warnings.append("do not")
        if review.name == "b":
            raise forbidden(review.kind, review.name, "no")

    for name, allowed in (("a", True), ("b", False)):
        response = admitted("validate", request(lamp(name=name, power=1)), Link(warn))
        assert (response["allowed"], response["warnings"]) == (allowed, ["do not"])


def test_what_was_admitted_is_counted_by_kind() -> None:
    async def scenario() -> str:
        from tests.webhook.test_app import ask

        served = app()
        for watts in (1, 101):
            content = body(request(lamp("v2", watts=watts)))
            await ask(served, "POST", "/admit/validate", content)
        await ask(served, "POST", "/admit/mutate", body(request(lamp(power=1))))
        return (await ask(served, "GET", "/metrics")).body.decode()

    found = asyncio.run(scenario())
    about = f'group="{GROUP}",kind="Lamp"'
    for act, result in (("validate", "allowed"), ("validate", "refused"), ("mutate", "changed")):
        line = f'polyver_webhook_admissions_total{{act="{act}",{about},result="{result}"}} 1.0'
        assert line in found
