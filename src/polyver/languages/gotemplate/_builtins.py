"""Functions that every Go template has."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from urllib.parse import quote_plus

from polyver.languages.gotemplate._budget import RenderBudget
from polyver.languages.gotemplate._formatting import print_formatted
from polyver.languages.gotemplate._functions import FunctionTable
from polyver.languages.gotemplate._printing import is_printable, print_all, print_lines
from polyver.languages.gotemplate._values import (
    Byte,
    Int,
    NilDict,
    NilList,
    NilStrings,
    TemplateFailure,
    Texts,
    encoded,
    is_true,
    kind_of,
    type_of,
)

__all__ = ["BUILTINS"]

BUILTINS = FunctionTable("Go")
BUILTINS.put("not", "any", lambda value: not is_true(value))


def _decided(*_: object) -> object:
    raise AssertionError("the evaluation handles these")


BUILTINS.put("and or", "any any...", _decided)
BUILTINS.put("include", "string any", _decided)  # a function of Helm that renders a template

# Indexing


def _list_index(given: object, size: int) -> int:
    if given is None:
        raise TemplateFailure("cannot index slice/array with nil")
    if isinstance(given, bool) or not isinstance(given, int):
        raise TemplateFailure(f"cannot index slice/array with type {type_of(given)}")
    if not 0 <= given <= size:
        raise TemplateFailure(f"index out of range: {int(given)}")
    return int(given)


@BUILTINS.add("index", "any any...")
def _index(item: object, *keys: object) -> object:
    if item is None:
        raise TemplateFailure("index of untyped nil")
    for key in keys:
        item = _inside(item, key)
    return item


def _inside(item: object, key: object) -> object:
    if item is None:
        raise TemplateFailure("index of nil pointer")
    if isinstance(item, dict):
        if not isinstance(key, str):
            shown = f"has type {type_of(key)}; should be string"
            raise TemplateFailure(
                f"value {'is nil; should be of type string' if key is None else shown}"
            )
        return item.get(key, "" if isinstance(item, Texts) else None)
    if isinstance(item, str):
        item = [Byte(byte) for byte in encoded(item)]
    if not isinstance(item, list):
        raise TemplateFailure(f"can't index item of type {type_of(item)}")
    at = _list_index(key, len(item))
    if at == len(item):
        raise TemplateFailure(f"index out of range: {at}")
    return item[at]


@BUILTINS.add("len", "any")
def _length(value: object) -> Int:
    if isinstance(value, str):
        return Int(len(encoded(value)))
    if isinstance(value, list | dict):
        return Int(len(value))
    raise TemplateFailure(
        "len of nil pointer" if value is None else f"len of type {type_of(value)}"
    )


@BUILTINS.add("call", "any any...")
def _called(value: object, *_: object) -> object:
    raise TemplateFailure(
        "call of nil" if value is None else f"non-function of type {type_of(value)}"
    )


# Comparisons

_BASIC = {"bool": "bool", "string": "string", "float64": "float"}
_INTEGERS = frozenset(("int", "int64", "uint8", "uint64"))


def _basic(value: object) -> str:
    kind = kind_of(value)
    return "integer" if kind in _INTEGERS else _BASIC.get(kind, "")


@BUILTINS.add("eq", "any any...")
def _equal(one: object, *others: object) -> bool:
    if not others:
        raise TemplateFailure("missing argument for comparison")
    return any(_same(one, other) for other in others)


def _same(one: object, other: object) -> bool:
    first, second = _basic(one), _basic(other)
    if first != second:
        if one is not None and other is not None:
            raise _incompatible(one, other)
        return False
    if first:
        return one == other
    if one is None or other is None:
        return _is_nil(one) == _is_nil(other)
    if kind_of(one) != kind_of(other) or kind_of(one) in ("map", "slice"):
        return _uncomparable(one, other)
    return one is other or (kind_of(one) == "struct" and one == other)


def _is_nil(value: object) -> bool:
    return value is None or isinstance(value, NilList | NilStrings | NilDict)


def _uncomparable(one: object, other: object) -> bool:
    if kind_of(one) == kind_of(other) and (_is_nil(one) or _is_nil(other)):
        return _is_nil(one) == _is_nil(other)
    raise TemplateFailure(f"non-comparable types {type_of(one)} and {type_of(other)}")


def _incompatible(one: object, other: object) -> TemplateFailure:
    fact = f"incompatible types for comparison: {type_of(one)} and {type_of(other)}"
    hint = ""
    if {_basic(one), _basic(other)} == {"integer", "float"}:
        hint = "write both as integers (int …) or both as floats (float64 …)"
    return TemplateFailure(fact, hint)


BUILTINS.put("ne", "any any", lambda one, other: not _equal(one, other))


@BUILTINS.add("lt", "any any")
def _less(one: Any, other: Any) -> bool:
    first, second = _basic(one), _basic(other)
    if not first or not second:
        raise TemplateFailure("invalid type for comparison")
    if first != second:
        raise _incompatible(one, other)
    if first == "bool":
        raise TemplateFailure("invalid type for comparison")
    if first == "string":
        return encoded(one) < encoded(other)
    return bool(one < other)


@BUILTINS.add("le", "any any")
def _less_or_equal(one: object, other: object) -> bool:
    return _less(one, other) or _equal(one, other)


BUILTINS.put("gt", "any any", lambda one, other: not _less_or_equal(one, other))
BUILTINS.put("ge", "any any", lambda one, other: not _less(one, other))

# Strings

_HTML = str.maketrans(
    {"\0": "\ufffd", '"': "&#34;", "'": "&#39;", "&": "&amp;", "<": "&lt;", ">": "&gt;"}
)
_JS = {"\\": "\\\\", "'": "\\'", '"': '\\"', "<": "\\u003C", ">": "\\u003E", "&": "\\u0026"}
_JS["="] = "\\u003D"

BUILTINS.add("printf", "string any...", budgeted=True)(print_formatted)


@BUILTINS.add("print", "any...", budgeted=True)
def _print(budget: RenderBudget, *values: object) -> str:
    return print_all(budget, values)


@BUILTINS.add("println", "any...", budgeted=True)
def _println(budget: RenderBudget, *values: object) -> str:
    return print_lines(budget, values)


def _joined(budget: RenderBudget, values: Sequence[object]) -> str:
    """Write several values as one string; nil is written as `<no value>`."""
    if len(values) == 1 and isinstance(values[0], str):
        return values[0]
    return print_all(budget, ["<no value>" if value is None else value for value in values])


@BUILTINS.add("html", "any...", budgeted=True)
def _html(budget: RenderBudget, *values: object) -> str:
    return _joined(budget, values).translate(_HTML)


@BUILTINS.add("js", "any...", budgeted=True)
def _js(budget: RenderBudget, *values: object) -> str:
    return "".join(map(_js_char, _joined(budget, values)))


def _js_char(char: str) -> str:
    if char in _JS:
        return _JS[char]
    if char < " ":
        return f"\\u{ord(char):04X}"
    if char < "\x80" or is_printable(char):
        return char
    return "\ufffd" if 0xDC80 <= ord(char) <= 0xDCFF else f"\\u{ord(char):04X}"


@BUILTINS.add("urlquery", "any...", budgeted=True)
def _urlquery(budget: RenderBudget, *values: object) -> str:
    return quote_plus(encoded(_joined(budget, values)), safe="")
