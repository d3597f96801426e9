"""Runtime that serves function revisions by Deployments on a cluster."""

from polyver.compositions.runtimes.kubernetes._runtime import KubernetesRuntime

__all__ = ["KubernetesRuntime"]
