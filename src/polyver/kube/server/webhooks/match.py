"""Matching of writes with the rules of a webhook, without the objects."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from polyver.kube.objects.kinds import ResourceKind

__all__ = ["RuleWithOperations"]


@dataclass(frozen=True, slots=True)
class RuleWithOperations:
    """One rule of a webhook; `*` matches everything.

    >>> rule = RuleWithOperations.read({"operations": ["*"], "apiGroups": [""],
    ...                                 "apiVersions": ["v1"], "resources": ["pods/*"]})
    >>> pods = ResourceKind("", "v1", "Pod", "pods", "pod", namespaced=True)
    >>> rule.matches(pods, "UPDATE", "status", namespaced=True)
    True
    """

    operations: frozenset[str]
    groups: frozenset[str]
    versions: frozenset[str]
    resources: tuple[tuple[str, str], ...]
    scope: str

    @classmethod
    def read(cls, rule: Mapping[str, Any]) -> RuleWithOperations:
        parts = (each.partition("/") for each in rule.get("resources") or ())
        return cls(
            operations=frozenset(rule.get("operations") or ()),
            groups=frozenset(rule.get("apiGroups") or ()),
            versions=frozenset(rule.get("apiVersions") or ()),
            resources=tuple((plural, part) for plural, _, part in parts),
            scope=rule.get("scope") or "*",
        )

    def matches(
        self, kind: ResourceKind, operation: str, subresource: str, *, namespaced: bool
    ) -> bool:
        """Report whether the rule matches a request for a kind."""
        return (
            self.scope in ("*", "Namespaced" if namespaced else "Cluster")
            and _has(self.operations, operation)
            and _has(self.groups, kind.group)
            and _has(self.versions, kind.version)
            and any(
                plural in ("*", kind.plural) and part in ("*", subresource)
                for plural, part in self.resources
            )
        )


def _has(wanted: frozenset[str], found: str) -> bool:
    return found in wanted or "*" in wanted
