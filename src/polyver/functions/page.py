"""Data for the web page: functions as lineages, the phases that use them, and ActionSet runs."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from typing import Any

from polyver.capability.gates import SYSTEM_NAMESPACE
from polyver.client import Change, GroupVersionResource, Key
from polyver.core import Dependent, InvalidVersion
from polyver.core.plain import Object
from polyver.functions.actions import read_run, wanted_of
from polyver.functions.blueprints import Phase, blueprint_of, misfitting_versions, selector_of
from polyver.functions.gates import RECORD, GateRecord, gated, read_record
from polyver.functions.kinds import ACTION_SETS, BLUEPRINTS, GROUP
from polyver.functions.policy import FUNCTIONS
from polyver.functions.registering import Functions, KnownFunction, UnknownFunction, function_data
from polyver.web.sources import (
    LineageKey,
    LineageRequest,
    PageInformers,
    PageLineage,
    PageModel,
    PageRun,
    PageRunStep,
    PageSource,
    PageTable,
    PublisherKey,
    ReleaseDetails,
    UnresolvedRequest,
    WatchedCollection,
)

__all__ = ["FunctionsSource"]

_CAPABILITY = "functions"
_VERSION = "v1alpha1"
_CONFIG_MAPS = GroupVersionResource("", "v1", "configmaps")
_BLUEPRINTS = GroupVersionResource(GROUP, _VERSION, BLUEPRINTS.names.plural)
_ACTION_SETS = GroupVersionResource(GROUP, _VERSION, ACTION_SETS.names.plural)


@dataclass(frozen=True, slots=True)
class _Blueprint:
    uid: str
    labels: tuple[tuple[str, str], ...]
    phases: tuple[tuple[str, Phase], ...]
    """All phases, each with the name of its action."""
    misfits: tuple[frozenset[str], ...]
    """For each item of `phases`, the versions of its function that do not take its arguments."""
    problem: str


@dataclass(frozen=True, slots=True)
class _ActionSet:
    wishes: tuple[tuple[str, str, str, str], ...]
    """For each action with a preferred version: its path in the ActionSet, the names of its
    blueprint and of the action, and the preferred version.
    """
    run: PageRun


class FunctionsSource(PageSource):
    """Page source of the capability functions.

    The functions never change while polyver runs, but the gates of their versions do.
    """

    capability = _CAPABILITY
    description = "functions that blueprints call"

    def __init__(self, functions: Functions) -> None:
        self._ungated = self._functions = functions
        self._blueprints: dict[Key, _Blueprint] = {}
        self._action_sets: dict[Key, _ActionSet] = {}
        self._wishing: dict[Key, set[Key]] = {}
        """ActionSets with a preferred version, by the namespace and name of their blueprint."""

    def open(self, book: PageModel, following: PageInformers) -> None:
        self._book = book
        for known in self._functions:
            book.show(_shown(known))
        following.follow(
            self, WatchedCollection(_BLUEPRINTS, self._blueprint, self._observe_blueprint)
        )
        following.follow(
            self, WatchedCollection(_ACTION_SETS, _action_set, self._observe_action_set)
        )
        named = f"metadata.name={RECORD}"
        following.follow(
            self, WatchedCollection(_CONFIG_MAPS, read_record, self._observe_record, fields=named)
        )

    async def _observe_record(self, change: Change[GateRecord]) -> None:
        """Show the functions with their new gates, and the versions that phases now get."""
        if change.key.namespace != SYSTEM_NAMESPACE:
            return
        self._functions = gated(self._ungated, change.after or {})
        for known in self._functions:
            self._book.show(_shown(known))
        for key, found in self._blueprints.items():
            name = f"Blueprint {key.namespace}/{key.name}"
            self._book.ask(_CAPABILITY, name, [*self._of_blueprint(name, found)])
        for key in self._action_sets:
            self._ask(key)

    async def _observe_blueprint(self, change: Change[_Blueprint]) -> None:
        name = f"Blueprint {change.key.namespace}/{change.key.name}"
        if change.after is None:
            self._blueprints.pop(change.key, None)
            self._book.ask(_CAPABILITY, name)
        else:
            self._blueprints[change.key] = change.after
            self._book.ask(_CAPABILITY, name, [*self._of_blueprint(name, change.after)])
        for key in self._wishing.get(change.key, ()):
            self._ask(key)

    async def _observe_action_set(self, change: Change[_ActionSet]) -> None:
        for _, blueprint, *_ in change.before.wishes if change.before else ():
            self._wishing[Key(change.key.namespace, blueprint)].discard(change.key)
        for _, blueprint, *_ in change.after.wishes if change.after else ():
            named = Key(change.key.namespace, blueprint)
            self._wishing.setdefault(named, set()).add(change.key)
        if change.after is None:
            self._action_sets.pop(change.key, None)
        else:
            self._action_sets[change.key] = change.after
        self._ask(change.key)
        self._book.run(_name(change.key), change.after.run if change.after else None)

    def _ask(self, key: Key) -> None:
        found = self._action_sets.get(key)
        places = [*self._of_action_set(key, found)] if found else []
        self._book.ask(_CAPABILITY, _name(key), places)

    def _of_blueprint(
        self, name: str, found: _Blueprint
    ) -> Iterator[LineageRequest | UnresolvedRequest]:
        about = Dependent(name, uid=found.uid, labels=dict(found.labels))
        if found.problem:
            yield UnresolvedRequest(replace(about, at="actions"), "", found.problem)
        for (_, phase), wrong in zip(found.phases, found.misfits, strict=True):
            yield self._asked(replace(about, at=phase.at), phase, "", wrong)

    def _of_action_set(
        self, key: Key, found: _ActionSet
    ) -> Iterator[LineageRequest | UnresolvedRequest]:
        """Yield a request of the preferred version for each phase without `funcVersion`.

        A gate decides by the uid and the labels of the blueprint, so the request has these.
        """
        for at, named, action, preferred in found.wishes:
            blueprint = self._blueprints.get(Key(key.namespace, named))
            if blueprint is None:
                continue
            about = Dependent(_name(key), uid=blueprint.uid, labels=dict(blueprint.labels))
            for (owner, phase), wrong in zip(blueprint.phases, blueprint.misfits, strict=True):
                if owner == action and not phase.version:
                    place = f"{at}.preferredVersion, {named} {phase.at}"
                    yield self._asked(replace(about, at=place), phase, preferred, wrong)

    def _asked(
        self, dependent: Dependent, phase: Phase, preferred: str, misfits: Collection[str]
    ) -> LineageRequest | UnresolvedRequest:
        wanted = phase.version or preferred
        text = f"{phase.function}@{wanted}" if wanted else phase.function
        if phase.function not in self._functions.known:
            error = UnknownFunction(phase.function, self._functions)
            return UnresolvedRequest(dependent, text, error.fact, error.hint)
        try:
            selector = selector_of(phase, preferred)
        except InvalidVersion as error:
            return UnresolvedRequest(dependent, text, error.fact, error.hint)
        known = self._functions.known[phase.function]
        wrong = known.stable is not None and known.stable.name in misfits
        where = LineageKey(_CAPABILITY, phase.function)
        user = known.dependent(dependent, misfits=wrong)
        return LineageRequest(user, where, wanted, selector, FUNCTIONS)

    def _blueprint(self, obj: Object) -> _Blueprint:
        found, findings = blueprint_of(obj)
        metadata = obj["metadata"]
        actions = found.actions.values() if found else ()
        calls = [(action.name, phase) for action in actions for phase in action.calls]
        # Arguments may be large, and are not displayed.
        phases = tuple((action, replace(phase, arguments={})) for action, phase in calls)
        misfits = tuple(misfitting_versions(self._ungated, phase) for _, phase in calls)
        problem = str(findings[-1].fact) if found is None else ""
        uid = metadata.get("uid", "")
        return _Blueprint(uid, _labels(metadata), phases, misfits, problem)


def _name(key: Key) -> str:
    return f"ActionSet {key.namespace}/{key.name}"


def _labels(metadata: Object) -> tuple[tuple[str, str], ...]:
    return tuple((metadata.get("labels") or {}).items())


def _action_set(obj: Object) -> _ActionSet:
    metadata = obj["metadata"]
    wishes = tuple(
        (wanted.at, wanted.blueprint, wanted.name, str(wanted.spec["preferredVersion"]))
        for wanted in wanted_of(obj)
        if wanted.spec.get("preferredVersion")
    )
    name = _name(Key(metadata.get("namespace", ""), metadata["name"]))
    return _ActionSet(wishes, _run(name, obj))


def _run(name: str, obj: Object) -> PageRun:
    created = obj["metadata"].get("creationTimestamp") or ""
    found = read_run(obj)
    if found is None:
        steps = tuple(PageRunStep(each.name, "", None, "", "pending") for each in wanted_of(obj))
        return PageRun(name, "pending", steps, created=created)
    steps = tuple(
        PageRunStep(
            action.name,
            call.name or f"phase {number + 1}",
            _function(action.snapshot, number),
            call.version,
            call.state.value,
            call.explanation,
        )
        for action in found.actions
        for number, call in enumerate(action.calls)
    )
    return PageRun(name, found.state.value, steps, found.warnings, found.error, created)


def _function(snapshot: Any, number: int) -> LineageKey | None:
    """Return the function that the phase with index `number` calls.

    Return None if the snapshot does not have this phase.
    """
    action = snapshot.get("action") or {}
    phases = [*(action.get("phases") or ())]
    phases += [action["deferPhase"]] if action.get("deferPhase") else []
    if number >= len(phases):
        return None
    return LineageKey(_CAPABILITY, str(phases[number].get("func") or ""))


# Views of functions.


def _shown(known: KnownFunction) -> PageLineage:
    data = function_data(known)
    details = {each["version"]: _details(each) for each in data["versions"]}
    facts = {"catalogue at": data["release"]} if "release" in data else {}
    if known.catalogue is not None and not known.code:
        facts["code"] = "not registered"
    return PageLineage(
        LineageKey(_CAPABILITY, known.name),
        known.lineage,
        FUNCTIONS,
        "function",
        publisher=PublisherKey("polyver.dev", "BlueprintFunction", "", known.name),
        anyone=known.dependent(Dependent()),
        text=details[data["default"]].text if data["default"] in details else "",
        facts=facts,
        details=details,
    )


def _details(version: dict[str, Any]) -> ReleaseDetails:
    rows = tuple(
        (
            each["name"],
            each["type"],
            "required" if each["required"] else _default(each),
            each.get("description", ""),
        )
        for each in version.get("arguments", ())
    )
    columns = ("argument", "type", "default", "description")
    marks: tuple[str, ...] = (
        () if version["registered"] or version["stage"] == "removed" else ("without code",)
    )
    if version.get("idempotent"):
        marks += ("idempotent",)
    table = PageTable("Arguments", columns, rows) if rows else None
    return ReleaseDetails(version.get("description", ""), marks, table)


def _default(argument: dict[str, Any]) -> str:
    return str(argument["default"]) or '""' if "default" in argument else "optional"
