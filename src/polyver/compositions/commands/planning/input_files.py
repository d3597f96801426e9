"""Reads the files of `polyver plan`, and refuses changes that a plan cannot show."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Final

from polyver.capability.planning import last_applied, may_not_write
from polyver.cli.exit_codes import RequestRefused
from polyver.client import Client, Discovery, GroupVersionResource, find
from polyver.compositions.commands.rendering.input_files import (
    LocatedObject,
    compositions_in,
    functions_in,
)
from polyver.compositions.kinds import COMPOSITION_GROUP, GROUP
from polyver.core.plain import Object
from polyver.kube.objects import Metadata, apply_merge_patch, type_of
from polyver.kube.objects.status import ApiError

if TYPE_CHECKING:
    from polyver.kube.objects import Document

__all__ = ["KINDS", "check_others", "read_written"]

_COMPOSITION, _FUNCTION = (COMPOSITION_GROUP, "Composition"), (GROUP, "Function")
_HINTS: Final = {
    (COMPOSITION_GROUP, "CompositeResourceDefinition"): "apply it, and then plan the others",
    (COMPOSITION_GROUP, "CompositionRevision"): "plan the Composition from which polyver makes it",
    (GROUP, "FunctionRevision"): "plan the Function from which polyver makes it",
}
"""Kinds whose changes a plan cannot show, although they decide how polyver composes."""
_COMPOSITE: Final = (
    "leave it out; `polyver render` shows what a composite resource in a file composes"
)
KINDS: Final = frozenset({_COMPOSITION, _FUNCTION, *_HINTS})
"""The groups and kinds of the objects that the module reads, without composite resources."""


def read_written(documents: Sequence[Document]) -> list[LocatedObject]:
    """Return the Compositions in the files, and then the Functions."""
    found = [
        *compositions_in(each for each in documents if type_of(each) == _COMPOSITION),
        *functions_in(each for each in documents if type_of(each) == _FUNCTION),
    ]
    known: dict[str, LocatedObject] = {}
    for written in found:
        before = known.setdefault(str(written), written)
        if before is not written:
            hint = f"the first is at {before.document.place('metadata', 'name')}"
            fact = f"{written} is declared twice"
            raise written.document.error(fact, "metadata", "name", hint=hint)
    return found


async def check_others(
    client: Client,
    documents: Sequence[Document],
    composites: Collection[tuple[str, str]],
    discovery: Discovery,
    namespace: str,
) -> None:
    """Check that the files do not change composite resources, definitions or revisions.

    `composites` are the kinds of composite resources. `namespace` is the namespace of objects that
    have no namespace in the files. Raise RequestRefused for the first object that differs from the
    object on the cluster.
    """
    for each in documents:
        named = type_of(each)
        hint = _COMPOSITE if named in composites else _HINTS.get(named, "")
        if hint and not await _is_applied(client, each.without_nulls(), discovery, namespace):
            fact = f"a new or changed {named[1]} cannot be planned"
            raise RequestRefused(fact, at=each.place(), hint=hint)


async def _is_applied(
    client: Client, document: Document, discovery: Discovery, namespace: str
) -> bool:
    """Report whether the cluster has an object in the state that a document describes."""
    written, about = document.value, document.part("metadata").read(Metadata)
    assert isinstance(written, dict)
    kind = discovery.find(str(written["apiVersion"]), str(written["kind"]))
    if kind is None:
        return False
    where = (about.namespace or namespace) if kind.namespaced else ""
    live = await find(client, GroupVersionResource.of(kind), about.name, where)
    if live is None:
        return False
    before = last_applied(live)
    if before is not None and before.get("spec") != written.get("spec"):
        return False
    # Controllers have added fields to the spec of a composite resource, so merge the two specs.
    change = {"spec": written.get("spec") or {}, "metadata": {"labels": about.labels}}
    wanted = apply_merge_patch(live, change)
    assert isinstance(wanted, dict)
    try:
        made = await client.update(GroupVersionResource.of(kind), wanted, dry_run=True)
    except ApiError as error:
        if not may_not_write(error):
            return False  # the API server refuses the change, so there is a change
        made = wanted
    return _content(made) == _content(live)


def _content(obj: Object) -> tuple[object, object]:
    return obj.get("spec"), obj["metadata"].get("labels") or {}
