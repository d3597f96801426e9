"""The values that a conversion loses, as data that is preserved and restored.

`Lost` is plain data in the format of preserved fields. It has an entry for each path with a lost
value. The entry contains the value of the field (`is`), or states that the field did not exist
(`absent`). The entry of a list contains the lost values of its items, by the key of each item
(`by`) or, if there are no unique keys, by its index (`at`).

Some lost values may be restored only as long as certain visible fields are unchanged. The entry of
such a lost value has a guard: the fingerprint of these visible fields (`if`), or of all visible
fields (`whole`). Guards are set last, when the conversion is complete and the final form of the
object is known.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import msgspec

from polyver.apis.conversion.paths import Path, parse_path, pick, put, show_path
from polyver.apis.conversion.values import MISSING, fingerprint
from polyver.core.plain import Object
from polyver.kube.objects.converted_metadata import fresh
from polyver.kube.objects.schema.structure import StructuralSchema
from polyver.languages.values.strings import same

__all__ = [
    "Guard",
    "Lost",
    "delta",
    "guards",
    "has_guards",
    "item_guards",
    "item_losses",
    "item_names",
    "patch",
    "patch_items",
    "place_of",
    "positions",
    "was",
    "without",
]

Lost = dict[str, Any]
Guard = tuple[dict[str, Any], str, str]
"""The guard of an entry, for comparing the stored fingerprint with the current one.

