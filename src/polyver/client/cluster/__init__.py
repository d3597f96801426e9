"""A client of a Kubernetes cluster over HTTPS, configured by a kubeconfig or service account."""

from polyver.client.cluster._access import (
    ClientLimits,
    ClusterAccess,
    KubeconfigCluster,
    KubeconfigUser,
    NoAccess,
    Unauthorized,
    Unreachable,
    Untrusted,
    find_access,
    read_access,
)
from polyver.client.cluster._client import ClusterClient

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
