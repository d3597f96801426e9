"""Checks of the literals in a CEL expression that has no type errors."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from polyver.languages.cel._formatting import Clause, Malformed, clauses, type_problem
from polyver.languages.cel._moments import (
    FIRST_SECOND,
    LAST_SECOND,
    parse_duration,
    parse_timestamp,
)
from polyver.languages.cel._nodes import CelCall, CelLiteral, CelNode, ListNode, MapNode, inside
from polyver.languages.cel._tokens import CelProblem
from polyver.languages.cel._types import CelType
from polyver.languages.cel._values import CelEvaluationError
from polyver.languages.regexp import InvalidPattern, read_pattern

__all__ = ["literal_problems"]


def literal_problems(tree: CelNode, *, mixed: bool = False) -> list[CelProblem]:
    """Return the errors in literals: lists and maps with mixed types, and invalid strings.

    A string literal is checked where it must be a duration, a timestamp, a pattern or a format.
    With `mixed`, the values of a list or map may have several types.
    """
    found = list(_walk(tree))
    return [
        *(() if mixed else _mixed(tree)),
        *(
            problem
            for check in (_durations, _timestamps, _patterns, _formats)
            for node in found
            for problem in check(node)
        ),
    ]


def _mixed(node: CelNode) -> Iterator[CelProblem]:
    """Yield errors for lists and maps with several types of values, except in calls of `format`."""
    if isinstance(node, CelCall) and node.function == "format":
        return
    if isinstance(node, ListNode):
        yield from _mixed_items(node)
    if isinstance(node, MapNode):
        yield from _mixed_entries(node)
    for each in inside(node):
        yield from _mixed(each)


def _mixed_items(node: ListNode) -> Iterator[CelProblem]:
    kinds = [_kind(item, optional=n in node.optional) for n, item in enumerate(node.items)]
    for item, kind in zip(node.items[1:], kinds[1:], strict=True):
        if kind != kinds[0]:
            yield CelProblem(item.at, f"expected type '{kinds[0]}' but found '{kind}'")
            return


def _mixed_entries(node: MapNode) -> Iterator[CelProblem]:
    first = node.entries[0] if node.entries else None
    for entry in node.entries[1:]:
        assert first is not None
        assert isinstance(entry.key, CelNode)
        assert isinstance(first.key, CelNode)
        if entry.key.type != first.key.type:
            text = f"expected type '{first.key.type}' but found '{entry.key.type}'"
            yield CelProblem(entry.key.at, text)
        one = _kind(first.value, optional=first.optional)
        other = _kind(entry.value, optional=entry.optional)
        if one != other:
            yield CelProblem(entry.value.at, f"expected type '{one}' but found '{other}'")


def _kind(node: CelNode, *, optional: bool) -> CelType | None:
    kind = node.type
    return kind.params[0] if optional and kind is not None and kind.params else kind


def _walk(node: CelNode) -> Iterator[CelCall]:
    if isinstance(node, CelCall):
        yield node
    for each in inside(node):
        yield from _walk(each)


def _literal(node: CelCall, function: str, number: int) -> CelLiteral | None:
    given = node.args[number] if node.function == function and len(node.args) > number else None
    return given if isinstance(given, CelLiteral) and isinstance(given.value, str) else None


def _fails(read: Callable[[str], object], text: str) -> bool:
    try:
        return read(text) is None
    except (CelEvaluationError, InvalidPattern):
        return True


def _durations(node: CelCall) -> Iterator[CelProblem]:
    given = _literal(node, "duration", 0)
    if given is not None and _fails(parse_duration, given.value):
        yield CelProblem(given.at, "invalid duration argument")


def _timestamps(node: CelCall) -> Iterator[CelProblem]:
    given = node.args[0] if node.function == "timestamp" and node.args else None
    if not isinstance(given, CelLiteral):
        return
    value = given.value
    if isinstance(value, str) and _fails(parse_timestamp, value):
        yield CelProblem(given.at, "invalid timestamp argument")
    if type(value) is int and not FIRST_SECOND <= value <= LAST_SECOND:
        yield CelProblem(given.at, "invalid timestamp argument")


def _patterns(node: CelCall) -> Iterator[CelProblem]:
    given = _literal(node, "matches", 0 if node.target else 1)
    if given is not None and _fails(read_pattern, given.value):
        yield CelProblem(given.at, "invalid matches argument")


_KINDS = {
    "d": ("int", "uint"),
    "f": ("double", "string"),
    "e": ("double", "string"),
    "b": ("int", "uint", "bool"),
    "x": ("int", "uint", "string", "bytes"),
    "o": ("int", "uint"),
}
_SHOWN = frozenset(
    ("list", "map", "int", "uint", "double", "bool", "string", "timestamp", "bytes", "duration")
) | {"type", "null"}
_PROTO = {"duration": "google.protobuf.Duration", "timestamp": "google.protobuf.Timestamp"}


def _formats(node: CelCall) -> Iterator[CelProblem]:
    if node.function != "format" or "string_format" not in node.overloads:
        return
    text, values = node.target, node.args[0]
    if not isinstance(text, CelLiteral) or not isinstance(values, ListNode):
        return
    used = 0
    try:
        for part in clauses(str(text.value)):
            if isinstance(part, str):
                continue
            if used >= len(values.items):
                yield CelProblem(node.at, f"index {used} out of range")
                return
            problem = _problem(part, values.items[used])
            if problem is not None:
                yield problem
                return
            used += 1
    except Malformed as problem:
        yield CelProblem(node.at, str(problem))
        return
    if used < len(values.items):
        given = f"(expected {used}, got {len(values.items)})"
        yield CelProblem(node.at, f"too many arguments supplied to string.format {given}")


def _problem(clause: Clause, value: CelNode) -> CelProblem | None:
    kind = value.type
    if kind is None or kind.is_dyn:
        return None
    wanted = _KINDS.get(clause.letter.lower())
    if wanted is None:
        return _unshown(value, kind)
    if kind.kind in wanted:
        return None
    return CelProblem(value.at, type_problem(clause.letter, _PROTO.get(kind.name, kind.name)))


def _unshown(value: CelNode, kind: CelType) -> CelProblem | None:
    """Return the error if a value contains a type that `%s` cannot write; otherwise None."""
    parts = kind.params if kind.kind in ("list", "map") else ()
    if kind.kind in _SHOWN and all(each.kind in _SHOWN or each.is_dyn for each in parts):
        return None
    return CelProblem(value.at, type_problem("s", kind.name))
