"""Webhooks as their configurations say, in the order in which they are asked.

What was read is kept until a configuration changes, so that a write for which none is there pays
nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import msgspec

from polyver.kube.server.webhooks.match import RuleWithOperations
from polyver.kube.store import Compacted, Lagging, Store, StoreEntry, StoreWatch
from polyver.languages import cel

__all__ = ["AdmissionWebhook", "Configurations", "RequestCondition"]

GROUP = "admissionregistration.k8s.io"
MUTATING, VALIDATING = "mutatingwebhookconfigurations", "validatingwebhookconfigurations"
_PREFIX = f"/{GROUP}/"
_decode = msgspec.json.Decoder(dict[str, Any]).decode


class RequestCondition(Protocol):
    """A condition on requests."""

    def holds(self, facts: cel.ConditionVariables) -> bool: ...


@dataclass(frozen=True, slots=True)
class AdmissionWebhook:
    """One webhook, ready to be matched and asked."""

    name: str
    rules: tuple[RuleWithOperations, ...]
    exact: bool
    """Whether only requests in the very versions of the rules match."""
    namespaces: Mapping[str, Any]
    objects: Mapping[str, Any]
    conditions: tuple[RequestCondition, ...]
    ignored: bool
    """Whether a call that fails counts as none."""
    timeout: int
    again: bool
    """Whether it is asked again when a later one changed the object."""
    side_effects: str
    versions: tuple[str, ...]
    """The versions of reviews that it understands, the best first."""
    client: Mapping[str, Any]

    @classmethod
    def read(cls, hook: Mapping[str, Any]) -> AdmissionWebhook:
        """What a stored configuration, which was checked and defaulted, says of a webhook."""
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
    """A condition that was stored before conditions were checked."""

    text: str

    def holds(self, facts: cel.ConditionVariables) -> bool:
        del facts
        raise cel.ConditionFailed(self.text)


def _compiled(text: str) -> RequestCondition:
    try:
        return cel.MatchCondition.compile(text)
    except cel.Uncompilable as error:
        return _Broken(f"expression '{text}' resulted in error: {error}")


class Configurations:
    """Every webhook that is configured now."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._watch: StoreWatch | None = None
        self._read: dict[str, tuple[int, tuple[AdmissionWebhook, ...]]] = {}
        self._hooks: dict[str, Sequence[AdmissionWebhook]] = {}
        self.found = False
        """Whether there is any webhook at all."""

    @property
    def stale(self) -> bool:
        """Whether something was written since it was read."""
        return self._watch is None or self._watch.waiting

    def of(self, plural: str) -> Sequence[AdmissionWebhook]:
        """The webhooks of one kind of configuration, in order."""
        return self._hooks.get(plural, ())

    async def refresh(self) -> None:
        """Read again what has changed."""
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
        # Keys come in order, so configurations are asked in the order of their names.
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
        """Follow no longer."""
        if self._watch is not None:
            self._watch.close()
            self._watch = None
