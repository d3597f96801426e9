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
"""A group and a kind."""


OUTCOMES = ("allowed", "changed", "refused")


class Admitted(NamedTuple):
    """The decision of the chain on one write."""

    act: str
    """`mutate` or `validate`."""
    kind: Key
    result: str
    """One of OUTCOMES."""


_NOTHING: Mapping[Key, int] = MappingProxyType({})


class Reviewed(msgspec.Struct, frozen=True):
    """The answer to one request, and data for metrics and logs."""

    status: int
    body: bytes
    objects: Mapping[Key, int] = _NOTHING
    """The number of converted objects, by kind."""
    failed: Key | None = None
    """The kind of the object that could not be converted."""
    fault: BaseException | None = None
    """The exception of user code: for the log, not for clients."""
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
    """A body, with a request of one type."""

    request: R | None = None


class ReviewForm(Generic[R]):
    """One kind of review, with its API group and supported versions."""

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
    """Check that a body is valid UTF-8, and return it.

    The decoder does not check objects that stay undecoded.
    """
    if not body.isascii():
        body.decode()
    return body


def shown(value: object) -> str:
    """Return a value of a body for messages, if it is a string."""
    return value[:100] if isinstance(value, str) and value else "nothing"


def _too_deep() -> ApiError:
    return bad("the body is nested too deeply")


def bad(text: str) -> ApiError:
    """Return the error for a malformed review."""
    return ApiError(400, "BadRequest", text)
