"""Load Conversions and kinds from files, for `polyver convert` and `polyver serve`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from polyver.cli.exit_codes import UnreadableInput
from polyver.cli.files import read_manifests

if TYPE_CHECKING:
    from polyver.apis.conversion import Converter
    from polyver.apis.declaring import Kind
    from polyver.webhook import ReviewHandlers

__all__ = ["load_converters", "load_served"]

Key = tuple[str, str]


def load_converters(
    paths: Sequence[str], kinds: Sequence[str] = (), *, show_traceback: bool = False
) -> dict[Key, Converter]:
    """Build converters, by group and kind, from manifests and from kinds declared in Python.

    The schemas of the versions are read from CustomResourceDefinitions among the manifests.
    """
    found = _converters(paths, _kinds(kinds, show_traceback=show_traceback))
    if not found:
        raise UnreadableInput("no Conversion was found", at=", ".join([*paths, *kinds]))
    return found


def load_served(paths: Sequence[str], kinds: Sequence[str] = ()) -> ReviewHandlers:
    """Build the handlers that `polyver serve` needs for conversion reviews and admission reviews.

    `paths` are manifests with Conversions, and `kinds` are kinds declared in Python.
    """
    from polyver.apis.admission.kinds import ConvertedKinds, log_unknown_formats
    from polyver.kube.server.admission import AdmissionChain
    from polyver.webhook import ReviewHandlers

    declared = _kinds(kinds)
    converters = _converters(paths, declared)
    for each in converters.values():
        log_unknown_formats(each)
    hooked = [each for each in declared if any(map(any, map(each.has_hooks, each.versions)))]
    admitted = frozenset(converters) | {(each.group, each.kind) for each in hooked}
    if not admitted:
        fact = "no Conversion and no kind with hooks was found"
        raise UnreadableInput(fact, at=", ".join([*paths, *kinds]))
    named = {each.definition().name: each for each in hooked}
    link = ConvertedKinds(lambda kind: converters.get((kind.group, kind.kind)), named)
    return ReviewHandlers(converters, AdmissionChain([link]), admitted)


def _kinds(kinds: Sequence[str], *, show_traceback: bool = False) -> Sequence[Kind]:
    if not kinds:
        return ()
    from polyver.apis.commands.kinds import load_kinds

    return load_kinds(kinds, show_traceback=show_traceback)


def _converters(paths: Sequence[str], kinds: Sequence[Kind]) -> dict[Key, Converter]:
    declared = ((kind.converter, kind.place) for kind in kinds)
    found: dict[Key, Converter] = {}
    for converter, place in (*_described(paths), *declared):
        if converter is None:
            continue
        key = converter.group, converter.kind
        if key in found:
            fact = f"{converter.kind} of {converter.group} has two conversions"
            raise UnreadableInput(fact, at=place)
        found[key] = converter
    return found


def _described(paths: Sequence[str]) -> Iterator[tuple[Converter, str]]:
    from polyver.apis.conversion import build_converter, read_conversions
    from polyver.apis.manifests import definitions_of

    documents = read_manifests(paths)
    known = {(each.group, each.kind): each for each in definitions_of(documents)}
    for declared in read_conversions(documents):
        definition = known.get((declared.group, declared.kind))
        yield build_converter(declared, definition), declared.document.place()
