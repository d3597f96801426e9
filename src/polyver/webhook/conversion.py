"""Answer ConversionReviews: convert the body of a request to the body of the answer.

Fields that no rule reads are copied as raw JSON: decoding a list of large objects would cost more
than converting them.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cached_property
from math import inf
from time import monotonic
from typing import Any, Protocol

import msgspec

from polyver.core import PolyverError
from polyver.core.errors import listed
from polyver.core.plain import Object
from polyver.kube.objects.codec import Opened, encode_json
from polyver.kube.objects.converted_metadata import check_identity, check_kept, restored
from polyver.kube.objects.status import ApiError
from polyver.webhook.reviews import Key, ReviewBody, Reviewed, ReviewForm, TypeMeta, refused, shown

__all__ = [
    "CallsFunctions",
    "ConversionFailed",
    "Converters",
    "ReviewConverter",
    "Reviews",
    "review",
]

_LOG_SAYS_WHY = "the conversion failed; see the log of the webhook"
_NO_METADATA = msgspec.Raw()
_SUCCESS = {"status": "Success"}

Made = Object | msgspec.Raw
ConvertOpened = Callable[[Object], Made | None]


class ReviewConverter(Protocol):
    """Converts the objects of one kind between its versions."""

    @property
    def group(self) -> str: ...

    @property
    def kind(self) -> str: ...

    @property
    def versions(self) -> tuple[str, ...]: ...

    @property
    def calls_functions(self) -> bool:
        """True if conversions call functions of users, which may take any time or raise errors."""
        ...

    def convert_raw(self, raw: bytes | msgspec.Raw, version: str) -> bytes | msgspec.Raw:
        """Convert one whole object, as JSON, from any version of the kind to another version.

        Errors for users are raised as PolyverError. The method may be called from several threads.
        """
        ...

    def conversion_path(self, source: str, target: str) -> ConvertOpened | None:
        """Return a function that converts objects whose fields may be raw JSON, or None.

        With None, only `convert_raw` can convert between these versions. The function may change an
        object in place. It raises the same exceptions as `convert_raw`, and returns None for an
        object that only `convert_raw` can convert. It never returns metadata that an API server
        would refuse.
        """
        ...


Converters = Mapping[Key, ReviewConverter]


class _RequestBase(msgspec.Struct):
    desired: str = msgspec.field(name="desiredAPIVersion")
    uid: str = ""


class _Request(_RequestBase):
    objects: list[msgspec.Raw] | None = None


class _OpenedRequest(_RequestBase):
    objects: list[Opened] | None = None


class _Object(msgspec.Struct, rename="camel"):
    api_version: str
    kind: str
    metadata: msgspec.Raw = _NO_METADATA


_KIND, _GROUP = "ConversionReview", "apiextensions.k8s.io"
_form = ReviewForm(_KIND, _GROUP, msgspec.json.Decoder(ReviewBody[_Request]))
_opened_form = ReviewForm(_KIND, _GROUP, msgspec.json.Decoder(ReviewBody[_OpenedRequest]))
_object = msgspec.json.Decoder(_Object)


class ConversionFailed(Exception):
    """An object cannot be converted. `fault` is the exception of user code, if it was the cause."""

    def __init__(self, text: str, kind: Key | None = None, fault: BaseException | None = None):
        super().__init__(text)
        self.kind = kind
        self.fault = fault


class CallsFunctions(Exception):
    """A review needs conversion functions of `kind`, which must not be called in this thread."""

    def __init__(self, kind: Key) -> None:
        super().__init__(kind)
        self.kind = kind


def review(
    body: bytes | bytearray,
    converters: Converters,
    *,
    late: Callable[[], bool] = lambda: False,
    calling: Collection[Key] | None = None,
) -> Reviewed:
    """Answer the body of one ConversionReview; for `late` and `calling` see `Reviews.review`.

    >>> review(b"{}", {}).status
    400
    """
    return Reviews(converters).review(body, late=late, calling=calling)


class Reviews:
    """Answers ConversionReviews with fixed converters. Several threads may use it at once."""

    def __init__(self, converters: Converters) -> None:
        self._converters = converters
        self._paths: _Paths = {}
        self._calls_functions = any(each.calls_functions for each in converters.values())

    def answer(
        self,
        body: bytes | bytearray,
        until: float = inf,
        calling: Collection[Key] | None = None,
    ) -> Reviewed:
        """Answer the body of a request; stop with a failure at the monotonic time `until`.

        For `calling`, see `review`.
        """
        return self.review(body, late=lambda: monotonic() > until, calling=calling)

    def review(
        self,
        body: bytes | bytearray,
        *,
        late: Callable[[], bool],
        calling: Collection[Key] | None,
    ) -> Reviewed:
        """Answer the body of a request; stop with a failure when `late` returns True.

        `late` reports that the client no longer waits for an answer. `calling` are the kinds whose
        conversion functions may be called in this thread; None allows all kinds. If another kind
        needs its functions, raise CallsFunctions with this kind.
        """
        # Python's garbage collector is off during a conversion by rules. The memory of a review is
        # freed at its end without the collector, whose search for cycles would cost more than the
        # conversion. The collector stays on if functions of users may run, because a function may
        # run for ever.
        may_call = self._calls_functions and (calling is None or len(calling) > 0)
        paused = gc.isenabled() and not may_call
        if paused:
            gc.disable()
        try:
            version, request = _read(body)
            reviewing = _Reviewing(request.desired, self._converters, self._paths, calling)
            return _Review(version, request, body, reviewing, late).answer()
        except ApiError as error:
            return refused(error)
        finally:
            if paused:
                gc.enable()


def _read(body: bytes | bytearray) -> tuple[str, _Request | _OpenedRequest]:
    """Decode a body; return the apiVersion of the review, and its request.

    If all objects have only the standard fields, they are decoded as `Opened`; otherwise they stay
    raw JSON.
    """
    try:
        return _opened_form.read(body)
    except ApiError:
        return _form.read(body)


_Paths = dict[tuple[str, str, str], ConvertOpened]
"""Functions that convert objects without calling user code.

