"""Cache of the objects from which composite resources choose their revisions.

Watches keep the cache up to date. It contains only the fields that are needed to choose a revision.
A complete CompositionRevision is read from the API server when it is used; the most recently used
ones are also cached.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from polyver.capability.gates import GATE, STATE
from polyver.client import Change, Client, Key, find
from polyver.compositions.controllers.compositions import COMPOSITION_REVISIONS
from polyver.compositions.decisions import (
    Candidate,
    CompositeKind,
    FunctionLineages,
    candidate_of,
    check_definition,
    composition_lineage,
    composition_of,
    known_composition_revision,
    read_definition,
)
from polyver.compositions.names import ALLOW_DELETION, CONTENT
from polyver.compositions.packages import CompositionPipeline, function_of, pipeline_of
from polyver.core import Lineage, Pin
from polyver.core.plain import Object
from polyver.kube.objects.kinds import ResourceKind

__all__ = [
    "CachedCompositionRevision",
    "CompositionCache",
    "allowing",
    "candidate_in",
    "defined_in",
    "function_revision_in",
    "noted_in",
]


_KEPT: Final = 256


@dataclass(frozen=True, slots=True)
class CachedCompositionRevision:
    """The fields of a CompositionRevision that are needed to choose it and its functions."""

    obj: Object
    pipeline: CompositionPipeline

    @property
    def composition(self) -> str:
        return composition_of(self.obj)

    @property
    def target(self) -> tuple[str, str]:
        """Group and kind of the composite resources that the revision composes."""
        target = self.obj["spec"]["compositeTypeRef"]
        return target["apiVersion"].rpartition("/")[0], target["kind"]


def allowing(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """Return metadata with only the annotation `polyver.dev/allow-deletion`.

    Return an empty mapping if `metadata` does not have this annotation.
    """
    said = (metadata.get("annotations") or {}).get(ALLOW_DELETION)
    return {"annotations": {ALLOW_DELETION: said}} if said is not None else {}


def _kept_annotations(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """Return metadata with only the annotations of the gate and `polyver.dev/allow-deletion`."""
    said = metadata.get("annotations") or {}
    kept = {name: said[name] for name in (ALLOW_DELETION, STATE, GATE) if name in said}
    return {"annotations": kept} if kept else {}


def noted_in(kind: ResourceKind, obj: Object) -> CachedCompositionRevision:
    """Return the fields of a CompositionRevision that the cache keeps."""
    del kind
    return _noted(obj)


def _noted(obj: Object) -> CachedCompositionRevision:
    metadata, spec = obj["metadata"], obj["spec"]
    about = {name: metadata[name] for name in ("name", "uid", "generation") if name in metadata}
    labels = metadata.get("labels") or {}
    # Compute the content digest now, because the cache does not keep the whole spec.
    content = labels.get(CONTENT) or known_composition_revision(obj).content
    light = {name: spec[name] for name in ("revision", "compositeTypeRef")}
    about |= _kept_annotations(metadata)
    kept = {"metadata": {**about, "labels": {**labels, CONTENT: content}}, "spec": light}
    return CachedCompositionRevision(kept, pipeline_of(obj))


def defined_in(kind: ResourceKind, obj: Object) -> tuple[CompositeKind | None]:
    """Return a tuple with one item: the kind that a CompositeResourceDefinition defines.

    The item is None if the definition is invalid.
    """
    del kind
    return (None if check_definition(obj) else read_definition(obj),)


def candidate_in(kind: ResourceKind, obj: Object) -> Candidate:
    """Return the fields of a Composition that the cache keeps."""
    del kind
    return candidate_of(obj)


def function_revision_in(kind: ResourceKind, obj: Object) -> Object:
    """Return the fields of a FunctionRevision that the cache keeps."""
    del kind
    metadata, spec = obj["metadata"], obj["spec"]
    about = ("name", "labels", "deletionTimestamp")
    said = ("desiredState", "revision", "digest", "image")
    return {
        "metadata": {name: metadata[name] for name in about if metadata.get(name)}
        | _kept_annotations(metadata),
        "spec": {name: spec[name] for name in said if name in spec},
        "status": {"endpoint": (obj.get("status") or {}).get("endpoint", "")},
    }


class CompositionCache:
    """CompositeResourceDefinitions, Compositions and revisions, as watches have reported them."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._defined: dict[tuple[str, str], dict[str, CompositeKind]] = {}
        self._compositions: dict[str, Candidate] = {}
        self._revisions: dict[str, dict[str, CachedCompositionRevision]] = {}
        self._named: dict[str, CachedCompositionRevision] = {}
        self._lineages: dict[str, Lineage] = {}
        """The lineages of Compositions that have been built since their last change."""
        self._functions: dict[str, dict[str, Object]] = {}
        self._installed: FunctionLineages | None = None
        self._contents: OrderedDict[tuple[str, str, int], Object] = OrderedDict()
        self._provided: dict[str, Object] = {}

    # Queries.

    @property
    def kinds(self) -> dict[tuple[str, str], CompositeKind]:
        """Kinds of composite resources, by group and name."""
        return {named: self._chosen(each) for named, each in self._defined.items()}

    def defined(self, group: str, kind: str) -> CompositeKind | None:
        found = self._defined.get((group, kind))
        return self._chosen(found) if found else None

    @staticmethod
    def _chosen(definitions: dict[str, CompositeKind]) -> CompositeKind:
        """Choose one of the CompositeResourceDefinitions that define the same kind.

        Only one of them can be served. This is the definition whose name is first in alphabetical
        order.
        """
        return definitions[min(definitions)]

    def candidates(self, defined: CompositeKind, *names: str) -> Iterator[Candidate]:
        """Yield the Compositions for a kind, and also the Compositions named in `names`."""
        for each in self._compositions.values():
            if each.fits(defined) or each.name in names:
                yield each

    def revisions(self, composition: str, *names: str) -> list[Object]:
        """Return the revisions of a Composition, and also the revisions named in `names`."""
        found = dict(self._revisions.get(composition, {}))
        found |= {name: self._named[name] for name in names if name in self._named}
        return [each.obj for each in found.values()]

    def lineage(self, composition: str) -> Lineage:
        """Return the revisions of a Composition as a lineage."""
        found = self._lineages.get(composition)
        if found is None:
            noted = self._revisions.get(composition, {}).values()
            known = [known_composition_revision(each.obj) for each in noted]
            found = self._lineages[composition] = composition_lineage(composition, known)
        return found

    def pipeline(self, revision: str) -> CompositionPipeline | None:
        """Return the steps of a CompositionRevision, or None if it does not exist."""
        known = self._named.get(revision)
        return known.pipeline if known is not None else None

    def pin(self, revision: str) -> Pin | None:
        """Return the pin of a CompositionRevision; None for an empty name.

        The pin of a CompositionRevision that does not exist has no digest.
        """
        known = self._named.get(revision)
        digest = known.obj["metadata"]["labels"][CONTENT] if known is not None else ""
        return Pin(revision, digest) if revision else None

    @property
    def installed(self) -> FunctionLineages:
        """The lineages of all functions.

        After each change of a function revision, this is a new object.
        """
        if self._installed is None:
            self._installed = FunctionLineages(self._function_revisions())
        return self._installed

    def _function_revisions(self) -> Iterator[Object]:
        for revisions in self._functions.values():
            yield from revisions.values()

    def installed_as(self, revisions: Collection[str]) -> FunctionLineages:
        """Return the lineages of all functions, with only the given revisions and without gates."""
        every = self._function_revisions()
        there = (each for each in every if each["metadata"]["name"] in revisions)
        return FunctionLineages(there, opened=revisions)

    def installed_without(self, revisions: Collection[str]) -> FunctionLineages:
        """Return the lineages of all functions, without the given revisions."""
        every = self._function_revisions()
        return FunctionLineages(each for each in every if each["metadata"]["name"] not in revisions)

    def installed_with(self, opened: str) -> FunctionLineages:
        """Return the lineages of all functions. The revision `opened` has no gate in them."""
        return FunctionLineages(self._function_revisions(), opened=(opened,))

    def is_revision(self, name: str, composition: str, labels: Mapping[str, str]) -> bool:
        """Report whether `composition` has a revision with this name and these labels."""
        noted = self._named.get(name)
        if noted is None or noted.composition != composition:
            return False
        return {*labels.items()} <= {*(noted.obj["metadata"].get("labels") or {}).items()}

    async def content(self, revision: str) -> Object | None:
        """Return a complete CompositionRevision from the cache.

        If it is not in the cache, read it from the API server.

        Return None if it was deleted.
        """
        if revision in self._provided:
            return self._provided[revision]
        noted = self._named.get(revision)
        if noted is None:
            return None
        metadata = noted.obj["metadata"]
        key = revision, metadata.get("uid", ""), metadata.get("generation", 0)
        kept = self._contents.get(key)
        if kept is not None:
            self._contents.move_to_end(key)
            return kept
        found = await find(self._client, COMPOSITION_REVISIONS, revision)
        if found is not None and found["metadata"].get("generation", 0) == key[2]:
            self._contents[key] = found
            if len(self._contents) > _KEPT:
                self._contents.popitem(last=False)
        return found

    # Updates.

    def define(self, change: Change[tuple[CompositeKind | None]]) -> set[tuple[str, str]]:
        """Record a change of a CompositeResourceDefinition.

        Return the kinds, as group and kind, that it defined before the change or defines now.
        """
        touched = set()
        for told in (change.before, change.after):
            if told is not None and told[0] is not None:
                named = told[0].group, told[0].kind
                self._defined.get(named, {}).pop(change.key.name, None)
                touched.add(named)
        if change.after is not None and change.after[0] is not None:
            defined = change.after[0]
            there = self._defined.setdefault((defined.group, defined.kind), {})
            there[change.key.name] = defined
        self._defined = {named: each for named, each in self._defined.items() if each}
        return touched

    def compose(self, change: Change[Candidate]) -> None:
        """Record a change of a Composition."""
        if change.after is None:
            self._compositions.pop(change.key.name, None)
        else:
            self._compositions[change.key.name] = change.after

    def revise(
        self, change: Change[CachedCompositionRevision]
    ) -> dict[str, tuple[Lineage, Lineage]]:
        """Record a change of a CompositionRevision. Return the changed lineages, by Composition.

        Each lineage is returned as a pair: before the change, and after it.
        """
        told = [each for each in (change.before, change.after) if each is not None]
        names = {each.composition for each in told}
        before = {name: self.lineage(name) for name in names}
        name = change.key.name
        known = self._named.pop(name, None)
        if known is not None:
            self._revisions.get(known.composition, {}).pop(name, None)
        if change.after is not None:
            self._named[name] = change.after
            self._revisions.setdefault(change.after.composition, {})[name] = change.after
        self._revisions = {each: some for each, some in self._revisions.items() if some}
        for each in names:
            del self._lineages[each]
        return {each: (before[each], self.lineage(each)) for each in names}

    def provide(self, revision: Object) -> None:
        """Add a complete CompositionRevision, which does not have to exist on the API server."""
        name = revision["metadata"]["name"]
        self._provided[name] = revision
        self.revise(Change(Key("", name), None, _noted(revision)))

    def install(self, change: Change[Object]) -> dict[str, tuple[Lineage, Lineage]]:
        """Record a change of a FunctionRevision. Return the changed lineages, by function.

        Each lineage is returned as a pair: before the change, and after it.
        """
        told = [each for each in (change.before, change.after) if each is not None]
        names = {function_of(each) for each in told}
        before = {name: self._function(name) for name in names}
        for name in names:
            self._functions.get(name, {}).pop(change.key.name, None)
        if change.after is not None:
            there = self._functions.setdefault(function_of(change.after), {})
            there[change.key.name] = change.after
        self._functions = {each: some for each, some in self._functions.items() if some}
        self._installed = None
        return {each: (before[each], self._function(each)) for each in names}

    def _function(self, name: str) -> Lineage:
        return FunctionLineages(self._functions.get(name, {}).values()).lineage(name)
