"""Admission of objects whose kind is converted by polyver, or has hooks in Python.

Preserved fields are values that the version of an object cannot express. If an update leaves out
the preserved fields of the stored object, admission copies them to the new object. Admission
refuses an object that cannot be converted to each version of its kind: if it were stored, every
list request that contains it would fail.

Hooks are Python functions of the kind's author that fill in defaults of objects, or check objects.

An earlier or later version of polyver may have written preserved fields in a format that this
version of polyver does not know. This version then keeps the stored string unchanged and does not
restore the fields. A client that writes such an object gets a warning. The log names the first
object of each kind with each unknown format, even if that object was only read.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

from polyver.apis.conversion import ANNOTATION, BESIDE, Converter
from polyver.apis.declaring import Kind as DeclaredKind
from polyver.core import PolyverError
from polyver.core.plain import Object
from polyver.kube.http.logs import Log
from polyver.kube.http.worker_threads import DaemonThreadPool
from polyver.kube.objects.kinds import ResourceKind
from polyver.kube.objects.status import ApiError, Cause, internal, invalid
from polyver.kube.server.admission import AdmissionRequest
from polyver.webhook.configurations import AdmissionRegistration

__all__ = ["ConvertedKinds", "log_unknown_formats", "wanted_by"]

T = TypeVar("T")
_WRITES = ("CREATE", "UPDATE")
_THREADS = 8


class ConvertedKinds:
    """Admission of objects whose kind has a converter, or is declared in Python.

    When polyver begins to serve a Conversion, its kind gets a converter. So the set of these kinds
    can change while the server runs.
    """

    def __init__(
        self,
        converter: Callable[[ResourceKind], Converter | None],
        kinds: Mapping[str, DeclaredKind] | None = None,
    ) -> None:
        """Create the link of the admission chain for these kinds.

        `converter` returns the current converter of a kind, or None if the kind has none. `kinds`
        maps the name of each CustomResourceDefinition to its kind, for kinds declared in Python.
        """
        self._converter = converter
        self._kinds = dict(kinds or {})
        self._threads: dict[str, DaemonThreadPool] = {}
        """Threads in which hooks and conversion functions run. Each kind has its own threads, so
        that a function that does not end cannot block other kinds.
        """

    def handles(self, kind: ResourceKind, operation: str) -> bool:
        if not kind.custom or operation not in _WRITES:
            return False
        return kind.resource in self._kinds or self._converter(kind) is not None

    async def mutate(self, review: AdmissionRequest) -> None:
        if review.object is None or review.subresource:
            return
        converter = self._converter(review.kind)
        if review.old is not None and converter is not None:
            keeping = converter.keeping
            # A server-side apply changes only the fields that the client applies. So it usually
            # leaves the preserved fields in the object, and nothing must be restored. They are
            # restored if a field manager applied them itself earlier: without them in the new apply
            # request, server-side apply removes them from the object.
            if not review.applied or _is_applied(review.old, keeping.path):
                keeping.restore(review.object, review.old)
        declared, version = self._kinds.get(review.kind.resource), review.kind.version
        if declared is not None and declared.has_hooks(version)[0]:
            obj = review.object
            made = await self._called(review, lambda: _defaulted(declared, version, obj))
            obj.clear()
            obj |= made

    async def validate(self, review: AdmissionRequest) -> None:
        if review.object is None:
            return
        obj, version = review.object, review.kind.version
        declared, converter = self._kinds.get(review.kind.resource), self._converter(review.kind)
        causes: list[Cause] = []
        if declared is not None and declared.has_hooks(version)[1] and not review.subresource:
            found = await self._called(review, lambda: declared.problems(version, obj, review.old))
            causes += [Cause(each.path, f"Invalid value: {each.text}") for each in found]
        if converter is not None:
            if found_format := converter.unknown_format(obj):
                where = ".".join(converter.keeping.path[:2])
                review.warnings.append(
                    f"{where}: the preserved fields of this object ({found_format}) cannot be read "
                    "by this release of polyver: they are kept unchanged and not restored; a "
                    "release that supports their format restores them"
                )
            causes += await self._inconvertible(review, converter)
        if causes:
            raise invalid(review.kind, review.name, causes)

    async def _inconvertible(self, review: AdmissionRequest, converter: Converter) -> list[Cause]:
        """Convert the object to each other version; return the cause of a refusal if one fails.

        Return [] if all of these conversions succeed.
        """
        assert review.object is not None
        others = [each for each in converter.versions if each != review.kind.version]
        for version in others:
            try:
                if converter.calls_functions:
                    await self._timed(review, partial(converter.convert, review.object, version))
                else:
                    converter.convert(review.object, version)
            except (PolyverError, TimeoutError) as error:
                text = str(error) or f"did not answer within {review.timeout:g} s"
                return [Cause("", f"Invalid value: it cannot be converted to {version}: {text}")]
            except Exception as error:
                Log().failure("a conversion failed", error, object=review.name, version=version)
                text = f"it cannot be converted to {version}; see the log"
                return [Cause("", f"Invalid value: {text}")]
        return []

    async def _called(self, review: AdmissionRequest, function: Callable[[], T]) -> T:
        """Call a hook in a thread.

        If the hook raises an exception, raise it as an API error; if the exception is unexpected,
        also log it.
        """
        try:
            return await self._timed(review, function)
        except ApiError:
            raise
        except PolyverError as error:
            raise invalid(review.kind, review.name, [Cause(error.at, error.fact)]) from None
        except TimeoutError:
            raise internal(f"a hook did not answer within {review.timeout:g} s") from None
        except Exception as error:
            Log().failure("a hook failed", error, object=review.name)
            raise internal("a hook failed; see the log") from None

    async def _timed(self, review: AdmissionRequest, function: Callable[[], T]) -> T:
        threads = self._threads.setdefault(review.kind.resource, DaemonThreadPool(_THREADS))
        return await threads.run_within(review.timeout, function)


def _is_applied(old: Mapping[str, Any], path: Sequence[str]) -> bool:
    """Report whether a field manager of server-side apply owns the field at a path."""
    entries = old["metadata"].get("managedFields") or ()
    found = [each.get("fieldsV1") or {} for each in entries if each.get("operation") == "Apply"]
    for name in path:
        found = [each[f"f:{name}"] for each in found if f"f:{name}" in each]
    return bool(found)


def _defaulted(declared: DeclaredKind, version: str, obj: Object) -> Object:
    """Call the hooks that set defaults; return the object with these defaults.

    The hooks may change labels, annotations and finalizers, but not other metadata.
    """
    made = declared.defaulted(version, obj)
    fixed = ("apiVersion", "kind", "metadata")
    rest = {name: value for name, value in made.items() if name not in fixed}
    about = {"apiVersion": obj["apiVersion"], "kind": obj["kind"]}
    return about | {"metadata": _metadata(obj["metadata"], made.get("metadata"))} | rest


def _metadata(before: Mapping[str, Any], after: Any) -> Object:
    """Return the metadata `before` with the labels, annotations and finalizers of `after`."""
    free = ("labels", "annotations", "finalizers")
    kept = {name: value for name, value in before.items() if name not in free}
    return kept | {n: after[n] for n in free if n in after} if isinstance(after, dict) else kept


# Webhook registrations.


def wanted_by(kind: DeclaredKind) -> list[AdmissionRegistration]:
    """Return the admission registrations that the hooks and the conversion of a kind need.

    A registration names the requests that API servers must send to polyver for review. A kind that
    was read from a CustomResourceDefinition has no hooks. polyver converts every kind that has
    several versions, unless its conversion strategy is None.
    """
    definition = kind.definition()
    served = tuple(each.name for each in definition.versions if each.served)
    filled, checked = (
        tuple(name for name in served if kind.has_hooks(name)[which]) for which in (0, 1)
    )
    if is_converted(kind):
        parts = ("status",) if any(each.status for each in definition.versions) else ()
        conditions = {"carry-is-missing": _carry_missing(kind.converter)}
        found = [
            AdmissionRegistration(
                "carry", versions=served, operations=("UPDATE",), conditions=conditions
            ),
            AdmissionRegistration("checks", versions=served, mutates=False, parts=parts),
        ]
    else:
        found = [AdmissionRegistration("checks", versions=checked, mutates=False, exact=True)]
    found.append(AdmissionRegistration("defaults", versions=filled, exact=True))
    group, plural, scope = definition.group, definition.names.plural, definition.scope
    return [
        replace(each, group=group, plural=plural, scope=scope) for each in found if each.versions
    ]


def _carry_missing(converter: Converter | None) -> str:
    """Return a CEL condition that is true if an update leaves out the preserved fields.

    If there is no converter, the location of preserved fields is not known. The condition then
    tests the annotations in which polyver stores preserved fields by default.
    """
    usual = [("metadata", "annotations", name) for name in (ANNOTATION, BESIDE)]
    paths = converter.keeping.paths if converter else usual
    return " || ".join(
        f"({_has('oldObject', path)} && !({_has('object', path)}))" for path in paths
    )


def _has(obj: str, path: tuple[str, ...]) -> str:
    """Return a CEL expression that is true if the object `obj` has a value at a path.

    The expression tests each parent before its child, because CEL raises an error for a missing
    parent.
    """
    steps = [json.dumps(name) for name in path]
    places = [obj + "".join(f"[{step}]" for step in steps[:count]) for count in range(len(path))]
    return " && ".join(f"{step} in {place}" for step, place in zip(steps, places, strict=True))


def is_converted(kind: DeclaredKind) -> bool:
    """Report whether an API server calls a webhook to convert objects of a kind."""
    definition = kind.definition()
    return len(definition.versions) > 1 and definition.strategy != "None"


def log_unknown_formats(converter: Converter) -> Converter:
    """Make a converter log each unknown format of preserved fields once; return the converter.

    The log entry names the first object that has preserved fields in this format.
    """

    def log(found: str, name: str) -> None:
        Log().warning(
            "preserved fields cannot be read by this release, and are kept unchanged",
            kind=f"{converter.kind}.{converter.group}",
            object=name,
            found=found,
        )

    converter.on_unknown_format = log
    return converter
