"""Prepares rendered objects for applying, and finds the owners of objects.

An object in the namespace of the application has an owner reference to the application. An object
in another namespace cannot have such an owner reference; its labels identify the application.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from polyver.core import PolyverError
from polyver.core.plain import ReadOnlyObject
from polyver.definitions.kinds import GROUP, STORED
from polyver.definitions.names import (
    APP_COMPONENT,
    APP_NAME,
    APP_NAMESPACE,
    APPLIED_BY,
    APPLYING,
    RENDERED,
)
from polyver.definitions.rendering import RenderedObject
from polyver.kube.objects import digest
from polyver.kube.objects.kinds import ResourceKind
from polyver.kube.objects.rules import path_segment_problems
from polyver.languages.values.names import label_value_problems

__all__ = [
    "MOST",
    "Placed",
    "UnknownKind",
    "fields_digest",
    "inputs_digest",
    "is_applied_for",
    "is_prunable",
    "name_of",
    "others_in",
    "place_all",
    "rendered_from",
    "stranger",
]

_NOTES: Final = (
    "polyver.dev/applied",
    APPLYING,
    "kubectl.kubernetes.io/last-applied-configuration",
)
"""Annotations of applications in which clients record their actions.

They are not part of the desired state.
"""
MOST: Final = 500
"""Maximum number of objects that one application may render."""
_FIRST: Final = (("", "Namespace"), ("apiextensions.k8s.io", "CustomResourceDefinition"))
"""Kinds whose objects are applied first, because other rendered objects may need them."""


@dataclass(frozen=True, slots=True)
class Placed:
    """A rendered object that is ready to be applied: with labels, owner and the served kind."""

    object: dict[str, Any]
    kind: ResourceKind
    component: str
    at: str
    """Path of the component or trait whose template made the object."""


def rendered_from(application: ReadOnlyObject) -> dict[str, Any]:
    """Return an application as templates read it: without annotations that record actions."""
    metadata: ReadOnlyObject = application["metadata"]
    annotations: ReadOnlyObject = metadata.get("annotations") or {}
    kept = {name: text for name, text in annotations.items() if name not in _NOTES}
    return {**application, "metadata": {**metadata, "annotations": kept}}


def inputs_digest(application: ReadOnlyObject, revision: ReadOnlyObject) -> str:
    """Return a digest of all inputs from which the objects of an application are rendered."""
    metadata: ReadOnlyObject = rendered_from(application)["metadata"]
    shown = {name: metadata.get(name) or {} for name in ("labels", "annotations")}
    return digest({"revision": revision["name"], "hash": revision["revisionHash"], **shown})


def place_all(
    application: ReadOnlyObject,
    outputs: Sequence[RenderedObject],
    find: Callable[[str, str], ResourceKind | None],
) -> tuple[list[Placed], list[PolyverError]]:
    """Prepare rendered objects for applying: add labels and owners, and sort them.

    `find` returns the served kind for an apiVersion and kind, or None. If it returns None, the
    object is left out, and there is an error UnknownKind. That error may be temporary, because
    another object of the application may be the CustomResourceDefinition of the kind.
    """
    placed: dict[tuple[str, ...], Placed] = {}
    errors: list[PolyverError] = []
    if len(outputs) > MOST:
        # An annotation and the status of the application contain a list of all objects.
        return [], [
            PolyverError(f"{len(outputs)} objects are rendered, and at most {MOST} are allowed")
        ]
    for output in outputs:
        version, name = output.object["apiVersion"], output.object["kind"]
        kind = find(version, name)
        if kind is None:
            errors.append(UnknownKind(version, name, at=output.at))
            continue
        if problem := _problem(output):
            errors.append(PolyverError(f"{name} {problem}", at=output.at, hint=_HINT))
            continue
        one = _placed(application, output, kind)
        key = kind.group, kind.kind, *_named(one.object)
        if key in placed:
            fact = f"{name_of(one.object)} is rendered twice"
            hint = f"{placed[key].at} also renders it; give one of them another name"
            errors.append(PolyverError(fact, at=output.at, hint=hint))
        placed.setdefault(key, one)
    return sorted(placed.values(), key=_turn), errors


_UNFIT: Final = re.compile(r"[?#\\\s\x00-\x1f\x7f]|^$")
_HINT: Final = "this is the output of its template"


def _problem(output: RenderedObject) -> str:
    """Return why an object's name, namespace or labels are invalid: `has an invalid name: ''`.

    Return "" if they are valid.
    """
    metadata = output.object["metadata"]
    for name in ("name", "namespace"):
        text = metadata.get(name)
        if not isinstance(text, str) or _UNFIT.search(text) or path_segment_problems(text):
            return f"has an invalid {name}: {text!r}"
    if not isinstance(metadata.get("labels") or {}, dict):
        return "has metadata.labels that are not a mapping"
    return ""


class UnknownKind(PolyverError):
    """The API server does not serve the kind of a rendered object."""

    def __init__(self, api_version: str, kind: str, *, at: str) -> None:
        hint = "install its definition; it is retried when kinds change"
        super().__init__(f"no {api_version} {kind} is served", at=at, hint=hint)
        self.named = api_version.rpartition("/")[0], kind

    def is_defined_by(self, placed: Iterable[Placed]) -> bool:
        """Report whether one of these objects is the CustomResourceDefinition of the kind."""
        for each in placed:
            if (each.kind.group, each.kind.kind) == _FIRST[1]:
                spec = each.object.get("spec") or {}
                kind = (spec.get("names") or {}).get("kind", "")
                if self.named == (str(spec.get("group", "")), str(kind)):
                    return True
        return False


def _turn(placed: Placed) -> int:
    named = placed.kind.group, placed.kind.kind
    return _FIRST.index(named) if named in _FIRST else len(_FIRST)


def _placed(application: ReadOnlyObject, output: RenderedObject, kind: ResourceKind) -> Placed:
    about: ReadOnlyObject = application["metadata"]
    metadata = {**output.object["metadata"]}
    if not kind.namespaced:
        metadata.pop("namespace", None)
    labels = {APP_NAME: about["name"], APP_NAMESPACE: about["namespace"], RENDERED: "true"}
    if not label_value_problems(output.component):
        labels[APP_COMPONENT] = output.component
    metadata["labels"] = {**(metadata.get("labels") or {}), **labels}
    metadata.pop("ownerReferences", None)
    if metadata.get("namespace") == about["namespace"]:
        owner = {"apiVersion": f"{GROUP}/{STORED}", "kind": "Application"}
        owner |= {name: about[name] for name in ("name", "uid")}
        metadata["ownerReferences"] = [{**owner, "controller": True, "blockOwnerDeletion": True}]
    return Placed({**output.object, "metadata": metadata}, kind, output.component, output.at)


def _named(obj: ReadOnlyObject) -> tuple[str, str]:
    return obj["metadata"].get("namespace", ""), obj["metadata"]["name"]


def name_of(obj: ReadOnlyObject) -> str:
    """Return the kind, namespace and name of an object for messages.

    >>> name_of({"kind": "ConfigMap", "metadata": {"namespace": "default", "name": "a"}})
    'ConfigMap default/a'
    """
    return f"{obj['kind']} {'/'.join(filter(None, _named(obj)))}"


# Ownership.


def stranger(found: ReadOnlyObject, application: ReadOnlyObject) -> str:
    """Return the name of the object's owner, such as `Deployment web`.

    Return "" if the application owns the object. The owner reference or the labels of an object
    name its owner; without both, the result is "another owner".
    """
    metadata: ReadOnlyObject = found["metadata"]
    about: ReadOnlyObject = application["metadata"]
    owner = next((each for each in _owners(found) if each.get("controller")), None)
    if owner is not None and owner.get("uid") != about["uid"]:
        return f"{owner.get('kind')} {owner.get('name')}"
    labels: ReadOnlyObject = metadata.get("labels") or {}
    whose = labels.get(APP_NAMESPACE), labels.get(APP_NAME)
    if whose == (about["namespace"], about["name"]):
        return ""
    if all(whose):
        return f"Application {whose[0]}/{whose[1]}"
    return "" if owner is not None else "another owner"


def is_prunable(found: ReadOnlyObject, application: ReadOnlyObject) -> bool:
    """Report whether polyver applied an object for this application, and nothing else owns it."""
    others = [each for each in _owners(found) if each.get("uid") != application["metadata"]["uid"]]
    applied = any(is_applied_for(each) for each in _entries(found))
    return applied and not others and not stranger(found, application)


def _owners(found: ReadOnlyObject) -> Sequence[ReadOnlyObject]:
    return found["metadata"].get("ownerReferences") or ()


def _entries(found: ReadOnlyObject) -> Sequence[ReadOnlyObject]:
    return found["metadata"].get("managedFields") or ()


def is_applied_for(entry: ReadOnlyObject) -> bool:
    """Report whether this entry of `managedFields` is from polyver's apply for an application."""
    return (entry.get("manager"), entry.get("operation")) == (APPLIED_BY, "Apply")


def others_in(found: ReadOnlyObject) -> list[str]:
    """Return the names of the field managers that have written an object.

    polyver's own manager, and managers that wrote only a subresource such as the status, are left
    out.
    """
    return [
        str(each.get("manager"))
        for each in _entries(found)
        if not is_applied_for(each) and not each.get("subresource")
    ]


def fields_digest(found: ReadOnlyObject) -> str:
    """Return a digest of the names of the fields that polyver's field manager owns in an object.

    If another field manager changes or removes such a field, polyver's field manager loses the
    field, and the digest changes. Fields that another field manager adds do not change the digest.
    """
    mine = [each.get("fieldsV1") for each in _entries(found) if is_applied_for(each)]
    return digest(mine).removeprefix("sha256:")[:16] if mine else ""
