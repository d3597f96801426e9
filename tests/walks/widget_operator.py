"""An operator for Widgets, as someone would write it with kopf; test_kopf.py runs it."""

# mypy: disable-error-code="misc,no-untyped-call"

from __future__ import annotations

import os
from typing import Any

import kopf

GROUP = os.environ.get("WALK_GROUP", "walks.dev")
WIDGETS = (GROUP, "v1", "widgets")


@kopf.on.startup()
def configure(settings: kopf.OperatorSettings, **_: Any) -> None:
    settings.posting.level = 20
    settings.persistence.finalizer = f"{GROUP}/hold"
    settings.watching.server_timeout = 3  # so that watches are resumed while it runs
    settings.networking.error_backoffs = [0.05, 0.1]


@kopf.on.create(*WIDGETS)
def created(spec: kopf.Spec, patch: kopf.Patch, body: kopf.Body, **_: Any) -> dict[str, Any]:
    patch.status["phase"] = "Created"
    patch.metadata.labels["size"] = str(spec["size"])
    kopf.info(body, reason="Created", message="a widget has come")
    return {"size": spec["size"]}


@kopf.on.update(*WIDGETS, field="spec.size")
def resized(old: Any, new: Any, patch: kopf.Patch, **_: Any) -> None:
    patch.status["phase"] = f"Resized from {old} to {new}"


@kopf.on.delete(*WIDGETS)
def deleted(annotations: kopf.Annotations, retry: int, **_: Any) -> None:
    if "may-go" not in annotations:
        raise kopf.TemporaryError("not yet", delay=0.2)


@kopf.timer(*WIDGETS, interval=0.3, initial_delay=0.1)
def counted(status: kopf.Status, patch: kopf.Patch, **_: Any) -> None:
    patch.status["seen"] = status.get("seen", 0) + 1


@kopf.on.event("", "v1", "configmaps", labels={"watched": "yes"})
def noticed(event: kopf.RawEvent, patch: kopf.Patch, body: kopf.Body, **_: Any) -> None:
    if event["type"] != "DELETED" and "noticed" not in body.metadata.annotations:
        patch.metadata.annotations["noticed"] = "yes"
