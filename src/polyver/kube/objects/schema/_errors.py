"""Collects validation errors, with kube-apiserver's messages."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from polyver.kube.objects.status import Cause
from polyver.languages.values.strings import quoted, shown

__all__ = ["ValidationReport"]


class ValidationReport:
    """The errors that a validation finds.

    `prefix` is the path of the validated value in its object.
    """

    __slots__ = ("causes", "prefix")

    def __init__(self, prefix: str = "") -> None:
        self.prefix = prefix
        self.causes: list[Cause] = []

    def inner(self) -> ValidationReport:
        """Build an empty report for one alternative, such as of an anyOf.

        The caller may drop the errors of the alternative later.
        """
        return ValidationReport(self.prefix)

    def _add(self, path: str, message: str, reason: str) -> None:
        name = path.removeprefix(".")
        if name and self.prefix:
            name = f"{self.prefix}.{name}"
        self.causes.append(Cause(name or self.prefix or "<nil>", message, reason))

    def invalid(self, path: str, value: Any, text: str) -> None:
        """Add the error for a value that breaks a constraint; `text` describes the constraint."""
        self._add(path, f"Invalid value: {shown(value)}: {text}", "FieldValueInvalid")

    def general(self, text: str) -> None:
        """Add an error that names no field."""
        self._add("", f'Invalid value: "": {text}', "FieldValueInvalid")

    def wrong_type(self, path: str, wanted: str, found: str) -> None:
        """Add the error for a value of the type `found` where the type `wanted` is required."""
        text = f"{path} in body must be of type {wanted}: {quoted(found)}"
        self._add(path, f"Invalid value: {quoted(found)}: {text}", "FieldValueTypeInvalid")

    def required(self, path: str) -> None:
        """Add the error of a missing field."""
        self._add(path, "Required value", "FieldValueRequired")

    def unsupported(self, path: str, value: Any, known: Sequence[Any]) -> None:
        """Add the error for a value that is not one of the enum's values, `known`."""
        texts = (each if isinstance(each, str) else shown(each) for each in known)
        values = ", ".join(map(quoted, texts))
        text = f"Unsupported value: {shown(value)}: supported values: {values}"
        self._add(path, text, "FieldValueNotSupported")

    def too_long(self, path: str, most: int) -> None:
        """Add the error for a string that is longer than `most`."""
        size = "byte" if most == 1 else "bytes"
        self._add(path, f"Too long: may not be more than {most} {size}", "FieldValueTooLong")

    def too_many(self, path: str, found: int, most: int) -> None:
        """Add the error for a list or mapping that has `found` entries, more than `most`."""
        items = "item" if most == 1 else "items"
        text = f"Too many: {found}: must have at most {most} {items}"
        self._add(path, text, "FieldValueTooMany")
