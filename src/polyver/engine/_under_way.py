"""What is kept in memory of calls that are under way, what they may take, and what they return."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

from polyver.capabilities.functions.actions import Objects
from polyver.capabilities.functions.registering import Function
from polyver.client import Client, Key
from polyver.engine._calls import CallFailed
from polyver.functions._context import FunctionContext
from polyver.objects import encode_json

__all__ = ["Alive", "Call", "CallLimits", "Known", "output_of"]

_DEEPEST = 90


@dataclass(frozen=True, slots=True)
class CallLimits:
    """What calls of functions may take."""

    at_once: int = 32
    seconds: float = 3600.0
    """How long one call may take."""
    output: int = 256 * 1024
    """How many bytes the output of a phase may have, as JSON."""
    status: int = 1024 * 1024
    """How many bytes the status may have, as JSON: servers do not take much more."""
    grace: float = 2.0
    """How long calls may go on when they are stopped, or the controller ends."""


@dataclass(slots=True)
class Alive:
    """A call that is under way here."""

    place: int
    task: asyncio.Task[None]
    reason: str = ""
    """Why it was stopped."""

    def stop(self, reason: str) -> None:
        """Stop it, once: a second time would interrupt its end."""
        if not self.reason:
            self.reason = reason
            self.task.cancel()


@dataclass(slots=True)
class Known:
    """What is kept of a running ActionSet, by the number of each action."""

    key: Key
    objects: dict[int, Objects] = field(default_factory=dict)
    alive: dict[int, Alive] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Call:
    """All that one call needs."""

    number: int
    place: int
    function: Function
    arguments: Mapping[str, object]
    context: FunctionContext[Client]


def output_of(result: object, function: Function, *, largest: int) -> dict[str, Any]:
    """What a function returned, as it can be kept."""
    if result is None:
        return {}
    if not isinstance(result, Mapping) or not all(isinstance(key, str) for key in result):
        kind = type(result).__name__
        raise CallFailed(f"{function.label} returned a {kind}, not a mapping of texts to data")
    try:
        text = encode_json(dict(result))
    except (TypeError, ValueError, RecursionError, msgspec.MsgspecError) as error:
        raise CallFailed(f"{function.label} returned what is no plain data: {error}") from None
    if len(text) > largest:
        fact = f"{function.label} returned {len(text)} bytes"
        raise CallFailed(f"{fact}, more than {largest}; keep it elsewhere")
    output: dict[str, Any] = msgspec.json.decode(text)
    if _nests_deeply(output):
        raise CallFailed(f"{function.label} returned what nests more than {_DEEPEST} levels deep")
    return output


def _nests_deeply(value: object) -> bool:
    """Whether something is too deep for templates, or for those who copy it."""
    level = [value]
    for _ in range(_DEEPEST):
        inside = [list(each.values()) for each in level if isinstance(each, dict)]
        inside += [each for each in level if isinstance(each, list)]
        level = [each for values in inside for each in values]
    return bool(level)
