"""A schema and another that differs from it in a few places, for tests that compare the two."""

from __future__ import annotations

import copy
from typing import Any

from hypothesis import strategies as st
from tests.kube.drawn import Maker, places

from polyver.kube.objects.schema import check_schema

Json = dict[str, Any]
Changed = tuple[Json, Json, Maker]

# What a place may come to say; much of it makes no sense there, and such schemas are left out.
SAYINGS: list[Json] = [
    *({"minimum": each} for each in (-5, 1, 2.2)),
    {"minimum": 2.1, "exclusiveMinimum": True},
    *({"maximum": each} for each in (3, 100, 1e21)),
    *({"multipleOf": each} for each in (1, 2, 10)),
    {"enum": ["a", "b", "ab", "x1", 1, 5, True]},
    {"minLength": 1},
    {"maxLength": 100},
    {"minItems": 1},
    {"maxItems": 50},
    {"maxProperties": 1},
    {"maxProperties": 9},
    *({"format": form} for form in ("date", "int32", "int64", "double")),
    {"nullable": True},
    {"pattern": "a"},
    {"additionalProperties": True},
    {"additionalProperties": False},
    {"x-kubernetes-preserve-unknown-fields": True},
    {"x-kubernetes-embedded-resource": True},
    {"x-kubernetes-list-type": "set"},
    {"anyOf": [{"minLength": 1}, {"minimum": 0}, {"minItems": 0}]},
    {"allOf": [{"minimum": 0}]},
    {"oneOf": [{"minLength": 1}]},
    {"not": {"required": ["b"]}},
    {"default": "a"},
    {"default": 5},
    {"default": {}},
]
BOUNDS = "minimum maximum minLength maxLength minItems maxItems minProperties maxProperties".split()


class Mutator:
    """Changes a schema by chance."""

    def __init__(self, maker: Maker) -> None:
        self._maker, self._dice = maker, maker.dice

    def changed(self, schema: Json) -> Json:
        made = copy.deepcopy(schema)
        for _ in range(self._dice.choice([1, 1, 2, 3])):
            place = self._dice.choice([each for each in places(made) if each is not made])
            self._dice.choice(self._changes)(self, place)
        return made

    def _say(self, place: Json) -> None:
        place |= copy.deepcopy(self._dice.choice(SAYINGS))

    def _unsay(self, place: Json) -> None:
        keywords = [each for each in place if each not in ("type", "items")]
        if keywords:
            del place[self._dice.choice(keywords)]

    def _widen(self, place: Json) -> None:
        if place.get("enum"):
            place["enum"] = [*place["enum"], "zz"]
        if place.get("required"):
            place["required"] = place["required"][1:]
        if place.get("type") == "integer":
            place["type"] = "number"

    def _move(self, place: Json) -> None:
        for bound in (each for each in BOUNDS if each in place):
            place[bound] += self._dice.choice([-1, 1, 0.5 if "imum" in bound else 2])

    def _add(self, place: Json) -> None:
        if place.get("type") != "object":
            return
        name = self._dice.choice("abcdef")
        inner = self._maker.with_defaults({"properties": {name: self._maker.schema(1)}})
        filled = {name: {"type": "integer", "default": 1}}
        added = filled if self._maker.chance(0.4) else inner["properties"]
        place["properties"] = place.get("properties", {}) | added
        if self._maker.chance(0.3):
            place["required"] = sorted({*place.get("required", ()), name})

    def _drop(self, place: Json) -> None:
        if place.get("properties"):
            del place["properties"][self._dice.choice([*place["properties"]])]

    def _choose(self, place: Json) -> None:
        for name in ("anyOf", "allOf", "oneOf"):
            if len(place.get(name, ())) > 1:
                place[name] = place[name][1:]
            elif name in place:
                place[name] = [*place[name], self._maker._option(place)]

    _changes = (_say, _say, _unsay, _unsay, _widen, _move, _add, _add, _drop, _choose)


@st.composite
def changed_schemas(draw: st.DrawFn) -> Changed:
    """A schema before and after, and what draws objects of it; a server may refuse either."""
    maker = Maker(0)
    maker.dice = draw(st.randoms(use_true_random=False))
    before = maker.with_defaults({"type": "object", "properties": {"spec": maker.schema()}})
    return before, Mutator(maker).changed(before), maker


def is_taken(schema: Json) -> bool:
    return not check_schema(schema, "schema")
