"""Policies by which steps choose function revisions, and composites composition revisions."""

from __future__ import annotations

from dataclasses import replace

from polyver.core import (
    Exact,
    InvalidVersion,
    Labels,
    Lineage,
    Policy,
    Selector,
    Serial,
    Stage,
    Unspecified,
)
from polyver.kube.objects import InvalidSelector, parse_label_selector

REVISIONS = Policy(
    "revisions",
    usable=frozenset({Stage.ACTIVE}),
    best="highest-numbered active revision",
    noun="revision",
)
"""Policy of pipeline steps: `functionRevisionRef` and `functionRevisionSelector`."""

COMPOSITIONS = Policy(
    "compositions",
    usable=frozenset({Stage.PUBLISHED}),
    best="newest revision",
    noun="revision",
)
"""Policy of composite resources with `compositionUpdatePolicy: Automatic`."""

COMPOSITIONS_MANUAL = replace(
    COMPOSITIONS,
    name="compositions-manual",
    keeps=frozenset({Unspecified, Labels}),
    moves_when_unmatched=True,
)
"""Policy with `Manual`: the revision in use is kept until the selector no longer matches it."""


def selector(text: str, _: Lineage) -> Selector:
    """Parse a revision's name, its number, or labels such as `channel=alpha,tier=gold`."""
    if not text:
        raise InvalidVersion(text, "a revision: expected its name, its number, or key=value,…")
    if "=" not in text:
        return Exact(Serial.parse(text) if text.isdecimal() else text)
    try:
        wanted = parse_label_selector(text)
    except InvalidSelector as error:
        raise InvalidVersion(text, f"a label selector: {error}") from None
    labels = {one.key: value for one in wanted for value in one.values}
    if len(labels) < len(wanted) or any(one.operator not in ("=", "==") for one in wanted):
        raise InvalidVersion(text, "a label selector: expected key=value,… with each key once")
    return Labels.of(labels)
