"""Creates the objects that every cluster has from its start."""

from __future__ import annotations

from typing import Any

from polyver.kube.objects import encode_json
from polyver.kube.objects.builtin import builtin_kinds
from polyver.kube.server.api import ApiServer
from polyver.kube.server.http import HttpRequest
from polyver.kube.server.identity import SERVER
from polyver.kube.server.registrations import builtin_registrations

__all__ = ["prepare"]

_NAMESPACES = ("default", "kube-system", "kube-public", "kube-node-lease")


async def prepare(api: ApiServer, *, port: int) -> None:
    """Create the standard namespaces, the Service `kubernetes` and the APIServices if missing."""
    for name in _NAMESPACES:
        namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
        await _create(api, "/api/v1/namespaces", namespace)
    await _create(api, "/api/v1/namespaces/default/services", _service(port))
    for registration in builtin_registrations(builtin_kinds()):
        await _create(api, "/apis/apiregistration.k8s.io/v1/apiservices", registration)


async def _create(api: ApiServer, path: str, obj: dict[str, Any]) -> None:
    name = obj["metadata"]["name"]
    found = await api.handle(HttpRequest("GET", f"{path}/{name}", "", {}, b"", SERVER))
    if found.status == 404:
        headers = {"content-type": "application/json", "user-agent": "kube-apiserver"}
        await api.handle(HttpRequest("POST", path, "", headers, encode_json(obj), SERVER))


def _service(port: int) -> dict[str, Any]:
    labels = {"component": "apiserver", "provider": "kubernetes"}
    ports = [{"name": "https", "protocol": "TCP", "port": 443, "targetPort": port}]
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "kubernetes", "labels": labels},
        "spec": {
            "type": "ClusterIP",
            "clusterIP": "10.0.0.1",
            "clusterIPs": ["10.0.0.1"],
            "ipFamilies": ["IPv4"],
            "ipFamilyPolicy": "SingleStack",
            "internalTrafficPolicy": "Cluster",
            "sessionAffinity": "None",
            "ports": ports,
        },
    }
