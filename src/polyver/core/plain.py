"""Type aliases for JSON objects and OpenAPI schemas as plain Python data."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

__all__ = ["Object", "ReadOnlyObject", "Schema"]

Object = dict[str, Any]
ReadOnlyObject = Mapping[str, Any]
Schema = Mapping[str, Any]
