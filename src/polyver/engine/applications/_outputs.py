"""What applications have applied, as it is on the server: whether it is there, theirs, and well.

The kinds that applications use are watched, and of these only what has their label.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final

from msgspec import Struct

from polyver.capabilities.definitions.applying import fields_digest
from polyver.capabilities.definitions.names import APP_NAME, APP_NAMESPACE, RENDERED
from polyver.client import Change, Discovery, Key, Object, preferred
from polyver.engine._applied import Part
from polyver.engine._controller import Watch
from polyver.objects.health import Health, health_of
from polyver.objects.kinds import Kind

__all__ = ["Outputs", "Seen", "part_in", "seen_in"]

_VERBS: Final = ("list", "watch")
_GONE: Final = Health(False, "is not there")


class Seen(Struct, frozen=True, gc=False):
    """What is worth knowing of an object that was applied."""

    application: Key
    owner: str
    """The uid of its controller; empty without one."""
    uid: str
    fields: str
    health: Health
    revision: int

    def differs(self, other: Seen | None) -> bool:
        """Whether another state means something else for the application."""
        if other is None:
            return True
        mine, theirs = ((x.uid, x.owner, x.fields, x.health) for x in (self, other))
        return mine != theirs


def seen_in(kind: Kind, obj: Object) -> Seen:
    """Of an object, what is worth knowing."""
    del kind
    metadata = obj["metadata"]
    labels: Mapping[str, str] = metadata.get("labels") or {}
    owners: Sequence[Mapping[str, Any]] = metadata.get("ownerReferences") or ()
    controllers = [each.get("uid", "") for each in owners if each.get("controller")]
    return Seen(
        application=Key(labels.get(APP_NAMESPACE, ""), labels.get(APP_NAME, "")),
        owner=controllers[0] if controllers else "",
        uid=metadata.get("uid", ""),
        fields=fields_digest(obj),
        health=health_of(obj),
        revision=_number(metadata.get("resourceVersion", "")),
    )


def _number(text: str) -> int:
    return int(text) if text.isdecimal() else 0


def part_in(applied: Mapping[str, Any]) -> Part:
    """What the status of an application says was applied."""
    group = applied["apiVersion"].rpartition("/")[0]
    return Part(group, applied["kind"], applied.get("namespace", ""), applied["name"])


class Outputs:
    """What is known of all objects that were applied."""

    def __init__(self, changed: Callable[[], None]) -> None:
        """`changed` is called when other kinds have to be watched."""
        self._changed = changed
        self._kinds: set[tuple[str, str]] = set()
        self._followed: set[tuple[str, str]] = set()
        self._seen: dict[Part, Seen] = {}
        self._expected: set[Part] = set()
        """What is being applied: a watch may tell of it before the answer is here."""

    def watch(self) -> Watch[Seen, Key]:
        return Watch(
            kinds=self._in_use,
            observe=self._observe,
            keep=seen_in,
            labels=RENDERED,
            needed=False,
            complete=lambda kind: self._followed.add((kind.group, kind.kind)),
            forget=self._forget,
        )

    def use(self, kinds: Iterable[tuple[str, str]]) -> None:
        """Have these kinds, by group and name, watched from now on."""
        new = set(kinds) - self._kinds
        if new:
            self._kinds |= new
            self._changed()

    def is_followed(self, part: Part) -> bool:
        """Whether changes of it are told."""
        return (part.group, part.kind) in self._followed

    def of(self, part: Part) -> Seen | None:
        return self._seen.get(part)

    @contextmanager
    def expected(self, part: Part) -> Iterator[None]:
        """While an object is applied, what is told of it is no news."""
        self._expected.add(part)
        try:
            yield
        finally:
            self._expected.discard(part)

    def note(self, part: Part, obj: Object | None) -> bool:
        """Take note of an object that was applied or read; whether nothing newer is known.

        None if there is none.
        """
        if obj is None:
            self._seen.pop(part, None)
            return True
        known, seen = self._seen.get(part), seen_in(_ANY, obj)
        if known is not None and known.revision > seen.revision:
            return not known.differs(seen)
        self._seen[part] = seen
        return True

    def health(self, applied: Mapping[str, Any]) -> Health:
        """How something does that the status of an application names."""
        seen = self._seen.get(part_in(applied))
        return seen.health if seen is not None else _GONE

    def is_as_applied(self, applied: Mapping[str, Any], key: Key) -> bool:
        """Whether an object is there, and nobody has changed what is the application's."""
        seen = self._seen.get(part_in(applied))
        return seen is not None and seen.application == key and seen.fields == applied.get("fields")

    def _in_use(self, discovery: Discovery) -> list[Kind]:
        served = preferred(discovery.kinds, verbs=_VERBS)
        return [kind for kind in served if (kind.group, kind.kind) in self._kinds]

    def _observe(self, kind: Kind, change: Change[Seen]) -> Iterable[Key]:
        part = Part(kind.group, kind.kind, *change.key)
        known = self._seen.get(part)
        after = change.after
        if after is None:
            gone = self._seen.pop(part, None)
            return (gone.application,) if gone is not None else ()
        if known is not None and known.revision > after.revision:
            return ()  # what was applied since is known already
        self._seen[part] = after
        if part in self._expected or not after.differs(known):
            return ()
        return {after.application, *((known.application,) if known is not None else ())}

    def _forget(self, kind: Kind, known: Iterable[Seen]) -> Iterable[Key]:
        """Nobody knows whether objects of a kind are there that is not served."""
        named = kind.group, kind.kind
        self._followed.discard(named)
        for part in [each for each in self._seen if (each.group, each.kind) == named]:
            del self._seen[part]
        return {each.application for each in known}


_ANY: Any = None
