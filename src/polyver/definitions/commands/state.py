"""Reads applications and definitions from a cluster or from files, for commands."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Annotated

from cyclopts import Parameter

from polyver.cli.cluster import list_all
from polyver.cli.exit_codes import UnknownName, UnreadableInput
from polyver.cli.files import read_manifests
from polyver.client import Client, GroupVersionResource, find
from polyver.core import Lineage
from polyver.core.plain import Object
from polyver.definitions._manifests import applications_in, lineages_in
from polyver.definitions.kinds import (
    APPLICATION_REVISIONS,
    APPLICATIONS,
    DEFINITIONS,
    GROUP,
    REVISIONS,
    STORED,
    VERSIONED,
)
from polyver.definitions.names import APP_NAME
from polyver.definitions.resolution import Homes, lineage_in
from polyver.definitions.uses import uses_of

__all__ = [
    "APPLICATIONS_ON",
    "APPLICATION_REVISIONS_ON",
    "DEFINITIONS_ON",
    "REVISIONS_ON",
    "ApplicationsSnapshot",
    "Context",
    "Files",
    "Namespace",
    "application_on",
    "history_on",
    "state_in",
    "state_of",
    "state_on",
]

APPLICATIONS_ON = GroupVersionResource(GROUP, STORED, APPLICATIONS.names.plural)
APPLICATION_REVISIONS_ON = GroupVersionResource(GROUP, STORED, APPLICATION_REVISIONS.names.plural)
REVISIONS_ON = GroupVersionResource(GROUP, STORED, REVISIONS.names.plural)
DEFINITIONS_ON = {
    kind.kind: GroupVersionResource(GROUP, VERSIONED, kind.names.plural) for kind in DEFINITIONS
}

Files = Annotated[
    list[str] | None,
    Parameter(name=["--file", "-f"], negative=(), allow_leading_hyphen=True),
]
Namespace = Annotated[str, Parameter(name=["--namespace", "-n"])]
Context = Annotated[
    str, Parameter(help="The context of the kubeconfig. Default: the current context.")
]


@dataclass(slots=True)
class ApplicationsSnapshot:
    """The applications, and the lineages of definitions, that a command needs."""

    applications: list[Object] = field(default_factory=list)
    lineages: dict[tuple[str, str], dict[str, Lineage]] = field(default_factory=dict)
    """Lineages by the kind and name of the definition, and then by its namespace."""

    def homes(self, kind: str, name: str) -> Homes:
        """Return the lineages of all definitions with this kind and name, by namespace."""
        return self.lineages.get((kind, name), {})


async def state_on(client: Client, namespace: str = "") -> ApplicationsSnapshot:
    """Read the applications of one namespace or of all namespaces, and all definitions."""
    state = ApplicationsSnapshot(await list_all(client, APPLICATIONS_ON, namespace))
    for kind, resource in DEFINITIONS_ON.items():
        _note(state, kind, await list_all(client, resource))
    return state


async def state_of(client: Client, application: Object) -> ApplicationsSnapshot:
    """Read the definitions that an application references; return them with the application."""
    state = ApplicationsSnapshot([application])
    for kind, name in sorted({(use.kind, use.definition) for use in uses_of(application)}):
        fields = f"metadata.name={name}"
        _note(state, kind, (await client.list(DEFINITIONS_ON[kind], fields=fields)).items)
    return state


def _note(state: ApplicationsSnapshot, kind: str, definitions: Iterable[Object]) -> None:
    for each in definitions:
        lineage, metadata = lineage_in(each), each["metadata"]
        if lineage is not None:
            known = state.lineages.setdefault((kind, metadata["name"]), {})
            known[metadata["namespace"]] = lineage


def state_in(files: Sequence[str], namespace: str) -> ApplicationsSnapshot:
    """Read applications and definitions from files.

    An object without a namespace gets `namespace`, or `default` if `namespace` is empty. If
    `namespace` is not empty, applications of other namespaces are left out.
    """
    documents = read_manifests(files)
    inside = namespace or "default"
    state = ApplicationsSnapshot()
    known: set[tuple[str, str]] = set()
    for document, application in applications_in(documents, inside):
        metadata = application["metadata"]
        named = metadata["namespace"], metadata["name"]
        if named in known:
            fact = f"Application {'/'.join(named)} is listed twice"
            raise document.error(fact, "metadata", "name")
        known.add(named)
        if not namespace or metadata["namespace"] == namespace:
            state.applications.append(application)
    for (kind, home, name), lineage in lineages_in(documents).items():
        homes = state.lineages.setdefault((kind, name), {})
        if (home or inside) in homes:
            fact = f"{kind} {inside}/{name} occurs with and without its namespace"
            raise UnreadableInput(fact, hint="write it in all documents")
        homes[home or inside] = lineage
    return state


async def application_on(client: Client, name: str, namespace: str) -> Object:
    """Read an application from a cluster; raise UnknownName if it does not exist."""
    found = await find(client, APPLICATIONS_ON, name, namespace)
    if found is None:
        raise UnknownName(f"there is no application {name} in the namespace {namespace}")
    return found


async def history_on(client: Client, name: str, namespace: str) -> list[Object]:
    """Read the ApplicationRevisions of an application."""
    labels = f"{APP_NAME}={name}"
    return (await client.list(APPLICATION_REVISIONS_ON, namespace, labels=labels)).items
