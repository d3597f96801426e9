"""Type checker of CEL expressions, which finds most mistakes in a rule before the rule runs."""

from __future__ import annotations

from collections.abc import Mapping as Known
from collections.abc import Sequence

from polyver.core import PolyverError
from polyver.languages.cel import _types as types
from polyver.languages.cel._declarations import FUNCTIONS, Overload
from polyver.languages.cel._nodes import (
    CelCall,
    CelComprehension,
    CelIdentifier,
    CelLiteral,
    CelNode,
    CelSelect,
    CelStruct,
    ListNode,
    MapNode,
    inside,
)
from polyver.languages.cel._tokens import CelProblem
from polyver.languages.cel._types import CelType, TypeMapping
from polyver.languages.cel._values import Uint

__all__ = ["Checker", "ExpressionTooLarge", "dotted_name"]

_MOST_STEPS = 200_000
_TYPE_NAMES: dict[str, CelType] = {
    each.name: types.type_of(each)
    for each in (
        *(types.BOOL, types.BYTES, types.DOUBLE, types.DURATION, types.INT, types.NULL),
        *(types.STRING, types.TIMESTAMP, types.UINT),
    )
} | {
    "google.protobuf.Duration": types.type_of(types.DURATION),
    "google.protobuf.Timestamp": types.type_of(types.TIMESTAMP),
    "list": types.type_of(types.list_of(types.param("A"))),
    "map": types.type_of(types.map_of(types.param("A"), types.param("B"))),
    "net.CIDR": types.type_of(CelType("opaque", "net.CIDR")),
    "net.IP": types.type_of(CelType("opaque", "net.IP")),
    "optional_type": types.type_of(types.optional_of(types.param("V"))),
    "type": types.type_of(types.type_of()),
}
_LITERALS: dict[type, CelType] = {
    bool: types.BOOL,
    bytes: types.BYTES,
    float: types.DOUBLE,
    int: types.INT,
    type(None): types.NULL,
    str: types.STRING,
    Uint: types.UINT,
}


class ExpressionTooLarge(PolyverError):
    """The expression is too large after its macros are expanded."""


