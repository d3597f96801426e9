"""Data for the web page: rollouts, their policies, and the freeze of all rollouts."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import zip_longest
from typing import Any, Final

from polyver.capability.gates import SYSTEM_NAMESPACE
from polyver.capability.rollouts import POLICIES
from polyver.client import Change, GroupVersionResource, Key
from polyver.core.plain import Object, ReadOnlyObject
from polyver.core.rollout import RolloutState
from polyver.kube.objects.conditions import find_condition
from polyver.rollouts.description import (
    check_rules,
    check_text,
    state_text,
    step_number,
    steps_of,
    steps_text,
    suggested_commands,
    target_text,
    window_text,
)
from polyver.rollouts.names import FREEZE, ROLLOUTS_ON, request_in
from polyver.rollouts.status import counts_in
from polyver.web.sources import (
    PageCheck,
    PageCommand,
    PageEvent,
    PageExample,
    PageGroup,
    PageInformers,
    PageModel,
    PagePreflight,
    PageRollout,
    PageRolloutPolicy,
    PageRolloutStep,
    PageSource,
    PublisherKey,
    WatchedCollection,
)

__all__ = ["RolloutsSource"]

_CONFIG_MAPS: Final = GroupVersionResource("", "v1", "configmaps")


class RolloutsSource(PageSource):
    """Page source of the capability rollouts."""

    capability = "rollouts"
    description = "new releases on their way to their users"

    def open(self, book: PageModel, following: PageInformers) -> None:
        self._shown = book.rollouts
        self._shown.is_enabled = True
        freeze = WatchedCollection(
            _CONFIG_MAPS,
            _freeze,
            self._observe_freeze,
            namespace=SYSTEM_NAMESPACE,
            fields=f"metadata.name={FREEZE}",
        )
        following.follow(self, WatchedCollection(ROLLOUTS_ON, _rollout, self._observe_rollout))
        following.follow(self, WatchedCollection(POLICIES, _policy, self._observe_policy))
        following.follow(self, freeze)

    async def _observe_rollout(self, change: Change[PageRollout]) -> None:
        self._shown.put(_name(change.key), change.after)

    async def _observe_policy(self, change: Change[PageRolloutPolicy]) -> None:
        self._shown.put_policy(_name(change.key), change.after)

    async def _observe_freeze(self, change: Change[str]) -> None:
        self._shown.set_freeze(change.after)


def _name(key: Key) -> str:
    return f"{key.namespace}/{key.name}"


def _freeze(obj: Object) -> str:
    return str((obj.get("data") or {}).get("reason") or "")


def _rollout(obj: Object) -> PageRollout:
    metadata, status = obj["metadata"], obj.get("status") or {}
    lineage, rules = request_in(obj).lineage, status.get("policy") or {}
    state = status.get("state")
    preflight = status.get("preflight")
    return PageRollout(
        f"{metadata['namespace']}/{metadata['name']}",
        PublisherKey(lineage.group, lineage.kind, lineage.namespace, lineage.name),
        obj["spec"]["to"],
        state_text(status),
        is_active=not state or not RolloutState(state).is_final,
        reason=status.get("reason") or "",
        step=step_number(status),
        steps=tuple(
            PageRolloutStep(each.adds, each.pause, each.state) for each in steps_of(status)
        ),
        counts=counts_in(status),
        facts=_facts(obj["spec"], rules),
        checks=_checks(status, rules),
        preflight=_preflight(preflight) if preflight is not None else None,
        history=tuple(map(_event, status.get("history") or ())),
        windows=tuple(map(window_text, rules.get("windows") or ())),
        commands=tuple(PageCommand(each.command, each.effect) for each in suggested_commands(obj)),
        created=metadata.get("creationTimestamp") or "",
    )


def _facts(spec: ReadOnlyObject, rules: ReadOnlyObject) -> Mapping[str, str]:
    reaction = rules.get("onFailure") or "Rollback"
    failure = "take the release back" if reaction == "Rollback" else "pause"
    policy = (spec.get("policyRef") or {}).get("name") or ""
    return {"policy": policy} | ({"after a failed check": failure} if rules else {})


def _checks(status: ReadOnlyObject, rules: ReadOnlyObject) -> tuple[PageCheck, ...]:
    if not rules:
        return ()
    written, results = check_rules(rules), status.get("checks") or ()
    nothing: ReadOnlyObject = {}
    return tuple(
        PageCheck(
            result.get("name") or next(iter(rule), ""),
            check_text(rule),
            result.get("result") or "",
            result.get("message") or "",
        )
        for rule, result in zip_longest(written, results, fillvalue=nothing)
    )


def _preflight(found: ReadOnlyObject) -> PagePreflight:
    unchanged, changed, loses, fails = (
        found.get(name, 0) for name in ("unchanged", "changed", "loses", "fails")
    )
    groups = tuple(_group(each, "change") for each in found.get("groups") or ())
    failures = tuple(_group(each, "message") for each in found.get("failures") or ())
    return PagePreflight(unchanged, changed, loses, fails, groups, failures)


def _group(each: Mapping[str, Any], text: str) -> PageGroup:
    found = each.get("example")
    example = PageExample(found["dependent"], found["object"], found["diff"]) if found else None
    return PageGroup(each[text], each["dependents"], tuple(each.get("names") or ()), example)


def _event(entry: Mapping[str, Any]) -> PageEvent:
    return PageEvent(entry["time"], entry["state"], entry["step"], entry.get("message") or "")


def _policy(obj: Object) -> PageRolloutPolicy:
    metadata, spec = obj["metadata"], obj["spec"]
    ready = find_condition(obj, "Ready") or {}
    return PageRolloutPolicy(
        f"{metadata['namespace']}/{metadata['name']}",
        ready.get("status") or "",
        ready.get("message") or "",
        tuple(map(target_text, spec.get("targets") or ())),
        (obj.get("status") or {}).get("targets") or 0,
        steps_text(spec.get("steps") or ()),
    )
