"""The composition function of these tests: its behaviour comes from its version or from its input.

It is copied into a folder beside the server of examples/rollout, and run by polyver from there.
"""

from __future__ import annotations

import base64
import os
import time
from typing import Any

from polyver.compositions.messages import (
    Ready,
    Request,
    Resource,
    Response,
    ResponseMeta,
    Result,
    Severity,
    State,
)

Object = dict[str, Any]


def answer(request: Request) -> Response:
    """Compose two ConfigMaps, unless the mode says otherwise."""
    told = request.input or {}
    mode, stamp = told.get("mode") or os.environ["MODE"], os.environ["STAMP"]
    composite, meta = request.observed.composite.resource, ResponseMeta(request.meta.tag, ttl=60.0)
    number = composite["spec"]["number"]
    if mode == "fails" and number % 33 == 0:
        result = Result(Severity.FATAL, f"number {number} is not supported")
        return Response(meta, request.desired, (result,), request.context)
    if mode == "crashes" and number % 33 == 0:
        os._exit(3)
    if mode == "slow":
        time.sleep(3)
    ready = Ready.FALSE if mode == "unready" else Ready.TRUE
    data = {"function": stamp, "composition": str(told.get("stamp", "")), "number": str(number)}
    secret: Object = {}
    if mode == "leaks":
        secret = {**map_of(composite, "secret", {}), "kind": "Secret"}
        secret |= {"data": {"password": base64.b64encode(b"tiger-1234").decode()}}
        data["copy"] = "login with tiger-1234"
    made = {"main": Resource(map_of(composite, "main", data), ready=ready)}
    if secret:
        made["secret"] = Resource(secret, ready=Ready.TRUE)
    if mode != "deletes":
        made["extra"] = Resource(map_of(composite, "extra", {}), ready=Ready.TRUE)
    return Response(meta, State(request.desired.composite, made), context=request.context)


def map_of(composite: Object, name: str, data: Object) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": f"{composite['metadata']['name']}-{name}", "namespace": "default"},
        "data": data,
    }
