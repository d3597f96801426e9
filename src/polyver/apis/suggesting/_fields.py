"""The fields of a schema as a tree, for the search for the same field in another schema.

A path names only fields of objects. So a tree ends at lists and maps: the fields of their items
form trees of their own, and the rules for them are inside a rule `each`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final

from polyver.apis.conversion.paths import Path, show_path
from polyver.apis.suggesting._words import description_words, words_of_name
from polyver.core.plain import Schema
from polyver.kube.objects.schema.structure import META_FIELDS

__all__ = ["CONTAINERS", "SCALARS", "SchemaField", "fields_of", "shape_of_field"]

SCALARS: Final = ("string", "integer", "number", "boolean")
CONTAINERS: Final = ("object", "list", "map")
_MOST_FEATURES: Final = 256
"""The number of inner fields by which two objects are compared; bounds the cost."""


@dataclass(eq=False)
class SchemaField:
    """A field of a schema, with the fields inside of it."""

    path: Path
    schema: Schema
    required: bool = False
    parent: SchemaField | None = None
    children: list[SchemaField] = field(default_factory=list)

    @property
    def name(self) -> str:
        return self.path[-1]

    def __str__(self) -> str:
        return show_path(self.path)

    @cached_property
    def shape(self) -> str:
        return shape_of_field(self.schema)

    @property
    def inner(self) -> Schema:
        """The schema of the items of a list, or of the values of a map."""
        found: Schema = self.schema["items" if self.shape == "list" else "additionalProperties"]
        return found

    @cached_property
    def words(self) -> tuple[str, ...]:
        return words_of_name(self.name)

    @cached_property
    def prose(self) -> frozenset[str]:
        """The words of the description."""
        return description_words(str(self.schema.get("description") or ""))

    @cached_property
    def features(self) -> frozenset[str]:
        """The fields inside of this field, with their shapes; [] if it has none."""
        return frozenset(_features(self.schema))

    def within(self) -> Iterator[SchemaField]:
        """Yield this field and all fields inside of it, the outer ones first."""
        yield self
        for child in self.children:
            yield from child.within()


def fields_of(schema: Schema, *, root: bool = False) -> list[SchemaField]:
    """Return the outermost fields of a schema; they have the fields inside of them.

    With `root`, the schema is that of whole objects, which have metadata.
    """
    return _fields(schema, None, META_FIELDS if root else frozenset())


def _fields(
    schema: Schema, parent: SchemaField | None, hidden: frozenset[str]
) -> list[SchemaField]:
    required = schema.get("required") or ()
    at = parent.path if parent else ()
    found = []
    for name, each in (schema.get("properties") or {}).items():
        if name not in hidden:
            made = SchemaField((*at, name), each, name in required, parent)
            made.children = _fields(each, made, frozenset())
            found.append(made)
    return found


def shape_of_field(schema: Schema) -> str:
    """Return the shape of a value: a scalar type, object, list, map, open or any.

    `open` is an object with any fields; `any` is a value of any type.

    >>> shape_of_field({"type": "object", "additionalProperties": {"type": "string"}})
    'map'
    """
    if schema.get("x-kubernetes-int-or-string"):
        return "int-or-string"
    kind = schema.get("type") or "any"
    if kind == "array":
        return "list" if isinstance(schema.get("items"), Mapping) else "any"
    if kind != "object":
        return str(kind)
    if schema.get("properties"):
        return "object"
    return "map" if isinstance(schema.get("additionalProperties"), Mapping) else "open"


def _features(schema: Schema) -> Iterator[str]:
    """Yield the inner fields of a schema with their shapes, the outer ones first."""
    waiting: deque[tuple[str, Any]] = deque([("", schema)])
    count = 0
    while waiting and count < _MOST_FEATURES:
        at, here = waiting.popleft()
        inside = [(f"{at}.{name}", each) for name, each in (here.get("properties") or {}).items()]
        inner = [here.get(keyword) for keyword in ("items", "additionalProperties")]
        inside += [(f"{at}[]", each) for each in inner if isinstance(each, Mapping)]
        for path, each in sorted(inside, key=lambda pair: pair[0]):
            yield f"{path}:{shape_of_field(each)}"
            count += 1
            waiting.append((path, each))
