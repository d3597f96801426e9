"""Preserved fields: values that a version cannot express, kept as JSON beside the visible fields.

The JSON has sorted keys: `{"format": 1, "lost": {"v1": {"spec.legacyMode": {"is": …}}}}`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Any, Final, TypedDict

import msgspec

from polyver.apis.conversion._delta import Lost, without
from polyver.apis.conversion._metadata import may_restore
from polyver.apis.conversion.paths import PATTERN
from polyver.core import PolyverError, listed

__all__ = ["CarryTooLarge", "PreservedFields", "format_of", "read", "write"]

FORMAT: Final = 1


class CarryTooLarge(PolyverError):
    """The preserved fields of an object exceed the size limit."""

    def __init__(self, carry: PreservedFields, size: int, room: int) -> None:
        sizes = {
            f"{path} of {version} ({len(encode(entry))} bytes)": len(encode(entry))
            for version, lost in carry.lost.items()
            for path, entry in lost.items()
        }
        largest = sorted(sizes, key=lambda name: -sizes[name])
        super().__init__(
            f"preserved fields take {size} bytes, and at most {room} are allowed: "
            f"{listed(largest, most=5)}",
            hint="make these fields smaller, or add fields for them to the other versions",
        )


@dataclass(slots=True)
class PreservedFields:
    """The preserved fields of each version, and the form of the object without their annotation."""

    lost: dict[str, Lost] = field(default_factory=dict)
    was_empty: bool = False
    """True if the map of annotations is empty apart from the preserved fields."""
    was_bare: bool = False
    """True if the object has no metadata apart from the preserved fields."""
    unknown: str = ""
    """A string in a format that this release does not know; it is written back unchanged."""


encode = msgspec.json.Encoder(order="sorted").encode


_Lost = dict[Annotated[str, msgspec.Meta(pattern=PATTERN)], "_Entry"]
_Place = Annotated[str, msgspec.Meta(pattern=r"^[0-9]{1,9}\Z")]
_Item = TypedDict("_Item", {"in": "_Lost", "if": str})
_Entry = TypedDict(
    "_Entry",
    {
        "is": Any,
        "absent": bool,
        "if": str,
        "whole": str,
        "in": "_Lost",
        "first": "_Entry",
        "rest": list[Any],
        "by": dict[str, _Lost],
        "at": dict[_Place, _Item],
        "kept": dict[str, Any],
        "order": list[str],
    },
    total=False,
)
"""The allowed form of `Lost`. It is checked, as any client can write the annotation."""


class _Written(msgspec.Struct, forbid_unknown_fields=True):
    format: int
    lost: dict[str, _Lost]
    empty: bool = False
    bare: bool = False


_decode = msgspec.json.Decoder(_Written).decode


def read(text: object) -> PreservedFields:
    """Read preserved fields; keep a string in a format that this release does not know.

    Another release of polyver may have written it, and will read it again after a roll-back.
    """
    if not isinstance(text, str):
        return PreservedFields()
    try:
        written = _decode(text)
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return PreservedFields(unknown=text)
    if written.format != FORMAT:
        return PreservedFields(unknown=text)
    lost = {
        version: without({p: entry for p, entry in each.items() if may_restore(p, entry)}, ())
        for version, each in written.lost.items()
    }
    return PreservedFields(lost, written.empty, written.bare)


def format_of(text: str) -> str:
    """Return the format of preserved fields that could not be read, as far as it is known."""
    try:
        found = msgspec.json.decode(text)
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return "not JSON"
    number = found.get("format") if isinstance(found, dict) else None
    if type(number) is not int:
        return "no format number"
    return f"format {number}" if number != FORMAT else f"format {FORMAT}, with other fields"


def write(carry: PreservedFields, *, room: int) -> str:
    """Return preserved fields as a string; raise CarryTooLarge if it has more than `room` bytes."""
    said: dict[str, Any] = {"format": FORMAT, "lost": carry.lost}
    flags = {"empty": carry.was_empty, "bare": carry.was_bare}
    text = encode(said | {name: True for name, is_so in flags.items() if is_so})
    if len(text) > room:
        raise CarryTooLarge(carry, len(text), room)
    return text.decode()
