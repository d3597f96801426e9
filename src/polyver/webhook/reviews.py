"""Decode ConversionReviews and AdmissionReviews, and build error answers."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Generic, NamedTuple, TypeVar

import msgspec

from polyver.kube.objects.codec import encode_json
from polyver.kube.objects.status import ApiError

__all__ = [
    "OUTCOMES",
    "Admitted",
    "Key",
    "ReviewBody",
    "ReviewForm",
    "Reviewed",
    "TypeMeta",
    "bad",
    "refused",
    "shown",
]

R = TypeVar("R")
Key = tuple[str, str]
"""The group and the kind of an object."""


OUTCOMES = ("allowed", "changed", "refused")


class Admitted(NamedTuple):
    """The decision of the admission chain on one write, for metrics."""

    act: str
    """The part of the admission chain: `mutate` or `validate`."""
    kind: Key
    result: str
    """The decision: `allowed`, `changed` or `refused`."""


_NOTHING: Mapping[Key, int] = MappingProxyType({})


class Reviewed(msgspec.Struct, frozen=True):
    """The answer to one request, and data about it for metrics and logs."""

    status: int
    body: bytes
    objects: Mapping[Key, int] = _NOTHING
    """The number of converted objects, by kind."""
    version: str = ""
    """The version to which the objects were converted; empty if there are none."""
    failed: Key | None = None
    """The kind of the object whose conversion failed; None if no conversion failed."""
    fault: BaseException | None = None
    """The exception that user code raised, for the log, not for clients; None if none did."""
    about: str = ""
    """The object for which user code raised the exception; empty if there is no exception."""
    admitted: Admitted | None = None


def refused(error: ApiError) -> Reviewed:
    """Build the answer for a request that is refused."""
    return Reviewed(error.code, encode_json(error.status))


class TypeMeta(msgspec.Struct, rename="camel"):
    """The apiVersion and kind that a body states."""

    api_version: object = None
    kind: object = None


class ReviewBody(TypeMeta, Generic[R], rename="camel"):
    """The body of a review: its apiVersion and kind, and a request of the type R."""

    request: R | None = None


class ReviewForm(Generic[R]):
    """Decodes one kind of review, such as ConversionReview, in its versions v1 and v1beta1."""

    def __init__(self, kind: str, group: str, decoder: msgspec.json.Decoder[ReviewBody[R]]) -> None:
        self.kind = kind
        self._called = f"{'an' if kind[0] in 'AEIOU' else 'a'} {kind}"
        self._versions = (f"{group}/v1", f"{group}/v1beta1")
        self._decoder = decoder

    def read(self, body: bytes | bytearray) -> tuple[str, R]:
        """Decode a review; return its apiVersion, which the answer repeats, and its request."""
        try:
            found = self._decoder.decode(_text(body))
        except msgspec.ValidationError as error:
            self._check(self._type_meta(body))
            raise bad(f"the body is not {self._called}: {error}") from None
        except RecursionError:
            raise _too_deep() from None
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise bad(f"the body is not JSON: {error}") from None
        version = self._check(found)
        if found.request is None:
            raise bad(f"the {self.kind} has no request")
        return version, found.request

    def _type_meta(self, body: bytes | bytearray) -> TypeMeta:
        """Decode only the version and kind of a body, for an error message."""
        try:
            return _type_meta_decoder.decode(body)
        except msgspec.ValidationError:
            raise bad(f"the body is not an object, so it is not {self._called}") from None
        except RecursionError:
            raise _too_deep() from None
        except msgspec.DecodeError as error:  # after the value of the wrong type
            raise bad(f"the body is not JSON: {error}") from None

    def _check(self, found: TypeMeta) -> str:
        if found.kind == self.kind and found.api_version in self._versions:
            return str(found.api_version)
        found_type = f"{shown(found.kind)} of {shown(found.api_version)}"
        raise bad(f"the body is {found_type}, not {self._called} of {' or '.join(self._versions)}")


_type_meta_decoder = msgspec.json.Decoder(TypeMeta)


def _text(body: bytes | bytearray) -> bytes | bytearray:
    """Return a body; raise an error if it is not valid UTF-8.

    The decoder does not check this for objects that stay undecoded.
    """
    if not body.isascii():
        body.decode()
    return body


def shown(value: object) -> str:
    """Return at most 100 characters of a string in a body; "nothing" for other values."""
    return value[:100] if isinstance(value, str) and value else "nothing"


def _too_deep() -> ApiError:
    return bad("the body is nested too deeply")


def bad(text: str) -> ApiError:
    """Return the error for a malformed review."""
    return ApiError(400, "BadRequest", text)
