"""The metadata that identifies an object, and the search for objects in YAML documents."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

from msgspec import Struct

from polyver.kube.objects.codec import prepare
from polyver.languages.values.manifests import Document

__all__ = ["Metadata", "objects_of", "type_of"]


class Metadata(Struct):
    """The metadata of an object in a manifest, without fields such as `uid` that a server sets."""

    name: str
    namespace: str = ""
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}


class _Typed(Struct, rename="camel"):
    kind: str = ""
    api_version: str = ""


def type_of(document: Document) -> tuple[str, str]:
    """Return the API group and kind of an object in a document; empty strings if it has none."""
    typed = document.read(_Typed) if isinstance(document.value, dict) else _Typed()
    group, slash, _ = typed.api_version.partition("/")
    return group if slash else "", typed.kind


def objects_of(documents: Iterable[Document], group: str, *kinds: str) -> Iterator[Document]:
    """Yield the objects in YAML documents whose API group is `group` and whose kind is in `kinds`.

    If a document is a List, its items are searched as well.
    """
    for document in documents:
        value, items = document.value, [document]
        if isinstance(value, dict) and value.get("kind") == "List" and "items" in value:
            count = len(document.read(_List).items)
            items = [document.part("items", number) for number in range(count)]
        yield from (item.without_nulls() for item in items if _is(item, group, kinds))


def _is(document: Document, group: str, kinds: Collection[str]) -> bool:
    found, kind = type_of(document)
    return found == group and kind in kinds


class _List(Struct):
    items: list[object]


prepare(Metadata, _Typed, _List)
