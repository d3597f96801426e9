"""Conversions that are applied to polyver's own server, and kinds in Python that it runs."""

from __future__ import annotations

import json
import ssl
import time
import urllib.request
from collections.abc import Iterator
from typing import Any

import pytest
from tests.apis.conversions import EVERY_RULE, SCHEMAS
from tests.editing import edited
from tests.walks.conftest import DEFINITIONS
from tests.walks.support import eventually, request

from polyver import apis
from polyver.apis.conversion import ANNOTATION
from polyver.kube.objects import load_manifests
from polyver.kube.objects.status import ApiError
from polyver.testing import EmbeddedServer

Object = dict[str, Any]
GROUP = "stable.example.com"
CONVERSIONS = "/apis/polyver.dev/v1alpha1/conversions"
NAME = f"crontabs.{GROUP}"


def definition(stored: str = "v2") -> Object:
    versions = [
        {
            "name": name,
            "served": True,
            "storage": name == stored,
            "schema": {"openAPIV3Schema": schema},
            "subresources": {"status": {}},
        }
        for name, schema in SCHEMAS.items()
    ]
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": NAME},
        "spec": {
            "group": GROUP,
            "scope": "Namespaced",
            "names": {"plural": "crontabs", "kind": "CronTab"},
            "versions": versions,
        },
    }


def conversion() -> Object:
    [found] = load_manifests(EVERY_RULE, "conversion.yaml")
    assert isinstance(found.value, dict)
    return found.value


def path(version: str, name: str = "") -> str:
    return f"/apis/{GROUP}/{version}/namespaces/default/crontabs{name and f'/{name}'}"


def crontab(version: str, **spec: Any) -> Object:
    return {
        "apiVersion": f"{GROUP}/{version}",
        "kind": "CronTab",
        "metadata": {"name": "a"},
        "spec": spec,
    }


def is_serving(server: EmbeddedServer) -> bool:
    found = server.request("GET", f"{CONVERSIONS}/{NAME}")
    conditions = found.get("status", {}).get("conditions", [])
    return [each["status"] for each in conditions if each["type"] == "Serving"] == ["True"]


