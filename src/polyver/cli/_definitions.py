"""The capability definitions, wired: its checks and controllers, in the process or on a cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from polyver.admission.chain import Admission
    from polyver.capabilities.definitions.publishing import GatePolicy
    from polyver.client import Client
    from polyver.engine import Controller
    from polyver.server.api import Api

__all__ = ["definition_controllers", "definition_links", "serve_definitions"]


async def serve_definitions(
    api: Api, client: Client, *, gate: GatePolicy = "refuse"
) -> list[Controller[Any]]:
    """Have what is published checked; the controllers that publish it are returned.

    The kinds themselves are served with those of the capability apis.
    """
    from polyver.capabilities.definitions.names import SYSTEM_NAMESPACE
    from polyver.client import Resource, find

    for link in definition_links(client, gate=gate):
        api.admission.add(link)
    namespaces = Resource("", "v1", "namespaces", namespaced=False)
    if await find(client, namespaces, SYSTEM_NAMESPACE) is None:
        made = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": SYSTEM_NAMESPACE}}
        await client.create(namespaces, made)
    return definition_controllers(client, gate=gate)


def definition_links(client: Client, *, gate: GatePolicy) -> list[Admission]:
    """Those who have a say in writes."""
    from polyver.admission.definitions import ApplicationChecks, DefinitionChecks, RevisionChecks
    from polyver.engine import PublishedOn

    published = PublishedOn(client)
    return [DefinitionChecks(published, gate=gate), RevisionChecks(published), ApplicationChecks()]


def definition_controllers(client: Client, *, gate: GatePolicy) -> list[Controller[Any]]:
    """Those who publish and resolve."""
    from polyver.engine import ApplicationController, DefinitionController

    return [DefinitionController(client, gate=gate), ApplicationController(client)]
