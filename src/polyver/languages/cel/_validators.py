"""What is wrong with an expression whose types are right: literals that no function takes."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from polyver.languages.cel._formatting import Clause, Malformed, clauses, type_problem
from polyver.languages.cel._moments import (
    FIRST_SECOND,
    LAST_SECOND,
    parse_duration,
    parse_timestamp,
)
from polyver.languages.cel._nodes import Call, ListNode, Literal, MapNode, Node, inside
from polyver.languages.cel._tokens import Problem
from polyver.languages.cel._types import Type
from polyver.languages.cel._values import Failure
from polyver.languages.regexp import InvalidPattern, read_pattern

__all__ = ["literal_problems"]


def literal_problems(tree: Node) -> list[Problem]:
    """Durations, moments, patterns and formats that are written out and make no sense."""
    found = list(_walk(tree))
    return [
        *_mixed(tree),
        *(
            problem
            for check in (_durations, _timestamps, _patterns, _formats)
            for node in found
            for problem in check(node)
        ),
    ]


def _mixed(node: Node) -> Iterator[Problem]:
    """Lists and mappings that hold values of several types, but for what `format` gets."""
    if isinstance(node, Call) and node.function == "format":
        return
    if isinstance(node, ListNode):
        yield from _mixed_items(node)
    if isinstance(node, MapNode):
        yield from _mixed_entries(node)
    for each in inside(node):
        yield from _mixed(each)


def _mixed_items(node: ListNode) -> Iterator[Problem]:
    kinds = [_kind(item, optional=n in node.optional) for n, item in enumerate(node.items)]
    for item, kind in zip(node.items[1:], kinds[1:], strict=True):
        if kind != kinds[0]:
            yield Problem(item.at, f"expected type '{kinds[0]}' but found '{kind}'")
            return


def _mixed_entries(node: MapNode) -> Iterator[Problem]:
    first = node.entries[0] if node.entries else None
    for entry in node.entries[1:]:
        assert first is not None
        assert isinstance(entry.key, Node)
        assert isinstance(first.key, Node)
        if entry.key.type != first.key.type:
            text = f"expected type '{first.key.type}' but found '{entry.key.type}'"
            yield Problem(entry.key.at, text)
        one = _kind(first.value, optional=first.optional)
        other = _kind(entry.value, optional=entry.optional)
        if one != other:
            yield Problem(entry.value.at, f"expected type '{one}' but found '{other}'")


def _kind(node: Node, *, optional: bool) -> Type | None:
    kind = node.type
    return kind.params[0] if optional and kind is not None and kind.params else kind


def _walk(node: Node) -> Iterator[Call]:
    if isinstance(node, Call):
        yield node
    for each in inside(node):
        yield from _walk(each)


def _literal(node: Call, function: str, number: int) -> Literal | None:
    given = node.args[number] if node.function == function and len(node.args) > number else None
    return given if isinstance(given, Literal) and isinstance(given.value, str) else None


def _fails(read: Callable[[str], object], text: str) -> bool:
    try:
        return read(text) is None
    except (Failure, InvalidPattern):
        return True


def _durations(node: Call) -> Iterator[Problem]:
    given = _literal(node, "duration", 0)
    if given is not None and _fails(parse_duration, given.value):
        yield Problem(given.at, "invalid duration argument")


def _timestamps(node: Call) -> Iterator[Problem]:
    given = node.args[0] if node.function == "timestamp" and node.args else None
    if not isinstance(given, Literal):
        return
    value = given.value
    if isinstance(value, str) and _fails(parse_timestamp, value):
        yield Problem(given.at, "invalid timestamp argument")
    if type(value) is int and not FIRST_SECOND <= value <= LAST_SECOND:
        yield Problem(given.at, "invalid timestamp argument")


def _patterns(node: Call) -> Iterator[Problem]:
    given = _literal(node, "matches", 0 if node.target else 1)
    if given is not None and _fails(read_pattern, given.value):
        yield Problem(given.at, "invalid matches argument")


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


def _formats(node: Call) -> Iterator[Problem]:
    if node.function != "format" or "string_format" not in node.overloads:
        return
    text, values = node.target, node.args[0]
    if not isinstance(text, Literal) or not isinstance(values, ListNode):
        return
    used = 0
    try:
        for part in clauses(str(text.value)):
            if isinstance(part, str):
                continue
            if used >= len(values.items):
                yield Problem(node.at, f"index {used} out of range")
                return
            problem = _problem(part, values.items[used])
            if problem is not None:
                yield problem
                return
            used += 1
    except Malformed as problem:
        yield Problem(node.at, str(problem))
        return
    if used < len(values.items):
        given = f"(expected {used}, got {len(values.items)})"
        yield Problem(node.at, f"too many arguments supplied to string.format {given}")


def _problem(clause: Clause, value: Node) -> Problem | None:
    kind = value.type
    if kind is None or kind.is_dyn:
        return None
    wanted = _KINDS.get(clause.letter.lower())
    if wanted is None:
        return _unshown(value, kind)
    if kind.kind in wanted:
        return None
    return Problem(value.at, type_problem(clause.letter, _PROTO.get(kind.name, kind.name)))


def _unshown(value: Node, kind: Type) -> Problem | None:
    """Whether there is something in a value that has no text."""
    parts = kind.params if kind.kind in ("list", "map") else ()
    if kind.kind in _SHOWN and all(each.kind in _SHOWN or each.is_dyn for each in parts):
        return None
    return Problem(value.at, type_problem("s", kind.name))
