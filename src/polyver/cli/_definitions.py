"""The capability definitions in the embedded control plane: its kinds, checks and controllers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from polyver.capabilities.definitions.publishing import GatePolicy
    from polyver.client import Client
    from polyver.engine import Controller
    from polyver.server.api import Api

__all__ = ["serve_definitions"]


async def serve_definitions(
    api: Api, client: Client, *, gate: GatePolicy = "refuse"
) -> list[Controller[Any]]:
    """Have what is published checked; the controllers that publish it are returned.

    The kinds themselves are served with those of the capability apis.
    """
    from polyver.admission.definitions import ApplicationChecks, DefinitionChecks, RevisionChecks
    from polyver.capabilities.definitions.names import SYSTEM_NAMESPACE
    from polyver.client import Resource, find
    from polyver.engine import ApplicationController, DefinitionController, PublishedOn

    published = PublishedOn(client)
    api.admission.add(DefinitionChecks(published, gate=gate))
    api.admission.add(RevisionChecks(published))
    api.admission.add(ApplicationChecks())
    namespaces = Resource("", "v1", "namespaces", namespaced=False)
    if await find(client, namespaces, SYSTEM_NAMESPACE) is None:
        made = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": SYSTEM_NAMESPACE}}
        await client.create(namespaces, made)
    return [DefinitionController(client, gate=gate), ApplicationController(client)]
