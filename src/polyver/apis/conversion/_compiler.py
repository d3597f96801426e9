"""Compile conversion rules: generate the source of one Python function for each conversion path.

The compiled function converts an object whose fields are still encoded as JSON (`Raw`). It decodes
only the fields that rules read, and moves other fields without decoding them. It restores preserved
fields, and preserves values that the target version cannot express. The results are the same as
those of the interpreter in `_block`. For an object that only the interpreter can convert, the
function raises `Unusual`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import msgspec
from msgspec import Raw

from polyver.apis.conversion import _runtime as runtime
from polyver.apis.conversion._block import RuleBlock
from polyver.apis.conversion._delta import Lost
from polyver.apis.conversion._runtime import keyed, lossless
from polyver.apis.conversion.hops import ConversionStep, compilable
from polyver.apis.conversion.nested import EachRule, KeyedRule, MoveRule, WrapRule
from polyver.apis.conversion.paths import Path, fits_metadata, show_path
from polyver.apis.conversion.reversal import unreversed
from polyver.apis.conversion.rules import ConstRule, ConversionRule, DropRule
from polyver.apis.conversion.schemas import (
    Settled,
    all_settled,
    is_alone,
    settled,
    watched,
)
from polyver.apis.conversion.values import MISSING
from polyver.core import Hop
from polyver.core.plain import Object

__all__ = ["Compiled", "compile_path"]

Compiled = Callable[[Object, dict[str, Lost]], None]
"""A compiled function, which converts an object in place.

