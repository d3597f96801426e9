"""Conversion rules that change the names of fields and keys, or the objects around values."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from polyver.apis.conversion._delta import Guard, Lost, was
from polyver.apis.conversion.nested import NestedRule
from polyver.apis.conversion.rules import ConversionRule, Ports, restored_entry
from polyver.apis.conversion.values import MISSING
from polyver.kube.objects.converted_metadata import fresh
from polyver.kube.objects.schema.structure import StructuralSchema

__all__ = ["RenameKeysRule"]


@dataclass(frozen=True, eq=False)
class RenameKeysRule(NestedRule):
    """Renames keys of a map, and converts the values of the map by the same inner rules.

    A key that is only a new name cannot be expressed in the version with the old names: there, it
    would stand for another key. So it is preserved.
    """

    words: Mapping[str, str]
    name: ClassVar[str] = "rename_keys"
    _back: Mapping[str, str] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_back", {new: old for old, new in self.words.items()})

    def _bound(
        self, source: StructuralSchema | None, target: StructuralSchema | None
    ) -> ConversionRule:
        return super()._bound(source and source.values, target and target.values)

    def renamed(self, key: str, *, back: bool) -> str | None:
        """Return the name of a key in the other version; None if it cannot be expressed."""
        words, taken = (self._back, self.words) if back else (self.words, self._back)
        return words.get(key, None if key in taken else key)

    def run(self, values: Ports, *, back: bool) -> Ports:
        if type(values[0]) is not dict:
            return (MISSING,)
        found = ((self.renamed(key, back=back), value) for key, value in values[0].items())
        made = {
            key: self.inside.run_value(value, back=back) for key, value in found if key is not None
        }
        return (made,)

    def lost(self, values: Ports, made: Ports, *, back: bool) -> Lost:
        entries, other = values[0], made[0]
        if type(entries) is not dict or type(other) is not dict:
            return super().lost(values, made, back=back)
        entry: dict[str, Any] = {}
        for key, value in entries.items():
            name = self.renamed(key, back=back)
            if name is None:
                entry.setdefault("kept", {})[key] = fresh(value)
            elif found := self.inside.lost_value(value, other[name], back=back):
                if "in" not in found:
                    return self._told(was(entries, guarded=True), back=back)
                entry.setdefault("by", {})[key] = found["in"]
        return self._told(entry, back=back)

    def restored(self, made: Ports, lost: Lost, *, back: bool) -> Ports:
        entry, value = self._entry(lost, back=back), made[0]
        if "is" in entry or "absent" in entry:
            return (restored_entry(value, entry),)
        if type(value) is not dict:
            return made
        by = entry.get("by", {})
        found = {key: self._value(each, by.get(key), back=back) for key, each in value.items()}
        return (fresh(entry.get("kept", {})) | found,)

    def _value(self, value: Any, lost: Lost | None, *, back: bool) -> Any:
        return self.inside.restored_value(value, {"in": lost}, back=back) if lost else value

    def guards(self, lost: Lost, values: Ports, *, back: bool) -> Iterator[Guard]:
        entries = values[0] if type(values[0]) is dict else {}
        for key, inner in self._entry(lost, back=back).get("by", {}).items():
            name = self.renamed(key, back=not back)
            value = MISSING if name is None else entries.get(name, MISSING)
            yield from self.inside.value_guards({"in": inner}, value, back=back)
        yield from super().guards(lost, values, back=back)
