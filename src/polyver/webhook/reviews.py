"""Reviews of any sort: how a body is read, and what is known of its answer."""

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
    """What a chain said to one write."""

    act: str
    """mutate or validate."""
    kind: Key
    result: str
    """One of the outcomes."""


_NOTHING: Mapping[Key, int] = MappingProxyType({})


class Reviewed(msgspec.Struct, frozen=True):
    """What is answered to one request, and what is to be counted and logged of it."""

    status: int
    body: bytes
    objects: Mapping[Key, int] = _NOTHING
    """How many were converted, by their kinds."""
    failed: Key | None = None
    """The kind of the object that could not be."""
    fault: BaseException | None = None
    """What user code raised: for the log, and not for clients."""
    about: str = ""
    """The object that it was raised for."""
    admitted: Admitted | None = None


def refused(error: ApiError) -> Reviewed:
    """The answer to what is no review."""
    return Reviewed(error.code, encode_json(error.status))


class TypeMeta(msgspec.Struct, rename="camel"):
    """What a body says that it is."""

    api_version: object = None
    kind: object = None


class ReviewBody(TypeMeta, Generic[R], rename="camel"):
    """A body, with requests of one type."""

    request: R | None = None


class ReviewForm(Generic[R]):
    """A kind of review, in the versions of a group."""

    def __init__(self, kind: str, group: str, decoder: msgspec.json.Decoder[ReviewBody[R]]) -> None:
        self.kind = kind
        self._called = f"{'an' if kind[0] in 'AEIOU' else 'a'} {kind}"
        self._versions = (f"{group}/v1", f"{group}/v1beta1")
        self._decoder = decoder

    def read(self, body: bytes | bytearray) -> tuple[str, R]:
        """The version of a review, in which it is answered, and what it asks."""
        try:
            found = self._decoder.decode(_text(body))
        except msgspec.ValidationError as error:
            self._check(self._said(body))
            raise bad(f"the body is not {self._called}: {error}") from None
        except RecursionError:
            raise _too_deep() from None
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise bad(f"the body is not JSON: {error}") from None
        version = self._check(found)
        if found.request is None:
            raise bad(f"the {self.kind} has no request")
        return version, found.request

    def _said(self, body: bytes | bytearray) -> TypeMeta:
        """What a body says it is; what is no object says nothing."""
        try:
            return _head.decode(body)
        except msgspec.ValidationError:
            raise bad(f"the body is not an object, so it is not {self._called}") from None
        except RecursionError:
            raise _too_deep() from None
        except msgspec.DecodeError as error:  # behind what was of a wrong type
            raise bad(f"the body is not JSON: {error}") from None

    def _check(self, found: TypeMeta) -> str:
        if found.kind == self.kind and found.api_version in self._versions:
            return str(found.api_version)
        said = f"{shown(found.kind)} of {shown(found.api_version)}"
        raise bad(f"the body is {said}, not {self._called} of {' or '.join(self._versions)}")


_head = msgspec.json.Decoder(TypeMeta)


def _text(body: bytes | bytearray) -> bytes | bytearray:
    """The body, if it is text; objects are passed on without a look inside."""
    if not body.isascii():
        body.decode()
    return body


def shown(value: object) -> str:
    """What a body says somewhere, as far as it is text."""
    return value[:100] if isinstance(value, str) and value else "nothing"


def _too_deep() -> ApiError:
    return bad("the body is nested too deeply")


def bad(text: str) -> ApiError:
    """What cannot be understood."""
    return ApiError(400, "BadRequest", text)
