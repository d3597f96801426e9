"""A client of a Kubernetes cluster over HTTPS, found by kubeconfig or service account."""

from polyver.client.cluster._access import (
    ClusterAccess,
    KubeconfigCluster,
    KubeconfigUser,
    find_access,
    read_access,
)
from polyver.client.cluster._client import ClusterClient
from polyver.client.cluster._limits import ClientLimits
from polyver.client.cluster._problems import NoAccess, Unauthorized, Unreachable, Untrusted

__all__ = [
    "ClientLimits",
    "ClusterAccess",
    "ClusterClient",
    "KubeconfigCluster",
    "KubeconfigUser",
    "NoAccess",
    "Unauthorized",
    "Unreachable",
    "Untrusted",
    "find_access",
    "read_access",
]
