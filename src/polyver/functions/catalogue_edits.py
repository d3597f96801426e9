"""Edits of a catalogue's text: promote, deprecate or remove a version, add a catalogue release.

An edit keeps the comments and the layout of the text. It is refused if it would break a rule about
stages or deprecation periods, or if it would also change other data of the catalogue.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from typing import Any

import yaml

from polyver.core import (
    FUNCTION_STAGES,
    NOTICE,
    InvalidVersion,
    Lineage,
    Notes,
    PolyverError,
    Release,
    SemVer,
    Stage,
    advance,
    check_releases,
    check_removal,
    listed,
    next_stage,
    usual_removal,
)
from polyver.functions.catalogue import FunctionCatalogue, read_catalogue
from polyver.functions.yaml_edits import Places
from polyver.kube.objects import InvalidManifest, load_manifests
from polyver.kube.objects.converted_metadata import fresh

__all__ = ["EditRefused", "Edited", "add_release", "deprecate", "promote", "remove"]


class EditRefused(PolyverError):
    """An edit would break a rule, or polyver cannot make it in a text with this format."""


@dataclass(frozen=True, slots=True)
class Edited:
    """The text of a catalogue after an edit, with one sentence for each change."""

    text: str
    said: tuple[str, ...]


def promote(
    text: str, source: str, name: str, version: SemVer, *, removed_in: SemVer | None = None
) -> Edited:
    """Make a version the stable version. The version that was stable before becomes deprecated."""
    edit = _Edit.of(text, source)
    lineage, release = edit.found(name, version)
    if release.stage is Stage.STABLE:
        raise edit.refused(f"{name} {release.name} is already stable", name, version)
    edit.check(release, Stage.STABLE, name)
    if version.is_prerelease:
        fact = f"{name} {release.name} is a prerelease and cannot be stable"
        raise edit.refused(fact, name, version)
    old = next(each for each in lineage if each.stage is Stage.STABLE)
    edit.put(name, version, stage=Stage.STABLE.value)
    edit.say(f"{name} {release.name} is stable")
    edit.demote(lineage, old, use=release, removed_in=removed_in)
    return edit.made()


def deprecate(
    text: str,
    source: str,
    name: str,
    version: SemVer,
    *,
    use: SemVer | None = None,
    removed_in: SemVer | None = None,
) -> Edited:
    """Deprecate a version, or change the removal or the replacement of a deprecated version.

    `use` is the replacement, and `removed_in` the catalogue release that removes the version.
    """
    edit = _Edit.of(text, source)
    lineage, release = edit.found(name, version)
    if release.stage is Stage.STABLE:
        fact, hint = f"{name} {release.name} is the stable version", "promote another version"
        raise edit.refused(fact, name, version, hint=hint)
    stable = next(each for each in lineage if each.stage is Stage.STABLE)
    instead = stable if use is None else edit.found(name, use)[1]
    if release.stage is not Stage.DEPRECATED:
        edit.check(release, Stage.DEPRECATED, name)
        edit.demote(lineage, release, use=instead, removed_in=removed_in)
        return edit.made()
    if use is None and removed_in is None:
        fact = f"{name} {release.name} is deprecated since {release.notes.since} already"
        hint = "change its removal with --removed-in, or its replacement with --use"
        raise edit.refused(fact, name, version, hint=hint)
    edit.restate(lineage, release, use=instead if use else None, removed_in=removed_in)
    return edit.made()


def remove(text: str, source: str, name: str, version: SemVer) -> Edited:
    """Change a version's stage to removed. It stays listed, so its number is not reused."""
    edit = _Edit.of(text, source)
    _, release = edit.found(name, version)
    if version in edit.catalogue.tombstones[name]:
        raise edit.refused(f"{name} {release.name} is already removed", name, version)
    fields = {"stage": Stage.REMOVED.value}
    if not release.stage.is_gone:
        edit.check(release, Stage.REMOVED, name)
        fields["removedIn"] = str(edit.removal_now(name, release))
    edit.put(name, version, **fields)
    edit.say(f"{name} {release.name} is removed in {release.notes.removed_in or edit.now}")
    return edit.made()


