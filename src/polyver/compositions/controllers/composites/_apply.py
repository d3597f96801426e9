"""Applies the outcome of a pipeline to the cluster.

The module deletes resources that are no longer desired, applies desired resources, and publishes
connection details to a Secret that the composite resource controls. A resource whose applied fields
have not changed on the API server is not applied again.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from polyver.capability import Refusal
from polyver.client import Backoff, Client, Clock, GroupVersionResource, find
from polyver.client.field_managers import manager_for
from polyver.compositions.controllers.composites._known_composites import CompositeKey
from polyver.compositions.controllers.composites._observed_state import (
    SECRETS,
    ComposedOutputs,
    Kinds,
)
from polyver.compositions.decisions import Secret
from polyver.compositions.names import CONNECTION
from polyver.compositions.pipeline import ComposedResource, RemovedResource, reference_to, shown
from polyver.controllers.owned_objects.index import number_of
from polyver.controllers.owned_objects.inventory import AppliedObject, fields_of, part_of
from polyver.controllers.owned_objects.ownership import (
    AlreadyOwned,
    apply_owned,
    delete_owned,
    stranger_in,
)
from polyver.controllers.owned_objects.revert_backoff import RevertBackoff
from polyver.core.plain import Object
from polyver.kube.objects import digest
from polyver.kube.objects.kinds import ResourceKind
from polyver.kube.objects.owners import controller_of, controlling
from polyver.kube.objects.status import ApiError

__all__ = [
    "MANAGER",
    "CompositeApplier",
    "CompositeApplyProblem",
    "CompositeApplyResult",
    "publish",
]

MANAGER: Final = "polyver-composites"
"""Field manager of the fields that polyver sets on composite resources. It is also the prefix of
the field managers for composed resources. Each composite resource has its own field manager for its
composed resources.
"""


def manager_of(composite: Object) -> str:
    """Return the field manager under which a composite resource applies its composed resources."""
    return manager_for(MANAGER, composite["kind"], composite["metadata"]["uid"])


@dataclass(frozen=True, slots=True)
class CompositeApplyProblem:
    """The reason why a composed resource could not be applied or removed."""

    name: str
    """The name of the composed resource in the pipeline."""
    reason: str
    message: str
    unserved: bool = False
    """True if the API server does not serve the kind of the composed resource at the moment."""
    taken: bool = False
    """True if the object belongs to another owner."""

    def __str__(self) -> str:
        return f"{self.name} ({self.message})"


@dataclass(slots=True)
class CompositeApplyResult:
    """The result of applying or removing the composed resources of one composite resource."""

    problems: list[CompositeApplyProblem] = field(default_factory=list)
    kept: list[dict[str, str]] = field(default_factory=list)
    """References to objects that could not be removed."""
    changed: bool = False
    """True if composed resources have changed, so that the pipeline must run again."""
    later: float = 0.0
    """Seconds until this controller reverts the changes that other clients made to composed
    resources. 0 if there are no such changes.
    """


class _Last(NamedTuple):
    """Record of the last apply of a composed resource.

    `wanted` is the digest of the desired object. `fields` is a digest of the names of the fields
    that were applied.
    """

    wanted: str
    uid: str
    fields: str


class CompositeApplier:
    """Applies and deletes composed resources; `outputs` caches the resulting objects."""

    def __init__(
        self, client: Client, kinds: Kinds, outputs: ComposedOutputs, clock: Clock
    ) -> None:
        self._client = client
        self._kinds = kinds
        self._outputs = outputs
        self._last: dict[CompositeKey, dict[AppliedObject, _Last]] = {}
        self._patience = RevertBackoff[AppliedObject](
            clock, Backoff(first=1.0, most=300.0), quiet=600.0
        )
        self.count = 0
        """Number of objects applied so far."""

    def forget(self, key: CompositeKey) -> None:
        self._last.pop(key, None)
        self._outputs.forget(key)

    async def remove(
        self, composite: Object, removed: Iterable[RemovedResource]
    ) -> CompositeApplyResult:
        """Delete the given resources.

        Resources that the composite resource does not control are kept.
        """
        found, owner = CompositeApplyResult(), composite["metadata"]["uid"]
        for each in removed:
            if controller_of(each.obj) != owner:
                continue
            try:
                await self._delete(dict(each.obj), owner)
            except ApiError as error:
                found.kept.append(reference_to(each.obj))
                found.problems.append(_refused(each.name, each.obj, error))
        return found

    async def _delete(self, obj: Object, owner: str) -> None:
        metadata = obj["metadata"]
        kind = self._kinds.nearest(obj["apiVersion"], obj["kind"])
        if kind is None or "deletionTimestamp" in metadata:
            return  # the kind is no longer served, or the object is being deleted already
        namespace = metadata.get("namespace", "")
        # Remove the object from the index first, so that its deletion triggers no reconcile.
        self._outputs.note(AppliedObject(kind.group, kind.kind, namespace, metadata["name"]), None)
        await delete_owned(self._client, GroupVersionResource.of(kind), obj, owner)

    async def apply(
        self,
        key: CompositeKey,
        composite: Object,
        composed: Sequence[ComposedResource],
        there: Mapping[AppliedObject, Object],
    ) -> CompositeApplyResult:
        """Apply all composed resources.

        If the API server refuses a resource, apply the others nevertheless.

        `there` contains the objects that exist already.
        """
        manager = manager_of(composite)
        self._outputs.use({part_of(each.obj)[:2] for each in composed})
        found, before = CompositeApplyResult(), self._last.get(key, {})
        after = self._last[key] = {}
        for each in composed:
            kind = self._kinds.find(each.obj["apiVersion"], each.obj["kind"])
            problem = _unfit(each, kind)
            if kind is None or problem is not None:
                found.problems += [problem] if problem is not None else []
                continue
            part = part_of(each.obj)
            try:
                last = await self._one(
                    each, kind, there.get(part), before.get(part), found, manager=manager
                )
            except AlreadyOwned as taken:
                self._outputs.await_release(part, key)
                fact = f"{shown(each.obj)}: {taken}"
                found.problems.append(CompositeApplyProblem(each.name, "Taken", fact, taken=True))
                continue
            except ApiError as error:
                found.problems.append(_refused(each.name, each.obj, error))
                continue
            if last is not None:
                after[part] = last
        return found

    async def _one(
        self,
        each: ComposedResource,
        kind: ResourceKind,
        there: Object | None,
        last: _Last | None,
        found: CompositeApplyResult,
        *,
        manager: str,
    ) -> _Last | None:
        part, wanted = part_of(each.obj), digest(each.obj)
        if there is not None and last is not None and last.wanted == wanted:
            if last == _last(wanted, there, manager):
                return last
            if left := self._patience.left(part):
                found.later = min(left, found.later or left)
                return last
            self._patience.spend(part)
        resource, owner = GroupVersionResource.of(kind), controller_of(each.obj)
        seen = self._outputs.of(part)
        if seen is not None and seen.owner not in ("", owner):
            # A watch has reported that another controller owns the object. If this is still true,
            # the apply fails.
            now = await find(self._client, resource, part.name, part.namespace)
            if now is not None and (stranger := stranger_in(now, owner)):
                raise AlreadyOwned(stranger)
        with self._outputs.expected(part):
            made = await apply_owned(
                self._client, resource, each.obj, family=MANAGER, manager=manager
            )
            self._outputs.keep(part, made)
        self.count += 1
        found.changed |= there is None or number_of(there) != number_of(made)
        return _last(wanted, made, manager)


def _last(wanted: str, obj: Object, manager: str) -> _Last:
    return _Last(wanted, obj["metadata"].get("uid", ""), fields_of(obj, manager))


def _unfit(composed: ComposedResource, kind: ResourceKind | None) -> CompositeApplyProblem | None:
    """Return the problem with the kind or the namespace of a composed resource.

    Return None if there is no problem.
    """
    obj = composed.obj
    if kind is None:
        fact = f"no {obj['apiVersion']} {obj['kind']} is served"
        return CompositeApplyProblem(composed.name, "KindNotServed", fact, unserved=True)
    namespace = obj["metadata"].get("namespace")
    if kind.namespaced and not namespace:
        return CompositeApplyProblem(
            composed.name, "InvalidDesired", f"{obj['kind']} has no namespace"
        )
    if not kind.namespaced and namespace:
        fact = f"{obj['kind']} is not namespaced, so it cannot be in {namespace}"
        return CompositeApplyProblem(composed.name, "InvalidDesired", fact)
    return None


def _refused(name: str, obj: Mapping[str, Any], error: ApiError) -> CompositeApplyProblem:
    return CompositeApplyProblem(name, error.reason or "Refused", f"{shown(obj)}: {error.message}")


async def publish(
    client: Client, composite: Object, secret: Secret, details: Mapping[str, bytes]
) -> bool:
    """Write connection details to a Secret. Return True if the Secret changed.

    Raise Refusal if the Secret has another owner.
    """
    data = {name: base64.b64encode(each).decode() for name, each in sorted(details.items())}
    there = await find(client, SECRETS, secret.name, secret.namespace)
    if there is not None:
        if controller_of(there) != composite["metadata"]["uid"] or there.get("type") != CONNECTION:
            raise _not_ours(secret)
        if (there.get("data") or {}) == data:
            return False
    owners = [controlling(composite)]
    metadata = {"name": secret.name, "namespace": secret.namespace, "ownerReferences": owners}
    content = {"apiVersion": "v1", "kind": "Secret", "type": CONNECTION, "metadata": metadata}
    wanted, manager = {**content, "data": data}, manager_of(composite)
    try:
        await apply_owned(client, SECRETS, wanted, family=MANAGER, manager=manager)
    except AlreadyOwned:
        raise _not_ours(secret) from None
    return True


def _not_ours(secret: Secret) -> Refusal:
    fact = f"secret {secret} already exists and has another owner"
    hint = "choose another name, or delete it"
    return Refusal("SecretTaken", fact, at="spec.writeConnectionSecretToRef", hint=hint)