The first argument is the object; its fields may be undecoded JSON. The second argument has its
preserved fields, by version. The function also changes the preserved fields in place.
"""


def compile_path(hops: Sequence[Hop[ConversionStep]]) -> Compiled | None:
    """Compile the function for a conversion path. Return None if the path cannot be compiled.

    A path cannot be compiled if it calls conversion functions of users, or if its rules name fields
    that a schema does not have.
    """
    steps = compilable(hops)
    if steps is None:
        return None
    writer = _Writer()
    writer.line("def convert(top, lost):")
    writer.indent = 1
    for number, (hop, step) in enumerate(zip(hops, steps, strict=True)):
        before = [each.block.read(back=each.back) for each in steps[:number]]
        after = [each.block.written(back=each.back) for each in steps[number + 1 :]]
        writer.line("K = None")
        writer.line(f"L = lost.pop({hop.target!r}, None) if lost else None")
        far = (all_settled(before), all_settled(after))
        _BlockWriter(writer, step.block, back=step.back, losing=True, far=far).write()
        writer.line("if L: raise Unusual")
        writer.line(f"if K: lost[{hop.source!r}] = K")
    compiled: Compiled = writer.function("convert")
    return compiled


class _Writer:
    """Collects the lines of generated code, and the values that the code uses by name."""

    def __init__(self) -> None:
        self.indent = 0
        self._lines: list[str] = []
        self._count = 0
        self.names: dict[str, Any] = {
            "M": MISSING,
            "Raw": Raw,
            "Unusual": runtime.Unusual,
            "Loses": runtime.Loses,
            "opened": runtime.opened,
            "items_of": runtime.items_of,
            "objects_in": runtime.objects_in,
            "decode": msgspec.json.Decoder().decode,
            "plain": runtime.plain,
            "is_const": runtime.is_const,
            "is_null": runtime.is_null,
            "preserved": runtime.preserved,
        }

    def line(self, text: str) -> None:
        self._lines.append("    " * self.indent + text)

    def fresh(self, prefix: str) -> str:
        self._count += 1
        return f"{prefix}{self._count}"

    def keep(self, prefix: str, value: Any) -> str:
        """Make a value available to the generated code; return its name in the code."""
        name = self.fresh(prefix)
        self.names[name] = value
        return name

    def function(self, name: str) -> Any:
        source = "\n".join(self._lines)
        exec(compile(source, "<conversion>", "exec"), self.names)  # noqa: S102 - our own code
        made = self.names[name]
        made.__doc__ = source
        return made


@dataclass(slots=True)
class _BlockWriter:
    """Writes the code that runs the rules of one block in one direction."""

    out: _Writer
    block: RuleBlock
    back: bool
    losing: bool
    """True if the generated code preserves lost values; False if it raises Loses instead."""
    far: tuple[Settled, Settled] = (Settled(False, False), Settled(False, False))
    """A `Settled` for the versions before this block on the path, and one for those after it.

    A `Settled` states whether filling in the defaults of these versions can change a guard.
    """
    top: str = "top"
    containers: dict[Path, str] = field(default_factory=dict)

    def write(self) -> None:
        rules = self.block.rules
        reads = [rule.ports(back=self.back)[0] for rule in rules]
        writes = [rule.ports(back=self.back)[1] for rule in rules]
        if self.losing:
            pairs = zip(rules, writes, strict=True)
            known = frozenset(show_path(p) for rule, ps in pairs if _can_lose(rule) for p in ps)
            names = self.out.keep("known", known)
            self.out.line(f"if L and not L.keys() <= {names}: raise Unusual")
        self._open({*_flat(reads)}, {*_flat(writes)})
        anchors = self._anchors()
        taken = self._take(reads)
        self._clean(_flat(reads))
        self._check_strays({*_flat(writes)} - {*_flat(reads)})
        for rule, values, paths in zip(rules, taken, writes, strict=True):
            _RuleWriter(self, rule, values, paths, anchors.get(id(rule), "")).write()

    def _open(self, reads: set[Path], writes: set[Path]) -> None:
        looked_at = watched(self.block, back=self.back)
        inside = {path[:size] for path in reads | writes for size in range(1, len(path))}
        inside |= {at[:size] for at in looked_at for size in range(1, len(at) + 1)}
        self.containers[()] = self.top
        for at in sorted(inside, key=len):
            self.containers[at] = self.out.fresh("c")
            if any(at[:size] in reads for size in range(1, len(at) + 1)):
                self.out.line(f"{self.containers[at]} = M")  # it is taken as a whole
            else:
                self._open_one(at)
        for at, (allowed, refused) in looked_at.items():
            self._watch(self.containers[at], allowed, refused)

    def _open_one(self, at: Path) -> None:
        line, var, parent = self.out.line, self.containers[at], self.containers[at[:-1]]
        got = f"{parent}.get({at[-1]!r}, M)"
        line(f"{var} = {got}" if len(at) == 1 else f"{var} = M if {parent} is M else {got}")
        line(f"if {var} is not M:")
        line(f"    if type({var}) is not dict: {var} = {parent}[{at[-1]!r}] = opened({var})")
        if len(at) > self._pinned:
            line(f"    if not {var}: raise Unusual")

    def _watch(self, var: str, allowed: frozenset[str] | None, refused: frozenset[str]) -> None:
        """Write code that raises Unusual for fields that only the interpreter can convert.

        The generated variable `var` has an object, which may have only the fields in `allowed`
        (None: any field), and none of the fields in `refused`.
        """
        if allowed is not None:
            names = self.out.keep("known", allowed)
            self.out.line(f"if {var} is not M and not {var}.keys() <= {names}: raise Unusual")
        if refused:
            found = " or ".join(f"{name!r} in {var}" for name in sorted(refused))
            there = "" if var == self.top else f"{var} is not M and "
            self.out.line(f"if {there}({found}): raise Unusual")

    @property
    def _pinned(self) -> int:
        return 1 if self.block.root else 0

    def _anchors(self) -> dict[int, str]:
        """Write code that records whether the object has the top-level field of each constant.

        The code does this before any rule changes the object. Return the variable for each constant
        rule, by the `id` of the rule.
        """
        found: dict[int, str] = {}
        for rule in self.block.rules:
            at = rule.constant
            if at is not None and self.block.root and len(at) > 1:
                var = self.out.fresh("a")
                self.out.line(f"{var} = {at[0]!r} in {self.top}")
                found[id(rule)] = var
        return found

    def _take(self, reads: Sequence[Sequence[Path]]) -> list[tuple[str, ...]]:
        """Write code that moves the values which rules read into variables.

        Return the names of these variables for each rule.
        """
        found = {path: self.out.fresh("v") for path in _flat(reads)}
        by_holder: dict[str, list[Path]] = {}
        for path in found:
            by_holder.setdefault(self.containers[path[:-1]], []).append(path)
        for holder, paths in by_holder.items():
            known = holder == self.top
            if not known:
                self.out.line(f"if {holder} is M: {' = '.join(found[path] for path in paths)} = M")
                self.out.line("else:")
            for path in paths:
                space = "" if known else "    "
                self.out.line(f"{space}{found[path]} = {holder}.pop({path[-1]!r}, M)")
        return [tuple(found[path] for path in paths) for paths in reads]

    def _clean(self, reads: Iterable[Path]) -> None:
        """Write code that removes objects which are empty after values were moved out of them.

        If such an object is not empty and the target version does not have it, the code raises
        Unusual.
        """
        emptied = {path[:size] for path in reads for size in range(1, len(path))}
        for at in sorted(emptied, key=len, reverse=True):
            var, parent = self.containers[at], self.containers[at[:-1]]
            if len(at) > self._pinned:
                self.out.line(
                    f"if {var} is not M and not {var}: del {parent}[{at[-1]!r}]; {var} = M"
                )
            if is_alone(self.block, at, back=self.back):
                self.out.line(f"if {var} is not M: raise Unusual")

    def _check_strays(self, paths: Iterable[Path]) -> None:
        """Write code that raises Unusual if the object already has a value at one of these paths.

        The paths are those that rules write but do not read.
        """
        by_holder: dict[str, set[str]] = {}
        for path in paths:
            by_holder.setdefault(self.containers[path[:-1]], set()).add(path[-1])
        for holder, names in by_holder.items():
            self._watch(holder, None, frozenset(names))

    def put(self, path: Path, value: str) -> None:
        """Write code that stores a value, and creates the missing objects around it."""
        for size in range(1, len(path)):
            at = path[:size]
            var, parent = self.containers[at], self.containers[at[:-1]]
            if size <= self._pinned:
                self.out.line(f"if {var} is M: raise Unusual")
            else:
                self.out.line(f"if {var} is M: {var} = {parent}[{at[-1]!r}] = {{}}")
        self.out.line(f"{self.containers[path[:-1]]}[{path[-1]!r}] = {value}")


@dataclass(slots=True)
class _RuleWriter:
    """Writes the code for one rule; the values that the rule reads are in variables."""

    block: _BlockWriter
    rule: ConversionRule
    values: tuple[str, ...]
    paths: tuple[Path, ...]
    anchor: str

    @property
    def _out(self) -> _Writer:
        return self.block.out

    @property
    def _run(self) -> tuple[ConversionRule, bool]:
        """The rule without reversal, and the direction in which it runs."""
        return unreversed(self.rule, back=self.block.back)

    def write(self) -> None:
        rule, _ = self._run
        match rule:
            case MoveRule() if rule.inside.trivial:
                self._write([self.values[0]])
            case DropRule():
                self._drop()
            case ConstRule():
                self._const(rule)
            case MoveRule() | EachRule() | WrapRule() | KeyedRule():
                self._nested()
            case _:
                self._simple()

    def _write(self, made: Sequence[str]) -> None:
        for path, value in zip(self.paths, made, strict=True):
            self._check_metadata(path, value)
            self._out.line(f"if {value} is not M:")
            self._out.indent += 1
            self.block.put(path, value)
            self._out.indent -= 1

    def _check_metadata(self, path: Path, value: str) -> None:
        if self.block.block.root and path[0] == "metadata":
            self._out.line(f"if {value} is not M:")
            self._out.line(f"    {value} = plain({value})")
            fits = self._out.keep("fits", partial(fits_metadata, path))
            self._out.line(f"    if not {fits}({value}): raise Unusual")

    def _interpreted(self, made: Sequence[str]) -> str:
        """Build the code that runs this rule in the interpreter, which can preserve lost values.

        In code that cannot preserve values (`losing` is False), raise Loses instead.
        """
        if not self.block.losing:
            return "raise Loses"
        block, back = self.block.block, self.block.back
        reads, writes = self.rule.ports(back=back)
        interpreted = runtime.RuleByInterpreter(
            block,
            self.rule,
            back,
            settled(block.read(back=back), reads, self.block.far[0]),
            settled(block.written(back=back), writes, self.block.far[1]),
        )
        name = self._out.keep("rule", interpreted)
        outs = f"({', '.join(made)}{',' if made else ''})" if made else "_"
        ins = ", ".join(self.values) + ("," if self.values else "")
        return f"{outs}, K = {name}(({ins}), L, K)"

    def _hit(self) -> str:
        """Build a condition that is true if a path that this rule writes has a preserved field."""
        if not self.block.losing or not self.paths:
            return ""
        names = [show_path(path) for path in self.paths]
        return " or ".join(f"{name!r} in L" for name in names)

    def _drop(self) -> None:
        line, losing = self._out.line, self.block.losing
        if self.values:
            value = self.values[0]
            line(f"if {value} is not M:")
            if losing:
                name = show_path(self.rule.ports(back=self.block.back)[0][0])
                line("    if K is None: K = {}")
                line(f"    K[{name!r}] = {{'is': plain({value})}}")
            else:
                line("    raise Loses")
        elif losing:
            made, name = self._out.fresh("w"), show_path(self.paths[0])
            line(f"{made} = preserved(L.pop({name!r})) if L and {name!r} in L else M")
            self._write([made])

    def _const(self, rule: ConstRule) -> None:
        encoded = msgspec.json.encode(rule.value)
        condition = self.anchor or "True"
        if self.values:
            names = self._out.keep("const", encoded), self._out.keep("const", rule.value)
            value = self.values[0]
            same_ = f"{value} is not M and is_const({value}, {', '.join(names)})"
            self._out.line(f"if {condition} and not ({same_}): {self._interpreted([])}")
            return
        made = self._out.fresh("w")
        const = self._out.keep("const", Raw(encoded))
        self._out.line(f"{made} = {const} if {condition} else M")
        if hit := self._hit():
            self._out.line(f"if {condition} and L and ({hit}): {self._interpreted([made])}")
        self._write([made])

    def _simple(self) -> None:
        made = [self._out.fresh("w") for _ in self.paths]
        run = self._out.keep("lossless", lossless(self.rule, back=self.block.back))
        missing = " and ".join(f"{value} is M" for value in self.values)
        condition = ""
        if self.rule.constant is not None:
            # The rule may write a value although it reads none.
            if self.anchor:
                self._out.line(f"if not {self.anchor} and not ({missing}): raise Unusual")
                condition = f"{self.anchor} and "
            missing = f"not {self.anchor}" if self.anchor else "False"
        self._out.line(f"if {missing}: {' = '.join(made)} = M")
        self._out.line("else:")
        self._out.indent += 1
        for value in self.values:
            self._out.line(f"if type({value}) is Raw: {value} = decode({value})")
            self._out.line(f"elif type({value}) in (dict, list): {value} = plain({value})")
        found = self._out.fresh("f")
        self._out.line(f"{found} = {run}({', '.join(self.values)})")
        self._out.line(f"if {found} is None: {self._interpreted(made)}")
        unpacked = f"{', '.join(made)} = {found}"
        self._out.line(f"else: {unpacked}")
        self._out.indent -= 1
        if hit := self._hit():
            self._out.line(f"if {condition}L and ({hit}): {self._interpreted(made)}")
        self._write(made)

    def _nested(self) -> None:
        made, value = self._out.fresh("w"), self.values[0]
        line = self._out.line
        line(f"if {value} is M: {made} = M")
        hit = self._hit()
        preserving = self._preserving(made) if self.block.losing else ""
        if hit:
            line(f"elif L and ({hit}): {preserving}")
        line("else:")
        self._out.indent += 1
        if self.block.losing:
            self._guarded(made, preserving)
        else:
            self._inside(made)
        self._out.indent -= 1
        if hit:
            line(f"if {value} is M and L and ({hit}): {self._interpreted([made])}")
        self._write([made])

    def _preserving(self, made: str) -> str:
        """Build the code that runs this rule, and preserves and restores fields inside its value.

        For a list whose items have a key, this is compiled code. Otherwise it is the interpreter.
        """
        rule, back = self._run
        interpreted = self._interpreted([made])
        key = runtime.unchanged_key(rule)
        if not key:
            return interpreted
        assert isinstance(rule, EachRule)
        reads, writes = (show_path(paths[0]) for paths in self.rule.ports(back=self.block.back))
        otherwise = self._out.names[interpreted.partition("K = ")[2].partition("(")[0]]
        one = _preserving_item(rule.inside, back=back, far=self.block.far)
        run = runtime.KeyedItems(one, key, reads, writes, otherwise)
        return f"{made}, K = {self._out.keep('items', run)}({self.values[0]}, L, K)"

    def _guarded(self, made: str, preserving: str) -> None:
        """Write code that converts a value by the rules inside of this rule.

        If a part of the value would be lost, the code continues with the code in `preserving`.
        """
        line, value = self._out.line, self.values[0]
        line("try:")
        self._out.indent += 1
        self._inside(made)
        self._out.indent -= 1
        line("except (Loses, Unusual):")
        # If the value is not Raw, compiled code has changed it in place. The interpreter must then
        # convert the whole object again from the beginning.
        line(f"    if type({value}) is not Raw: raise Unusual")
        line(f"    {preserving}")

    def _inside(self, made: str) -> None:
        """Write code that converts a value by the rules inside of this rule.

        If a part of the value would be lost, the code raises Loses.
        """
        line, value = self._out.line, self.values[0]
        rule, back = self._run
        match rule:
            case KeyedRule():
                one = _item(rule.inside, back=back)
                run = keyed(rule, one, back=back)
                line(f"{made} = {self._out.keep('keyed', run)}({value})")
            case EachRule() if rule.inside.trivial:
                line(f"{made} = items_of({value})")
            case EachRule():
                item = self._out.fresh("i")
                line(f"{made} = objects_in({value})")
                line(f"for {item} in {made}:")
                self._out.indent += 1
                self._items(rule.inside, item)
                self._out.indent -= 1
            case WrapRule() if back:
                line(f"{made} = items_of({value})")
                line(f"if len({made}) != 1 or is_null({made}[0]): raise Loses")
                line(f"{made} = {made}[0]")
                self._one(rule.inside, made)
            case WrapRule():
                line(f"if is_null({value}): raise Loses")
                line(f"{made} = {value}")
                self._one(rule.inside, made)
                line(f"{made} = [{made}]")
            case MoveRule():
                line(f"{made} = {value}")
                self._one(rule.inside, made)

    def _one(self, block: RuleBlock, made: str) -> None:
        if not block.trivial:
            self._out.line(f"{made} = opened({made})")
            self._items(block, made)

    def _items(self, block: RuleBlock, top: str) -> None:
        back = self._run[1]
        _BlockWriter(self._out, block, back=back, losing=False, top=top).write()
        self._out.line("pass")


def _item(block: RuleBlock, *, back: bool) -> Callable[[Any], Any] | None:
    """Compile a block to a function that converts a value; None if the block changes nothing.

    The function raises Loses if any part of the value would be lost.
    """
    if block.trivial:
        return None
    writer = _Writer()
    writer.line("def convert(top):")
    writer.indent = 1
    writer.line("try:")
    writer.line("    top = opened(top)")
    writer.indent = 2
    _BlockWriter(writer, block, back=back, losing=False).write()
    writer.indent = 1
    writer.line("except Unusual: raise Loses from None")
    writer.line("return top")
    made: Callable[[Any], Any] = writer.function("convert")
    return made


def _preserving_item(
    block: RuleBlock, *, back: bool, far: tuple[Settled, Settled]
) -> runtime.PreservingItem:
    """Compile a block to a function that converts an item of a list in place.

    The function gets the item and its preserved fields, and returns the newly preserved fields. It
    raises Unusual if only the interpreter can convert the item.
    """
    writer = _Writer()
    writer.line("def convert(top, L):")
    writer.indent = 1
    writer.line("K = None")
    _BlockWriter(writer, block, back=back, losing=True, far=far).write()
    writer.line("if L: raise Unusual")
    writer.line("return K")
    made: runtime.PreservingItem = writer.function("convert")
    return made


def _can_lose(rule: ConversionRule) -> bool:
    rule, _ = unreversed(rule, back=False)
    return not (isinstance(rule, MoveRule) and rule.inside.trivial)


def _flat(paths: Iterable[Sequence[Path]]) -> list[Path]:
    return [path for each in paths for path in each]
