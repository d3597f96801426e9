"""An expression that has been checked, as functions that call each other; and what it costs to run.

Costs are counted roughly as the real thing counts them, and bounded, so that no rule runs forever.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from polyver.core import PolyverError
from polyver.objects.cel._checker import dotted_name
from polyver.objects.cel._conversions import to_text
from polyver.objects.cel._costs import cost_of
from polyver.objects.cel._library import dispatch
from polyver.objects.cel._nodes import (
    Call,
    Entry,
    Fold,
    Ident,
    ListNode,
    Literal,
    MapNode,
    Node,
    Select,
)
from polyver.objects.cel._operators import OPERATORS, index_of
from polyver.objects.cel._values import (
    NONE,
    Dictionary,
    Failure,
    List,
    Map,
    Optional,
    TypeValue,
    key_of,
    no_overload,
    type_name,
)
from polyver.objects.patterns import InvalidPattern, read_pattern

__all__ = ["MOST_PER_CALL", "Outcome", "Program", "Unusable"]

MOST_PER_CALL: Final = 1_000_000
_TOO_COSTLY = "operation cancelled: actual cost limit exceeded"
_NO_VALUE = ("duration", "timestamp")


class Unusable(PolyverError):
    """An expression that is right by its types, and still cannot become a program."""


class _TooCostly(Exception):
    """A program has cost more than it may."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a program gave, or why it gave nothing, and what it cost."""

    value: Any
    failure: str | None
    cost: int


class _Frame:
    """What a running program knows."""

    __slots__ = ("cost", "names")

    def __init__(self, names: dict[str, Any]) -> None:
        self.names = names
        self.cost = 0

    def charge(self, cost: int) -> None:
        self.cost += cost
        if self.cost > MOST_PER_CALL:
            raise _TooCostly


Run = Callable[[_Frame], Any]


