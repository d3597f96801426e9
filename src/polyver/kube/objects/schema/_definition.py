"""Checks of the schema in a CustomResourceDefinition, with kube-apiserver's messages."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from polyver.kube.objects.schema._declared_paths import rule_path
from polyver.kube.objects.schema._default_rules import check_defaults
from polyver.kube.objects.schema._rule_checks import check_rules
from polyver.kube.objects.schema._structural import check_structural, invalid
from polyver.kube.objects.schema.printed_schema import KEYWORDS, declared
from polyver.kube.objects.schema.structure import META_FIELDS
from polyver.kube.objects.status import Cause, forbidden_field, required
from polyver.languages.values.strings import quoted, shown

__all__ = ["check_schema"]

_TYPES = ("array", "boolean", "integer", "number", "object", "string")
_LIST, _MAP = "x-kubernetes-list-type", "x-kubernetes-map-type"
_KEYS, _RULES = "x-kubernetes-list-map-keys", "x-kubernetes-validations"
_PRESERVE = "x-kubernetes-preserve-unknown-fields"
_EMBEDDED = "x-kubernetes-embedded-resource"
_REASONS = tuple(f"FieldValue{each}" for each in ("Duplicate", "Forbidden", "Invalid", "Required"))
_AT_ROOT = (
    "Description Type Format Title Maximum ExclusiveMaximum Minimum ExclusiveMinimum MaxLength "
    "MinLength Pattern MaxItems MinItems UniqueItems MultipleOf Required Items Properties "
    "ExternalDocs Example XPreserveUnknownFields XValidations"
)
_ROOT_KEYWORDS = {name[:1].lower() + name[1:] for name in _AT_ROOT.split()} | {_PRESERVE, _RULES}


def check_schema(schema: Mapping[str, Any], path: str, *, status: bool = False) -> list[Cause]:
    """Return the errors in the openAPIV3Schema of a version of a CustomResourceDefinition.

    `status` is True if the version has the status subresource; then fewer keywords are allowed at
    the root of the schema.

    >>> check_schema({"type": "object", "properties": {"a": {}}}, "schema")[0].field
    'schema.properties[a].type'
    """
    causes = [*_check_root(schema, path)] if status else []
    if schema.get("nullable"):
        causes.append(forbidden_field(f"{path}.nullable", "nullable cannot be true at the root"))
    unreadable = next(_unsupported(schema), "")
    deeper: list[Cause] = []
    if not unreadable:
        deeper = check_structural(schema, path) or check_defaults(schema, path)
    own = [*_check(schema, path, _Context(root=True))]
    causes += [*deeper, *own]
    if not unreadable and not deeper:
        causes += check_rules(schema, path, own)
    return causes or ([invalid(path, "", unreadable)] if unreadable else [])


def _check_root(schema: Mapping[str, Any], path: str) -> Iterator[Cause]:
    for name in KEYWORDS:
        value = schema.get(name)
        if value is None or value is False or value in ("", [], {}):
            continue
        if name == "type" and value != "object":
            text = 'only "object" is allowed as the type at the root of the schema if the status '
            yield invalid(f"{path}.type", value, f"{text}subresource is enabled")
            return
        if name not in _ROOT_KEYWORDS:
            text = f"only [{_AT_ROOT}] fields are allowed at the root of the schema if the status "
            text = f"{text}subresource is enabled"
            yield Cause(path, f"Invalid value: {declared(schema)}: {text}")
            return


def _unsupported(schema: Mapping[str, Any]) -> Iterator[str]:
    """Yield an error for each keyword that Kubernetes does not support.

    If there is such an error, the caller makes no other check.
    """
    for name in ("id", "$schema", "$ref", "patternProperties", "dependencies", "definitions"):
        if schema.get(name):
            yield f"OpenAPIV3Schema '{'schema' if name == '$schema' else name}' is not supported"
    if schema.get("additionalItems") is not None:
        yield "OpenAPIV3Schema 'additionalItems' is not supported"
    if isinstance(schema.get("items"), list):
        yield "OpenAPIV3Schema 'items' must be a schema, but is an array"
    if schema.get(_PRESERVE) is False:
        yield f"internal error: '{_PRESERVE}' must be true or undefined"
    for _, inside in _inside(schema):
        yield from _unsupported(inside)


def _inside(schema: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield the schemas directly inside a schema, each with its path.

    The order is that of kube-apiserver's errors.
    """
    if isinstance(schema.get("additionalProperties"), Mapping):
        yield ".additionalProperties", schema["additionalProperties"]
    fields = schema.get("properties") or {}
    for name in sorted(fields):
        yield f".properties[{name}]", fields[name]
    if isinstance(schema.get("not"), Mapping):
        yield ".not", schema["not"]
    for name in ("allOf", "oneOf", "anyOf"):
        for number, each in enumerate(schema.get(name) or ()):
            yield f".{name}[{number}]", each
    definitions = schema.get("definitions") or {}
    for name in sorted(definitions):
        yield f".definitions[{name}]", definitions[name]
    items = schema.get("items")
    if isinstance(items, Mapping):
        yield ".items", items
    for number, each in enumerate(items if isinstance(items, list) else ()):
        yield f".items[{number}]", each


