"""Decisions about the lineage of a definition: revisions to create and remove, and refusals.

A decision depends on the actual and the desired state, never on the order of events. So the same
versions always give the same lineage, regardless of the order in which a user publishes them. A
decision includes the semver gate: a new version with an incompatible change of parameters must have
a new major version.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Literal

from polyver.apis.compatibility import FindingSeverity, compare_schemas
from polyver.core import (
    Lineage,
    MixedOrders,
    Release,
    SemVer,
    Serial,
    Series,
    Stage,
    Version,
    VersionTaken,
    listed,
)
from polyver.core.plain import ReadOnlyObject
from polyver.definitions.publishing._revisions import (
    KnownDefinitionRevision,
    NewDefinitionRevision,
    lineage_of,
    new_revision,
)
from polyver.definitions.publishing._spec import (
    DesiredDefinition,
    Refusal,
    VersionEntry,
    parameters_of,
    read_parameters,
    wrapped,
)
from polyver.definitions.uses import DefinitionUse, users_in

__all__ = ["Decision", "ForcedRemoval", "GatePolicy", "check_gate", "decide", "in_use"]

Holders = Mapping[str, tuple[str, str]]
GatePolicy = Literal["refuse", "warn"]


@dataclass(frozen=True, slots=True)
class Decision:
    """The revisions of a definition to create and to remove.

    If there are refusals, the caller must not make any of these changes.
    """

    create: tuple[NewDefinitionRevision, ...] = ()
    remove: tuple[KnownDefinitionRevision, ...] = ()
    before: Lineage = field(default_factory=lambda: Lineage(""))
    after: Lineage = field(default_factory=lambda: Lineage(""))
    refusals: tuple[Refusal, ...] = ()
    warnings: tuple[str, ...] = ()
    forced: tuple[ForcedRemoval, ...] = ()
    """Removals of versions that are in use. An annotation of the definition allows these removals.
    """


@dataclass(frozen=True, slots=True)
class ForcedRemoval:
    """The forced removal of a version in use, and the applications that use the version."""

    definition: str
    version: Version
    users: tuple[str, ...]

    def __str__(self) -> str:
        name = f"{self.definition} {self.version}"
        return f"{name} is removed by force, but is used by {listed(self.users)}"


def decide(
    definition: DesiredDefinition,
    known: Sequence[KnownDefinitionRevision],
    removed: Sequence[Release] = (),
    *,
    holders: Holders | None = None,
    gate: GatePolicy = "refuse",
    policy: str = "",
) -> Decision:
    """Decide which revisions of a definition to create and to remove, or why to refuse its change.

    This function does not check whether the removed versions are in use: call `in_use` with the
    result.

    `policy` is the name of the Ready RolloutPolicy of the definition; it closes new versions.
    `known` are the existing revisions, and `removed` the releases that were removed earlier.
    `holders` has the kind and name of the definition for each revision name in the namespace.
    """
    before = lineage_of(definition, known, removed)
    if all(each.stage.is_gone for each in before):
        policy = ""  # no application uses another release yet, so no application must be protected
    if definition.is_legacy:
        return _decide_legacy(definition, known, before, holders or {}, policy)
    refusals = [*_mixed(definition, known), *_changed(definition, before)]
    there = {each.version for each in before}
    create = [
        new_revision(definition, each, each.version, policy)
        for each in definition.entries
        if each.version is not None and each.version not in there
    ]
    refusals += _held(definition, create, holders or {})
    wanted = {entry.version for entry in definition.entries}
    remove = [each for each in known if definition.whole and each.version not in wanted]
    if refusals:
        return Decision(before=before, after=before, refusals=tuple(refusals))
    gone = {each.version for each in remove}
    kept = [replace(r, stage=Stage.REMOVED) if r.version in gone else r for r in before]
    after = Lineage(before.name, [*kept, *(each.release for each in create)])
    contents = {each.version: each.content for each in known if isinstance(each.version, SemVer)}
    contents |= {e.version: e.content for e in definition.entries if e.version is not None}
    new = {each.version: each.entry.at for each in create if isinstance(each.version, SemVer)}
    broken, warnings = check_gate(after, contents, new)
    if gate == "warn":
        warnings, broken = [*warnings, *(each.fact for each in broken)], []
    return Decision(
        tuple(create), tuple(remove), before, after, tuple(broken), tuple(dict.fromkeys(warnings))
    )


def _mixed(
    definition: DesiredDefinition, known: Sequence[KnownDefinitionRevision]
) -> list[Refusal]:
    """Refuse to mix semantic versions and numbered revisions in one definition.

    The entries of the definition must have the same order as its existing revisions.
    """
    legacy = definition.is_legacy
    others = [each for each in known if isinstance(each.version, Serial) is not legacy]
    if not others or not definition.entries:
        return []
    entry = definition.entries[0]
    new = Release(entry.version or Serial(1))
    error = MixedOrders(definition.name, others[0].release, new)
    hint = f"{error.hint}: publish it under another name"
    return [Refusal("MixedOrders", error.fact, at=entry.at, hint=hint)]


def _changed(definition: DesiredDefinition, before: Lineage) -> list[Refusal]:
    """Refuse to change the content of a published version, or to reuse a removed version."""
    found = []
    for entry in definition.entries:
        assert entry.version is not None
        taken = before.get(entry.version)
        if taken is not None and (taken.stage.is_gone or taken.digest != entry.digest):
            error = VersionTaken(definition.name, taken, entry.release)
            found.append(Refusal("VersionTaken", error.fact, at=entry.at, hint=error.hint))
    return found


def _held(
    definition: DesiredDefinition, create: Sequence[NewDefinitionRevision], holders: Holders
) -> list[Refusal]:
    """Refuse to create a revision if a revision of another definition has the same name."""
    found = []
    for new in create:
        holder = holders.get(new.name)
        if holder is None or holder == (definition.kind, definition.name):
            continue
        whose = (
            f"the revision of {' '.join(holder)}"
            if any(holder)
            else "a revision with another owner"
        )
        fact = f"{definition.name} {new.version} would be named {new.name}, which is {whose}"
        found.append(Refusal("NameTaken", fact, at=new.entry.at, hint="rename the definition"))
    return found


# Legacy definitions. Each change creates a revision: a numbered revision, or a revision whose name
# is given by an annotation.


def _decide_legacy(
    definition: DesiredDefinition,
    known: Sequence[KnownDefinitionRevision],
    before: Lineage,
    holders: Holders,
    policy: str,
) -> Decision:
    refusals = _mixed(definition, known)
    if refusals or not definition.entries:
        return Decision(before=before, after=before, refusals=tuple(refusals))
    [entry] = definition.entries
    create = _next(definition, entry, before, policy)
    if create is not None and (taken := before.get(create.name)) is not None:
        fact = f"{create.name} exists with other content ({taken.digest}, not {entry.digest})"
        hint = "choose another one: a revision is immutable"
        refusals = [Refusal("VersionTaken", fact, at="metadata.annotations", hint=hint)]
    elif create is not None:
        refusals = _held(definition, [create], holders)
    if create is None or refusals:
        return Decision(before=before, after=before, refusals=tuple(refusals))
    after = Lineage(before.name, [*before, create.release])
    return Decision((create,), (), before, after)


def _next(
    definition: DesiredDefinition, entry: VersionEntry, before: Lineage, policy: str
) -> NewDefinitionRevision | None:
    """Return the next revision of a legacy definition, or None if its content is unchanged.

    If an annotation gives the revision a new name, it is a new revision even if its content is
    unchanged.
    """
    newest = before.newest if len(before) else None
    number = newest.version.number + 1 if newest and isinstance(newest.version, Serial) else 1
    version: Version = Serial(number)
    new = new_revision(definition, entry, version, policy)
    same = before.get(new.name) if definition.label is not None else newest
    return None if same is not None and same.digest == entry.digest else new


def in_use(
    decision: Decision, uses: Sequence[DefinitionUse], forced: Collection[str] = frozenset()
) -> Decision:
    """Add a refusal for each version that the decision removes although applications use it.

    The versions and names of revisions in `forced` get no refusal; their removals are added to the
    field `forced` of the decision.
    """
    if not decision.remove:
        return decision
    known = users_in(uses, decision.before)
    name = decision.before.name
    found: list[Refusal] = []
    going: list[ForcedRemoval] = []
    for each in decision.remove:
        users = known.get(each.release.name)
        if users and {each.name, str(each.version)} & {*forced}:
            going.append(ForcedRemoval(name, each.version, tuple(users)))
        elif users:
            fact = f"{name} {each.version} is used by {listed(users)}"
            hint = "keep it in the list until it is no longer used"
            found.append(Refusal("InUse", fact, at="spec.versions", hint=hint))
    refusals = (*decision.refusals, *found)
    return replace(decision, refusals=refusals, forced=tuple(going))


# The semver gate. An incompatible change needs a new major version; in 0.x, it needs a new minor
# version. Prereleases promise no compatibility, so they are not compared.


def check_gate(
    lineage: Lineage, contents: Mapping[SemVer, ReadOnlyObject], new: Mapping[SemVer, str]
) -> tuple[list[Refusal], list[str]]:
    """Compare the parameters of neighbouring versions that must be compatible: 1.2.0 and 1.3.0.

    Return refusals and warnings. `new` has the path in the definition for each new version. An
    incompatible change is refused if one of the two versions is new. Between two published
    versions, it is only a warning.
    """
    finals = [
        (each.version, contents.get(each.version, {}))
        for each in lineage
        if isinstance(each.version, SemVer)
        and not each.version.is_prerelease
        and not each.stage.is_gone
    ]
    broken: list[Refusal] = []
    warnings: list[str] = []
    unread: dict[str, dict[SemVer, None]] = {}
    for low, high in pairwise(finals):
        compatible = Series(low[0].major) if low[0].major else Series(0, low[0].minor)
        if high[0] not in compatible:
            continue
        for version, content in (low, high):
            engines = [*(content.get("schematic") or {})]
            if engines and parameters_of(content) is None:
                unread.setdefault(engines[0], {})[version] = None
        at = new.get(high[0]) or new.get(low[0])
        found = _broken(lineage.name, low, high, at or "")
        if at is None:
            warnings += [each.fact for each in found]
        else:
            broken += found
    for engine, versions in unread.items():
        fact = f"the parameters of {lineage.name} {listed([*map(str, versions)])} are in {engine}"
        warnings.append(f"{fact}, and cannot be compared")
    return broken, warnings


_Version = tuple[SemVer, ReadOnlyObject]


def _broken(name: str, low: _Version, high: _Version, at: str) -> Iterator[Refusal]:
    before, after = parameters_of(low[1]), parameters_of(high[1])
    if before is None or after is None:
        return
    version = high[0]
    needed = f"{version.major + 1}.0.0" if version.major else f"0.{version.minor + 1}.0"
    one, other = (wrapped(read_parameters(each)[0]) for each in (before, after))
    for finding in compare_schemas(one, other, least=FindingSeverity.BREAKING):
        parameter = finding.path.removeprefix("parameter").removeprefix(".") or "all parameters"
        fact = f"{name} {version} breaks users of {low[0]}: {parameter}: {finding.fact}"
        place = f"{at}.schematic.gotemplate.parameters"
        yield Refusal("Breaking", fact, at=place, hint=f"publish it as {needed}")