class _Constant:
    """A value that is known before the program runs."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value

    def __call__(self, _: _Frame) -> Any:
        return self.value


class Program:
    """An expression that can be evaluated many times."""

    def __init__(self, tree: Node, variables: Sequence[str]) -> None:
        self._run = _Compiler(variables).compile(tree)

    def evaluate(self, variables: Mapping[str, Any]) -> Outcome:
        """The value for some variables."""
        frame = _Frame(dict(variables))
        try:
            value = self._run(frame)
        except _TooCostly:
            return Outcome(None, _TOO_COSTLY, frame.cost)
        except Failure as problem:
            return Outcome(None, str(problem), frame.cost)
        except RecursionError:
            return Outcome(None, "the values are nested too deeply", frame.cost)
        return Outcome(value, None, frame.cost)


class _Compiler:
    def __init__(self, variables: Sequence[str]) -> None:
        self._names = list(variables)

    def compile(self, node: Node) -> Run:
        known: dict[type[Node], Callable[[Any], Run]] = {
            Literal: lambda literal: _Constant(literal.value),
            Ident: self._ident,
            Select: self._select,
            Call: self._call,
            ListNode: self._list,
            MapNode: self._map,
            Fold: self._fold,
        }
        return known[type(node)](node)

    # Names and fields

    def _ident(self, node: Ident) -> Run:
        name = node.name
        if name not in self._names:
            return self._type(name.removeprefix("."))

        def run(frame: _Frame) -> Any:
            frame.charge(1)
            found = frame.names.get(name, _MISSING)
            if isinstance(found, Failure):
                raise found
            if found is _MISSING:
                raise Failure(f"no such attribute(s): {name}")
            return found

        return run

    def _type(self, name: str) -> Run:
        if name in self._names:
            return self._ident(Ident(name, at=0))
        if name in _NO_VALUE or name.startswith("selfType"):
            raise Unusable(f"reference to undefined type: {name}")
        return _Constant(TypeValue(name))

    def _select(self, node: Select) -> Run:
        dotted = None if node.test else dotted_name(node)
        if dotted is not None and node.type is not None and node.type.kind == "type":
            first = dotted.partition(".")[0]
            if first not in self._names:
                return self._type(dotted.removeprefix("."))
        operand, name = self.compile(node.operand), node.field
        if node.test:
            return lambda frame: _present(operand(frame), name)
        cost = _step_cost(node.operand)

        def run(frame: _Frame) -> Any:
            found = operand(frame)
            frame.charge(cost)
            return _selected(found, name)

        return run

    # Calls

    def _call(self, node: Call) -> Run:
        known = _SPECIAL.get(node.function)
        if known is not None:
            args = [node.target, *node.args] if node.target else node.args
            return known([self.compile(each) for each in args], _step_cost(args[0]))
        given = [*([node.target] if node.target else []), *node.args]
        runs = [self.compile(each) for each in given]
        if node.function in _WITH_PATTERN:
            _check_pattern(runs[1])
        operator = OPERATORS.get(node.function)
        if operator is not None:
            return _applied(node, lambda values: operator(*values), runs)
        call = dispatch(node.function.removeprefix("."), node.overloads)
        if node.function in _FOLDED and isinstance(runs[0], _Constant):
            return _folded(call, runs[0])
        return _applied(node, call, runs)

    # What is written out

    def _list(self, node: ListNode) -> Run:
        runs = [(self.compile(each), n in node.optional) for n, each in enumerate(node.items)]
        known = [each.value for each, _ in runs if isinstance(each, _Constant)]
        if len(known) == len(runs) and not node.optional:
            return _Constant(List(known))

        def run(frame: _Frame) -> List:
            items: list[Any] = []
            for each, optional in runs:
                found = each(frame)
                if not optional:
                    items.append(found)
                elif not isinstance(found, Optional):
                    text = "cannot initialize optional list element from non-optional value"
                    raise Failure(f"{text} {shown(found)}")
                elif found.present:
                    items.append(found.value)
            frame.charge(10)
            return List(items)

        return run

    def _map(self, node: MapNode) -> Run:
        runs = [self._entry(each) for each in node.entries]
        if all(_is_known(each) for each in runs):
            nothing = _Frame({})
            return _Constant(Dictionary([(key(nothing), value(nothing)) for key, value, _ in runs]))

        def run(frame: _Frame) -> Dictionary:
            entries: list[tuple[Any, Any]] = []
            for key, value, optional in runs:
                name, found = key(frame), value(frame)
                if not optional:
                    entries.append((name, found))
                elif not isinstance(found, Optional):
                    text = f"cannot initialize optional entry '{shown(name)}' from non-optional"
                    raise Failure(f"{text} value {shown(found)}")
                elif found.present:
                    entries.append((name, found.value))
            frame.charge(30)
            return Dictionary(entries)

        return run

    def _entry(self, entry: Entry) -> tuple[Run, Run, bool]:
        assert isinstance(entry.key, Node)
        return self.compile(entry.key), self.compile(entry.value), entry.optional

    # Loops

    def _fold(self, node: Fold) -> Run:
        over, init = self.compile(node.over), self.compile(node.init)
        self._names += [node.carried, node.var, node.var2]
        condition, step = self.compile(node.condition), self.compile(node.step)
        del self._names[-2:]
        result = self.compile(node.result)
        self._names.pop()
        two = bool(node.var2)
        names = (node.carried, node.var, node.var2)

        def run(frame: _Frame) -> Any:
            found = over(frame)
            kept = [frame.names.get(name, _MISSING) for name in names]
            try:
                frame.names[node.carried] = _tried(init, frame)
                for first, second in _pairs(found, two=two):
                    frame.names[node.var] = first
                    if two:
                        frame.names[node.var2] = second
                    if condition(frame) is False:
                        break
                    frame.names[node.carried] = _tried(step, frame)
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


def _tried(run: Run, frame: _Frame) -> Any:
    """A value, or why there is none: a loop carries that along."""
    try:
        return run(frame)
    except Failure as problem:
        return problem


def _pairs(found: Any, *, two: bool) -> Iterable[tuple[Any, Any]]:
    if isinstance(found, Map):
        return ((key, found.find(key)[0] if two else None) for key in found)
    if isinstance(found, List):
        return enumerate(found.items) if two else ((item, None) for item in found.items)
    if two:
        raise Failure(f"unsupported comprehension range type: {_go_name(found)}")
    raise Failure(f"got '{_go_name(found)}', expected iterable type")


def _go_name(value: Any) -> str:
    name = type_name(value)
    return f"types.{name[:1].upper()}{name[1:]}"


def _is_known(entry: tuple[Run, Run, bool]) -> bool:
    key, value, optional = entry
    return isinstance(key, _Constant) and isinstance(value, _Constant) and not optional


_FOLDED = frozenset("bool bytes double duration dyn int string timestamp type uint".split())
_WITH_PATTERN = frozenset(("find", "findAll", "matches"))


def _folded(call: Callable[[Sequence[Any]], Any], given: _Constant) -> Run:
    """What is known before the program runs, if it can be known at all."""
    try:
        return _Constant(call([given.value]))
    except Failure as problem:
        raise Unusable(str(problem)) from problem


def _check_pattern(given: Run) -> None:
    if not isinstance(given, _Constant) or not isinstance(given.value, str):
        return
    try:
        read_pattern(given.value)
    except InvalidPattern as problem:
        raise Unusable(str(problem)) from problem


def shown(value: Any) -> str:
    """A value in the middle of a sentence."""
    try:
        return to_text(value)
    except Failure:
        return str(value)


def _found(operand: Any, key: Any) -> tuple[Any, bool]:
    """What is at a key or place, and whether it is there."""
    if isinstance(operand, Map):
        return operand.find(key)
    if isinstance(operand, List):
        place = index_of(key)
        inside = 0 <= place < len(operand)
        return (operand.items[place] if inside else None), inside
    return None, False


def _selected(operand: Any, key: Any) -> Any:
    if isinstance(operand, Optional):
        if not operand.present:
            return NONE
        found, there = _found(operand.value, key)
        return Optional(found) if there else NONE
    found, there = _found(operand, key)
    if there:
        return found
    text = "index out of bounds" if isinstance(operand, List) else "no such key"
    raise Failure(f"{text}: {shown(key)}")


def _present(operand: Any, name: str) -> bool:
    if isinstance(operand, Optional):
        return operand.present and _found(operand.value, name)[1]
    return _found(operand, name)[1]


def _optionally(operand: Any, key: Any) -> Optional:
    if isinstance(operand, Optional):
        operand = operand.value
    found, there = _found(operand, key)
    return Optional(found) if there else NONE


def _applied(node: Call, call: Callable[[Sequence[Any]], Any], runs: Sequence[Run]) -> Run:
    function = node.function.removeprefix(".")
    cost = cost_of(function, node.overloads[0] if len(node.overloads) == 1 else "")
    if function == "@in" and isinstance(runs[1], _Constant):
        among = _among(runs[0], runs[1].value)
        if among is not None:
            return among

    def run(frame: _Frame) -> Any:
        values = [each(frame) for each in runs]
        # It is paid for before it is done, so that nothing is done that is too much.
        frame.charge(cost(values))
        return call(values)

    return run


def _among(value: Run, given: Any) -> Run | None:
    """Whether something is among values that are written out, which is looked up at once."""
    if not isinstance(given, List) or not all(isinstance(each, _PLAIN) for each in given.items):
        return None
    known = frozenset(map(key_of, given.items))
    return lambda frame: key_of(value(frame)) in known


_PLAIN = (str, int, float)


# Calls that do not need all their arguments, or take what has failed.


def _step_cost(operand: Node) -> int:
    """What a step to a field or an item costs: more if it is the first from something made."""
    steps = ("_[_]", "_[?_]", "_?._")
    way = isinstance(operand, Ident | Select)
    return 1 if way or (isinstance(operand, Call) and operand.function in steps) else 2


def _and(runs: Sequence[Run], _: int) -> Run:
    return _logical(runs, stop=False)


def _or(runs: Sequence[Run], _: int) -> Run:
    return _logical(runs, stop=True)


def _logical(runs: Sequence[Run], *, stop: bool) -> Run:
    def run(frame: _Frame) -> bool:
        failure: Failure | None = None
        for each in runs:
            try:
                found = each(frame)
            except Failure as problem:
                failure = failure or problem
                continue
            if isinstance(found, bool) and found is stop:
                return stop
            if not isinstance(found, bool):
                failure = failure or no_overload()
        if failure is not None:
            raise failure
        return not stop

    return run


def _conditional(runs: Sequence[Run], _: int) -> Run:
    test, then, other = runs

    def run(frame: _Frame) -> Any:
        found = test(frame)
        if not isinstance(found, bool):
            raise no_overload()
        return then(frame) if found else other(frame)

    return run


def _not_false(runs: Sequence[Run], _: int) -> Run:
    def run(frame: _Frame) -> bool:
        try:
            frame.charge(1)
            return runs[0](frame) is not False
        except Failure:
            return True

    return run


def _index(runs: Sequence[Run], cost: int) -> Run:
    def run(frame: _Frame) -> Any:
        operand, key = runs[0](frame), runs[1](frame)
        frame.charge(cost)
        return _selected(operand, key)

    return run


def _optional_index(runs: Sequence[Run], cost: int) -> Run:
    def run(frame: _Frame) -> Any:
        operand, key = runs[0](frame), runs[1](frame)
        frame.charge(cost)
        return _optionally(operand, key)

    return run


def _or_else(runs: Sequence[Run], _: int) -> Run:
    return _otherwise(runs, unwrap=False)


def _or_value(runs: Sequence[Run], _: int) -> Run:
    return _otherwise(runs, unwrap=True)


def _otherwise(runs: Sequence[Run], *, unwrap: bool) -> Run:
    def run(frame: _Frame) -> Any:
        found = runs[0](frame)
        if not isinstance(found, Optional):
            raise no_overload()
        if not found.present:
            return runs[1](frame)
        return found.value if unwrap else found

    return run


_SPECIAL: dict[str, Callable[[Sequence[Run], int], Run]] = {
    "_&&_": _and,
    "_||_": _or,
    "_?_:_": _conditional,
    "@not_strictly_false": _not_false,
    "_[_]": _index,
    "_[?_]": _optional_index,
    "_?._": _optional_index,
    "or": _or_else,
    "orValue": _or_value,
}
