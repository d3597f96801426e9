"""Programs: a checked expression is compiled to nested Python functions.

A running program counts its cost, roughly as cel-go does. The cost is limited, so that no rule runs
forever.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from polyver.core import PolyverError
from polyver.languages.cel._checker import dotted_name
from polyver.languages.cel._costs import cost_of
from polyver.languages.cel._evaluation import (
    MOST_PER_CALL,
    CelConstant,
    ExecutionFrame,
    Run,
    TooCostly,
    is_present,
    selected,
    shown,
)
from polyver.languages.cel._library import dispatch
from polyver.languages.cel._nodes import (
    CelCall,
    CelComprehension,
    CelEntry,
    CelIdentifier,
    CelLiteral,
    CelNode,
    CelSelect,
    ListNode,
    MapNode,
)
from polyver.languages.cel._operators import OPERATORS
from polyver.languages.cel._special import SPECIAL, step_cost
from polyver.languages.cel._values import (
    CelEvaluationError,
    Dictionary,
    List,
    Map,
    Optional,
    TypeValue,
    key_of,
    type_name,
)
from polyver.languages.regexp import InvalidPattern, read_pattern
from polyver.languages.values.step_budget import spend

__all__ = ["CelProgram", "CelResult", "Unusable"]

_TOO_COSTLY = "operation cancelled: actual cost limit exceeded"
_NO_VALUE = ("duration", "timestamp")


class Unusable(PolyverError):
    """The expression has no type errors, but a program cannot be built for it."""


@dataclass(frozen=True, slots=True)
class CelResult:
    """The result of a program: a value or the reason why there is none, and the cost."""

    value: Any
    failure: str | None
    cost: int


class CelProgram:
    """A compiled expression, which can be evaluated many times."""

    def __init__(self, tree: CelNode, variables: Sequence[str]) -> None:
        self._run = _Compiler(variables).compile(tree)

    def evaluate(self, variables: Mapping[str, Any], *, most: int = MOST_PER_CALL) -> CelResult:
        """Evaluate the program with these variables; `most` is the maximum cost."""
        frame = ExecutionFrame(dict(variables), most)
        try:
            value = self._run(frame)
        except TooCostly:
            return CelResult(None, _TOO_COSTLY, frame.cost)
        except CelEvaluationError as problem:
            spend(frame.cost)
            return CelResult(None, str(problem), frame.cost)
        except RecursionError:
            return CelResult(None, "the values are nested too deeply", frame.cost)
        spend(frame.cost)
        return CelResult(value, None, frame.cost)


class _Compiler:
    def __init__(self, variables: Sequence[str]) -> None:
        self._names = list(variables)

    def compile(self, node: CelNode) -> Run:
        known: dict[type[CelNode], Callable[[Any], Run]] = {
            CelLiteral: lambda literal: CelConstant(literal.value),
            CelIdentifier: self._ident,
            CelSelect: self._select,
            CelCall: self._call,
            ListNode: self._list,
            MapNode: self._map,
            CelComprehension: self._fold,
        }
        return known[type(node)](node)

    # Names and fields

    def _ident(self, node: CelIdentifier) -> Run:
        name = node.name
        if name not in self._names:
            return self._type(name.removeprefix("."))

        def run(frame: ExecutionFrame) -> Any:
            frame.charge(1)
            found = frame.names.get(name, _MISSING)
            if isinstance(found, CelEvaluationError):
                raise found
            if found is _MISSING:
                raise CelEvaluationError(f"no such attribute(s): {name}")
            return found

        return run

    def _type(self, name: str) -> Run:
        if name in self._names:
            return self._ident(CelIdentifier(name, at=0))
        if name in _NO_VALUE or name.startswith("selfType"):
            raise Unusable(f"reference to undefined type: {name}")
        return CelConstant(TypeValue(name))

    def _select(self, node: CelSelect) -> Run:
        dotted = None if node.test else dotted_name(node)
        if dotted is not None and dotted in self._names:
            return self._ident(CelIdentifier(dotted, at=node.at))
        if dotted is not None and node.type is not None and node.type.kind == "type":
            first = dotted.partition(".")[0]
            if first not in self._names:
                return self._type(dotted.removeprefix("."))
        operand, name = self.compile(node.operand), node.field
        if node.test:
            return lambda frame: is_present(operand(frame), name)
        cost = step_cost(node.operand)

        def run(frame: ExecutionFrame) -> Any:
            found = operand(frame)
            frame.charge(cost)
            return selected(found, name)

        return run

    # Calls

    def _call(self, node: CelCall) -> Run:
        known = SPECIAL.get(node.function)
        if known is not None:
            args = [node.target, *node.args] if node.target else node.args
            return known([self.compile(each) for each in args], step_cost(args[0]))
        given = [*([node.target] if node.target else []), *node.args]
        runs = [self.compile(each) for each in given]
        if node.function in _WITH_PATTERN:
            _check_pattern(runs[1])
        operator = OPERATORS.get(node.function)
        if operator is not None:
            return _applied(node, lambda values: operator(*values), runs)
        call = dispatch(node.function.removeprefix("."), node.overloads)
        if node.function in _FOLDED and isinstance(runs[0], CelConstant):
            return _folded(call, runs[0])
        return _applied(node, call, runs)

    # Lists and maps

    def _list(self, node: ListNode) -> Run:
        runs = [(self.compile(each), n in node.optional) for n, each in enumerate(node.items)]
        known = [each.value for each, _ in runs if isinstance(each, CelConstant)]
        if len(known) == len(runs) and not node.optional:
            return CelConstant(List(known))

        def run(frame: ExecutionFrame) -> List:
            items: list[Any] = []
            for each, optional in runs:
                found = each(frame)
                if not optional:
                    items.append(found)
                elif not isinstance(found, Optional):
                    text = "cannot initialize optional list element from non-optional value"
                    raise CelEvaluationError(f"{text} {shown(found)}")
                elif found.present:
                    items.append(found.value)
            frame.charge(10)
            return List(items)

        return run

    def _map(self, node: MapNode) -> Run:
        runs = [self._entry(each) for each in node.entries]
        if all(_is_known(each) for each in runs):
            nothing = ExecutionFrame({})
            return CelConstant(
                Dictionary([(key(nothing), value(nothing)) for key, value, _ in runs])
            )

        def run(frame: ExecutionFrame) -> Dictionary:
            entries: list[tuple[Any, Any]] = []
            for key, value, optional in runs:
                name, found = key(frame), value(frame)
                if not optional:
                    entries.append((name, found))
                elif not isinstance(found, Optional):
                    text = f"cannot initialize optional entry '{shown(name)}' from non-optional"
                    raise CelEvaluationError(f"{text} value {shown(found)}")
                elif found.present:
                    entries.append((name, found.value))
            frame.charge(30)
            return Dictionary(entries)

        return run

    def _entry(self, entry: CelEntry) -> tuple[Run, Run, bool]:
        assert isinstance(entry.key, CelNode)
        return self.compile(entry.key), self.compile(entry.value), entry.optional

    # Loops

    def _fold(self, node: CelComprehension) -> Run:
        over, init = self.compile(node.over), self.compile(node.init)
        self._names += [node.accumulator, node.var, node.var2]
        condition, step = self.compile(node.condition), self.compile(node.step)
        del self._names[-2:]
        result = self.compile(node.result)
        self._names.pop()
        two = bool(node.var2)
        names = (node.accumulator, node.var, node.var2)

        def run(frame: ExecutionFrame) -> Any:
            found = over(frame)
            kept = [frame.names.get(name, _MISSING) for name in names]
            try:
                frame.names[node.accumulator] = _tried(init, frame)
                for first, second in _pairs(found, two=two):
                    frame.names[node.var] = first
                    if two:
                        frame.names[node.var2] = second
                    if condition(frame) is False:
                        break
                    frame.names[node.accumulator] = _tried(step, frame)
                return result(frame)
            finally:
                _restore(frame.names, names, kept)

        return run


_MISSING: Final = object()


def _restore(names: dict[str, Any], changed: Sequence[str], kept: Sequence[Any]) -> None:
    for name, value in zip(changed, kept, strict=True):
        if value is _MISSING:
            names.pop(name, None)
        else:
            names[name] = value


def _tried(run: Run, frame: ExecutionFrame) -> Any:
    """Evaluate the initial value of a loop's accumulator, or one step of the loop.

    Return an evaluation error instead of raising it, because the accumulator may be an error until
    a later step replaces the error.
    """
    try:
        return run(frame)
    except CelEvaluationError as problem:
        return problem


def _pairs(found: Any, *, two: bool) -> Iterable[tuple[Any, Any]]:
    if isinstance(found, Map):
        return ((key, found.find(key)[0] if two else None) for key in found)
    if isinstance(found, List):
        return enumerate(found.items) if two else ((item, None) for item in found.items)
    if two:
        raise CelEvaluationError(f"unsupported comprehension range type: {_go_name(found)}")
    raise CelEvaluationError(f"got '{_go_name(found)}', expected iterable type")


def _go_name(value: Any) -> str:
    name = type_name(value)
    return f"types.{name[:1].upper()}{name[1:]}"


def _is_known(entry: tuple[Run, Run, bool]) -> bool:
    key, value, optional = entry
    return isinstance(key, CelConstant) and isinstance(value, CelConstant) and not optional


_FOLDED = frozenset("bool bytes double duration dyn int string timestamp type uint".split())
_WITH_PATTERN = frozenset(("find", "findAll", "matches"))


def _folded(call: Callable[[Sequence[Any]], Any], given: CelConstant) -> Run:
    """Evaluate a call with a constant argument once, when the program is built.

    Return a function with the result, or raise `Unusable` if the call fails.
    """
    try:
        return CelConstant(call([given.value]))
    except CelEvaluationError as problem:
        raise Unusable(str(problem)) from problem


def _check_pattern(given: Run) -> None:
    if not isinstance(given, CelConstant) or not isinstance(given.value, str):
        return
    try:
        read_pattern(given.value)
    except InvalidPattern as problem:
        raise Unusable(str(problem)) from problem


def _applied(node: CelCall, call: Callable[[Sequence[Any]], Any], runs: Sequence[Run]) -> Run:
    function = node.function.removeprefix(".")
    cost = cost_of(function, node.overloads[0] if len(node.overloads) == 1 else "")
    if function == "@in" and isinstance(runs[1], CelConstant):
        among = _among(runs[0], runs[1].value)
        if among is not None:
            return among

    def run(frame: ExecutionFrame) -> Any:
        values = [each(frame) for each in runs]
        # The cost is charged before the call, so that no call above the limit runs.
        frame.charge(cost(values))
        return call(values)

    return run


def _among(value: Run, given: Any) -> Run | None:
    """Compile `in` with a list of literals to a lookup in a set.

    Return None if the list contains anything except plain literals.
    """
    if not isinstance(given, List) or not all(isinstance(each, _PLAIN) for each in given.items):
        return None
    known = frozenset(map(key_of, given.items))
    return lambda frame: key_of(value(frame)) in known


_PLAIN = (str, int, float)
