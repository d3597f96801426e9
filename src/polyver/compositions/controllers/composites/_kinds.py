"""Served kinds, found by the names that objects and references use."""

from __future__ import annotations

from polyver.client import Discovery
from polyver.kube.objects.kinds import ResourceKind

__all__ = ["Kinds"]


class Kinds:
    """Kinds as of the last discovery."""

    def __init__(self) -> None:
        self._kinds: dict[tuple[str, str], ResourceKind] = {}
        self._any: dict[tuple[str, str], ResourceKind] = {}
        self._discovery = Discovery()

    def discovered(self, discovery: Discovery) -> None:
        self._discovery = discovery
        self._kinds = {(each.api_version, each.kind): each for each in discovery.kinds}
        self._any = {(each.group, each.kind): each for each in reversed(discovery.kinds)}

    def find(self, api_version: str, kind: str) -> ResourceKind | None:
        return self._kinds.get((api_version, kind))

    def nearest(self, api_version: str, kind: str) -> ResourceKind | None:
        """Return the kind in this API version, or else in another served version of its group."""
        found = self._kinds.get((api_version, kind))
        return found or self._any.get((api_version.rpartition("/")[0], kind))

    def is_unknown(self, api_version: str) -> bool:
        """Report whether discovery of this API version failed, so that its kinds are unknown."""
        return api_version in self._discovery.failures
