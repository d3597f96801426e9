"""Notifications about a rollout: which events to send, and the JSON documents to send.

A notification is stored in the status together with the state that it reports. It is removed from
the status after it was sent. So each notification is sent at least once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from polyver.core.plain import Object, ReadOnlyObject
from polyver.core.rollout import RolloutProgress, RolloutState

__all__ = ["events_between", "notice_document", "notice_id", "notice_url", "pending_notices"]

_MOST: Final = 100
"""The maximum number of unsent notifications of a rollout; the oldest ones above it are dropped."""
_REPORTED: Final = (
    RolloutState.PAUSED,
    RolloutState.HELD,
    RolloutState.COMPLETED,
    RolloutState.ROLLED_BACK,
    RolloutState.ABORTED,
    RolloutState.SUPERSEDED,
)


def events_between(before: RolloutProgress, after: RolloutProgress) -> list[str]:
    """Return the names of the events between the progress before and after a decision.

    >>> events_between(RolloutProgress(), RolloutProgress(RolloutState.PROGRESSING, 1))
    ['Started']
    >>> paused = RolloutProgress(RolloutState.PAUSED, 1)
    >>> events_between(paused, paused)
    []
    """
    found = ["Started"] if after.step and not before.step else []
    is_new = (before.state, before.step) != (after.state, after.step)
    has_failed = bool(after.failure) and not before.failure
    if after.state in _REPORTED and (is_new or has_failed):
        found.append(after.state.value)
    return found


def pending_notices(
    status: ReadOnlyObject,
    before: RolloutProgress,
    after: RolloutProgress,
    rules: ReadOnlyObject,
    *,
    time: str,
) -> list[Object]:
    """Return all notifications to send: the unsent ones in the status, and those for new events.

    `time` is the time of the decision. It has fractions of a second, because it is a part of the
    identifier of a notification.
    """
    receivers: Sequence[Mapping[str, Any]] = rules.get("notify") or ()
    new = [
        {"event": event, "notify": number, "step": after.step, "time": time}
        | ({"message": after.reason} if after.reason else {})
        for event in events_between(before, after)
        for number, each in enumerate(receivers)
        if event in (each.get("on") or (event,))
    ]
    return [*map(dict, status.get("notifications") or ()), *new][-_MOST:]


def notice_id(obj: ReadOnlyObject, notice: ReadOnlyObject) -> str:
    """Return an identifier that is different for each notification."""
    names = ("notify", "event", "step", "time")
    return "/".join([obj["metadata"]["uid"], *(str(notice[name]) for name in names)])


def notice_url(obj: ReadOnlyObject, notice: ReadOnlyObject) -> str:
    """Return the URL for a notification; empty if the rules of the rollout have no such entry."""
    receivers = (obj["status"].get("policy") or {}).get("notify") or ()
    number = notice["notify"]
    return str(receivers[number]["url"]) if 0 <= number < len(receivers) else ""


def notice_document(obj: ReadOnlyObject, notice: ReadOnlyObject) -> Object:
    """Return the JSON document to send for a notification."""
    metadata, spec = obj["metadata"], obj["spec"]
    name, message = f"{metadata['namespace']}/{metadata['name']}", notice.get("message") or ""
    return {
        "id": notice_id(obj, notice),
        "text": f"Rollout {name}: {notice['event']}" + (f": {message}" if message else ""),
        "event": notice["event"],
        "time": notice["time"],
        "namespace": metadata["namespace"],
        "rollout": metadata["name"],
        "target": dict(spec["target"]),
        "to": spec["to"],
        "step": notice["step"],
        "steps": len((obj["status"].get("policy") or {}).get("steps") or ()),
        "message": message,
    }
