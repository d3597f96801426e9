"""Objects as JSON of which only the two outer levels are read: what is inside stays bytes.

Whoever changes a few fields of many objects reads the others once, to find where they end.
"""

from __future__ import annotations

from msgspec import Raw, json

__all__ = ["Opened", "read_opened"]

# Raw cannot be one of several types, and numbers with decimals would be written otherwise.
Opened = dict[str, str | int | bool | None | list[Raw] | dict[str, Raw]]
"""An object, its fields opened one level deep."""

read_opened = json.Decoder(Opened).decode
