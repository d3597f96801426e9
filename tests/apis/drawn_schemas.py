"""Schemas that can be drawn, versions of them that differ at any depth, and objects that fit."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from hypothesis import note
from hypothesis import strategies as st
from tests.apis.conversions import VALUES, drawn_rules

from polyver.apis.conversion import Converter, DeclaredEdge, FunctionEdge

Object = dict[str, Any]
Schema = dict[str, Any]

_NAMES = ["a", "b", "x", "n", "m", "name", "value", "cmd"]
_TEXTS = ["", "a", "b", "b:1", "5 *", "Allow", "allow", "08", "7", "cron"]
PRESERVES = "x-kubernetes-preserve-unknown-fields"


@cache
def _scalars() -> st.SearchStrategy[Schema]:
    return st.sampled_from(
        [
            {"type": "string"},
            {"type": "string"},
            {"type": "string", "default": "a"},
            {"type": "string", "nullable": True},
            {"type": "integer"},
            {"type": "integer", "default": 7},
            {"type": "number"},
            {"type": "boolean"},
            {"x-kubernetes-int-or-string": True},
            {PRESERVES: True},
        ]
    )


@cache
def drawn_places(depth: int = 0) -> st.SearchStrategy[Schema]:
    """What a schema may say of one place."""
    if depth > 2:
        return _scalars()
    inside = st.deferred(lambda: drawn_places(depth + 1))
    fields = _properties(depth)
    embedded: list[Schema] = [{PRESERVES: True}, {"properties": {"a": {"type": "string"}}}]
    return st.one_of(
        _scalars(),
        st.builds(_object, fields, st.sampled_from(_FLAGS)),
        st.builds(_object, fields, st.just({})),
        st.builds(lambda values: {"type": "object", "additionalProperties": values}, inside),
        st.builds(lambda items: {"type": "array", "items": items}, inside),
        st.builds(_keyed, fields),
        st.booleans().map(lambda more: {"type": "object", "additionalProperties": more}),
        st.just({"type": "object", PRESERVES: True}),
        st.sampled_from(embedded).map(
            lambda more: {"type": "object", "x-kubernetes-embedded-resource": True, **more}
        ),
    )


_FLAGS: list[Schema] = [{"default": {}}, {PRESERVES: True}, {"nullable": True}]


def _object(fields: dict[str, Schema], flags: Schema) -> Schema:
    return {"type": "object", "properties": fields, **flags}


def _keyed(fields: dict[str, Schema]) -> Schema:
    item = _object(fields | {"name": {"type": "string"}}, {})
    keys = {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]}
    return {"type": "array", "items": item, **keys}


@cache
def _properties(depth: int) -> st.SearchStrategy[dict[str, Schema]]:
    return st.dictionaries(
        st.sampled_from(_NAMES), st.deferred(lambda: drawn_places(depth + 1)), max_size=3
    )


@st.composite
def _changed(draw: st.DrawFn, schema: Schema, depth: int = 0) -> Schema:
    """The same place in another version: a little else, or something else altogether."""
    if depth and draw(st.integers(0, 7)) == 0:
        return draw(drawn_places(depth))
    made = dict(schema)
    if "properties" in made:
        fields = {
            name: draw(_changed(each, depth + 1))
            for name, each in made["properties"].items()
            if draw(st.integers(0, 4))
        }
        if draw(st.integers(0, 2)) == 0:
            fields |= draw(_properties(depth))
        made["properties"] = fields
    for name in ("items", "additionalProperties"):
        if isinstance(made.get(name), dict):
            made[name] = draw(_changed(made[name], depth + 1))
    if "x-kubernetes-list-map-keys" in made and "name" not in made["items"].get("properties", {}):
        del made["x-kubernetes-list-map-keys"], made["x-kubernetes-list-type"]
    return made


@st.composite
def drawn_schemas(draw: st.DrawFn, versions: Sequence[str]) -> dict[str, Schema]:
    """A schema for each version; now and then one is not known."""
    spec: Schema = {"type": "object", "properties": draw(_properties(0))}
    root: Schema = {"type": "object", "properties": {"spec": spec}}
    if draw(st.booleans()):
        root["properties"]["status"] = draw(drawn_places(1))
    found = {version: draw(_changed(root)) for version in versions}
    return {name: each for name, each in found.items() if draw(st.integers(0, 9))}


def fitting(schema: Schema | bool | None) -> st.SearchStrategy[Any]:
    """Values that fit a place, mostly."""
    if not isinstance(schema, Mapping):
        return VALUES
    exact = _exact(schema)
    if schema.get("nullable"):
        exact |= st.none()
    return st.one_of(exact, exact, exact, exact, VALUES)


def _exact(schema: Schema) -> st.SearchStrategy[Any]:
    match schema.get("type"):
        case "array":
            return st.lists(fitting(schema.get("items")), max_size=3)
        case "object":
            return _fields(schema)
        case kind:
            return _SCALARS.get(kind or "", VALUES)


_SCALARS: dict[str, st.SearchStrategy[Any]] = {
    "string": st.sampled_from(_TEXTS),
    "integer": st.integers(-3, 2500),
    "number": st.sampled_from([0, 1, 1.0, 0.5, 1000.0, -3]),
    "boolean": st.booleans(),
}


def _fields(schema: Schema) -> st.SearchStrategy[Object]:
    known = {name: fitting(each) for name, each in schema.get("properties", {}).items()}
    if schema.get("x-kubernetes-embedded-resource"):
        known |= {
            "apiVersion": st.just("v1"),
            "kind": st.just("Pod"),
            "metadata": st.just({"name": "p", "labels": {"a": "b"}}),
        }
    made = st.fixed_dictionaries({}, optional=known)
    others = schema.get("additionalProperties", schema.get(PRESERVES))
    if others is None:
        return made
    more = st.dictionaries(st.sampled_from(_NAMES), fitting(others), max_size=2)
    return st.builds(lambda one, two: two | one, made, more)


_METADATA = st.sampled_from(
    [
        {"name": "a"},
        {"name": "a", "annotations": {}},
        {"name": "a", "annotations": {"b": "c", "ex.io/a": "Allow"}, "labels": {"b": "7"}},
    ]
)


@st.composite
def objects_of(draw: st.DrawFn, drawn: Drawn, version: str) -> Object:
    """An object of a version as an API server may have it."""
    known, schema = drawn.converter, drawn.schemas.get(version)
    made = {"metadata": draw(_METADATA)}
    made |= draw(_fields(schema) if schema else _FREE)
    made = copy.deepcopy(made)
    made |= {"apiVersion": f"{known.group}/{version}", "kind": known.kind}
    if version in known.schemas:
        known.schemas[version].prune(made)
        if draw(st.booleans()):
            known.schemas[version].default(made)
    return made


_SPECS = st.dictionaries(st.sampled_from(_NAMES), VALUES, max_size=4) | VALUES
_FREE = st.fixed_dictionaries({}, optional={"spec": _SPECS, "status": VALUES})


@dataclass(frozen=True)
class Drawn:
    """A converter, and the schemas that it knows."""

    converter: Converter
    schemas: dict[str, Schema]

    @property
    def versions(self) -> st.SearchStrategy[str]:
        return st.sampled_from(self.converter.versions)


@st.composite
def known_converters(draw: st.DrawFn, *, functions: bool = True) -> Drawn:
    """Trees of up to four versions with schemas, by any rules, and by functions."""
    versions = ["v1", "v2", "v3", "v4"][: draw(st.integers(2, 4))]
    schemas = draw(drawn_schemas(versions))
    edges: list[DeclaredEdge | FunctionEdge] = []
    for number, target in enumerate(versions[1:], 1):
        edge = DeclaredEdge(
            draw(st.sampled_from(versions[:number])), target, draw(drawn_rules()).block()
        )
        called = functions and draw(st.integers(0, 5)) == 0
        note(f"{edge.source} to {target}: {edge.block.rules}{', as functions' if called else ''}")
        edges.append(_as_functions(edge, schemas) if called else edge)
    note(f"schemas: {schemas}")
    made = Converter("stable.example.com", "CronTab", versions, edges, schemas=schemas)
    return Drawn(made, schemas)


def _as_functions(edge: DeclaredEdge, schemas: Mapping[str, Schema]) -> FunctionEdge:
    """A pair of functions that loses whatever rules lose."""
    pair = [edge.source, edge.target]
    known = {name: each for name, each in schemas.items() if name in pair}
    inner = Converter("ex.io", "Inner", pair, [edge], schemas=known)
    [there], [back] = inner.tree.way(*pair), inner.tree.way(*pair[::-1])
    return FunctionEdge(edge.source, edge.target, there.convert.run, back.convert.run)


Place = tuple[str | int, ...]


def places_in(value: Any, at: Place = ()) -> Iterator[Place]:
    """Where something is inside of a value, and the value itself."""
    yield at
    if isinstance(value, dict | list):
        for key, inside in value.items() if isinstance(value, dict) else enumerate(value):
            yield from places_in(inside, (*at, key))


def found_at(value: Any, place: Place) -> Any:
    for key in place:
        value = value[key]
    return value


@st.composite
def edited(draw: st.DrawFn, obj: Object) -> Object:
    """An object after somebody changed what they see of it, here and there."""
    made = copy.deepcopy(obj)
    for _ in range(draw(st.integers(1, 3))):
        visible = {name: value for name, value in made.items() if name in ("spec", "status")}
        places = [place for place in places_in(visible) if place]
        if not places:
            made["spec"] = draw(VALUES)
            continue
        place = draw(st.sampled_from(places))
        holder, key = found_at(made, place[:-1]), place[-1]
        if draw(st.integers(0, 3)) == 0:
            del holder[key]
        else:
            holder[key] = draw(_edits(holder[key]) | VALUES)
    return made


def _edits(value: Any) -> st.SearchStrategy[Any]:
    """What an edit makes of a value: a field more, items in another order, more or fewer."""
    if isinstance(value, dict):
        more = st.dictionaries(st.sampled_from(_NAMES), VALUES, max_size=1)
        return more.map(lambda added: copy.deepcopy({**value, **added}))
    if isinstance(value, list) and value:
        items = st.lists(st.sampled_from(value) | VALUES, max_size=len(value) + 1)
        return (items | st.just(value[::-1]) | VALUES.map(lambda one: [one, *value])).map(
            copy.deepcopy
        )
    return VALUES
