"""Resolves the function version of each phase, for all phases of an action together.

A phase calls the version in its `funcVersion`. Without `funcVersion`, it calls the first version of
this list that the function has: the `preferredVersion` of the action in the ActionSet, the stable
version, v0.0.0. If one phase cannot be resolved, no phase of the action is called.

While the stable version has a gate, only the blueprints that the gate admits call this version. The
others, and blueprints whose arguments do not fit this version, call the version that was stable
before.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from polyver.core import (
    UNSPECIFIED,
    Dependent,
    Exact,
    InvalidVersion,
    NoMatch,
    PolyverError,
    Release,
    Resolution,
    Selector,
    SemVer,
    resolve,
)
from polyver.functions.blueprints._spec import Blueprint, ParsedAction, Phase
from polyver.functions.policy import FUNCTIONS
from polyver.functions.registering.arguments import ArgumentProblem
from polyver.functions.registering.function import Function
from polyver.functions.registering.functions import Functions, KnownFunction, UnknownFunction
from polyver.languages.values.manifests import dotted

__all__ = [
    "ActionRefused",
    "PhaseRefused",
    "RefusalReason",
    "ResolvedAction",
    "ResolvedPhase",
    "about_phase",
    "misfitting_versions",
    "refusals_of",
    "resolution_of",
    "resolve_action",
    "resolve_phase",
    "resolved_with",
    "rollout_of",
    "selector_of",
]


@dataclass(frozen=True, slots=True)
class RefusalReason:
    """The reason why a phase cannot run: a message, the path of a blueprint's field, and a hint."""

    fact: str
    path: tuple[str | int, ...]
    hint: str = ""
    at: str = ""
    """Path of a field in the ActionSet if this field is the cause; otherwise empty."""


class PhaseRefused(PolyverError):
    """A phase cannot run. The message names the blueprint, the action and the phase."""

    def __init__(
        self, blueprint: Blueprint, action: str, phase: Phase, refusal: RefusalReason
    ) -> None:
        about = about_phase(blueprint, action, phase)
        at = refusal.at or dotted(refusal.path)
        super().__init__(f"{about}: {refusal.fact}", at=at, hint=refusal.hint)
        self.refusal = refusal
        self.phase = phase


class ActionRefused(PolyverError):
    """An action cannot start; `problems` has all reasons."""

    def __init__(self, problems: tuple[PolyverError, ...]) -> None:
        super().__init__("; ".join(map(str, problems)))
        self.problems = problems


@dataclass(frozen=True, slots=True)
class ResolvedPhase:
    """A phase, and the resolved version of its function."""

    phase: Phase
    function: Function
    resolution: Resolution
    warnings: tuple[str, ...]

    @property
    def version(self) -> str:
        return self.resolution.release.name


@dataclass(frozen=True, slots=True)
class ResolvedAction:
    """An action whose phases all have a resolved function version."""

    action: ParsedAction
    phases: tuple[ResolvedPhase, ...]
    deferred: ResolvedPhase | None = None

    @property
    def warnings(self) -> tuple[str, ...]:
        """Warnings about all phases, such as deprecations."""
        calls = (*self.phases, self.deferred) if self.deferred else self.phases
        return tuple(warning for each in calls for warning in each.warnings)


def resolve_action(
    functions: Functions, blueprint: Blueprint, name: str, *, preferred: str = "", at: str = ""
) -> ResolvedAction:
    """Resolve all phases of an action, or raise ActionRefused with all problems.

    `preferred` is the `preferredVersion` of the action; `at` is the path of that field.
    """
    action = blueprint.action(name)
    wish = preferred if not _malformed(preferred) else ""
    found: list[ResolvedPhase] = []
    problems: list[PolyverError] = []
    if preferred and not wish:
        about = f"blueprint {blueprint.label}, action {name}"
        problems.append(PolyverError(f"{about}: {_malformed(preferred)}", at=at))
    for phase in action.calls:
        try:
            found.append(resolve_phase(functions, blueprint, name, phase, preferred=wish, at=at))
        except ActionRefused as refused:
            problems += refused.problems
    if problems:
        raise ActionRefused(tuple(problems))
    if action.deferred is not None:
        return ResolvedAction(action, tuple(found[:-1]), found[-1])
    return ResolvedAction(action, tuple(found))


def resolve_phase(
    functions: Functions,
    blueprint: Blueprint,
    action: str,
    phase: Phase,
    *,
    preferred: str = "",
    at: str = "",
) -> ResolvedPhase:
    """Resolve one phase, and check its arguments as far as possible without rendering them.

    Raise ActionRefused with all problems of the phase.
    """
    found = _chosen(functions, blueprint, phase, preferred, at)
    if isinstance(found, RefusalReason):
        raise ActionRefused((PhaseRefused(blueprint, action, phase, found),))
    function = functions.get(phase.function).implementation(found.release)
    wrong = [_of_argument(each, phase, function) for each in function.check(phase.arguments)]
    wrong += _of_templates(phase.arguments, phase)
    if wrong:
        raise ActionRefused(
            tuple(PhaseRefused(blueprint, action, phase, refusal) for refusal in wrong)
        )
    about = about_phase(blueprint, action, phase)
    warnings = tuple(f"{about}: {warning}" for warning in found.warnings)
    return ResolvedPhase(phase, function, found, warnings)