def add_release(text: str, source: str, version: SemVer) -> Edited:
    """Append a catalogue release, which becomes the current catalogue release.

    Each deprecated version is then removed, if it names this catalogue release or an earlier one
    for its removal.
    """
    edit = _Edit.of(text, source)
    try:
        check_releases((*edit.catalogue.releases, version))
    except PolyverError as error:
        raise EditRefused(error.fact, at=edit.catalogue.document.place("releases")) from None
    edit.release(version)
    edit.say(f"{version} is released")
    before = edit.catalogue
    try:
        made = edit.made()
    except EditRefused as error:
        if not error.at.endswith("removedIn"):
            raise
        hint = f"{error.hint}; postpone it with polyver functions deprecate --removed-in"
        raise EditRefused(error.fact, at=error.at, hint=hint) from None
    after = _read(made.text, source)
    gone = [
        f"{lineage.name} {release.name} is removed"
        for lineage in after.functions
        for release, was in zip(lineage, before.get(lineage.name) or (), strict=True)
        if release.stage is not was.stage
    ]
    return Edited(made.text, (*made.said, *gone))


def _read(text: str, source: str) -> FunctionCatalogue:
    documents = load_manifests(text, source)
    if len(documents) != 1:
        fact = f"{source} contains {len(documents)} documents, expected one catalogue"
        raise InvalidManifest(fact)
    return read_catalogue(documents[0])


