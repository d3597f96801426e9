"""Catalogues of blueprint functions: the versions of each function, with stages and removals.

A product that ships functions has a catalogue. The catalogue lists the releases of the product,
which are called catalogue releases here. The last one in the list is the current catalogue release.
A deprecated version names the catalogue release that removes it; it is removed as soon as the
catalogue lists that release. The class `Release` is something else: one version in the lineage of a
function.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from msgspec import Struct

from polyver.capability import FoundLineage
from polyver.core import (
    Contradiction,
    InvalidVersion,
    Lineage,
    Notes,
    PolyverError,
    Release,
    SemVer,
    Stage,
    check_dates,
    check_releases,
    listed,
    next_stage,
)
from polyver.functions.policy import FUNCTIONS
from polyver.kube.objects import Document, InvalidManifest
from polyver.kube.objects.codec import prepare


class _Entry(Struct, rename="camel", forbid_unknown_fields=True):
    stage: str
    since: str | None = None
    removed_in: str | None = None
    use: str = ""


class _Function(Struct, forbid_unknown_fields=True):
    versions: dict[str, object]


class _File(Struct, forbid_unknown_fields=True):
    releases: list[str]
    functions: dict[str, object]


prepare(_Entry, _Function, _File)


_STAGES = {
    stage.value: stage for stage in (Stage.CANDIDATE, Stage.STABLE, Stage.DEPRECATED, Stage.REMOVED)
}


@dataclass(frozen=True, slots=True)
class FunctionCatalogue:
    """A parsed catalogue: the lineages of its functions.

    Each version has the stage that it has in the current catalogue release.
    """

    releases: tuple[SemVer, ...]
    """Catalogue releases, the current one last."""
    functions: tuple[Lineage, ...]
    document: Document
    keys: Mapping[str, Mapping[SemVer, str]]
    """The text of each version in the file, such as `"v0.1"`, by function and then by version."""
    tombstones: Mapping[str, frozenset[SemVer]]
    """The versions for which the file has the stage `removed`, by function."""

    @property
    def source(self) -> str:
        return self.document.source

    @property
    def now(self) -> SemVer:
        return self.releases[-1]

    def get(self, name: str) -> Lineage | None:
        """Return the lineage of the function with this name; None if it is not listed."""
        return next((lineage for lineage in self.functions if lineage.name == name), None)

    def place(self, name: str, version: SemVer | None = None) -> str:
        """Return the position of a function, or of one of its versions, in the file: `a.yaml:3`."""
        path = ("functions", name)
        key = self.keys[name].get(version) if version is not None else None
        return self.document.place(*path, *(("versions", key) if key else ())).partition(", ")[0]

    def at(self, release: SemVer) -> FunctionCatalogue:
        """Return the catalogue as it would be with the future catalogue release `release`.

        The versions have the stages for that release. If `release` is not later than the current
        catalogue release, no stage changes.
        """
        releases = (*self.releases, release)
        moved = [
            Lineage(each.name, [replace(r, stage=next_stage(r, releases)) for r in each])
            for each in self.functions
        ]
        return replace(self, functions=tuple(moved))


def lineages(documents: Sequence[Document]) -> Iterator[FoundLineage]:
    """Yield the lineage of each function in each catalogue among the documents."""
    for catalogue in catalogues(documents):
        for lineage in catalogue.functions:
            yield FoundLineage(lineage, (FUNCTIONS,), f"catalogue/{lineage.name}")


def catalogues(documents: Sequence[Document]) -> Iterator[FunctionCatalogue]:
    """Parse and validate each catalogue among the documents."""
    for document in documents:
        value = document.value
        if isinstance(value, dict) and "functions" in value and "kind" not in value:
            yield read_catalogue(document)


def read_catalogue(document: Document) -> FunctionCatalogue:
    """Parse and validate a catalogue. Raise an error if the document is not a valid catalogue."""
    value = document.value
    if not isinstance(value, dict) or "kind" in value:
        found = value.get("kind") if isinstance(value, dict) else type(value).__name__
        hint = "expected a mapping of releases and functions"
        raise document.error(f"expected a catalogue, found a {found}", hint=hint)
    return _Reader(document).catalogue()


class _Reader:
    """Parses one catalogue. Each error has the line that caused it."""

    def __init__(self, document: Document) -> None:
        self._document = document
        self._file = document.read(_File)
        texts = self._file.releases
        found = [self._version(text, "releases", i) for i, text in enumerate(texts)]
        try:
            check_releases(found)
        except Contradiction as error:
            raise self._error(error.fact, "releases", *error.field) from None
        self._releases = tuple(found)
        self._keys: dict[str, dict[SemVer, str]] = {}
        self._tombstones: dict[str, frozenset[SemVer]] = {}

    def catalogue(self) -> FunctionCatalogue:
        functions = tuple(self._lineage(name) for name in self._file.functions)
        return FunctionCatalogue(
            self._releases, functions, self._document, self._keys, self._tombstones
        )

    def _lineage(self, name: str) -> Lineage:
        path = ("functions", name, "versions")
        texts = self._document.part(*path[:2]).read(_Function).versions
        entries = {text: self._document.part(*path, text).read(_Entry) for text in texts}
        releases = [self._release(name, text, entry) for text, entry in entries.items()]
        try:
            lineage = Lineage(name, releases)
        except PolyverError as error:
            raise self._error(error.fact, *path, hint=error.hint) from None
        self._keys[name] = {self._version(text, *path): text for text in texts}
        self._tombstones[name] = frozenset(
            self._version(text, *path, text)
            for text, entry in entries.items()
            if _STAGES[entry.stage] is Stage.REMOVED
        )
        self._check_stable(lineage)
        for text, entry in entries.items():
            if entry.use:
                self._check_replacement(lineage, text, entry.use)
        return lineage

    def _release(self, name: str, text: str, entry: _Entry) -> Release:
        path = ("functions", name, "versions", text)
        if not self._document.key_was_text(*path):
            raise self._error("a version must be a string", *path, hint="put it in quotes")
        if entry.stage not in _STAGES:
            hint = f"expected {listed(list(_STAGES))}"
            raise self._error(f'there is no stage "{entry.stage}"', *path, "stage", hint=hint)
        version = self._version(text, *path)
        since = self._version(entry.since, *path, "since") if entry.since else None
        removal = self._version(entry.removed_in, *path, "removedIn") if entry.removed_in else None
        notes = Notes(since, removal, use=entry.use)
        release = Release(version, stage=_STAGES[entry.stage], notes=notes, name=f"v{version}")
        try:
            check_dates(f"{name} {release.name}", release, self._releases)
        except Contradiction as error:
            raise self._error(error.fact, *path, *error.field, hint=error.hint) from None
        return replace(release, stage=next_stage(release, self._releases))

    def _check_stable(self, lineage: Lineage) -> None:
        stable = [release for release in lineage if release.stage is Stage.STABLE]
        path = ("functions", lineage.name, "versions")
        if len(stable) != 1:
            names = listed([release.name for release in stable])
            what = f"stable versions {names}" if stable else "no stable version"
            raise self._error(f"{lineage.name} has {what}", *path, hint="exactly one is needed")
        [only] = stable
        if isinstance(only.version, SemVer) and only.version.is_prerelease:
            raise self._error(f"{lineage.name} {only.name} is stable and a prerelease", *path)

    def _check_replacement(self, lineage: Lineage, text: str, use: str) -> None:
        path = ("functions", lineage.name, "versions", text, "use")
        own = self._version(text, *path)
        usable = {r.version: r.name for r in lineage if r.stage in FUNCTIONS.usable}
        usable.pop(own, None)
        if self._version(use, *path) not in usable:
            fact = f"{lineage.name} {text} cannot be replaced by {use}"
            raise self._error(fact, *path, hint=f"usable: {listed(list(usable.values()))}")

    def _version(self, text: str, *path: str | int) -> SemVer:
        try:
            return SemVer.complete(text)
        except InvalidVersion as error:
            raise self._error(error.fact, *path) from None

    def _error(self, fact: str, *path: str | int, hint: str = "") -> InvalidManifest:
        return self._document.error(fact, *path, hint=hint)
