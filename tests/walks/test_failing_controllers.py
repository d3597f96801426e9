"""Controllers in Python that fail: the object, an Event and the log say why, and where."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from tests.editing import edited
from tests.walks.support import eventually

from polyver import apis
from polyver.testing import EmbeddedServer

Object = dict[str, Any]
GROUP = "lamps.example.com"
LAMPS = f"/apis/{GROUP}/v1/namespaces/default/lamps"
MAPS = "/api/v1/namespaces/default/configmaps"
EVENTS = "/api/v1/namespaces/default/events"
CONTROLLER = {"controller": True}
FILE = "test_failing_controllers.py"

release = threading.Event()
lamp = apis.Kind("Lamp", group=GROUP)


@lamp.version("v1")
class Lamp(apis.Fields):
    """Fails in the way that its spec says."""

    class Spec(apis.Fields):
        way: str

    class Status(apis.Fields):
        watts: int | None = None
        conditions: list[dict[str, Any]] | None = None

    metadata: dict[str, Any]
    spec: Spec
    status: Status | None = None


@lamp.reconcile
def shine(obj: Lamp) -> Any:
    match obj.spec.way:
        case "raise":
            return obj.metadata["watts"]
        case "exit":
            raise SystemExit(3)
        case "wrong":
            return "an Outcome"
        case "refused":
            made = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "No Name"}}
            return apis.Outcome(objects=[made])
        case "taken":
            made = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "taken"}}
            return apis.Outcome(objects=[made | {"data": {"mine": "yes"}}])
        case "hang":
            release.wait()
    return apis.Outcome(status={"watts": 40})


@pytest.fixture(scope="module")
def server() -> Iterator[EmbeddedServer]:
    with EmbeddedServer(kinds=[lamp]) as server:
        yield server


def create(server: EmbeddedServer, name: str, way: str) -> None:
    body = {"apiVersion": f"{GROUP}/v1", "kind": "Lamp", "metadata": {"name": name}}
    server.request("POST", LAMPS, body | {"spec": {"way": way}})


def condition(server: EmbeddedServer, name: str) -> Object | None:
    found = server.request("GET", f"{LAMPS}/{name}").get("status", {}).get("conditions") or []
    return next((each for each in found if each["type"] == "Reconciled"), None)


def failed(server: EmbeddedServer, name: str) -> Object:
    def is_false() -> Object | None:
        found = condition(server, name)
        return found if found and found["status"] == "False" else None

    return eventually(is_false)


def events(server: EmbeddedServer, name: str) -> list[tuple[str, str, str]]:
    return [
        (each["type"], each["reason"], each["message"])
        for each in server.request("GET", EVENTS)["items"]
        if each["involvedObject"]["name"] == name
    ]


@pytest.mark.parametrize(
    ("way", "reason", "message"),
    [
        ("raise", "ReconcileFailed", rf"KeyError: 'watts' \({FILE}:\d+ in shine\)"),
        ("exit", "ReconcileFailed", r"RuntimeError: SystemExit was raised"),
        ("wrong", "ReconcileFailed", r"TypeError: shine returned str, not an Outcome"),
        ("refused", "ApplyFailed", r'ConfigMap "No Name" is invalid'),
    ],
)  # fmt: skip
def test_a_failure_is_a_condition_and_an_event(
    server: EmbeddedServer, way: str, reason: str, message: str
) -> None:
    create(server, way, way)
    found = failed(server, way)
    assert found["reason"] == reason
    assert found["observedGeneration"] == 1
    assert re.match(message, found["message"])
    assert events(server, way) == [("Warning", reason, found["message"])]


def test_an_object_that_is_mended_says_so(server: EmbeddedServer) -> None:
    create(server, "mended", "raise")
    since = failed(server, "mended")["lastTransitionTime"]
    edited(server.request, f"{LAMPS}/mended", lambda found: found["spec"].update(way="well"))
    eventually(lambda: (condition(server, "mended") or {}).get("status") == "True")
    status = server.request("GET", f"{LAMPS}/mended")["status"]
    assert status["watts"] == 40
    (only,) = status["conditions"]
    assert only["reason"] == "Succeeded"
    assert only["lastTransitionTime"] >= since


def test_an_object_that_never_failed_has_the_status_of_the_function_alone(
    server: EmbeddedServer,
) -> None:
    create(server, "well", "well")
    eventually(lambda: server.request("GET", f"{LAMPS}/well").get("status"))
    assert server.request("GET", f"{LAMPS}/well")["status"] == {"watts": 40}


def test_an_object_of_another_controller_stays_as_it_is(server: EmbeddedServer) -> None:
    uid = server.request("POST", MAPS, {"metadata": {"name": "other"}})["metadata"]["uid"]
    other = {"apiVersion": "v1", "kind": "ConfigMap", "name": "other", "uid": uid} | CONTROLLER
    made = {"metadata": {"name": "taken", "ownerReferences": [other]}, "data": {"theirs": "yes"}}
    server.request("POST", MAPS, made)
    create(server, "taken", "taken")
    found = failed(server, "taken")
    assert found["reason"] == "ApplyFailed"
    assert "taken" in found["message"]
    assert server.request("GET", f"{MAPS}/taken")["data"] == {"theirs": "yes"}


def test_the_log_names_the_line_that_raised(
    server: EmbeddedServer, capfd: pytest.CaptureFixture[str]
) -> None:
    create(server, "logged", "raise")
    failed(server, "logged")
    told = []

    def is_logged() -> bool:
        told.append(capfd.readouterr().err)
        return "logged" in "".join(told)

    eventually(is_logged)
    assert "test_failing_controllers.py" in "".join(told)
    assert "KeyError" in "".join(told)


def test_objects_that_hang_do_not_hold_up_the_others(server: EmbeddedServer) -> None:
    for number in range(8):
        create(server, f"hangs-{number}", "hang")
    create(server, "goes-on", "well")
    eventually(lambda: server.request("GET", f"{LAMPS}/goes-on").get("status"))
    release.set()
