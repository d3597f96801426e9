"""Admission of Conversions: refuse writes and deletions that would leave a kind without conversion.

A new or changed Conversion must fit the CustomResourceDefinition of its kind. A Conversion that its
kind still needs must not be deleted. The controller of Conversions checks each Conversion again:
kube-apiserver may have stored a Conversion without calling the admission webhook.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from polyver.apis.conversion_kind import (
    CONVERSIONS,
    FORCED,
    converter_of,
    needed_versions,
    place_of,
    versions_in_use,
)
from polyver.core import PolyverError, listed
from polyver.kube.objects.kinds import ResourceKind
from polyver.kube.objects.status import Cause, forbidden, invalid
from polyver.kube.server.admission import AdmissionRequest
from polyver.webhook.configurations import AdmissionRegistration

__all__ = ["CONVERSIONS_WANTED", "ConversionChecks", "Find"]

Find = Callable[[str], Awaitable[Mapping[str, Any] | None]]
"""Reads a CustomResourceDefinition by its name; returns None if it does not exist."""

CONVERSIONS_WANTED = AdmissionRegistration(
    "checks",
    group=CONVERSIONS.group,
    plural=CONVERSIONS.names.plural,
    versions=("v1alpha1",),
    operations=("CREATE", "UPDATE", "DELETE"),
    mutates=False,
    scope="Cluster",
    # polyver itself adds and removes finalizers. These writes must succeed even while the webhook
    # of polyver does not run.
    conditions={
        "spec-changes": "oldObject == null || object == null || object.spec != oldObject.spec"
    },
)


class ConversionChecks:
    """Checks Conversions before they are stored or deleted.

    A stored Conversion must fit the CustomResourceDefinition of its kind. A Conversion that its
    kind still needs must not be deleted.
    """

    def __init__(self, find: Find) -> None:
        self._find = find

    def handles(self, kind: ResourceKind, operation: str) -> bool:
        known = (CONVERSIONS.group, CONVERSIONS.names.plural)
        return (kind.group, kind.plural) == known and operation in ("CREATE", "UPDATE", "DELETE")

    async def mutate(self, review: AdmissionRequest) -> None:
        pass

    async def validate(self, review: AdmissionRequest) -> None:
        if review.operation == "DELETE":
            await self._check_deletion(review)
        elif review.object is not None and not review.subresource:
            await self._check_content(review, review.object)

    async def _check_content(self, review: AdmissionRequest, conversion: dict[str, Any]) -> None:
        if review.old is not None and review.old.get("spec") == conversion.get("spec"):
            return  # only the spec is checked, not labels or finalizers
        definition = await self._find(review.name) if review.name else None
        try:
            converter_of(conversion, definition)
        except PolyverError as error:
            hint = f"; {error.hint}" if error.hint else ""
            cause = Cause(place_of(error), f"Invalid value: {error.fact}{hint}")
            raise invalid(review.kind, review.name, [cause]) from None

    async def _check_deletion(self, review: AdmissionRequest) -> None:
        crd = await self._find(review.name)
        if crd is None or review.old is None or "deletionTimestamp" in crd["metadata"]:
            return
        used = versions_in_use(crd)
        if needed := needed_versions(review.old, crd):
            text = (
                f"{review.name} serves or stores {listed(needed)}; without this Conversion, "
                "objects would lose fields at their next write; first make the kind serve and "
                "store only one version, or delete the CustomResourceDefinition, or annotate the "
                f"Conversion with {FORCED}={','.join(needed)}"
            )
            raise forbidden(review.kind, review.name, text)
        if len(used) > 1:
            review.warnings.append(
                f"{review.name} serves or stores {listed(used)}, which are no longer converted: "
                "requests for other versions than the stored one fail until the "
                "CustomResourceDefinition names another webhook"
            )
