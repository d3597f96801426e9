"""Conversion rules that change the names of fields and keys, or the objects around values."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar

from polyver.apis.conversion._delta import Guard, Lost, delta, guards, patch, place_of, was
from polyver.apis.conversion.nested import NestedRule
from polyver.apis.conversion.paths import Path, show_path
from polyver.apis.conversion.rules import (
    ConversionRule,
    Ports,
    SingleFieldRule,
    restored_entry,
)
from polyver.apis.conversion.text_rules import Place, TypedRule
from polyver.apis.conversion.values import MISSING
from polyver.core.plain import Schema
from polyver.kube.objects.converted_metadata import fresh
from polyver.kube.objects.schema.structure import StructuralSchema
from polyver.languages.values.strings import same

if TYPE_CHECKING:
    from polyver.apis.conversion._block import RuleBlock

__all__ = ["FieldsRule", "ObjectRule", "RenameKeysRule"]


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


@dataclass(frozen=True, eq=False)
class ObjectRule(TypedRule, SingleFieldRule):
    """Puts a scalar of the version `from` into an object of the version `to`, with constants.

    If a constant has another value in an object, the scalar alone would stand for another object.
    So the version `from` then has no scalar, and the whole object is preserved. Other fields of the
    object belong to nothing that the version `from` shows: they stay while the scalar exists.
    """

    field: str
    """The field of the object that has the scalar."""
    constants: Mapping[str, Any]
    references: Mapping[str, str]
    """Fields of the object that are equal to a field of the metadata: name or namespace."""
    name: ClassVar[str] = "object"

    @property
    def refers(self) -> bool:
        return bool(self.references)

    def resolved(self, metadata: Mapping[str, str]) -> ConversionRule:
        names = self.references.items()
        known = {name: metadata[each] for name, each in names if each in metadata}
        return replace(self, constants={**self.constants, **known}, references={})

    def run(self, values: Ports, *, back: bool) -> Ports:
        value = values[0]
        if not back:
            return ({**fresh(self.constants), self.field: value} if _is_scalar(value) else MISSING,)
        if type(value) is not dict or not _is_scalar(value.get(self.field)):
            return (MISSING,)
        known = self.constants.items()
        fits = all(name not in value or same(value[name], each) for name, each in known)
        return (value[self.field] if fits else MISSING,)

    def lost(self, values: Ports, made: Ports, *, back: bool) -> Lost:
        again = self.run(made, back=not back)[0]
        if not back or type(values[0]) is not dict or type(again) is not dict:
            return self.missed(values, (again,), back=back)
        found = delta(again, values[0], None)
        return {show_path(self.target): {"in": found}} if found else {}

    def restored(self, made: Ports, lost: Lost, *, back: bool) -> Ports:
        entry = lost.get(show_path(self.source if back else self.target), {})
        if "in" not in entry or type(made[0]) is not dict:
            return super().restored(made, lost, back=back)
        whole = fresh(made[0])
        patch(whole, entry["in"], None)
        return (whole,)

    def guards(self, lost: Lost, values: Ports, *, back: bool) -> Iterator[Guard]:
        for entry in lost.values():
            yield from guards(entry.get("in", {}), values[0], None)
        yield from super().guards(lost, values, back=back)

    def schemas(self, *, back: bool) -> tuple[Schema, ...]:
        if not back:
            return ({},)
        fields: dict[str, Schema] = {self.field: {}}
        fields |= {name: {"type": _TYPES[type(each)]} for name, each in self.constants.items()}
        fields |= {name: {"type": "string"} for name in self.references}
        return ({"type": "object", "properties": fields},)

    def copies(self) -> Iterator[tuple[Place, Place]]:
        yield self.source, (*self.target, self.field)

    def samples(self) -> Iterator[Any]:
        yield from ("a", *self.constants.values())

    def is_exact(self, schema: Schema, *, back: bool) -> bool:
        return not back and schema.get("type") in ("string", "integer", "number", "boolean")


_TYPES = {str: "string", bool: "boolean", int: "integer", float: "number"}


def _is_scalar(value: Any) -> bool:
    return type(value) in _TYPES


@dataclass(frozen=True, eq=False)
class FieldsRule(TypedRule):
    """Collects several fields of the version `from` in a list or a map of the version `to`.

    The names of the fields identify the items of the list, or are the keys of the map.
    """

    paths: tuple[Path, ...]
    names: tuple[str, ...]
    target: Path
    key: str
    """The field of a list item that has the name; empty if the version `to` has a map."""
    value: str
    """The field of a list item that has the value.

    If it is empty, the value is an object, and the item has its fields beside the key.
    """
    insides: tuple[RuleBlock, ...]
    """The rules that the schemas imply for the value of each field."""
    name: ClassVar[str] = "fields"

    @property
    def sources(self) -> tuple[Path, ...]:
        return self.paths

    @property
    def targets(self) -> tuple[Path, ...]:
        return (self.target,)

    def bound(
        self, source: StructuralSchema | None, target: StructuralSchema | None
    ) -> ConversionRule:
        whole = place_of(target, self.target)
        insides = tuple(
            inside.bound(place_of(source, path), self._value_place(whole, name))
            for inside, path, name in zip(self.insides, self.paths, self.names, strict=True)
        )
        return replace(self, insides=insides)

    def _value_place(self, whole: StructuralSchema | None, name: str) -> StructuralSchema | None:
        if not self.key:
            return whole and whole.child(name)
        item = whole and whole.items
        return item and item.child(self.value) if self.value else item

    def run(self, values: Ports, *, back: bool) -> Ports:
        if back:
            found = self._read(values[0])
            return tuple(
                inside.run_value(found[name], back=True) if name in found else MISSING
                for inside, name in zip(self.insides, self.names, strict=True)
            )
        made = {
            name: inside.run_value(value, back=False)
            for name, value, inside in zip(self.names, values, self.insides, strict=True)
            if value is not MISSING
        }
        fitting = {name: value for name, value in made.items() if self._fits(value)}
        return (self._written(fitting) if fitting else MISSING,)

    def _fits(self, value: Any) -> bool:
        if not self.key or self.value:
            return True
        return type(value) is dict and self.key not in value

    def _written(self, found: Mapping[str, Any]) -> Any:
        """Build the map or the list with these values."""
        return [*self._items(found).values()] if self.key else dict(found)

    def _items(self, found: Mapping[str, Any]) -> dict[str, Any]:
        """Build the items of the list, or the values of the map, by their names."""
        if not self.key:
            return dict(found)
        return {
            name: {self.key: name} | ({self.value: value} if self.value else value)
            for name, value in found.items()
        }

    def _by_name(self, whole: Any) -> dict[str, Any] | None:
        """Return the items of a list, or the values of a map, by their names.

        Return None if the value is no such list or map, or if two items have the same name.
        """
        if not self.key:
            return whole if type(whole) is dict else None
        items: list[Any] = whole if type(whole) is list else [None]
        names = [item.get(self.key) if type(item) is dict else None for item in items]
        if any(type(name) is not str for name in names) or len({*names}) < len(names):
            return None
        return {item[self.key]: item for item in items}

    def _read(self, whole: Any) -> dict[str, Any]:
        """Return the values in a list or a map by their names; leave out what has no name."""
        if not self.key:
            return whole if type(whole) is dict else {}
        found: dict[str, Any] = {}
        for item in whole if type(whole) is list else ():
            name = item.get(self.key) if type(item) is dict else None
            if type(name) is str and name not in found and (not self.value or self.value in item):
                found[name] = item[self.value] if self.value else _without(item, self.key)
        return found

    def lost(self, values: Ports, made: Ports, *, back: bool) -> Lost:
        if back:
            entry = self._whole_loss(values[0], made)
            return {show_path(self.target): entry} if entry else {}
        found = self._read(made[0])
        lost: Lost = {}
        for path, name, value, inside in zip(
            self.paths, self.names, values, self.insides, strict=True
        ):
            shown = found.get(name, MISSING)
            if value is MISSING or shown is MISSING:
                entry = {} if value is shown else was(value, guarded=True)
            else:
                entry = inside.lost_value(value, shown, back=False)
            if entry:
                lost[show_path(path)] = entry
        return lost

    def _whole_loss(self, whole: Any, made: Ports) -> dict[str, Any]:
        """Build the entry for a list or a map that was converted to the fields `made`."""
        again = self.run(made, back=False)[0]
        if same(whole, again):
            return {}
        items, known = self._by_name(whole), self._by_name({} if again is MISSING else again)
        if again is MISSING and items:
            known = {}
        if not items or known is None or not known.keys() <= items.keys():
            return was(whole, guarded=True)
        entry: dict[str, Any] = {}
        if kept := {name: fresh(item) for name, item in items.items() if name not in known}:
            entry["kept"] = kept
        for name, item in known.items():
            if not same(item, items[name]):
                if type(item) is not dict or type(items[name]) is not dict:
                    return was(whole, guarded=True)
                entry.setdefault("by", {})[name] = delta(item, items[name], None)
        if self.key and [*items] != [*known]:
            entry["order"] = [*items]
        return entry

    def restored(self, made: Ports, lost: Lost, *, back: bool) -> Ports:
        if back:
            return tuple(
                inside.restored_value(value, lost.get(show_path(path), {}), back=True)
                for value, path, inside in zip(made, self.paths, self.insides, strict=True)
            )
        entry = lost.get(show_path(self.target), {})
        if "is" in entry or "absent" in entry:
            return (restored_entry(made[0], entry),)
        items = self._by_name([] if made[0] is MISSING and self.key else fresh(made[0])) or {}
        for name, inner in entry.get("by", {}).items():
            if type(items.get(name)) is dict:
                patch(items[name], inner, None)
        kept = fresh(entry.get("kept", {}))
        order = dict.fromkeys([*entry.get("order", ()), *items, *kept])
        whole = {name: items.get(name, kept.get(name)) for name in order}
        whole = {name: item for name, item in whole.items() if name in items or name in kept}
        if not whole:
            return made
        return ([*whole.values()] if self.key else whole,)

    def guards(self, lost: Lost, values: Ports, *, back: bool) -> Iterator[Guard]:
        if back:
            found = self._read(values[0])
            for path, name, inside in zip(self.paths, self.names, self.insides, strict=True):
                entry = lost.get(show_path(path), {})
                yield from inside.value_guards(entry, found.get(name, MISSING), back=True)
            return
        entry = lost.get(show_path(self.target), {})
        seen = self._by_name(self.run(values, back=False)[0]) or {}
        for name, inner in entry.get("by", {}).items():
            yield from guards(inner, seen.get(name, MISSING), None)
        yield from super().guards(lost, values, back=back)

    def schemas(self, *, back: bool) -> tuple[Schema, ...]:
        if not back:
            return ({},) * len(self.paths)
        if not self.key:
            return ({"type": "object", "properties": {name: {} for name in self.names}},)
        item: dict[str, Schema] = {self.key: {"type": "string"}}
        if self.value:
            item[self.value] = {}
        return ({"type": "array", "items": {"type": "object", "properties": item}},)

    def copies(self) -> Iterator[tuple[Place, Place]]:
        for path, name in zip(self.paths, self.names, strict=True):
            inside = ((None, self.value) if self.value else (None,)) if self.key else (name,)
            yield path, (*self.target, *inside)

    def samples(self) -> Iterator[Any]:
        yield from self.names


def _without(item: Mapping[str, Any], key: str) -> dict[str, Any]:
    return {name: value for name, value in item.items() if name != key}
