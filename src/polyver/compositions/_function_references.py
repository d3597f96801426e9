"""Reads the function reference of a pipeline step from stored data, even if the data is invalid.

An invalid value is treated as missing. Other modules use the selectors to choose the revision that
a step calls, and to find the steps that use a revision.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from polyver.capability import Refusal
from polyver.core import UNSPECIFIED, Exact, Labels, Selector
from polyver.core.plain import ReadOnlyObject

__all__ = ["REVISION_FIELDS", "labels_in", "mapping", "named", "step_selector", "switched_off"]

REVISION_FIELDS: Final = ("functionRevisionRef", "functionRevisionSelector")
"""Fields of a step that choose a revision of its function."""


def step_selector(step: object) -> Selector:
    """Return the selector of a step for revisions. A revision name has precedence over labels.

    >>> print(step_selector({"functionRevisionSelector": {"matchLabels": {"channel": "alpha"}}}))
    channel=alpha
    """
    name = named(mapping(step).get("functionRevisionRef"))
    if name:
        return Exact(name)
    labels = labels_in(mapping(step).get("functionRevisionSelector"))
    return Labels.of(labels) if labels else UNSPECIFIED


def switched_off(step: object, at: str) -> list[Refusal]:
    """Return a refusal for each field of a step that needs the feature FunctionRevisions.

    Call it only if this feature is disabled.
    """
    return [
        Refusal(
            "FeatureOff",
            f"{field} needs the feature FunctionRevisions, which is disabled",
            at=f"{at}.{field}",
            hint="omit it, or enable the feature",
        )
        for field in REVISION_FIELDS
        if mapping(step).get(field) is not None
    ]


def labels_in(selector: object) -> dict[str, str]:
    """Return the labels in the `matchLabels` of a selector; empty if there are none."""
    labels = mapping(mapping(selector).get("matchLabels"))
    return {str(key): str(text) for key, text in labels.items()}


def named(reference: object) -> str:
    """Return the name in a reference. Return "" if the reference has no name."""
    name = mapping(reference).get("name")
    return name if isinstance(name, str) else ""


def mapping(value: object) -> ReadOnlyObject:
    """Return the value if it is a mapping; otherwise return an empty mapping."""
    return value if isinstance(value, Mapping) else {}
