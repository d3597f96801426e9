"""Reports of preserved fields in a format that this release does not know.

polyver keeps such fields unchanged and does not restore them. A client that writes an object with
such fields gets a warning. The log names the first object of each kind and format, also if it was
only read.
"""

from __future__ import annotations

from typing import Any

from polyver.apis.conversion import Converter
from polyver.kube.http.logs import Log

__all__ = ["log_unknown_formats", "unknown_format_warning"]


def unknown_format_warning(converter: Converter, obj: dict[str, Any]) -> str:
    """Return the warning for a write of an object; empty if its preserved fields can be read."""
    found = converter.unknown_format(obj)
    if not found:
        return ""
    where = ".".join(converter.keeping.path[:2])
    return (
        f"{where}: the preserved fields of this object ({found}) cannot be read by this release of "
        "polyver: they are kept unchanged and not restored; a release that supports their format "
        "restores them"
    )


def log_unknown_formats(converter: Converter) -> Converter:
    """Make a converter log each format that it does not know, once, with an object that has it."""

    def log(found: str, name: str) -> None:
        Log().warning(
            "preserved fields cannot be read by this release, and are kept unchanged",
            kind=f"{converter.kind}.{converter.group}",
            object=name,
            found=found,
        )

    converter.on_unknown_format = log
    return converter