@pytest.fixture(params=["v1", "v2", "v3"])
def stored(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def server(stored: str) -> Iterator[EmbeddedServer]:
    """A server on which CronTabs are converted, whatever version is stored."""
    with EmbeddedServer() as running:
        running.request("POST", DEFINITIONS, definition(stored))
        running.request("POST", CONVERSIONS, conversion())
        eventually(lambda: is_serving(running))
        eventually(lambda: request(running, "GET", path("v1")))
        yield running


V1 = {
    "cronSpec": "@daily",
    "hostPort": "h:08080",
    "image": "x",
    "policy": "Odd",
    "only1": {"a": "b"},
    "containers": [{"name": "one", "cmd": "run", "debug": "yes"}],
}


def visible(obj: Object, names: dict[str, Any]) -> Object:
    return {name: obj["spec"].get(name) for name in names}


def test_what_is_written_in_one_version_is_read_in_all(server: EmbeddedServer) -> None:
    server.request("POST", path("v1"), crontab("v1", **V1))
    third = server.request("GET", path("v3", "a"))["spec"]
    assert (third["schedule"], third["host"], third["port"]) == ("@daily", "h", 8080)
    assert third["template"] == {"images": ["x"]}
    assert third["containers"] == [{"name": "one", "command": "run"}]
    assert visible(server.request("GET", path("v1", "a")), V1) == V1
    listed = server.request("GET", path("v2"))["items"]
    assert [item["spec"]["images"] for item in listed] == [["x"]]


def test_a_replacement_without_the_carry_loses_nothing(server: EmbeddedServer) -> None:
    server.request("POST", path("v1"), crontab("v1", **V1))
    for version, change in (("v3", "first"), ("v2", "second"), ("v3", "third")):
        found = server.request("GET", path(version, "a"))
        found["metadata"].pop("annotations", None)
        found["metadata"].pop("managedFields", None)
        found["spec"]["schedule"] = change
        server.request("PUT", path(version, "a"), found)
        expected = V1 | {"cronSpec": change}
        assert visible(server.request("GET", path("v1", "a")), V1) == expected


def test_edits_in_the_old_version_survive_with_what_the_new_one_has(
    server: EmbeddedServer,
) -> None:
    template = {"images": ["x", "y"]}
    new = crontab("v3", schedule="@daily", template=template, only3=[{"name": "z"}])
    server.request("POST", path("v3"), new)
    old = server.request("GET", path("v1", "a"))
    old["metadata"].pop("annotations", None)
    old["spec"]["image"] = "changed"
    server.request("PUT", path("v1", "a"), old)
    found = server.request("GET", path("v3", "a"))["spec"]
    assert found["template"] == {"images": ["changed", "y"]}
    assert found["only3"] == [{"name": "z"}]


def test_the_status_is_converted_as_well(server: EmbeddedServer) -> None:
    made = server.request("POST", path("v1"), crontab("v1", **V1))
    server.request("PUT", path("v1", "a") + "/status", made | {"status": {"ready": 3}})
    found = server.request("GET", path("v1", "a"))
    assert found["status"] == {"ready": 3}
    assert visible(found, V1) == V1


@pytest.mark.parametrize("stored", ["v2"], indirect=True)
def test_a_conversion_that_makes_no_sense_is_refused_with_its_place(
    server: EmbeddedServer,
) -> None:
    path = f"{CONVERSIONS}/{NAME}"
    rules = [{"mov": {"from": "spec.a", "to": "spec.b"}}]
    with pytest.raises(ApiError) as refused:
        edited(server.request, path, lambda obj: obj["spec"]["edges"][1].update(rules=rules))
    assert refused.value.code == 422
    [cause] = (refused.value.details or {})["causes"]
    assert cause["field"] == "spec.edges[1].rules[0].mov"
    less = conversion()["spec"] | {"versions": ["v1", "v2"]}
    with pytest.raises(ApiError, match="v3"):
        edited(server.request, path, lambda obj: obj.update(spec=less))
    assert is_serving(server)


@pytest.mark.parametrize("stored", ["v2"], indirect=True)
def test_the_definition_says_who_converts_while_there_is_a_conversion(
    server: EmbeddedServer,
) -> None:
    def strategy() -> str:
        found = server.request("GET", f"{DEFINITIONS}/{NAME}")
        return str(found["spec"]["conversion"]["strategy"])

    assert strategy() == "Webhook"
    edited(server.request, f"{DEFINITIONS}/{NAME}", _serve_one)
    server.request("DELETE", f"{CONVERSIONS}/{NAME}")
    eventually(lambda: strategy() == "None")


def _serve_one(crd: Object) -> None:
    """Have a kind serve the version alone that it stores."""
    for each in crd["spec"]["versions"]:
        each["served"] = each["storage"]


def test_a_definition_that_named_another_webhook_names_this_one() -> None:
    crd = definition()
    service = {"namespace": "default", "name": "hooks", "path": "/convert"}
    hook = {"clientConfig": {"service": service}, "conversionReviewVersions": ["v1"]}
    crd["spec"]["conversion"] = {"strategy": "Webhook", "webhook": hook}
    with EmbeddedServer() as server:
        server.request("POST", DEFINITIONS, crd)
        server.request("POST", CONVERSIONS, conversion())
        eventually(lambda: is_serving(server))
        found = server.request("GET", f"{DEFINITIONS}/{NAME}")["spec"]["conversion"]
        client = found["webhook"]["clientConfig"]
        assert client.keys() == {"url", "caBundle"}
        assert client["url"] == f"{server.url}/convert"


@pytest.mark.parametrize("stored", ["v2"], indirect=True)
def test_reviews_are_answered_at_the_address_that_the_definition_names(
    server: EmbeddedServer,
) -> None:
    found = server.request("GET", f"{DEFINITIONS}/{NAME}")["spec"]["conversion"]["webhook"]
    url = found["clientConfig"]["url"]
    asked = {"uid": "1", "desiredAPIVersion": f"{GROUP}/v2", "objects": [crontab("v1", image="x")]}
    review = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview"}
    answer = server.request("POST", url.removeprefix(server.url), review | {"request": asked})
    [converted] = answer["response"]["convertedObjects"]
    assert converted["spec"]["images"] == ["x"]


@pytest.mark.parametrize("stored", ["v2"], indirect=True)
def test_more_than_fits_into_the_carry_is_refused(server: EmbeddedServer) -> None:
    huge = {"text": "x" * 300_000}
    with pytest.raises(ApiError, match=r"spec.legacyMode of v1 \(3\d\d\d\d\d bytes\)") as refused:
        server.request("POST", path("v1"), crontab("v1", legacyMode=huge))
    assert refused.value.code == 422


@pytest.mark.parametrize("stored", ["v2"], indirect=True)
def test_preserved_fields_of_another_release_are_kept_and_reported(
    server: EmbeddedServer, capfd: pytest.CaptureFixture[str]
) -> None:
    text = '{"format":2,"fields":["spec.only1"]}'
    obj = crontab("v1", **V1)
    obj["metadata"]["annotations"] = {ANNOTATION: text}
    warnings = warned(server, "POST", path("v1"), obj)
    assert any("(format 2) cannot be read by this release" in each for each in warnings)
    for version in ("v3", "v2"):
        found = server.request("GET", path(version, "a"))
        assert found["metadata"]["annotations"][ANNOTATION] == text
        found["metadata"].pop("annotations")
        server.request("PUT", path(version, "a"), found)
    found = server.request("GET", path("v1", "a"))
    assert found["metadata"]["annotations"] == {ANNOTATION: text}
    assert visible(found, V1) == V1
    assert capfd.readouterr().err.count("preserved fields cannot be read by this release") == 1


def warned(server: EmbeddedServer, method: str, at: str, body: Object) -> list[str]:
    """The warnings that a client gets for a request."""
    context = ssl.create_default_context(cafile=str(server.ca_file))
    sent = urllib.request.Request(
        f"{server.url}{at}", data=json.dumps(body).encode(), method=method
    )
    sent.add_header("Authorization", f"Bearer {server.token}")
    sent.add_header("Content-Type", "application/json")
    with urllib.request.urlopen(sent, context=context) as answer:
        return list(answer.headers.get_all("Warning") or [])


def test_conversions_are_there_after_a_restart(tmp_path: Any) -> None:
    with EmbeddedServer(data=tmp_path) as server:
        server.request("POST", DEFINITIONS, definition())
        server.request("POST", CONVERSIONS, conversion())
        eventually(lambda: is_serving(server))
        eventually(lambda: server.request("POST", path("v1"), crontab("v1", **V1)))
    with EmbeddedServer(data=tmp_path) as server:
        assert visible(server.request("GET", path("v1", "a")), V1) == V1


# Kinds in Python.

lamp = apis.Kind("Lamp", group="lamps.example.com")


@lamp.version("v1")
class LampV1(apis.Fields):
    """Shines."""

    class Spec(apis.Fields):
        watts: int
        colour: str | None = None

    class Status(apis.Fields):
        shines: bool
        name: str | None = None

    spec: Spec
    status: Status | None = None


@lamp.version("v2", storage=True)
class LampV2(apis.Fields):
    """Shines."""

    class Spec(apis.Fields):
        power: str

    class Status(apis.Fields):
        shines: bool

    metadata: dict[str, Any]
    spec: Spec
    status: Status | None = None


@lamp.edge("v1", "v2")
def v1_v2(rules: apis.Rules) -> None:
    rules.cast("spec.watts", "integer", "string", to="spec.power")


@lamp.default("v2")
def fill_in(obj: LampV2) -> None:
    obj.metadata.setdefault("labels", {})["lit"] = "yes"


@lamp.validate("v2")
def look(obj: LampV2) -> list[apis.Problem]:
    return [apis.Problem("spec.power", "is too much")] if len(obj.spec.power) > 3 else []


@lamp.reconcile
def shine(obj: LampV2) -> apis.Outcome:
    made = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": f"{obj.metadata['name']}-power"},
        "data": {"power": obj.spec.power},
    }
    return apis.Outcome(status={"shines": True}, objects=[made])


