"""What capabilities bring to a control plane, in one shape for all and for all places.

The embedded server, a replica on a cluster and what is installed there read the same of it. All
of it is loaded when it is wanted: kinds take longer to load than everything around them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from polyver.apis.declaring import Kind
    from polyver.client import Client
    from polyver.controllers import Controller
    from polyver.kube.server.admission import Admission
    from polyver.web.sources import PageSource
    from polyver.webhook.configurations import AdmissionRegistration

__all__ = ["READ", "Contribution", "Right"]

READ = ("get", "list", "watch")


@dataclass(frozen=True, slots=True)
class Right:
    """To do something with a kind of objects, or with one of that name."""

    group: str
    resource: str
    verbs: tuple[str, ...]
    name: str = ""

    @property
    def rule(self) -> dict[str, Any]:
        """The same as roles have it."""
        names = {"resourceNames": [self.name]} if self.name else {}
        groups, resources = [self.group], [self.resource]
        return {"apiGroups": groups, "resources": resources, **names, "verbs": [*self.verbs]}


@dataclass(frozen=True, slots=True, kw_only=True)
class Contribution:
    """What one capability brings to a control plane."""

    kinds: tuple[Kind, ...]
    """Its kinds, which are served as those of users are."""
    links: Callable[[Client], list[Admission]]
    """Those who have a say in writes."""
    wanted: tuple[AdmissionRegistration, ...]
    """What API servers ask these about, beside what goes for every kind in Python."""
    controllers: Callable[[Client], list[Controller[Any]]]
    """Those who act."""
    rights: tuple[Right, ...]
    """What these need of a cluster."""
    rights_inside: tuple[Right, ...] = ()
    """What they need in the namespace of the installation."""
    namespaces: tuple[str, ...] = ()
    """Those that have to be there."""
    documents: Mapping[str, bytes] = field(default_factory=dict)
    """What can be read of it, in JSON, by the paths of the embedded server and of replicas."""
    source: Callable[[], PageSource] | None = None
    """What it shows on the page, made when somebody looks."""
