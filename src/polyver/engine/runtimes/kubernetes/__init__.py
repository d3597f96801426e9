"""Revisions served by Deployments on a cluster."""

from polyver.engine.runtimes.kubernetes._runtime import KubernetesRuntime

__all__ = ["KubernetesRuntime"]