LAMPS = "/apis/lamps.example.com/{}/namespaces/default/lamps"


@pytest.fixture
def lamps() -> Iterator[EmbeddedServer]:
    with EmbeddedServer(kinds=[lamp]) as running:
        yield running


def a_lamp(version: str, **spec: Any) -> Object:
    return {
        "apiVersion": f"lamps.example.com/{version}",
        "kind": "Lamp",
        "metadata": {"name": "a"},
        "spec": spec,
    }


def test_a_kind_in_python_is_defined_converted_and_kept_by_its_controller(
    lamps: EmbeddedServer,
) -> None:
    lamps.request("POST", LAMPS.format("v1"), a_lamp("v1", watts=60, colour="red"))
    found = lamps.request("GET", LAMPS.format("v2") + "/a")
    assert found["spec"] == {"power": "60"}
    maps = "/api/v1/namespaces/default/configmaps/a-power"
    made = eventually(lambda: request(lamps, "GET", maps))
    assert made["data"] == {"power": "60"}
    assert made["metadata"]["ownerReferences"][0]["kind"] == "Lamp"
    path = LAMPS.format("v1") + "/a"
    eventually(lambda: lamps.request("GET", path).get("status", {}).get("shines"))

    def change(found: Object) -> None:
        found["spec"]["power"] = "75"
        found["metadata"].pop("annotations")

    edited(lamps.request, LAMPS.format("v2") + "/a", change)
    eventually(lambda: lamps.request("GET", maps)["data"] == {"power": "75"})
    assert lamps.request("GET", LAMPS.format("v1") + "/a")["spec"] == {
        "watts": 75,
        "colour": "red",
    }
    lamps.request("DELETE", LAMPS.format("v1") + "/a")
    eventually(lambda: _is_gone(lamps, maps))


