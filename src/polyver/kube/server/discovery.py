"""Discovery documents: groups, versions and resources.

The documents are plain data. Groups, versions and resources have the same order as in
kube-apiserver, because clients choose the first version of a group and the first resource with a
name.
"""

from __future__ import annotations

import base64
import hashlib
import platform
import sys
from collections.abc import Iterable, Mapping
from itertools import groupby
from typing import Literal

from polyver import __version__
from polyver.core import KubeVersion, SemVer
from polyver.kube.objects.kinds import ResourceKind, Subresource

__all__ = [
    "aggregated_discovery",
    "api_group",
    "api_group_list",
    "api_resource_list",
    "api_versions",
    "content_hash",
    "etag",
    "in_order",
    "storage_version_hash",
    "version_info",
]

_GROUPS = (
    "apiregistration.k8s.io apps events.k8s.io authentication.k8s.io authorization.k8s.io"
    " autoscaling batch certificates.k8s.io networking.k8s.io policy rbac.authorization.k8s.io"
    " storage.k8s.io admissionregistration.k8s.io apiextensions.k8s.io scheduling.k8s.io"
    " coordination.k8s.io node.k8s.io discovery.k8s.io resource.k8s.io"
    " flowcontrol.apiserver.k8s.io storagemigration.k8s.io"
).split()
_PRIORITY = {"": -1, **{group: number for number, group in enumerate(_GROUPS)}}


def in_order(kinds: Iterable[ResourceKind]) -> list[ResourceKind]:
    """Sort kinds in the order of kube-apiserver: built-in groups by priority, others by name.

    Within a group, versions have the Kubernetes version order, so the preferred version is first.
    Within a version, resources are sorted by name.
    """
    by_name = sorted(kinds, key=lambda kind: kind.plural)
    versions = {kind.version: KubeVersion.parse(kind.version) for kind in by_name}
    by_version = sorted(by_name, key=lambda kind: versions[kind.version], reverse=True)
    return sorted(by_version, key=lambda kind: _group_order(kind.group))


def _group_order(group: str) -> tuple[int, str]:
    return _PRIORITY.get(group, len(_PRIORITY)), group


def api_versions(
    kinds: Iterable[ResourceKind], *, addresses: Mapping[str, str]
) -> dict[str, object]:
    """Build the answer for `/api`.

    `addresses` has the address of the server for each network of clients, such as `0.0.0.0/0`.
    """
    versions = _versions(kind for kind in kinds if not kind.group)
    return {
        "kind": "APIVersions",
        "versions": versions,
        "serverAddressByClientCIDRs": [
            {"clientCIDR": network, "serverAddress": address}
            for network, address in addresses.items()
        ],
    }


def api_group_list(kinds: Iterable[ResourceKind]) -> dict[str, object]:
    """Build the answer for `/apis` for clients that do not support aggregated discovery."""
    ordered = [kind for kind in in_order(kinds) if kind.group]
    groups = [
        _group(name, _versions(members)) for name, members in groupby(ordered, lambda k: k.group)
    ]
    return {"kind": "APIGroupList", "apiVersion": "v1", "groups": groups}


def api_group(kinds: Iterable[ResourceKind], group: str) -> dict[str, object] | None:
    """Build the answer for `/apis/GROUP`; return None if the server has no kind in this group."""
    versions = _versions(kind for kind in kinds if kind.group == group)
    if not group or not versions:
        return None
    return {"kind": "APIGroup", "apiVersion": "v1", **_group(group, versions)}


def _versions(kinds: Iterable[ResourceKind]) -> list[str]:
    return list(dict.fromkeys(kind.version for kind in in_order(kinds)))


def _group(name: str, versions: list[str]) -> dict[str, object]:
    listed = [{"groupVersion": f"{name}/{each}", "version": each} for each in versions]
    return {"name": name, "versions": listed, "preferredVersion": listed[0]}


def api_resource_list(
    kinds: Iterable[ResourceKind], group: str, version: str
) -> dict[str, object] | None:
    """Build the answer for `/api/v1` or `/apis/GROUP/VERSION`; None if no kind is served there."""
    members = [kind for kind in in_order(kinds) if (kind.group, kind.version) == (group, version)]
    if not members:
        return None
    # In kube-apiserver, the list for /api/v1 has no apiVersion.
    head = {"apiVersion": "v1"} if group else {}
    return {
        "kind": "APIResourceList",
        **head,
        "groupVersion": members[0].api_version,
        "resources": [entry for kind in members for entry in _resources(kind)],
    }


def _resources(kind: ResourceKind) -> Iterable[dict[str, object]]:
    yield {
        "name": kind.plural,
        "singularName": kind.singular,
        "namespaced": kind.namespaced,
        "kind": kind.kind,
        "verbs": kind.verbs,
        **_names(kind),
        **({"storageVersionHash": stored} if (stored := _stored_as(kind)) else {}),
    }
    for part in _parts(kind):
        other = {} if part.group is None else {"group": part.group, "version": part.version}
        yield {
            "name": f"{kind.plural}/{part.name}",
            "singularName": "",
            "namespaced": kind.namespaced,
            **other,
            "kind": part.kind or kind.kind,
            "verbs": part.verbs,
        }


