"""Patches: what is composed is a base with values of the composite resource put in.

It reads the part of function-patch-and-transform's input that this example uses, and says so where
there is more.
"""

import copy
import re
from collections.abc import Iterator
from typing import Any

from polyver.compositions import (
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


class NotUnderstood(Exception):
    """Something in the input that this function does not know."""


# What the input lacks, and what is not of the kind that it should be.
WRONG_INPUT = (NotUnderstood, KeyError, TypeError, AttributeError)


def answer(request: Request) -> Response:
    """What a composite resource is composed of, beside what steps before want."""
    meta = ResponseMeta(request.meta.tag, ttl=60.0)
    try:
        made = dict(composed(request))
    except WRONG_INPUT as error:
        told = (Result(Severity.FATAL, f"the input is not understood: {error}"),)
        return Response(meta, request.desired, told, request.context)
    state = State(request.desired.composite, {**request.desired.resources, **made})
    return Response(meta, state, context=request.context)


def composed(request: Request) -> Iterator[tuple[str, Resource]]:
    composite = request.observed.composite.resource
    for number, template in enumerate((request.input or {}).get("resources", [])):
        name, at = template["name"], f"resources[{number}]"
        obj = copy.deepcopy(template["base"])
        for index, patch in enumerate(template.get("patches", [])):
            apply(patch, composite, obj, f"{at}.patches[{index}]")
        ready = is_ready(template, at) and name in request.observed.resources
        yield name, Resource(obj, ready=Ready.TRUE if ready else Ready.FALSE)


def apply(patch: Object, composite: Object, obj: Object, at: str) -> None:
    """Put a value of the composite resource into an object, if there is one."""
    if patch.get("type", "FromCompositeFieldPath") != "FromCompositeFieldPath":
        raise NotUnderstood(f"{at}.type: {patch['type']} is not known")
    if patch.get("transforms"):
        raise NotUnderstood(f"{at}.transforms: not known before 0.8.2")
    value = found(composite, patch["fromFieldPath"])
    if value is not None:
        put(obj, patch.get("toFieldPath", patch["fromFieldPath"]), value)


def is_ready(template: Object, at: str) -> bool:
    for check in template.get("readinessChecks", [{"type": "MatchCondition"}]):
        if check["type"] != "None":
            raise NotUnderstood(f"{at}.readinessChecks: {check['type']} is not known")
    return True


def steps(path: str) -> list[str]:
    """A path such as metadata.labels[app], taken apart."""
    return re.findall(r"[^.\[\]]+", path)


def found(obj: Object, path: str) -> Any:
    value: Any = obj
    for step in steps(path):
        value = value.get(step) if isinstance(value, dict) else None
    return value


def put(obj: Object, path: str, value: Any) -> None:
    *before, last = steps(path)
    for step in before:
        obj = obj.setdefault(step, {})
    obj[last] = value
