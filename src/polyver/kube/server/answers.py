"""Builds responses with objects and lists in the format that the client requests.

If possible, a response is built from the stored bytes, without decoding an object.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from functools import lru_cache
from typing import TypeVar

import msgspec

from polyver.core.plain import Object
from polyver.kube.objects import dump_yaml, encode_json
from polyver.kube.objects.codec import encode_sorted
from polyver.kube.objects.status import ApiError, bad_request
from polyver.kube.objects.tables import (
    CUSTOM_SCALE,
    Include,
    Printer,
    builtin_printer,
    partial_metadata,
    to_table,
)
from polyver.kube.server.call import Call
from polyver.kube.server.conversion import UnreadableObject, unreadable_list
from polyver.kube.server.http import JSON, YAML, HttpResponse, ResponseFormat
from polyver.kube.server.resource import (
    EntryNotConverted,
    ServedResource,
    metadata_alone,
)
from polyver.kube.store import StoreEntry

T = TypeVar("T")
_AT_ONCE = 16
_JOINED, _CUT, _DECODED = 256, 64, 8
"""Values for the argument `quick` of `Call.run`, which decides whether a worker thread is used.

`_JOINED`: the response joins the stored JSON of the objects. `_CUT`: the response has only their
metadata, which is cut out of the stored JSON. `_DECODED`: the objects are decoded, for example for
a Table. All values are above 1, because building a list takes less time per byte than decoding a
request body.
"""
_AS_STORED = frozenset({"", "PartialObjectMetadata"})
"""The values of `ResponseFormat.kind` for which the stored bytes are used without decoding.

