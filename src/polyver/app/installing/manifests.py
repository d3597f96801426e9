"""The manifests of an installation, in the order of their dependencies."""

from __future__ import annotations

from typing import TYPE_CHECKING

from polyver.apis.conversion_kind import CONVERSIONS
from polyver.apis.crds import crd_of
from polyver.app.installing.options import LABELS, Installation, manifest
from polyver.app.installing.roles import access
from polyver.app.installing.workload import workload

if TYPE_CHECKING:
    from polyver.apis.declaring import Kind
    from polyver.core.plain import Object

__all__ = ["manifests"]


def manifests(installation: Installation) -> list[Object]:
    """Return the objects of an installation, the same each time.

    Webhook configurations are not among them: `polyver run` applies those when it can answer.
    """
    contributions = installation.contributions
    places = [installation.namespace, *(name for each in contributions for name in each.namespaces)]
    namespaces = [manifest("Namespace", name) for name in dict.fromkeys(places)]
    own = [kind for each in contributions for kind in each.kinds]
    crds = [_crd(kind, installation) for kind in (CONVERSIONS, *own, *installation.kinds)]
    return [*namespaces, *crds, *access(installation), *workload(installation)]


def _crd(kind: Kind, installation: Installation) -> Object:
    definition = kind.definition()
    crd = crd_of(definition, installation.webhook if kind.converter else None)
    labels = crd["metadata"].get("labels", {})
    metadata = {**crd["metadata"], "labels": {**labels, **LABELS}}
    spec = dict(crd["spec"])
    if not (kind.converter or definition.webhook or definition.strategy):
        # No conversion is stated, so a Conversion that is applied later may set it.
        spec.pop("conversion", None)
    return {**crd, "metadata": metadata, "spec": spec}
