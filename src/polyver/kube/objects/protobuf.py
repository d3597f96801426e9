"""Decodes request bodies in protobuf to the plain data of the equivalent JSON.

Go clients send built-in kinds in protobuf by default. All responses are JSON, so this module has no
encoder.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

from polyver.kube.objects.protobuf_wire import MalformedError, WireField, empty_field, fields
from polyver.kube.objects.status import ApiError, bad_request
from polyver.kube.objects.type_shapes import Shape

__all__ = ["PROTOBUF_PREFIX", "decode_protobuf"]

PROTOBUF_PREFIX = b"k8s\x00"
"""The bytes with which each body in protobuf begins."""

_DEEPEST = 100
"""The maximum nesting of messages. The objects of built-in kinds are nested much less."""
_DEEPER = "the object is nested too deeply"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_NO_TIME = -62135596800
"""The seconds of a time that is not set: Go's zero time, the first second of the year 1."""


def _numbered(name: str, **fields: Shape) -> Shape:
    """Build the shape of a message; its fields get the numbers 1, 2, 3, … in their order."""
    return Shape("object", name=name, fields=fields, numbers=dict(enumerate(fields, start=1)))


_STRING, _BOOL = Shape("string"), Shape("boolean")
_INT32, _INT64 = Shape("integer", format="int32"), Shape("integer", format="int64")
_STRINGS = Shape("array", items=_STRING)
_TYPE_META = _numbered("TypeMeta", apiVersion=_STRING, kind=_STRING)
_TIMESTAMP = _numbered("Timestamp", seconds=_INT64, nanos=_INT32)
_QUANTITY = _numbered("Quantity", text=_STRING)
_INT_OR_STRING = _numbered("IntOrString", type=_INT64, number=_INT32, text=_STRING)
_EXTRA_VALUE = _numbered("ExtraValue", items=_STRINGS)


def decode_protobuf(
    body: bytes, shape_of: Callable[[str, str], Shape | None], *, expected: str = ""
) -> dict[str, Any]:
    """Decode the object in a body by the shape that `shape_of` returns for its apiVersion and kind.

    If the body lacks apiVersion or kind, `shape_of` gets "" for the missing field, and must use the
    apiVersion or kind of the request path. The decoded object then lacks the same field. `expected`
    is the kind of the request path, for error messages; "" means that they name no kind.

    >>> config_map = Shape("object", fields={"data": Shape("object", values=Shape("string"))},
    ...                    numbers={2: "data"})
    >>> types, data = b"\\n\\x02v1\\x12\\tConfigMap", b"\\x12\\x06\\n\\x01k\\x12\\x01v"
    >>> body = PROTOBUF_PREFIX + b"\\n\\x0f" + types + b"\\x12\\x08" + data
    >>> decode_protobuf(body, lambda api_version, kind: config_map)
    {'apiVersion': 'v1', 'kind': 'ConfigMap', 'data': {'k': 'v'}}
    """
    types: dict[str, Any] = {}
    try:
        raw = _opened(body, types)
        return types | _message(raw, _shape(types, shape_of), 0)
    except MalformedError as error:
        problem = str(error)
    except RecursionError:
        problem = _DEEPER
    raise _refusal(problem, body, types, expected)


def _opened(body: bytes, types: dict[str, Any]) -> bytes:
    """Return the bytes of the object in a body.

    The body also states apiVersion and kind of the object; they are added to `types`.
    """
    if not body:
        raise MalformedError("empty data")
    if not body.startswith(PROTOBUF_PREFIX):
        prefix = " ".join(map(str, PROTOBUF_PREFIX))
        raise MalformedError(
            f"provided data does not appear to be a protobuf message, expected prefix [{prefix}]"
        )
    if len(body) == len(PROTOBUF_PREFIX):
        raise MalformedError("empty body")
    raw, type_meta = b"", b""
    for field in fields(body[len(PROTOBUF_PREFIX) :], "Unknown"):
        if field.number == 1:
            type_meta = field.bytes("typeMeta")
        elif field.number == 2:
            raw = field.bytes("raw")
    types |= {key: text for key, text in _message(type_meta, _TYPE_META, 0).items() if text}
    return raw


def _shape(types: Mapping[str, str], shape_of: Callable[[str, str], Shape | None]) -> Shape:
    api_version, kind = types.get("apiVersion", ""), types.get("kind", "")
    if (shape := shape_of(api_version, kind)) is None:
        raise MalformedError(f'no kind "{kind}" is registered for version "{api_version}"')
    return shape


def _refusal(problem: str, body: bytes, types: Mapping[str, str], expected: str) -> ApiError:
    if not expected:
        return bad_request(problem)
    if kind := types.get("kind"):
        version = types.get("apiVersion", "").rpartition("/")[2]
        handled = f'{kind} in version "{version}" cannot be handled as a {expected}'
        return bad_request(f"{handled}: {problem}")
    start = body[:30].decode(errors="replace") if body.startswith(b"{") else body[:30].hex()
    start = start + (" ..." if len(body) > 30 else "") if body else "<empty>"
    wanted = f"the object provided is unrecognized (must be of type {expected})"
    return bad_request(f"{wanted}: {problem} ({start})")


# Messages, by their shapes


