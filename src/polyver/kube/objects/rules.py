"""Validation of the metadata of an object of any kind, with kube-apiserver's messages."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from polyver.kube.objects.codec import encode_json
from polyver.kube.objects.status import Cause, forbidden_field, invalid_field, required
from polyver.languages.values.names import (
    dns_label_problems,
    dns_subdomain_problems,
    label_key_problems,
    label_value_problems,
)
from polyver.languages.values.strings import shown

__all__ = [
    "check_metadata",
    "check_metadata_update",
    "path_segment_problems",
]

Problems = Callable[[str], list[str]]
_MOST_ANNOTATIONS = 256 * 1024


def path_segment_problems(name: str) -> list[str]:
    """Return the errors in a name that may be any segment of a URL path.

    The name must not be `.` or `..`, and must not contain `/` or `%`.
    """
    if name in (".", ".."):
        return [f"may not be '{name}'"]
    return [f"may not contain '{each}'" for each in ("/", "%") if each in name]


def check_metadata(
    metadata: Mapping[str, Any],
    *,
    namespaced: bool,
    name_problems: Problems = dns_subdomain_problems,
    generating: bool = False,
) -> list[Cause]:
    """Return all errors in the metadata of an object that is written.

    `generating` is True for a create. Only then `generateName` is checked.
    """
    causes = _check_name(metadata, name_problems, generating=generating)
    namespace = metadata.get("namespace") or ""
    if namespaced and not namespace:
        causes.append(required("metadata.namespace"))
    elif namespaced:
        causes += [
            invalid_field("metadata.namespace", namespace, problem)
            for problem in dns_label_problems(namespace)
        ]
    elif namespace:
        text = "not allowed on this type"
        causes.append(forbidden_field("metadata.namespace", text))
    causes += _check_labels(metadata.get("labels") or {})
    causes += check_annotations(metadata.get("annotations") or {})
    causes += _check_owners(metadata.get("ownerReferences") or [])
    causes += _check_finalizers(metadata.get("finalizers") or [])
    return causes


def _check_name(
    metadata: Mapping[str, Any], name_problems: Problems, *, generating: bool
) -> list[Cause]:
    causes: list[Cause] = []
    prefix, name = metadata.get("generateName") or "", metadata.get("name") or ""
    if prefix and generating:
        # A prefix may end with a dash, a name may not.
        causes += [
            invalid_field("metadata.generateName", prefix, problem)
            for problem in name_problems(_without_dash(prefix))
        ]
    if not name:
        return [*causes, required("metadata.name", "name or generateName is required")]
    return causes + [
        invalid_field("metadata.name", name, problem) for problem in name_problems(name)
    ]


def _without_dash(prefix: str) -> str:
    return f"{prefix[:-1]}a" if len(prefix) > 1 and prefix.endswith("-") else prefix


def _check_labels(labels: Mapping[str, str]) -> list[Cause]:
    causes: list[Cause] = []
    for key in sorted(labels):
        causes += [invalid_field("metadata.labels", key, text) for text in label_key_problems(key)]
        causes += [
            invalid_field("metadata.labels", labels[key], text)
            for text in label_value_problems(labels[key])
        ]
    return causes


def check_annotations(annotations: Mapping[str, str]) -> list[Cause]:
    """Return the errors in annotations: their keys and their total size."""
    causes = [
        invalid_field("metadata.annotations", key, text)
        for key in sorted(annotations)
        for text in label_key_problems(key.lower())
    ]
    size = sum(len(key.encode()) + len(value.encode()) for key, value in annotations.items())
    if size > _MOST_ANNOTATIONS:
        text = f"Too long: may not be more than {_MOST_ANNOTATIONS} bytes"
        causes.append(Cause("metadata.annotations", text, "FieldValueTooLong"))
    return causes


def _check_owners(owners: Sequence[Mapping[str, Any]]) -> list[Cause]:
    causes: list[Cause] = []
    for number, owner in enumerate(owners):
        causes += _check_owner(owner, f"metadata.ownerReferences[{number}]")
    in_charge = [owner for owner in owners if owner.get("controller")]
    if len(in_charge) > 1:
        names = [f"{owner.get('kind', '')}/{owner.get('name', '')}" for owner in in_charge]
        text = (
            "Only one reference can have Controller set to true. Found "
            f'"true" in references for {names[0]} and {names[1]}'
        )
        shown_owners = ",".join(map(_as_text, owners))
        message = f"Invalid value: [{shown_owners}]: {text}"
        causes.append(Cause("metadata.ownerReferences", message))
    return causes


def _check_owner(owner: Mapping[str, Any], field: str) -> list[Cause]:
    causes: list[Cause] = []
    version = owner.get("apiVersion") or ""
    if version.count("/") > 1:
        text = "must be <group>/<version> or <version>"
        causes.append(invalid_field(f"{field}.apiVersion", version, text))
    names = {"apiVersion": version.rpartition("/")[2]}
    causes += [
        required(f"{field}.{name}", "must not be empty")
        for name in ("apiVersion", "kind", "name", "uid")
        if not (names.get(name) or owner.get(name))
    ]
    if owner.get("kind") == "Event" and version in ("v1", "events.k8s.io/v1"):
        group, _, only = version.rpartition("/")
        text = f"{group}/{only}, Kind=Event is disallowed from being an owner"
        causes.append(Cause(field, f"Invalid value: {_as_text(owner)}: {text}"))
    return causes


def _as_text(owner: Mapping[str, Any]) -> str:
    """Write an owner reference as JSON for an error message.

    The order of its fields is kube-apiserver's.
    """
    order = ("apiVersion", "kind", "name", "uid", "controller", "blockOwnerDeletion")
    given = {name: owner[name] for name in order if owner.get(name) is not None}
    return encode_json(given).decode()


def _check_finalizers(finalizers: Sequence[str]) -> list[Cause]:
    causes = [
        invalid_field("metadata.finalizers", each, text)
        for each in finalizers
        for text in label_key_problems(each)
    ]
    if "orphan" in finalizers and "foregroundDeletion" in finalizers:
        text = "finalizer orphan and foregroundDeletion cannot be both set"
        causes.append(invalid_field("metadata.finalizers", list(finalizers), text))
    return causes


_IMMUTABLE = (
    "name",
    "namespace",
    "uid",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
)


def check_metadata_update(metadata: Mapping[str, Any], old: Mapping[str, Any]) -> list[Cause]:
    """Return all errors in a change of metadata from `old` to `metadata`.

    The caller has already restored the fields that clients cannot change.
    """
    causes: list[Cause] = []
    if old.get("deletionTimestamp"):
        before = old.get("finalizers") or []
        added = [each for each in metadata.get("finalizers") or [] if each not in before]
        if added:
            texts = ", ".join(shown(each) for each in sorted(added))
            text = (
                "no new finalizers can be added if the object is being deleted, found new "
                f"finalizers []string{{{texts}}}"
            )
            causes.append(forbidden_field("metadata.finalizers", text))
    for name in _IMMUTABLE:
        value = metadata.get(name)
        if value != old.get(name):
            causes.append(invalid_field(f"metadata.{name}", value, "field is immutable"))
    causes += _check_labels(metadata.get("labels") or {})
    causes += check_annotations(metadata.get("annotations") or {})
    causes += _check_owners(metadata.get("ownerReferences") or [])
    causes += _check_finalizers(metadata.get("finalizers") or [])
    return causes