The parts are: an entry of `Lost`, the key in the entry under which the fingerprint is stored (`if`
or `whole`), and the fingerprint of the fields of the current object.
"""


def was(value: Any, *, guarded: bool) -> dict[str, Any]:
    """Build the entry for a field that had this value; MISSING means that the field did not exist.

    With `guarded`, the entry gets an empty guard, which is set later.
    """
    entry: dict[str, Any] = {"absent": True} if value is MISSING else {"is": fresh(value)}
    return entry | {"if": ""} if guarded else entry


def delta(have: Object, want: Object, place: StructuralSchema | None) -> Lost:
    """Return the entries that `patch` needs to turn the object `have` into `want`."""
    lost: Lost = {}
    _compare(have, want, place, (), lost)
    return lost


def _compare(
    have: Object, want: Object, place: StructuralSchema | None, at: Path, lost: Lost
) -> None:
    for name, value in want.items():
        path, inside = (*at, name), place and place.child(name)
        if name not in have:
            lost[show_path(path)] = {"is": fresh(value)}
        elif type(have[name]) is dict and type(value) is dict:
            _compare(have[name], value, inside, path, lost)
        elif not same(have[name], value):
            entry = _compare_lists(have[name], value, inside)
            lost[show_path(path)] = entry or {"is": fresh(value), "whole": ""}
    for name in have:
        if name not in want:
            lost[show_path((*at, name))] = {"absent": True, "whole": ""}


def _compare_lists(have: Any, want: Any, place: StructuralSchema | None) -> dict[str, Any]:
    """Build the entry for two lists if only fields inside of their items differ; otherwise {}."""
    if type(have) is not list or type(want) is not list or len(have) != len(want):
        return {}
    pairs = list(zip(have, want, strict=True))
    if not all(type(one) is dict is type(other) or same(one, other) for one, other in pairs):
        return {}
    inside = place.items if place is not None else None
    losses = [delta(one, other, inside) if type(one) is dict else {} for one, other in pairs]
    return item_losses(losses, have, want, place.keys if place is not None else ())


def item_losses(
    losses: Sequence[Lost], have: Sequence[Any], want: Sequence[Any], keys: Sequence[str]
) -> Lost:
    """Build the entry for a list whose items have lost values.

    The entry names each item by its key if the keys are unique; otherwise by its index.
    """
    if not any(losses):
        return {}
    names = item_names(want, keys)
    if names is not None and names == item_names(have, keys):
        return {"by": {name: lost for name, lost in zip(names, losses, strict=True) if lost}}
    return {"at": {str(n): {"in": lost, "if": ""} for n, lost in enumerate(losses) if lost}}


def item_names(items: Sequence[Any], keys: Sequence[str]) -> list[str] | None:
    """Return the key of each item of a list; None if an item has no key, or two have the same key.

    >>> item_names([{"name": "a"}, {"name": "b"}], ["name"])
    ['a', 'b']
    """
    if not keys:
        return None
    names = [_name(item, keys) for item in items]
    if None in names or len({*names}) < len(names):
        return None
    return [name for name in names if name is not None]


def _name(item: Any, keys: Sequence[str]) -> str | None:
    values = [item.get(key) if type(item) is dict else None for key in keys]
    if any(type(value) not in (str, int, bool) for value in values):
        return None
    if len(values) == 1 and type(values[0]) is str and not values[0].startswith("="):
        return values[0]
    return "=" + msgspec.json.encode(values).decode()


def patch(obj: Object, lost: Mapping[str, Any], place: StructuralSchema | None) -> None:
    """Write the lost values in `lost` to an object, in place."""
    for text, entry in lost.items():
        path = parse_path(text)
        if "absent" in entry and "is" not in entry:
            holder = pick(obj, path[:-1])
            if type(holder) is dict:
                holder.pop(path[-1], None)
            continue
        found = pick(obj, path)
        if "is" in entry:
            if found is MISSING or "if" in entry or "whole" in entry:
                put(obj, path, fresh(entry["is"]))
            elif type(found) is dict is type(entry["is"]):
                _fill(found, entry["is"])
        elif type(found) is list:
            inside = place_of(place, path)
            keys = inside.keys if inside is not None else ()
            patch_items(found, entry, keys, partial(patch, place=inside and inside.items))


def place_of(place: StructuralSchema | None, path: Path) -> StructuralSchema | None:
    """Return the schema at a path; return None if no schema covers the path."""
    for name in path:
        place = place and place.child(name)
    return place


def patch_items(
    items: list[Any],
    entry: Mapping[str, Any],
    keys: Sequence[str],
    restore: Callable[[Any, Lost], Any],
) -> None:
    """Restore the lost values of a list's items in place.

    `restore` changes an item in place, or returns a replacement for the item.
    """
    for number, lost in _matched(items, entry, keys):
        if type(items[number]) is dict:
            restored = restore(items[number], lost)
            if restored is not None:
                items[number] = restored


def _matched(
    items: Sequence[Any], entry: Mapping[str, Any], keys: Sequence[str]
) -> Iterator[tuple[int, Lost]]:
    if "by" in entry:
        places: dict[str | None, list[int]] = {}
        for number, item in enumerate(items):
            places.setdefault(_name(item, keys), []).append(number)
        for name, lost in entry["by"].items():
            if len(places.get(name, ())) == 1:
                yield places[name][0], lost
    for number, kept in entry.get("at", {}).items():
        if int(number) < len(items):
            yield int(number), kept["in"]


def _fill(have: Object, more: Mapping[str, Any]) -> None:
    for name, value in more.items():
        if name not in have:
            have[name] = fresh(value)
        elif type(have[name]) is dict is type(value):
            _fill(have[name], value)


def guards(lost: Lost, view: Any, place: StructuralSchema | None) -> Iterator[Guard]:
    """Yield the guards of those lost fields that no rule names.

    The fingerprints are computed from the object `view`.
    """
    for text, entry in lost.items():
        if "whole" in entry:
            yield entry, "whole", fingerprint([_visible(view)])
        elif "by" in entry or "at" in entry:
            path = parse_path(text)
            inside = place_of(place, path)
            yield from item_guards(
                entry,
                pick(view, path),
                inside.keys if inside is not None else (),
                partial(guards, place=inside and inside.items),
            )


def item_guards(
    entry: dict[str, Any],
    items: Any,
    keys: Sequence[str],
    inside: Callable[[Lost, Any], Iterator[Guard]],
) -> Iterator[Guard]:
    """Yield the guards of the lost values in the items of a list.

    `inside` yields the guards of the values that one item has lost.
    """
    found = items if type(items) is list else []
    for number, lost in _matched(found, {"by": entry.get("by", {})}, keys):
        yield from inside(lost, found[number])
    for number, kept in entry.get("at", {}).items():
        item = found[int(number)] if int(number) < len(found) else MISSING
        yield kept, "if", fingerprint([item])


def has_guards(lost: Lost) -> bool:
    """Report whether an entry, or an entry inside of it, has a guard."""
    return any(map(_is_guarded, lost.values()))


def _is_guarded(entry: dict[str, Any]) -> bool:
    if "if" in entry or "whole" in entry or "at" in entry:
        return True
    inside = [entry["first"]] if "first" in entry else []
    if any(map(_is_guarded, inside)) or has_guards(entry.get("in", {})):
        return True
    return any(map(has_guards, entry.get("by", {}).values()))


def positions(lost: Lost, at: str = "") -> Iterator[tuple[str, str]]:
    """Yield the lists whose items are known only by their position, and a lost field of the items.

    `at` is the path of `lost`, in which `[]` stands for an item of a list.

    >>> list(positions({"spec.ports": {"at": {"0": {"in": {"name": {"is": "a"}}, "if": ""}}}}))
    [('spec.ports[]', 'name')]
    """
    for path, entry in lost.items():
        where = f"{at}.{path}" if at else path
        for kept in entry.get("at", {}).values():
            yield from ((f"{where}[]", part) for part in kept["in"])
        for inner in entry.get("by", {}).values():
            yield from positions(inner, f"{where}[]")
        yield from positions(entry.get("in", {}), where)


def without(lost: Lost, stale: Collection[int]) -> Lost:
    """Return `lost` without some entries, and without entries that become empty.

    `stale` has the `id()` of each entry to remove: its guard does not match any more.
    """
    kept: Lost = {}
    for path, entry in lost.items():
        if id(entry) not in stale and (left := _entry_without(entry, stale)):
            kept[path] = left
    return kept


def _entry_without(entry: dict[str, Any], stale: Collection[int]) -> dict[str, Any]:
    left = dict(entry)
    for name in ("in", "first"):
        if name in left:
            left[name] = (
                without(left[name], stale) if name == "in" else _entry_without(left[name], stale)
            )
    if "by" in left:
        left["by"] = {
            name: each for name, lost in left["by"].items() if (each := without(lost, stale))
        }
    if "at" in left:
        left["at"] = {
            name: {**kept, "in": without(kept["in"], stale)}
            for name, kept in left["at"].items()
            if id(kept) not in stale
        }
    return {name: value for name, value in left.items() if value or name not in _NESTED}


_NESTED = ("in", "first", "by", "at")


def _visible(view: Any) -> Any:
    if type(view) is not dict or "metadata" not in view:
        return view
    return {name: value for name, value in view.items() if name != "metadata"}