def refusals_of(
    functions: Functions, blueprint: Blueprint, phase: Phase
) -> Iterator[RefusalReason]:
    """Yield all reasons why a phase of a blueprint cannot run."""
    found = _chosen(functions, blueprint, phase, "", "")
    if isinstance(found, RefusalReason):
        yield found
        return
    function = functions.get(phase.function).implementation(found.release)
    for wrong in function.check(phase.arguments):
        yield _of_argument(wrong, phase, function)
    yield from _of_templates(phase.arguments, phase)


def selector_of(phase: Phase, preferred: str = "") -> Selector:
    """Parse the selector of a phase; raise InvalidVersion if its version is invalid."""
    if phase.version:
        return Exact(SemVer.complete(phase.version))
    return Exact(SemVer.complete(preferred), wish=True) if preferred else UNSPECIFIED


def resolution_of(
    functions: Functions, phase: Phase, *, preferred: str = "", user: Dependent | None = None
) -> Resolution:
    """Resolve the function version of a phase, without checking the arguments of the phase.

    `user` is the blueprint as a dependent: if a version has a gate, the gate decides by the uid and
    the labels of `user`. Raise UnknownFunction, InvalidVersion, or NoMatch if the function has no
    such version.
    """
    user = user or Dependent(at=dotted(phase.path))
    return resolved_with(functions.get(phase.function), phase, selector_of(phase, preferred), user)


def resolved_with(
    known: KnownFunction, phase: Phase, selector: Selector, user: Dependent
) -> Resolution:
    """Choose the version of the function `known` for a phase; raise NoMatch if there is none.

    `user` is the blueprint of the phase as a dependent.
    """
    wrong = bool(known.earlier) and known.stable is not None and misfits(known, phase, known.stable)
    return resolve(known.lineage, selector, FUNCTIONS, known.dependent(user, misfits=wrong))


def misfits(known: KnownFunction, phase: Phase, release: Release) -> bool:
    """Report whether a version of a function does not take the arguments of a phase."""
    assert isinstance(release.version, SemVer)
    code = known.code.get(release.version)
    return code is not None and any(code.check(phase.arguments))


def misfitting_versions(functions: Functions, phase: Phase) -> frozenset[str]:
    """Return the versions of a phase's function that do not take the arguments of the phase."""
    known = functions.known.get(phase.function)
    if known is None:
        return frozenset()
    return frozenset(each.name for each in known.lineage if misfits(known, phase, each))


def rollout_of(found: Resolution) -> str:
    """Return the name of the rollout whose gate admitted the blueprint to the resolved version.

    Return "" if the version has no gate, or if the phase requests the version with `funcVersion`.
    """
    selector, gate = found.question.selector, found.release.gate
    is_follower = not isinstance(selector, Exact) or selector.wish
    return gate.rollout if gate is not None and is_follower else ""


def _chosen(
    functions: Functions, blueprint: Blueprint, phase: Phase, preferred: str, at: str
) -> Resolution | RefusalReason:
    field = (*phase.path, "funcVersion") if phase.version else phase.path
    at = "" if phase.version else at
    try:
        return resolution_of(functions, phase, preferred=preferred, user=blueprint.user(phase))
    except UnknownFunction as error:
        return RefusalReason(error.fact, (*phase.path, "func"), error.hint)
    except InvalidVersion as error:
        return RefusalReason(error.fact, field, error.hint, at)
    except NoMatch as error:
        return RefusalReason(error.fact, field, error.hint, at)


def _malformed(version: str) -> str:
    """Return the reason why a string is not a version.

    Return "" for a valid version and for an empty string.
    """
    try:
        SemVer.complete(version or "0")
    except InvalidVersion as error:
        return error.fact
    return ""


def _of_argument(wrong: ArgumentProblem, phase: Phase, function: Function) -> RefusalReason:
    return RefusalReason(
        f"{function.label}: {wrong.fact}", (*phase.path, "args", *wrong.path), wrong.hint
    )


def _of_templates(value: object, phase: Phase, *path: str | int) -> Iterator[RefusalReason]:
    """Yield a reason for each template in an argument that is not a valid template."""
    if isinstance(value, str) and "{{" in value:
        # The package is imported only if there is a template, because the import takes long.
        from polyver.languages.gotemplate import InvalidTemplate, compile_template

        try:
            compile_template(value, name=dotted(("args", *path)))
        except InvalidTemplate as error:
            hint = f"{error.at}; {error.hint}" if error.hint else error.at
            yield RefusalReason(error.fact, (*phase.path, "args", *path), hint)
    elif isinstance(value, Mapping):
        for key, each in value.items():
            yield from _of_templates(each, phase, *path, str(key))
    elif isinstance(value, list | tuple):
        for place, each in enumerate(value):
            yield from _of_templates(each, phase, *path, place)


def about_phase(blueprint: Blueprint, action: str, phase: Phase) -> str:
    """Return the names of a blueprint, an action and a phase for messages."""
    return f"blueprint {blueprint.label}, action {action}, phase {phase.label}"
