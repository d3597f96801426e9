"""Where the mistakes of a value are collected, with the texts that clients know."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from polyver.kube.objects.status import Cause
from polyver.languages.values.strings import quoted, shown

__all__ = ["ValidationReport"]


class ValidationReport:
    """The mistakes that were found; what `prefix` names is where the value stands."""

    __slots__ = ("causes", "prefix")

    def __init__(self, prefix: str = "") -> None:
        self.prefix = prefix
        self.causes: list[Cause] = []

    def inner(self) -> ValidationReport:
        """A report for something that is tried."""
        return ValidationReport(self.prefix)

    def _add(self, path: str, message: str, reason: str) -> None:
        name = path.removeprefix(".")
        if name and self.prefix:
            name = f"{self.prefix}.{name}"
        self.causes.append(Cause(name or self.prefix or "<nil>", message, reason))

    def invalid(self, path: str, value: Any, text: str) -> None:
        """A value that breaks a rule."""
        self._add(path, f"Invalid value: {shown(value)}: {text}", "FieldValueInvalid")

    def general(self, text: str) -> None:
        """A rule that is broken without a field to name."""
        self._add("", f'Invalid value: "": {text}', "FieldValueInvalid")

    def wrong_type(self, path: str, wanted: str, found: str) -> None:
        """A value that is of another type."""
        text = f"{path} in body must be of type {wanted}: {quoted(found)}"
        self._add(path, f"Invalid value: {quoted(found)}: {text}", "FieldValueTypeInvalid")

    def required(self, path: str) -> None:
        """A value that is not there."""
        self._add(path, "Required value", "FieldValueRequired")

    def unsupported(self, path: str, value: Any, known: Sequence[Any]) -> None:
        """A value that is none of those that are known."""
        texts = (each if isinstance(each, str) else shown(each) for each in known)
        values = ", ".join(map(quoted, texts))
        text = f"Unsupported value: {shown(value)}: supported values: {values}"
        self._add(path, text, "FieldValueNotSupported")

    def too_long(self, path: str, most: int) -> None:
        """A text that is too long."""
        size = "byte" if most == 1 else "bytes"
        self._add(path, f"Too long: may not be more than {most} {size}", "FieldValueTooLong")

    def too_many(self, path: str, found: int, most: int) -> None:
        """A list or mapping with too much in it."""
        items = "item" if most == 1 else "items"
        text = f"Too many: {found}: must have at most {most} {items}"
        self._add(path, text, "FieldValueTooMany")