The keys are the apiVersion, the kind and the target apiVersion of an object.
"""


class _Review:
    """Answers one review; converts its objects one after the other."""

    def __init__(
        self,
        version: str,
        request: _Request | _OpenedRequest,
        body: bytes | bytearray,
        reviewing: _Reviewing,
        late: Callable[[], bool],
    ) -> None:
        self._version = version
        self._request = request
        self._body = body
        self._late = late
        self._reviewing = reviewing

    @cached_property
    def _raw(self) -> list[msgspec.Raw]:
        """All objects as raw JSON."""
        return _form.read(self._body)[1].objects or []

    def answer(self) -> Reviewed:
        done: list[Made] = []
        try:
            self._convert(done)
        except ConversionFailed as failed:
            about = f"{_name(self._raw[len(done)])} (objects[{len(done)}])"
            text = f"{about} cannot be converted to {self._request.desired}: {failed}"
            body = self._response([], {"status": "Failure", "message": text})
            made = self._reviewing
            kind = failed.kind or ("", "")
            return Reviewed(200, body, made.counts, made.version, kind, failed.fault, about)
        made = self._reviewing
        return Reviewed(200, self._response(done, _SUCCESS), made.counts, made.version)

    def _convert(self, done: list[Made]) -> None:
        given: Sequence[Opened | msgspec.Raw] = self._request.objects or []
        reviewing, late = self._reviewing, self._late
        for number, each in enumerate(given):
            if late():
                told = f"the timeout is over with {number} of {len(given)} objects converted"
                raise ConversionFailed(told)
            made = reviewing.opened(each) if type(each) is Opened else None
            done.append(reviewing.one(self._raw[number]) if made is None else made)

    def _response(self, done: Sequence[Made], result: Mapping[str, str]) -> bytes:
        response = {"uid": self._request.uid, "convertedObjects": done, "result": result}
        return encode_json({"apiVersion": self._version, "kind": _KIND, "response": response})


class _Reviewing:
    """Converts the objects of one review to the version that the review requests."""

    def __init__(
        self,
        wanted: str,
        converters: Converters,
        paths: _Paths,
        calling: Collection[Key] | None,
    ) -> None:
        self._wanted = wanted
        self._converters = converters
        self._paths = paths
        self._calling = calling
        self.group, _, self.version = wanted.rpartition("/")
        self.counts: dict[Key, int] = {}
        """The number of converted objects, by kind."""

    def opened(self, given: Opened) -> Made | None:
        """Convert an object that has only standard fields; None if only `one` can convert it."""
        named = given.api_version, given.kind, self._wanted
        path = self._paths.get(named) or self._path(*named)
        if path is None:
            return None
        key = self.group, given.kind
        try:
            made = path(given.fields())
        except BaseException as error:
            raise _not_converted(error, key) from None
        if made is not None:
            self.counts[key] = self.counts.get(key, 0) + 1
        return made

    def _path(self, version: str, kind: str, wanted: str) -> ConvertOpened | None:
        group, _, source = version.rpartition("/")
        converter = self._converters.get((group, kind))
        if converter is None or group != self.group or source == self.version:
            return None
        if source not in converter.versions or self.version not in converter.versions:
            return None
        _check_calling(converter, self._calling)
        path = converter.conversion_path(source, self.version)
        if path is not None and not converter.calls_functions:
            self._paths[version, kind, wanted] = path
        return path

    def one(self, raw: msgspec.Raw) -> msgspec.Raw:
        """Convert an object of any form; raise ConversionFailed if it cannot be converted."""
        found = _decoded(raw, "it")
        if found.api_version == self._wanted:
            return raw
        key, converter = self._converter(found)
        try:
            converted = converter.convert_raw(raw, self.version)
            self._check(found, converted)
        except BaseException as error:
            raise _not_converted(error, key) from None
        self.counts[key] = self.counts.get(key, 0) + 1
        return msgspec.Raw(converted)

    def _converter(self, found: _Object) -> tuple[Key, ReviewConverter]:
        group, _, version = found.api_version.rpartition("/")
        if group != self.group:
            raise ConversionFailed(f"it is of the group {group or 'without a name'}")
        converter = self._converters.get((group, found.kind))
        if converter is None:
            known = listed([_served(each) for each in self._converters.values()])
            raise ConversionFailed(
                f"{found.kind}.{group} is not served here; known: {known or 'nothing'}"
            )
        for each in (version, self.version):
            if each not in converter.versions:
                raise ConversionFailed(
                    f"{found.kind}.{group} has no version {each}; "
                    f"known: {listed(converter.versions)}",
                    (group, found.kind),
                )
        _check_calling(converter, self._calling)
        return (group, found.kind), converter

    def _check(self, before: _Object, converted: bytes | msgspec.Raw) -> None:
        """Raise an error if an API server would refuse the result, or undo a part of it."""
        content = bytes(converted)
        # API servers write these three fields first. A result that begins with the same fields
        # needs no further check.
        head = f'{{"apiVersion":"{self._wanted}","kind":"{before.kind}","metadata":'.encode()
        if before.metadata and content.startswith(head + bytes(before.metadata)):
            return
        after = _decoded(content, "the result of the conversion")
        if (after.api_version, after.kind) != (self._wanted, before.kind):
            raise ConversionFailed(f"the conversion returned {after.kind} of {after.api_version}")
        if bytes(after.metadata) != bytes(before.metadata):
            _check_metadata(before.metadata, after.metadata)


def _not_converted(error: BaseException, kind: Key) -> ConversionFailed:
    """Build the failure for an object. The reason is included only if the error is meant for users.

    SystemExit that user code raises is handled like other errors: it must not end the worker
    thread.
    """
    if isinstance(error, PolyverError | ConversionFailed):
        return ConversionFailed(str(error), kind)
    return ConversionFailed(_LOG_SAYS_WHY, kind, error)


def _check_calling(converter: ReviewConverter, calling: Collection[Key] | None) -> None:
    key = converter.group, converter.kind
    if calling is not None and converter.calls_functions and key not in calling:
        raise CallsFunctions(key)


def _decoded(raw: bytes | msgspec.Raw, what: str) -> _Object:
    try:
        return _object.decode(raw)
    except msgspec.ValidationError as error:
        raise ConversionFailed(
            f"{what} is not an object with an apiVersion and a kind: {error}"
        ) from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ConversionFailed(f"{what} is not JSON: {error}") from None


def _check_metadata(before: msgspec.Raw, after: msgspec.Raw) -> None:
    old, new = _plain(before), _plain(after)
    check_identity({"metadata": old}, {"metadata": new})
    known = old if isinstance(old, dict) else {}
    restored(known, new)
    check_kept(known, new)


def _plain(raw: msgspec.Raw) -> Any:
    try:
        return msgspec.json.decode(raw) if raw else None
    except (msgspec.MsgspecError, UnicodeError) as error:
        raise ConversionFailed(
            f"its metadata contains a value that cannot be read: {error}"
        ) from None


def _served(converter: ReviewConverter) -> str:
    return f"{converter.kind}.{converter.group} ({', '.join(converter.versions)})"


class _Metadata(msgspec.Struct):
    name: object = ""
    namespace: object = ""


class _Named(TypeMeta, rename="camel"):
    metadata: _Metadata | None = None


_named = msgspec.json.Decoder(_Named)


def _name(raw: msgspec.Raw) -> str:
    """Return the kind and name of an object for messages."""
    try:
        found = _named.decode(raw)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return "an object without a name"
    metadata = found.metadata or _Metadata()
    place = f"{shown(metadata.namespace)}/" if metadata.namespace else ""
    return f"{shown(found.kind)} {place}{shown(metadata.name)}"
