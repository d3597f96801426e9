"""Rules for values that have fields inside: objects, lists and maps.

A lost value is recorded for the field of the item to which it belongs, and not for the whole list
or map. So if a client edits one field, the lost values of other fields can still be restored.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

from polyver.apis.conversion._delta import (
    Guard,
    Lost,
    delta,
    guards,
    item_guards,
    item_losses,
    patch,
    patch_items,
    place_of,
    was,
)
from polyver.apis.conversion.paths import show_path
from polyver.apis.conversion.rules import ConversionRule, Ports, SingleFieldRule, restored_entry
from polyver.apis.conversion.values import MISSING
from polyver.kube.objects.converted_metadata import fresh
from polyver.kube.objects.schema.structure import StructuralSchema
from polyver.languages.values.strings import same

if TYPE_CHECKING:
    from polyver.apis.conversion._block import RuleBlock

__all__ = ["EachRule", "KeyedRule", "MoveRule", "NestedRule", "WrapRule", "renamed_keys"]


@dataclass(frozen=True, eq=False)
class NestedRule(SingleFieldRule):
    """Base class of rules that convert the fields inside of a value by a block of further rules."""

    inside: RuleBlock

    @property
    def blocks(self) -> Sequence[RuleBlock]:
        return (self.inside,)

    def resolved(self, metadata: Mapping[str, str]) -> ConversionRule:
        return replace(self, inside=self.inside.resolved(metadata))

    def bound(
        self, source: StructuralSchema | None, target: StructuralSchema | None
    ) -> ConversionRule:
        return self._bound(place_of(source, self.source), place_of(target, self.target))

    def _bound(
        self, source: StructuralSchema | None, target: StructuralSchema | None
    ) -> ConversionRule:
        """Return this rule with its inner rules bound to the schemas of the value."""
        return replace(self, inside=self.inside.bound(source, target))

    def _entry(self, lost: Lost, *, back: bool) -> dict[str, Any]:
        """Return the entry in `lost` for the path that this rule writes; {} if there is none."""
        found: dict[str, Any] = lost.get(show_path(self.source if back else self.target), {})
        return found

    def _told(self, entry: dict[str, Any], *, back: bool) -> Lost:
        """Build a `Lost` with this entry for the path that the rule reads; {} if it is empty."""
        return {show_path(self.target if back else self.source): entry} if entry else {}


@dataclass(frozen=True, eq=False)
class MoveRule(NestedRule):
    """Moves a field to another path, or keeps its path and converts the fields inside of it.

    If the value of the field is an object, `inside` has the rules for the fields of this object.
    """

    name: ClassVar[str] = "move"

    def run(self, values: Ports, *, back: bool) -> Ports:
        return (self.inside.run_value(values[0], back=back),)

    def lost(self, values: Ports, made: Ports, *, back: bool) -> Lost:
        return self._told(self.inside.lost_value(values[0], made[0], back=back), back=back)

    def restored(self, made: Ports, lost: Lost, *, back: bool) -> Ports:
        return (self.inside.restored_value(made[0], self._entry(lost, back=back), back=back),)

    def guards(self, lost: Lost, values: Ports, *, back: bool) -> Iterator[Guard]:
        return self.inside.value_guards(self._entry(lost, back=back), values[0], back=back)


@dataclass(frozen=True, eq=False)
class WrapRule(NestedRule):
    """Converts a single value to a list with this value as the first item, and back.

    The version `from` has the single value, and the version `to` has the list.
    """

    name: ClassVar[str] = "wrap"

    def _bound(
        self, source: StructuralSchema | None, target: StructuralSchema | None
    ) -> ConversionRule:
        return super()._bound(source, target and target.items)

    def run(self, values: Ports, *, back: bool) -> Ports:
        value = values[0]
        if back:
            return (self.inside.run_value(_first(value), back=True),)
        if value is MISSING or value is None:
            return (MISSING,)
        return ([self.inside.run_value(value, back=False)],)

    def lost(self, values: Ports, made: Ports, *, back: bool) -> Lost:
        value = values[0]
        if value is MISSING:
            return super().lost(values, made, back=back)
        if not back:
            entry = self.inside.lost_value(value, _first(made[0]), back=False)
            return self._told(entry, back=False)
        if _first(value) is MISSING:
            return self._told(was(value, guarded=True), back=True)
        entry = {}
        if first := self.inside.lost_value(value[0], made[0], back=True):
            entry["first"] = first
        if value[1:]:
            entry["rest"] = fresh(value[1:])
        return self._told(entry, back=True)

    def restored(self, made: Ports, lost: Lost, *, back: bool) -> Ports:
        entry, value = self._entry(lost, back=back), made[0]
        if back:
            return (self.inside.restored_value(value, entry, back=True),)
        if "is" in entry or "absent" in entry:
            return (restored_entry(value, entry),)
        if value is MISSING:
            return made
        first = self.inside.restored_value(value[0], entry.get("first", {}), back=False)
        return ([first, *fresh(entry.get("rest", []))],)

    def guards(self, lost: Lost, values: Ports, *, back: bool) -> Iterator[Guard]:
        entry, value = self._entry(lost, back=back), values[0]
        if back:
            yield from self.inside.value_guards(entry, _first(value), back=True)
            return
        yield from self.inside.value_guards(entry.get("first", {}), value, back=False)
        yield from super().guards(lost, values, back=back)


def _first(value: Any) -> Any:
    """Return the first item of a list; MISSING if there is none.

    A null is treated as missing, because API servers may remove nulls.
    """
    first = value[0] if type(value) is list and value else None
    return MISSING if first is None else first


@dataclass(frozen=True, eq=False)
class EachRule(NestedRule):
    """Converts each item of a list, or each value of a map, by the same inner rules."""

    name: ClassVar[str] = "each"
    source_keys: tuple[str, ...] = ()
    target_keys: tuple[str, ...] = ()
    """The fields that identify a list item in the version `to`; `source_keys` are those in `from`.

    By default, both are the list map keys in the schema of the version.
    """

    def _bound(
        self, source: StructuralSchema | None, target: StructuralSchema | None
    ) -> ConversionRule:
        places = (_inside(source), _inside(target))
        return replace(
            self,
            inside=self.inside.bound(*places),
            source_keys=self.source_keys or _keys(source),
            target_keys=self.target_keys or _keys(target),
        )

    def run(self, values: Ports, *, back: bool) -> Ports:
        match values[0]:
            case list(items):
                return ([self.inside.run_value(item, back=back) for item in items],)
            case dict(items):
                return ({k: self.inside.run_value(v, back=back) for k, v in items.items()},)
        return values

    def lost(self, values: Ports, made: Ports, *, back: bool) -> Lost:
        value, other = values[0], made[0]
        entry: dict[str, Any]
        if type(value) is list and type(other) is list and len(value) == len(other):
            entry = self._list_loss(value, other, back=back)
        elif type(value) is dict and type(other) is dict and value.keys() == other.keys():
            entry = self._map_loss(value, other, back=back)
        else:
            entry = {} if same(value, other) else was(value, guarded=True)
        return self._told(entry, back=back)

    def _list_loss(self, value: list[Any], other: list[Any], *, back: bool) -> dict[str, Any]:
        losses = [
            self.inside.lost_value(one, made, back=back)
            for one, made in zip(value, other, strict=True)
        ]
        if any("in" not in each for each in losses if each):
            return was(value, guarded=True)
        keys = self.target_keys if back else self.source_keys
        again = [self.inside.run_value(item, back=not back) for item in other]
        return item_losses([each.get("in", {}) for each in losses], again, value, keys)

    def _map_loss(
        self, value: dict[str, Any], other: dict[str, Any], *, back: bool
    ) -> dict[str, Any]:
        losses = {k: self.inside.lost_value(v, other[k], back=back) for k, v in value.items()}
        if any("in" not in each for each in losses.values() if each):
            return was(value, guarded=True)
        by = {key: each["in"] for key, each in losses.items() if each}
        return {"by": by} if by else {}

    def restored(self, made: Ports, lost: Lost, *, back: bool) -> Ports:
        entry, value = self._entry(lost, back=back), made[0]
        if "is" in entry or "absent" in entry:
            return (restored_entry(value, entry),)
        if type(value) is dict:
            by = entry.get("by", {})
            return ({k: self._item(v, by.get(k, {}), back=back) for k, v in value.items()},)
        if type(value) is list:
            value = [*value]
            keys = self.source_keys if back else self.target_keys
            patch_items(value, entry, keys, lambda item, lost: self._item(item, lost, back=back))
        return (value,)

    def _item(self, item: Any, lost: Lost, *, back: bool) -> Any:
        return self.inside.restored_value(item, {"in": lost}, back=back) if lost else item

    def guards(self, lost: Lost, values: Ports, *, back: bool) -> Iterator[Guard]:
        entry, value = self._entry(lost, back=back), values[0]
        if type(value) is dict:
            for key, inner in entry.get("by", {}).items():
                yield from self._item_guards(inner, value.get(key, MISSING), back=back)
        else:
            yield from self._list_guards(entry, value, back=back)
        yield from super().guards(lost, values, back=back)

    def _list_guards(self, entry: dict[str, Any], value: Any, *, back: bool) -> Iterator[Guard]:
        """Yield the guards of lost values in list items.

        The lost values belong to the version to which this rule converts. So each item is
        identified by its key in that version.
        """
        items = value if type(value) is list else []
        made = [self.inside.run_value(item, back=back) for item in items]
        keys = self.source_keys if back else self.target_keys
        at = {id(one): item for one, item in zip(made, items, strict=True)}
        yield from item_guards(
            {"by": entry.get("by", {})},
            made,
            keys,
            lambda lost, one: self._item_guards(lost, at[id(one)], back=back),
        )
        yield from item_guards({"at": entry.get("at", {})}, items, (), lambda *_: iter(()))

    def _item_guards(self, lost: Lost, item: Any, *, back: bool) -> Iterator[Guard]:
        return self.inside.value_guards({"in": lost}, item, back=back)


@dataclass(frozen=True, eq=False)
class KeyedRule(NestedRule):
    """Converts a list in the version `from` to a map in the version `to`, and back.

    The field `key` of a list item becomes the key in the map.
    """

    key: str
    value: str
    """The field of an item that becomes the value in the map.

    If it is empty, the item without its key field becomes the value.
    """
    name: ClassVar[str] = "keyed"

    def _bound(
        self, source: StructuralSchema | None, target: StructuralSchema | None
    ) -> ConversionRule:
        item = source and source.items
        one = item and item.child(self.value) if self.value else item
        return super()._bound(one, target and target.values)

    def run(self, values: Ports, *, back: bool) -> Ports:
        found = values[0]
        if back:
            return (self._list(found) if type(found) is dict else MISSING,)
        return (self._map(found) if type(found) is list else MISSING,)

    def _map(self, items: Sequence[Any]) -> dict[str, Any]:
        made: dict[str, Any] = {}
        for item in items:
            name = item.get(self.key) if type(item) is dict else None
            if type(name) is str and name not in made and (not self.value or self.value in item):
                made[name] = self.inside.run_value(self._inner(item), back=False)
        return made

    def _inner(self, item: dict[str, Any]) -> Any:
        """Return the value in the map for an item: one of its fields, or all fields but the key."""
        if self.value:
            return item[self.value]
        return {name: value for name, value in item.items() if name != self.key}

    def _list(self, entries: Mapping[str, Any]) -> list[Any]:
        return [
            self._made_item(name, self.inside.run_value(value, back=True))
            for name, value in sorted(entries.items())
            if self._fits(value)
        ]

    def _made_item(self, name: str, value: Any) -> dict[str, Any]:
        return {self.key: name} | ({self.value: value} if self.value else value)

    def _fits(self, value: Any) -> bool:
        """Report whether a value of the map can become an item of the list.

        A value that already has the key field cannot: an item has only one value for this field.
        """
        return bool(self.value) or (type(value) is dict and self.key not in value)

    def lost(self, values: Ports, made: Ports, *, back: bool) -> Lost:
        found, other = values[0], made[0]
        if found is MISSING:
            return super().lost(values, made, back=back)
        entry = self._map_loss(found, other) if back else self._list_loss(found, other)
        return self._told(entry, back=back)

    def _list_loss(self, items: Any, made: Any) -> dict[str, Any]:
        if type(items) is not list or type(made) is not dict or not self._are_named(items):
            return was(items, guarded=True)
        names = [item[self.key] for item in items]
        again = {item[self.key]: item for item in self._list(made)}
        kept = {item[self.key]: fresh(item) for item in items if item[self.key] not in again}
        losses = {
            name: delta(again[name], item, None)
            for name, item in zip(names, items, strict=True)
            if name in again
        }
        entry: dict[str, Any] = {}
        if kept:
            entry["kept"] = kept
        if by := {name: lost for name, lost in losses.items() if lost}:
            entry["by"] = by
        if kept or names != sorted(names):
            entry["order"] = names
        return entry

    def _are_named(self, items: Sequence[Any]) -> bool:
        names = [item.get(self.key) if type(item) is dict else None for item in items]
        return all(type(name) is str for name in names) and len({*names}) == len(names)

    def _map_loss(self, entries: Any, made: Any) -> dict[str, Any]:
        if type(entries) is not dict or type(made) is not list:
            return was(entries, guarded=True)
        again = self._map(made)
        kept = {name: fresh(value) for name, value in entries.items() if name not in again}
        by: dict[str, Any] = {}
        for name, value in entries.items():
            if name in again and not same(value, again[name]):
                if type(value) is not dict or type(again[name]) is not dict:
                    return was(entries, guarded=True)
                by[name] = delta(again[name], value, None)
        return ({"kept": kept} if kept else {}) | ({"by": by} if by else {})

    def restored(self, made: Ports, lost: Lost, *, back: bool) -> Ports:
        entry, value = self._entry(lost, back=back), made[0]
        if "is" in entry or "absent" in entry:
            return (restored_entry(value, entry),)
        if value is MISSING or not entry:
            return made
        return (self._restored_list(value, entry) if back else self._restored_map(value, entry),)

    def _restored_list(self, items: Sequence[Any], entry: Mapping[str, Any]) -> list[Any]:
        by_name = {item[self.key]: fresh(item) for item in items}
        for name, lost in entry.get("by", {}).items():
            if name in by_name:
                patch(by_name[name], lost, None)
        kept, order = entry.get("kept", {}), entry.get("order", [])
        found = {
            name: by_name.get(name, kept.get(name))
            for name in [*order, *by_name]
            if name in by_name or name in kept
        }
        return [fresh(item) for item in found.values()]

    def _restored_map(self, entries: Mapping[str, Any], entry: Mapping[str, Any]) -> Any:
        made = {name: fresh(value) for name, value in entries.items()}
        for name, lost in entry.get("by", {}).items():
            if type(made.get(name)) is dict:
                patch(made[name], lost, None)
        return fresh(entry.get("kept", {})) | made

    def guards(self, lost: Lost, values: Ports, *, back: bool) -> Iterator[Guard]:
        yield from super().guards(lost, values, back=back)
        if by := self._entry(lost, back=back).get("by"):
            seen = self._seen(values[0], back=back)
            for name, inner in by.items():
                yield from guards(inner, seen.get(name, MISSING), None)

    def _seen(self, found: Any, *, back: bool) -> dict[str, Any]:
        """Convert a list or a map to the form of the other version.

        Return the values of the result by their keys.
        """
        if back:
            items = self._list(found) if type(found) is dict else []
            return {item[self.key]: item for item in items}
        return self._map(found) if type(found) is list else {}


def _inside(place: StructuralSchema | None) -> StructuralSchema | None:
    return place and (place.items or place.values)


def _keys(place: StructuralSchema | None) -> tuple[str, ...]:
    return place.keys if place is not None else ()


def renamed_keys(keys: Sequence[str], block: RuleBlock) -> tuple[str, ...]:
    """Translate `keys`, which identify a list item, to the field names of the version `to`."""
    moves = {rule.source: rule.target for rule in block.rules if isinstance(rule, MoveRule)}
    found = [moves.get((key,), (key,)) for key in keys]
    return tuple(path[0] for path in found) if all(len(path) == 1 for path in found) else ()
