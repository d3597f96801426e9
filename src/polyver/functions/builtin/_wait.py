"""`Wait` and `WaitV2`: wait until objects satisfy conditions, as in Kanister's blueprints."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Annotated, Any

from polyver.client import GroupVersionResource
from polyver.core import PolyverError
from polyver.core.plain import Object
from polyver.functions.builtin._resources import ObjectReference, find_kind
from polyver.functions.registering import Alias, Description, Duration, Unrendered, register
from polyver.functions.runtime.context import AsyncContext
from polyver.kube.objects.status import ApiError
from polyver.languages.jsonpath import parse_path

__all__: list[str] = []

_PATH = re.compile(r"(?<!\{)\{\s*\$([^{}]*)\}(?!\})")
_FIRST, _MOST = 0.1, 2.0


@dataclass(frozen=True, slots=True)
class WaitCondition:
    """A template, and the object that it reads. It is true if the template renders to `true`."""

    condition: str
    reference: Annotated[dict[str, Any], Alias("objectReference")]


@dataclass(frozen=True, slots=True)
class WaitConditions:
    """The conditions to wait for.

    All conditions in `all_of` must be true. If `any_of` is not empty, at least one condition in
    `any_of` must be true as well.
    """

    any_of: Annotated[list[WaitCondition], Alias("anyOf")] = field(default_factory=list)
    all_of: Annotated[list[WaitCondition], Alias("allOf")] = field(default_factory=list)


_WORDS = Description(
    "anyOf and allOf: a template that renders to true (condition), and the object that it reads"
    " (objectReference)."
)
Written = Annotated[WaitConditions, Unrendered(sees_params=True), _WORDS]
OfObject = Annotated[WaitConditions, Unrendered(sees_params=True, but=("condition",)), _WORDS]
Timeout = Annotated[Duration, Description("Timeout.")]
Holds = Callable[[str, Object], bool]
_MINUTES = Duration("10m")


class _WaitTimeout(PolyverError):
    """The conditions were not true before the timeout."""


@register("Wait", idempotent=True, outputs=[])
async def wait(ctx: AsyncContext, conditions: Written, timeout: Timeout = _MINUTES) -> None:
    """Wait until objects satisfy conditions.

    A condition is a template, such as `{{ if eq "{ $.status.phase }" "Active" }}true{{ end }}`.
    First, each JSONPath expression in single braces is replaced by its value in the object. Then
    the template is rendered; the condition is true if the result is `true`. While the object does
    not exist, the condition is false.
    """

    from polyver.languages.gotemplate import compile_template  # the import takes long

    def holds(condition: str, obj: Object) -> bool:
        text = _PATH.sub(lambda found: _values(found[1], obj), condition)
        return compile_template(text, name="condition").render(ctx.params).strip() == "true"

    await _until(ctx, conditions, timeout, holds)


@register("WaitV2", idempotent=True, outputs=[])
async def wait_v2(ctx: AsyncContext, conditions: OfObject, timeout: Timeout = _MINUTES) -> None:
    """Wait until objects satisfy conditions. The template of a condition reads the object.

    An example of a condition is `{{ if eq .status.phase "Active" }}true{{ end }}`. While the
    object, or a field that the template reads, does not exist, the condition is false.
    """

    from polyver.languages.gotemplate import compile_template

    def holds(condition: str, obj: Object) -> bool:
        return compile_template(condition, name="condition").render(obj).strip() == "true"

    await _until(ctx, conditions, timeout, holds)


def _values(path: str, obj: Object) -> str:
    """Return the values at a JSONPath as text, escaped for a quoted string in a template."""
    found = parse_path(path if path.startswith((".", "[")) else f".{path}").find(obj)
    shown = " ".join(each if isinstance(each, str) else json.dumps(each) for each in found)
    return json.dumps(shown)[1:-1].replace("{", "\\u007b")


async def _until(
    ctx: AsyncContext, conditions: WaitConditions, timeout: Duration, holds: Holds
) -> None:
    if not conditions.any_of and not conditions.all_of:
        raise PolyverError("no condition is given", hint="write anyOf or allOf")
    problems: list[str] = []
    try:
        async with asyncio.timeout(min(timeout, ctx.remaining)):
            pause = _FIRST
            while True:
                held, found = await _hold(ctx, conditions, holds)
                if held:
                    return
                # keep the problems for the error message, because the timeout may interrupt the
                # next check
                problems = found
                await asyncio.sleep(pause)
                pause = min(pause * 1.5, _MOST)
    except TimeoutError:
        why = f": {'; '.join(problems)}" if problems else ""
        raise _WaitTimeout(f"the conditions did not hold within {timeout}{why}") from None


async def _hold(
    ctx: AsyncContext, conditions: WaitConditions, holds: Holds
) -> tuple[bool, list[str]]:
    """Evaluate the conditions. Return whether they are true, and the problems that occurred."""
    problems: list[str] = []
    every = [await _holds(ctx, each, holds, problems) for each in conditions.all_of]
    some = [await _holds(ctx, each, holds, problems) for each in conditions.any_of]
    return all(every) and (any(some) or not some), problems


async def _holds(
    ctx: AsyncContext, condition: WaitCondition, holds: Holds, problems: list[str]
) -> bool:
    from polyver.languages.gotemplate import RenderFailed, render_value

    rendered = render_value(condition.reference, ctx.params, name="objectReference")
    assert isinstance(rendered, dict)
    reference = _reference(rendered)
    kind = find_kind(await ctx.client.discover(), reference)
    inside = (reference.namespace or ctx.namespace) if kind.namespaced else ""
    about = f"{kind.plural} {inside}/{reference.name}" if inside else reference.name
    try:
        obj = await ctx.client.get(GroupVersionResource.of(kind), reference.name, inside)
        if holds(condition.condition, obj):
            return True
        problems.append(f"the condition on {about} does not render to true or false")
    except RenderFailed as error:
        problems.append(f"the condition on {about} cannot be evaluated: {error.fact}")
    except ApiError as error:
        if error.code != 404:
            raise
        problems.append(f"there is no {about}")
    return False


def _reference(written: dict[str, Any]) -> ObjectReference:
    texts = {name: str(written.get(name) or "") for name in ("name", "resource", "group")}
    if not texts["name"] or not texts["resource"]:
        raise PolyverError("an objectReference is incomplete", hint="write resource and name")
    version, namespace = (str(written.get(name) or "") for name in ("apiVersion", "namespace"))
    return ObjectReference(**texts, version=version, namespace=namespace)
