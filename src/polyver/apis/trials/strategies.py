"""Hypothesis strategies for objects that a schema allows."""

from __future__ import annotations

import datetime
import math
import re
from collections.abc import Callable, Mapping
from typing import Any

from hypothesis import strategies as st

from polyver.core.plain import Schema
from polyver.kube.objects.schema import compile_schema, is_valid, python_pattern

__all__ = ["objects_from_schema"]

_META = ("apiVersion", "kind", "metadata")
_NAMES = st.from_regex("[a-z]([-a-z0-9]{0,10}[a-z0-9])?", fullmatch=True)
_TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
_KEYS = st.text(st.characters(exclude_categories=["C"]), min_size=1, max_size=10)
_PLAIN = st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | _TEXT
_ANYTHING = st.recursive(
    _PLAIN, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_KEYS, inner, max_size=3)
)


def objects_from_schema(
    schema: Schema, *, api_version: str = "", kind: str = ""
) -> st.SearchStrategy[dict[str, Any]]:
    """Build a strategy for simple and unusual objects that a CRD's openAPIV3Schema allows.

    With `api_version` and `kind`, the strategy generates complete objects with a name.
    """
    checked = compile_schema(schema)
    known = schema.get("properties") or {}
    fields = {name: each for name, each in known.items() if name not in _META}
    inside = _objects({**schema, "properties": fields}, plain=True)

    def whole(name: str, found: dict[str, Any]) -> dict[str, Any]:
        said = {"apiVersion": api_version, "kind": kind} if kind else {}
        return said | ({"metadata": {"name": name}} if kind else {}) | found

    return st.builds(whole, _NAMES, inside).filter(lambda found: not checked.validate(found))


def _values(schema: Schema) -> st.SearchStrategy[Any]:
    """Build a strategy for the values that a schema allows.

    The strategy rejects values that `anyOf`, `oneOf` or `not` do not allow.
    """
    options = [_merged(schema, option) for option in _options(schema)]
    found = st.one_of([_typed(option) for option in options])
    if any(schema.get(name) for name in ("anyOf", "oneOf", "allOf", "not", "enum", "pattern")):
        found = found.filter(is_valid(schema))
    return st.none() | found if schema.get("nullable") and not schema.get("enum") else found


def _options(schema: Schema) -> list[Schema]:
    """Return the schemas that anyOf, oneOf and allOf add: one for each way to satisfy them all."""
    every: Schema = {}
    for each in schema.get("allOf") or ():
        every = _merged(every, each)
    ways = [*(schema.get("anyOf") or ()), *(schema.get("oneOf") or ())] or [{}]
    return [_merged(every, way) for way in ways]


def _merged(schema: Schema, more: Schema) -> Schema:
    """Combine two schemas to one; a constraint that one schema cannot express is left out."""
    made = dict(schema)
    for name, value in more.items():
        if name in ("anyOf", "oneOf", "allOf", "not"):
            continue
        join = _JOINED.get(name, lambda one, _: one)
        made[name] = join(made[name], value) if name in made else value
    return made


_JOINED: dict[str, Callable[[Any, Any], Any]] = {
    "required": lambda one, other: [*dict.fromkeys([*one, *other])],
    "enum": lambda one, other: [each for each in one if each in other] or one,
    "items": _merged,
    "properties": lambda one, other: {
        name: _merged(one.get(name, {}), other.get(name, {})) for name in {**one, **other}
    },
    **dict.fromkeys(("minimum", "minLength", "minItems", "minProperties"), max),
    **dict.fromkeys(("maximum", "maxLength", "maxItems", "maxProperties"), min),
}


def _typed(schema: Schema) -> st.SearchStrategy[Any]:
    if schema.get("enum"):
        return st.sampled_from([*schema["enum"]])
    if schema.get("x-kubernetes-int-or-string"):
        return _numbers(schema) | _texts(schema)
    make = _MAKERS.get(schema.get("type") or "")
    return make(schema) if make is not None else _ANYTHING.filter(lambda value: value is not None)


def _texts(schema: Schema) -> st.SearchStrategy[str]:
    least, most = schema.get("minLength") or 0, schema.get("maxLength")
    form = (schema.get("format") or "").replace("-", "")
    pattern = schema.get("pattern")
    if form in _FORMATS:
        found = _FORMATS[form]
    elif pattern and python_pattern(pattern) is not None:
        found = st.from_regex(re.compile(python_pattern(pattern) or ""))
    else:
        size = least + 10 if most is None else most
        return st.text(st.characters(exclude_categories=["Cs"]), min_size=least, max_size=size)
    limit = math.inf if most is None else most
    return found.filter(lambda text: least <= len(text) <= limit)


def _numbers(schema: Schema) -> st.SearchStrategy[Any]:
    least, most = schema.get("minimum"), schema.get("maximum")
    bits = 31 if schema.get("format") == "int32" else 63
    low = max(-(2**bits), -(2**63) if least is None else math.ceil(least))
    high = min(2**bits - 1, 2**63 - 1 if most is None else math.floor(most))
    low += bool(schema.get("exclusiveMinimum") and low == least)
    high -= bool(schema.get("exclusiveMaximum") and high == most)
    step = schema.get("multipleOf")
    if step is not None:
        return _multiples(step, low, high)
    found: st.SearchStrategy[Any] = _integers(low, high)
    return found | _floats(schema) if schema.get("type") == "number" else found


