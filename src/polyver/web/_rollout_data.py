"""The rollouts on the page as plain data. HTML pages show this data, and `/api` returns it."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from polyver.web._paging import paged
from polyver.web._rollout_model import PageGroup, PagePreflight, PageRollout, PageRolloutPolicy
from polyver.web.view_model import PageModel

__all__ = ["rollout_data", "rollouts_data"]

Data = dict[str, Any]
ACTIVE = "active"
"""The filter for all rollouts that have not ended."""


def rollouts_data(book: PageModel, *, text: str = "", state: str = "", page: int = 1) -> Data:
    """Return one page of rollouts, active ones first, then the newest; and all policies."""
    known, lowered = book.rollouts, text.lower()
    found = [
        each
        for each in known.rollouts.values()
        if lowered in f"{each.name} {each.publisher.name} {each.to}".lower()
        if state in ("", each.state) or (state == ACTIVE and each.is_active)
    ]
    found.sort(key=lambda each: (each.is_active, each.created, each.name), reverse=True)
    shown = paged(found, page)
    return {
        "text": text,
        "state": state,
        "states": _states(book),
        "freeze": known.freeze,
        "policies": [_policy(each) for _, each in sorted(known.policies.items())],
        **shown,
        "items": [_summary(book, each) for each in shown["items"]],
    }


def _states(book: PageModel) -> dict[str, int]:
    """Count the rollouts by state; `active` counts those that have not ended."""
    found: dict[str, int] = {}
    for each in book.rollouts.rollouts.values():
        for name in (each.state, *((ACTIVE,) if each.is_active else ())):
            found[name] = found.get(name, 0) + 1
    return found


def rollout_data(book: PageModel, rollout: PageRollout) -> Data:
    """Return one rollout with all that is known about it."""
    return {
        **_summary(book, rollout),
        "freeze": book.rollouts.freeze if rollout.is_active else None,
        "facts": dict(rollout.facts),
        "steps": [each._asdict() for each in rollout.steps],
        "checks": [each._asdict() for each in rollout.checks],
        "preflight": _preflight(rollout.preflight) if rollout.preflight else None,
        "windows": [*rollout.windows],
        "history": [each._asdict() for each in rollout.history],
        "commands": [each._asdict() for each in rollout.commands],
    }


def _summary(book: PageModel, rollout: PageRollout) -> Data:
    where = book.published_by(rollout.publisher)
    return {
        "name": rollout.name,
        "target": rollout.publisher._asdict(),
        "lineage": {"capability": where.capability, "path": where.path} if where else None,
        "to": rollout.to,
        "state": rollout.state,
        "active": rollout.is_active,
        "reason": rollout.reason,
        "step": rollout.step,
        "stepsTotal": len(rollout.steps),
        "counts": asdict(rollout.counts),
        "created": rollout.created,
    }


def _preflight(found: PagePreflight) -> Data:
    told = found._asdict()
    return told | {name: [*map(_group, told[name])] for name in ("groups", "failures")}


def _group(group: PageGroup) -> Data:
    example = group.example._asdict() if group.example else None
    return {**group._asdict(), "names": [*group.names], "example": example}


def _policy(policy: PageRolloutPolicy) -> Data:
    return {
        "name": policy.name,
        "ready": policy.ready,
        "message": policy.message,
        "targets": [*policy.targets],
        "lineages": policy.lineages,
        "steps": policy.steps,
    }
