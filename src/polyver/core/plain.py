"""Type aliases for JSON objects as plain Python data."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

__all__ = ["Object", "ReadOnlyObject"]

Object = dict[str, Any]
ReadOnlyObject = Mapping[str, Any]
