"""What a step asks of its function, read from whatever somebody stored.

Who uses a revision and which revision a step gets is asked with the same selector.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from polyver.capability import Refusal
from polyver.core import UNSPECIFIED, Exact, Labels, Selector
from polyver.core.plain import ReadOnlyObject

__all__ = ["REVISION_FIELDS", "labels_in", "mapping", "named", "step_selector", "switched_off"]

REVISION_FIELDS: Final = ("functionRevisionRef", "functionRevisionSelector")
"""The fields of a step that choose a revision."""


def step_selector(step: object) -> Selector:
    """What a step asks for; a name wins over labels.

    >>> print(step_selector({"functionRevisionSelector": {"matchLabels": {"channel": "alpha"}}}))
    channel=alpha
    """
    name = named(mapping(step).get("functionRevisionRef"))
    if name:
        return Exact(name)
    labels = labels_in(mapping(step).get("functionRevisionSelector"))
    return Labels.of(labels) if labels else UNSPECIFIED


def switched_off(step: object, at: str) -> list[Refusal]:
    """What a step asks for that there is not without the feature FunctionRevisions."""
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
    """The labels that a selector asks for."""
    labels = mapping(mapping(selector).get("matchLabels"))
    return {str(key): str(text) for key, text in labels.items()}


def named(reference: object) -> str:
    """The name in a reference; empty if there is none."""
    name = mapping(reference).get("name")
    return name if isinstance(name, str) else ""


def mapping(value: object) -> ReadOnlyObject:
    """A mapping; empty if it is something else."""
    return value if isinstance(value, Mapping) else {}
