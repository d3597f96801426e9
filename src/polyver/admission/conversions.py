"""Conversions that are applied: what makes no sense is refused before anybody relies on it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from polyver.admission.chain import Review
from polyver.admission.configurations import Wanted
from polyver.capabilities.apis.conversion_kind import CONVERSIONS, converter_of, place_of
from polyver.core import PolyverError
from polyver.objects.kinds import Kind
from polyver.objects.status import Cause, invalid

__all__ = ["CONVERSIONS_WANTED", "ConversionChecks", "Find"]

Find = Callable[[str], Awaitable[Mapping[str, Any] | None]]
"""The CustomResourceDefinition of a name, if there is one."""

CONVERSIONS_WANTED = Wanted(
    "checks",
    group=CONVERSIONS.group,
    plural=CONVERSIONS.names.plural,
    versions=("v1alpha1",),
    mutates=False,
    scope="Cluster",
)


class ConversionChecks:
    """Compares a Conversion with the definition of its kind."""

    def __init__(self, find: Find) -> None:
        self._find = find

    def handles(self, kind: Kind, operation: str) -> bool:
        known = (CONVERSIONS.group, CONVERSIONS.names.plural)
        return (kind.group, kind.plural) == known and operation in ("CREATE", "UPDATE")

    async def mutate(self, review: Review) -> None:
        pass

    async def validate(self, review: Review) -> None:
        if review.object is None or review.subresource:
            return
        definition = await self._find(review.name) if review.name else None
        try:
            converter_of(review.object, definition)
        except PolyverError as error:
            hint = f"; {error.hint}" if error.hint else ""
            cause = Cause(place_of(error), f"Invalid value: {error.fact}{hint}")
            raise invalid(review.kind, review.name, [cause]) from None
