"""Secrets that hold the sensitive outputs and artifacts of actions, instead of the status.

The ActionSet owns them, so they are deleted with it.
"""

from __future__ import annotations

import base64
import hashlib
from typing import Any, Final

import msgspec

from polyver.client import Client, GroupVersionResource, find
from polyver.controllers.owned_objects.ownership import AlreadyOwned, apply_owned
from polyver.core import PolyverError
from polyver.core.plain import Object
from polyver.functions.controllers._start import is_final
from polyver.kube.objects import encode_json
from polyver.kube.objects.owners import controller_of, controlling
from polyver.kube.objects.status import ApiError

__all__ = ["NotKept", "OutputSecrets"]

_SECRETS: Final = GroupVersionResource("", "v1", "secrets")
_TYPE: Final = "polyver.dev/action-output"
_KEY: Final = "output"
_MANAGER: Final = "polyver-actions"


class NotKept(PolyverError):
    """A sensitive output cannot be stored, or no longer exists."""


class OutputSecrets:
    """Writes and reads the Secrets with sensitive outputs and artifacts."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def write(self, action_set: Object, part: str, content: dict[str, Any]) -> str:
        """Store content for a part of an ActionSet, such as a phase; return the Secret's name."""
        namespace, name = action_set["metadata"].get("namespace", ""), _name(action_set, part)
        try:
            await self._apply(action_set, name, namespace, content)
        except ApiError as error:
            if not is_final(error):
                raise
            fact = f"its sensitive outputs cannot be kept in secret {namespace}/{name}"
            raise NotKept(f"{fact}: {error.message}") from None
        return name

    async def _apply(
        self, action_set: Object, name: str, namespace: str, content: dict[str, Any]
    ) -> None:
        there = await find(self._client, _SECRETS, name, namespace)
        if there is not None and controller_of(there) != action_set["metadata"]["uid"]:
            raise _belongs_to_another(name, namespace)
        secret = {
            "apiVersion": "v1",
            "kind": "Secret",
            "type": _TYPE,
            "metadata": {
                "name": name,
                "namespace": namespace,
                "ownerReferences": [controlling(action_set)],
            },
            "data": {_KEY: base64.b64encode(encode_json(content)).decode()},
        }
        try:
            await apply_owned(self._client, _SECRETS, secret, family=_MANAGER, manager=_MANAGER)
        except AlreadyOwned:
            raise _belongs_to_another(name, namespace) from None

    async def read(self, name: str, namespace: str) -> dict[str, Any]:
        """Return the content of a Secret."""
        found = await find(self._client, _SECRETS, name, namespace)
        encoded = ((found or {}).get("data") or {}).get(_KEY)
        if encoded is None:
            fact = f"the sensitive output of a phase was in secret {namespace}/{name}"
            raise NotKept(f"{fact}, which was deleted", hint="run the ActionSet again")
        content: dict[str, Any] = msgspec.json.decode(base64.b64decode(encoded))
        return content


def _belongs_to_another(name: str, namespace: str) -> NotKept:
    fact = f"secret {namespace}/{name} already exists and has another owner"
    return NotKept(fact, hint="delete it, and run the ActionSet again")


def _name(action_set: Object, part: str) -> str:
    metadata = action_set["metadata"]
    own = hashlib.sha256(metadata["uid"].encode()).hexdigest()[:8]
    return f"{metadata['name'][:200]}-{own}-{part}"
