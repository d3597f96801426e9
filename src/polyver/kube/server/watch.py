"""Watches: streams of events, one per line. First come the existing objects, then every change."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from dataclasses import replace
from functools import lru_cache

from polyver.core.plain import Object
from polyver.kube.http.worker_threads import Turns
from polyver.kube.objects import encode_json
from polyver.kube.objects.status import expired
from polyver.kube.server.answers import table_of
from polyver.kube.server.call import Call
from polyver.kube.server.http import HttpResponse
from polyver.kube.server.options import ListOptions, read_revision
from polyver.kube.server.read import Selection, read_selection, too_large_revision
from polyver.kube.server.resource import (
    EntryNotConverted,
    metadata_alone,
    rewritten,
)
from polyver.kube.store import Compacted, Lagging, StoreClosed, StoreEntry, StoreEvent, StoreWatch

__all__ = ["watch_objects"]

_BOOKMARK_EVERY = 60.0
_LONGEST = 45 * 60.0
_INITIAL_END = {"k8s.io/initial-events-end": "true"}


async def watch_objects(call: Call) -> HttpResponse:
    """Answer with a stream of events; an invalid request is refused before the stream begins."""
    options = ListOptions.read(call.query, watch=True)
    if call.api_path.name:  # a deprecated path below /watch/ that names one object
        named = f"metadata.name={call.api_path.name}"
        options = replace(options, fields=",".join(filter(None, [options.fields, named])))
    selection = read_selection(call.resource, options)
    revision = read_revision(options.revision)
    if call.form.kind == "Table":
        table_of(call, [])  # raises if the query is wrong
    return call.stream(_Watching(call, options, selection).lines(revision))


class _Watching:
    """One watch.

    It sends events for existing objects, then for changes, in the requested format.
    """

    def __init__(self, call: Call, options: ListOptions, selection: Selection) -> None:
        self._call = call
        self._options = options
        self._selection = selection
        self._prefix = call.resource.range(call.api_path.namespace)
        if call.api_path.namespace:
            # Other keys with this prefix belong to longer names; the selection filters them out.
            self._prefix += selection.name
        self._columns_sent = False
        # True for most watches. For an event, all these watches send the same line, so it is built
        # once.
        self._as_stored = selection.everything and call.form.kind != "Table"
        seconds = options.timeout or _LONGEST
        self._end = time.monotonic() + seconds

    async def lines(self, revision: int) -> AsyncIterator[bytes]:
        options, store = self._options, self._call.store
        start = store.revision
        if options.initial and revision > start:
            yield _data_line("ERROR", too_large_revision(revision, start).status)
            return
        if options.initial or (options.initial is None and not revision):
            page = store.page(self._prefix)
            try:
                yield b"".join(await self._initial(page.entries))
            except EntryNotConverted as error:
                yield _data_line("ERROR", error.problem.status)
                return
            if options.initial and options.bookmarks:
                yield self._bookmark(page.revision, _INITIAL_END)
            start, revision = page.revision, page.revision
        elif 0 < revision < start:
            start = revision
        try:
            watch = self._open(start)
        except Compacted as error:
            text = f"too old resource version: {revision} ({error.oldest})"
            yield _data_line("ERROR", expired(text).status)
            return
        watches = self._call.resource.watches
        watches.add(watch)
        try:
            if self._is_served():
                async for line in self._follow(watch, revision):
                    yield line
        finally:
            watches.discard(watch)
            watch.close()

    def _is_served(self) -> bool:
        """Report whether the resource of the request is still served, and has not changed."""
        kind, catalogue = self._call.resource.kind, self._call.server.catalogue
        now = catalogue.get(kind.group, kind.version, kind.plural)
        return now is not None and now.watches is self._call.resource.watches

    def _open(self, revision: int) -> StoreWatch:
        if revision < self._call.resource.since:
            raise Compacted(revision, self._call.resource.since)
        return self._call.store.watch(self._prefix, revision)

    async def _follow(self, watch: StoreWatch, revision: int) -> AsyncIterator[bytes]:
        """Yield a line for each event after `revision`.

        The store may reach this revision only later.
        """
        bookmark = time.monotonic() + _BOOKMARK_EVERY
        while (left := self._end - time.monotonic()) > 0:
            try:
                events = await watch.batch(min(left, _BOOKMARK_EVERY))
            except (Lagging, StoreClosed):
                return
            # Read the revision before any await: later events are not in this batch.
            reached = watch.revision
            lines = []
            turns = Turns()
            for event in events:
                if turns.over:
                    await turns.next()
                if event.entry.revision > revision and (line := await self._event_line(event)):
                    lines.append(line)
            if self._options.bookmarks and time.monotonic() >= bookmark:
                bookmark = time.monotonic() + _BOOKMARK_EVERY
                lines.append(self._bookmark(reached))
            if lines:
                yield b"".join(lines)

    async def _initial(self, entries: list[StoreEntry]) -> list[bytes]:
        lines: list[bytes] = []
        turns = Turns()
        for entry in entries:
            if turns.over:
                await turns.next()
            if await self._selection.matches(entry):
                lines.append(await self._line("ADDED", entry))
        return lines

    async def _event_line(self, event: StoreEvent) -> bytes:
        """Build the line for an event; return an empty line if the client gets no event.

        The client gets no event if neither the object nor its previous state matches the selectors.
        As in kube-apiserver, it also gets none if the object cannot be converted.
        """
        entry, before, form = event.entry, event.previous, self._call.form
        if self._as_stored and self._call.resource.is_shown(entry):
            kind = "DELETED" if event.deleted else "ADDED" if before is None else "MODIFIED"
            if form.kind:
                return _metadata_line(kind, entry.value, form.api_version)
            return _plain_line(kind, entry.value)
        try:
            was = before is not None and await self._selection.matches(before)
            if event.deleted:
                return await self._line("DELETED", entry) if was else b""
            if await self._selection.matches(entry):
                return await self._line("MODIFIED" if was else "ADDED", entry)
            if before is not None and was:
                return await self._line("DELETED", _as_of(before, entry.revision))
        except EntryNotConverted:
            pass
        return b""

    async def _line(self, kind: str, entry: StoreEntry) -> bytes:
        resource, form = self._call.resource, self._call.form
        if form.kind == "Table":
            obj = await resource.decode(entry, kept=True)
            self._call.weight = len(entry.value)
            return await self._call.run(lambda: _data_line(kind, self._table(obj)))
        value = await resource.shown(entry, kept=True)
        if form.kind:
            return _metadata_line(kind, value, form.api_version)
        return _plain_line(kind, value)

    def _table(self, obj: Object) -> Object:
        """Build a Table with one row. Only the first Table of a watch has columns."""
        columns, self._columns_sent = not self._columns_sent, True
        return table_of(self._call, [obj], columns=columns)

    def _bookmark(self, revision: int, annotations: dict[str, str] | None = None) -> bytes:
        metadata: Object = {"resourceVersion": str(revision)}
        if annotations:
            metadata["annotations"] = annotations
        resource, form = self._call.resource, self._call.form
        if form.kind == "Table":
            columns, self._columns_sent = not self._columns_sent, True
            table = table_of(self._call, [], metadata, columns=columns)
            return _data_line("BOOKMARK", table)
        version, kind = resource.kind.api_version, resource.kind.kind
        if form.kind:
            version, kind = form.api_version, form.kind
        obj = {"kind": kind, "apiVersion": version, "metadata": metadata}
        return _data_line("BOOKMARK", obj)


def _as_of(before: StoreEntry, revision: int) -> StoreEntry:
    """Return the last state of an object that matched the selectors, with another revision.

    `revision` is that of the change after which the object no longer matched.
    """
    head, tail = rewritten(before.value)
    return before._replace(value=b"%b%d%b" % (head, revision, tail), revision=revision)


# Many watches need the same line one after the other.
@lru_cache(maxsize=4)
def _plain_line(kind: str, value: bytes) -> bytes:
    return b'{"type":"%b","object":%b}\n' % (kind.encode(), value)


@lru_cache(maxsize=4)
def _metadata_line(kind: str, value: bytes, api_version: str) -> bytes:
    return _plain_line(kind, metadata_alone(value, api_version))


def _data_line(kind: str, obj: Object) -> bytes:
    return encode_json({"type": kind, "object": obj}) + b"\n"
