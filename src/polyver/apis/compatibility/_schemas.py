"""Compare two schemas path by path.

At each path, the keywords that limit the value itself are compared first (in `_values`), then the
alternatives (`anyOf`, `oneOf`, `allOf`, `not`). Then the schemas of fields, of other keys and of
items are compared in the same way.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from enum import Enum
from typing import Any, Final

from polyver.apis.compatibility._findings import (
    ALTERNATIVES,
    EMBEDDED,
    INT_OR_STRING,
    PRESERVE,
    CompatibilityFinding,
    FindingSeverity,
    Schema,
    SchemaPair,
    bare,
    may_be,
    path_to,
    type_name,
    types_of,
    within,
)
from polyver.apis.compatibility._values import compare_type, compare_value
from polyver.kube.objects.schema import compile_schema
from polyver.languages.values.strings import same, shown

__all__ = ["compare_schemas"]


def compare_schemas(
    old: Schema, new: Schema, *, version: str = "", least: FindingSeverity = FindingSeverity.RISKY
) -> list[CompatibilityFinding]:
    """Find changes of an openAPIV3Schema that break objects or clients, or may break them.

    Both schemas must have passed `check_schema`. Safe changes are left out, unless `least` is
    `FindingSeverity.SAFE`. If no finding is breaking or risky, every object that the old schema
    allows is also valid with the new schema. An API server then stores the object unchanged, except
    for the defaults of new fields.

    >>> before = {"type": "object", "properties": {"cron": {"type": "string"}}}
    >>> after = {"type": "object", "properties": {"schedule": {"type": "string"}}}
    >>> [finding.fact for finding in compare_schemas(before, after)]
    ['string was removed; values are dropped; the new field schedule has the same schema']
    """
    # The root of a schema is always a complete object, with apiVersion, kind and metadata. The
    # schema does not state that.
    whole = SchemaPair({**old, EMBEDDED: True}, {**new, EMBEDDED: True})
    return within((replace(each, version=version) for each in _compare(whole)), least)


def _compare(place: SchemaPair) -> Iterator[CompatibilityFinding]:
    changed = compare_type(place)
    if changed is not None:
        yield changed
        if changed.severity is FindingSeverity.BREAKING:
            return
    yield from compare_value(place)
    for name in ALTERNATIVES:
        old, new = _options(place.old, name), _options(place.new, name)
        if _without(old, new) or _without(new, old):
            fits = not new or _WIDENED[name](old, new)
            rule = "alternatives-widened" if fits else "alternatives-changed"
            fact = f"{name} {'was added' if not old else 'changed' if new else 'was removed'}"
            yield place.found(rule, fact)
    for each in _compare_inside(place):
        if isinstance(each, SchemaPair):
            yield from _compare(each)
        else:
            yield each


# Alternatives are the schemas (options) under anyOf, oneOf, allOf and not. A change is safe only if
# it is obvious that each value which passes the old options also passes the new options.


_INTEGER_OR_STRING: Final = [{"type": "integer"}, {"type": "string"}]
_INSIDE: Final = ("properties", "items", "additionalProperties", *ALTERNATIVES)


def _options(schema: Schema, name: str) -> list[Any]:
    """Return the options of a keyword such as `anyOf`.

    Options that int-or-string implies are left out.
    """
    found = schema.get(name)
    options = [found] if name == "not" and found is not None else found or []
    made = [bare(each) for each in options]
    if not schema.get(INT_OR_STRING):
        return made
    if name == "anyOf" and made == _INTEGER_OR_STRING:
        return []
    return [each for each in made if name != "allOf" or each != {"anyOf": _INTEGER_OR_STRING}]


def _without(options: Sequence[Any], others: Sequence[Any]) -> list[Any]:
    """Return the options that are not in `others`.

    Each element of `others` cancels only one of several equal options.
    """
    left, found = [*others], []
    for option in options:
        place = next((i for i, other in enumerate(left) if same(option, other)), None)
        if place is None:
            found.append(option)
        else:
            del left[place]
    return found


def _any_widened(old: list[Any], new: list[Any]) -> bool:
    return bool(old) and all(any(_implies(one, other) for other in new) for one in old)


def _all_widened(old: list[Any], new: list[Any]) -> bool:
    return all(any(_implies(one, other) for one in old) for other in new)


def _never(_: list[Any], __: list[Any]) -> bool:
    """Return False: every change of the options of `oneOf` or `not` is a finding.

    If an option of `oneOf` allows more values, a value may match two options, which is an error. If
    the option of `not` allows more values, the whole schema allows fewer values.
    """
    return False


_WIDENED = {"anyOf": _any_widened, "allOf": _all_widened, "oneOf": _never, "not": _never}


def _implies(one: Schema, other: Schema) -> bool:
    """Report whether it is certain that each value allowed by `one` is also allowed by `other`."""
    if not all(same(one.get(name), other.get(name)) for name in _INSIDE):
        return False
    if not {*(other.get("required") or ())} <= {*(one.get("required") or ())}:
        return False
    place = SchemaPair(one, other)
    return compare_type(place) is None and not within(compare_value(place), FindingSeverity.RISKY)


# Fields of objects, the other keys of maps, and the items of lists.


class _UnknownFieldHandling(Enum):
    """The ways in which an API server may handle the value of a key that has no schema."""

    DROPPED = "dropped"
    KEPT = "kept"
    EMPTIED = "kept, except inside objects"
    REFUSED = "refused"


_LOSING: Final = (_UnknownFieldHandling.DROPPED, _UnknownFieldHandling.REFUSED)
_TEXT: Final = {"type": "string"}
_SCALARS: Final = frozenset(["string", "integer", "number", "boolean"])
_LOOKING_INSIDE: Final = (*ALTERNATIVES, "enum", "maxProperties", "x-kubernetes-validations")


def _compare_inside(place: SchemaPair) -> Iterator[CompatibilityFinding | SchemaPair]:
    """Yield the findings for fields and items, and the pairs of inner schemas to compare later."""
    if bool(place.old.get(EMBEDDED)) is not bool(place.new.get(EMBEDDED)):
        # This change is a finding by itself, so findings for the standard fields of an embedded
        # resource are not added.
        place = replace(place, old=_loose(place.old), new=_loose(place.new))
    if may_be(place.old, "object"):
        yield from _compare_fields(place)
        yield from _compare_required(place)
        yield from _compare_rest(place)
    if may_be(place.old, "array"):
        yield from _compare_items(place)


def _loose(schema: Schema) -> Schema:
    return {keyword: value for keyword, value in schema.items() if keyword != EMBEDDED}


def _compare_fields(place: SchemaPair) -> Iterator[CompatibilityFinding | SchemaPair]:
    names = {*_fields(place.old), *_fields(place.new)}
    for name in sorted(names):
        old, new = _child(place.old, name), _child(place.new, name)
        if isinstance(old, _UnknownFieldHandling) or isinstance(new, _UnknownFieldHandling):
            yield from _compare_fate(place, name, old, new)
        else:
            required = name in (place.new.get("required") or ())
            yield _inner(place, old, new, path_to(place.path, name), required=required)


def _inner(
    place: SchemaPair, old: Schema, new: Schema, path: str, *, required: bool = False
) -> SchemaPair:
    return SchemaPair(old, new, path, required, _is_looked_at(place))


def _fields(schema: Schema) -> Mapping[str, Schema]:
    """Return the schemas of declared fields; in embedded resources, also of standard fields."""
    fields: Mapping[str, Schema] = schema.get("properties") or {}
    if not schema.get(EMBEDDED):
        return fields
    given = fields.get("metadata") or {"type": "object"}
    named = {"name": _TEXT, "generateName": _TEXT} | (given.get("properties") or {})
    metadata = {**given, PRESERVE: True, "properties": named}
    return {"apiVersion": _TEXT, "kind": _TEXT} | {**fields, "metadata": metadata}


def _rest(schema: Schema) -> Schema | _UnknownFieldHandling:
    """Return the schema of the keys that `properties` does not name.

    If these keys have no schema, return what an API server does with their values.
    """
    match schema.get("additionalProperties"):
        case None:
            return (
                _UnknownFieldHandling.KEPT
                if schema.get(PRESERVE)
                else _UnknownFieldHandling.DROPPED
            )
        case False:
            return _UnknownFieldHandling.REFUSED
        case Mapping() as found:
            return found
        case _:
            return _UnknownFieldHandling.EMPTIED


def _child(schema: Schema, name: str) -> Schema | _UnknownFieldHandling:
    found = _fields(schema).get(name)
    return _rest(schema) if found is None else found


def _compare_fate(
    place: SchemaPair,
    name: str,
    old: Schema | _UnknownFieldHandling,
    new: Schema | _UnknownFieldHandling,
) -> Iterator[CompatibilityFinding]:
    """Yield the findings for a field that has a schema only before or only after the change.

    On the other side, `old` or `new` is what an API server does with the value of the field.
    """
    path = path_to(place.path, name)
    if isinstance(new, _UnknownFieldHandling):
        assert not isinstance(old, _UnknownFieldHandling)
        yield from _compare_lost(place, name, old, new)
    elif old not in _LOSING:
        yield place.found(
            "field-claimed", f"{type_name(new)} was added where unknown fields were kept", at=path
        )
    else:
        fact, rule = f"{type_name(new)} was added", "field-added"
        if new.get("default") is not None:
            fact = f"{fact}, with the default {shown(new['default'])}"
            rule = "field-filled-in" if _is_looked_at(place) else "field-added"
            rule = rule if _takes_default(new) else "default-refused"
        yield place.found(rule, fact, at=path)


def _takes_default(schema: Schema) -> bool:
    """Report whether the default of a schema is a valid value for this schema.

    This must be checked here, because kube-apiserver does not check defaults in schemas inside
    maps.
    """
    filled: dict[str, Any] = {}
    checked = compile_schema({"type": "object", "properties": {"field": schema}})
    checked.default(filled)
    return not checked.validate(filled)


def _is_looked_at(place: SchemaPair) -> bool:
    """Report whether a constraint at this path or above may refuse the default of a new field."""
    return place.limited or any(place.new.get(each) is not None for each in _LOOKING_INSIDE)


def _compare_lost(
    place: SchemaPair, name: str, old: Schema, fate: _UnknownFieldHandling
) -> Iterator[CompatibilityFinding]:
    path = path_to(place.path, name)
    if _keeps(fate, old):
        yield place.found("field-freed", f"{type_name(old)} no longer has a schema", at=path)
        if old.get("default") is not None:
            required = name in (place.new.get("required") or ())
            rule = "required-exposed" if required else "default-removed"
            yield place.found(rule, f"default was removed: it was {shown(old['default'])}", at=path)
        return
    other = _renamed(place, name)
    rule = "field-renamed" if other else "field-removed"
    more = f"; the new field {other} has the same schema" if other else ""
    yield place.found(
        rule, f"{type_name(old)} was removed; values are {fate.value}{more}", at=path, other=other
    )


def _renamed(place: SchemaPair, name: str) -> str:
    """Return the new field that most likely replaces a removed field; "" if there is none."""
    old, new = _fields(place.old), _fields(place.new)
    wanted = bare(old[name])
    alike = [each for each in new if each not in old and same(bare(new[each]), wanted)]
    return next(iter(difflib.get_close_matches(name, alike, 1, 0.0)), "")


def _compare_required(place: SchemaPair) -> Iterator[CompatibilityFinding]:
    old, new = place.old.get("required") or (), place.new.get("required") or ()
    fields = _fields(place.new)
    for name in (each for each in new if each not in old and not _is_always_there(place, each)):
        path = path_to(place.path, name)
        if fields.get(name, {}).get("default") is not None:
            yield place.found(
                "required-filled-in", "it is now required, and has a default", at=path
            )
        elif isinstance(_child(place.old, name), _UnknownFieldHandling):
            yield place.found("required-field-added", "it is a new required field", at=path)
        else:
            yield place.found("required-added", "it is now required", at=path)
    for name in (each for each in old if each not in new):
        path = path_to(place.path, name)
        if not isinstance(_child(place.new, name), _UnknownFieldHandling):
            yield place.found("required-removed", "it is no longer required", at=path)


def _is_always_there(place: SchemaPair, name: str) -> bool:
    """Report whether an API server requires this field even if the schema does not mention it.

    This is so for the standard fields of embedded resources, such as `kind`.
    """
    known = ("apiVersion", "kind") if place.path else ("apiVersion", "kind", "metadata")
    return bool(place.new.get(EMBEDDED)) and name in known


def _compare_rest(place: SchemaPair) -> Iterator[CompatibilityFinding | SchemaPair]:
    old, new = _rest(place.old), _rest(place.new)
    path = f"{place.path}{{}}"
    if not isinstance(old, _UnknownFieldHandling) and not isinstance(new, _UnknownFieldHandling):
        yield _inner(place, old, new, path)
    elif isinstance(old, _UnknownFieldHandling) and isinstance(new, _UnknownFieldHandling):
        if old is not new:
            fact = f"unknown fields were {old.value}, and are now {new.value}"
            yield place.found(_FATES[old, new], fact)
    elif isinstance(old, _UnknownFieldHandling):
        rule = "values-widened" if old in _LOSING else "values-narrowed"
        yield place.found(rule, f"{_named(new)} was added for keys that were {_named(old)}")
    else:
        kept = isinstance(new, _UnknownFieldHandling) and _keeps(new, old)
        rule = "values-widened" if kept else "values-narrowed"
        yield place.found(
            rule, f"{_named(old)} was removed: its keys are now {_named(new)}", at=path
        )


_LOSSES = {
    (_UnknownFieldHandling.KEPT, _UnknownFieldHandling.DROPPED),
    (_UnknownFieldHandling.KEPT, _UnknownFieldHandling.EMPTIED),
    (_UnknownFieldHandling.EMPTIED, _UnknownFieldHandling.DROPPED),
    (_UnknownFieldHandling.KEPT, _UnknownFieldHandling.REFUSED),
    (_UnknownFieldHandling.EMPTIED, _UnknownFieldHandling.REFUSED),
}
_FATES = {
    (old, new): "unknown-dropped" if (old, new) in _LOSSES else "unknown-kept"
    for old in _UnknownFieldHandling
    for new in _UnknownFieldHandling
} | {(_UnknownFieldHandling.DROPPED, _UnknownFieldHandling.REFUSED): "unknown-refused"}


def _named(rest: Schema | _UnknownFieldHandling) -> str:
    return rest.value if isinstance(rest, _UnknownFieldHandling) else f"a map of {type_name(rest)}"


def _keeps(fate: _UnknownFieldHandling, schema: Schema) -> bool:
    """Report whether an API server keeps the value of a field whose schema was removed.

    `fate` states what an API server does with fields that have no schema.
    """
    return fate is _UnknownFieldHandling.KEPT or (
        fate is _UnknownFieldHandling.EMPTIED and _is_scalar(schema)
    )


def _is_scalar(schema: Schema) -> bool:
    types = types_of(schema)
    return bool(types) and types <= _SCALARS


def _compare_items(place: SchemaPair) -> Iterator[CompatibilityFinding | SchemaPair]:
    old, new = place.old.get("items"), place.new.get("items")
    path = f"{place.path}[]"
    if old is not None and new is not None:
        yield _inner(place, _spared(place.old, old), _spared(place.new, new), path)
    elif new is not None:
        yield place.found("type-changed", f"any type changed to {type_name(new)}", at=path)
    elif old is not None:
        kept = place.new.get(PRESERVE) or _is_scalar(old)
        rule = "field-freed" if kept else "field-removed"
        yield place.found(rule, f"{type_name(old)} no longer has a schema", at=path)


def _spared(schema: Schema, items: Schema) -> Schema:
    """Return the schema of a list's items.

    If the schema of the list keeps unknown fields, unknown fields in the items are kept too. The
    returned schema states this.
    """
    more: dict[str, Any] = {PRESERVE: True} if schema.get(PRESERVE) else {}
    return {**items, **more}