@dataclass(slots=True)
class _Edit:
    """A catalogue, and the pending changes to its text."""

    text: str
    catalogue: FunctionCatalogue
    entries: dict[tuple[str, str], dict[str, str]] = field(default_factory=dict)
    said: list[str] = field(default_factory=list)
    released: SemVer | None = None

    @classmethod
    def of(cls, text: str, source: str) -> _Edit:
        return cls(text, _read(text, source))

    @property
    def now(self) -> SemVer:
        return self.catalogue.now

    def refused(
        self, fact: str, name: str, version: SemVer | None = None, *, hint: str = ""
    ) -> EditRefused:
        return EditRefused(fact, at=self.catalogue.place(name, version), hint=hint)

    def found(self, name: str, version: SemVer) -> tuple[Lineage, Release]:
        lineage = self.catalogue.get(name)
        if lineage is None:
            names = [each.name for each in self.catalogue.functions]
            close = get_close_matches(name, names, n=1)
            hint = f"did you mean {close[0]}?" if close else f"known: {listed(names)}"
            raise EditRefused(f"{self.catalogue.source} lists no function {name}", hint=hint)
        release = lineage.get(version)
        if release is None:
            known = listed([each.name for each in lineage])
            raise self.refused(f"{name} has no v{version}", name, hint=f"known: {known}")
        return lineage, release

    def check(self, release: Release, to: Stage, name: str) -> None:
        assert isinstance(release.version, SemVer)
        try:
            advance(release, to, FUNCTION_STAGES)
        except PolyverError as error:
            fact = f"{name} {error.fact}"
            raise self.refused(fact, name, release.version, hint=error.hint) from None

    def say(self, sentence: str) -> None:
        self.said.append(sentence)

    def put(self, name: str, version: SemVer, **fields: str) -> None:
        key = self.catalogue.keys[name][version]
        self.entries.setdefault((name, key), {}).update(fields)

    def release(self, version: SemVer) -> None:
        self.released = version

    def demote(
        self, lineage: Lineage, release: Release, *, use: Release, removed_in: SemVer | None
    ) -> None:
        """Deprecate a version that was not deprecated before."""
        due = removed_in or usual_removal(self.catalogue.releases)
        assert isinstance(release.version, SemVer)
        self._check_due(lineage.name, release, due)
        self.put(
            lineage.name,
            release.version,
            stage=Stage.DEPRECATED.value,
            since=str(self.now),
            removedIn=str(due),
            use=use.name,
        )
        self.say(
            f"{lineage.name} {release.name} is deprecated since {self.now} and will be removed "
            f"in {due}; use {use.name}"
        )
        self._redirect(lineage, release, use)

    def restate(
        self,
        lineage: Lineage,
        release: Release,
        *,
        use: Release | None,
        removed_in: SemVer | None,
    ) -> None:
        """Change the removal or the replacement of a version that is deprecated already."""
        assert isinstance(release.version, SemVer)
        if removed_in is not None:
            self._check_due(lineage.name, release, removed_in)
            self.put(lineage.name, release.version, removedIn=str(removed_in))
            self.say(f"{lineage.name} {release.name} will be removed in {removed_in}")
        if use is not None:
            self.put(lineage.name, release.version, use=use.name)
            self.say(f"{lineage.name} {release.name} is replaced by {use.name}")

    def _check_due(self, name: str, release: Release, due: SemVer) -> None:
        """Raise EditRefused if a removal in the catalogue release `due` would be due already.

        The version would then be removed immediately.
        """
        assert isinstance(release.version, SemVer)
        then = replace(release, stage=Stage.DEPRECATED, notes=Notes(removed_in=due))
        if next_stage(then, self.catalogue.releases).is_gone:
            fact = f"{name} {release.name} cannot be removed in {due}, which is already released"
            needed = f"a removal needs {NOTICE} minor or major releases of notice"
            hint = f"the current catalogue release is {self.now}; {needed}"
            raise self.refused(fact, name, release.version, hint=hint)

    def _redirect(self, lineage: Lineage, old: Release, new: Release) -> None:
        """Let all versions that name `old` as their replacement name `new` instead."""
        for each in lineage:
            assert isinstance(each.version, SemVer)
            if each in (old, new) or not each.notes.use:
                continue
            if lineage.get(SemVer.complete(each.notes.use)) is old:
                self.put(lineage.name, each.version, use=new.name)
                self.say(f"{lineage.name} {each.name} is replaced by {new.name}")

    def removal_now(self, name: str, release: Release) -> SemVer:
        """Return the current catalogue release, in which the version is removed.

        Raise EditRefused if this catalogue release is too early for the removal.
        """
        assert isinstance(release.version, SemVer)
        notes = release.notes
        assert notes.since is not None
        if notes.removed_in is not None:
            fact = f"{name} {release.name} will be removed in {notes.removed_in}"
            hint = f"the current catalogue release is {self.now}"
            raise self.refused(fact, name, release.version, hint=hint)
        try:
            check_removal(
                f"{name} {release.name}",
                since=notes.since,
                removed_in=self.now,
                releases_so_far=self.catalogue.releases,
            )
        except PolyverError as error:
            raise self.refused(error.fact, name, release.version, hint=error.hint) from None
        return self.now

    def made(self) -> Edited:
        """Apply the pending changes to the text, and return the result.

        Raise an error if the new text is not a valid catalogue, or if its data differs in anything
        else than the pending changes.
        """
        try:
            places = Places(self.text)
        except (yaml.YAMLError, RecursionError):
            raise self._by_hand() from None
        for (name, key), fields in self.entries.items():
            places.put(fields, "functions", name, "versions", key)
        if self.released is not None:
            places.append(str(self.released), "releases")
        text = places.edited()
        try:
            made = _read(text, self.catalogue.source)
        except (InvalidManifest, InvalidVersion) as error:
            if self._says(text):
                raise EditRefused(error.fact, at=error.at, hint=error.hint) from None
            raise self._by_hand() from None
        if made.document.value != self._meant():
            raise self._by_hand()
        return Edited(text, tuple(self.said))

    def _says(self, text: str) -> bool:
        try:
            [document] = load_manifests(text, "")
        except (InvalidManifest, ValueError):
            return False
        return bool(document.value == self._meant())

    def _meant(self) -> Any:
        # YAML anchors and their aliases are parsed to one shared object. The copy makes separate
        # objects, so that a change affects only one of them.
        value: Any = fresh(self.catalogue.document.value)
        for (name, key), fields in self.entries.items():
            value["functions"][name]["versions"][key] |= fields
        if self.released is not None:
            value["releases"].append(str(self.released))
        return value

    def _by_hand(self) -> EditRefused:
        fact = f"{self.catalogue.source} has a format that cannot be edited automatically"
        changes = "; ".join(self.said)
        return EditRefused(fact, hint=f"edit it manually: {changes}")
