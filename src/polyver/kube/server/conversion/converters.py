"""Registry of the converters that run in this process, by the name of their CRD."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Generic, Protocol, TypeVar

__all__ = ["ObjectConverter", "ServedConversions"]


class ObjectConverter(Protocol):
    """Converts the objects of one kind between its versions."""

    @property
    def group(self) -> str: ...

    @property
    def kind(self) -> str: ...

    @property
    def versions(self) -> tuple[str, ...]: ...

    @property
    def calls_functions(self) -> bool:
        """True if a conversion of this kind may call conversion functions.

        Conversion functions are user code, which may take any time and raise any exception.
        """
        ...

    def convert(self, obj: dict[str, Any], version: str) -> dict[str, Any]: ...

    def versions_between(self, source: str, target: str) -> Sequence[str]:
        """Return the versions between `source` and `target` on the conversion path.

        The list contains neither `source` nor `target`.
        """
        ...


AnyConverter = TypeVar("AnyConverter", bound=ObjectConverter)


class ServedConversions(Generic[AnyConverter]):
    """The converters that run in this process: at most one for each custom kind.

    When `publish` returns, the server already uses the new converter.
    """

    def __init__(self) -> None:
        self._converters: dict[str, AnyConverter] = {}
        self._listeners: list[Callable[[str], None]] = []

    def get(self, name: str) -> AnyConverter | None:
        return self._converters.get(name)

    @property
    def by_kind(self) -> Mapping[tuple[str, str], AnyConverter]:
        """A mapping of all converters, by group and kind: `("ex.io", "Widget")`."""
        return {(each.group, each.kind): each for each in self._converters.values()}

    def publish(self, name: str, converter: AnyConverter | None) -> None:
        """Set the converter for the kind of the CRD with this name; None removes it."""
        if converter is self._converters.get(name):
            return
        if converter is None:
            del self._converters[name]
        else:
            self._converters[name] = converter
        for listener in self._listeners:
            listener(name)

    def subscribe(self, listener: Callable[[str], None]) -> None:
        """Call `listener` with the name of a CRD whenever the converter of this CRD changes."""
        self._listeners.append(listener)
