"""Answers GET requests for one object or for a list, which can be divided into pages.

Lists and watches have label and field selectors. To apply a selector, only the necessary part of a
stored object is decoded.
"""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import Sequence
from dataclasses import dataclass

import msgspec
from msgspec import Struct

from polyver.core.plain import Object
from polyver.kube.http.worker_threads import Turns
from polyver.kube.objects import (
    FieldRequirement,
    InvalidSelector,
    LabelRequirement,
    encode_json,
    parse_field_selector,
    parse_label_selector,
)
from polyver.kube.objects.status import ApiError, bad_request, expired, not_found
from polyver.kube.server.answers import data_answer, list_answer, object_answer
from polyver.kube.server.call import Call
from polyver.kube.server.http import HttpResponse
from polyver.kube.server.options import ListOptions, parse_revision, read_revision
from polyver.kube.server.resource import ServedResource
from polyver.kube.store import StoreEntry, StorePage

__all__ = ["Selection", "get_object", "list_objects", "read_selection"]


class _Metadata(Struct):
    name: str = ""
    namespace: str = ""
    labels: dict[str, str] = {}


class _Header(Struct):
    metadata: _Metadata


_header = msgspec.json.Decoder(_Header)
_NAMES = ("metadata.name", "metadata.namespace")


@dataclass(frozen=True, slots=True)
class Selection:
    """The label and field requirements of a list or watch; without them, every object matches."""

    resource: ServedResource
    labels: Sequence[LabelRequirement]
    fields: Sequence[FieldRequirement]

    @property
    def everything(self) -> bool:
        return not self.labels and not self.fields

    @property
    def name(self) -> str:
        """The name that a selector such as `metadata.name=a` requires; "" if there is none."""
        names = [each.value for each in self.fields if each.equal and each.field == _NAMES[0]]
        return names[0] if names else ""

    async def matches(self, entry: StoreEntry) -> bool:
        """Report whether a stored object meets all requirements."""
        if self.everything:
            return True
        metadata = _header.decode(entry.value).metadata
        if not all(each.matches(metadata.labels) for each in self.labels):
            return False
        if not self.fields:
            return True
        known = {_NAMES[0]: metadata.name, _NAMES[1]: metadata.namespace}
        if all(each.field in known for each in self.fields):
            return all(each.matches(known.__getitem__) for each in self.fields)
        obj = await self.resource.decode(entry, kept=True)
        selectable = self.resource.selectable

        def value_of(field: str) -> str:
            return known[field] if field in known else selectable[field](obj)

        return all(each.matches(value_of) for each in self.fields)


def read_selection(resource: ServedResource, options: ListOptions) -> Selection:
    """Parse the selectors of a request.

    If a selector names a field that is not allowed, raise an error.
    """
    try:
        labels = parse_label_selector(options.labels) if options.labels else ()
        fields = parse_field_selector(options.fields) if options.fields else ()
    except InvalidSelector as error:
        raise bad_request(str(error)) from None
    for requirement in fields:
        if requirement.field not in _NAMES and requirement.field not in resource.selectable:
            raise bad_request(_not_selectable(resource, requirement.field))
    return Selection(resource, labels, fields)


def _not_selectable(resource: ServedResource, field: str) -> str:
    if resource.kind.custom or resource.selectable:
        return f"field label not supported: {field}"
    return f'"{field}" is not a known field selector: only "metadata.name", "metadata.namespace"'


_PAGE = 500
_TOKEN_VERSION = "meta.k8s.io/v1"  # noqa: S105 - no secret


async def get_object(call: Call) -> HttpResponse:
    """Answer a GET of one object or of a subresource."""
    part = call.resource.view(call.api_path.subresource)
    if part.name not in ("", "status"):
        return await data_answer(call, part.show(await call.resource.decode(_find(call))))
    revision = call.query.text("resourceVersion")
    if revision:
        refuse_future(call, read_revision(revision))
    return await object_answer(call, _find(call), kept=revision == "0")


