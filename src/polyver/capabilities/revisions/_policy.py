"""How a pipeline step chooses a function's revision, and a composite resource a composition's."""

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

REVISIONS = Policy(
    "revisions",
    usable=frozenset({Stage.ACTIVE}),
    best="highest-numbered active revision",
    noun="revision",
)
"""For the steps of a pipeline, by `functionRevisionRef` and `functionRevisionSelector`."""

COMPOSITIONS = Policy(
    "compositions",
    usable=frozenset({Stage.PUBLISHED}),
    best="newest revision",
    noun="revision",
)
"""For composite resources with `compositionUpdatePolicy: Automatic`."""

COMPOSITIONS_MANUAL = replace(
    COMPOSITIONS,
    name="compositions-manual",
    keeps=frozenset({Unspecified, Labels}),
    moves_from_lost_pin=True,
)
"""With `Manual`: the revision in use is kept until the selector no longer matches it."""


def selector(text: str, _: Lineage) -> Selector:
    """Read a revision's name, its number, or labels such as `channel=alpha,tier=gold`."""
    if "=" in text:
        pairs = [pair.partition("=") for pair in text.split(",")]
        if not all(key and sign for key, sign, _ in pairs):
            raise InvalidVersion(text, "a label selector: expected key=value,…")
        return Labels.of({key: value for key, _, value in pairs})
    return Exact(Serial.parse(text) if text.isdecimal() else text)
