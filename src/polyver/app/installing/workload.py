"""The Deployment without privileges on its nodes, its Service, and its disruption budget."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from polyver.app.installing.options import LABELS, NAME, SELECTOR, Installation, manifest
from polyver.core.plain import Object

__all__ = ["workload"]

_PORT = 8443
_TLS = "/etc/polyver/tls"
_USER = 65532
"""An unprivileged user: images often run as root by default, and root is refused here."""
_GRACE = 45
"""Shutdown seconds: 5 to accept more reviews, 20 to answer them, and time to give up the lease."""


def workload(installation: Installation) -> Iterator[Object]:
    """Yield the Service, a PodDisruptionBudget for several replicas, and the Deployment."""
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
        # API servers may call at any time: the old replicas answer until the new ones can.
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
        # Python and its libraries take a minute on a machine that is very busy.
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
