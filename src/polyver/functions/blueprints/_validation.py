"""Validates blueprints before they run, and finds the phases that use a function version."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from polyver.core import (
    Dependent,
    Exact,
    Index,
    InvalidVersion,
    NoMatch,
    Resolution,
    Selector,
    SemVer,
    affected,
)
from polyver.functions.blueprints._resolution import (
    about_phase,
    refusals_of,
    resolved_with,
    selector_of,
)
from polyver.functions.blueprints._spec import (
    ActionVersionRequest,
    Blueprint,
    BlueprintFinding,
    ParsedAction,
    Phase,
)
from polyver.functions.policy import FUNCTIONS
from polyver.functions.registering.function import Function
from polyver.functions.registering.functions import Functions
from polyver.languages.values.manifests import dotted

UNTIL = " is known only at run time"
"""The end of each message about a value that is not known before the action runs."""
__all__ = [
    "UNTIL",
    "PhaseFunctionUse",
    "check_blueprint",
    "losses_at",
    "losses_between",
    "new_errors",
    "uses_in",
]


@dataclass(frozen=True, slots=True)
class PhaseFunctionUse:
    """A phase that calls a known function, with its selector and the result of its resolution."""

    blueprint: Blueprint
    action: str
    phase: Phase
    asker: str
    """Name of the ActionSet whose `preferredVersion` selects the version; empty if none does."""
    selector: Selector
    found: Resolution | NoMatch

    @property
    def version(self) -> str:
        """The resolved version; empty if the phase cannot be resolved."""
        return self.found.release.name if isinstance(self.found, Resolution) else ""

    @property
    def asked(self) -> str:
        """The requested version: `v0.1.0`; empty if none is requested."""
        return f"v{self.selector}" if isinstance(self.selector, Exact) else ""

    def concerns(self, version: SemVer) -> bool:
        """Report whether the phase uses this version, or requests it but cannot be resolved."""
        if isinstance(self.found, Resolution):
            return self.found.question.lineage.get(version) is self.found.release
        return self.selector in (Exact(version), Exact(version, wish=True))


def check_blueprint(blueprint: Blueprint, functions: Functions) -> Iterator[BlueprintFinding]:
    """Yield errors in names, versions, arguments and templates, and uses of deprecated versions.

    Some findings are values that a template reads and that may be missing when the action runs.
    They have `is_unknown` set.
    """
    for action in blueprint.actions.values():
        yield from _templates(blueprint, action, functions)
        yield from _doubled(blueprint, action.calls)
        for phase in action.calls:
            about = about_phase(blueprint, action.name, phase)
            for refusal in refusals_of(functions, blueprint, phase):
                fact = f"{about}: {refusal.fact}"
                yield blueprint.finding(fact, *refusal.path, hint=refusal.hint)
            for warning in _warnings(functions, blueprint, phase):
                path = (*phase.path, "funcVersion" if phase.version else "func")
                yield blueprint.finding(f"{about}: {warning}", *path, is_error=False)


def _templates(
    blueprint: Blueprint, action: ParsedAction, functions: Functions
) -> Iterator[BlueprintFinding]:
    if not action.has_templates:
        return
    # The package is imported only if there is a template, because the import takes long.
    from polyver.functions.blueprints.templates import template_problems

    called = [_implementation(functions, blueprint, phase) for phase in action.calls]
    for each in template_problems(action.written, called):
        about = _about(blueprint, action, each.path)
        fact = f"{each.fact}{UNTIL}" if each.is_unknown else f"{about}: {each.fact}"
        path, hint = ("actions", action.name, *each.path), each.hint
        finding = blueprint.finding(fact, *path, hint=hint, is_error=not each.is_unknown)
        yield replace(finding, is_unknown=each.is_unknown)


def _about(blueprint: Blueprint, action: ParsedAction, path: Sequence[str | int]) -> str:
    for phase in action.calls:
        inside = phase.path[2:]
        if tuple(path[: len(inside)]) == inside:
            return about_phase(blueprint, action.name, phase)
    return f"blueprint {blueprint.label}, action {action.name}, {path[0]}"


def _implementation(functions: Functions, blueprint: Blueprint, phase: Phase) -> Function | None:
    """Return the Python function that a phase would call; None if there is none."""
    found = _attempt(functions, blueprint, phase, "")
    if not isinstance(found, Resolution):
        return None
    assert isinstance(found.release.version, SemVer)
    return functions.known[phase.function].code.get(found.release.version)


def _doubled(blueprint: Blueprint, phases: Iterable[Phase]) -> Iterator[BlueprintFinding]:
    seen: dict[str, Phase] = {}
    for phase in phases:
        first = seen.setdefault(phase.name, phase)
        if first is not phase and phase.name:
            fact = f"two phases have the name {phase.name}"
            hint = f"the first is {dotted(first.path)}; templates need unique names"
            yield blueprint.finding(fact, *phase.path, "name", hint=hint)


def _warnings(functions: Functions, blueprint: Blueprint, phase: Phase) -> tuple[str, ...]:
    found = _attempt(functions, blueprint, phase, "")
    return found.warnings if isinstance(found, Resolution) else ()


def new_errors(blueprint: Blueprint, before: Functions, after: Functions) -> list[BlueprintFinding]:
    """Return the errors that a blueprint has with the functions `after` but not with `before`.

    `polyver functions promote` and the preflight of a rollout call this function to find the
    blueprints that a promoted version would break.
    """
    was = {each.path for each in check_blueprint(blueprint, before) if each.is_error}
    found = [each for each in check_blueprint(blueprint, after) if each.is_error]
    return [each for each in found if each.path not in was]


def losses_at(
    release: SemVer, blueprints: Iterable[Blueprint], functions: Functions
) -> Iterator[BlueprintFinding]:
    """Yield a finding for each phase that a future catalogue release would break.

    Such a phase uses a function version that this catalogue release removes.
    """
    for use, error in losses_between(functions, functions.at(release), blueprints):
        about = about_phase(use.blueprint, use.action, use.phase)
        field = "funcVersion" if use.phase.version else "func"
        fact = f"{about} stops working in {release}: {error.fact}"
        yield use.blueprint.finding(fact, *use.phase.path, field, hint=error.hint)


def losses_between(
    before: Functions, after: Functions, blueprints: Iterable[Blueprint]
) -> Iterator[tuple[PhaseFunctionUse, NoMatch]]:
    """Yield each use that resolves with the functions `before` but not with `after`.

    The second value is the error of its resolution with `after`.
    """
    uses = {str(number): use for number, use in enumerate(uses_in(blueprints, before))}
    for known in before:
        index = Index.of(
            (Dependent(name, pin=use.found.release.pin), known.name, use.selector, FUNCTIONS)
            for name, use in uses.items()
            if use.phase.function == known.name and isinstance(use.found, Resolution)
        )
        for loss in affected(index, known.lineage, after.known[known.name].lineage).losses:
            yield uses[loss.dependent.name], loss.error


def uses_in(
    blueprints: Iterable[Blueprint],
    functions: Functions,
    requests: Iterable[ActionVersionRequest] = (),
) -> Iterator[PhaseFunctionUse]:
    """Yield the uses of known functions by phases.

    A phase without `funcVersion` may be yielded several times: once for the case without a
    preferred version, and once for each preferred version that `requests` have for its action.
    """
    asked = [each for each in requests if each.preferred]
    for blueprint in blueprints:
        for action in blueprint.actions.values():
            wishes = [("", ""), *_wishes(asked, blueprint, action.name)]
            for phase in action.calls:
                # If a phase has a `funcVersion`, the preferred versions have no effect on it.
                for asker, preferred in wishes[:1] if phase.version else wishes:
                    found = _attempt(functions, blueprint, phase, preferred)
                    if found is not None:
                        selector = selector_of(phase, preferred)
                        yield PhaseFunctionUse(
                            blueprint, action.name, phase, asker, selector, found
                        )


def _wishes(
    requests: Iterable[ActionVersionRequest], blueprint: Blueprint, action: str
) -> Iterator[tuple[str, str]]:
    for each in requests:
        if (each.blueprint, each.action) != (blueprint.name, action):
            continue
        if blueprint.namespace and each.namespace and blueprint.namespace != each.namespace:
            continue
        yield f"{each.namespace}/{each.action_set}".removeprefix("/"), each.preferred


def _attempt(
    functions: Functions, blueprint: Blueprint, phase: Phase, preferred: str
) -> Resolution | NoMatch | None:
    """Resolve a phase. Return None if its function is unknown, or its requested version invalid.

    Return the error if no version matches.
    """
    known = functions.known.get(phase.function)
    if known is None:
        return None
    try:
        selector = selector_of(phase, preferred)
        return resolved_with(known, phase, selector, blueprint.user(phase))
    except NoMatch as error:
        return error
    except InvalidVersion:
        return None
