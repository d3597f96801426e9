"""The objects that serve a function revision on a cluster: a Deployment, a Service and a Secret."""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
from collections.abc import Mapping

from polyver.client import GroupVersionResource
from polyver.compositions.calls import IssuedCertificate
from polyver.compositions.runtimes.interface import DesiredRevision, ServingStatus
from polyver.core.plain import Object
from polyver.kube.http.tls import Pair

__all__ = [
    "DEPLOYMENTS",
    "REVISION",
    "SECRETS",
    "SERVICES",
    "endpoint_of",
    "is_ours",
    "issued_in",
    "name_problem",
    "objects_of",
    "secret_of",
    "served_of",
]

REVISION = "pkg.crossplane.io/revision"
"""Label with the name of the FunctionRevision that the object serves."""
_OURS = {"app.kubernetes.io/managed-by": "polyver"}
_CERTIFICATES = "polyver.dev/certificates"
_PORT = 9443
_TLS = "/tls/server"
_USER = 2000

DEPLOYMENTS = GroupVersionResource("apps", "v1", "deployments")
SERVICES = GroupVersionResource("", "v1", "services")
SECRETS = GroupVersionResource("", "v1", "secrets")

_NAME = re.compile(r"[a-z]([-a-z0-9]{0,61}[a-z0-9])?")


def name_problem(name: str) -> str:
    """Return why a Service cannot have this name; "" if it can.

    >>> name_problem("fn-0123456789ab")
    ''
    """
    if _NAME.fullmatch(name):
        return ""
    fact = f'invalid name of a Service: "{name}"'
    return f"{fact}: a letter first, then letters, digits and -, 63 in all at most; rename it"


def endpoint_of(name: str, namespace: str) -> str:
    """Return the address at which polyver calls the Service of a revision.

    >>> endpoint_of("fn-1", "polyver-system")
    'dns:///fn-1.polyver-system:9443'
    """
    return f"dns:///{name}.{namespace}:{_PORT}"


def objects_of(
    wanted: DesiredRevision, namespace: str, issued: IssuedCertificate
) -> list[tuple[GroupVersionResource, Object]]:
    """Build the objects that serve a revision, in the order in which they are applied."""
    return [
        (SECRETS, secret_of(wanted, namespace, issued)),
        (SERVICES, _service(wanted, namespace)),
        (DEPLOYMENTS, _deployment(wanted, namespace, issued)),
    ]


def secret_of(wanted: DesiredRevision, namespace: str, issued: IssuedCertificate) -> Object:
    """Build the Secret with the certificates of a revision.

    It is mounted as a folder. Its keys are the names of the files that functions expect in this
    folder.
    """
    content = {
        "tls.crt": issued.pair.certificate,
        "tls.key": issued.pair.key,
        "ca.crt": issued.bundle,
    }
    data = {name: base64.b64encode(each).decode() for name, each in content.items()}
    made = _object("v1", "Secret", wanted, namespace)
    return made | {"type": "Opaque", "data": data}


def issued_in(secret: Object | None) -> IssuedCertificate | None:
    """Read the certificates in a Secret; return None if it contains none."""
    data: Mapping[str, str] = (secret or {}).get("data") or {}
    try:
        crt, key, ca = (
            base64.b64decode(data[name], validate=True) for name in ("tls.crt", "tls.key", "ca.crt")
        )
    except (KeyError, TypeError, ValueError, binascii.Error):
        return None
    return IssuedCertificate(Pair(crt, key), ca)


def is_ours(found: Object, name: str) -> bool:
    """Report whether polyver created this object to serve the revision `name`."""
    labels = found["metadata"].get("labels") or {}
    wanted = {**_OURS, REVISION: name}
    return all(labels.get(key) == value for key, value in wanted.items())


def served_of(deployment: Object | None, name: str, namespace: str) -> ServingStatus:
    """Build the status of a revision from its Deployment; None means that it does not exist yet."""
    status = (deployment or {}).get("status") or {}
    conditions = {each["type"]: each for each in status.get("conditions") or ()}
    if _is(conditions, "Available", "True"):
        endpoint = endpoint_of(name, namespace)
        return ServingStatus(endpoint, "Serving", f"{status.get('availableReplicas', 1)} available")
    for kind, failing in (("ReplicaFailure", "True"), ("Progressing", "False")):
        if _is(conditions, kind, failing):
            said = conditions[kind].get("message") or conditions[kind].get("reason", kind)
            return ServingStatus(reason="NotStarting", message=said)
    said = (conditions.get("Available") or {}).get("message", "")
    return ServingStatus(reason="Starting", message=said or "its Deployment has no replica yet")


def _is(conditions: Mapping[str, Mapping[str, str]], kind: str, status: str) -> bool:
    return kind in conditions and conditions[kind].get("status") == status


def _object(api_version: str, kind: str, wanted: DesiredRevision, namespace: str) -> Object:
    metadata: Object = {
        "name": wanted.name,
        "namespace": namespace,
        "labels": {**_OURS, REVISION: wanted.name},
    }
    if wanted.uid:
        owner = {
            "apiVersion": "pkg.crossplane.io/v1",
            "kind": "FunctionRevision",
            "name": wanted.name,
            "uid": wanted.uid,
            "controller": True,
        }
        metadata["ownerReferences"] = [owner]
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata}


def _service(wanted: DesiredRevision, namespace: str) -> Object:
    port = {"name": "grpc", "port": _PORT, "protocol": "TCP", "targetPort": "grpc"}
    spec = {"selector": {REVISION: wanted.name}, "ports": [port]}
    return _object("v1", "Service", wanted, namespace) | {"spec": spec}


def _deployment(wanted: DesiredRevision, namespace: str, issued: IssuedCertificate) -> Object:
    # Functions read their certificates only when they start, so new certificates need a new Pod.
    mark = hashlib.sha256(issued.pair.certificate + issued.bundle).hexdigest()[:16]
    template = {
        "metadata": {
            "labels": {**_OURS, REVISION: wanted.name},
            "annotations": {_CERTIFICATES: mark},
        },
        "spec": _pod(wanted),
    }
    spec = {
        "replicas": 1,
        "selector": {"matchLabels": {REVISION: wanted.name}},
        "strategy": {
            "type": "RollingUpdate",
            "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0},
        },
        "template": template,
    }
    return _object("apps/v1", "Deployment", wanted, namespace) | {"spec": spec}


def _pod(wanted: DesiredRevision) -> Object:
    container = {
        "name": "package-runtime",
        "image": wanted.package,
        "ports": [{"name": "grpc", "containerPort": _PORT, "protocol": "TCP"}],
        "env": [{"name": "TLS_SERVER_CERTS_DIR", "value": _TLS}],
        "readinessProbe": {"tcpSocket": {"port": "grpc"}, "periodSeconds": 5},
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "privileged": False,
            "runAsNonRoot": True,
            "runAsUser": _USER,
            "runAsGroup": _USER,
            "capabilities": {"drop": ["ALL"]},
        },
        "volumeMounts": [{"name": "tls", "mountPath": _TLS, "readOnly": True}],
    }
    return {
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": _USER,
            "runAsGroup": _USER,
            "fsGroup": _USER,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "containers": [container],
        "volumes": [{"name": "tls", "secret": {"secretName": wanted.name, "defaultMode": 0o440}}],
    }
