"""The configured admission webhooks with their rules, in the order in which they are called.

The webhooks are kept in memory until a configuration changes. So a write does not become slower if
no webhook is configured.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import msgspec

from polyver.kube.objects.kinds import ResourceKind
from polyver.kube.store import Compacted, Lagging, Store, StoreEntry, StoreWatch
from polyver.languages import cel

__all__ = ["AdmissionWebhook", "Configurations", "RequestCondition", "RuleWithOperations"]


@dataclass(frozen=True, slots=True)
class RuleWithOperations:
    """One rule of a webhook: for which operations and resources it is called; `*` matches all.

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
        """Report whether the rule covers a request with this kind, operation and subresource."""
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


GROUP = "admissionregistration.k8s.io"
MUTATING, VALIDATING = "mutatingwebhookconfigurations", "validatingwebhookconfigurations"
_PREFIX = f"/{GROUP}/"
_decode = msgspec.json.Decoder(dict[str, Any]).decode


class RequestCondition(Protocol):
    """A match condition: the webhook is called only for requests that fulfil the condition."""

    def holds(self, variables: cel.ConditionVariables) -> bool: ...


@dataclass(frozen=True, slots=True)
class AdmissionWebhook:
    """One webhook of a stored configuration; its rules and conditions are already compiled."""

    name: str
    rules: tuple[RuleWithOperations, ...]
    exact: bool
    """True for the match policy Exact.

    The webhook is then called only for requests in the versions that its rules name.
    """
    namespaces: Mapping[str, Any]
    objects: Mapping[str, Any]
    conditions: tuple[RequestCondition, ...]
    ignored: bool
    """True for the failure policy Ignore: if the call of the webhook fails, the write continues."""
    timeout: int
    again: bool
    """True if the webhook is called again when a later webhook has changed the object."""
    side_effects: str
    versions: tuple[str, ...]
    """The review versions that the webhook accepts, the preferred version first."""
    client: Mapping[str, Any]

    @classmethod
    def read(cls, hook: Mapping[str, Any]) -> AdmissionWebhook:
        """Build an AdmissionWebhook from a webhook in a configuration.

        The configuration is stored, so it is valid and has its defaults.
        """
        conditions = hook.get("matchConditions") or ()
        return cls(
            name=hook["name"],
            rules=tuple(RuleWithOperations.read(rule) for rule in hook.get("rules") or ()),
            exact=hook.get("matchPolicy") == "Exact",
            namespaces=hook.get("namespaceSelector") or {},
            objects=hook.get("objectSelector") or {},
            conditions=tuple(_compiled(each["expression"]) for each in conditions),
            ignored=hook.get("failurePolicy") == "Ignore",
            timeout=hook.get("timeoutSeconds") or 10,
            again=hook.get("reinvocationPolicy") == "IfNeeded",
            side_effects=hook.get("sideEffects") or "",
            versions=tuple(hook.get("admissionReviewVersions") or ()),
            client=hook.get("clientConfig") or {},
        )


@dataclass(frozen=True, slots=True)
class _Broken:
    """A match condition that is stored but cannot be compiled.

    An older version of polyver may have accepted it.
    """

    text: str

    def holds(self, variables: cel.ConditionVariables) -> bool:
        del variables
        raise cel.ConditionFailed(self.text)


def _compiled(text: str) -> RequestCondition:
    try:
        return cel.MatchCondition.compile(text)
    except cel.Uncompilable as error:
        return _Broken(f"expression '{text}' resulted in error: {error}")


class Configurations:
    """The webhooks of all configurations. They are read again after a configuration has changed."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._watch: StoreWatch | None = None
        self._read: dict[str, tuple[int, tuple[AdmissionWebhook, ...]]] = {}
        self._hooks: dict[str, Sequence[AdmissionWebhook]] = {}
        self.found = False
        """True if at least one webhook is configured."""

    @property
    def stale(self) -> bool:
        """True if a configuration was written after `refresh` read the configurations."""
        return self._watch is None or self._watch.waiting

    def of(self, plural: str) -> Sequence[AdmissionWebhook]:
        """Return the mutating or the validating webhooks, in the order in which they are called."""
        return self._hooks.get(plural, ())

    async def refresh(self) -> None:
        """Read all configurations; unchanged configurations are not decoded again."""
        try:
            if self._watch is not None:
                await self._watch.batch(0)
        except (Lagging, Compacted):
            self._watch = None
        page = self._store.page(_PREFIX)
        if self._watch is None:
            self._watch = self._store.watch(_PREFIX, page.revision)
        self._read = {entry.key: self._hooks_of(entry) for entry in page.entries}
        self._hooks = {plural: self._all_of(plural) for plural in (MUTATING, VALIDATING)}
        self.found = any(self._hooks.values())

    def _all_of(self, plural: str) -> Sequence[AdmissionWebhook]:
        # Store keys are sorted, so webhooks are called in the order of their configurations' names.
        named = f"{_PREFIX}{plural}/"
        return [
            hook for key, (_, all_) in self._read.items() if key.startswith(named) for hook in all_
        ]

    def _hooks_of(self, entry: StoreEntry) -> tuple[int, tuple[AdmissionWebhook, ...]]:
        known = self._read.get(entry.key)
        if known is not None and known[0] == entry.revision:
            return known
        content = _decode(entry.value)
        return entry.revision, tuple(
            AdmissionWebhook.read(each) for each in content.get("webhooks") or ()
        )

    def close(self) -> None:
        """Stop the watch of the configurations."""
        if self._watch is not None:
            self._watch.close()
            self._watch = None
