"""The content of the page as plain data. HTML pages show this data, and `/api` returns it.

The function `resolve` decides which release a reference gets, as in `polyver why` and `polyver
impact`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from polyver.core import (
    UNSPECIFIED,
    Exact,
    NoMatch,
    Release,
    Resolution,
    Stage,
    resolve,
)
from polyver.web._paging import paged
from polyver.web.view_model import (
    NO_DETAILS,
    DependentKey,
    LineageKey,
    LineageRecord,
    LineageRequest,
    PageLineage,
    PageModel,
    PageRun,
    UnresolvedRequest,
)

__all__ = [
    "dependent_data",
    "dependents_data",
    "lineage_data",
    "overview_data",
    "run_data",
    "runs_data",
    "why_data",
]

Data = dict[str, Any]

LINEAGES = 200
"""The number of lineages on one page of the overview. It is higher than on other lists, because the
rows are shorter.
"""
RELEASES = 200
"""The maximum number of releases that are shown for a lineage: the highest ones.

Lower releases are shown too if a dependent uses them.
"""
_MOST_ATTENTION = 100


def overview_data(book: PageModel, *, text: str = "", capability: str = "", page: int = 1) -> Data:
    """Return one page of the list of lineages, and all concerns.

    `text` is a search text, and `capability` the name of a capability; both limit the list.
    """
    known = [each for each in book.lineages() if _fits(each, text, capability)]
    order = {name: number for number, name in enumerate(book.sections)}
    known.sort(key=lambda each: order.get(_shown(each).where.capability, len(order)))
    shown = paged(known, page, size=LINEAGES)
    told = [_summary(each) for each in shown.pop("items")]
    concerns = [concern for each in known for concern in _concerns(each)]
    if not capability:
        concerns += [_concern_of(each) for each in book.unanswered.values() if _speaks(each, text)]
    concerns.sort(key=_urgency)
    capabilities = sorted({each.shown.where.capability for each in book.lineages() if each.shown})
    return {
        "capabilities": capabilities,
        "descriptions": book.sections,
        "attention": concerns[:_MOST_ATTENTION],
        "attentionTotal": len(concerns),
        "dependents": len(book.dependents),
        **shown,
        "lineages": told,
    }


_LEVELS = ("error", "warning", "note")


def _urgency(concern: Data) -> tuple[int, int, str, str]:
    level, count = _LEVELS.index(concern["level"]), concern["dependents"]
    return level, -count, concern["path"], concern["fact"]


def _fits(known: LineageRecord, text: str, capability: str) -> bool:
    shown = _shown(known)
    if capability and shown.where.capability != capability:
        return False
    names = (shown.lineage.name, shown.where.path, shown.noun, *(r.name for r in shown.lineage))
    return not text or any(text.lower() in name.lower() for name in names)


def _speaks(each: UnresolvedRequest, text: str) -> bool:
    words = (each.dependent.name, each.requested, each.fact)
    return not text or any(text.lower() in word.lower() for word in words)


def _shown(known: LineageRecord) -> PageLineage:
    assert known.shown is not None
    return known.shown


# Lineages.


def lineage_data(
    book: PageModel, where: LineageKey, *, release: str = "", text: str = "", page: int = 1
) -> Data | None:
    """Return one lineage: its releases, the highest first, and one page of its dependents."""
    known = book.get(where)
    if known is None:
        return None
    shown, users = _shown(known), _users(known)
    releases = [
        _release(shown, each, users) | _held_by(book, shown, each)
        for each in _told_releases(shown, users)
    ]
    places = paged(_places(known, release, text), page)
    rows = [_row(known, known.asked[place]) for place in places.pop("items")]
    concerns = sorted(_concerns(known), key=_urgency)
    return _summary(known) | {
        "releases": releases,
        "releasesTotal": len(shown.lineage),
        "attention": concerns[:_MOST_ATTENTION],
        "attentionTotal": len(concerns),
        "uses": {"release": release, "text": text, **places, "items": rows},
    }


def _summary(known: LineageRecord) -> Data:
    shown, users = _shown(known), _users(known)
    found: Data = {**_where(shown.where), "name": shown.lineage.name, "noun": shown.noun}
    found |= {"scope": shown.scope, "text": shown.text, "facts": dict(shown.facts)}
    found |= {"problem": shown.problem} if shown.problem else {}
    try:
        usual = resolve(shown.lineage, UNSPECIFIED, shown.policy, shown.anyone)
        found["default"] = {"release": usual.release.name, "reason": usual.reason}
    except NoMatch as error:
        found["default"] = {"problem": error.fact}
    found["dependents"] = len(known.asked)
    found["unanswered"] = users.get("", 0)
    found["counted"] = shown.is_counted
    found["releases"] = [
        {"name": each.name, "stage": each.stage.value, "users": users.get(each.name, 0)}
        for each in _told_releases(shown, users)
    ]
    return found


def _told_releases(shown: PageLineage, users: dict[str, int]) -> Iterator[Release]:
    for number, each in enumerate(reversed(shown.lineage.releases)):
        if number < RELEASES or each.name in users:
            yield each


def _where(where: LineageKey) -> Data:
    return {"capability": where.capability, "path": where.path}


def _users(known: LineageRecord) -> dict[str, int]:
    """Count how many references get each release; the key "" counts unresolved references."""
    found: dict[str, int] = {}
    for answer in known.answers:
        name = answer.found.release.name if isinstance(answer.found, Resolution) else ""
        found[name] = found.get(name, 0) + len(answer.dependents)
    return found


def _release(shown: PageLineage, release: Release, users: dict[str, int]) -> Data:
    notes, details = release.notes, shown.details.get(release.name, NO_DETAILS)
    found: Data = {"name": release.name, "version": str(release.version)}
    found |= {"stage": release.stage.value, "users": users.get(release.name, 0)}
    told = {
        "digest": release.digest,
        "since": str(notes.since or ""),
        "removedIn": str(notes.removed_in or ""),
        "use": notes.use,
        "notice": notes.text,
        "gate": str(release.gate or ""),
        "text": details.text,
    }
    found |= {name: value for name, value in told.items() if value}
    found |= {"labels": dict(release.labels)} if release.labels else {}
    found |= {"marks": [*details.marks]} if details.marks else {}
    if details.table is not None:
        rows = [[*row] for row in details.table.rows]
        found["table"] = {"title": details.table.title, "columns": [*details.table.columns]}
        found["table"]["rows"] = rows
    return found


def _held_by(book: PageModel, shown: PageLineage, release: Release) -> Data:
    """Return the name of the rollout in the gate of a release, as the field `rollout`.

    Return {} if the release has no gate, or if there is no such rollout.
    """
    if release.gate is None or shown.publisher is None:
        return {}
    found = book.rollouts.of(shown.publisher)
    names = [each.name for each in found if each.name.split("/")[-1] == release.gate.rollout]
    return {"rollout": names[0]} if names else {}


def _places(known: LineageRecord, release: str, text: str) -> Sequence[DependentKey]:
    if not release and not text:
        return known.order
    if release:
        wanted = "" if release == NOTHING else release
        found = [
            DependentKey(dependent.name, dependent.at)
            for answer in known.answers
            if _named(answer.found) == wanted
            for dependent in answer.dependents
        ]
        found.sort()
    else:
        found = known.order
    lowered = text.lower()
    return [each for each in found if lowered in f"{each.name} {each.at}".lower()]


NOTHING = "-"
"""Stands for "no release" in URLs of the page."""


def _named(found: Resolution | NoMatch) -> str:
    return found.release.name if isinstance(found, Resolution) else ""


def _row(known: LineageRecord, asked: LineageRequest) -> Data:
    found, pin = known.found(asked), asked.dependent.pin
    told: Data = {"name": asked.dependent.name, "at": asked.dependent.at}
    told["requested"] = asked.requested
    told |= _answer(found)
    told |= {"since": asked.since} if asked.since else {}
    # The dependent uses the recorded release until it moves to the resolved one.
    told |= {"uses": pin.release} if pin is not None and pin.release != told["release"] else {}
    return told


def _answer(found: Resolution | NoMatch) -> Data:
    if isinstance(found, Resolution):
        told: Data = {"release": found.release.name, "stage": found.release.stage.value}
        return told | {"reason": found.reason, "warnings": [*found.warnings]}
    return {"release": "", "problem": found.fact, "hint": found.hint, "warnings": []}


def why_data(book: PageModel, where: LineageKey, place: DependentKey) -> Data | None:
    """Return why a reference gets its release, and why it gets none of the other releases.

    Return None if there is no such reference.
    """
    known = book.get(where)
    asked = known.asked.get(place) if known is not None else None
    if known is None or asked is None:
        return None
    found = known.found(asked)
    rejected = [
        {"release": each.release.name, "stage": each.release.stage.value, "why": each.why}
        for each in found.rejected[:RELEASES]
    ]
    about = {**_where(where), "lineage": _shown(known).lineage.name, "noun": _shown(known).noun}
    about |= {"labels": dict(asked.dependent.labels), "policy": asked.policy.name}
    return about | _row(known, asked) | {"rejected": rejected}


# Concerns.


def _concerns(known: LineageRecord) -> Iterator[Data]:
    """Yield what users should look at in a lineage.

    These are errors, unresolved references, and references that get a deprecated release.
    """
    shown = _shown(known)
    if shown.problem:
        yield _concern("error", shown, fact=shown.problem)
    for answer in known.answers:
        found, count = answer.found, len(answer.dependents)
        if isinstance(found, NoMatch):
            told = {"fact": found.fact, "hint": found.hint}
            yield _concern("error", shown, NOTHING, **told, count=count)
    for release in shown.lineage.releases:
        used = [each for each in known.answers if _named(each.found) == release.name]
        warnings = dict.fromkeys(w for each in used for w in _warnings(each.found))
        for warning in warnings:
            count = sum(len(a.dependents) for a in used if warning in _warnings(a.found))
            yield _concern("warning", shown, release.name, fact=warning, count=count)
        if release.stage is Stage.DEPRECATED and not warnings:
            for warning in _deprecation(shown, release):
                yield _concern("note", shown, release.name, fact=warning)


def _warnings(found: Resolution | NoMatch) -> tuple[str, ...]:
    return found.warnings if isinstance(found, Resolution) else ()


def _deprecation(shown: PageLineage, release: Release) -> tuple[str, ...]:
    try:
        found = resolve(shown.lineage, Exact(release.version), shown.policy)
    except NoMatch:
        return ()
    return found.warnings


def _concern(
    level: str, shown: PageLineage, release: str = "", *, fact: str, count: int = 0, hint: str = ""
) -> Data:
    about = {**_where(shown.where), "name": shown.lineage.name, "release": release}
    return {"level": level, **about, "fact": fact, "hint": hint, "dependents": count}


def _concern_of(each: UnresolvedRequest) -> Data:
    about = {"capability": "", "path": "", "name": each.dependent.name, "release": ""}
    return {"level": "error", **about, "fact": f"{each.dependent.name}: {each.fact}"} | {
        "hint": each.hint,
        "dependents": 1,
    }


# Dependents.


def dependents_data(book: PageModel, *, text: str = "", page: int = 1) -> Data:
    """Return one page of the list of dependents; a search text limits the list."""
    lowered = text.lower()
    names = sorted(each for each in book.dependents if lowered in each.lower())
    found = paged(names, page)
    items = [
        {"name": name, "places": len(book.places(name)), **_counted(book, name)}
        for name in found.pop("items")
    ]
    return {"text": text, **found, "items": items}


def _counted(book: PageModel, name: str) -> Data:
    rows = [_told(book, each) for each in book.places(name)]
    return {
        "warnings": sum(bool(each["warnings"]) for each in rows),
        "problems": sum("problem" in each for each in rows),
    }


def dependent_data(book: PageModel, name: str) -> Data | None:
    """Return all references of a dependent with their releases; None if it does not exist."""
    places = book.places(name)
    if not places:
        return None
    rows = [_told(book, each) for each in places]
    return {"name": name, "labels": dict(places[0].dependent.labels), "uses": rows}


def _told(book: PageModel, each: LineageRequest | UnresolvedRequest) -> Data:
    known = book.get(each.where) if isinstance(each, LineageRequest) else None
    if isinstance(each, UnresolvedRequest) or known is None:
        fact = each.fact if isinstance(each, UnresolvedRequest) else "its lineage does not exist"
        hint = each.hint if isinstance(each, UnresolvedRequest) else ""
        told: Data = {"name": each.dependent.name, "at": each.dependent.at}
        told |= {"requested": each.requested, "release": "", "warnings": []}
        return told | {"problem": fact, "hint": hint}
    return {**_where(each.where), "lineage": _shown(known).lineage.name} | _row(known, each)


# Runs.


def runs_data(book: PageModel, *, text: str = "", state: str = "", page: int = 1) -> Data:
    """Return one page of the list of runs, the newest first; a search text and a state limit it."""
    lowered = text.lower()
    found = [
        run
        for run in book.runs.values()
        if lowered in run.name.lower() and (not state or run.state == state)
    ]
    found.sort(key=lambda run: (run.created, run.name), reverse=True)
    states: dict[str, int] = {}
    for run in book.runs.values():
        states[run.state] = states.get(run.state, 0) + 1
    shown = paged(found, page)
    items = [run_data(run) for run in shown.pop("items")]
    return {"text": text, "state": state, "states": states, **shown, "items": items}


def run_data(run: PageRun) -> Data:
    """Return one run with all its steps."""
    told: Data = {"name": run.name, "state": run.state, "created": run.created}
    told |= {"warnings": [*run.warnings], "problem": run.problem}
    told["steps"] = [
        {
            "part": step.part,
            "name": step.name,
            **({**_where(step.where)} if step.where else {"capability": "", "path": ""}),
            "release": step.release,
            "state": step.state,
            "reason": step.reason,
        }
        for step in run.steps
    ]
    return told
