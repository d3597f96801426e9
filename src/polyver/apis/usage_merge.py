"""Merge counts of requests into the status of a VersionUsage, within its limits.

Several replicas write to the same VersionUsage. Each of them adds its own counts to the counts that
it reads, so the order of the writes does not matter.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from polyver.core.plain import Object

__all__ = ["MOST_CLIENTS", "MOST_ENTRIES", "merge_versions"]

MOST_CLIENTS = 32
"""The maximum number of clients per version."""
MOST_ENTRIES = 8
"""The maximum number of clients with the same user."""
Client = tuple[str, str]
"""The user and the user agent of a client. The user agent is "" if it is not known."""


@dataclass(slots=True)
class _Count:
    requests: int = 0
    last: str = ""

    def add(self, requests: int, last: str) -> None:
        self.requests += requests
        self.last = max(self.last, last)


@dataclass(slots=True)
class _Version:
    whole: _Count = field(default_factory=_Count)
    conversions: _Count = field(default_factory=_Count)
    clients: dict[Client, _Count] = field(default_factory=dict)
    others: int = 0

    @property
    def is_counted(self) -> bool:
        return bool(self.whole.requests or self.conversions.requests)


def merge_versions(
    before: Iterable[Mapping[str, Any]],
    added: Iterable[Mapping[str, Any]],
    *,
    known: Sequence[str],
    oldest: str,
) -> list[Object]:
    """Add the counts of two lists in the form of `status.versions`.

    The result has only versions in `known`, in this order. It does not have clients whose last
    request was before the time `oldest`. Times are strings such as 2026-01-31T12:00:00Z.

    >>> counted = {"version": "v1", "requests": 1, "lastRequest": "2026-01-31T12:00:00Z"}
    >>> merge_versions([counted], [counted], known=["v1"], oldest="")[0]["requests"]
    2
    """
    found: dict[str, _Version] = {}
    for each in (*before, *added):
        _add(found.setdefault(each["version"], _Version()), each)
    counted = {name: each for name, each in found.items() if each.is_counted}
    return [_written(name, _limited(counted[name], oldest)) for name in known if name in counted]


def _add(version: _Version, counted: Mapping[str, Any]) -> None:
    version.whole.add(counted["requests"], counted.get("lastRequest") or "")
    conversions = counted.get("conversions") or 0, counted.get("lastConversion") or ""
    version.conversions.add(*conversions)
    version.others += counted.get("otherClients") or 0
    for each in counted.get("clients") or ():
        client = version.clients.setdefault((each["user"], each.get("userAgent") or ""), _Count())
        client.add(each["requests"], each["lastRequest"])


def _limited(version: _Version, oldest: str) -> _Version:
    """Remove clients that sent no request for long, and merge clients until few are left.

    The user with the most entries loses one first. So a client that sends many user agents
    takes no place from other users.
    """
    clients = version.clients
    for client in [key for key, count in clients.items() if count.last < oldest]:
        del clients[client]
    entries = Counter(user for user, _ in clients)
    while True:
        user, most = max(entries.items(), key=lambda each: (each[1], each[0]), default=("", 0))
        if most <= MOST_ENTRIES and len(clients) <= MOST_CLIENTS:
            return version
        if most > 1:
            client = min((key for key in clients if key[0] == user and key[1]), key=_age(clients))
            gone = clients.pop(client)
            entries[user] -= (user, "") in clients
            clients.setdefault((user, ""), _Count()).add(gone.requests, gone.last)
        else:
            client = min(clients, key=_age(clients))
            version.others += clients.pop(client).requests
            del entries[client[0]]


def _age(clients: Mapping[Client, _Count]) -> Any:
    """Return a sort key for clients: the time of the last request, then the name."""
    return lambda client: (clients[client].last, client)


def _written(name: str, version: _Version) -> Object:
    found: Object = {"version": name, "requests": version.whole.requests}
    if version.whole.last:
        found["lastRequest"] = version.whole.last
    if version.clients:
        newest = sorted(version.clients, key=_age(version.clients), reverse=True)
        found["clients"] = [_client(each, version.clients[each]) for each in newest]
    if version.others:
        found["otherClients"] = version.others
    if version.conversions.requests:
        found["conversions"] = version.conversions.requests
        found["lastConversion"] = version.conversions.last
    return found


def _client(client: Client, count: _Count) -> Object:
    user, agent = client
    named = {"user": user} | ({"userAgent": agent} if agent else {})
    return named | {"requests": count.requests, "lastRequest": count.last}
