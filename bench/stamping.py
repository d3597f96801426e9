"""The function that bench/composites.py has run: each of its steps leaves its stamp on one object.

It is copied into a folder beside the server of examples/rollout, and run by polyver from there.
"""

from __future__ import annotations

import os
from typing import Any

from polyver.compositions.messages import Ready, Request, Resource, Response, ResponseMeta, State

Object = dict[str, Any]
NAME = "stamped"


def answer(request: Request) -> Response:
    """What the steps before want, with the stamp of this one; ready once all stamps are there."""
    composite, others = request.observed.composite.resource, request.desired.resources
    wanted = others[NAME].resource if NAME in others else base(composite)
    data = {**wanted["data"], os.environ["STEP"]: os.environ["STAMP"]}
    there = request.observed.resources.get(NAME, Resource()).resource.get("data", {})
    ready = Ready.TRUE if data.items() <= there.items() else Ready.FALSE
    made = {**others, NAME: Resource({**wanted, "data": data}, ready=ready)}
    return Response(
        ResponseMeta(request.meta.tag, ttl=60.0),
        State(request.desired.composite, made),
        context=request.context,
    )


def base(composite: Object) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": composite["metadata"]["name"], "namespace": "default"},
        "data": {"size": str(composite["spec"]["size"])},
    }