The empty string means the whole object.
"""
__all__ = ["in_form", "list_answer", "object_answer", "status_answer"]


async def object_answer(
    call: Call, entry: StoreEntry, status: int = 200, *, kept: bool = False
) -> HttpResponse:
    """Build the response with one stored object.

    With `kept`, the converted object may come from a cache.
    """
    form = call.form
    call.weight = max(call.weight, len(entry.value))
    if form.media == JSON and form.kind in _AS_STORED:
        value = await call.resource.shown(entry, kept=kept)
        if form.kind:
            value = metadata_alone(value, form.api_version)
        return call.answer(status, value)
    return await data_answer(call, await call.resource.decode(entry, kept=kept), status)


async def data_answer(call: Call, obj: Object, status: int = 200) -> HttpResponse:
    """Build the response with an object that is already decoded."""
    return await call.run(lambda: _written(call, in_form(call, obj), status))


def status_answer(error: ApiError, form: ResponseFormat) -> HttpResponse:
    """Build the response for an error, in the format that the client requests."""
    headers = [(name.lower(), value) for name, value in error.headers.items()]
    if form.media == YAML:
        return HttpResponse(error.code, [("content-type", YAML), *headers], _yaml(error.status))
    return HttpResponse(error.code, [("content-type", JSON), *headers], encode_json(error.status))


def in_form(call: Call, obj: Object) -> Object:
    """Convert an object to the requested format: a Table, its metadata, or the object itself."""
    form = call.form
    match form.kind:
        case "Table":
            return table_of(call, [obj])
        case "PartialObjectMetadata":
            return partial_metadata(obj, form.api_version)
        case "PartialObjectMetadataList":
            raise ApiError(500, "", "content is not a list")
    return obj


def table_of(
    call: Call, objects: Sequence[Object], metadata: Object | None = None, *, columns: bool = True
) -> Object:
    """Build a Table with a row for each object; `metadata` is the metadata of the list.

    The query parameter `includeObject` selects the content of each row: the whole object, only its
    metadata, or no object.
    """
    return to_table(
        objects,
        _printer(call),
        api_version=call.form.api_version,
        include=_include(call.query.text("includeObject")),
        list_metadata=metadata,
        now=call.server.now(),
        columns=columns,
    )


def _printer(call: Call) -> Printer:
    if call.api_path.subresource != "scale":
        return call.resource.printer
    return CUSTOM_SCALE if call.resource.kind.custom else builtin_printer("autoscaling", "Scale")


def _include(text: str) -> Include:
    match text:
        case "":
            return "Metadata"
        case "None" | "Metadata" | "Object":
            return text
    problem = (
        f"includeObject: Invalid value: \"{text}\": must be 'Metadata', 'Object', 'None', or empty"
    )
    raise bad_request(f"Unable to convert to Table as requested: {problem}")


async def list_answer(call: Call, entries: Sequence[StoreEntry], metadata: Object) -> HttpResponse:
    """Build the response with a list of stored objects; `metadata` is the metadata of the list."""
    resource, form = call.resource, call.form
    call.weight = max(call.weight, sum(len(entry.value) for entry in entries))
    if form.media == JSON and not form.kind:
        values = await _values(resource, entries)
        whole = lambda: call.answer(200, _joined(resource, values, metadata))  # noqa: E731
        return await call.run(whole, quick=_JOINED)
    if form.media == JSON and form.kind == "PartialObjectMetadataList":
        values = await _values(resource, entries)
        return await call.run(lambda: _metadata_list(call, values, metadata), quick=_CUT)
    if form.kind == "PartialObjectMetadata":
        what = "*unstructured.UnstructuredList" if resource.kind.custom else _go_name(resource)
        text = f"you requested PartialObjectMetadata, but the requested object is a list ({what})"
        raise ApiError(406, "NotAcceptable", text)
    if all(map(resource.is_shown, entries)):
        return await call.run(lambda: _decoded_list(call, entries, metadata), quick=_DECODED)
    objects = await _all(resource, entries, lambda entry: resource.decode(entry, kept=True))
    return await call.run(lambda: _data_list(call, objects, entries, metadata), quick=_DECODED)


def _metadata_list(call: Call, values: Sequence[bytes], metadata: Object) -> HttpResponse:
    form = call.form
    alone = [metadata_alone(value, form.api_version) for value in values]
    return call.answer(200, _list(form.kind, form.api_version, metadata, alone))


def _decoded_list(call: Call, entries: Sequence[StoreEntry], metadata: Object) -> HttpResponse:
    objects = [call.resource.as_stored(entry) for entry in entries]
    return _data_list(call, objects, entries, metadata)


def _data_list(
    call: Call, objects: Sequence[Object], entries: Sequence[StoreEntry], metadata: Object
) -> HttpResponse:
    """Build the response with a list in a format, such as a Table, that needs decoded objects."""
    resource, form = call.resource, call.form
    if form.kind == "Table":
        table = table_of(call, objects, metadata)
        is_included = _include(call.query.text("includeObject")) == "Metadata"
        if is_included and form.media == JSON and all(map(resource.is_shown, entries)):
            _include_stored(table, entries)
        return _written(call, table, 200)
    if form.kind:
        items = [partial_metadata(obj, form.api_version) for obj in objects]
        listed = {"kind": form.kind, "apiVersion": form.api_version}
        return _written(call, listed | {"metadata": metadata, "items": items}, 200)
    return _written(call, list_of(resource, objects, metadata), 200)


def _include_stored(table: Object, entries: Sequence[StoreEntry]) -> None:
    """Set the `object` of each row of a Table to the stored metadata, which is not decoded."""
    for row, entry in zip(table["rows"] or (), entries, strict=True):
        row["object"] = msgspec.Raw(metadata_alone(entry.value, table["apiVersion"]))


def list_of(resource: ServedResource, objects: Sequence[Object], metadata: Object) -> Object:
    """Build a list object, such as a PodList, from decoded objects."""
    named = {"kind": resource.kind.list_kind, "apiVersion": resource.kind.api_version}
    items = list(objects)
    if not resource.kind.custom:
        items = [
            {key: value for key, value in obj.items() if key not in ("apiVersion", "kind")}
            for obj in objects
        ]
    return named | {"metadata": metadata, "items": items}


def _go_name(resource: ServedResource) -> str:
    return f"*{resource.kind.group.partition('.')[0] or 'core'}.{resource.kind.list_kind}"


def _joined(resource: ServedResource, values: Sequence[bytes], metadata: Object) -> bytes:
    """Build the JSON of a list by joining the stored JSON of its objects."""
    if not resource.kind.custom:
        start = len(resource.head)
        values = [b"{" + value[start:] for value in values]
    return _list(resource.kind.list_kind, resource.kind.api_version, metadata, values)


async def _values(resource: ServedResource, entries: Sequence[StoreEntry]) -> Sequence[bytes]:
    if all(map(resource.is_shown, entries)):
        return [entry.value for entry in entries]
    return await _all(resource, entries, lambda entry: resource.shown(entry, kept=True))


def _list(kind: str, api_version: str, metadata: Object, items: Sequence[bytes]) -> bytes:
    head = _list_head(kind, api_version)
    return b'%b,"metadata":%b,"items":[%b]}' % (head, encode_json(metadata), b",".join(items))


async def _all(
    resource: ServedResource,
    entries: Sequence[StoreEntry],
    read: Callable[[StoreEntry], Awaitable[T]],
) -> list[T]:
    """Call `read` for each entry of a list, and return the results.

    If some entries cannot be converted, raise one error that describes all of them.
    """
    found: list[T] = []
    failed: list[EntryNotConverted] = []
    for start in range(0, len(entries), _AT_ONCE):
        some = entries[start : start + _AT_ONCE]
        for one in await asyncio.gather(*map(read, some), return_exceptions=True):
            if isinstance(one, EntryNotConverted):
                failed.append(one)
            elif isinstance(one, BaseException):
                raise one
            else:
                found.append(one)
    if failed:
        raise unreadable_list(resource.kind, [as_unreadable(each) for each in failed])
    return found


def as_unreadable(failed: EntryNotConverted) -> UnreadableObject:
    """Build the description of an object that cannot be converted, for an error message."""
    *_, namespace, name = failed.entry.key.split("/")
    namespace = namespace if failed.entry.key.count("/") > 3 else ""
    return UnreadableObject(namespace, name, failed.entry.revision, failed.problem)


@lru_cache(maxsize=1024)
def _list_head(kind: str, api_version: str) -> bytes:
    return encode_json({"kind": kind, "apiVersion": api_version})[:-1]


def _written(call: Call, data: Object, status: int) -> HttpResponse:
    if call.form.media == YAML:
        return call.answer(status, _yaml(data), YAML)
    return call.answer(status, encode_json(data))


def _yaml(data: Object) -> bytes:
    """Encode data as YAML with sorted keys, as kube-apiserver does."""
    return dump_yaml(msgspec.json.decode(encode_sorted(data))).encode()