def _find(call: Call) -> StoreEntry:
    """Return the stored object that the path names; raise an error 404 if there is none."""
    entry = call.store.get(call.key)
    if entry is None:
        raise not_found(call.resource.kind, call.api_path.name)
    return entry


async def list_objects(call: Call) -> HttpResponse:
    """Answer with all objects of one namespace or of all namespaces, or with one page of them."""
    options = ListOptions.read(call.query)
    selection = read_selection(call.resource, options)
    cut = _start(call, options)
    limit = 0 if options.revision == "0" and not options.continued else options.limit
    found, page = await _collect(call, selection, cut, limit)
    metadata: Object = {"resourceVersion": str(page.revision)}
    if page.remaining:
        start = found[-1].key.removeprefix(call.resource.range(call.api_path.namespace))
        metadata["continue"] = _encode_token(page.revision, start)
        if selection.everything:
            metadata["remainingItemCount"] = page.remaining
    elif call.resource.kind.custom and not call.form.kind:
        metadata["continue"] = ""
    return await list_answer(call, found, metadata)


@dataclass(frozen=True, slots=True)
class _Cut:
    """The beginning of a page of a list: the page begins after the key `after`.

    The list is read at `revision`; 0 means the current state.
    """

    revision: int = 0
    after: str = ""


async def _collect(
    call: Call, selection: Selection, cut: _Cut, limit: int
) -> tuple[list[StoreEntry], StorePage]:
    """Find the matching entries, at most `limit`; also return the last page that was read.

    In this page, `remaining` is the number of all entries after the last match, whether or not they
    match. So if there is a selector, `remaining` only shows whether the list can continue.
    """
    prefix = call.resource.range(call.api_path.namespace)
    if call.api_path.namespace and selection.name:
        return await _only(call, selection, cut, prefix)
    found: list[StoreEntry] = []
    turns = Turns()
    while True:
        size = limit if selection.everything or not limit else max(limit, _PAGE)
        page = call.store.page(prefix, after=cut.after, limit=size, revision=cut.revision)
        if selection.everything:
            return page.entries, page
        await asyncio.sleep(0)  # other requests run between pages
        for number, entry in enumerate(page.entries):
            if turns.over:
                await turns.next()
            if await selection.matches(entry):
                found.append(entry)
                if limit and len(found) == limit:
                    left = page.remaining + len(page.entries) - number - 1
                    return found, page._replace(remaining=left)
        if not page.remaining:
            return found, page
        cut = _Cut(page.revision, page.entries[-1].key)


async def _only(
    call: Call, selection: Selection, cut: _Cut, prefix: str
) -> tuple[list[StoreEntry], StorePage]:
    """Return, as a list, the object with the name in the selector.

    The list is empty if the object does not exist or does not meet the other requirements.
    """
    key = f"{prefix}{selection.name}"
    page = call.store.page(key, limit=1, revision=cut.revision)
    found = [entry for entry in page.entries if entry.key == key and entry.key > cut.after]
    return [entry for entry in found if await selection.matches(entry)], page._replace(remaining=0)


def _start(call: Call, options: ListOptions) -> _Cut:
    if options.continued:
        if options.revision not in ("", "0"):
            raise bad_request("specifying resource version is not allowed when using continue")
        return _continued(call, options.continued)
    try:
        revision = parse_revision(options.revision) if options.revision else 0
    except ValueError as error:
        problem = f'resourceVersion: Invalid value: "{options.revision}": {error}'
        raise bad_request(f"invalid resource version: {problem}") from None
    if revision:
        refuse_future(call, revision)
    if options.match == "Exact" or (options.limit and revision and not options.match):
        _refuse_compacted(call, revision)
        return _Cut(revision)
    return _Cut()


