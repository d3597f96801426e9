"""A kopf operator in a process of its own, seen through what it does to its objects."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.deadlines import HANG
from tests.editing import edited
from tests.walks.support import Walk, eventually

OPERATOR = Path(__file__).with_name("widget_operator.py")


@contextmanager
def running(walk: Walk) -> Iterator[list[str]]:
    """The operator, and what it logs."""
    log: list[str] = []
    options = ["--namespace", walk.namespace, "--standalone", "--verbose"]
    process = subprocess.Popen(
        [sys.executable, "-m", "kopf", "run", str(OPERATOR), *options],
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"KUBECONFIG": str(walk.kubeconfig), "WALK_GROUP": walk.group},
    )
    assert process.stderr
    reader = threading.Thread(target=log.extend, args=(process.stderr,))
    reader.start()
    try:
        yield log
    finally:
        process.terminate()
        process.wait(timeout=HANG)
        reader.join()
        process.stderr.close()


@pytest.fixture
def log(widgets: Walk) -> Iterator[list[str]]:
    with running(widgets) as seen:
        yield seen


def place(walk: Walk, name: str = "") -> str:
    return f"/apis/{walk.group}/v1/namespaces/{walk.namespace}/widgets/{name}".rstrip("/")


def phase_is(walk: Walk, name: str, phase: str) -> Any:
    found = walk.request("GET", place(walk, name))
    return found if found.get("status", {}).get("phase") == phase else None


def change(walk: Walk, name: str, **changes: Any) -> None:
    def made(whole: Any) -> None:
        whole["spec"] |= changes.get("spec", {})
        whole["metadata"].setdefault("annotations", {}).update(changes.get("annotations", {}))

    edited(walk.request, place(walk, name), made)


def test_an_operator_lives_with_its_objects(widgets: Walk, log: list[str]) -> None:
    widgets.request("POST", place(widgets), widgets.widget("w", size=2))
    held = eventually(lambda: phase_is(widgets, "w", "Created"))
    assert held["metadata"]["finalizers"] == [f"{widgets.group}/hold"]
    assert held["metadata"]["labels"] == {"size": "2"}
    assert "kopf.zalando.org/last-handled-configuration" in held["metadata"]["annotations"]
    events = f"/api/v1/namespaces/{widgets.namespace}/events?fieldSelector=involvedObject.name=w"

    def told() -> bool:
        found = widgets.request("GET", events)["items"]
        return "a widget has come" in [each["message"] for each in found]

    eventually(told)
    change(widgets, "w", spec={"size": 5})
    eventually(lambda: phase_is(widgets, "w", "Resized from 2 to 5"))
    eventually(lambda: widgets.request("GET", place(widgets, "w"))["status"].get("seen", 0) > 2)

    widgets.request("DELETE", place(widgets, "w"))
    assert widgets.request("GET", place(widgets, "w"))["metadata"]["deletionTimestamp"]
    change(widgets, "w", annotations={"may-go": "yes"})
    eventually(lambda: widgets.request("GET", place(widgets, "w")) is None)

    maps = f"/api/v1/namespaces/{widgets.namespace}/configmaps"
    labels = {"watched": "yes"}
    widgets.request("POST", maps, widgets.config_map("m", {}, labels=labels))

    def noticed() -> bool:
        found = widgets.request("GET", f"{maps}/m")["metadata"].get("annotations", {})
        return "noticed" in found

    eventually(noticed)
    errors = [line for line in log if "[ERROR" in line or "Traceback" in line]
    assert [line for line in errors if "not yet" not in line] == []


def test_an_operator_that_comes_back_goes_on(widgets: Walk) -> None:
    with running(widgets):
        widgets.request("POST", place(widgets), widgets.widget("w", size=1))
        eventually(lambda: phase_is(widgets, "w", "Created"))
    change(widgets, "w", spec={"size": 2})
    with running(widgets):
        eventually(lambda: phase_is(widgets, "w", "Resized from 1 to 2"))
        widgets.request("DELETE", place(widgets, "w"))
        change(widgets, "w", annotations={"may-go": "yes"})
        eventually(lambda: widgets.request("GET", place(widgets, "w")) is None)
