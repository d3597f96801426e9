"""Kinds that are declared in Python, as their manifests come: a server takes them as they are."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any

import pytest
from hypothesis import HealthCheck, given, settings
from tests.apis.test_examples import FOUND as EXAMPLES
from tests.declared import OTHERS, SCALARS, kinds
from tests.walks.conftest import DEFINITIONS
from tests.walks.support import Server, Walk, eventually, request

from polyver import apis
from polyver.kube.objects.status import ApiError


def taken(
    server: Server, kind: apis.Kind | apis.Definition, webhook: apis.Webhook | None = None
) -> Any:
    """What a server would make of a kind; a refusal fails the test with its text."""
    definition = kind.definition() if isinstance(kind, apis.Kind) else kind
    crd = apis.crd_of(definition, webhook)
    return request(server, "POST", f"{DEFINITIONS}?dryRun=All&fieldValidation=Strict", crd)


@given(kind=kinds())
@settings(max_examples=40, suppress_health_check=list(HealthCheck))
def test_whatever_is_declared_is_taken(server: Server, kind: apis.Kind) -> None:
    assert taken(server, kind)["spec"]["names"]["kind"] == "Drawn"


def test_every_sort_of_field_is_taken(server: Server) -> None:
    hints = {f"f{number}": hint for number, hint in enumerate(SCALARS + OTHERS)}
    hints |= {f"list{name}": list[hint] for name, hint in hints.items()}  # type: ignore[valid-type]
    spec = type("Spec", (), {"__annotations__": hints})
    kind = apis.Kind("Every", group="every.example.com", categories=["all"], short_names=["ev"])
    whole = type("Every", (), {"__annotations__": {"spec": spec}, "Spec": spec})
    kind.version("v1")(whole)
    found = taken(server, kind)["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    assert found["properties"]["spec"]["properties"].keys() == hints.keys()


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_examples_are_taken(server: Server, name: str) -> None:
    definition, _ = EXAMPLES[name]
    found = taken(server, definition)["spec"]
    assert [each["name"] for each in found["versions"]] == [v.name for v in definition.versions]


def test_a_webhook_is_taken(server: Server) -> None:
    kind = apis.Kind("Toy", group="toys.example.com")
    for name in ("v1", "v2"):
        kind.version(name, storage=name == "v1")(type("Toy", (), {"__annotations__": {"a": str}}))
    kind.edge("v2", "v1")(lambda _: None)
    at_home = apis.Webhook("shop", "hooks", 8443, "/convert", inject_ca_from="shop/cert")
    assert taken(server, kind, at_home)["metadata"]["annotations"] == {
        "cert-manager.io/inject-ca-from": "shop/cert"
    }
    away = apis.Webhook(url="https://hooks.example.com/convert")
    found = taken(server, kind, away)["spec"]["conversion"]["webhook"]["clientConfig"]
    assert found == {"url": "https://hooks.example.com/convert"}


def test_objects_are_made_filled_in_refused_and_read(walk: Walk) -> None:
    kind = apis.Kind("Lamp", group=walk.group, plural="widgets")
    columns = [apis.Column("Watts", ".spec.watts", "integer")]

    @kind.version("v1", columns=columns, scale=apis.Scale())
    class Lamp(apis.Fields):
        """Shines."""

        @apis.Rule("self.watts <= self.most", message="is too bright")
        class Spec(apis.Fields):
            watts: Annotated[int, apis.Ge(1)] = 40
            """How much it takes."""
            most: int = 100
            replicas: int | None = None
            since: datetime | None = None

        class Status(apis.Fields):
            replicas: int

        metadata: dict[str, Any]
        spec: Spec
        status: Status | None = None

    walk.request("POST", DEFINITIONS, apis.crd_of(kind.definition()))
    lamps = f"/apis/{walk.group}/v1/namespaces/{walk.namespace}/widgets"
    eventually(lambda: walk.request("GET", lamps))
    desk = apis.to_object(Lamp(metadata={"name": "desk"}, spec=Lamp.Spec(most=60, replicas=2)))
    made = kind.from_object(walk.request("POST", lamps, desk))
    assert (made.spec.watts, made.spec.most, made.spec.since, made.status) == (40, 60, None, None)
    scaled = walk.request("GET", f"{lamps}/desk/scale")
    assert scaled["spec"] == {"replicas": 2}
    with pytest.raises(ApiError, match="greater than or equal to 1"):
        walk.request("POST", lamps, desk | {"spec": {"watts": 0}})
