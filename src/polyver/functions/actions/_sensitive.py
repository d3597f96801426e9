"""Sensitive outputs, which must not be in a status, and the masks that replace them.

An output is sensitive if its function or its phase declares it, or if it contains a value of a
Secret.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from polyver.functions.actions._run import ActionRun, PhaseRun
from polyver.functions.registering import Function
from polyver.kube.objects.masking import MASK, Masks, is_masked

__all__ = ["masked_artifacts", "split_output", "with_outputs"]

_ALL: Final = "*"


def split_output(
    action: ActionRun, place: int, function: Function, output: Mapping[str, Any], masks: Masks
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the part of an output for the status, and the part for a Secret."""
    names = {*function.sensitive, *action.sensitive(place)}
    hidden = {
        key: value
        for key, value in output.items()
        if key in names or _ALL in names or masks.is_in({key: value})
    }
    shown = {masks.mask(key): MASK if key in hidden else each for key, each in output.items()}
    return shown, hidden


def with_outputs(action: ActionRun, kept: Mapping[int, Mapping[str, Any]]) -> ActionRun:
    """Return an action with its sensitive outputs, `kept` by phase index, for its templates."""
    for place, hidden in kept.items():
        call = action.calls[place]
        action = action.with_call(place, _whole(call, hidden))
    return action


def _whole(call: PhaseRun, hidden: Mapping[str, Any]) -> PhaseRun:
    return replace(call, output={**(call.output or {}), **hidden})


def masked_artifacts(spec: Mapping[str, Any]) -> list[str]:
    """Return the names of an action's input artifacts that hold a mask instead of a value.

    Such artifacts were copied from the status of another ActionSet, and cannot be restored.
    """
    artifacts: Mapping[str, Any] = spec.get("artifacts") or {}
    return [name for name, each in artifacts.items() if is_masked(each)]
