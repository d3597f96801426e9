"""Resolve the selector of a dependent to a release, and give the reason for each other release.

A dependent is a reference to a lineage in an object. Its selector names one release, a series of
releases, or labels; a reference without a selector gets the default choice. A policy has the rules
by which one capability chooses releases. `resolve` is the only code in polyver that chooses a
release.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Literal, NamedTuple

from polyver.core.errors import PolyverError, listed
from polyver.core.lifecycle import Stage
from polyver.core.lineage import Dependent, FailedMove, Lineage, Pin, Release
from polyver.core.selectors import UNSPECIFIED, Exact, Labels, Selector, Unspecified
from polyver.core.versions import SemVer, Series, Version

__all__ = ["Gone", "NoMatch", "Policy", "Question", "Rejection", "Resolution", "resolve"]


@dataclass(frozen=True, eq=False)
class Policy:
    """The rules by which one capability chooses releases.

    Policies are compared by identity: two policies with the same rules are not equal.
    """

    name: str
    usable: frozenset[Stage]
    """The stages in which a release can be used."""
    best: str
    """A description of the default choice for messages, such as "newest release"."""
    noun: str = "release"
    preferred: frozenset[Stage] = frozenset()
    """The stages in which a release can be the default choice; if empty, all usable stages."""
    otherwise: Version | None = None
    """The version that becomes the default choice if no release is in a preferred stage."""
    prereleases: bool = False
    """True if a dependent may get a prerelease although its selector does not name this release."""
    keeps: frozenset[type] = frozenset()
    """The types of selectors with which a dependent keeps its pin when newer releases appear."""
    keeps_closed: bool = False
    """Decides what happens if a rollout takes the pinned release back.

    True: a dependent whose selector has a type in `keeps` keeps its pin. False: `resolve` looks for
    another release.
    """
    moves_when_unmatched: bool = False
    """Decides what happens if a selector of a type in `keeps` no longer matches the pin.

    True: the dependent moves to a release that matches. False: `resolve` raises `NoMatch`.
    """
    refuses: Mapping[type, str] = field(default_factory=dict)
    """The types of selectors that the capability refuses; the values are the reasons for users."""

    def __repr__(self) -> str:
        return f"<policy {self.name}>"


@dataclass(frozen=True, slots=True)
class Rejection:
    """A release that was not chosen, and the reason."""

    release: Release
    why: str


class Resolution(NamedTuple):
    """The chosen release, the reason for the choice, and warnings for the user."""

    release: Release
    reason: str
    warnings: tuple[str, ...]
    question: Question

    @property
    def rejected(self) -> tuple[Rejection, ...]:
        """Every other release of the lineage, the highest first, and why it was not chosen."""
        return tuple(self.question.rejections(chosen=self.release))


class NoMatch(PolyverError):
    """No release can be chosen; the message names the selector, its field and the known releases.

    The message is built when it is read, because a caller that resolves many dependents may not
    read any message.
    """

    reason = "NoMatch"
    """The reason of the condition with which controllers report this error."""

    def __init__(self, question: Question, fact: str = "") -> None:
        super().__init__(fact, at=question.dependent.at)
        self.question = question

    @property
    def lineage(self) -> Lineage:
        return self.question.lineage

    @property
    def selector(self) -> Selector:
        return self.question.selector

    @property
    def fact(self) -> str:
        return super().fact or self.question.fact()

    @property
    def hint(self) -> str:
        known, nearest = self.known, self.nearest
        if not known:
            return "it has no releases"
        near = f"nearest: {', '.join(nearest)}"
        if len(known) > 12 and nearest:
            return f"{near} (of {len(known)})"
        return f"known: {listed(known)}; {near}" if nearest else f"known: {listed(known)}"

    @property
    def known(self) -> tuple[str, ...]:
        """The names of all releases that were not removed."""
        return tuple(r.name for r in self.lineage.releases if not r.stage.is_gone)

    @property
    def nearest(self) -> tuple[str, ...]:
        """Names of releases that the author of the selector may have meant.

        For 1.2.9, which does not exist, these are the releases of series 1.2.
        """
        near = _nearest(self.lineage, self.selector)
        return tuple(name for name in near if name != str(self.selector))

    @property
    def rejected(self) -> tuple[Rejection, ...]:
        """Every release of the lineage, the highest first, and why it was not chosen."""
        return tuple(self.question.rejections(chosen=None))


class Gone(NoMatch):
    """The requested release was removed; the message names a replacement, if there is one."""

    reason = "Gone"

    def __init__(self, question: Question, release: Release) -> None:
        gone = f"{question.lineage.name} {release.name} was {release.fate}"
        super().__init__(question, gone)
        self.release = release

    @property
    def hint(self) -> str:
        use = self.release.notes.use
        return f"use {use}" if use else super().hint


def resolve(
    lineage: Lineage, selector: Selector, policy: Policy, dependent: Dependent | None = None
) -> Resolution:
    """Choose the release of a lineage that a dependent gets for its selector.

    >>> from polyver.core import Lineage, Release, SemVer, Series, Stage
    >>> policy = Policy("example", usable=frozenset({Stage.PUBLISHED}), best="newest release")
    >>> lineage = Lineage("web", [Release(SemVer.parse(v)) for v in ("1.2.3", "1.3.0", "2.0.0")])
    >>> found = resolve(lineage, Series(1), policy)
    >>> found.release.name, found.reason
    ('1.3.0', 'newest in series 1')
    >>> [(other.release.name, other.why) for other in found.rejected]
    [('2.0.0', 'not in series 1'), ('1.2.3', '1.3.0 is newer')]
    """
    question = Question(lineage, selector, policy, dependent or _ANYONE)
    if question.dependent.lock is not None:
        # A lock comes before all other rules: no other release may be chosen.
        return question.answer(question.locked(question.dependent.lock), "locked")
    if type(selector) in policy.refuses:
        raise NoMatch(question)
    if question.dependent.pin is not None and type(selector) in policy.keeps:
        kept = question.kept(question.dependent.pin)
        if kept is not None:
            return question.answer(kept, f"kept: it is the {policy.noun} in use")
    candidates = question.candidates()
    returned = question.returned(candidates)
    if returned is not None:
        return question.answer(returned, f"the {policy.noun} before one that was taken back")
    chosen = question.highest_visible(candidates)
    if chosen is None:
        return question.answer_without(candidates)
    if question.dependent.failed_move is not None:
        stayed = question.stayed(chosen, question.dependent.failed_move)
        if stayed is not None:
            return question.answer(stayed, f"kept: the move to {chosen.name} failed")
    return question.answer(chosen, question.reason())


_ANYONE = Dependent()


# The rules that a release must meet. They are strings, because members of an Enum are slower.
_Rule = Literal["selector", "stage", "preferred", "prerelease"]


class Question(NamedTuple):
    """The arguments of `resolve`.

    They are stored so that the reasons for and against releases are computed only when they are
    read.
    """

    lineage: Lineage
    selector: Selector
    policy: Policy
    dependent: Dependent

    def rules(self) -> list[tuple[_Rule, int]]:
        """Return the rules for the selector, each with the set of releases that meet it.

        A set is an integer (see the module `lineage`). If a release breaks several rules, users see
        the first of them as the reason.
        """
        lineage, selector, policy, _ = self
        usable: tuple[_Rule, int] = ("stage", lineage.in_stages(policy.usable))
        rules: list[tuple[_Rule, int]]
        match selector:
            case Exact():
                return [("selector", lineage.exactly(selector.wanted)), usable]
            case Series():
                rules = [("selector", lineage.in_series(selector)), usable]
            case Labels():
                rules = [("selector", lineage.labelled(selector.wanted)), usable]
            case Unspecified():
                rules = [usable]
                if policy.preferred:
                    rules.append(("preferred", lineage.in_stages(policy.preferred)))
        if not policy.prereleases:
            rules.append(("prerelease", lineage.finals))
        return rules

    def candidates(self) -> int:
        found = self.lineage.everything
        for _, meeting in self.rules():
            found &= meeting
        return found

    def highest_visible(self, candidates: int) -> Release | None:
        while candidates:
            position = candidates.bit_length() - 1
            release = self.lineage.releases[position]
            if self.sees(release):
                return release
            candidates ^= 1 << position
        return None

    def sees(self, release: Release) -> bool:
        """Report whether the gate of a release, if it has one, lets the dependent use the release.

        A dependent that already uses the release keeps it, unless the rollout rolls the release
        back. Gates do not apply to dependents with a lock or with an exact selector without `wish`.
        """
        gate = release.gate
        if gate is None or self.dependent.lock is not None or self._is_exact:
            return True
        if gate.admits(self.dependent):
            return True
        return not gate.returns and self.dependent.pin == release.pin

    @property
    def _is_exact(self) -> bool:
        """True if the selector names one release and accepts no other (it has no `wish`)."""
        return isinstance(self.selector, Exact) and not self.selector.wish

    def returned(self, candidates: int) -> Release | None:
        """Return the previous release of the dependent if a rollout takes back the release in use.

        Return None if no rollout does this, or if the dependent may not use the previous release.
        `candidates` is the set of releases that meet all rules, as an integer.
        """
        pin, previous = self.dependent.pin, self.dependent.previous
        used = self.lineage.get(pin.release) if pin is not None else None
        if previous is None or used is None or used.gate is None or not used.gate.returns:
            return None
        release = self.lineage.get(previous.release)
        if release is None or release.pin != previous or self.sees(used):
            return None
        selected = candidates & self.lineage.exactly(release.version)
        return release if selected and self.sees(release) else None

    def kept(self, pin: Pin) -> Release | None:
        """Return the pinned release; None if the dependent moves to another release.

        Raise `NoMatch` if the pinned release cannot be used. If the selector does not match the
        pinned release, the policy decides between an error and a move.
        """
        release = self._held(pin, "pin")
        if not self._selects(release):
            if self.policy.moves_when_unmatched:
                return None
            raise NoMatch(self, self._mismatch(release, "pin"))
        return release if self.policy.keeps_closed or self.sees(release) else None

    def stayed(self, chosen: Release, failed: FailedMove) -> Release | None:
        """Return the pinned release if it is usable and an earlier move to `chosen` failed.

        Otherwise return None.
        """
        pin = self.dependent.pin
        if pin is None or failed.to != chosen.pin:
            return None
        release = self.lineage.get(pin.release)
        if release is None or release.pin != pin or release.stage not in self.policy.usable:
            return None
        return release if self._selects(release) else None

    def locked(self, lock: Pin) -> Release:
        """Return the locked release; raise `NoMatch` if the dependent cannot use it."""
        release = self._held(lock, "lock")
        if not self.candidates() & self.lineage.exactly(release.version):
            raise NoMatch(self, self._mismatch(release, "lock"))
        return release

    def _held(self, pin: Pin, called: str) -> Release:
        release, name = self.lineage.get(pin.release), self.lineage.name
        if release is None:
            fact = f"{name} is {_DONE[called]} to {pin.release}, which does not exist"
            raise NoMatch(self, fact)
        if release.stage.is_gone:
            raise Gone(self, release)
        if release.digest != pin.digest:
            fact = f"the content of {name} {release.name} differs from what was {_DONE[called]}"
            raise NoMatch(self, f"{fact} ({release.digest}, not {pin.digest})")
        if release.stage not in self.policy.usable:
            fact = f"{name} is {_DONE[called]} to {release.name}, which is {release.stage.value}"
            raise NoMatch(self, fact)
        return release

    def _mismatch(self, release: Release, called: str) -> str:
        bit = self.lineage.exactly(release.version)
        broken = next(rule for rule, meeting in self.rules() if not meeting & bit)
        why = _why_broken(broken, release, self.selector)
        return f"{self.lineage.name} is {_DONE[called]} to {release.name}, which is {why}"

    def _selects(self, release: Release) -> bool:
        bit = self.lineage.exactly(release.version)
        return all(meeting & bit for rule, meeting in self.rules() if rule == "selector")

    def answer(self, release: Release, reason: str, *warnings: str) -> Resolution:
        if release.stage is Stage.DEPRECATED:
            warnings += (_deprecation(self.lineage, release),)
        return Resolution(release, reason, warnings, self)

    def answer_without(self, held: int) -> Resolution:
        """Choose a fallback; raise `NoMatch` if there is none.

        `resolve` calls this method if the dependent may use none of the releases that meet all
        rules. `held` is the set of releases that meet all rules, but whose gates do not admit the
        dependent.
        """
        if isinstance(self.selector, Exact):
            instead = self._answer_without_exact(self.selector)
            if instead is not None:
                return instead
        pin = self.dependent.pin
        kept = self.lineage.get(pin.release) if held and pin is not None else None
        if kept is not None and kept.pin == pin and kept.stage in self.policy.usable:
            return self.answer(kept, f"kept: {self._holder(held)}")
        if isinstance(self.selector, Unspecified) and self.policy.otherwise is not None:
            fallback = self.lineage.get(self.policy.otherwise)
            if (
                fallback is not None
                and fallback.stage in self.policy.usable
                and self.sees(fallback)
            ):
                why = self._holder(held) if held else f"there is no {self.policy.best}"
                return self.answer(fallback, f"{fallback.name}: {why}")
        raise NoMatch(self)

    def _answer_without_exact(self, selector: Exact) -> Resolution | None:
        """Choose a fallback for an exact selector; return None if there is none.

        There is a fallback if the lineage has no versions, or if the selector has `wish`.
        """
        lineage = self.lineage
        found = lineage.get(selector.wanted)
        if found is None and not lineage.versioned and lineage.releases:
            only = lineage.newest
            if only.stage.is_gone:
                raise Gone(self, only)
            if only.stage in self.policy.usable and self.sees(only):
                warning = (
                    f"{lineage.name} registers no versions: {only.name} answers for {selector}"
                )
                return self.answer(only, f"the only implementation of {lineage.name}", warning)
        if found is not None and found.stage.is_gone:
            raise Gone(self, found)
        if selector.wish and (found is None or not self.sees(found)):
            why = f"has no {selector}" if found is None else f"{found.name} is {found.gate}"
            instead = resolve(lineage, UNSPECIFIED, self.policy, self.dependent)
            used = f"the preferred version: {instead.release.name} is used"
            warnings = (f"{lineage.name} {why}, {used}", *instead.warnings)
            return instead._replace(warnings=warnings)
        return None

    def _holder(self, held: int) -> str:
        holder = self.lineage.releases[held.bit_length() - 1]
        return f"{holder.name} is {holder.gate}"

    def reason(self) -> str:
        selector, policy = self.selector, self.policy
        match selector:
            case Exact():
                return "the preferred version" if selector.wish else "exact version"
            case Series():
                return f"newest in series {selector}"
            case Labels() if selector.wanted:
                return f"{policy.best} with {selector}"
            case _:
                return policy.best

    def fact(self) -> str:
        """Return the first part of the message of `NoMatch`: what the lineage lacks, and why."""
        refusal = self.policy.refuses.get(type(self.selector))
        if refusal:
            return f"{self.lineage.name}@{self.selector} is refused: {refusal}"
        fact = f"{self.lineage.name} has no {self._described()}"
        matching = dict(self.rules()).get("selector", self.lineage.everything)
        unusable = [
            f"{rejection.release.name} is {rejection.why}"
            for rejection in self.rejections(chosen=None)
            if self.lineage.exactly(rejection.release.version) & matching
        ]
        if not unusable:
            return fact
        usable = "" if isinstance(self.selector, Unspecified) else " that can be used"
        return f"{fact}{usable}: {listed(unusable, most=3)}"

    def _described(self) -> str:
        match self.selector:
            case Exact():
                return str(self.selector)
            case Series():
                return f"{self.policy.noun} in series {self.selector}"
            case Labels() if self.selector.wanted:
                return f"{self.policy.noun} with {self.selector}"
            case _:
                return self.policy.best

    def rejections(self, *, chosen: Release | None) -> Iterator[Rejection]:
        rules = self.rules()
        for position in reversed(range(len(self.lineage))):
            release = self.lineage.releases[position]
            if release is not chosen:
                broken = next(
                    (rule for rule, meeting in rules if not meeting >> position & 1), None
                )
                yield Rejection(release, self._why_not(release, broken, chosen))

    def _why_not(self, release: Release, broken: _Rule | None, chosen: Release | None) -> str:
        if self.dependent.lock is None and type(self.selector) in self.policy.refuses:
            return f"{self.selector} is refused"
        if broken is not None:
            return _why_broken(broken, release, self.selector)
        if not self.sees(release):
            return str(release.gate)
        return self._why_another(release, chosen)

    def _why_another(self, release: Release, chosen: Release | None) -> str:
        if self.dependent.lock is not None:
            return "not the lock" if chosen is None else f"{chosen.name} is locked"
        if chosen is None:
            return "not the pin"
        lineage, failed = self.lineage, self.dependent.failed_move
        if failed is not None and failed.to == release.pin:
            return failed.why or "the move to it failed"
        if lineage.exactly(chosen.version) > lineage.exactly(release.version):
            return f"{chosen.name} is {'newer' if isinstance(chosen.version, SemVer) else 'higher'}"
        return f"{chosen.name} is in use"


# Parts of messages.

_DONE = {"pin": "pinned", "lock": "locked"}


def _why_broken(rule: _Rule, release: Release, selector: Selector) -> str:
    match rule, selector:
        case "selector", Series():
            return f"not in series {selector}"
        case "selector", Labels():
            missing = [label for label in selector.wanted if label not in release.labels.items()]
            return f"without {Labels(tuple(missing))}"
        case "selector", _:
            return f"not {selector}"
        case "prerelease", _:
            return "a prerelease: only an exact selector chooses it"
        case "preferred", _:
            return f"{release.stage.value}: only an exact selector chooses it"
        case _:
            return release.fate


def _deprecation(lineage: Lineage, release: Release) -> str:
    notes = release.notes
    if notes.text:
        return notes.text
    since = f" since {notes.since}" if notes.since else ""
    until = f" and will be removed in {notes.removed_in}" if notes.removed_in else ""
    use = f"; use {notes.use}" if notes.use else ""
    return f"{lineage.name} {release.name} is deprecated{since}{until}{use}"


def _nearest(lineage: Lineage, selector: Selector) -> tuple[str, ...]:
    """Return the names of the releases that the author of this selector may have meant."""
    match selector:
        case Exact(wanted=SemVer() as wanted):
            minor, major = Series(wanted.major, wanted.minor), Series(wanted.major)
            return _in_series(lineage, minor) or _in_series(lineage, major)
        case Series() if len(selector.numbers) == 2:
            return _in_series(lineage, Series(selector.numbers[0]))
        case Exact():
            known = [release.name for release in lineage if not release.stage.is_gone]
            return tuple(get_close_matches(str(selector), known, n=3))
        case _:
            return ()


def _in_series(lineage: Lineage, series: Series) -> tuple[str, ...]:
    found = lineage.in_series(series)
    known = [
        release.name
        for position, release in enumerate(lineage.releases)
        if found >> position & 1 and not release.stage.is_gone
    ]
    return tuple(known[-3:])
