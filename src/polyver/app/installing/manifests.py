"""Builds the manifests of an installation: permissions, Service and Deployment.

`polyver run` gets only the permissions that it uses, limited to single object names where possible.
A test checks this: it uses all features of polyver, and fails if all of them also work without one
of the permissions. The pods of the Deployment have no privileges on their nodes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from polyver.apis.conversion_kind import CONVERSIONS
from polyver.apis.crds import crd_of
from polyver.app.installing.options import (
    CERTIFICATES,
    LABELS,
    NAME,
    SELECTOR,
    Installation,
    manifest,
)
from polyver.capability.contributions import READ, Right
from polyver.core.plain import Object

if TYPE_CHECKING:
    from polyver.apis.declaring import Kind

__all__ = ["access", "manifests", "rights", "rights_inside", "workload"]

_ACCOUNT = "ServiceAccount"
_GROUP = "rbac.authorization.k8s.io"
_PORT = 8443
_TLS = "/etc/polyver/tls"
_USER = 65532
"""The user ID in the container. Many images run as root, which the Deployment forbids."""
_GRACE = 45
"""The value of `terminationGracePeriodSeconds` of the pods.

polyver still accepts requests for 5 s. Then it has 20 s to answer them, and the rest of the time to
release the lease.
"""


def rights(installation: Installation) -> list[Right]:
    """Return the permissions that polyver needs in all namespaces, for its ClusterRole."""
    hooks = "admissionregistration.k8s.io"
    conversions, plural = CONVERSIONS.group, CONVERSIONS.names.plural
    found = [
        # A Conversion may be for any CRD.
        Right("apiextensions.k8s.io", "customresourcedefinitions", (*READ, "patch")),
        Right(conversions, plural, (*READ, "patch")),
        Right(conversions, f"{plural}/status", ("patch",)),
    ]
    for each in ("mutatingwebhookconfigurations", "validatingwebhookconfigurations"):
        found.append(Right(hooks, each, ("list", "watch")))
        # A create by server-side apply needs both rights, `create` and `patch`. Its request has the
        # name of the object, so the rule can be limited to this name. A POST could not be limited.
        found.append(Right(hooks, each, ("get", "create", "patch"), name=NAME))
    own = [right for each in installation.contributions for right in each.rights]
    return [*found, *own, *_of_controllers(installation)]


def _of_controllers(installation: Installation) -> Iterator[Right]:
    """Yield the permissions that polyver needs to run the controllers of kinds declared in Python.

    These controllers write annotations and the status of the objects of their kind.
    """
    for kind in installation.kinds:
        if kind.controller is not None:
            definition = kind.definition()
            group, plural = definition.group, definition.names.plural
            yield Right(group, plural, (*READ, "patch"))
            if any(each.status for each in definition.versions):
                yield Right(group, f"{plural}/status", ("update",))


def rights_inside(installation: Installation) -> list[Right]:
    """Return the permissions that polyver needs in its own namespace, for its Role."""
    leases = "coordination.k8s.io", "leases"
    found = [Right(*leases, ("create",)), Right(*leases, ("get", "update"), name=NAME)]
    if not installation.tls_secret:
        found.append(Right("", "secrets", ("create",)))
        found.append(Right("", "secrets", (*READ, "update", "patch"), name=CERTIFICATES))
    return [*found, *(right for each in installation.contributions for right in each.rights_inside)]


def access(installation: Installation) -> Iterator[Object]:
    """Yield polyver's ServiceAccount, its roles, and the bindings that grant it permissions.

    The bindings name its own roles and the existing ClusterRoles that the user chose.
    """
    namespace = installation.namespace
    yield manifest(_ACCOUNT, NAME, namespace)
    yield manifest("ClusterRole", NAME, rules=_rules(rights(installation)))
    yield _bound("ClusterRoleBinding", NAME, "ClusterRole", NAME, installation)
    yield manifest("Role", NAME, namespace, rules=_rules(rights_inside(installation)))
    yield _bound("RoleBinding", NAME, "Role", NAME, installation)
    for role in sorted(set(installation.roles)):
        yield _bound("ClusterRoleBinding", f"{NAME}-{role}", "ClusterRole", role, installation)


def _rules(found: Iterable[Right]) -> list[Object]:
    return [each.rule for each in found]


def _bound(kind: str, name: str, role: str, to: str, installation: Installation) -> Object:
    inside = installation.namespace if kind == "RoleBinding" else ""
    subject = {"kind": _ACCOUNT, "name": NAME, "namespace": installation.namespace}
    reference = {"apiGroup": _GROUP, "kind": role, "name": to}
    return manifest(kind, name, inside, roleRef=reference, subjects=[subject])


# The Service, the disruption budget and the Deployment.


def workload(installation: Installation) -> Iterator[Object]:
    """Yield the Service and the Deployment.

    If there are several replicas, also yield a PodDisruptionBudget.
    """
    namespace = installation.namespace
    port = {"name": "https", "port": 443, "protocol": "TCP", "targetPort": "https"}
    yield manifest("Service", NAME, namespace, spec={"selector": dict(SELECTOR), "ports": [port]})
    if installation.replicas > 1:
        selector = {"matchLabels": dict(SELECTOR)}
        kept = {"minAvailable": 1, "selector": selector}
        yield manifest("PodDisruptionBudget", NAME, namespace, spec=kept)
    yield manifest("Deployment", NAME, namespace, spec=_deployment(installation))


def _deployment(installation: Installation) -> Object:
    return {
        "replicas": installation.replicas,
        "selector": {"matchLabels": dict(SELECTOR)},
        # API servers may call at any time. So the old replicas answer requests until the new
        # replicas can answer.
        "strategy": {
            "type": "RollingUpdate",
            "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0},
        },
        "template": {"metadata": {"labels": dict(LABELS)}, "spec": _pod(installation)},
    }


def _pod(installation: Installation) -> Object:
    return {
        "serviceAccountName": NAME,
        "enableServiceLinks": False,
        "terminationGracePeriodSeconds": _GRACE,
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": _USER,
            "runAsGroup": _USER,
            "fsGroup": _USER,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "topologySpreadConstraints": [
            _apart("kubernetes.io/hostname"),
            _apart("topology.kubernetes.io/zone"),
        ],
        "containers": [_container(installation)],
        "volumes": _volumes(installation),
    }


def _apart(key: str) -> Object:
    return {
        "maxSkew": 1,
        "topologyKey": key,
        "whenUnsatisfiable": "ScheduleAnyway",
        "labelSelector": {"matchLabels": dict(SELECTOR)},
    }


def _container(installation: Installation) -> Object:
    mounts: list[Any] = [{"name": "tmp", "mountPath": "/tmp"}]  # noqa: S108 - of the pod alone
    if installation.tls_secret:
        mounts.append({"name": "tls", "mountPath": _TLS, "readOnly": True})
    return {
        "name": NAME,
        "image": installation.image,
        "command": ["polyver"],
        "args": _arguments(installation),
        "ports": [{"name": "https", "containerPort": _PORT, "protocol": "TCP"}],
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        },
        # On a very busy machine, the start of Python and its libraries takes a minute.
        "startupProbe": _asked("/healthz", period=2, failures=60),
        "readinessProbe": _asked("/readyz", period=5, failures=2),
        "livenessProbe": _asked("/healthz", period=10, failures=6),
        "resources": {
            "requests": {"cpu": "100m", "memory": "128Mi"},
            "limits": {"memory": "512Mi"},
        },
        "volumeMounts": mounts,
    }


def _arguments(installation: Installation) -> list[str]:
    given = ["run", "--namespace", installation.namespace, "--service", NAME]
    given += ["--host", "0.0.0.0", "--port", str(_PORT)]  # noqa: S104 - inside of a pod
    given += installation.options
    if installation.tls_secret:
        given += ["--tls-cert", f"{_TLS}/tls.crt", "--tls-key", f"{_TLS}/tls.key"]
        given += ["--inject-ca-from", installation.inject_ca_from]
    return given


def _asked(path: str, *, period: int, failures: int) -> Object:
    asked = {"path": path, "port": "https", "scheme": "HTTPS"}
    timing = {"periodSeconds": period, "timeoutSeconds": 3, "failureThreshold": failures}
    return {"httpGet": asked, **timing}


def _volumes(installation: Installation) -> list[Object]:
    found: list[Object] = [{"name": "tmp", "emptyDir": {"sizeLimit": "64Mi"}}]
    if installation.tls_secret:
        secret = {"secretName": installation.tls_secret, "defaultMode": 0o440}
        found.append({"name": "tls", "secret": secret})
    return found


def manifests(installation: Installation) -> list[Object]:
    """Return all objects of an installation. Equal settings always give equal objects.

    The webhook configurations are not included: `polyver run` creates them as soon as its webhooks
    can answer.
    """
    contributions = installation.contributions
    places = [installation.namespace, *(name for each in contributions for name in each.namespaces)]
    namespaces = [manifest("Namespace", name) for name in dict.fromkeys(places)]
    own = [kind for each in contributions for kind in each.kinds]
    crds = [_crd(kind, installation) for kind in (CONVERSIONS, *own, *installation.kinds)]
    return [*namespaces, *crds, *access(installation), *workload(installation)]


def _crd(kind: Kind, installation: Installation) -> Object:
    definition = kind.definition()
    crd = crd_of(definition, installation.webhook if kind.converter else None)
    labels = crd["metadata"].get("labels", {})
    metadata = {**crd["metadata"], "labels": {**labels, **LABELS}}
    spec = dict(crd["spec"])
    if not (kind.converter or definition.webhook or definition.strategy):
        # The CRD does not state a conversion, so a Conversion that is applied later may set it.
        spec.pop("conversion", None)
    return {**crd, "metadata": metadata, "spec": spec}