def _multiples(step: float, low: int, high: int) -> st.SearchStrategy[Any]:
    if step == int(step):
        whole = int(step)
        return _integers(-(-low // whole), high // whole).map(lambda times: times * whole)
    # kube-apiserver refuses every integer here.
    first, last = math.ceil(max(low, -(10**6)) / step), math.floor(min(high, 10**6) / step)
    return _integers(first, last).map(lambda times: float(times * step))


def _integers(low: int, high: int) -> st.SearchStrategy[int]:
    # It is possible that an alternative of a schema allows no number at all.
    return st.integers(low, high) if low <= high else st.nothing()


def _floats(schema: Schema) -> st.SearchStrategy[float]:
    least, most = schema.get("minimum"), schema.get("maximum")
    low = -1e30 if least is None else float(least)
    high = 1e30 if most is None else float(most)
    low = math.nextafter(low, math.inf) if schema.get("exclusiveMinimum") else low
    high = math.nextafter(high, -math.inf) if schema.get("exclusiveMaximum") else high
    return st.floats(low, high) if low <= high else st.nothing()


def _lists(schema: Schema) -> st.SearchStrategy[list[Any]]:
    least, most = schema.get("minItems") or 0, schema.get("maxItems")
    most = least + 3 if most is None else most
    items = _values(schema.get("items") or {})
    match schema.get("x-kubernetes-list-type"):
        case "set":
            return st.lists(items, min_size=least, max_size=most, unique_by=_identity)
        case "map":
            keys = schema.get("x-kubernetes-list-map-keys") or ()
            by = lambda item: _identity([item.get(key) for key in keys])  # noqa: E731
            return st.lists(items, min_size=least, max_size=most, unique_by=by)
        case _:
            return st.lists(items, min_size=least, max_size=most)


def _identity(value: Any) -> str:
    return repr(value)


def _objects(schema: Schema, *, plain: bool = False) -> st.SearchStrategy[dict[str, Any]]:
    fields = {name: _values(each) for name, each in (schema.get("properties") or {}).items()}
    required = {*(schema.get("required") or ())}
    found = st.fixed_dictionaries(
        {name: each for name, each in fields.items() if name in required},
        optional={name: each for name, each in fields.items() if name not in required},
    )
    others = schema.get("additionalProperties")
    if isinstance(others, Mapping):
        found = _with_more(found, _values(others), schema)
    elif schema.get("x-kubernetes-preserve-unknown-fields"):
        found = _with_more(found, _ANYTHING, schema)
    elif others is True:
        found = _with_more(found, _PLAIN, schema)
    if schema.get("x-kubernetes-embedded-resource") and not plain:
        found = st.builds(_embedded, _NAMES, found)
    least, most = schema.get("minProperties") or 0, schema.get("maxProperties")
    limit = math.inf if most is None else most
    return found.filter(lambda value: least <= len(value) <= limit)


def _with_more(
    found: st.SearchStrategy[dict[str, Any]], values: st.SearchStrategy[Any], schema: Schema
) -> st.SearchStrategy[dict[str, Any]]:
    known = {*(schema.get("properties") or {}), *_META}
    least, most = schema.get("minProperties") or 0, schema.get("maxProperties")
    keys = _KEYS.filter(lambda key: key not in known)
    size = least + 3 if most is None else most
    more = st.dictionaries(keys, values, min_size=min(least, size), max_size=size)
    return st.builds(lambda one, other: one | other, found, more)


def _embedded(name: str, found: dict[str, Any]) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Thing", "metadata": {"name": name}} | found


_MAKERS: dict[str, Callable[[Schema], st.SearchStrategy[Any]]] = {
    "string": _texts,
    "integer": _numbers,
    "number": _numbers,
    "boolean": lambda _: st.booleans(),
    "array": _lists,
    "object": _objects,
}


def _stamp(moment: datetime.datetime) -> str:
    return f"{moment.replace(microsecond=0).isoformat()}Z"


_SECONDS = st.datetimes(datetime.datetime(1000, 1, 1), datetime.datetime(9999, 1, 1))
_FORMATS: dict[str, st.SearchStrategy[str]] = {
    "datetime": _SECONDS.map(_stamp),
    "date": _SECONDS.map(lambda moment: moment.date().isoformat()),
    "duration": st.integers(0, 10**6).flatmap(
        lambda value: st.sampled_from([f"{value}s", f"{value}ms", f"{value}h1m"])
    ),
    "email": st.builds(lambda name, host: f"{name}@{host}.io", _NAMES, _NAMES),
    "hostname": st.builds(lambda name, host: f"{name}.{host}.io", _NAMES, _NAMES),
    "uri": st.builds(lambda host, path: f"https://{host}.io/{path}", _NAMES, _NAMES),
    "ipv4": st.ip_addresses(v=4).map(str),
    "ipv6": st.ip_addresses(v=6).map(str),
    "cidr": st.ip_addresses(v=4).map(lambda address: f"{address}/24"),
    "mac": st.binary(min_size=6, max_size=6).map(lambda data: data.hex(":")),
    "uuid": st.uuids().map(str),
    "uuid3": st.uuids().map(lambda found: f"{str(found)[:14]}3{str(found)[15:]}"),
    "uuid4": st.uuids(version=4).map(str),
    "uuid5": st.uuids(version=5).map(str),
    "byte": st.from_regex("([A-Za-z0-9+/]{4}){1,5}", fullmatch=True),
    "hexcolor": st.from_regex("#[0-9a-f]{6}", fullmatch=True),
    "k8sshortname": _NAMES,
    "k8slongname": st.lists(_NAMES, min_size=1, max_size=3).map(".".join),
}
