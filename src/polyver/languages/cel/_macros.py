"""Macros such as `all` and `has`: calls that the parser replaces by another expression."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from polyver.core import PolyverError
from polyver.languages.cel._nodes import (
    CelCall,
    CelComprehension,
    CelIdentifier,
    CelLiteral,
    CelNode,
    CelSelect,
    ListNode,
    MapNode,
)

__all__ = ["InvalidMacro", "expand"]

_ACCUMULATOR = "@result"
_TAKEN = (_ACCUMULATOR, "__result__")


class InvalidMacro(PolyverError):
    """A macro with invalid arguments."""

    def __init__(self, position: int, problem: str) -> None:
        super().__init__(problem)
        self.position = position


def expand(at: int, function: str, target: CelNode | None, args: list[CelNode]) -> CelNode | None:
    """If a call is a macro, return the expression that replaces the call; otherwise return None."""
    known = _MACROS.get((function, len(args), target is not None))
    return known(_Maker(at), target, args) if known is not None else None


class _Maker:
    """Builds nodes that have the position of the macro call."""

    def __init__(self, at: int) -> None:
        self.at = at

    def call(self, function: str, *args: CelNode) -> CelNode:
        return CelCall(function, list(args), at=self.at)

    def literal(self, value: Any) -> CelNode:
        return CelLiteral(value, at=self.at)

    def accumulator(self) -> CelNode:
        return CelIdentifier(_ACCUMULATOR, at=self.at)

    def list(self, *items: CelNode) -> CelNode:
        return ListNode(list(items), at=self.at)

    def fold(
        self,
        over: CelNode | None,
        names: tuple[str, str],
        init: CelNode,
        condition: CelNode,
        step: CelNode,
        *,
        result: CelNode | None = None,
        accumulator: str = _ACCUMULATOR,
    ) -> CelNode:
        assert over is not None
        var, var2 = names
        result = result or self.accumulator()
        return CelComprehension(
            over, var, var2, accumulator, init, condition, step, result, at=self.at
        )


def _named(node: CelNode, problem: str) -> str:
    """Return the name of the variable that an argument of a macro declares.

    Raise `InvalidMacro` with the text `problem` if the argument is not a name.
    """
    if not isinstance(node, CelIdentifier):
        raise InvalidMacro(node.at, problem)
    if node.name in _TAKEN:
        raise InvalidMacro(node.at, "iteration variable overwrites accumulator variable")
    return node.name


_Expand = Callable[[_Maker, CelNode | None, list[CelNode]], CelNode]


def _has(maker: _Maker, _: CelNode | None, args: list[CelNode]) -> CelNode:
    if not isinstance(args[0], CelSelect):
        raise InvalidMacro(args[0].at, "invalid argument to has() macro")
    return CelSelect(args[0].operand, args[0].field, test=True, at=maker.at)


def _all(maker: _Maker, over: CelNode | None, names: tuple[str, str], test: CelNode) -> CelNode:
    condition = maker.call("@not_strictly_false", maker.accumulator())
    step = maker.call("_&&_", maker.accumulator(), test)
    return maker.fold(over, names, maker.literal(True), condition, step)


def _exists(maker: _Maker, over: CelNode | None, names: tuple[str, str], test: CelNode) -> CelNode:
    condition = maker.call("@not_strictly_false", maker.call("!_", maker.accumulator()))
    step = maker.call("_||_", maker.accumulator(), test)
    return maker.fold(over, names, maker.literal(False), condition, step)


def _exists_one(
    maker: _Maker, over: CelNode | None, names: tuple[str, str], test: CelNode
) -> CelNode:
    more = maker.call("_+_", maker.accumulator(), maker.literal(1))
    step = maker.call("_?_:_", test, more, maker.accumulator())
    result = maker.call("_==_", maker.accumulator(), maker.literal(1))
    return maker.fold(over, names, maker.literal(0), maker.literal(True), step, result=result)


_Quantify = Callable[[_Maker, CelNode | None, tuple[str, str], CelNode], CelNode]


def _quantified(quantify: _Quantify) -> _Expand:
    def one(maker: _Maker, over: CelNode | None, args: list[CelNode]) -> CelNode:
        return quantify(
            maker, over, (_named(args[0], "argument must be a simple name"), ""), args[1]
        )

    return one


def _quantified_two(quantify: _Quantify) -> _Expand:
    def two(maker: _Maker, over: CelNode | None, args: list[CelNode]) -> CelNode:
        return quantify(maker, over, _two_names(args), args[2])

    return two


def _two_names(args: list[CelNode]) -> tuple[str, str]:
    first = _named(args[0], "argument must be a simple name")
    second = _named(args[1], "argument must be a simple name")
    if first == second:
        raise InvalidMacro(args[1].at, f"duplicate variable name: {first}")
    return first, second


def _gathered(maker: _Maker, test: CelNode | None, step: CelNode) -> CelNode:
    return maker.call("_?_:_", test, step, maker.accumulator()) if test is not None else step


def _map(maker: _Maker, over: CelNode | None, args: list[CelNode]) -> CelNode:
    name = _named(args[0], "argument is not an identifier")
    step = maker.call("_+_", maker.accumulator(), maker.list(args[-1]))
    step = _gathered(maker, args[1] if len(args) == 3 else None, step)
    return maker.fold(over, (name, ""), maker.list(), maker.literal(True), step)


def _filter(maker: _Maker, over: CelNode | None, args: list[CelNode]) -> CelNode:
    name = _named(args[0], "argument is not an identifier")
    step = maker.call("_+_", maker.accumulator(), maker.list(args[0]))
    step = _gathered(maker, args[1], step)
    return maker.fold(over, (name, ""), maker.list(), maker.literal(True), step)


def _transform_list(maker: _Maker, over: CelNode | None, args: list[CelNode]) -> CelNode:
    names = _two_names(args)
    step = maker.call("_+_", maker.accumulator(), maker.list(args[-1]))
    step = _gathered(maker, args[2] if len(args) == 4 else None, step)
    return maker.fold(over, names, maker.list(), maker.literal(True), step)


def _transform_map(maker: _Maker, over: CelNode | None, args: list[CelNode]) -> CelNode:
    names = _two_names(args)
    key = CelIdentifier(names[0], at=maker.at)
    step = maker.call("cel.@mapInsert", maker.accumulator(), key, args[-1])
    step = _gathered(maker, args[2] if len(args) == 4 else None, step)
    return maker.fold(over, names, MapNode([], at=maker.at), maker.literal(True), step)


def _transform_entry(maker: _Maker, over: CelNode | None, args: list[CelNode]) -> CelNode:
    names = _two_names(args)
    step = maker.call("cel.@mapInsert", maker.accumulator(), args[-1])
    step = _gathered(maker, args[2] if len(args) == 4 else None, step)
    return maker.fold(over, names, MapNode([], at=maker.at), maker.literal(True), step)


def _bound(maker: _Maker, name: str, value: CelNode, result: CelNode) -> CelNode:
    """Bind a name to a value in an expression.

    CEL has no node for this. So, as in cel-go, the binding is a loop over an empty list: the name
    is the accumulator of the loop, and the value is its initial value.
    """
    never = maker.literal(False)
    kept = CelIdentifier(name, at=maker.at)
    return maker.fold(
        maker.list(), ("#unused", ""), value, never, kept, result=result, accumulator=name
    )


def _opt_map(maker: _Maker, target: CelNode | None, args: list[CelNode]) -> CelNode:
    return _opt("optMap", maker, target, args)


def _opt_flat_map(maker: _Maker, target: CelNode | None, args: list[CelNode]) -> CelNode:
    return _opt("optFlatMap", maker, target, args)


def _opt(name: str, maker: _Maker, target: CelNode | None, args: list[CelNode]) -> CelNode:
    assert target is not None
    if not isinstance(args[0], CelIdentifier):
        raise InvalidMacro(args[0].at, f"{name}() variable name must be a simple identifier")
    has = CelCall("hasValue", [], target, at=maker.at)
    value = CelCall("value", [], target, at=maker.at)
    inside = _bound(maker, args[0].name, value, args[1])
    if name == "optMap":
        inside = maker.call("optional.of", inside)
    return maker.call("_?_:_", has, inside, maker.call("optional.none"))


def _sort_by(maker: _Maker, target: CelNode | None, args: list[CelNode]) -> CelNode:
    assert target is not None
    if not isinstance(target, ListNode | CelSelect | CelIdentifier | CelComprehension | CelCall):
        text = "sortBy can only be applied to a list, identifier, comprehension, call or select"
        raise InvalidMacro(target.at, f"{text} expression")
    kept = "@__sortBy_input__"
    given = CelIdentifier(kept, at=maker.at)
    keys = _map(maker, CelIdentifier(kept, at=maker.at), args)
    result = CelCall("@sortByAssociatedKeys", [keys], given, at=maker.at)
    return _bound(maker, kept, target, result)


_MACROS: dict[tuple[str, int, bool], _Expand] = {
    ("has", 1, False): _has,
    ("all", 2, True): _quantified(_all),
    ("exists", 2, True): _quantified(_exists),
    ("exists_one", 2, True): _quantified(_exists_one),
    ("map", 2, True): _map,
    ("map", 3, True): _map,
    ("filter", 2, True): _filter,
    ("all", 3, True): _quantified_two(_all),
    ("exists", 3, True): _quantified_two(_exists),
    ("exists_one", 3, True): _quantified_two(_exists_one),
    ("existsOne", 3, True): _quantified_two(_exists_one),
    ("transformList", 3, True): _transform_list,
    ("transformList", 4, True): _transform_list,
    ("transformMap", 3, True): _transform_map,
    ("transformMap", 4, True): _transform_map,
    ("transformMapEntry", 3, True): _transform_entry,
    ("transformMapEntry", 4, True): _transform_entry,
    ("optMap", 2, True): _opt_map,
    ("optFlatMap", 2, True): _opt_flat_map,
    ("sortBy", 2, True): _sort_by,
}
