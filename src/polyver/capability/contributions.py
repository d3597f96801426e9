"""The contribution of a capability to a control plane, in one form for all capabilities.

The embedded server, a replica on a cluster and the installer read the same contributions. A
contribution is loaded on demand, because its kinds take long to load.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from polyver.apis.declaring import Kind
    from polyver.capability.rollouts import RolloutTargets
    from polyver.client import Client
    from polyver.controllers import Controller
    from polyver.kube.objects.webhooks import Webhook
    from polyver.kube.server.admission import Admission
    from polyver.kube.server.api import ApiServer
    from polyver.web.sources import PageSource
    from polyver.webhook.configurations import AdmissionRegistration

__all__ = ["READ", "Contribution", "Right"]

READ = ("get", "list", "watch")


@dataclass(frozen=True, slots=True)
class Right:
    """The permission to use some verbs on a resource, or only on the object with a given name."""

    group: str
    resource: str
    verbs: tuple[str, ...]
    name: str = ""

    @property
    def rule(self) -> dict[str, Any]:
        """The rule of a Role with this permission."""
        names = {"resourceNames": [self.name]} if self.name else {}
        groups, resources = [self.group], [self.resource]
        return {"apiGroups": groups, "resources": resources, **names, "verbs": [*self.verbs]}


@dataclass(frozen=True, slots=True, kw_only=True)
class Contribution:
    """The contribution of one capability to a control plane."""

    kinds: tuple[Kind, ...] = ()
    """The kinds of the capability, which are served like kinds that users declare."""
    links: Callable[[Client], list[Admission]] = lambda _: []
    """Returns the admission plugins of the capability."""
    wanted: tuple[AdmissionRegistration, ...] = ()
    """The webhook registrations for the admission plugins. They do not include the registrations
    for admission code of kinds that users declare in Python.
    """
    controllers: Callable[[Client], list[Controller[Any]]] = lambda _: []
    """Returns the controllers of the capability."""
    serve: Callable[[ApiServer, Client, Webhook], Awaitable[list[Controller[Any]]]] | None = None
    """Extends the embedded server itself, and returns the controllers that the extension needs."""
    rights: tuple[Right, ...] = ()
    """The cluster-wide permissions that the controllers and plugins need."""
    rights_inside: tuple[Right, ...] = ()
    """The permissions that controllers and plugins need in the installation's namespace."""
    namespaces: tuple[str, ...] = ()
    """The namespaces that must exist."""
    documents: Mapping[str, Callable[[Client], Awaitable[bytes]]] = field(default_factory=dict)
    """Functions that return JSON documents, by URL path on the embedded server and on replicas."""
    rollout_targets: Callable[[Client], Sequence[RolloutTargets]] | None = None
    """Returns objects through which rollouts read and move the lineages of the capability. None if
    rollouts cannot move them.
    """
    version_users: tuple[Callable[[Client, str, str, str], Awaitable[Sequence[str]]], ...] = ()
    """Functions that describe the objects of the capability that use a version of a kind.

    The arguments are the group, the kind and the version.
    """
    source: Callable[[], PageSource] | None = None
    """Returns the part of the page for the capability; called when the page is first opened."""
