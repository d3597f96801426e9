"""Checks that a schema is structural: every field has a type, and alternatives declare no fields.

Alternatives are the schemas in allOf, anyOf, oneOf and not. Pruning and server-side apply need the
type of a field before they know which alternative a value fits.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from polyver.kube.objects.status import Cause, forbidden_field, required
from polyver.languages.regexp import InvalidPattern, compile_pattern
from polyver.languages.values.strings import shown

__all__ = ["check_structural", "invalid"]

_INT_OR_STRING = [{"type": "integer"}, {"type": "string"}]
_JUNCTORS = ("anyOf", "allOf", "oneOf")
_LEVELS = {"root": "at the root", "item": "for specified array items"}
_EMBEDDED = "x-kubernetes-embedded-resource"
_PRESERVE = "x-kubernetes-preserve-unknown-fields"
_INT = "x-kubernetes-int-or-string"
_FORBIDDEN_IN_ALTERNATIVES = {
    "type": "must be empty",
    "additionalProperties": "must be undefined",
    "default": "must be undefined",
    "title": "must be empty",
    "description": "must be empty",
    "nullable": "must be false",
    _PRESERVE: "must be false",
    _EMBEDDED: "must be false",
    _INT: "must be false",
    "x-kubernetes-list-map-keys": "must be empty",
    "x-kubernetes-list-type": "must be undefined",
    "x-kubernetes-map-type": "must be undefined",
    "x-kubernetes-validations": "must be empty",
}


def invalid(field: str, value: Any, problem: str) -> Cause:
    """Return the error for an invalid value."""
    return Cause(field, f"Invalid value: {shown(value)}: {problem}")


def check_structural(schema: Mapping[str, Any], path: str) -> list[Cause]:
    """Return the errors that make a schema not structural."""
    causes = [*_check_level(schema, "root", path), *_check_complete(schema, schema, path, path)]
    return sorted(causes, key=lambda cause: f"{cause.field}: {cause.message}")


def _check_level(schema: Mapping[str, Any], level: str, path: str) -> Iterator[Cause]:
    items, others = schema.get("items"), schema.get("additionalProperties")
    fields = schema.get("properties") or {}
    if schema.get("type") == "array" and items is None:
        yield required(f"{path}.items", "must be specified")
    if isinstance(items, Mapping):
        yield from _check_level(items, "item", f"{path}.items")
    for name in sorted(fields):
        yield from _check_level(fields[name], "field", f"{path}.properties[{name}]")
    if others is not None and level == "root":
        yield forbidden_field(f"{path}.additionalProperties", "must not be used at the root")
    if isinstance(others, Mapping):
        yield from _check_level(others, "field", f"{path}.additionalProperties")
    yield from _check_extensions(schema, path)
    yield from _check_value(schema, path, _is_int_or_string(schema))
    yield from _check_type(schema, level, path)
    yield from _check_metadata(schema, level, path)


def _check_extensions(schema: Mapping[str, Any], path: str) -> Iterator[Cause]:
    for name in (_PRESERVE, _EMBEDDED):
        if schema.get(_INT) and schema.get(name):
            yield invalid(f"{path}.{name}", True, f"must be false if {_INT} is true")
    if not schema.get(_EMBEDDED):
        return
    if schema.get("additionalProperties") is not None:
        text = f"must not be used if {_EMBEDDED} is set"
        yield forbidden_field(f"{path}.additionalProperties", text)
    if not schema.get(_PRESERVE) and not schema.get("properties"):
        text = f"must not be empty if {_EMBEDDED} is true without {_PRESERVE}"
        yield required(f"{path}.properties", text)


def _check_type(schema: Mapping[str, Any], level: str, path: str) -> Iterator[Cause]:
    found, type_path = schema.get("type") or "", f"{path}.type"
    if schema.get(_EMBEDDED) and found != "object":
        text = f"must be object if {_EMBEDDED} is true"
        yield invalid(type_path, found, text) if found else required(type_path, text)
    elif not found and not schema.get(_INT) and not schema.get(_PRESERVE):
        where = _LEVELS.get(level, "for specified object fields")
        yield required(type_path, f"must not be empty {where}")
    if level == "root" and found and found != "object":
        yield invalid(type_path, found, "must be object at the root")


def _check_metadata(schema: Mapping[str, Any], level: str, path: str) -> Iterator[Cause]:
    whole = level == "root" or schema.get(_EMBEDDED)
    fields = schema.get("properties") or {}
    for name, wanted in (("kind", "string"), ("apiVersion", "string"), ("metadata", "object")):
        found = fields[name].get("type") or "" if name in fields else wanted
        if whole and found != wanted:
            yield invalid(f"{path}.properties[{name}].type", found, f"must be {wanted}")
    if level == "root" and "metadata" in fields and not _is_plain_metadata(fields["metadata"]):
        text = "must not specify anything other than name and generateName, but metadata is "
        yield forbidden_field(f"{path}.properties[metadata]", f"{text}implicitly specified")


def _is_plain_metadata(schema: Mapping[str, Any]) -> bool:
    keys = {key for key, value in schema.items() if value not in (None, "", False, [], {})}
    fields = {*(schema.get("properties") or {})}
    return keys <= {"type", "default", "properties"} and fields <= {"name", "generateName"}


def _is_int_or_string(schema: Mapping[str, Any]) -> bool:
    return schema.get("anyOf") == _INT_OR_STRING


def _check_value(schema: Mapping[str, Any], path: str, skip_any: bool) -> Iterator[Cause]:
    """Yield the errors in the alternatives and in the pattern of a schema.

    With `skip_any`, the anyOf of an int-or-string is not checked, because it may contain types.
    """
    first_all = (schema.get("allOf") or [{}])[0]
    for name in _JUNCTORS:
        for number, each in enumerate(schema.get(name) or ()):
            if name == "anyOf" and skip_any:
                continue
            skip = name == "allOf" and number == 0 and _is_int_or_string(first_all)
            yield from _check_alternative(each, f"{path}.{name}[{number}]", skip)
    if schema.get("not") is not None:
        yield from _check_alternative(schema["not"], f"{path}.not", False)
    pattern = schema.get("pattern")
    problem = _pattern_problem(pattern) if pattern else ""
    if problem:
        text = f"must be a valid regular expression, but isn't: {problem}"
        yield invalid(f"{path}.pattern", pattern, text)


def _pattern_problem(pattern: str) -> str:
    try:
        compile_pattern(pattern)
    except InvalidPattern as problem:
        return str(problem)
    return ""


def _check_alternative(schema: Mapping[str, Any], path: str, skip_any: bool) -> Iterator[Cause]:
    yield from _check_value(schema, path, skip_any)
    if isinstance(schema.get("items"), Mapping):
        yield from _check_alternative(schema["items"], f"{path}.items", False)
    fields = schema.get("properties") or {}
    for name in sorted(fields):
        yield from _check_alternative(fields[name], f"{path}.properties[{name}]", False)
    for name, text in _FORBIDDEN_IN_ALTERNATIVES.items():
        if _sets(schema, name):
            yield forbidden_field(f"{path}.{name}", f"{text} to be structural")
    if "metadata" in fields:
        text = "must not be specified in a nested context"
        yield forbidden_field(f"{path}.properties[metadata]", text)


def _sets(schema: Mapping[str, Any], name: str) -> bool:
    value = schema.get(name)
    return value is not None if name == "default" else bool(value) or value == {}


def _check_complete(
    rules: Mapping[str, Any], schema: Mapping[str, Any] | None, at: str, path: str
) -> Iterator[Cause]:
    """Yield an error for each field that an alternative names, but the schema does not declare.

    As in kube-apiserver, only the alternatives at the root of the schema are checked.
    """
    if isinstance(rules.get("not"), Mapping):
        yield from _check_complete_part(rules["not"], schema, at, f"{path}.not")
    for name in _JUNCTORS:
        for number, each in enumerate(rules.get(name) or ()):
            yield from _check_complete_part(each, schema, at, f"{path}.{name}[{number}]")


def _check_complete_part(
    rules: Mapping[str, Any], schema: Mapping[str, Any] | None, at: str, path: str
) -> Iterator[Cause]:
    if schema is None:
        yield required(at, f"because it is defined in {path}")
        return
    yield from _check_complete(rules, schema, at, path)
    if isinstance(rules.get("items"), Mapping):
        items = schema.get("items")
        yield from _check_complete_part(rules["items"], items, f"{at}.items", f"{path}.items")
    fields = schema.get("properties") or {}
    for name, each in (rules.get("properties") or {}).items():
        inner = f".properties[{name}]"
        yield from _check_complete_part(each, fields.get(name), at + inner, path + inner)
