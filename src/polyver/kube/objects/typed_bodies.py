"""Decodes request bodies in JSON and YAML, with kube-apiserver's error messages.

A body of a built-in kind is decoded by its type, and unknown and duplicate fields are reported. A
body of a custom resource is decoded to plain data, and duplicate fields are reported.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import msgspec

from polyver.kube.objects._structs import DecodingStopped, Walk, what_is
from polyver.kube.objects.codec import encode_sorted
from polyver.kube.objects.kinds import ResourceKind
from polyver.kube.objects.status import ApiError, bad_request
from polyver.kube.objects.type_shapes import Shape
from polyver.languages.values.json_values import DEEPEST, Pairs, Undecodable, read, read_plain
from polyver.languages.values.parse import InvalidManifest, YamlReader
from polyver.languages.values.strings import as_number

__all__ = [
    "DEEPEST",
    "Decoded",
    "Undecodable",
    "decode_plain",
    "decode_typed",
    "read_yaml",
    "strictly_refused",
    "undecodable",
    "what_is",
]

_MOST_PROBLEMS = 100


@dataclass(frozen=True, slots=True)
class Decoded:
    """A decoded object, in the form that responses have, and the problems of its body."""

    value: dict[str, Any]
    problems: tuple[str, ...] = ()
    """Errors that do not prevent decoding, such as `unknown field "spec.zzz"`, in their order."""


def decode_typed(body: bytes | dict[str, Any], shape: Shape) -> Decoded:
    """Decode a body, or data that was parsed before, as an object of a built-in kind.

    Unknown fields and fields with null are dropped. A field with an empty value is dropped if
    responses leave out such a field. Fields that responses always have are added. Defaults are not
    added.

    >>> from polyver.kube.objects.builtin import shape_of
    >>> decode_typed(b'{"data": {}, "zzz": 1}', shape_of("", "v1", "ConfigMap"))
    Decoded(value={'metadata': {}}, problems=('unknown field "zzz"',))
    """
    value = read(body) if isinstance(body, bytes) else body
    _check_identity(value)
    walk = Walk()
    try:
        found = walk.value(Pairs() if value is None else value, shape)
    except DecodingStopped as stop:
        raise Undecodable(str(stop)) from None
    if walk.error:
        raise Undecodable(walk.error)
    return Decoded(found, tuple(walk.problems)[:_MOST_PROBLEMS])


def decode_plain(body: bytes) -> tuple[Any, tuple[str, ...]]:
    """Decode a body as plain data; return it with an error message for each duplicate field.

    The last value of a duplicate field counts.

    >>> decode_plain(b'{"spec": {"size": 5.0, "size": 6.0}}')
    ({'spec': {'size': 6}}, ('duplicate field "spec.size"',))
    """
    value, problems = read_plain(body)
    _check_identity(value)
    return value, problems[:_MOST_PROBLEMS]


def read_yaml(body: bytes) -> tuple[Any, list[str]]:
    """Decode the first document of a YAML body.

    Return it with an error message for each duplicate key. The last value of a duplicate key
    counts. As in kube-apiserver, the keys are sorted.
    """
    doubled: list[tuple[str, int]] = []
    try:
        documents = YamlReader(body.decode(), "body", doubled=doubled).documents()
        value, _ = next(documents, (None, None))
    except (InvalidManifest, UnicodeDecodeError) as error:
        raise Undecodable(_yaml_problem(error), unrecognized=True) from None
    text = encode_sorted(value)
    data = msgspec.json.decode(text)
    data = _numbers_held(data) if _LONG.search(text) else data
    lines = [f'  line {line}: key "{key}" already set in map' for key, line in doubled]
    return data, ["\n".join(["yaml: unmarshal errors:", *lines])] if lines else []


_LONG = re.compile(rb"[0-9]{19}")


def _numbers_held(value: Any) -> Any:
    """Convert integers outside int64 in plain data to floats, as kube-apiserver does."""
    match value:
        case dict():
            return {key: _numbers_held(each) for key, each in value.items()}
        case list():
            return [_numbers_held(each) for each in value]
        case int() if not isinstance(value, bool):
            return as_number(value)
    return value


def _yaml_problem(error: InvalidManifest | UnicodeDecodeError) -> str:
    """Build the message that kube-apiserver's YAML library has for an error.

    This library counts most lines from zero.
    """
    if isinstance(error, UnicodeDecodeError):
        return "yaml: invalid leading UTF-8 octet"
    line = int(error.at.rpartition(":")[2] or 1) - 1
    where = f" line {line}:" if line else ""
    return f"yaml:{where} {error.fact.removeprefix('not YAML: ')}"


def undecodable(kind: ResourceKind, body: bytes, error: Undecodable) -> ApiError:
    """Build the error for a request body that cannot be decoded."""
    if error.unrecognized:
        what = f"the object provided is unrecognized (must be of type {kind.kind})"
        problem = f"couldn't get version/kind; json parse error: {error}"
        return bad_request(f"{what}: {problem} ({_summary(body)})")
    return bad_request(f"{_unhandled(kind)}: {error}")


def strictly_refused(kind: ResourceKind, problems: Iterable[str]) -> ApiError:
    """Build the error for unknown and duplicate fields when `fieldValidation` is `Strict`."""
    return bad_request(f"{_unhandled(kind)}: strict decoding error: {', '.join(problems)}")


def _unhandled(kind: ResourceKind) -> str:
    return f'{kind.kind} in version "{kind.version}" cannot be handled as a {kind.kind}'


def _summary(body: bytes) -> str:
    if not body:
        return "<empty>"
    start, more = body[:30], " ..." if len(body) > 30 else ""
    return (start.decode(errors="replace") if start[:1] == b"{" else start.hex()) + more


_IDENTITY = (
    r'struct { APIVersion string "json:\"apiVersion,omitempty\"";'
    r' Kind string "json:\"kind,omitempty\"" }'
)


def _check_identity(value: Any) -> None:
    """Raise `Undecodable` if apiVersion or kind is not a string.

    kube-apiserver decodes these two fields before all others.
    """
    if value is None:
        return
    if not isinstance(value, dict | Pairs):
        raise _unidentified(f"{what_is(value)} into Go value of type {_IDENTITY}")
    for key, found in value.items() if isinstance(value, dict) else value:
        if key in ("apiVersion", "kind") and not isinstance(found, str | None):
            raise _unidentified(f"{what_is(found)} into Go struct field .{key} of type string")


def _unidentified(problem: str) -> Undecodable:
    return Undecodable(f"json: cannot unmarshal {problem}", unrecognized=True)
