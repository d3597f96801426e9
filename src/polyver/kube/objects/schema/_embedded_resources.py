"""Embedded resources: whole objects inside custom resources, with apiVersion, kind and metadata."""

from __future__ import annotations

from typing import Any

from polyver.core import PolyverError
from polyver.kube.objects.rules import check_metadata, path_segment_problems
from polyver.kube.objects.schema.structure import StructuralSchema
from polyver.kube.objects.status import Cause, required
from polyver.languages.values.names import dns_1035_label_problems
from polyver.languages.values.strings import shown

__all__ = ["MalformedMetadata", "check_embedded", "coerce_embedded"]


class MalformedMetadata(PolyverError):
    """Raised if the metadata of an embedded resource cannot be decoded.

    The server then answers with status 400.
    """

    def __init__(self, field: str, value: Any, problem: str) -> None:
        self.cause = Cause(field, f"Invalid value: {shown(value)}: {problem}")
        super().__init__(f"{field}: {self.cause.message}")


_TEXTS = "name generateName namespace selfLink uid resourceVersion creationTimestamp"
_KNOWN: dict[str, str] = dict.fromkeys(f"{_TEXTS} deletionTimestamp".split(), "string")
_KNOWN |= dict.fromkeys(["generation", "deletionGracePeriodSeconds"], "int64")
_KNOWN |= dict.fromkeys(["labels", "annotations"], "map[string]string")
_KNOWN |= {"finalizers": "[]string"}
_KNOWN |= {"ownerReferences": "[]v1.OwnerReference", "managedFields": "[]v1.ManagedFieldsEntry"}
_WORDS = {str: "string", bool: "bool", int: "number", float: "number", list: "array"}


def coerce_embedded(
    value: Any, schema: StructuralSchema | None, path: str, dropped: list[str]
) -> None:
    """Drop unknown metadata fields of embedded resources, in place; add their paths to `dropped`.

    Raise `MalformedMetadata` if the metadata cannot be decoded.
    """
    if schema is None or not schema.has_embedded:
        return
    if type(value) is dict:
        if schema.embedded:
            _coerce_object(value, path, dropped)
        for key, inside in value.items():
            coerce_embedded(inside, schema.child(key), _inner(path, key, schema), dropped)
    elif type(value) is list:
        for number, item in enumerate(value):
            coerce_embedded(item, schema.items, f"{path}[{number}]", dropped)


def _inner(path: str, key: str, schema: StructuralSchema) -> str:
    """Return the path of the field `key`: `a.b` if it is declared, `a[b]` if it is a map key."""
    if key not in schema.fields:
        return f"{path}[{key}]"
    return f"{path}.{key}" if path else key


def _coerce_object(value: dict[str, Any], path: str, dropped: list[str]) -> None:
    prefix = f"{path}." if path else ""
    for key in ("apiVersion", "kind"):
        if key in value and not isinstance(value[key], str):
            raise MalformedMetadata(f"{prefix}{key}", value[key], "must be a string")
    if "metadata" not in value:
        return
    metadata_path = f"{prefix}metadata"
    found = value["metadata"] if value["metadata"] is not None else {}
    if not isinstance(found, dict):
        text = f"json: cannot unmarshal {_word(found)} into Go value of type v1.ObjectMeta"
        raise MalformedMetadata(metadata_path, found, text)
    for key, inside in found.items():
        problem = _problem(key, inside) if key in _KNOWN else ""
        if problem:
            raise MalformedMetadata(metadata_path, found, problem)
    dropped += sorted(f"{metadata_path}.{key}" for key in found if key not in _KNOWN)
    value["metadata"] = {key: each for key, each in found.items() if key in _KNOWN and each}


def _word(value: Any) -> str:
    return _WORDS.get(type(value), "object")


def _problem(key: str, value: Any) -> str:
    """Return the error if a metadata field has the wrong type; otherwise an empty string."""
    wanted = _KNOWN[key]
    for inside, inner in _typed(value, wanted):
        if not _fits(inside, inner):
            found = f"number {shown(inside)}" if isinstance(inside, float) else _word(inside)
            target = f"Go struct field ObjectMeta.{key} of type {inner}"
            return f"json: cannot unmarshal {found} into {target}"
    return ""


def _typed(value: Any, wanted: str) -> list[tuple[Any, str]]:
    if wanted == "map[string]string" and isinstance(value, dict):
        return [(inside, "string") for inside in value.values()]
    if wanted.startswith("[]") and isinstance(value, list):
        return [(inside, wanted.removeprefix("[]")) for inside in value]
    return [(value, wanted)]


def _fits(value: Any, wanted: str) -> bool:
    if value is None:
        return True
    match wanted:
        case "string":
            return isinstance(value, str)
        case "int64":
            return isinstance(value, int) and not isinstance(value, bool)
        case "v1.OwnerReference" | "v1.ManagedFieldsEntry":
            return isinstance(value, dict)
        case _:
            return False


def check_embedded(value: Any, schema: StructuralSchema | None, path: str) -> list[Cause]:
    """Return the errors in the kind and metadata of all embedded resources in a value."""
    if schema is None or not schema.has_embedded:
        return []
    causes: list[Cause] = []
    if type(value) is dict:
        if schema.embedded:
            causes += check_object(value, path)
        for key, inside in value.items():
            causes += check_embedded(inside, schema.child(key), _inner(path, key, schema))
    elif type(value) is list:
        for number, item in enumerate(value):
            causes += check_embedded(item, schema.items, f"{path}[{number}]")
    return causes


def check_object(value: dict[str, Any], path: str) -> list[Cause]:
    """Return the errors in the kind and metadata of one object."""
    prefix = f"{path}." if path else ""
    causes = [required(f"{prefix}{key}") for key in ("apiVersion", "kind") if key not in value]
    for key in ("apiVersion", "kind"):
        problem = _type_problem(key, value[key]) if key in value else ""
        if problem:
            causes.append(Cause(f"{prefix}{key}", f"Invalid value: {shown(value[key])}: {problem}"))
    metadata = value.get("metadata")
    if isinstance(metadata, dict):
        named = {"name": "fakename"} | {key: each for key, each in metadata.items() if each}
        namespaced = bool(metadata.get("namespace"))
        found = check_metadata(named, namespaced=namespaced, name_problems=path_segment_problems)
        causes += [Cause(f"{prefix}{each.field}", each.message, each.reason) for each in found]
    return causes


def _type_problem(key: str, value: Any) -> str:
    if not isinstance(value, str):
        return "must be a string"
    if not value:
        return "must not be empty"
    if key == "apiVersion":
        return f"unexpected GroupVersion string: {value}" if value.count("/") > 1 else ""
    problems = dns_1035_label_problems(value.lower())
    if not problems:
        return ""
    return f"may have mixed case, but should otherwise match: {','.join(problems)}"
