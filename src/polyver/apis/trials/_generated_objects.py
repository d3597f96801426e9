"""Generate test objects, and shrink an object that shows a failure.

The library Hypothesis generates some objects from a schema. It covers patterns, formats and unusual
strings, but is slow. `Mixer` builds all other objects from the values in these objects, and from
constants in the rules and functions under test, which is much faster. To shrink an object, polyver
removes and simplifies its values as long as the failure still occurs.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from polyver.apis.checking.schema_paths import ITEM, VALUE, Place
from polyver.core import PolyverError
from polyver.core.plain import Object, Schema
from polyver.kube.objects.converted_metadata import fresh
from polyver.kube.objects.schema import Schema as Compiled
from polyver.kube.objects.schema import compile_schema
from polyver.languages.values.strings import same

__all__ = ["MissingHypothesis", "Mixer", "drawn", "shrunk"]

_TRIES = 20
_META = ("apiVersion", "kind", "metadata")
_TYPES: Mapping[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
}


class MissingHypothesis(PolyverError):
    """Hypothesis is not installed, so no objects can be generated."""

    def __init__(self) -> None:
        hint = "pip install hypothesis, or use --examples 0"
        super().__init__("generating objects needs hypothesis, which is not installed", hint=hint)


def drawn(schema: Schema, *, count: int, seed: int, head: Object) -> list[Object]:
    """Generate at most `count` objects with Hypothesis; the same seed gives the same objects.

    `head` has the apiVersion and the kind of the objects.
    """
    try:
        import hypothesis
    except ImportError:
        raise MissingHypothesis from None
    from polyver.apis.trials._provider import BACKEND
    from polyver.apis.trials.strategies import objects_from_schema

    found: list[Object] = []

    @hypothesis.seed(seed)
    @hypothesis.settings(
        max_examples=count,
        backend=BACKEND,
        database=None,
        deadline=None,
        phases=[hypothesis.Phase.generate],
        suppress_health_check=[*hypothesis.HealthCheck],
    )
    @hypothesis.given(
        objects_from_schema(schema, api_version=head["apiVersion"], kind=head["kind"])
    )
    def draw(obj: Object) -> None:
        found.append(fresh(obj))

    try:
        draw()
    except hypothesis.errors.Unsatisfiable:
        fact = f"no object could be generated for the schema of {head['apiVersion']}"
        raise PolyverError(fact) from None
    return found


class Mixer:
    """Builds objects of one version from the values that other objects have at the same paths."""

    def __init__(
        self, schema: Schema, objects: Sequence[Object], words: Sequence[Any], *, seed: int
    ) -> None:
        self._schema = schema
        self._compiled: Compiled = compile_schema(schema)
        self._objects = objects
        self._words = words
        self._random = random.Random(seed)  # noqa: S311 - to be the same each time
        self._pools: dict[Place, list[Any]] = {}
        self._share = 0.5
        for obj in objects:
            self._harvest({k: v for k, v in obj.items() if k not in _META}, schema, ())

    def _harvest(self, value: Any, schema: Schema, place: Place) -> None:
        """Collect the values in an object, by the paths at which they are."""
        fields, others = schema.get("properties") or {}, schema.get("additionalProperties")
        if type(value) is dict:
            for name, each in value.items():
                if name in fields:
                    self._harvest(each, fields[name], (*place, name))
                elif isinstance(others, Mapping):
                    self._pool((*place, VALUE, "key")).append(name)
                    self._harvest(each, others, (*place, VALUE))
        items = schema.get("items")
        if type(value) is list and isinstance(items, Mapping):
            for each in value:
                self._harvest(each, items, (*place, ITEM))
        self._pool(place).append(value)

    def _pool(self, place: Place) -> list[Any]:
        return self._pools.setdefault(place, [])

    def objects(self) -> Iterator[Object]:
        """Yield objects without end.

        The first object has every field. The next ones are the objects that were passed to the
        Mixer, and all later ones are newly mixed.

        The passed objects seldom have a value for an optional field that is inside of another
        optional field. Without the first object, a short run might not test such a field.
        """
        yield self._mixed(shares=(1.0,))
        yield from map(self._with_metadata, self._objects)
        while True:
            yield self._with_metadata(self._mixed())

    def _mixed(self, shares: Sequence[float] = (0.1, 0.5, 0.5, 0.9, 1.0)) -> Object:
        """Build a valid object with some of the optional fields.

        Each optional field is added with the same probability, which is chosen from `shares`.
        """
        head = self._random.choice(self._objects)
        about = {name: head[name] for name in _META if name in head}
        for _ in range(_TRIES):
            self._share = self._random.choice(shares)
            made = about | self._object(self._schema, ())
            if not self._compiled.validate(made):
                return made
        return head

    def _with_metadata(self, obj: Object) -> Object:
        chance = self._random.random()
        if chance < 0.02:  # API servers send these, too
            obj = {name: value for name, value in obj.items() if name in _META}
        more = self._random.choice(_METADATA)
        made: Object = {**fresh(obj), "metadata": {**fresh(obj.get("metadata", {})), **fresh(more)}}
        return made

    def value(self, place: Place, schema: Schema) -> Any:
        """Return a random value for a path."""
        pool = self._pools.get(place, ())
        if schema.get("nullable") and self._random.random() < 0.05:
            return None
        if schema.get("enum"):
            return self._random.choice(schema["enum"])
        match schema.get("type"):
            case "object" if schema.get("properties") or schema.get("additionalProperties"):
                return self._object(schema, place)
            case "array" if isinstance(schema.get("items"), Mapping):
                return self._list(schema, place)
            case _:
                return self._plain(schema, pool)

    def _plain(self, schema: Schema, pool: Sequence[Any]) -> Any:
        kinds = _TYPES.get(schema.get("type") or "", ())
        words = [each for each in self._words if type(each) in kinds]
        if kinds == (bool,):
            return self._random.random() < 0.5
        if words and (not pool or self._random.random() < 0.5):
            return self._random.choice(words)
        if int in kinds and self._random.random() < 0.3:
            return self._random.randint(-3, 100)
        if pool:
            return fresh(self._random.choice(pool))
        return self._random.choice(("", "a", "b")) if str in kinds else 0 if kinds else {}

    def _object(self, schema: Schema, place: Place) -> Object:
        required = schema.get("required") or ()
        made: Object = {}
        for name, each in (schema.get("properties") or {}).items():
            if not place and name in _META:
                continue
            if name in required or self._random.random() < self._share:
                made[name] = self.value((*place, name), each)
        others = schema.get("additionalProperties")
        if isinstance(others, Mapping):
            names = [*self._pools.get((*place, VALUE, "key"), ()), "a", "b"]
            names += [each for each in self._words if type(each) is str and each]
            for _ in range(self._random.choice((0, 1, 1, 2, 3))):
                made[self._random.choice(names)] = self.value((*place, VALUE), others)
        return made

    def _list(self, schema: Schema, place: Place) -> list[Any]:
        least, most = schema.get("minItems") or 0, schema.get("maxItems")
        size = least + self._random.choice((0, 1, 1, 2, 3))
        size = size if most is None else min(size, most)
        made = [self.value((*place, ITEM), schema["items"]) for _ in range(size)]
        if schema.get("x-kubernetes-list-type") in ("set", "map"):
            keys = schema.get("x-kubernetes-list-map-keys") or ()
            made = _distinct(made, keys)
        return made


def _distinct(items: list[Any], keys: Sequence[str]) -> list[Any]:
    """Return the items without duplicates, as the list types `set` and `map` require."""
    kept: list[Any] = []
    for item in items:
        mark = [item.get(key) for key in keys] if keys else item
        if not any(same(mark, [e.get(key) for key in keys] if keys else e) for e in kept):
            kept.append(item)
    return kept


_METADATA: Sequence[Object] = (
    {},
    {},
    {"uid": "6c1f8a7e-0000-4000-8000-000000000001", "namespace": "default", "generation": 3},
    {"annotations": {}},
    {"annotations": {"ex.io/a": "b"}, "labels": {"app": "a"}, "finalizers": ["ex.io/keep"]},
)


# Shrinking.


_MOST_TRIES = 3000


def shrunk(obj: Object, is_bad: Callable[[Object], bool], *, tries: int = _MOST_TRIES) -> Object:
    """Return the smallest object found for which `is_bad` still returns True, starting from `obj`.

    At most `tries` smaller objects are tried.

    >>> shrunk({"a": [1, 5, 2], "b": "x"}, lambda obj: 5 in obj.get("a", []))
    {'a': [5]}
    """
    left = tries
    while left > 0:
        for simpler in _simpler_object(obj, whole=True):
            left -= 1
            if is_bad(simpler):
                obj = simpler
                break
            if left <= 0:
                break
        else:
            break
    return obj


def _simpler(value: Any) -> Iterator[Any]:
    """Yield simpler values than this value; the simplest value is first."""
    match value:
        case dict():
            yield from _simpler_object(value)
        case list():
            yield from _simpler_list(value)
        case str():
            yield from _simpler_text(value)
        case bool():
            if value:
                yield False
        case int() | float():
            yield from _simpler_number(value)


_FIXED = ("apiVersion", "kind", "metadata")
_NAMED = {"name": "a"}


def _simpler_object(value: Object, *, whole: bool = False) -> Iterator[Object]:
    names = [name for name in value if not whole or name not in _FIXED]
    if whole and "metadata" in value and value["metadata"] != _NAMED:
        yield {**value, "metadata": _NAMED}
    if len(names) > 2:
        for half in (names[: len(names) // 2], names[len(names) // 2 :]):
            yield {name: each for name, each in value.items() if name not in half}
    for name in names:
        yield {key: each for key, each in value.items() if key != name}
    for name in names:
        for each in _simpler(value[name]):
            yield {**value, name: each}


def _simpler_list(value: list[Any]) -> Iterator[list[Any]]:
    if len(value) > 2:
        yield value[: len(value) // 2]
        yield value[len(value) // 2 :]
    for number in range(len(value)):
        yield [*value[:number], *value[number + 1 :]]
    for number, item in enumerate(value):
        for each in _simpler(item):
            yield [*value[:number], each, *value[number + 1 :]]


def _simpler_text(value: str) -> Iterator[str]:
    if value:
        yield ""
    if len(value) > 1:
        yield "a"
        yield value[: len(value) // 2]
        yield value[len(value) // 2 :]
        yield from (value[:n] + value[n + 1 :] for n in range(min(len(value), 20)))
    if not value.isascii():
        yield "".join(char if char.isascii() and char.isprintable() else "a" for char in value)


def _simpler_number(value: float) -> Iterator[float]:
    nearer = [0, 1, *([int(value)] if abs(value) < 1e15 else []), _half(value), abs(value)]
    for each in nearer:
        if _size(each) < _size(value):
            yield each
    if value > 1:
        yield value - 1


def _half(value: float) -> float:
    return value // 2 if isinstance(value, int) or abs(value) < 1 else value / 2


def _size(value: float) -> tuple[float, bool, bool]:
    """Return a sort key by which simple numbers come first.

    A sign or a fraction makes a number less simple.
    """
    return (abs(value), value < 0, isinstance(value, float))
