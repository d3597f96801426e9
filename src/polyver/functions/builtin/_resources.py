"""`KubeOps`: creates, patches or deletes an object through the API."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from polyver.client import Discovery, GroupVersionResource, preferred
from polyver.core import PolyverError
from polyver.core.plain import Object
from polyver.functions.registering import Alias, Description, register
from polyver.functions.runtime.context import AsyncContext
from polyver.kube.objects.kinds import ResourceKind
from polyver.kube.objects.status import ApiError

__all__ = ["MADE_FOR", "ObjectReference", "create_once", "find_kind", "name_for"]

MADE_FOR = "polyver.dev/made-for"
"""Annotation of an object that a phase created, with the key of the phase.

If the phase is called again, it finds the object by this annotation.
"""


@dataclass(frozen=True, slots=True)
class ObjectReference:
    """A reference to an object, by its resource and its name."""

    name: str
    resource: str
    group: str = ""
    version: Annotated[str, Alias("apiVersion")] = ""
    namespace: str = ""


class _ResourceNotServed(PolyverError):
    """The API server does not serve a resource."""


def find_kind(discovery: Discovery, reference: ObjectReference) -> ResourceKind:
    """Find the served kind of the object that a reference names."""
    version = reference.version.rpartition("/")[2]
    group = reference.group or reference.version.rpartition("/")[0]
    found = [
        kind
        for kind in (*preferred(discovery.kinds), *discovery.kinds)
        if (kind.plural, kind.group) == (reference.resource, group)
        and version in ("", kind.version)
    ]
    if not found:
        named = ".".join(filter(None, (reference.resource, version, group)))
        raise _ResourceNotServed(
            f"{named} is not served here", hint="name resource, group and apiVersion"
        )
    return found[0]


def name_for(key: str, prefix: str = "") -> str:
    """Build an object name from the key of a phase. Each call of the phase gets the same name."""
    return f"{prefix}{hashlib.sha256(key.encode()).hexdigest()[:10]}"


async def create_once(
    ctx: AsyncContext,
    resource: GroupVersionResource,
    content: Object,
    namespace: str,
    *,
    dry_run: bool = False,
) -> Object:
    """Create an object, or return it if an earlier call of this phase has created it."""
    metadata = dict(content.get("metadata") or {})
    metadata["annotations"] = {**(metadata.get("annotations") or {}), MADE_FOR: ctx.key}
    prefix = metadata.pop("generateName", "")
    metadata.setdefault("name", name_for(ctx.key, prefix) if prefix else "")
    content = {**content, "metadata": metadata}
    try:
        return await ctx.client.create(resource, content, namespace, dry_run=dry_run)
    except ApiError as error:
        if error.reason != "AlreadyExists":
            raise
        there = await ctx.client.get(resource, metadata["name"], namespace)
        if (there["metadata"].get("annotations") or {}).get(MADE_FOR) != ctx.key:
            raise
        return there


@register(
    "KubeOps",
    idempotent=True,
    outputs=["apiVersion", "group", "resource", "kind", "name", "namespace"],
)
async def kube_ops(
    ctx: AsyncContext,
    *,
    operation: Annotated[Literal["create", "patch", "delete"], Description("The operation.")],
    namespace: Annotated[
        str,
        Description(
            "The namespace, if spec or objectReference names none. Default: the namespace of the"
            " ActionSet."
        ),
    ] = "",
    spec: Annotated[
        dict[str, Any] | None,
        Description("create: the complete object; patch: the JSON merge patch."),
    ] = None,
    reference: Annotated[
        ObjectReference | None,
        Alias("objectReference"),
        Description("patch and delete: the object, by apiVersion, group, resource and name."),
    ] = None,
    dry_run: Annotated[
        bool,
        Alias("dryRun"),
        Description("Dry run: the server validates the request and changes nothing."),
    ] = False,
) -> dict[str, Any]:
    """Create, patch or delete one object through the API.

    Returned values: `apiVersion`, `group`, `resource`, `kind`, `name` and `namespace` of the
    object. The function is idempotent: it gives each object that it creates the annotation
    polyver.dev/made-for, with the key of the phase. If it is called again for the same phase, it
    finds the object by this annotation. With `generateName`, each call of a phase uses the same
    name. Deleting an object that does not exist succeeds.
    """
    inside = namespace or ctx.namespace
    if operation == "create":
        return await _create(ctx, spec or {}, inside, dry_run=dry_run)
    if reference is None:
        raise PolyverError(f"{operation} needs an objectReference")
    kind = find_kind(await ctx.client.discover(), reference)
    inside = (reference.namespace or inside) if kind.namespaced else ""
    resource = GroupVersionResource.of(kind)
    if operation == "patch":
        if spec is None:
            raise PolyverError("patch needs a spec with the patch to merge")
        await ctx.client.patch(resource, reference.name, inside, change=spec, dry_run=dry_run)
    else:
        await _delete(ctx, resource, reference.name, inside, dry_run=dry_run)
    return _told(kind, reference.name, inside)


async def _create(
    ctx: AsyncContext, spec: Object, namespace: str, *, dry_run: bool
) -> dict[str, Any]:
    named = (spec.get("apiVersion") or "", spec.get("kind") or "")
    kind = (await ctx.client.discover()).find(*named)
    if kind is None:
        said = " ".join(filter(None, named)) or "an object without apiVersion and kind"
        raise _ResourceNotServed(f"{said} is not served here", at="spec")
    inside = (spec.get("metadata") or {}).get("namespace") or namespace
    inside = inside if kind.namespaced else ""
    made = await create_once(ctx, GroupVersionResource.of(kind), spec, inside, dry_run=dry_run)
    return _told(kind, made["metadata"]["name"], inside)


async def _delete(
    ctx: AsyncContext, resource: GroupVersionResource, name: str, namespace: str, *, dry_run: bool
) -> None:
    try:
        await ctx.client.delete(
            resource, name, namespace, propagation="Background", dry_run=dry_run
        )
    except ApiError as error:
        if error.code != 404:
            raise


def _told(kind: ResourceKind, name: str, namespace: str) -> dict[str, Any]:
    return {
        "apiVersion": kind.version,
        "group": kind.group,
        "resource": kind.plural,
        "kind": kind.kind,
        "name": name,
        "namespace": namespace,
    }
