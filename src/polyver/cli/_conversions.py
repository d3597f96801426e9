"""Conversions from files, for every command that converts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from polyver.cli._exit import Unreadable
from polyver.cli._files import read_manifests

if TYPE_CHECKING:
    from polyver.capabilities.apis.conversion import Converter

__all__ = ["load_converters"]

Key = tuple[str, str]


def load_converters(
    paths: Sequence[str], kinds: Sequence[str] = (), *, show_traceback: bool = False
) -> dict[Key, Converter]:
    """What converts each kind, by group and kind: from manifests, and from kinds in Python.

    CustomResourceDefinitions among the manifests say which fields the versions of a kind have.
    """
    found: dict[Key, Converter] = {}
    for converter, place in (*_described(paths), *_declared(kinds, show_traceback)):
        key = converter.group, converter.kind
        if key in found:
            fact = f"{converter.kind} of {converter.group} has two conversions"
            raise Unreadable(fact, at=place)
        found[key] = converter
    if not found:
        raise Unreadable("no Conversion is there", at=", ".join([*paths, *kinds]))
    return found


def _described(paths: Sequence[str]) -> Iterator[tuple[Converter, str]]:
    from polyver.capabilities.apis import definitions_of
    from polyver.capabilities.apis.conversion import build_converter, read_conversions

    documents = read_manifests(paths)
    known = {(each.group, each.kind): each for each in definitions_of(documents)}
    for declared in read_conversions(documents):
        definition = known.get((declared.group, declared.kind))
        yield build_converter(declared, definition), declared.document.place()


def _declared(kinds: Sequence[str], show_traceback: bool) -> Iterator[tuple[Converter, str]]:
    if not kinds:
        return
    from polyver.cli._kinds import load_kinds

    for kind in load_kinds(kinds, show_traceback=show_traceback):
        if kind.converter is not None:
            yield kind.converter, kind.place