class Checker:
    """Sets the type of each node of an expression, and collects the errors in `problems`."""

    def __init__(
        self, variables: Known[str, CelType], structs: Known[str, Known[str, CelType]]
    ) -> None:
        self.problems: list[CelProblem] = []
        self.uses: set[str] = set()
        """The names of the variables that the expression uses."""
        self._variables = variables
        self._structs = structs
        self._local: list[dict[str, CelType]] = []
        self._mapping = TypeMapping()
        self._fresh = 0
        self._steps = 0

    def run(self, tree: CelNode) -> CelType:
        """Check an expression and return its type; unresolved type parameters become `dyn`."""
        self._check(tree)
        self._settle(tree)
        return tree.type or types.ERROR

    def _settle(self, node: CelNode) -> None:
        self._step()
        if node.type is not None:
            node.type = self._mapping.substitute(node.type, to_dyn=True)
        for each in inside(node):
            self._settle(each)

    def _step(self) -> None:
        self._steps += 1
        if self._steps > _MOST_STEPS:
            raise ExpressionTooLarge("the expression is too large")

    def _report(self, node: CelNode, text: str) -> None:
        self.problems.append(CelProblem(node.at, text))

    def _check(self, node: CelNode) -> CelType:
        self._step()
        match node:
            case CelLiteral(value):
                node.type = _LITERALS[type(value)]
            case CelIdentifier():
                node.type = self._ident(node)
            case CelSelect():
                node.type = self._select(node)
            case CelCall():
                node.type = self._call(node)
            case ListNode():
                node.type = self._list(node)
            case MapNode():
                node.type = self._map(node)
            case CelStruct():
                node.type = self._struct(node)
            case CelComprehension():
                node.type = self._fold(node)
        assert node.type is not None
        return node.type

    # Names

    def _ident(self, node: CelIdentifier) -> CelType:
        found = self._lookup(node.name)
        if found is None:
            self._undeclared(node, node.name)
            return types.ERROR
        return found

    def _lookup(self, name: str) -> CelType | None:
        if not name.startswith("."):
            for scope in reversed(self._local):
                if name in scope:
                    return scope[name]
        return self._global(name.removeprefix("."))

    def _global(self, name: str) -> CelType | None:
        found = self._variables.get(name)
        if found is not None:
            self.uses.add(name)
            return found
        if name in self._structs:
            return types.type_of(types.struct(name))
        return _TYPE_NAMES.get(name)

    def _undeclared(self, node: CelNode, name: str) -> None:
        self._report(node, f"undeclared reference to '{name}' (in container '')")

    def _select(self, node: CelSelect) -> CelType:
        dotted = None if node.test else dotted_name(node)
        if dotted is not None and not self._is_local(dotted):
            found = self._global(dotted.removeprefix("."))
            if found is not None:
                return found
        inside = self._field(node, node.operand, node.field, optional=False)
        return types.BOOL if node.test else self._mapping.substitute(inside)

    def _is_local(self, dotted: str) -> bool:
        first = dotted.partition(".")[0]
        return any(first in scope for scope in self._local)

    def _field(self, node: CelNode, operand: CelNode, name: str, *, optional: bool) -> CelType:
        target, was_optional = types.unwrapped(self._mapping.substitute(self._check(operand)))
        found = self._field_of(node, target, name)
        return types.optional_of(found) if optional or was_optional else found

    def _field_of(self, node: CelNode, target: CelType, name: str) -> CelType:
        match target.kind:
            case "map":
                return target.params[1]
            case "struct":
                return self._struct_field(node, target.name, name)
            case "param":
                self._mapping.assignable([types.DYN], [target])
                return types.DYN
        if not target.is_dyn_or_error:
            self._report(node, f"type '{target}' does not support field selection")
        return types.DYN

    def _struct_field(self, node: CelNode, name: str, field: str) -> CelType:
        fields = self._structs.get(name)
        if fields is None:
            self._report(node, f"unexpected failed resolution of '{name}'")
            return types.ERROR
        if field not in fields:
            self._report(node, f"undefined field '{field}'")
            return types.ERROR
        return fields[field]

    # Calls

    def _call(self, node: CelCall) -> CelType:
        if node.function == "_?._":
            return self._optional_select(node)
        for arg in node.args:
            self._check(arg)
        if node.target is None:
            return self._resolved(node, node.function.removeprefix("."), None)
        prefix = dotted_name(node.target)
        qualified = f"{prefix}.{node.function}".removeprefix(".")
        if prefix is not None and qualified in FUNCTIONS:
            node.function, node.target = qualified, None
            return self._resolved(node, qualified, None)
        self._check(node.target)
        return self._resolved(node, node.function, node.target)

    def _optional_select(self, node: CelCall) -> CelType:
        field = node.args[1]
        assert isinstance(field, CelLiteral)
        node.overloads = ("select_optional_field",)
        self._check(field)
        found = self._field(node, node.args[0], str(field.value), optional=True)
        return self._mapping.substitute(found)

    def _resolved(self, node: CelCall, name: str, target: CelNode | None) -> CelType:
        known = FUNCTIONS.get(name)
        if known is None:
            self._undeclared(node, node.function)
            return types.ERROR
        given = [*([target] if target else []), *node.args]
        args = [each.type or types.ERROR for each in given]
        if name in ("_&&_", "_||_"):
            return self._logical(node, args, known[0])
        overloads: list[str] = []
        result: CelType | None = None
        for overload in known:
            if overload.member is (target is not None):
                found = self._fits(overload, args)
                if found is not None:
                    overloads.append(overload.id)
                    result = found if result in (None, found) else types.DYN
        if result is None:
            shown = _signature(
                [self._mapping.substitute(each, to_dyn=True) for each in args], target
            )
            self._report(node, f"found no matching overload for '{name}' applied to '{shown}'")
            return types.ERROR
        node.overloads = tuple(overloads)
        return result

    def _logical(self, node: CelCall, args: Sequence[CelType], known: Overload) -> CelType:
        node.overloads = (known.id,)
        right = True
        for each, found in zip(node.args, args, strict=True):
            if not self._mapping.assignable([found], [types.BOOL]):
                self._report(each, f"expected type 'bool' but found '{found}'")
                right = False
        return types.BOOL if right else types.ERROR

    def _fits(self, overload: Overload, args: Sequence[CelType]) -> CelType | None:
        """Return the result type of an overload if it accepts the arguments; None otherwise."""
        if len(args) != len(overload.args):
            return None
        wanted, result = list(overload.args), overload.result
        if overload.params:
            own = TypeMapping({each: self._new() for each in overload.params})
            wanted, result = [own.substitute(each) for each in wanted], own.substitute(result)
        if not self._mapping.assignable(args, wanted):
            return None
        return self._mapping.substitute(result)

    def _new(self) -> CelType:
        self._fresh += 1
        return types.param(f"_var{self._fresh - 1}")

    # Lists, maps and comprehensions

    def _list(self, node: ListNode) -> CelType:
        found: CelType | None = None
        for number, item in enumerate(node.items):
            kind = self._check(item)
            if number in node.optional:
                kind = self._optional_item(item, kind)
            found = self._join(found, kind)
        return types.list_of(found or self._new())

    def _optional_item(self, node: CelNode, kind: CelType) -> CelType:
        inside, is_optional = types.unwrapped(kind)
        if not is_optional and not kind.is_dyn:
            wanted = types.optional_of(kind)
            self._report(node, f"expected type '{wanted}' but found '{kind}'")
        return inside

    def _map(self, node: MapNode) -> CelType:
        key: CelType | None = None
        value: CelType | None = None
        for entry in node.entries:
            assert isinstance(entry.key, CelNode)
            key = self._join(key, self._check(entry.key))
            kind = self._check(entry.value)
            if entry.optional:
                kind = self._optional_item(entry.value, kind)
            value = self._join(value, kind)
        return types.map_of(key or self._new(), value or self._new())

    def _join(self, before: CelType | None, found: CelType) -> CelType:
        if before is None:
            return found
        if self._mapping.assignable([before], [found]):
            return types.most_general(before, found)
        return types.DYN

    def _struct(self, node: CelStruct) -> CelType:
        """Report an error: in Kubernetes, no expression can construct an object of a named type."""
        self._undeclared(node, node.name)
        return types.ERROR

    def _fold(self, node: CelComprehension) -> CelType:
        over = self._mapping.substitute(self._check(node.over))
        accumulator = self._check(node.init)
        self._local.append({node.accumulator: accumulator})
        first, second = self._iterated(node, over)
        names = {node.var: first}
        if node.var2:
            names[node.var2] = second
        self._local.append(names)
        self._assert(node.condition, types.BOOL)
        self._assert(node.step, accumulator)
        self._local.pop()
        result = self._check(node.result)
        self._local.pop()
        return self._mapping.substitute(result)

    def _iterated(self, node: CelComprehension, over: CelType) -> tuple[CelType, CelType]:
        """Return the types of a loop's two variables for a list or map of the type `over`.

        A loop with one variable ignores the second type.
        """
        match over.kind:
            case "list":
                item = over.params[0]
                return (types.INT, item) if node.var2 else (item, item)
            case "map":
                return over.params[0], over.params[1]
            case "dyn" | "error" | "param":
                self._mapping.assignable([types.DYN], [over])
                return types.DYN, types.DYN
        text = f"expression of type '{over}' cannot be range of a comprehension"
        self._report(node.over, f"{text} (must be list, map, or dynamic)")
        return types.ERROR, types.ERROR

    def _assert(self, node: CelNode, wanted: CelType) -> None:
        found = self._check(node)
        if not self._mapping.assignable([wanted], [found]):
            self._report(node, f"expected type '{wanted}' but found '{found}'")


def _signature(args: Sequence[CelType], target: CelNode | None) -> str:
    first = f"{args[0]}." if target is not None else ""
    return f"{first}({', '.join(map(str, args[1:] if target is not None else args))})"


def dotted_name(node: CelNode) -> str | None:
    """Return a name such as `a.b.c` if the node consists only of names; None otherwise."""
    parts: list[str] = []
    while isinstance(node, CelSelect) and not node.test:
        parts.append(node.field)
        node = node.operand
    if not isinstance(node, CelIdentifier):
        return None
    return ".".join((node.name, *reversed(parts)))
