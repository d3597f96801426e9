"""Load manifests into a control plane: read them before it starts, and apply them afterwards.

The manifests are applied as `kubectl apply --server-side` does. So loading the same files again
changes nothing. If another field manager has changed a field, the field keeps its value, and
polyver prints a warning.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import msgspec

from polyver.cli.exit_codes import UnreadableInput
from polyver.cli.files import read_manifests
from polyver.cli.output import warn
from polyver.client import CRDS
from polyver.client.client import Client
from polyver.client.field_managers import POLYVER
from polyver.client.types import GroupVersionResource
from polyver.core import PolyverError
from polyver.kube.objects import Document
from polyver.kube.objects.codec import prepare
from polyver.kube.objects.status import ApiError
from polyver.kube.objects.validation import field_path
from polyver.languages.values.manifests import Path

if TYPE_CHECKING:
    from polyver.kube.server.http import Handler, HttpRequest, HttpResponse

__all__ = ["CRDS", "Manifest", "apply_definition", "documents_of", "load", "manifests_of"]

_DEFINITION = "CustomResourceDefinition"
_COMPOSITE_DEFINITION = "CompositeResourceDefinition"
_FIRST = {_DEFINITION: 0, _COMPOSITE_DEFINITION: 1, "Namespace": 2}
_PATIENCE = 10.0
_LOOK_AGAIN = 0.01


class _Names(msgspec.Struct):
    name: str
    namespace: str | None = None


class _Head(msgspec.Struct):
    """The fields that identify every object."""

    apiVersion: str  # noqa: N815 - Kubernetes' name
    kind: str
    metadata: _Names


prepare(_Head)


@dataclass(frozen=True, slots=True)
class Manifest:
    """An object to load, and the file and line of its manifest."""

    document: Document
    head: _Head

    def __str__(self) -> str:
        return f'{self.head.kind} "{self.head.metadata.name}"'

    @property
    def group_kind(self) -> tuple[str, str]:
        return self.head.apiVersion.rpartition("/")[0], self.head.kind


def manifests_of(names: Sequence[str]) -> list[Manifest]:
    """Read the objects in files and folders; raise an error for a document that is no object."""
    return [Manifest(document, document.read(_Head)) for document in documents_of(names)]


def documents_of(names: Sequence[str]) -> list[Document]:
    """Read the documents in files and folders; split a List object into its items."""
    return [document for each in read_manifests(names) for document in _items(each)]


def _items(document: Document) -> Iterator[Document]:
    value = document.value
    if not isinstance(value, dict) or value.get("kind") != "List":
        yield document
        return
    items = value.get("items")
    if not isinstance(items, list):
        raise document.error("expected a list", "items")
    yield from (document.part("items", number) for number in range(len(items)))


async def load(api: Handler, manifests: Sequence[Manifest]) -> None:
    """Apply all manifests: first CRDs, then namespaces, then all other objects.

    After each CRD, wait until the server serves its kind.
    """
    from polyver.client.in_process import DirectClient
    from polyver.kube.server.identity import ADMIN

    client = DirectClient(_Strict(api), ADMIN, agent=POLYVER)
    ordered = sorted(manifests, key=lambda each: _FIRST.get(each.head.kind, len(_FIRST)))
    defined = {kind for each in manifests for kind in _composite_kind(each)}
    for done, manifest in enumerate(ordered):
        try:
            await _apply(client, manifest, is_awaited=manifest.group_kind in defined)
        except PolyverError as error:
            raise _failure(manifest, error, done) from None


class _Strict:
    """The request pipeline, except that it refuses unknown fields in patches, as kubectl does."""

    def __init__(self, api: Handler) -> None:
        self._api = api

    async def handle(self, request: HttpRequest) -> HttpResponse:
        if request.method == "PATCH":
            request = replace(request, query=f"{request.query}&fieldValidation=Strict")
        return await self._api.handle(request)


def _composite_kind(manifest: Manifest) -> Iterator[tuple[str, str]]:
    """Yield the group and kind that the manifest of a CompositeResourceDefinition defines."""
    match manifest.document.value:
        case {"spec": {"group": str(group), "names": {"kind": str(kind)}}}:
            if manifest.head.kind == _COMPOSITE_DEFINITION:
                yield group, kind


async def _apply(client: Client, manifest: Manifest, *, is_awaited: bool) -> None:
    resource = await _resource(client, manifest, patience=_PATIENCE if is_awaited else 0.0)
    try:
        await client.apply(resource, _content(manifest, resource), manager=POLYVER)
    except ApiError as error:
        if not _is_owned_by_others(error):
            raise
        warn(f"{manifest} is not changed ({manifest.document.place()}); {error.message}")
    if manifest.head.kind == _DEFINITION:
        await _until_served(client, manifest.head.metadata.name)


async def _resource(client: Client, manifest: Manifest, *, patience: float) -> GroupVersionResource:
    head, deadline = manifest.head, time.monotonic() + patience
    while (kind := (await client.discover()).find(head.apiVersion, head.kind)) is None:
        if time.monotonic() >= deadline:
            fact = f"there is no kind {head.kind} in {head.apiVersion}"
            waited = f"its {_COMPOSITE_DEFINITION} is not served after {patience:.0f} s"
            hint = waited if patience else f"load its {_DEFINITION} as well"
            raise UnreadableInput(fact, hint=hint)
        await asyncio.sleep(_LOOK_AGAIN)
    return GroupVersionResource.of(kind)


def _content(manifest: Manifest, resource: GroupVersionResource) -> dict[str, Any]:
    """Return the object to apply. As with kubectl, an object without namespace gets `default`."""
    value = manifest.document.value
    assert isinstance(value, dict)
    if not resource.namespaced or manifest.head.metadata.namespace:
        return value
    return value | {"metadata": value["metadata"] | {"namespace": "default"}}


def _is_owned_by_others(error: ApiError) -> bool:
    causes = (error.details or {}).get("causes") or ()
    return error.code == 409 and any(
        cause.get("reason") == "FieldManagerConflict" for cause in causes
    )


# Wait for a CRD.


async def apply_definition(client: Client, crd: dict[str, Any]) -> None:
    """Apply a CRD, and wait until the server serves its kind."""
    await client.apply(CRDS, crd, manager=POLYVER, force=True)
    await _until_served(client, crd["metadata"]["name"])


async def _until_served(client: Client, name: str) -> None:
    deadline = time.monotonic() + _PATIENCE
    while not await _is_served(client, name):
        if time.monotonic() > deadline:
            raise UnreadableInput(f"its kind is not served after {_PATIENCE:.0f} s")
        await asyncio.sleep(_LOOK_AGAIN)


async def _is_served(client: Client, name: str) -> bool:
    definition = await client.get(CRDS, name)
    conditions = definition.get("status", {}).get("conditions") or ()
    found = {each["type"]: each for each in conditions}
    names = found.get("NamesAccepted", {})
    if names.get("status") == "False":
        raise UnreadableInput(f"its names are not accepted: {names.get('message', '')}")
    if found.get("Established", {}).get("status") != "True":
        return False
    spec, discovery = definition["spec"], await client.discover()
    wanted = [f"{spec['group']}/{each['name']}" for each in spec["versions"] if each["served"]]
    return all(discovery.find(version, spec["names"]["kind"]) for version in wanted)


# Errors, with the location in the manifest.


def _failure(manifest: Manifest, error: PolyverError, done: int) -> UnreadableInput:
    before = {0: "nothing else was applied", 1: "1 object before it was applied"}.get(
        done, f"{done} objects before it were applied"
    )
    place = manifest.document.place(*_path(error))
    reason = error.message if isinstance(error, ApiError) else str(error)
    return UnreadableInput(f"{manifest} cannot be loaded: {reason}", at=place, hint=before)


def _path(error: PolyverError) -> Path:
    """Return the path of the field that a refusal names first; an empty path if it names none."""
    details = error.details if isinstance(error, ApiError) else None
    causes = (details or {}).get("causes") or [{}]
    return field_path(str(causes[0].get("field") or ""))
