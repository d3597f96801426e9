"""Conversions from files, for every command that converts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from polyver.core import PolyverError

if TYPE_CHECKING:
    from polyver.webhook import Converters

__all__ = ["load_converters"]


def load_converters(paths: Sequence[str]) -> Converters:
    """What converts each kind that the files name; PolyverError with file and line if it cannot."""
    raise PolyverError("conversions cannot be read from files yet", at=", ".join(paths))
