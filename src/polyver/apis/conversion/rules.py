"""Conversion rules: each converts fields between two versions, in both directions.

A rule never fails. If it cannot convert a value exactly, it leaves the value out or writes an
approximate value. In this case, running the rule backwards gives another value than the original
value. So polyver detects the loss, and preserves the original value in the object.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar

from polyver.apis.conversion._delta import Guard, Lost, was
from polyver.apis.conversion.paths import Path, show_path
from polyver.apis.conversion.values import MISSING, Type, cast, fingerprint, scaled
from polyver.core import PolyverError
from polyver.core.plain import Schema
from polyver.kube.objects.converted_metadata import fresh
from polyver.kube.objects.schema.structure import StructuralSchema
from polyver.languages.values.strings import same

if TYPE_CHECKING:
    from polyver.apis.conversion._block import RuleBlock

__all__ = [
    "CastRule",
    "ConstRule",
    "ConversionRule",
    "DropRule",
    "InvalidRule",
    "Ports",
    "ScaleRule",
    "SingleFieldRule",
    "SplitRule",
    "ValuesRule",
    "restored_entry",
]

Ports = tuple[Any, ...]
"""One value for each path that a rule reads or writes; MISSING where there is no value."""


class InvalidRule(PolyverError):
    """A rule that is invalid by itself."""


@dataclass(frozen=True, eq=False)
class ConversionRule(ABC):
    """A rule that connects fields of the version `from` with fields of the version `to`."""

    name: ClassVar[str]
    place: str = field(default="", kw_only=True, repr=False)
    """The file and line that declare the rule; empty if polyver derived it from the schemas."""

    @property
    @abstractmethod
    def sources(self) -> tuple[Path, ...]:
        """The fields of the version `from` that this rule converts. No other rule may use them."""

    @property
    @abstractmethod
    def targets(self) -> tuple[Path, ...]:
        """The fields of the version `to` that this rule converts. No other rule may use them."""

    @property
    def ended(self) -> bool:
        """True if the rule only preserves its field, because a version does not have the field."""
        return False

    @property
    def blocks(self) -> Sequence[RuleBlock]:
        """The blocks of rules inside of this rule."""
        return ()

    @property
    def calls_functions(self) -> bool:
        """True if the rule, or a rule inside of it, calls functions of users.

        A call of such a function may take any time, or never end.
        """
        return any(block.calls_functions for block in self.blocks)

    def ports(self, *, back: bool) -> tuple[tuple[Path, ...], tuple[Path, ...]]:
        """Return the paths that the rule reads, and the paths that it writes.

        With `back`, the rule converts from the version `to` to the version `from`.
        """
        return (self.targets, self.sources) if back else (self.sources, self.targets)

    @property
    def constant(self) -> Path | None:
        """The field that this rule sets to a constant, without reading any field; None if none."""
        return None

    @property
    def refers(self) -> bool:
        """True if the rule, or a rule inside of it, refers to the metadata of the object."""
        return any(block.refers for block in self.blocks)

    def resolved(self, metadata: Mapping[str, str]) -> ConversionRule:
        """Return this rule for an object with this name and namespace in its metadata."""
        return self

    def schemas(self, *, back: bool) -> tuple[Schema, ...]:
        """Return the schema that the rule expects for each path that it reads; {} for any value.

        With `back`, the rule converts from the version `to` to the version `from`.
        """
        return ({},) * len(self.ports(back=back)[0])

    def bound(
        self, source: StructuralSchema | None, target: StructuralSchema | None
    ) -> ConversionRule:
        """Return this rule for two versions with these schemas at its paths.

        By default, a rule does not depend on schemas, and is returned unchanged.
        """
        return self

    @abstractmethod
    def run(self, values: Ports, *, back: bool) -> Ports:
        """Convert the values that the rule reads; return the values that it writes.

        With `back`, convert from the version `to` to the version `from`.
        """

    def lost(self, values: Ports, made: Ports, *, back: bool) -> Lost:
        """Find the lost values: those that running the rule backwards would not restore.

        `values` are the values that the rule read, and `made` are the values that it wrote.
        """
        return self.missed(values, self.run(made, back=not back), back=back)

    def missed(self, values: Ports, again: Ports, *, back: bool) -> Lost:
        """Build the entries for the values that converting back does not restore.

        `again` is the result of converting back; the entries are for the values in `values` that
        differ from it.
        """
        reads, _ = self.ports(back=back)
        return {
            show_path(path): was(value, guarded=True)
            for path, value, recovered in zip(reads, values, again, strict=True)
            if not same(value, recovered)
        }

    def restored(self, made: Ports, lost: Lost, *, back: bool) -> Ports:
        """Return `made`, in which the values that `lost` preserves replace the converted values."""
        _, writes = self.ports(back=back)
        return tuple(
            restored_entry(value, lost[show_path(path)]) if show_path(path) in lost else value
            for path, value in zip(writes, made, strict=True)
        )

    def guards(self, lost: Lost, values: Ports, *, back: bool) -> Iterator[Guard]:
        """Yield the guards of the preserved values in `lost`, which this rule writes.

        A guard is the fingerprint of `values`, the values that the rule reads.
        """
        for entry in lost.values():
            if "if" in entry:
                yield entry, "if", fingerprint(values)


def restored_entry(value: Any, entry: Mapping[str, Any]) -> Any:
    """Return the value that an entry preserves; return `value` if the entry preserves no value.

    Return MISSING if the entry states that the field did not exist.
    """
    if "is" in entry:
        return fresh(entry["is"])
    return MISSING if "absent" in entry else value


@dataclass(frozen=True, eq=False)
class SingleFieldRule(ConversionRule):
    """A rule that connects one field of the version `from` with one field of the version `to`."""

    source: Path
    target: Path

    @property
    def sources(self) -> tuple[Path, ...]:
        return (self.source,)

    @property
    def targets(self) -> tuple[Path, ...]:
        return (self.target,)


@dataclass(frozen=True, eq=False)
class ValuesRule(SingleFieldRule):
    """Replaces each value of a field by another value, such as `Always` by `always`, and back."""

    words: Mapping[Any, Any]
    name: ClassVar[str] = "values"
    _forward: Mapping[tuple[type, Any], Any] = field(init=False, repr=False)
    _back: Mapping[tuple[type, Any], Any] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        forward = {(type(one), one): other for one, other in self.words.items()}
        back = {(type(other), other): one for one, other in self.words.items()}
        object.__setattr__(self, "_forward", forward)
        object.__setattr__(self, "_back", back)

    def run(self, values: Ports, *, back: bool) -> Ports:
        value = values[0]
        if type(value) not in (str, bool, int, float):
            return (MISSING,)
        return ((self._back if back else self._forward).get((type(value), value), MISSING),)


@dataclass(frozen=True, eq=False)
class CastRule(SingleFieldRule):
    """Converts the value of a field to another type in the other version, such as "80" to 80."""

    source_type: Type
    target_type: Type
    name: ClassVar[str] = "cast"

    def run(self, values: Ports, *, back: bool) -> Ports:
        kinds = (self.source_type, self.target_type)
        return (cast(values[0], *(kinds[::-1] if back else kinds)),)


@dataclass(frozen=True, eq=False)
class ScaleRule(SingleFieldRule):
    """Converts a number to another unit: in the version `to`, it is multiplied by `factor`."""

    factor: Fraction
    source_type: Type = "integer"
    target_type: Type = "integer"
    name: ClassVar[str] = "scale"

    def run(self, values: Ports, *, back: bool) -> Ports:
        if back:
            return (scaled(values[0], 1 / self.factor, self.source_type),)
        return (scaled(values[0], self.factor, self.target_type),)


@dataclass(frozen=True, eq=False)
class SplitRule(ConversionRule):
    """Splits a string of the version `from` into several fields of the version `to`."""

    source: Path
    into: tuple[Path, ...]
    separator: str
    types: tuple[Type, ...]
    absent: str | None = None
    """The part of the string that stands for a missing field; None if no part stands for it."""
    name: ClassVar[str] = "split"

    @property
    def sources(self) -> tuple[Path, ...]:
        return (self.source,)

    @property
    def targets(self) -> tuple[Path, ...]:
        return self.into

    def run(self, values: Ports, *, back: bool) -> Ports:
        if back:
            return (self._joined(values),)
        if type(values[0]) is not str:
            return (MISSING,) * len(self.into)
        texts: list[Any] = list(values[0].split(self.separator, len(self.into) - 1))
        texts += [MISSING] * (len(self.into) - len(texts))
        return tuple(map(self._part, texts, self.types))

    def _part(self, text: Any, kind: Type) -> Any:
        return MISSING if text == self.absent else cast(text, "string", kind)

    def _joined(self, parts: Ports) -> Any:
        """Join the parts of the string by the separator.

        `absent` is written for a missing part. If `absent` is None, the string ends before the
        missing part.
        """
        if all(part is MISSING for part in parts):
            return MISSING
        texts: list[str] = []
        for part, kind in zip(parts, self.types, strict=True):
            text = cast(part, kind, "string")
            if text is MISSING:
                if self.absent is None:
                    break
                text = self.absent
            texts.append(text)
        return self.separator.join(texts) if texts else MISSING


@dataclass(frozen=True, eq=False)
class DropRule(ConversionRule):
    """A rule for a field that only one version has; the other version preserves its value."""

    at: Path
    added: bool = False
    """True if only the version `to` has the field, False if only the version `from` has it."""
    implied: bool = False
    """True if polyver derived this rule from the schemas; False if a user wrote it."""
    name: ClassVar[str] = "drop"

    @property
    def sources(self) -> tuple[Path, ...]:
        return () if self.added else (self.at,)

    @property
    def targets(self) -> tuple[Path, ...]:
        return (self.at,) if self.added else ()

    def run(self, values: Ports, *, back: bool) -> Ports:
        return (MISSING,) if back is not self.added else ()

    def lost(self, values: Ports, made: Ports, *, back: bool) -> Lost:
        present = bool(values) and values[0] is not MISSING
        return {show_path(self.at): was(values[0], guarded=False)} if present else {}


@dataclass(frozen=True, eq=False)
class ConstRule(ConversionRule):
    """Sets a field that only the version `to` has to a constant value."""

    at: Path
    value: Any
    reference: str = ""
    """The field of the metadata that is used instead of `value`: name or namespace."""
    name: ClassVar[str] = "const"

    @property
    def sources(self) -> tuple[Path, ...]:
        return ()

    @property
    def targets(self) -> tuple[Path, ...]:
        return (self.at,)

    @property
    def constant(self) -> Path:
        return self.at

    @property
    def refers(self) -> bool:
        return bool(self.reference)

    def resolved(self, metadata: Mapping[str, str]) -> ConversionRule:
        if not self.reference:
            return self
        return replace(self, value=metadata.get(self.reference, MISSING), reference="")

    def run(self, values: Ports, *, back: bool) -> Ports:
        if back:
            return ()
        return (fresh(self.value),)

    def lost(self, values: Ports, made: Ports, *, back: bool) -> Lost:
        if not back:
            return {}
        kept = was(values[0], guarded=False)
        return {} if same(values[0], self.value) else {show_path(self.at): kept}
