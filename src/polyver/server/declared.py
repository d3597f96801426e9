"""Kinds that polyver converts: their say in every write, before it is stored.

The carry that a client left out comes back, and an object that could not be shown in one of its
versions is not even stored: later it would be in the way of whole lists.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, TypeVar

import msgspec

from polyver.capabilities.apis.conversion import Converter
from polyver.capabilities.apis.conversion_kind import CONVERSIONS, converter_of, place_of
from polyver.capabilities.apis.declaring import Kind as DeclaredKind
from polyver.core import PolyverError
from polyver.objects.kinds import Kind
from polyver.objects.status import ApiError, Cause, internal, invalid
from polyver.server.admission import Review
from polyver.server.call import Server
from polyver.server.rules import Object
from polyver.serving.logs import Log

__all__ = ["ConversionChecks", "ConvertedKinds"]

T = TypeVar("T")
_DEFINITIONS = "/apiextensions.k8s.io/customresourcedefinitions/"
_TIMEOUT = 10.0
_decode = msgspec.json.Decoder(dict[str, Any]).decode


class ConvertedKinds:
    """For every kind that is converted in this process, and for those declared in Python."""

    def __init__(self, server: Server, kinds: Mapping[str, DeclaredKind] | None = None) -> None:
        self._server = server
        self._kinds = dict(kinds or {})
        """By the names of their definitions."""

    def handles(self, kind: Kind, operation: str) -> bool:
        if not kind.custom or operation not in ("CREATE", "UPDATE"):
            return False
        return kind.resource in self._kinds or self._converter(kind) is not None

    def _converter(self, kind: Kind) -> Converter | None:
        return self._server.conversions.get(kind.resource)

    async def mutate(self, review: Review) -> None:
        if review.object is None or review.subresource:
            return
        converter = self._converter(review.kind)
        if review.old is not None and converter is not None:
            _restore(review, converter, review.object, review.old)
        declared, version = self._kinds.get(review.kind.resource), review.kind.version
        if declared is not None and declared.has_hooks(version)[0]:
            obj = review.object
            made = await _called(review, lambda: declared.defaulted(version, obj))
            about = {"apiVersion": obj["apiVersion"], "kind": obj["kind"]}
            labelled = _metadata(obj["metadata"], made.get("metadata"))
            obj.clear()
            obj |= about | {"metadata": labelled} | _rest(made)

    async def validate(self, review: Review) -> None:
        if review.object is None:
            return
        obj, version = review.object, review.kind.version
        declared, converter = self._kinds.get(review.kind.resource), self._converter(review.kind)
        causes: list[Cause] = []
        if declared is not None and declared.has_hooks(version)[1] and not review.subresource:
            found = await _called(review, lambda: declared.problems(version, obj, review.old))
            causes += [Cause(each.path, f"Invalid value: {each.text}") for each in found]
        if converter is not None:
            causes += await self._inconvertible(review, converter)
        if causes:
            raise invalid(review.kind, review.name, causes)

    async def _inconvertible(self, review: Review, converter: Converter) -> list[Cause]:
        """Why an object cannot be shown in one of the versions."""
        assert review.object is not None
        others = [each for each in converter.versions if each != review.kind.version]
        for version in others:
            try:
                if converter.calls_functions:
                    await _threaded(partial(converter.convert, review.object, version))
                else:
                    converter.convert(review.object, version)
            except (PolyverError, TimeoutError) as error:
                text = str(error) or f"no answer within {_TIMEOUT:.0f} s"
                return [Cause("", f"Invalid value: it cannot be converted to {version}: {text}")]
            except Exception as error:
                Log().failure("a conversion failed", error, object=review.name, version=version)
                text = f"it cannot be converted to {version}, and the log says why"
                return [Cause("", f"Invalid value: {text}")]
        return []


def _restore(review: Review, converter: Converter, obj: Object, old: Mapping[str, Any]) -> None:
    # An apply from which it is missing has taken away all that was carried; unless somebody
    # had applied the carry itself, and does so no longer.
    if not review.applied or _is_applied(old, converter.keeping.path):
        converter.keeping.restore(obj, old)


def _is_applied(old: Mapping[str, Any], path: Sequence[str]) -> bool:
    """Whether somebody applied what is at a path."""
    entries = old["metadata"].get("managedFields") or ()
    found = [each.get("fieldsV1") or {} for each in entries if each.get("operation") == "Apply"]
    for name in path:
        found = [each[f"f:{name}"] for each in found if f"f:{name}" in each]
    return bool(found)


def _rest(made: Mapping[str, Any]) -> Object:
    fixed = ("apiVersion", "kind", "metadata")
    return {name: value for name, value in made.items() if name not in fixed}


def _metadata(before: Mapping[str, Any], after: Any) -> Object:
    """Hooks may set labels and annotations, and nothing else of metadata."""
    free = ("labels", "annotations", "finalizers")
    kept = {name: value for name, value in before.items() if name not in free}
    return kept | {n: after[n] for n in free if n in after} if isinstance(after, dict) else kept


async def _called(review: Review, function: Callable[[], T]) -> T:
    """What a hook gives; what goes wrong in it is for the log, and not for clients."""
    try:
        return await _threaded(function)
    except PolyverError as error:
        raise invalid(review.kind, review.name, [Cause(error.at, error.fact)]) from None
    except TimeoutError:
        raise internal(f"a hook gave no answer within {_TIMEOUT:.0f} s") from None
    except ApiError:
        raise
    except Exception as error:
        Log().failure("a hook failed", error, object=review.name)
        raise internal("a hook failed, and the log says why") from None


async def _threaded(function: Callable[[], T]) -> T:
    async with asyncio.timeout(_TIMEOUT):
        return await asyncio.to_thread(function)


class ConversionChecks:
    """Conversions that make no sense are refused when they are applied."""

    def __init__(self, server: Server) -> None:
        self._server = server

    def handles(self, kind: Kind, operation: str) -> bool:
        known = (CONVERSIONS.group, CONVERSIONS.names.plural)
        return (kind.group, kind.plural) == known and operation in ("CREATE", "UPDATE")

    async def mutate(self, review: Review) -> None:
        pass

    async def validate(self, review: Review) -> None:
        if review.object is None or review.subresource:
            return
        entry = self._server.store.get(f"{_DEFINITIONS}{review.name}")
        try:
            converter_of(review.object, _decode(entry.value) if entry else None)
        except PolyverError as error:
            hint = f"; {error.hint}" if error.hint else ""
            cause = Cause(place_of(error), f"Invalid value: {error.fact}{hint}")
            raise invalid(review.kind, review.name, [cause]) from None
