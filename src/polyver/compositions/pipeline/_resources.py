"""Composed resources: those that exist, those to apply, and those to delete."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from polyver.capability import Refusal
from polyver.compositions._function_references import mapping
from polyver.compositions.decisions import Secret
from polyver.compositions.messages import Ready, Resource
from polyver.compositions.names import COMPOSITE, RESOURCE, composed_name
from polyver.core.plain import ReadOnlyObject
from polyver.kube.objects.converted_metadata import fresh
from polyver.kube.objects.owners import controller_of, controlling

__all__ = [
    "ComposedResource",
    "RemovedResource",
    "check_distinct",
    "composed_of",
    "connection_secret",
    "observe",
    "reference_to",
    "removed_of",
    "shown",
]

Identity = tuple[str, str, str, str]
# Metadata that the API server owns. Functions that copy observed objects also return these fields.
_SERVERS = frozenset(
    {
        "creationTimestamp",
        "deletionGracePeriodSeconds",
        "deletionTimestamp",
        "generateName",
        "generation",
        "managedFields",
        "resourceVersion",
        "selfLink",
        "uid",
    }
)


@dataclass(frozen=True, slots=True)
class ComposedResource:
    """A composed resource that is to be applied."""

    name: str
    """The name of the resource in the pipeline."""
    obj: dict[str, Any]
    ready: bool
    exists: bool


@dataclass(frozen=True, slots=True)
class RemovedResource:
    """An existing composed resource that the pipeline no longer wants."""

    name: str
    obj: ReadOnlyObject


def observe(
    composite: ReadOnlyObject, objects: Iterable[tuple[ReadOnlyObject, Mapping[str, bytes]]]
) -> dict[str, Resource]:
    """Return the existing composed resources, by their names in the pipeline.

    `objects` are the objects to which `resourceRefs` refer, each with its connection details. An
    object whose controller is not the composite resource is left out. Raise Refusal if an object
    lacks the annotation with its name in the pipeline.
    """
    found: dict[str, Resource] = {}
    for obj, details in objects:
        controller = controller_of(obj)
        if controller not in ("", composite["metadata"].get("uid", "")):
            continue
        name = mapping(obj["metadata"].get("annotations")).get(RESOURCE)
        if not name:
            fact = f"{shown(obj)} has no name in the pipeline"
            hint = f"restore the annotation {RESOURCE}, or delete the object"
            raise Refusal("AnonymousResource", fact, at="spec.resourceRefs", hint=hint)
        found[name] = Resource(dict(obj), details)
    return found


def connection_secret(obj: ReadOnlyObject) -> Secret | None:
    """Return the Secret to which a resource writes connection details; None if it has none."""
    reference = mapping(mapping(obj.get("spec")).get("writeConnectionSecretToRef"))
    namespace = reference.get("namespace") or obj["metadata"].get("namespace")
    name = reference.get("name")
    return Secret(namespace, name) if name and namespace else None


def composed_of(
    composite: ReadOnlyObject, observed: Mapping[str, Resource], desired: Mapping[str, Resource]
) -> tuple[ComposedResource, ...]:
    """Build the resources to apply, sorted by name. Raise Refusal if one of them is invalid."""
    return tuple(
        _composed(composite, name, observed.get(name), desired[name]) for name in sorted(desired)
    )


def check_distinct(composite: ReadOnlyObject, made: Iterable[ComposedResource]) -> None:
    """Raise Refusal if two composed resources are the same object.

    Otherwise, the second resource would overwrite the first one in each reconcile. Also raise
    Refusal if one of them is the composite resource itself.
    """
    taken: dict[Identity, str] = {_identity(composite): ""}
    for each in made:
        other = taken.setdefault(_identity(each.obj), each.name)
        if other != each.name:
            about = f'"{other}"' if other else "the composite resource itself"
            fact = f'"{each.name}" is the same object as {about}: {shown(each.obj)}'
            raise Refusal("InvalidDesired", fact)


def _composed(
    composite: ReadOnlyObject, name: str, there: Resource | None, wanted: Resource
) -> ComposedResource:
    obj: dict[str, Any] = fresh(wanted.resource)
    _check(name, obj)
    given = obj.get("metadata") or {}
    metadata = {k: v for k, v in given.items() if k not in _SERVERS and v not in ("", None)}
    same = there is not None and _group_kind(there.resource) == _group_kind(obj)
    if there is not None and same:
        kept = there.resource["metadata"]
        metadata |= {key: kept[key] for key in ("name", "namespace") if kept.get(key)}
    about: ReadOnlyObject = composite["metadata"]
    prefix = mapping(about.get("labels")).get(COMPOSITE) or about["name"]
    metadata.setdefault("name", composed_name(prefix, about.get("uid", ""), name))
    namespace = about.get("namespace")
    if namespace and metadata.setdefault("namespace", namespace) != namespace:
        there_is = metadata["namespace"]
        fact = f'"{name}" is in the namespace {there_is}, the composite resource in {namespace}'
        raise Refusal("InvalidDesired", fact, hint="owners are in the same namespace")
    owners = metadata.get("ownerReferences") or ()
    others = [dict(each) for each in owners if each.get("uid") != about.get("uid", "")]
    if any(each.get("controller") for each in others):
        raise Refusal("InvalidDesired", f'"{name}" has another controller')
    metadata["labels"] = {**(metadata.get("labels") or {}), COMPOSITE: prefix}
    metadata["annotations"] = {**(metadata.get("annotations") or {}), RESOURCE: name}
    metadata["ownerReferences"] = [*others, controlling(composite)]
    return ComposedResource(name, {**obj, "metadata": metadata}, wanted.ready is Ready.TRUE, same)


def _check(name: str, obj: ReadOnlyObject) -> None:
    """Raise Refusal if a desired resource does not have the format of a Kubernetes object.

    The API server checks everything else when the resource is applied.
    """
    if not name:
        raise Refusal("InvalidDesired", "a desired resource has no name in the pipeline")
    for field in ("apiVersion", "kind"):
        if not isinstance(obj.get(field), str) or not obj[field]:
            raise _wrong(name, f"it has no {field}", field)
    metadata = {} if obj.get("metadata") is None else obj["metadata"]
    if not isinstance(metadata, Mapping):
        raise _wrong(name, "it is not a mapping", "metadata")
    for field in ("labels", "annotations"):
        if not isinstance(metadata.get(field) or {}, Mapping):
            raise _wrong(name, "it is not a mapping", f"metadata.{field}")
    for field in ("name", "namespace"):
        if not isinstance(metadata.get(field), str | None):
            raise _wrong(name, "it is not a string", f"metadata.{field}")
    owners = metadata.get("ownerReferences") or []
    if not isinstance(owners, list) or not all(isinstance(each, Mapping) for each in owners):
        raise _wrong(name, "it is not a list of mappings", "metadata.ownerReferences")


def _wrong(name: str, fact: str, at: str) -> Refusal:
    told = f'the desired resource "{name}" is invalid: {fact}'
    return Refusal("InvalidDesired", told, at=at)


def removed_of(
    observed: Mapping[str, Resource], composed: Iterable[ComposedResource]
) -> tuple[RemovedResource, ...]:
    """Return the existing resources that the pipeline does not compose any more, sorted by name."""
    kept = [*composed]
    wanted = {_identity(each.obj) for each in kept}
    # A resource from a file may have no metadata.name. It then has only a name in the pipeline.
    again = {each.name for each in kept if each.exists}
    return tuple(
        RemovedResource(name, there.resource)
        for name, there in sorted(observed.items())
        if _identity(there.resource) not in wanted
        and not (name in again and not there.resource["metadata"].get("name"))
    )


def _identity(obj: ReadOnlyObject) -> Identity:
    metadata: ReadOnlyObject = obj["metadata"]
    return (*_group_kind(obj), metadata.get("namespace") or "", metadata.get("name") or "")


def _group_kind(obj: ReadOnlyObject) -> tuple[str, str]:
    group, slash, _ = str(obj["apiVersion"]).partition("/")
    return group if slash else "", obj["kind"]


def reference_to(obj: ReadOnlyObject) -> dict[str, str]:
    """Return the entry for an object in `resourceRefs`."""
    metadata: ReadOnlyObject = obj["metadata"]
    found = {"apiVersion": obj["apiVersion"], "kind": obj["kind"], "name": metadata["name"]}
    namespace = metadata.get("namespace")
    return found | ({"namespace": namespace} if namespace else {})


def shown(obj: ReadOnlyObject) -> str:
    """Return the kind, namespace and name of an object, for messages: `ConfigMap default/a`."""
    namespace, name = (
        obj["metadata"].get("namespace"),
        obj["metadata"].get("name", "without a name"),
    )
    return f"{obj['kind']} {namespace}/{name}" if namespace else f"{obj['kind']} {name}"
