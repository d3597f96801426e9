"""A client that reads the live objects for a plan, and writes nothing."""

from __future__ import annotations

import base64
from collections.abc import AsyncGenerator, Mapping

from polyver.cli.exit_codes import UnreadableInput
from polyver.client import Client, Discovery, GroupVersionResource
from polyver.client.client import ClientRequest, ClientResponse, path_of
from polyver.compositions.decisions import Secret
from polyver.kube.objects.codec import encode_json

__all__ = ["LiveObjects"]

_SECRETS = GroupVersionResource("", "v1", "secrets")


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
        self._secrets = {
            path_of(_SECRETS, secret.name, secret.namespace): _response(secret, data)
            for secret, data in secrets.items()
        }

    async def _send(self, ask: ClientRequest) -> ClientResponse:
        if ask.method != "GET":
            raise AssertionError(f"a plan only reads objects, but would send {ask}")
        if (given := self._secrets.get(ask.path)) is not None:
            return given
        response = await self._client._send(ask)
        if response.status in (401, 403):
            raise self._unreadable(ask, response)
        return response

    def _unreadable(self, ask: ClientRequest, response: ClientResponse) -> UnreadableInput:
        hint = "ask for the permission to read it"
        if "/secrets/" in ask.path:
            hint += ", or pass a Secret with --function-credentials"
        message = self._refused(ask, response).message
        return UnreadableInput(
            f"functions need an object that you may not read: {message}", hint=hint
        )

    def _pieces(self, ask: ClientRequest) -> AsyncGenerator[bytes, None]:
        raise AssertionError(f"a plan does not watch, but would send {ask}")

    def watch_kinds(self) -> AsyncGenerator[Discovery, None]:
        raise AssertionError("a plan does not watch")


def _response(secret: Secret, data: Mapping[str, bytes]) -> ClientResponse:
    obj = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": secret.name, "namespace": secret.namespace},
        "data": {key: base64.b64encode(content).decode() for key, content in data.items()},
    }
    return ClientResponse(200, encode_json(obj))
