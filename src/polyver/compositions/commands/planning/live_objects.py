"""A client that reads the live objects for a plan, and writes nothing."""

from __future__ import annotations

import base64
from collections.abc import AsyncGenerator, Mapping
from typing import Never

from polyver.cli.exit_codes import UnreadableInput
from polyver.client import Client, Discovery, GroupVersionResource
from polyver.client.client import ClientRequest, ClientResponse
from polyver.client.types import Listing
from polyver.compositions.decisions import Secret
from polyver.core.plain import Object
from polyver.kube.objects.status import ApiError

__all__ = ["LiveObjects"]

_SECRETS = ("", "secrets")


class LiveObjects(Client):
    """Reads objects with the rights of the user.

    If the user may not read an object, this client raises UnreadableInput, which ends the plan. An
    ApiError would be reported as a failure of the composite resource, although the control plane
    may have the permission.
    """

    def __init__(self, client: Client, secrets: Mapping[Secret, Mapping[str, bytes]]) -> None:
        """Create a client. `secrets` are returned instead of the Secrets of the cluster."""
        super().__init__()
        self._client = client
        self._secrets = secrets

    async def get(
        self,
        resource: GroupVersionResource,
        name: str,
        namespace: str = "",
        *,
        subresource: str = "",
        metadata: bool = False,
    ) -> Object:
        given = self._secrets.get(Secret(namespace, name)) if _is_secret(resource) else None
        if given is not None:
            data = {key: base64.b64encode(content).decode() for key, content in given.items()}
            about = {"name": name, "namespace": namespace}
            return {"apiVersion": "v1", "kind": "Secret", "metadata": about, "data": data}
        try:
            return await self._client.get(
                resource, name, namespace, subresource=subresource, metadata=metadata
            )
        except ApiError as error:
            raise _checked(error, resource) from None

    async def list(
        self,
        resource: GroupVersionResource,
        namespace: str = "",
        *,
        labels: str = "",
        fields: str = "",
        resource_version: str = "",
        limit: int = 0,
        more: str = "",
        metadata: bool = False,
    ) -> Listing:
        try:
            return await self._client.list(
                resource,
                namespace,
                labels=labels,
                fields=fields,
                resource_version=resource_version,
                limit=limit,
                more=more,
                metadata=metadata,
            )
        except ApiError as error:
            raise _checked(error, resource) from None

    async def _send(self, ask: ClientRequest) -> ClientResponse:
        _refuse(ask)

    def _pieces(self, ask: ClientRequest) -> AsyncGenerator[bytes, None]:
        _refuse(ask)

    def watch_kinds(self) -> AsyncGenerator[Discovery, None]:
        raise AssertionError("a plan does not watch")


def _refuse(ask: ClientRequest) -> Never:
    raise AssertionError(f"a plan only reads objects, but would send {ask}")


def _is_secret(resource: GroupVersionResource) -> bool:
    return (resource.group, resource.plural) == _SECRETS


def _checked(error: ApiError, resource: GroupVersionResource) -> Exception:
    if error.code not in (401, 403):
        return error
    hint = "ask for the permission to read it"
    if _is_secret(resource):
        hint += ", or pass a Secret with --function-credentials"
    fact = f"functions need an object that you may not read: {error.message}"
    return UnreadableInput(fact, hint=hint)
