"""Parses and validates the rules of a rollout, in the spec of a RolloutPolicy or of a Rollout.

The rules are the steps, checks, preflight limits, windows and notifications. An error names the
path of the field.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar
from urllib.parse import urlsplit

from polyver.core import PolyverError
from polyver.core.rollout import (
    DEFAULT_CHECK,
    OnFailure,
    PreflightLimits,
    ReadyCheck,
    RolloutStep,
    StepPause,
    check_steps,
)
from polyver.core.rollout_checks import ErrorsCheck, HttpCheck, LatencyCheck, PrometheusCheck
from polyver.languages.values.durations import nanoseconds
from polyver.rollouts.windows import Window, read_window

__all__ = [
    "ALL",
    "RULES",
    "InvalidRolloutRules",
    "Notification",
    "RolloutCheck",
    "RolloutRules",
    "call_problems",
    "read_rules",
]

T = TypeVar("T")
_Data = Mapping[str, Any]
RULES: Final = ("preflight", "steps", "checks", "onFailure", "windows", "notify")
"""The fields that a policy and a rollout without a policy have in common. polyver copies them to
the status of the rollout when it starts.
"""
ALL: Final = "all"
_SAMPLE: Final = 1000


class InvalidRolloutRules(PolyverError):
    """A field of a policy or a rollout is invalid."""


RolloutCheck = ReadyCheck | ErrorsCheck | LatencyCheck | PrometheusCheck | HttpCheck


@dataclass(frozen=True, slots=True)
class Notification:
    """A URL to which polyver sends some events of the rollout."""

    url: str
    on: frozenset[str] = frozenset()
    """The names of the events to send; empty for all events."""


@dataclass(frozen=True, slots=True)
class RolloutRules:
    """The steps, checks, preflight limits, windows and notifications of a rollout."""

    steps: tuple[RolloutStep, ...]
    checks: tuple[RolloutCheck, ...] = (DEFAULT_CHECK,)
    limits: PreflightLimits = field(default_factory=PreflightLimits)
    sample: int | None = _SAMPLE
    """The number of followers with which the preflight tries the release; None for all followers.
    """
    on_failure: OnFailure = "Rollback"
    windows: tuple[Window, ...] = ()
    notify: tuple[Notification, ...] = ()


def read_rules(spec: _Data, *, at: str = "spec") -> tuple[RolloutRules | None, list[PolyverError]]:
    """Parse the rules in a spec. Return them, and all errors.

    If there are errors, the first value is None. `at` is the path of the spec for errors.
    """
    problems: list[PolyverError] = []

    def each(name: str, read: Callable[[_Data, str], T]) -> tuple[T, ...]:
        found = []
        for number, item in enumerate(spec.get(name) or ()):
            try:
                found.append(read(item, f"{at}.{name}[{number}]"))
            except PolyverError as error:
                problems.append(error)
        return tuple(found)

    steps = each("steps", _step)
    if len(steps) == len(spec.get("steps") or ()):
        problems += check_steps(steps, at=f"{at}.steps")
    checks, windows = each("checks", _check), each("windows", read_window)
    notify = each("notify", _notification)
    limits: _Data = spec.get("preflight") or {}
    sample: int | None = _SAMPLE
    try:
        sample = _sample(limits.get("sample"), f"{at}.preflight.sample")
    except PolyverError as error:
        problems.append(error)
    if problems:
        return None, problems
    return RolloutRules(
        steps,
        checks or (DEFAULT_CHECK,),
        PreflightLimits(limits.get("failures") or 0, limits.get("deletions") or 0),
        sample,
        spec.get("onFailure") or "Rollback",
        windows,
        notify,
    ), []


def call_problems(rules: RolloutRules, kind: str, *, at: str = "spec") -> list[PolyverError]:
    """Return an error for each check of the type errors or latency.

    The caller uses it for a kind `kind` whose releases are not called.
    """
    counted = {ErrorsCheck: "errors", LatencyCheck: "latency"}
    return [
        InvalidRolloutRules(
            f"a release of a {kind} is not called, so it has no {name} to check",
            at=f"{at}.checks[{number}].{name}",
        )
        for number, check in enumerate(rules.checks)
        if (name := counted.get(type(check))) is not None
    ]


def _step(step: _Data, at: str) -> RolloutStep:
    share = step.get("share")
    return RolloutStep(
        share=None if share is None else _share(share, f"{at}.share"),
        count=step.get("count"),
        labels=step.get("labels") or {},
        pause=None if step.get("pause") is None else _pause(step["pause"], f"{at}.pause"),
    )


def _pause(pause: _Data, at: str) -> StepPause:
    named = [name for name in ("for", "until") if pause.get(name)]
    if len(named) != 1:
        hint = "write {for: 10m} or {until: Approved}"
        raise InvalidRolloutRules("a pause has a duration or waits for approval", at=at, hint=hint)
    if pause.get("until"):
        return StepPause(until_approved=True)
    return StepPause(seconds=_seconds(pause["for"], f"{at}.for"))


def _check(check: _Data, at: str) -> RolloutCheck:
    named = [name for name in _CHECKS if check.get(name) is not None]
    if len(named) != 1:
        hint = f"write one of {', '.join(_CHECKS)}"
        raise InvalidRolloutRules("an entry has one check", at=at, hint=hint)
    [name] = named
    return _CHECKS[name](check[name], f"{at}.{name}")


def _ready(check: _Data, at: str) -> ReadyCheck:
    within = check.get("within")
    seconds = DEFAULT_CHECK.within if within is None else _seconds(within, f"{at}.within")
    return ReadyCheck(seconds, check.get("failing") or 0, check.get("minimum") or 1)


def _errors(check: _Data, at: str) -> ErrorsCheck:
    return ErrorsCheck(_share(check["max"], f"{at}.max"), check.get("minimum") or 1)


def _latency(check: _Data, at: str) -> LatencyCheck:
    found = re.fullmatch(r"(\d{1,6}(?:\.\d{1,6})?)x", check["p99"])
    if found is None or not float(found[1]):
        fact = f"{check['p99']!r} is not a factor"
        raise InvalidRolloutRules(fact, at=f"{at}.p99", hint="write a factor such as 2x or 1.5x")
    return LatencyCheck(float(found[1]), check.get("minimum") or 1)


def _prometheus(check: _Data, at: str) -> PrometheusCheck:
    limits = {name: check[name] for name in ("below", "above") if check.get(name) is not None}
    if not limits:
        raise InvalidRolloutRules(
            "the query has no limit", at=at, hint="write below, above or both"
        )
    if len(limits) == 2 and limits["above"] >= limits["below"]:
        fact = f"no value is above {limits['above']:g} and below {limits['below']:g}"
        raise InvalidRolloutRules(fact, at=at)
    if not check["query"].strip():
        raise InvalidRolloutRules("the query is empty", at=f"{at}.query")
    address = _url(check["address"], f"{at}.address")
    if re.search("[?#]", address):
        fact = f"the address of a Prometheus has no query: {address!r}"
        raise InvalidRolloutRules(fact, at=f"{at}.address", hint="write it in the field query")
    return PrometheusCheck(address, check["query"], **limits)


def _http(check: _Data, at: str) -> HttpCheck:
    return HttpCheck(_url(check["url"], f"{at}.url"), check.get("status") or 200)


_CHECKS: Mapping[str, Callable[[_Data, str], RolloutCheck]] = {
    "ready": _ready,
    "errors": _errors,
    "latency": _latency,
    "prometheus": _prometheus,
    "http": _http,
}


def _notification(entry: _Data, at: str) -> Notification:
    return Notification(_url(entry["url"], f"{at}.url"), frozenset(entry.get("on") or ()))


def _sample(value: Any, at: str) -> int | None:
    if value is None:
        return _SAMPLE
    if value == ALL:
        return None
    if type(value) is not int or value < 0:
        hint = f"write a number of followers, or {ALL}"
        raise InvalidRolloutRules(f"{value!r} is not a sample", at=at, hint=hint)
    return value


def _share(text: str, at: str) -> float:
    found = re.fullmatch(r"(\d{1,3}(?:\.\d{1,9})?) ?%", text)
    if found is None or float(found[1]) > 100:
        raise InvalidRolloutRules(
            f"{text!r} is not a share", at=at, hint="write a share such as 5%"
        )
    return float(found[1]) / 100


def _seconds(text: str, at: str) -> float:
    found = nanoseconds(text)
    if found is None or found <= 0:
        hint = "write a duration such as 90s, 10m or 2h"
        raise InvalidRolloutRules(f"{text!r} is not a duration", at=at, hint=hint)
    return found / 1e9


def _url(text: str, at: str) -> str:
    try:
        parts = urlsplit(text)
        valid = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        valid = False
    if not valid:
        hint = "write a URL such as http://prometheus:9090"
        raise InvalidRolloutRules(f"{text!r} is not a URL", at=at, hint=hint)
    return text