def _message(data: bytes, shape: Shape, depth: int) -> dict[str, Any]:
    if depth > _DEEPEST:
        raise MalformedError(_DEEPER)
    found: dict[str, Any] = {}
    for field in fields(data, shape.name.rpartition(".")[2]):
        if (name := shape.numbers.get(field.number)) is not None:
            _put(found, name, field, shape.fields[name], depth)
        elif (part := shape.inlined.get(field.number)) is not None:
            found |= _message(field.bytes(part.name), part, depth + 1)
    for name in shape.omits & found.keys():
        # Go writes a field that is not a pointer even if it is not set.
        if not found[name]:
            del found[name]
    return found


def _put(found: dict[str, Any], name: str, field: WireField, shape: Shape, depth: int) -> None:
    if shape.type == "array" and not shape.format:
        found.setdefault(name, []).extend(_items(field, shape.items or _STRING, name, depth))
    elif shape.type == "object" and shape.values is not None:
        key, value = _entry(field.bytes(name), shape.values, name, depth)
        found.setdefault(name, {})[key] = value
    else:
        found[name] = _value(field, shape, name, depth)


def _items(field: WireField, shape: Shape, name: str, depth: int) -> Iterator[Any]:
    """Return the list items in one field of a message.

    This is one item, or several numbers if the field has them in the packed encoding.
    """
    parts = field.unpacked() if _is_varint(shape) else (field,)
    return (_value(part, shape, name, depth) for part in parts)


def _entry(data: bytes, shape: Shape, name: str, depth: int) -> tuple[str, Any]:
    """Decode an entry of a mapping: a message whose two fields are the key and the value."""
    key, value = "", empty_field(holds_number=_is_varint(shape))
    for field in fields(data, ""):
        if field.number == 1:
            key = field.text(name)
        elif field.number == 2:
            value = field
    return key, _value(value, shape, name, depth)


def _is_varint(shape: Shape) -> bool:
    return shape.type in ("integer", "boolean")


def _value(field: WireField, shape: Shape, name: str, depth: int) -> Any:
    match shape.type:
        case "integer":
            return field.integer(name, 32 if shape.format == "int32" else 64)
        case "boolean":
            return bool(field.integer(name))
        case "number":
            return field.double(name)
        case "string" if not shape.format:
            return field.text(name)
        case "object" if not shape.format:
            return _message(field.bytes(name), shape, depth + 1)
        case _:
            return _special(field.bytes(name), shape, depth + 1)


# Types that encode themselves as JSON


def _special(data: bytes, shape: Shape, depth: int) -> Any:
    match shape.format:
        case "byte":
            return base64.b64encode(data).decode()
        case "date-time" | "microtime":
            return _time(data, depth, exact=shape.format == "microtime")
        case "quantity":
            return _message(data, _QUANTITY, depth).get("text") or "0"
        case "int-or-string":
            return _int_or_string(data, depth)
        case "raw" | "fields" | "json":
            return _json(data, shape)
        case _:
            return _composed(data, shape, depth)


def _composed(data: bytes, shape: Shape, depth: int) -> Any:
    """Decode a message that has several forms in JSON, such as a schema or a list of strings."""
    name, inner = shape.name, shape.values or Shape("object")
    match shape.format:
        case "strings":
            return _message(data, _EXTRA_VALUE, depth).get("items", [])
        case "schema-or-bool":
            parts = _message(data, _numbered(name, allows=_BOOL, schema=inner), depth)
            return parts.get("schema", parts.get("allows", False))
        case "schema-or-array":
            several = Shape("array", items=inner)
            parts = _message(data, _numbered(name, one=inner, several=several), depth)
            return parts.get("several") or parts.get("one")
        case "schema-or-strings":
            parts = _message(data, _numbered(name, one=inner, several=_STRINGS), depth)
            return parts.get("several") or parts.get("one")
        case other:
            raise MalformedError(f"{other or shape.type} has no protobuf encoding")


def _json(data: bytes, shape: Shape) -> Any:
    raw = b""
    for field in fields(data, shape.name.rpartition(".")[2]):
        if field.number == 1:
            raw = field.bytes("raw")
    try:
        return msgspec.json.decode(raw) if raw else None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise MalformedError(f"JSON inside the message: {error}") from None


def _int_or_string(data: bytes, depth: int) -> int | str:
    parts = _message(data, _INT_OR_STRING, depth)
    if (chosen := parts.get("type", 0)) not in (0, 1):
        raise MalformedError(f"an IntOrString has no type {chosen}")
    found: int | str = parts.get("text", "") if chosen else parts.get("number", 0)
    return found


def _time(data: bytes, depth: int, *, exact: bool) -> str | None:
    parts = _message(data, _TIMESTAMP, depth)
    seconds, nanos = parts.get("seconds", 0), parts.get("nanos", 0) if exact else 0
    # Like Go, truncate towards zero, even for a time before 1970.
    micros = int(nanos / 1000)
    if not data or (seconds, micros) == (_NO_TIME, 0):
        return None
    try:
        time = _EPOCH + timedelta(seconds=seconds, microseconds=micros)
    except OverflowError:
        raise MalformedError(f"a time {seconds} seconds from 1970 is out of range") from None
    precision = "microseconds" if exact else "seconds"
    return time.replace(tzinfo=None).isoformat(timespec=precision) + "Z"
