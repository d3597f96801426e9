"""The settings of an installation, and the names of its objects."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from polyver.client import GroupVersionResource
from polyver.core.plain import Object
from polyver.kube.objects.webhooks import CONVERT, Webhook

if TYPE_CHECKING:
    from polyver.apis.declaring import Kind
    from polyver.capability.contributions import Contribution

__all__ = [
    "CERTIFICATES",
    "CONFIGURATIONS",
    "CRDS",
    "INSTALLER",
    "LABELS",
    "NAME",
    "NAMESPACE",
    "OWN",
    "RUNNER",
    "SELECTOR",
    "Installation",
    "ObjectName",
    "kept_by_replicas",
    "manifest",
    "named",
]

NAME = "polyver"
"""The name of all objects of an installation, and of its webhook configurations and its Lease."""
NAMESPACE = "polyver-system"
CERTIFICATES = "polyver-webhook"
"""The Secret in which replicas keep their certificates."""
INSTALLER = "polyver-install"
"""The field manager with which `polyver install` applies objects."""
RUNNER = "polyver"
"""The field manager with which `polyver run` writes its objects, such as the Lease."""
LABELS = {
    "app.kubernetes.io/name": NAME,
    "app.kubernetes.io/part-of": NAME,
    "app.kubernetes.io/managed-by": INSTALLER,
}
SELECTOR = {"app.kubernetes.io/name": NAME}
"""The labels by which the Service selects pods. They cannot change in a Deployment."""

_RBAC, _HOOKS = "rbac.authorization.k8s.io", "admissionregistration.k8s.io"
CRDS = "CustomResourceDefinition"
_RESOURCES = {
    "Namespace": GroupVersionResource("", "v1", "namespaces", namespaced=False),
    CRDS: GroupVersionResource(
        "apiextensions.k8s.io", "v1", "customresourcedefinitions", namespaced=False
    ),
    "ServiceAccount": GroupVersionResource("", "v1", "serviceaccounts"),
    "ClusterRole": GroupVersionResource(_RBAC, "v1", "clusterroles", namespaced=False),
    "ClusterRoleBinding": GroupVersionResource(
        _RBAC, "v1", "clusterrolebindings", namespaced=False
    ),
    "Role": GroupVersionResource(_RBAC, "v1", "roles"),
    "RoleBinding": GroupVersionResource(_RBAC, "v1", "rolebindings"),
    "Service": GroupVersionResource("", "v1", "services"),
    "PodDisruptionBudget": GroupVersionResource("policy", "v1", "poddisruptionbudgets"),
    "Deployment": GroupVersionResource("apps", "v1", "deployments"),
    "Secret": GroupVersionResource("", "v1", "secrets"),
    "Lease": GroupVersionResource("coordination.k8s.io", "v1", "leases"),
    "MutatingWebhookConfiguration": GroupVersionResource(
        _HOOKS, "v1", "mutatingwebhookconfigurations", namespaced=False
    ),
    "ValidatingWebhookConfiguration": GroupVersionResource(
        _HOOKS, "v1", "validatingwebhookconfigurations", namespaced=False
    ),
}
OWN = (
    "Deployment",
    "PodDisruptionBudget",
    "Service",
    "RoleBinding",
    "Role",
    "ClusterRoleBinding",
    "ClusterRole",
    "ServiceAccount",
)
"""The kinds of objects that `polyver install` creates, except Namespaces and CRDs.

`polyver uninstall` deletes the objects of these kinds.
"""
CONFIGURATIONS = ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration")


@dataclass(frozen=True, slots=True)
class Installation:
    """The settings of polyver on one cluster."""

    image: str
    namespace: str = NAMESPACE
    replicas: int = 2
    options: tuple[str, ...] = ()
    """Arguments that the Deployment passes to `polyver run`, such as `--kinds`."""
    kinds: tuple[Kind, ...] = ()
    """The kinds that users have declared in Python."""
    contributions: tuple[Contribution, ...] = ()
    """What the enabled capabilities contribute to the control plane, including the permissions they
    need.
    """
    roles: tuple[str, ...] = ()
    """Names of existing ClusterRoles to bind to the service account of polyver.

    They allow access to objects that the controllers of users create.
    """
    tls_secret: str = ""
    """The name of a Secret with the certificate and its key, if another program renews it."""
    inject_ca_from: str = ""
    """The Certificate, as NAMESPACE/NAME, by which cert-manager creates `tls_secret`."""

    @property
    def webhook(self) -> Webhook:
        """The webhook that API servers call to convert objects."""
        certificate = self.inject_ca_from
        return Webhook(self.namespace, NAME, path=CONVERT, inject_ca_from=certificate)


@dataclass(frozen=True, slots=True)
class ObjectName:
    """The kind, name and namespace of an object on a server.

    >>> print(ObjectName("Service", "polyver", "polyver-system"))
    Service polyver-system/polyver
    """

    kind: str
    name: str
    namespace: str = ""

    def __str__(self) -> str:
        inside = f"{self.namespace}/" if self.namespace else ""
        return f"{self.kind} {inside}{self.name}"

    @property
    def resource(self) -> GroupVersionResource:
        return _RESOURCES[self.kind]


def named(obj: Mapping[str, Any], kind: str = "") -> ObjectName:
    """Return the name of an object.

    `kind` is needed for an item of a list: such an item may have no field `kind`.
    """
    metadata = obj["metadata"]
    return ObjectName(kind or obj["kind"], metadata["name"], metadata.get("namespace", ""))


def kept_by_replicas(namespace: str) -> list[ObjectName]:
    """Return the names of the objects that `polyver run` creates."""
    configurations = [ObjectName(kind, NAME) for kind in CONFIGURATIONS]
    secret, lease = (
        ObjectName("Secret", CERTIFICATES, namespace),
        ObjectName("Lease", NAME, namespace),
    )
    return [*configurations, secret, lease]


def manifest(kind: str, name: str, namespace: str = "", **content: Any) -> Object:
    """Build an object of an installation, with the labels of the installation."""
    resource = _RESOURCES[kind]
    version = f"{resource.group}/{resource.version}" if resource.group else resource.version
    metadata: Object = {"name": name} | ({"namespace": namespace} if namespace else {})
    metadata["labels"] = dict(LABELS)
    return {"apiVersion": version, "kind": kind, "metadata": metadata, **content}
