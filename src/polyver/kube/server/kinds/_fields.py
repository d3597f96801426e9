"""Validation of references to pod fields and resources, in variables and in volumes."""

from __future__ import annotations

import re
from collections.abc import Iterator

from polyver.kube.objects.status import Cause, invalid_field, required, unsupported

__all__ = ["IN_FILES", "IN_VARIABLES", "check_field", "check_resource_field"]

IN_VARIABLES = frozenset(
    """metadata.name metadata.namespace metadata.uid spec.nodeName spec.serviceAccountName
    status.hostIP status.hostIPs status.podIP status.podIPs""".split()
)
IN_FILES = frozenset(
    """metadata.annotations metadata.labels metadata.name metadata.namespace metadata.uid""".split()
)
_RESOURCES = [
    f"{side}.{name}"
    for side in ("limits", "requests")
    for name in ("cpu", "ephemeral-storage", "memory")
]
_ONE_OF_MAP = re.compile(r"metadata\.(annotations|labels)\['.*'\]")


def check_field(path: str, field: str, known: frozenset[str]) -> Iterator[Cause]:
    place = f"{path}.fieldPath"
    if not field:
        yield required(place)
    elif field not in IN_VARIABLES | IN_FILES and not _ONE_OF_MAP.fullmatch(field):
        text = f"error converting fieldPath: field label not supported: {field}"
        yield invalid_field(place, field, text)
    elif field not in known and not _ONE_OF_MAP.fullmatch(field):
        yield unsupported(place, field, sorted(known))


def check_resource_field(path: str, resource: str) -> Iterator[Cause]:
    if not resource:
        yield required(f"{path}.resource")
    elif resource not in _RESOURCES and ".hugepages-" not in resource:
        yield unsupported(f"{path}.resource", resource, _RESOURCES)
