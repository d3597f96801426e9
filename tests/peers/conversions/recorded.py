"""Compare the recorded results of the Go code for the corpus with the results of polyver."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from tests.peers.conversions.corpus import (
    RECORDED,
    CorpusKind,
    Difference,
    KnownDifference,
    Object,
    corpus,
    differences,
    edited,
    sorted_lists,
    version_of,
    visible,
)

from polyver.apis.conversion import ANNOTATION, Converter


@dataclass(frozen=True, eq=False)
class RecordedWalk:
    """An object that the Go code converted to a version, and back; perhaps edited there."""

    kind: CorpusKind
    original: Object
    to: str
    change: Mapping[str, Any] | None
    view: Object
    back: Object

    @property
    def object(self) -> str:
        return str(self.original["metadata"]["name"])

    @property
    def source(self) -> str:
        return version_of(self.original)

    @property
    def hidden(self) -> tuple[str, ...]:
        return (*self.kind.annotations, ANNOTATION)

    def shown(self, obj: Object) -> Object:
        found: Object = sorted_lists(visible(obj, self.hidden), self.kind.shuffled)
        return found


@cache
def recording() -> Mapping[str, Any]:
    found: Mapping[str, Any] = json.loads(RECORDED.read_text())
    return found


@cache
def recorded_walks() -> tuple[RecordedWalk, ...]:
    kinds = {kind.name: kind for kind in corpus()}
    found = []
    for row in recording()["walks"]:
        kind = kinds[row["kind"]]
        [original] = [each for each in kind.objects if each["metadata"]["name"] == row["object"]]
        change = kind.edits[row["edit"]] if "edit" in row else None
        found.append(RecordedWalk(kind, original, row["to"], change, row["view"], row["back"]))
    return tuple(found)


def view_differences(walk: RecordedWalk, converter: Converter) -> list[Difference]:
    """Return the fields that differ in the object that the Go code, and we, converted."""
    if walk.change is not None:
        return []
    ours = converter.convert(walk.original, walk.to)
    return [*differences(walk.shown(walk.view), walk.shown(ours))]


def back_differences(
    walk: RecordedWalk, converter: Converter
) -> tuple[list[Difference], list[Difference]]:
    """Return the fields that a walk changed, with the Go code and with ours.

    After an edit, the edited field is one of them.
    """
    view = converter.convert(walk.original, walk.to)
    if walk.change is not None:
        view = edited(view, walk.change)
    ours = converter.convert(view, walk.source)
    original = walk.shown(walk.original)
    return (
        changed(original, walk.shown(walk.back)),
        changed(original, walk.shown(ours)),
    )


def changed(original: Object, other: Object) -> list[Difference]:
    """Return the fields of an object that have another value, or none, in another object."""
    return [Difference(each.path, each.ours, each.go) for each in differences(other, original)]


def difference_of(walk: RecordedWalk, found: Difference) -> KnownDifference | None:
    """Return the entry of `kinds.yaml` that explains a difference."""
    for known in walk.kind.differences:
        if (
            known.path == found.path
            and known.to in ("", walk.to)
            and known.object in ("", walk.object)
        ):
            return known
    return None


def losses(kind: CorpusKind) -> Iterator[tuple[RecordedWalk, Difference]]:
    """Yield each field that the Go code loses, changes or adds on the way to a version and back.

    In a difference, `go` is the value of the original object.
    """
    for walk in recorded_walks():
        if walk.kind is kind and walk.change is None:
            for each in changed(walk.shown(walk.original), walk.shown(walk.back)):
                yield walk, each


def losses_after_edits(kind: CorpusKind) -> Iterator[tuple[RecordedWalk, Difference]]:
    """Yield each further field that the Go code loses if the object is edited in between.

    The edited fields, which polyver changes as well, do not count.
    """
    converter = kind.converter()
    known = {(walk.object, walk.to, each.path) for walk, each in losses(kind)}
    for walk in recorded_walks():
        if walk.kind is kind and walk.change is not None:
            go, ours = back_differences(walk, converter)
            edits = {each.path for each in ours}
            for each in go:
                if each.path not in edits and (walk.object, walk.to, each.path) not in known:
                    yield walk, each
