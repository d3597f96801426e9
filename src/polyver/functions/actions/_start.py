"""Starts an ActionSet: resolves all phases of all its actions, and reports all problems.

If one phase cannot be resolved, no action of the ActionSet starts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from polyver.core import PolyverError, listed
from polyver.functions.actions._data import made_with, masked_artifacts
from polyver.functions.actions._run import ActionRun, ActionSetRun, PhaseRun
from polyver.functions.blueprints import (
    ActionRefused,
    Blueprint,
    ResolvedAction,
    ResolvedPhase,
    resolve_action,
    rollout_of,
)
from polyver.functions.blueprints.templates import ProvidedNames, template_problems
from polyver.functions.registering import Functions, implementation
from polyver.kube.objects import encode_json
from polyver.kube.objects.converted_metadata import fresh
from polyver.languages.values.manifests import dotted
from polyver.languages.values.names import dns_subdomain_problems
from polyver.languages.values.strings import quoted

__all__ = ["RequestedAction", "checked", "refused", "start", "wanted_of"]


_NAMED = ("options", "artifacts", "configMaps", "secrets")


@dataclass(frozen=True, slots=True)
class RequestedAction:
    """An action in the spec of an ActionSet."""

    spec: Mapping[str, Any]
    at: str
    """Path of the action in the ActionSet: `spec.actions[0]`."""

    @property
    def name(self) -> str:
        return str(self.spec["name"])

    @property
    def blueprint(self) -> str:
        return str(self.spec.get("blueprint") or "")


def wanted_of(action_set: Mapping[str, Any]) -> list[RequestedAction]:
    """Parse the actions in the spec of an ActionSet."""
    spec: Mapping[str, Any] = action_set.get("spec") or {}
    actions = spec.get("actions") or ()
    return [RequestedAction(each, f"spec.actions[{number}]") for number, each in enumerate(actions)]


def start(
    wanted: list[RequestedAction],
    blueprints: Callable[[str], Blueprint | None],
    functions: Functions,
    *,
    time: str,
) -> ActionSetRun:
    """Resolve all actions of an ActionSet and return the new run.

    If the ActionSet must not start, the run has a `refusal`. `blueprints` returns the blueprint
    with a name, or None.
    """
    actions: list[ActionRun] = []
    warnings: list[str] = []
    problems: list[str] = []
    for each in wanted:
        try:
            blueprint, resolved = _resolved(each, blueprints, functions)
        except ActionRefused as refusal:
            problems += map(str, refusal.problems)
        except PolyverError as error:
            problems.append(str(error))
        else:
            written = fresh(_written(blueprint, each.name))
            snapshot = {"time": time, "spec": fresh(each.spec), "action": written}
            phases = tuple(map(_phase, resolved.phases))
            deferred = _phase(resolved.deferred) if resolved.deferred else None
            run = ActionRun(each.name, each.blueprint, phases, deferred, snapshot=snapshot)
            actions.append(run)
            warnings += resolved.warnings
            if each.spec.get("profile"):
                warnings.append(f"{each.at}.profile is ignored: Profiles are not supported")
            warnings += _made_by_others(each, resolved)
    warnings = [*dict.fromkeys(warnings)]
    if problems:
        return ActionSetRun((), tuple(warnings), "; ".join(problems))
    return ActionSetRun(tuple(actions), tuple(warnings))


def checked(run: ActionSetRun, functions: Functions) -> ActionSetRun:
    """Return the run, or a run with a refusal if templates read values that will not exist.

    Without this check, the run would fail only after some of its phases.
    """
    problems = [each for action in run.actions for each in _unreadable(action, functions)]
    return replace(run, actions=(), refusal="; ".join(problems)) if problems else run


def _unreadable(action: ActionRun, functions: Functions) -> Iterator[str]:
    """Yield an error message for each missing value that a template of the action reads."""
    written: Mapping[str, Any] = action.snapshot["action"]
    if b"{{" not in encode_json(written):
        return
    spec: Mapping[str, Any] = action.snapshot["spec"]
    names = {each: frozenset(spec.get(each) or ()) for each in _NAMED}
    objects = [
        *(action.snapshot.get("workload") or ()),
        *(["Object"] if spec.get("object") else []),
    ]
    given = ProvidedNames(
        options=names["options"],
        artifacts=names["artifacts"],
        config_maps=names["configMaps"],
        secrets=names["secrets"],
        objects=frozenset(objects),
    )
    called = [
        implementation(functions, action.written(place).function, call.version)
        for place, call in enumerate(action.calls)
    ]
    about = f"blueprint {action.blueprint}, action {action.name}"
    for each in template_problems(written, called, given):
        at = dotted(("actions", action.name, *each.path))
        yield str(PolyverError(f"{about}: {each.fact}", at=at, hint=each.hint))


def refused(reason: str) -> ActionSetRun:
    """Return the run of an ActionSet that failed with this reason before any action started."""
    return ActionSetRun(refusal=reason)


def _resolved(
    wanted: RequestedAction,
    blueprints: Callable[[str], Blueprint | None],
    functions: Functions,
) -> tuple[Blueprint, ResolvedAction]:
    """Find the blueprint of an action, and resolve its phases. Raise an error if it cannot run."""
    at = f"{wanted.at}.blueprint"
    if not wanted.blueprint:
        raise PolyverError(f"action {wanted.name} names no blueprint", at=at)
    if problems := dns_subdomain_problems(wanted.blueprint):
        raise PolyverError(f"{quoted(wanted.blueprint)} is not a name: {problems[0]}", at=at)
    blueprint = blueprints(wanted.blueprint)
    if blueprint is None:
        hint = "create it in the namespace of the ActionSet"
        raise PolyverError(f"there is no blueprint {wanted.blueprint}", at=at, hint=hint)
    preferred = wanted.spec.get("preferredVersion") or ""
    at = f"{wanted.at}.preferredVersion"
    try:
        found = resolve_action(functions, blueprint, wanted.name, preferred=preferred, at=at)
    except ActionRefused:
        raise
    except PolyverError as error:
        raise PolyverError(error.fact, at=f"{wanted.at}.name", hint=error.hint) from None
    written = _written(blueprint, wanted.name)
    for given, needed in (
        ("artifacts", "inputArtifactNames"),
        ("configMaps", "configMapNames"),
        ("secrets", "secretNames"),
    ):
        there = wanted.spec.get(given) or {}
        missing = [name for name in written.get(needed) or () if name not in there]
        if missing:
            fact = f"action {wanted.name} of blueprint {wanted.blueprint} needs {listed(missing)}"
            raise PolyverError(fact, at=f"{wanted.at}.{given}", hint=f"{needed} names them")
    if names := masked_artifacts(wanted.spec):
        fact = f"the artifacts {listed(names)} contain masked values"
        hint = "read them from the Secret in status.actions[].artifactsSecret"
        raise PolyverError(fact, at=f"{wanted.at}.artifacts", hint=hint)
    return blueprint, found


def _written(blueprint: Blueprint, action: str) -> Mapping[str, Any]:
    value: Any = blueprint.document.value
    found: Mapping[str, Any] = value["actions"][action] or {}
    return found


def _made_by_others(wanted: RequestedAction, resolved: ResolvedAction) -> Iterator[str]:
    """Yield a warning for each input artifact that may be unreadable for a phase.

    This is the case if the artifact was made by another major version of the function that the
    phase calls.
    """
    calls = (*resolved.phases, *([resolved.deferred] if resolved.deferred else []))
    for name, artifact in (wanted.spec.get("artifacts") or {}).items():
        made_by = made_with(artifact)
        for each in calls:
            versions = made_by.get(each.phase.function) or set()
            if versions and each.function.version.major not in {v.major for v in versions}:
                shown = listed([f"v{version}" for version in sorted(versions)])
                yield (
                    f"{wanted.at}.artifacts.{name} was made by {each.phase.function} {shown}, and "
                    f"phase {each.phase.label} of action {wanted.name} calls {each.version}, "
                    "another major version, which may not be able to read it"
                )


def _phase(resolved: ResolvedPhase) -> PhaseRun:
    why = resolved.resolution.reason
    rollout = rollout_of(resolved.resolution)
    return PhaseRun(resolved.phase.name, resolved.version, why, chosen=why, rollout=rollout)
