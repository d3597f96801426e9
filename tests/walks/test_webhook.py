"""polyver's webhook in a process of its own, asked by the API server about one kind's objects."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from kubernetes import client
from tests.walks.support import eventually
from tests.walks.widgets import Widgets, widgets_by_webhook
from tests.webhook.running import Running, running

if TYPE_CHECKING:
    from tests.walks.support import Walk

SHOWN: dict[str, Any] = {"v1": {"hostPort": "h:80"}, "v2": {"host": "h", "port": "80"}}
ANY = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}


@pytest.fixture
def hook(walk: Walk, tmp_path: Path) -> Iterator[Running]:
    with running(tmp_path, kinds=("Widget",), group=walk.group) as found:
        yield found


@pytest.fixture
def widgets(walk: Walk, hook: Running) -> Iterator[Widgets]:
    ca = base64.b64encode(hook.ca.read_bytes()).decode()
    schemas = dict.fromkeys(SHOWN, ANY)
    with widgets_by_webhook(walk, hook.url, ca, schemas, storage="v1") as widgets:
        yield widgets


@pytest.mark.parametrize("written", SHOWN)
def test_what_is_written_in_one_version_is_read_in_both(
    widgets: Widgets, hook: Running, written: str
) -> None:
    names = [f"n{number:02}" for number in range(20)]
    for name in names:
        widgets.create(written, name, **SHOWN[written])
    for version, spec in SHOWN.items():
        found = widgets.list(version)["items"]
        assert [each["metadata"]["name"] for each in found] == names
        assert [each["spec"] for each in found] == [spec] * 20
        assert widgets.get(version, "n07")["spec"] == spec
    assert "polyver_webhook_objects_total{" in hook.get("/metrics")[1]


def test_clients_are_told_which_object_failed_and_where(widgets: Widgets) -> None:
    message = refusal(widgets, wrong=True)
    assert f"Widget {widgets.walk.namespace}/a (objects[0]) cannot be converted" in message
    assert message.endswith("hosts have no such port (spec.hostPort); choose 80")


def test_clients_are_not_told_what_user_code_raised(widgets: Widgets, hook: Running) -> None:
    assert refusal(widgets, raises=True).endswith("see the log of the webhook")
    eventually(lambda: hook.says("a secret of user code"))  # what it says is read beside the test


def refusal(widgets: Widgets, **spec: Any) -> str:
    with pytest.raises(client.ApiException) as refused:
        widgets.create("v2", "a", **spec)
    assert refused.value.status == 500
    return str(json.loads(str(refused.value.body))["message"])
