"""Texts that describe a rollout, for the command line and the web page.

Each function reads a Rollout object, or a part of one, as the API server returns it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from polyver.core.plain import ReadOnlyObject
from polyver.core.rollout import RolloutState
from polyver.kube.objects.conditions import find_condition

__all__ = [
    "StepDescription",
    "StepState",
    "SuggestedCommand",
    "addition_text",
    "check_rules",
    "check_text",
    "state_text",
    "step_number",
    "steps_of",
    "steps_text",
    "suggested_commands",
    "target_text",
    "window_text",
]

StepState = Literal["done", "in progress", "paused", "failed", "taken back", "not started"]
_DEFAULT_CHECKS: tuple[ReadOnlyObject, ...] = ({"ready": {}},)
_WHERE_IT_STOPPED: Mapping[str, StepState] = {
    RolloutState.PAUSED.value: "paused",
    RolloutState.COMPLETED.value: "done",
    RolloutState.ROLLED_BACK.value: "failed",
    RolloutState.ABORTED.value: "taken back",
}
"""The displayed state of the current step, by the state of the rollout. For all other states of a
rollout, it is `in progress`.
"""


@dataclass(frozen=True, slots=True)
class StepDescription:
    """A step of a rollout for display: the followers that it adds, its pause, and its progress."""

    number: int
    adds: str
    pause: str
    """The pause after the step, as text; empty if there is no pause."""
    state: StepState


@dataclass(frozen=True, slots=True)
class SuggestedCommand:
    """A command that a user can run in the current state of a rollout, and its effect."""

    command: str
    effect: str


def state_text(status: ReadOnlyObject) -> str:
    """Return the state of a rollout; without one, `Invalid` if it cannot begin, or `Waiting`.

    >>> state_text({"state": "Paused"}), state_text({})
    ('Paused', 'Waiting')
    >>> state_text({"conditions": [{"type": "Completed", "status": "False", "reason": "Invalid"}]})
    'Invalid'
    """
    if status.get("state"):
        return str(status["state"])
    found = find_condition({"status": status}, "Completed") or {}
    return "Invalid" if found.get("reason") == "Invalid" else "Waiting"


def step_number(status: ReadOnlyObject) -> int:
    """Return the number of the step in progress; 0 before the first step.

    >>> step_number({"step": "2/4"}), step_number({})
    (2, 0)
    """
    return int((status.get("step") or "0/0").partition("/")[0])


def steps_of(status: ReadOnlyObject) -> Iterator[StepDescription]:
    """Yield the steps of a rollout, as they were at its start."""
    current, state = step_number(status), status.get("state") or ""
    is_closed = bool(state) and RolloutState(state).is_closed
    for number, each in enumerate((status.get("policy") or {}).get("steps") or (), start=1):
        found: StepState = "not started"
        if number < current:
            found = "taken back" if is_closed else "done"
        elif number == current:
            found = _WHERE_IT_STOPPED.get(state, "in progress")
        yield StepDescription(number, addition_text(each), _pause(each), found)


def addition_text(step: ReadOnlyObject) -> str:
    """Return a text about the followers that a step adds to the cohort.

    >>> [addition_text(each) for each in ({"share": "5%"}, {"count": 3}, {"labels": {"a": "b"}})]
    ['5%', '3 followers', 'label a=b']
    """
    if step.get("share"):
        return str(step["share"])
    if step.get("count"):
        return f"{step['count']} follower{'' if step['count'] == 1 else 's'}"
    labels = step.get("labels") or {}
    written = ", ".join(f"{name}={value}" for name, value in labels.items())
    return f"label{'' if len(labels) == 1 else 's'} {written}"


def _pause(step: ReadOnlyObject) -> str:
    pause = step.get("pause") or {}
    return str(pause.get("for") or "") or ("until it is approved" if pause.get("until") else "")


def steps_text(steps: Sequence[ReadOnlyObject]) -> str:
    """Return a text about the followers that the steps of a policy add.

    >>> steps_text([{"share": "5%", "pause": {"for": "10m"}}, {"share": "100%"}])
    '5% → 100%'
    """
    return " → ".join(map(addition_text, steps))


def target_text(target: ReadOnlyObject) -> str:
    """Return a text about the lineages that a target of a policy names.

    >>> target_text({"kind": "TraitDefinition", "selector": {"matchLabels": {"a": "b"}}})
    'TraitDefinition with a=b'
    """
    if target.get("name"):
        return f"{target['kind']} {target['name']}"
    labels = (target.get("selector") or {}).get("matchLabels") or {}
    written = ", ".join(f"{name}={value}" for name, value in labels.items())
    return f"{target['kind']} with {written}" if written else f"every {target['kind']}"


def window_text(window: ReadOnlyObject) -> str:
    """Return a text about one window of a policy.

    >>> window_text({"days": ["Mon", "Tue"], "from": "09:00", "to": "16:00"})
    'Mon, Tue from 09:00 to 16:00 UTC'
    """
    days = ", ".join(window.get("days") or ()) or "every day"
    return f"{days} from {window['from']} to {window['to']} {window.get('timezone') or 'UTC'}"


# Checks.


def check_rules(rules: ReadOnlyObject) -> Sequence[ReadOnlyObject]:
    """Return the checks in the rules of a rollout; the status has their results in this order."""
    return rules.get("checks") or _DEFAULT_CHECKS


def check_text(check: ReadOnlyObject) -> str:
    """Return a text about the condition for passing a check.

    >>> check_text({"ready": {"within": "5m", "failing": 0}})
    'healthy within 5m, at most 0 failing'
    """
    name = next((name for name in _CHECKS if check.get(name) is not None), "")
    return _CHECKS[name](check[name]) if name else ""


def _ready(rule: Mapping[str, Any]) -> str:
    within, failing = rule.get("within") or "10m", rule.get("failing") or 0
    return f"healthy within {within}, at most {failing} failing"


def _errors(rule: Mapping[str, Any]) -> str:
    return f"at most {rule['max']} of the calls fail{_minimum(rule)}"


def _latency(rule: Mapping[str, Any]) -> str:
    return f"99th percentile at most {rule['p99']} that of other releases{_minimum(rule)}"


def _minimum(rule: Mapping[str, Any]) -> str:
    return f", of at least {rule['minimum']}" if rule.get("minimum") else ""


def _prometheus(rule: Mapping[str, Any]) -> str:
    limits = [f"{name} {rule[name]:g}" for name in ("above", "below") if rule.get(name) is not None]
    return f"{rule['query']} is {' and '.join(limits)}"


def _http(rule: Mapping[str, Any]) -> str:
    return f"{rule['url']} answers {rule.get('status') or 200}"


_CHECKS = {
    "ready": _ready,
    "errors": _errors,
    "latency": _latency,
    "prometheus": _prometheus,
    "http": _http,
}


# Commands.


def suggested_commands(rollout: ReadOnlyObject) -> Iterator[SuggestedCommand]:
    """Yield the commands that have an effect in the rollout's state, the most useful one first."""
    metadata, spec = rollout["metadata"], rollout["spec"]
    status: ReadOnlyObject = rollout.get("status") or {}
    state, name = status.get("state") or "", f"{metadata['name']} -n {metadata['namespace']}"
    if state and RolloutState(state).is_final:
        yield from _again(spec, state, metadata["namespace"])
        return
    if effect := _promotion(spec, status):
        yield SuggestedCommand(f"polyver rollout promote {name}", effect)
    if spec.get("paused"):
        yield SuggestedCommand(f"polyver rollout resume {name}", "start further steps again")
    else:
        yield SuggestedCommand(f"polyver rollout pause {name}", "start no further step")
    taken = "take the release back" if step_number(status) else "end the rollout"
    yield SuggestedCommand(f"polyver rollout abort {name}", taken)


def _promotion(spec: ReadOnlyObject, status: ReadOnlyObject) -> str:
    """Return the effect that `polyver rollout promote` would have now; empty if it has none."""
    state, number = status.get("state"), step_number(status)
    if state == RolloutState.HELD.value:
        return "start the rollout in spite of the preflight"
    if state != RolloutState.PAUSED.value or not number:
        return ""
    if (status.get("memory") or {}).get("failure"):
        return "continue in spite of the failed check"
    approved = spec.get("approvedStep")
    step = ((status.get("policy") or {}).get("steps") or ())[number - 1]
    waits = bool(step.get("pause")) and (approved is None or approved < number)
    return f"end the pause of step {number}" if waits else ""


def _again(spec: ReadOnlyObject, state: str, namespace: str) -> Iterator[SuggestedCommand]:
    policy, target = (spec.get("policyRef") or {}).get("name"), spec["target"]
    if policy and RolloutState(state).is_closed:
        what = f"{target['kind']}/{target['name']} --to {spec['to']} --policy {policy}"
        command = f"polyver rollout start {what} -n {namespace}"
        yield SuggestedCommand(command, "start another rollout of the release")
