"""The capability definitions, wired: its checks and controllers, in the process or on a cluster.

All of it is loaded when it is wanted: its kinds take longer to load than everything around them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from polyver.admission.chain import Admission
    from polyver.admission.configurations import Wanted
    from polyver.apis import Kind
    from polyver.capabilities.definitions.publishing import GatePolicy
    from polyver.client import Client
    from polyver.engine import Controller
    from polyver.server.api import Api

__all__ = [
    "definition_controllers",
    "definition_kinds",
    "definition_links",
    "definitions_wanted",
    "serve_definitions",
]


def definition_kinds() -> tuple[Kind, ...]:
    """The kinds, which are served like those of users."""
    from polyver.capabilities.definitions.kinds import KINDS

    return KINDS


def definitions_wanted() -> tuple[Wanted, ...]:
    """What API servers are to ask about."""
    from polyver.admission.definitions import DEFINITIONS_WANTED

    return DEFINITIONS_WANTED


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
    from polyver.engine.definitions import PublishedOn

    published = PublishedOn(client)
    return [DefinitionChecks(published, gate=gate), RevisionChecks(published), ApplicationChecks()]


def definition_controllers(client: Client, *, gate: GatePolicy) -> list[Controller[Any]]:
    """Those who publish and resolve."""
    from polyver.engine.applications import ApplicationController
    from polyver.engine.definitions import DefinitionController

    return [DefinitionController(client, gate=gate), ApplicationController(client)]