def _continued(call: Call, text: str) -> _Cut:
    token = _read_token(text)
    after = call.resource.range(call.api_path.namespace) + token.start
    if token.revision < 0:
        return _Cut(0, after)  # the token is for the current state
    refuse_future(call, token.revision)
    if token.revision < call.store.compacted:
        fresh = _encode_token(-1, token.start)
        raise _expired_token(fresh)
    return _Cut(token.revision, after)


def _expired_token(fresh: str) -> ApiError:
    return expired(
        "The provided continue parameter is too old to display a consistent list result. You can "
        "start a new list without the continue parameter, or use the continue token in this "
        "response to retrieve the remainder of the results. Continuing with the provided token "
        "results in an inconsistent list - objects that were created, modified, or deleted "
        "between the time the first chunk was returned and now may show up in the list.",
        metadata={"continue": fresh},
    )


@dataclass(frozen=True, slots=True)
class _Token:
    revision: int
    start: str


def _encode_token(revision: int, start: str) -> str:
    # As in kube-apiserver, the zero byte at the end means: continue after this key.
    token = {"v": _TOKEN_VERSION, "rv": revision, "start": f"{start}\0"}
    return base64.urlsafe_b64encode(encode_json(token)).decode().rstrip("=")


def _read_token(text: str) -> _Token:
    problem = "invalid continue token: continue key is not valid: "
    try:
        raw = base64.urlsafe_b64decode(_padded(text))
        token = json.loads(raw)
    except _NotBase64 as error:
        raise bad_request(f"{problem}illegal base64 data at input byte {error.at}") from None
    except (ValueError, RecursionError):
        raise bad_request(problem + _not_json(raw)) from None
    if not isinstance(token, dict) or token.get("v") != _TOKEN_VERSION:
        version = token.get("v", "") if isinstance(token, dict) else ""
        raise bad_request(f"{problem}server does not recognize this encoded version {version}")
    revision, start = token.get("rv"), token.get("start")
    if type(revision) is not int or revision == 0 or abs(revision) >= 2**63:
        raise bad_request(
            f"{problem}incorrect encoded start resourceVersion (version {_TOKEN_VERSION})"
        )
    if not isinstance(start, str) or not start:
        raise bad_request(f"{problem}encoded start key empty (version {_TOKEN_VERSION})")
    if start.startswith("/") or ".." in start.split("/"):
        raise bad_request(f"{problem}{start}")
    # JSON can express half of a surrogate pair, but no key can contain it.
    whole = start.encode("utf-8", "replace").decode()
    return _Token(revision, whole.rstrip("\0"))


class _NotBase64(ValueError):
    def __init__(self, at: int) -> None:
        super().__init__(at)
        self.at = at


def _padded(text: str) -> str:
    for at, character in enumerate(text):
        if not (character.isascii() and (character.isalnum() or character in "-_")):
            raise _NotBase64(at)
    if len(text) % 4 == 1:
        raise _NotBase64(len(text))
    return text + "=" * (-len(text) % 4)


def _not_json(raw: bytes) -> str:
    if not raw:
        return "unexpected end of JSON input"
    first = raw.decode("latin-1")[0]
    return f"invalid character '{first}' looking for beginning of value"


def refuse_future(call: Call, revision: int) -> None:
    """Raise an error if a client requests a revision that the store has not reached yet."""
    current = call.store.revision
    if revision > current:
        raise too_large_revision(revision, current)


def too_large_revision(revision: int, current: int) -> ApiError:
    """Build the error (504) for a revision that the store has not reached yet."""
    cause = {"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}
    details = {"causes": [cause], "retryAfterSeconds": 1}
    message = f"Timeout: Too large resource version: {revision}, current: {current}"
    return ApiError(504, "Timeout", message, details=details, headers={"Retry-After": "1"})


def _refuse_compacted(call: Call, revision: int) -> None:
    if revision and revision < call.store.compacted:
        raise expired(
            f"The provided resource version is too old: {revision} ({call.store.compacted})"
        )
