"""The metadata of a converted object: a conversion may change only labels and annotations.

If a conversion changes the name, the namespace or the uid, this is an error. If it changes other
metadata, the metadata of the original object is used.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from polyver.core import PolyverError
from polyver.core.plain import Object
from polyver.kube.objects.rules import check_annotations
from polyver.kube.objects.status import Cause, invalid_field
from polyver.languages.values.names import label_key_problems, label_value_problems
from polyver.languages.values.strings import same

__all__ = [
    "InvalidMetadata",
    "InvalidObject",
    "check_identity",
    "check_kept",
    "fresh",
    "restored",
]


class InvalidObject(PolyverError):
    """Raised if a conversion changed the name, the namespace or the uid of an object."""


class InvalidMetadata(PolyverError):
    """Raised if a conversion returned invalid metadata, or changed other metadata than it may."""


_IDENTITY = (("name", "name"), ("namespace", "namespace"), ("uid", "UID"))


def check_identity(original: Object, converted: Mapping[str, Any]) -> None:
    """Raise `InvalidObject` if the converted object has another name, namespace or uid."""
    before, after = original.get("metadata"), converted.get("metadata")
    for field, shown in _IDENTITY:
        expected, found = _text(before, field), _text(after, field)
        if expected != found:
            raise InvalidObject(f"must have the same {shown}: {expected} != {found}")


def _text(metadata: object, field: str) -> str:
    """Return a field of the metadata if it is a string; otherwise an empty string."""
    found = metadata.get(field) if isinstance(metadata, dict) else ""
    return found if isinstance(found, str) else ""


def restored(original: Mapping[str, Any], converted: object) -> dict[str, Any]:
    """Build the metadata of the original with the labels and annotations of the converted object.

    Raise `InvalidMetadata` if these labels or annotations are invalid.

    >>> restored({"name": "a", "labels": {"x": "1"}}, {"name": "a", "finalizers": ["ex.io/f"]})
    {'name': 'a'}
    """
    if not isinstance(converted, dict):
        text = f"invalid metadata of type {type_name(converted)} in converted object"
        raise InvalidMetadata(text if converted is not None else _MISSING)
    kept = {name: value for name, value in original.items() if name not in _CHANGEABLE}
    metadata: dict[str, Any] = fresh(kept)
    for field, check in _CHANGEABLE.items():
        if found := _texts(field, converted.get(field)):
            if found != (original.get(field) or {}):
                texts = [f"{cause.field}: {cause.message}" for cause in check(found)]
                if texts := list(dict.fromkeys(texts)):
                    raise InvalidMetadata(texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]")
            metadata[field] = found
    return metadata


def check_kept(original: Mapping[str, Any], converted: Mapping[str, Any]) -> None:
    """Raise `InvalidMetadata` if a conversion changed more than labels and annotations.

    API servers would silently restore the other metadata. An empty field equals an absent field.

    >>> check_kept({"name": "a", "creationTimestamp": None}, {"name": "a", "labels": {"x": "1"}})
    """
    for field in sorted((original.keys() | converted.keys()) - _CHANGEABLE.keys()):
        before, after = original.get(field), converted.get(field)
        if not same(before, after) and not (_is_empty(before) and _is_empty(after)):
            text = "a conversion may only change labels and annotations"
            raise InvalidMetadata(text, at=f"metadata.{field}")


def _is_empty(value: object) -> bool:
    return value is None or value in ("", [], {})


_MISSING = "missing metadata in converted object"


def _texts(field: str, found: object) -> dict[str, str]:
    if found is None:
        return {}
    if not isinstance(found, dict):
        text = f"invalid metadata.{field} of type {type_name(found)} in converted object"
        raise InvalidMetadata(text)
    for key, value in found.items():
        if not isinstance(value, str):
            text = f"must be a string, but is {type_name(value)} in converted object"
            raise InvalidMetadata(f"metadata.{field}[{key}] {text}")
    return dict(found)


def _check_labels(labels: Mapping[str, str]) -> Iterable[Cause]:
    for key in sorted(labels):
        for text in label_key_problems(key):
            yield invalid_field("metadata.labels", key, text)
        for text in label_value_problems(labels[key]):
            yield invalid_field("metadata.labels", labels[key], text)


def _check_annotations(annotations: Mapping[str, str]) -> Iterable[Cause]:
    # For converted objects, kube-apiserver names the field `annotation`, not `annotations`.
    return [replace(cause, field="metadata.annotation") for cause in check_annotations(annotations)]


_CHANGEABLE = {"labels": _check_labels, "annotations": _check_annotations}


_TYPE_NAMES = {
    type(None): "<nil>",
    bool: "bool",
    int: "int64",
    float: "float64",
    str: "string",
    list: "[]interface {}",
}


def type_name(value: object) -> str:
    """Return kube-apiserver's name for the type of a value."""
    return _TYPE_NAMES.get(type(value), "map[string]interface {}")


def fresh(value: Any) -> Any:
    """Copy plain data, so that the copy shares no mutable value with the original."""
    if isinstance(value, dict):
        return {key: fresh(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [fresh(inner) for inner in value]
    return value
