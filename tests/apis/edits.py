"""Schemas with usual names, and changes of them for which one conversion rule is right."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st

Schema = dict[str, Any]

_THINGS = ["cache", "backend", "gateway", "probe", "volume", "queue", "worker", "listener"]
_TRAITS = ["Path", "Mode", "Limit", "Region", "Owner", "Label", "Quota", "Zone"]
_WORDS = {"Always": "always", "IfNotPresent": "if-not-present", "Never": "never"}


@dataclass(frozen=True)
class SchemaEdit:
    """A changed schema, and the rule that converts the changed field."""

    name: str
    old: Schema
    new: Schema
    source: str
    target: str


def of(properties: dict[str, Schema]) -> Schema:
    return {"type": "object", "properties": properties}


@st.composite
def usual_schemas(draw: st.DrawFn) -> Schema:
    """Schemas of whole objects whose fields have different names."""
    names = [f"{thing}{trait}" for thing in _THINGS for trait in _TRAITS]
    chosen = draw(st.lists(st.sampled_from(names), min_size=4, max_size=12, unique=True))
    kinds = st.sampled_from(["string", "integer", "boolean"])
    fields: dict[str, Schema] = {
        name: {"type": draw(kinds), "description": f"The {name} of the object."} for name in chosen
    }
    half = len(chosen) // 2
    inside = of({name: fields[name] for name in chosen[half:]})
    return of({"spec": of({name: fields[name] for name in chosen[:half]} | {"template": inside})})


@st.composite
def edits(draw: st.DrawFn) -> SchemaEdit:
    """A change of one field of a usual schema."""
    schema = draw(usual_schemas())
    name = draw(st.sampled_from([*EDITS]))
    return edited(
        name, schema, draw(st.sampled_from([n for n in _spec(schema) if n != "template"]))
    )


def edited(name: str, schema: Schema, field: str) -> SchemaEdit:
    """The change with a name, of one field."""
    old, new = copy.deepcopy(schema), copy.deepcopy(schema)
    return SchemaEdit(name, old, new, *EDITS[name](old, new, field))


def _spec(schema: Schema) -> dict[str, Schema]:
    found: dict[str, Schema] = schema["properties"]["spec"]["properties"]
    return found


def _change(old: Schema, new: Schema, field: str, to: str, types: tuple[Schema, Schema]) -> None:
    _spec(old).pop(field)
    _spec(new).pop(field)
    _spec(old)[field] = types[0]
    _spec(new)[to] = types[1]


def _renamed(old: Schema, new: Schema, field: str) -> tuple[str, str]:
    to = f"default{field[0].upper()}{field[1:]}"
    kept = _spec(old)[field]
    _change(old, new, field, to, (kept, kept))
    return f"spec.{field}", f"spec.{to}"


def _moved(old: Schema, new: Schema, field: str) -> tuple[str, str]:
    _spec(new)["template"]["properties"][field] = _spec(new).pop(field)
    return f"spec.{field}", f"spec.template.{field}"


def _moved_object(old: Schema, new: Schema, field: str) -> tuple[str, str]:
    del old, field
    _spec(new)["profile"] = of({"inner": _spec(new).pop("template")})
    return "spec.template", "spec.profile.inner"


def _scaled(old: Schema, new: Schema, field: str) -> tuple[str, str]:
    whole = {"type": "integer"}
    one, other = f"{field}Seconds", f"{field}Millis"
    _spec(old).pop(field)
    _spec(new).pop(field)
    _spec(old)[one] = _spec(new)[other] = whole
    return f"spec.{one}", f"spec.{other}"


def _cast(old: Schema, new: Schema, field: str) -> tuple[str, str]:
    _change(old, new, field, field, ({"type": "string"}, {"type": "integer"}))
    return f"spec.{field}", f"spec.{field}"


def _wrapped(old: Schema, new: Schema, field: str) -> tuple[str, str]:
    text = {"type": "string"}
    _change(old, new, field, f"{field}s", (text, {"type": "array", "items": text}))
    return f"spec.{field}", f"spec.{field}s"


def _keyed(old: Schema, new: Schema, field: str) -> tuple[str, str]:
    text = {"type": "string"}
    items = {"type": "array", "items": of({"name": text, "value": text})}
    _change(old, new, field, field, (items, {"type": "object", "additionalProperties": text}))
    return f"spec.{field}", f"spec.{field}"


def _worded(old: Schema, new: Schema, field: str) -> tuple[str, str]:
    types = ({"type": "string", "enum": [*_WORDS]}, {"type": "string", "enum": [*_WORDS.values()]})
    _change(old, new, field, field, types)
    return f"spec.{field}", f"spec.{field}"


EDITS: dict[str, Callable[[Schema, Schema, str], tuple[str, str]]] = {
    "rename": _renamed,
    "move": _moved,
    "move object": _moved_object,
    "scale": _scaled,
    "cast": _cast,
    "wrap": _wrapped,
    "keyed": _keyed,
    "values": _worded,
}