@dataclass(frozen=True, slots=True)
class _Context:
    """The restrictions on a schema that follow from its position in the whole schema."""

    root: bool = False
    no_defaults: str = ""
    """The reason why a default is forbidden here; empty if a default is allowed."""
    in_metadata: bool = False

    def inside(self, schema: Mapping[str, Any], where: str) -> _Context:
        inner = replace(self, root=False)
        name = where.removeprefix(".properties[")[:-1]
        if where == ".additionalProperties" and self.in_metadata:
            text = "inside additionalProperties applying to object metadata"
            return replace(inner, no_defaults=text)
        whole = self.root or schema.get(_EMBEDDED)
        if where.startswith(".properties[") and whole and name in META_FIELDS:
            reason = f"in top-level {name}" if self.root else self.no_defaults
            return replace(inner, in_metadata=True, no_defaults=reason)
        return inner


def _check(schema: Mapping[str, Any], path: str, context: _Context) -> Iterator[Cause]:
    yield from _check_keywords(schema, path, context)
    if schema.get("uniqueItems"):
        text = "uniqueItems cannot be set to true since the runtime complexity becomes quadratic"
        yield forbidden_field(f"{path}.uniqueItems", text)
    others = schema.get("additionalProperties")
    if others is not None and others is not True and schema.get("properties"):
        text = "additionalProperties and properties are mutual exclusive"
        yield forbidden_field(f"{path}.additionalProperties", text)
    for where, inside in _inside(schema):
        yield from _check(inside, f"{path}{where}", context.inside(schema, where))
    if schema.get(_PRESERVE) is False:
        yield invalid(f"{path}.{_PRESERVE}", False, "must be true or undefined")
    yield from _check_map_type(schema, path)
    yield from _check_list_type(schema, path)
    yield from _check_list_keys(schema, path)
    yield from _check_list_items(schema, path)
    for number, rule in enumerate(schema.get(_RULES) or ()):
        yield from _check_rule(schema, rule, f"{path}.{_RULES}[{number}]")


def _check_keywords(schema: Mapping[str, Any], path: str, context: _Context) -> Iterator[Cause]:
    found = schema.get("type")
    if found and found not in _TYPES:
        yield _unsupported_value(f"{path}.type", found, _TYPES)
    if schema.get("default") is not None and context.no_defaults:
        yield forbidden_field(f"{path}.default", f"must not be set {context.no_defaults}")
    for name in ("id", "additionalItems", "patternProperties", "definitions", "dependencies"):
        present = schema.get(name)
        if present or (name in ("additionalItems", "dependencies") and present is not None):
            yield forbidden_field(f"{path}.{name}", f"{name} is not supported")
    if schema.get("$ref") is not None:
        yield forbidden_field(f"{path}.$ref", "$ref is not supported")
    if found == "null":
        text = "type cannot be set to null, use nullable as an alternative"
        yield forbidden_field(f"{path}.type", text)
    if isinstance(schema.get("items"), list) and schema["items"]:
        yield forbidden_field(f"{path}.items", "items must be a schema object and not an array")
    if context.in_metadata and schema.get(_EMBEDDED):
        yield forbidden_field(f"{path}.{_EMBEDDED}", "must not be used inside of resource meta")


def _unsupported_value(field: str, value: Any, known: tuple[str, ...]) -> Cause:
    values = ", ".join(map(quoted, known))
    text = f"Unsupported value: {shown(value)}: supported values: {values}"
    return Cause(field, text, "FieldValueNotSupported")


def _must_be(schema: Mapping[str, Any], wanted: str, because: str, path: str) -> Iterator[Cause]:
    found, text = schema.get("type") or "", f"must be {wanted} if {because} is specified"
    if found != wanted:
        yield invalid(f"{path}.type", found, text) if found else required(f"{path}.type", text)


def _check_map_type(schema: Mapping[str, Any], path: str) -> Iterator[Cause]:
    found = schema.get(_MAP)
    if found is None:
        return
    yield from _must_be(schema, "object", _MAP, path)
    if found not in ("atomic", "granular"):
        yield _unsupported_value(f"{path}.{_MAP}", found, ("atomic", "granular"))


