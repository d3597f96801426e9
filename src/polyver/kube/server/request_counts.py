"""Counts of requests by resource, API version, user and user agent.

Users and user agents come from clients, so the counts have limits. A client that sends another user
agent with each request cannot fill the memory, and does not hide the other users.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from dataclasses import dataclass, field

__all__ = ["MOST_AGENTS", "ClientCounts", "RequestCounts", "VersionCounts"]

MOST_AGENTS = 8
"""The maximum number of user agents per user. The requests with other user agents are counted for
the user alone.
"""
_MOST_CLIENTS = 128
"""The maximum number of clients per version."""
_LONGEST_USER = 256
_LONGEST_AGENT = 160
_UNPRINTABLE = re.compile(r"[^ -~]")


@dataclass(slots=True)
class ClientCounts:
    """The number of requests of a client, and the time of the last one in seconds since 1970."""

    requests: int = 0
    last: float = 0.0


@dataclass(slots=True)
class VersionCounts:
    """The requests in one version of a resource."""

    others: ClientCounts = field(default_factory=ClientCounts)
    """The requests of clients that are not in `clients`."""
    clients: dict[tuple[str, str], ClientCounts] = field(default_factory=dict)
    """The requests of each client, by user and user agent.

    A user agent is empty if it is not known, or if the user has more than `MOST_AGENTS`.
    """
    conversions: ClientCounts = field(default_factory=ClientCounts)
    """The objects that were converted to this version for another API server."""
    agents: dict[str, int] = field(default_factory=dict)
    """The number of known user agents of each user."""

    def client(self, user: str, agent: str) -> ClientCounts:
        """Return the counts for a client; `others` if there are too many clients."""
        user, agent = _clean(user, _LONGEST_USER), _clean(agent, _LONGEST_AGENT)
        if agent and (user, agent) not in self.clients and self.agents.get(user, 0) >= MOST_AGENTS:
            agent = ""
        found = self.clients.get((user, agent))
        if found is not None:
            return found
        if len(self.clients) >= _MOST_CLIENTS:
            return self.others
        if agent:
            self.agents[user] = self.agents.get(user, 0) + 1
        found = self.clients[user, agent] = ClientCounts()
        return found


def _clean(text: str, longest: int) -> str:
    """Limit a string that a client chose, and replace characters that terminals may interpret."""
    return _UNPRINTABLE.sub("?", text[:longest])


class RequestCounts:
    """The requests in each version of each resource since the counts were last taken."""

    def __init__(self, now: Callable[[], float] = time.time) -> None:
        self._now = now
        self._versions: dict[tuple[str, str], VersionCounts] = {}

    def count(self, resource: str, version: str, user: str, agent: str = "") -> None:
        """Count a request. `resource` is the plural with the group, such as `widgets.ex.io`."""
        found = self._versions.get((resource, version)) or self._version(resource, version)
        client = found.clients.get((user, agent)) or found.client(user, agent)
        client.requests += 1
        client.last = self._now()

    def converted(self, resource: str, version: str, objects: int) -> None:
        """Count objects that were converted to a version for another API server."""
        counts = self._versions.get((resource, version)) or self._version(resource, version)
        found = counts.conversions
        found.requests += objects
        found.last = self._now()

    def take(self) -> dict[str, dict[str, VersionCounts]]:
        """Return the counts by resource and version, and begin again with no counts."""
        taken, self._versions = self._versions, {}
        found: dict[str, dict[str, VersionCounts]] = {}
        for (resource, version), counts in taken.items():
            found.setdefault(resource, {})[version] = counts
        return found

    def _version(self, resource: str, version: str) -> VersionCounts:
        return self._versions.setdefault((resource, version), VersionCounts())