def _names(kind: ResourceKind) -> dict[str, object]:
    named = {"shortNames": kind.short_names, "categories": kind.categories}
    return {key: names for key, names in named.items() if names}


def _parts(kind: ResourceKind) -> list[Subresource]:
    # As in kube-apiserver: built-in kinds have their subresources sorted by name, and custom kinds
    # have status before scale.
    return sorted(kind.subresources, key=lambda part: part.name, reverse=kind.custom)


def aggregated_discovery(
    kinds: Iterable[ResourceKind], *, core: bool, version: Literal["v2", "v2beta1"] = "v2"
) -> dict[str, object]:
    """Build an aggregated discovery document: groups with their versions and resources.

    With `core` the document is for `/api` and has only the core group. Otherwise it is for `/apis`
    and has all other groups. kubectl before 1.30 first requests the document in the format v2beta1,
    which newer API servers no longer have.
    """
    ordered = [kind for kind in in_order(kinds) if core is not bool(kind.group)]
    return {
        "kind": "APIGroupDiscoveryList",
        "apiVersion": f"apidiscovery.k8s.io/{version}",
        "metadata": {},
        "items": [
            _discovered_group(name, members)
            for name, members in groupby(ordered, lambda kind: kind.group)
        ],
    }


def _discovered_group(name: str, members: Iterable[ResourceKind]) -> dict[str, object]:
    versions = [
        {
            "version": version,
            "resources": [_discovered(kind) for kind in kinds],
            "freshness": "Current",
        }
        for version, kinds in groupby(members, lambda kind: kind.version)
    ]
    return {"metadata": {"name": name} if name else {}, "versions": versions}


def _discovered(kind: ResourceKind) -> dict[str, object]:
    subresources = [
        {"subresource": part.name, "responseKind": _part_kind(kind, part), "verbs": part.verbs}
        for part in _parts(kind)
    ]
    return {
        "resource": kind.plural,
        "responseKind": _response_kind(kind),
        "scope": "Namespaced" if kind.namespaced else "Cluster",
        "singularResource": kind.singular,
        "verbs": kind.verbs,
        **_names(kind),
        **({"subresources": subresources} if subresources else {}),
    }


def _response_kind(kind: ResourceKind, name: str = "") -> dict[str, str]:
    # An empty string means the group or version of the document. kube-apiserver fills these fields
    # only for custom kinds.
    group, version = (kind.group, kind.version) if kind.custom else ("", "")
    return {"group": group, "version": version, "kind": name or kind.kind}


def _part_kind(kind: ResourceKind, part: Subresource) -> dict[str, str]:
    if part.group is None:
        return _response_kind(kind, part.kind)
    return {"group": part.group, "version": part.version, "kind": part.kind}


def storage_version_hash(group: str, version: str, kind: str) -> str:
    """Compute the storage version hash of a kind, as kube-apiserver does.

    >>> storage_version_hash("", "v1", "ConfigMap")
    'qFsyl6wFWjQ='
    """
    hashed = hashlib.sha256(f"{group}/{version}/{kind}".encode()).digest()
    return base64.b64encode(hashed[:8]).decode()


# Kinds that kube-apiserver stores in another version or group than it serves.
_STORED_ELSEWHERE = {
    ("apiextensions.k8s.io", "CustomResourceDefinition"): ("apiextensions.k8s.io", "v1beta1"),
    ("autoscaling", "HorizontalPodAutoscaler"): ("autoscaling", "v2"),
    ("events.k8s.io", "Event"): ("", "v1"),
}


def _stored_as(kind: ResourceKind) -> str:
    """Return the storage version hash of a kind; "" for a kind that is not stored."""
    if kind.storage_hash or kind.custom or not {"create", "get"} <= set(kind.verbs):
        return kind.storage_hash
    own = kind.group, kind.version
    return storage_version_hash(*_STORED_ELSEWHERE.get((kind.group, kind.kind), own), kind.kind)


def content_hash(content: bytes) -> str:
    """Compute a hash of a document's content, for its URL and its ETag."""
    return hashlib.sha256(content).hexdigest().upper()


def etag(content: bytes) -> str:
    """Compute the ETag of a document, including the quotes."""
    return f'"{content_hash(content)}"'


_ARCHITECTURES = {"x86_64": "amd64", "amd64": "amd64", "aarch64": "arm64", "arm64": "arm64"}


def version_info(release: str = "1.35.0", *, built: str = "1970-01-01T00:00:00Z") -> dict[str, str]:
    """Build the answer for `/version`; `release` is the Kubernetes version that it states.

    >>> version_info("1.33.2")["minor"]
    '33'
    """
    claimed = SemVer.complete(release)
    major, minor = str(claimed.major), str(claimed.minor)
    machine = platform.machine().lower()
    return {
        "major": major,
        "minor": minor,
        "emulationMajor": major,
        "emulationMinor": minor,
        "minCompatibilityMajor": major,
        "minCompatibilityMinor": str(max(claimed.minor - 1, 0)),
        "gitVersion": f"v{str(claimed).partition('+')[0]}+polyver.{__version__}",
        "gitCommit": "unknown",
        "gitTreeState": "clean",
        "buildDate": built,
        "goVersion": f"python{platform.python_version()}",
        "compiler": sys.implementation.name,
        "platform": f"{sys.platform}/{_ARCHITECTURES.get(machine, machine)}",
    }
