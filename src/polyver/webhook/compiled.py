"""Reviews by compiled code as far as that goes, and by Python for the rest.

Which programs it needs is learned from what is asked: most kinds are only ever converted between
two of their versions.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Collection, Mapping
from math import inf
from time import monotonic
from typing import Final

import msgspec

from polyver.native import Compiled, LeftOut, Program, compiled
from polyver.webhook.conversion import Converters, NotConverted, Reviewing, named, review
from polyver.webhook.reviews import Key, Reviewed

__all__ = ["Reviews"]

_NOTHING: Final[Mapping[Key, int]] = {}
_LOOKED_AT: Final = 4
"""How many objects that were left to Python are looked at for ways that are not known yet."""
_FEW: Final = 4
"""With more than one hole for so many objects, Python answers all: its ways do better than ours."""


class Reviews:
    """Answers with some converters, from several threads."""

    def __init__(self, converters: Converters, *, by: Compiled | None = compiled) -> None:
        self._converters = converters
        self._by = by
        self._lock = threading.Lock()
        self._known: set[tuple[str, str, str]] = set()
        """The ways that were asked for, whether they have programs or not."""
        self._programs: tuple[Program, ...] = ()
        self._kinds: list[Key] = []
        self._table: object = by.table(()) if by is not None else None

    def answer(
        self,
        body: bytes | bytearray,
        until: float = inf,
        calling: Collection[Key] | None = None,
    ) -> Reviewed:
        """The answer to a body, for which somebody waits until then; `calling` as for review."""
        by, told = self._by, None
        if by is not None and (body.isascii() or _is_text(body)):
            told = by.answer(self._table, body)
        if told is not None:
            text, count, program, holes = told
            counts = {self._kinds[program]: count} if count else _NOTHING
            if holes is None:
                return Reviewed(200, text, counts)
            filled = self._filled(body, text, counts, holes, (until, calling))
            if filled is not None:
                return filled
        return review(body, self._converters, late=lambda: monotonic() > until, calling=calling)

    def respond(
        self, read: bytearray, size: int, start: bytes, rest: bytes, beginning: bytes
    ) -> tuple[bytes, Mapping[Key, int]] | None:
        """A whole answer in HTTP, and the objects in it; see Compiled."""
        by = self._by
        told = by and by.respond(self._table, read, size, start, rest, beginning)
        if not told:
            return None
        sent, count, program = told
        return sent, {self._kinds[program]: count} if count else _NOTHING

    # What was left out.

    def _filled(
        self,
        body: bytes | bytearray,
        text: bytes,
        counts: Mapping[Key, int],
        left_out: LeftOut,
        terms: tuple[float, Collection[Key] | None],
    ) -> Reviewed | None:
        """An answer with all objects; None if Python is to answer as a whole."""
        until, calling = terms
        wanted, holes = left_out
        looked_at = [msgspec.Raw(body[begin:end]) for _, begin, end in holes[:_LOOKED_AT]]
        if self._learns(wanted, looked_at) or len(holes) * _FEW > sum(counts.values()):
            return None
        reviewing = Reviewing(wanted, self._converters, calling)
        pieces: list[bytes | msgspec.Raw] = []
        written = 0
        for at, begin, end in holes:
            if monotonic() > until:
                return None
            try:
                pieces += [text[written:at], reviewing.one(msgspec.Raw(body[begin:end]))]
            except NotConverted:
                return None  # Python says why, and where
            written = at
        whole = b"".join([*pieces, text[written:]])
        return Reviewed(200, whole, Counter(reviewing.counts) + Counter(counts))

    def _learns(self, wanted: str, given: list[msgspec.Raw]) -> bool:
        """Whether a way is known now that was not before."""
        before = len(self._known)
        for raw in given:
            version, kind = named(raw)
            if (wanted, version, kind) not in self._known:
                self._learn(wanted, version, kind)
        return len(self._known) > before

    def _learn(self, wanted: str, version: str, kind: str) -> None:
        group, _, source = version.rpartition("/")
        target = wanted.removeprefix(f"{group}/")
        converter = self._converters.get((group, kind))
        if converter is None or not {source, target} <= {*converter.versions}:
            return
        program = converter.program(source, target)
        with self._lock:
            self._known.add((wanted, version, kind))
            if program is not None and self._by is not None:
                self._take(self._by, program, (group, kind))

    def _take(self, by: Compiled, program: Program, kind: Key) -> None:
        try:
            table = by.table((*self._programs, program))
        except ValueError:
            return  # it is larger than compiled code takes
        self._programs += (program,)
        self._kinds.append(kind)
        self._table = table


def _is_text(body: bytes | bytearray) -> bool:
    try:
        body.decode()
    except UnicodeDecodeError:
        return False
    return True
