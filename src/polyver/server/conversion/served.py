"""The conversions that this process itself serves, by the names of the definitions they are for."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from polyver.admission.preserved import log_unknown_formats
from polyver.capabilities.apis.conversion import Converter

__all__ = ["ServedConversions"]


class ServedConversions:
    """What converts which kind; whoever publishes one finds it in use when the call returns."""

    def __init__(self) -> None:
        self._converters: dict[str, Converter] = {}
        self._listeners: list[Callable[[str], None]] = []

    def get(self, name: str) -> Converter | None:
        return self._converters.get(name)

    @property
    def by_kind(self) -> Mapping[tuple[str, str], Converter]:
        """All of them, by group and kind."""
        return {(each.group, each.kind): each for each in self._converters.values()}

    def publish(self, name: str, converter: Converter | None) -> None:
        """Convert the kind of a definition by this from now on; by nothing of ours if by None."""
        if converter is self._converters.get(name):
            return
        if converter is None:
            del self._converters[name]
        else:
            self._converters[name] = log_unknown_formats(converter)
        for listener in self._listeners:
            listener(name)

    def subscribe(self, listener: Callable[[str], None]) -> None:
        """Call a function with the name whenever something else converts."""
        self._listeners.append(listener)
