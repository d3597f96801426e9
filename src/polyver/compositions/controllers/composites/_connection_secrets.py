"""Publishes connection details to a Secret that the composite resource controls."""

from __future__ import annotations

import base64
from collections.abc import Mapping

from polyver.capability import Refusal
from polyver.client import Client, find
from polyver.compositions.controllers.composites._apply import MANAGER, manager_of
from polyver.compositions.controllers.composites._observed_state import SECRETS
from polyver.compositions.decisions import Secret
from polyver.compositions.names import CONNECTION
from polyver.controllers.owned_objects.ownership import AlreadyOwned, apply_owned
from polyver.core.plain import Object
from polyver.kube.objects.owners import controller_of, controlling

__all__ = ["publish"]


async def publish(
    client: Client, composite: Object, secret: Secret, details: Mapping[str, bytes]
) -> bool:
    """Write details to a secret; return True if it changed.

    Raise Refusal if the secret belongs to another owner.
    """
    data = {name: base64.b64encode(each).decode() for name, each in sorted(details.items())}
    there = await find(client, SECRETS, secret.name, secret.namespace)
    if there is not None:
        _check_ours(there, composite, secret)
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


def _check_ours(there: Object, composite: Object, secret: Secret) -> None:
    if controller_of(there) != composite["metadata"]["uid"] or there.get("type") != CONNECTION:
        raise _not_ours(secret)


def _not_ours(secret: Secret) -> Refusal:
    fact = f"secret {secret} already exists and has another owner"
    hint = "choose another name, or delete it"
    return Refusal("SecretTaken", fact, at="spec.writeConnectionSecretToRef", hint=hint)
