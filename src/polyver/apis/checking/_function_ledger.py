"""The loss ledger of conversion paths with functions: observed on objects, field by field."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from polyver.apis.checking._ledger import FieldConversion, Ledger
from polyver.apis.checking.schema_paths import Inside, Place, places, show
from polyver.apis.conversion import Converter
from polyver.apis.conversion.paths import parse_path, pick
from polyver.apis.conversion.values import MISSING
from polyver.core.plain import Object
from polyver.languages.values.strings import same

__all__ = ["Observed"]


class Observed:
    """Counts for each field how conversions of objects treated it."""

    def __init__(
        self, converter: Converter, source: str, target: str, schema: Mapping[str, Any]
    ) -> None:
        self._converter = converter
        self.source = source
        self.target = target
        known = (_named(place) for place in places(schema, leaves=True))
        self._seen: dict[Place, dict[str, int]] = {place: {} for place in dict.fromkeys(known)}

    def see(self, obj: Object, made: Object) -> None:
        """Record an object of the source version, and its conversion to the target version."""
        visible = self._converter.visible(made)
        carried = self._converter.carried(made)
        lost = [parse_path(text) for text in carried.get(self.source, [])]
        for place, seen in self._seen.items():
            path = tuple(step for step in place if isinstance(step, str))
            value = pick(obj, path)
            if value is MISSING:
                continue
            if any(path[: len(each)] == each or each[: len(path)] == path for each in lost):
                word = "carried"
            else:
                word = "kept" if same(pick(visible, path), value) else "changed"
            seen[word] = seen.get(word, 0) + 1

    def ledger(self) -> Ledger:
        fates = tuple(_fate(show(place), seen) for place, seen in self._seen.items())
        return Ledger(self.source, self.target, fates, observed=True)


def _named(place: Place) -> Place:
    """Cut a path at its first list or map, as functions do not declare which items correspond."""
    unnamed = [number for number, step in enumerate(place) if isinstance(step, Inside)]
    return place[: unnamed[0]] if unnamed else place


def _fate(path: str, seen: Mapping[str, int]) -> FieldConversion:
    total = sum(seen.values())
    if not total:
        return FieldConversion(
            path, "transformed", rules=("function",), exact=False, why="not observed"
        )
    carried = seen.get("carried", 0)
    if carried == total:
        return FieldConversion(path, "carried", exact=False, why="the function does not restore it")
    why = f"preserved in {carried} of {total} objects" if carried else ""
    if seen.get("changed"):
        return FieldConversion(path, "transformed", rules=("function",), exact=not carried, why=why)
    return FieldConversion(path, "kept", (path,), exact=not carried, why=why)
