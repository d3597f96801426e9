"""The built-in kinds of Kubernetes: their names for discovery, and their types as shapes."""

from __future__ import annotations

from functools import cache

from polyver.kube.objects.builtin._kinds import builtin_kinds
from polyver.kube.objects.builtin._types import shape_named, type_names
from polyver.kube.objects.type_shapes import Shape

__all__ = ["builtin_kinds", "metadata_shape", "shape_of"]


def shape_of(group: str, version: str, kind: str) -> Shape:
    """Return the shape of a built-in kind, or of a request body such as DeleteOptions.

    DeleteOptions and Status are in the group `meta.k8s.io`, and also in `v1`, which clients send.

    >>> shape_of("apps", "v1", "Deployment").fields["spec"].name
    'v1.DeploymentSpec'
    """
    name = f"{group.partition('.')[0] or 'core'}/{version}.{kind}"
    if not group and name not in type_names():
        name = f"meta/{version}.{kind}"
    return shape_named(name)


@cache
def metadata_shape() -> Shape:
    """Return the shape of `metadata`, which is the same in all kinds."""
    return shape_of("", "v1", "ConfigMap").fields["metadata"]