def _is_gone(server: EmbeddedServer, at: str) -> bool:
    try:
        server.request("GET", at)
    except ApiError as error:
        return error.code == 404
    return False


def test_its_hooks_have_a_say_in_every_write(lamps: EmbeddedServer) -> None:
    made = lamps.request("POST", LAMPS.format("v2"), a_lamp("v2", power="60"))
    assert made["metadata"]["labels"] == {"lit": "yes"}
    other = a_lamp("v2", power="9999") | {"metadata": {"name": "b"}}
    with pytest.raises(ApiError, match=r"spec.power: Invalid value: is too much") as refused:
        lamps.request("POST", LAMPS.format("v2"), other)
    assert refused.value.code == 422


def test_a_controller_that_fails_is_called_again() -> None:
    kind = apis.Kind("Toy", group="toys.example.com")
    calls: list[float] = []

    @kind.version("v1")
    class Toy:
        class Spec:
            size: int

        spec: Spec

    @kind.reconcile
    async def play(obj: dict[str, Any]) -> None:
        calls.append(time.monotonic())
        if len(calls) < 3:
            raise ValueError("not yet")

    with EmbeddedServer(kinds=[kind]) as server:
        toy = {"apiVersion": "toys.example.com/v1", "kind": "Toy", "metadata": {"name": "a"}}
        at = "/apis/toys.example.com/v1/namespaces/default/toys"
        server.request("POST", at, toy | {"spec": {"size": 1}})
        eventually(lambda: len(calls) >= 3)


def test_the_carry_is_nowhere_when_nothing_is_carried(lamps: EmbeddedServer) -> None:
    lamps.request("POST", LAMPS.format("v1"), a_lamp("v1", watts=60))
    found = lamps.request("GET", LAMPS.format("v2") + "/a")
    assert ANNOTATION not in found["metadata"].get("annotations", {})


def test_a_kind_may_keep_what_is_carried_in_a_field() -> None:
    kind = apis.Kind("Lamp", group="lamps.example.com", carry="kept")
    for name, field in (("v1", "colour"), ("v2", "size")):
        spec = type("Spec", (), {"__annotations__": {field: str | None}, field: None})
        about = {"__annotations__": {"spec": spec}, "Spec": spec}
        kind.version(name, storage=name == "v2")(type("Lamp", (), about))
    kind.edge("v1", "v2")(lambda _: None)
    with EmbeddedServer(kinds=[kind]) as server:
        server.request("POST", LAMPS.format("v1"), a_lamp("v1", colour="red"))
        found = server.request("GET", LAMPS.format("v2") + "/a")
        assert '"spec.colour":{"is":"red"}' in found.pop("kept")
        found["spec"] = {"size": "XL"}
        server.request("PUT", LAMPS.format("v2") + "/a", found)
        last = server.request("GET", LAMPS.format("v1") + "/a")
    assert last["spec"] == {"colour": "red"}
    assert "annotations" not in last["metadata"]