def _check_list_type(schema: Mapping[str, Any], path: str) -> Iterator[Cause]:
    found, items = schema.get(_LIST), schema.get("items")
    if found is None:
        return
    yield from _must_be(schema, "array", _LIST, path)
    if schema.get("type") == "array" and found == "set" and isinstance(items, Mapping):
        text = f"must be atomic as item of a list with {_LIST}=set"
        inner = items.get(_LIST)
        if items.get("type") == "array" and inner not in (None, "atomic"):
            yield invalid(f"{path}.items.{_LIST}", inner, text)
        elif items.get("type") == "object" and items.get(_MAP) != "atomic":
            yield invalid(f"{path}.items.{_MAP}", inner, text)
    if found not in ("atomic", "set", "map"):
        yield _unsupported_value(f"{path}.{_LIST}", found, ("atomic", "set", "map"))


def _check_list_keys(schema: Mapping[str, Any], path: str) -> Iterator[Cause]:
    kind, keys, items = schema.get(_LIST), schema.get(_KEYS) or [], schema.get("items")
    text = f"must be map if {_KEYS} is non-empty"
    if keys and kind is None:
        yield required(f"{path}.{_LIST}", text)
    elif keys and kind != "map":
        yield invalid(f"{path}.{_LIST}", kind, text)
    if kind != "map":
        return
    if not keys:
        yield required(f"{path}.{_KEYS}", f"must not be empty if {_LIST} is map")
    if not isinstance(items, Mapping):
        text = "must have a schema" if items is None else "must only have a single schema"
        yield required(f"{path}.items", f"{text} if {_LIST} is map")
    elif items.get("type") != "object":
        text = f"must be object if parent array's {_LIST} is map"
        yield invalid(f"{path}.items.type", items.get("type") or "", text)
    else:
        yield from _check_keys(keys, items, path)


def _check_keys(keys: list[str], items: Mapping[str, Any], path: str) -> Iterator[Cause]:
    fields = items.get("properties") or {}
    for number, key in enumerate(keys):
        if key not in fields:
            text = "entries must all be names of item properties"
            yield invalid(f"{path}.{_KEYS}", keys, text)
        elif fields[key].get("type") in ("array", "object"):
            text = f"must be a scalar type if parent array's {_LIST} is map"
            yield invalid(f"{path}.items.properties[{key}].type", "object", text)
        if key in keys[:number]:
            yield invalid(f"{path}.{_KEYS}", keys, "must not contain duplicate entries")


def _check_list_items(schema: Mapping[str, Any], path: str) -> Iterator[Cause]:
    """Yield errors for a list of type set or map that may contain null or an item without a key."""
    kind, items = schema.get(_LIST), schema.get("items")
    if kind not in ("set", "map") or not isinstance(items, Mapping):
        return
    if items.get("nullable"):
        yield forbidden_field(
            f"{path}.items.nullable", f"cannot be nullable when {_LIST} is {kind}"
        )
    fields = items.get("properties") or {}
    keys = schema.get(_KEYS) or [] if kind == "map" else []
    text = f"this property is in {_KEYS}, so it"
    for key in keys:
        property_path = f"{path}.items.properties[{key}]"
        if key not in fields:
            continue
        if key not in (items.get("required") or ()) and fields[key].get("default") is None:
            yield required(
                f"{property_path}.default", f"{text} must have a default or be a required property"
            )
        if fields[key].get("nullable"):
            yield forbidden_field(f"{property_path}.nullable", f"{text} cannot be nullable")


def _check_rule(schema: Mapping[str, Any], rule: Mapping[str, Any], path: str) -> Iterator[Cause]:
    """Yield the errors in a CEL rule that are visible without compiling its expression."""
    text, message = rule.get("rule") or "", rule.get("message") or ""
    if not text.strip():
        yield required(f"{path}.rule", "rule is not specified")
    elif message and not message.strip():
        yield invalid(f"{path}.message", message, "must be non-empty if specified")
    elif "\n" in message.strip():
        yield invalid(f"{path}.message", message, "must not contain line breaks")
    elif "\n" in text.strip() and not message:
        problem = "message must be specified if rule contains line breaks"
        yield required(f"{path}.message", problem)
    expression = rule.get("messageExpression") or ""
    if expression and not expression.strip():
        problem = "messageExpression must be non-empty if specified"
        yield required(f"{path}.messageExpression", problem)
    if rule.get("reason") is not None and rule["reason"] not in _REASONS:
        yield _unsupported_value(f"{path}.reason", rule["reason"], _REASONS)
    yield from _check_rule_path(schema, rule.get("fieldPath") or "", f"{path}.fieldPath")


def _check_rule_path(schema: Mapping[str, Any], found: str, path: str) -> Iterator[Cause]:
    if found and not found.strip():
        yield invalid(path, found, "must be non-empty if specified")
    if "\n" in found:
        yield invalid(path, found, "must not contain line breaks")
    readable = next(_unsupported(schema), None) is None
    if found and readable and rule_path(schema, found) is None:
        yield invalid(path, found, "must be a valid path")
