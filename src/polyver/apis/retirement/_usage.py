"""The clients of a version, from the requests that polyver has counted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from polyver.core.plain import Object

__all__ = ["VersionClients", "clients_of"]

_OF_KUBERNETES: Final = frozenset(
    {
        "system:apiserver",
        "system:kube-controller-manager",
        "system:serviceaccount:kube-system:generic-garbage-collector",
        "system:serviceaccount:kube-system:namespace-controller",
        "system:serviceaccount:kube-system:resourcequota-controller",
    }
)
"""Users of Kubernetes itself that request each kind in its preferred version.

When this version is not served any more, they use another one.
"""


@dataclass(frozen=True, slots=True)
class VersionClients:
    """The clients that have used a version since a time."""

    since: str = ""
    """The time from which requests were counted; empty if they were not counted."""
    requests: int = 0
    """The number of counted requests for the version."""
    last: str = ""
    """The time of the last request."""
    clients: Sequence[Mapping[str, Any]] = ()
    """The counted clients: `user`, `userAgent`, `requests` and `lastRequest`, the newest first."""
    others: int = 0
    """The number of requests by clients that were not counted separately."""
    writes_only: bool = False
    """True if webhooks counted the requests: they see writes, but no other requests."""

    def recent(self, after: str) -> list[str]:
        """Return descriptions of the clients with a request after a time (RFC 3339, in UTC)."""
        found = [
            f"{_name_of(each)} (last request {each['lastRequest']})"
            for each in self.clients
            if each.get("lastRequest", "") > after and each.get("user") not in _OF_KUBERNETES
        ]
        if self.others and self.last > after:
            found.append(f"other clients ({self.others} requests, last request {self.last})")
        return found


def _name_of(client: Mapping[str, Any]) -> str:
    agent = client.get("userAgent")
    return f"{client['user']} with {agent}" if agent else str(client["user"])


def clients_of(usage: Object | None, version: str) -> VersionClients:
    """Return the clients of a version from a VersionUsage; None if requests are not counted."""
    status = (usage or {}).get("status") or {}
    since = str(status.get("since") or "")
    writes_only = status.get("source") == "Webhooks"
    for each in status.get("versions") or ():
        if each.get("version") == version:
            clients = sorted(
                each.get("clients") or (), key=lambda one: one.get("lastRequest", ""), reverse=True
            )
            return VersionClients(
                since,
                int(each.get("requests") or 0),
                str(each.get("lastRequest") or ""),
                clients,
                int(each.get("otherClients") or 0),
                writes_only,
            )
    return VersionClients(since, writes_only=writes_only)
