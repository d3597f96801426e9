"""Reads the initial state of a pipeline: existing composed resources, and Secrets."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from polyver.capability import Refusal
from polyver.client import Client, GroupVersionResource, find
from polyver.compositions.controllers.composites._kinds import Kinds
from polyver.compositions.controllers.composites._outputs import ComposedOutputs
from polyver.compositions.controllers.composites._required_resources import shown_to_functions
from polyver.compositions.decisions import Composite, Secret
from polyver.compositions.messages import Resource as Observed
from polyver.compositions.messages import State
from polyver.compositions.pipeline import connection_secret, observe
from polyver.controllers.owned_objects.inventory import AppliedObject
from polyver.core.plain import Object
from polyver.kube.objects.status import ApiError

__all__ = ["SECRETS", "CompositeObserver", "Observation"]

SECRETS = GroupVersionResource("", "v1", "secrets")


@dataclass(frozen=True, slots=True)
class Observation:
    """The observed state of a composite resource."""

    state: State
    """The state as functions get it."""
    objects: Mapping[AppliedObject, Object]
    """Its composed resources, as whole objects."""


class CompositeObserver:
    """Reads objects that are not cached from the API server."""

    def __init__(self, client: Client, kinds: Kinds, outputs: ComposedOutputs) -> None:
        self._client = client
        self._kinds = kinds
        self._outputs = outputs

    async def observe(self, composite: Composite, published: Secret | None) -> Observation:
        """Read the composed resources and details; raise Refusal if their existence is unknown."""
        objects: dict[AppliedObject, Object] = {}
        for reference in composite.resources:
            part, obj = await self._referenced(reference, composite)
            if obj is not None:
                objects[part] = obj
        found = [(shown_to_functions(obj), await self._details(obj)) for obj in objects.values()]
        details = await self.data(published) if published is not None else None
        own = Observed(shown_to_functions(dict(composite.obj)), details or {})
        return Observation(State(own, observe(composite.obj, found)), objects)

    async def _referenced(
        self, reference: Mapping[str, str], composite: Composite
    ) -> tuple[AppliedObject, Object | None]:
        version, named = reference["apiVersion"], reference["kind"]
        own = composite.obj["metadata"].get("namespace", "")
        namespace, name = reference.get("namespace", own), reference["name"]
        part = AppliedObject(version.rpartition("/")[0], named, namespace, name)
        kept = self._outputs.kept(part)
        if kept is not None and kept["apiVersion"] == version:
            return part, kept
        kind = self._kinds.nearest(version, named)
        if kind is None:
            if self._kinds.is_unknown(version):
                # The object may exist, so its reference must not be dropped.
                fact = f"it is unknown whether {named} {name} exists: {version} does not answer"
                raise Refusal("KindNotServed", fact, at=f"{composite.at}.resourceRefs")
            return part, None
        obj = await find(self._client, GroupVersionResource.of(kind), name, namespace)
        if obj is None:
            self._outputs.note(part, None)
        else:
            self._outputs.keep(part, obj)
        return part, obj

    async def _details(self, obj: Object) -> Mapping[str, bytes]:
        secret = connection_secret(obj)
        return (await self.data(secret) or {}) if secret is not None else {}

    async def data(self, secret: Secret) -> dict[str, bytes] | None:
        """Return the data of a Secret, or None if it does not exist."""
        found = await find(self._client, SECRETS, secret.name, secret.namespace)
        return decoded(found) if found is not None else None

    async def credentials(self, secrets: Iterable[Secret]) -> dict[Secret, dict[str, bytes]]:
        """Return the Secrets that exist; raise Refusal if reading one is forbidden."""
        known = {}
        for secret in sorted(secrets, key=str):
            try:
                data = await self.data(secret)
            except ApiError as error:
                if error.code != 403:
                    raise
                raise Refusal("CredentialsNotFound", error.message) from None
            if data is not None:
                known[secret] = data
        return known


def decoded(secret: Object) -> dict[str, bytes]:
    return {name: base64.b64decode(text) for name, text in (secret.get("data") or {}).items()}
