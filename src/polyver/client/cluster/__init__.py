"""A real Kubernetes API server as a client: found by kubeconfig or service account, over HTTPS."""

from polyver.client.cluster._access import Access, Cluster, User, find_access, read_access
from polyver.client.cluster._client import ClusterClient
from polyver.client.cluster._limits import Limits
from polyver.client.cluster._problems import NoAccess, Unauthorized, Unreachable, Untrusted

__all__ = [
    "Access",
    "Cluster",
    "ClusterClient",
    "Limits",
    "NoAccess",
    "Unauthorized",
    "Unreachable",
    "Untrusted",
    "User",
    "find_access",
    "read_access",
]
