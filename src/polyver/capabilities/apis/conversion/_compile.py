"""Rules compiled: one function for each two versions, the whole way in one, on values not decoded.

It opens only the objects that rules look into, moves everything else as the bytes that it is, and
asks the interpreter whenever something is not as it nearly always is (`Unusual`).
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

import msgspec
from msgspec import Raw

from polyver.capabilities.apis.conversion._block import Block
from polyver.capabilities.apis.conversion._delta import Lost, without
from polyver.capabilities.apis.conversion._fast import fast
from polyver.capabilities.apis.conversion._hops import ByRules, Step
from polyver.capabilities.apis.conversion._implied import child, is_open, knows, loses, names_in
from polyver.capabilities.apis.conversion._metadata import fits_metadata
from polyver.capabilities.apis.conversion._nested import Each, Keyed, Move, Wrap
from polyver.capabilities.apis.conversion._paths import Path, show_path
from polyver.capabilities.apis.conversion._rules import Const, Drop, Ports, Rule
from polyver.capabilities.apis.conversion._values import MISSING
from polyver.core import Hop
from polyver.objects._texts import same
from polyver.objects.schema._structure import META_FIELDS, Structure

__all__ = ["Compiled", "Unusual", "compile_way"]

Object = dict[str, Any]
Compiled = Callable[[Object, dict[str, Lost]], None]
"""Changes an object, whose fields may be Raw, and what its versions lost; in place."""


class Unusual(Exception):
    """Something that the interpreter has to look at."""


class _Loses(Exception):
    """Something inside of a value would be lost."""


def compile_way(hops: Sequence[Hop[Step]], *, raw: bool) -> Compiled | None:
    """A function for a way; None if it leads over functions, or fields that a schema lacks.

    Where one version has a schema and its neighbour none, any field may be one that is lost.
    """
    steps = [hop.convert for hop in hops if isinstance(hop.convert, ByRules)]
    half_known = any(step.block.places.count(None) == 1 for step in steps)
    if len(steps) < len(hops) or half_known or not all(step.block.fits for step in steps):
        return None
    writer = _Writer(raw=raw)
    writer.line("def convert(top, lost):")
    writer.indent = 1
    for number, (hop, step) in enumerate(zip(hops, steps, strict=True)):
        before = [each.block.read(back=each.back) for each in steps[:number]]
        after = [each.block.written(back=each.back) for each in steps[number + 1 :]]
        writer.line(f"L = lost.pop({hop.target!r}, None); K = None")
        far = (_all_settled(before), _all_settled(after))
        _BlockWriter(writer, step.block, back=step.back, losing=True, far=far).write()
        writer.line("if L: raise Unusual")
        writer.line(f"if K: lost[{hop.source!r}] = K")
    compiled: Compiled = writer.function("convert")
    return compiled


# What generated code calls


def _opened_raw(value: Any) -> Object:
    """The fields of an object that is still bytes, or was opened before."""
    if type(value) is dict:
        return value
    if type(value) is not Raw:  # a text would be read as if it were bytes
        raise Unusual
    try:
        return _fields(value)
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        raise Unusual from None


def _opened_plain(value: Any) -> Object:
    if type(value) is not dict:
        raise Unusual
    return value


def _listed_raw(value: Any) -> list[Any]:
    if type(value) is list:
        return value
    if type(value) is not Raw:
        raise _Loses
    try:
        return _items(value)
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        raise _Loses from None


def _listed_plain(value: Any) -> list[Any]:
    if type(value) is not list:
        raise _Loses
    return value


def _plain(value: Any) -> Any:
    """A value that may be bytes, or have bytes inside, as plain data."""
    if type(value) is Raw:
        return msgspec.json.decode(value)
    if type(value) is dict or type(value) is list:
        return msgspec.json.decode(msgspec.json.encode(value))
    return value


_fields = msgspec.json.Decoder(dict[str, Raw]).decode
_items = msgspec.json.Decoder(list[Raw]).decode


@dataclass(frozen=True, slots=True)
class Settled:
    """Whether what a guard is made of is the same with the defaults of the versions on the way."""

    has_schema: bool
    has_defaults: bool

    def check(self, values: Ports) -> None:
        # Filling in defaults also drops nulls.
        if self.has_defaults or (self.has_schema and any(map(_has_null, values))):
            raise Unusual


def _has_null(value: Any) -> bool:
    if type(value) is dict:
        return any(map(_has_null, value.values()))
    return any(map(_has_null, value)) if type(value) is list else value is None


@dataclass(frozen=True, slots=True)
class _Slow:
    """A rule as the interpreter runs it, for what is lost and what is restored."""

    block: Block
    rule: Rule
    back: bool
    reads: Settled
    writes: Settled

    def __call__(self, values: Ports, before: Lost | None, after: Lost | None) -> Any:
        values = tuple(map(_plain, values))
        made = self.rule.run(values, back=self.back)
        made = self.block.allowed(self.rule, made, back=self.back)
        if before:
            made = self._restored(made, before, values)
        lost = self.block.lost_by(self.rule, values, made, back=self.back)
        guards = list(self.rule.guards(lost, made, back=not self.back))
        if guards:
            self.writes.check(made)
        for entry, key, now in guards:
            entry[key] = now
        if lost:
            after = {} if after is None else after
            after |= lost
        return made, after

    def _restored(self, made: Ports, before: Lost, values: Ports) -> Ports:
        names = map(show_path, self.rule.ports(back=self.back)[1])
        own = {name: before.pop(name) for name in names if name in before}
        if any("whole" in entry for entry in own.values()):
            raise Unusual
        checked = list(self.rule.guards(own, values, back=self.back))
        if checked:
            self.reads.check(values)
        stale = {id(entry) for entry, key, now in checked if entry[key] != now}
        return self.rule.restored(made, without(own, stale), back=self.back)


def _kept(entry: dict[str, Any]) -> Any:
    """What was lost of a field that belongs to nothing visible."""
    if entry.keys() != {"is"}:
        raise Unusual
    return entry["is"]


def _is_const(value: Any, encoded: bytes, plain: Any) -> bool:
    if type(value) is Raw:
        return bytes(value) == encoded or same(_plain(value), plain)
    return same(_plain(value), plain)


class _Writer:
    """Source code, and the values that it refers to."""

    def __init__(self, *, raw: bool) -> None:
        self.raw = raw
        self.indent = 0
        self._lines: list[str] = []
        self._count = 0
        self.names: dict[str, Any] = {
            "M": MISSING,
            "Raw": Raw,
            "Unusual": Unusual,
            "Loses": _Loses,
            "opened": _opened_raw if raw else _opened_plain,
            "listed": _listed_raw if raw else _listed_plain,
            "plain": _plain,
            "is_const": _is_const,
            "kept": _kept,
        }

    def line(self, text: str) -> None:
        self._lines.append("    " * self.indent + text)

    def fresh(self, prefix: str) -> str:
        self._count += 1
        return f"{prefix}{self._count}"

    def keep(self, prefix: str, value: Any) -> str:
        """A name for a value in the code."""
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
    """Code for the rules of one block in one direction, on the object in the variable `top`."""

    out: _Writer
    block: Block
    back: bool
    losing: bool
    """Whether what is lost is kept; if not, the code raises Loses instead."""
    far: tuple[Settled, Settled] = (Settled(False, False), Settled(False, False))
    """The same for the versions before and behind the two of this block."""
    containers: dict[Path, str] = field(default_factory=dict)

    def write(self) -> None:
        rules = self.block.rules
        reads = [rule.ports(back=self.back)[0] for rule in rules]
        writes = [rule.ports(back=self.back)[1] for rule in rules]
        if self.losing:
            pairs = zip(rules, writes, strict=True)
            known = frozenset(show_path(p) for rule, ps in pairs if _can_lose(rule) for p in ps)
            self.out.line(
                f"if L and not L.keys() <= {self.out.keep('known', known)}: raise Unusual"
            )
        self._open({*_flat(reads)}, {*_flat(writes)})
        anchors = self._anchors()
        taken = self._take(reads)
        self._clean(_flat(reads))
        self._check_strays({*_flat(writes)} - {*_flat(reads)})
        for rule, values, paths in zip(rules, taken, writes, strict=True):
            _RuleWriter(self, rule, values, paths, anchors.get(id(rule), "")).write()

    def _open(self, reads: set[Path], writes: set[Path]) -> None:
        watched = _watched(self.block, back=self.back)
        inside = {path[:size] for path in reads | writes for size in range(1, len(path))}
        inside |= {at[:size] for at in watched for size in range(1, len(at) + 1)}
        self.containers[()] = "top"
        for at in sorted(inside, key=len):
            self.containers[at] = self.out.fresh("c")
            if any(at[:size] in reads for size in range(1, len(at) + 1)):
                self.out.line(f"{self.containers[at]} = M")  # it is taken as a whole
            else:
                self._open_one(at)
        for at, (allowed, refused) in watched.items():
            self._watch(self.containers[at], allowed, refused)

    def _open_one(self, at: Path) -> None:
        line, var, parent = self.out.line, self.containers[at], self.containers[at[:-1]]
        got = f"{parent}.get({at[-1]!r}, M)"
        line(f"{var} = {got}" if parent == "top" else f"{var} = M if {parent} is M else {got}")
        line(f"if {var} is not M:")
        line(f"    if type({var}) is not dict: {var} = {parent}[{at[-1]!r}] = opened({var})")
        if len(at) > self._pinned:
            line(f"    if not {var}: raise Unusual")

    def _watch(self, var: str, allowed: frozenset[str] | None, refused: frozenset[str]) -> None:
        """Leave objects to the interpreter that have fields which only it can tell about."""
        if allowed is not None:
            names = self.out.keep("known", allowed)
            self.out.line(f"if {var} is not M and not {var}.keys() <= {names}: raise Unusual")
        if refused:
            names = self.out.keep("known", refused)
            self.out.line(
                f"if {var} is not M and not {var}.keys().isdisjoint({names}): raise Unusual"
            )

    @property
    def _pinned(self) -> int:
        return 1 if self.block.root else 0

    def _anchors(self) -> dict[int, str]:
        """For constants: whether what they are part of is there, before anything changes."""
        found: dict[int, str] = {}
        for rule in self.block.rules:
            if isinstance(rule, Const) and self.block.root and len(rule.at) > 1:
                var = self.out.fresh("a")
                self.out.line(f"{var} = {rule.at[0]!r} in top")
                found[id(rule)] = var
        return found

    def _take(self, reads: Sequence[Sequence[Path]]) -> list[tuple[str, ...]]:
        """Code that takes out what rules read; the variables, for each rule."""
        found = {path: self.out.fresh("v") for path in _flat(reads)}
        by_holder: dict[str, list[Path]] = {}
        for path in found:
            by_holder.setdefault(self.containers[path[:-1]], []).append(path)
        for holder, paths in by_holder.items():
            self.out.line(f"if {holder} is M: {' = '.join(found[path] for path in paths)} = M")
            self.out.line("else:")
            for path in paths:
                self.out.line(f"    {found[path]} = {holder}.pop({path[-1]!r}, M)")
        return [tuple(found[path] for path in paths) for paths in reads]

    def _clean(self, reads: Iterable[Path]) -> None:
        """Objects that were emptied go; what must not be left over does not stay unseen."""
        emptied = {path[:size] for path in reads for size in range(1, len(path))}
        for at in sorted(emptied, key=len, reverse=True):
            var, parent = self.containers[at], self.containers[at[:-1]]
            if len(at) > self._pinned:
                self.out.line(
                    f"if {var} is not M and not {var}: del {parent}[{at[-1]!r}]; {var} = M"
                )
            if _is_alone(self.block, at, back=self.back):
                self.out.line(f"if {var} is not M: raise Unusual")

    def _check_strays(self, paths: Iterable[Path]) -> None:
        """What stands where a rule may write, and is read by none, is in nobody's way yet."""
        by_holder: dict[str, set[str]] = {}
        for path in paths:
            by_holder.setdefault(self.containers[path[:-1]], set()).add(path[-1])
        for holder, names in by_holder.items():
            self._watch(holder, None, frozenset(names))

    def put(self, path: Path, value: str) -> None:
        """Code that writes a value, which is there, with the objects around it."""
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
    """Code for one rule, whose values were taken into variables."""

    block: _BlockWriter
    rule: Rule
    values: tuple[str, ...]
    paths: tuple[Path, ...]
    anchor: str

    @property
    def _out(self) -> _Writer:
        return self.block.out

    def write(self) -> None:
        match self.rule:
            case Move() if self.rule.inside.trivial:
                self._write([self.values[0]])
            case Drop():
                self._drop()
            case Const():
                self._const()
            case Move() | Each() | Wrap() | Keyed():
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

    def _slow(self, made: Sequence[str]) -> str:
        """Code that asks the rule itself, or gives up where nothing may be lost."""
        if not self.block.losing:
            return "raise Loses"
        block, back = self.block.block, self.block.back
        reads, writes = self.rule.ports(back=back)
        slow = _Slow(
            block,
            self.rule,
            back,
            _settled(block.read(back=back), reads, self.block.far[0]),
            _settled(block.written(back=back), writes, self.block.far[1]),
        )
        name = self._out.keep("slow", slow)
        outs = f"({', '.join(made)}{',' if made else ''})" if made else "_"
        ins = ", ".join(self.values) + ("," if self.values else "")
        return f"{outs}, K = {name}(({ins}), L, K)"

    def _hit(self) -> str:
        """Code for whether something was lost of what this rule writes."""
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
            line(f"{made} = kept(L.pop({name!r})) if L and {name!r} in L else M")
            self._write([made])

    def _const(self) -> None:
        assert isinstance(self.rule, Const)
        encoded = msgspec.json.encode(self.rule.value)
        condition = self.anchor or "True"
        if self.values:
            const = self._out.keep("const", encoded), self._out.keep("const", self.rule.value)
            value = self.values[0]
            same_ = f"{value} is not M and is_const({value}, {const[0]}, {const[1]})"
            self._out.line(f"if {condition} and not ({same_}): {self._slow([])}")
            return
        made = self._out.fresh("w")
        const_name = self._out.keep("const", Raw(encoded) if self._out.raw else self.rule.value)
        fresh = const_name if self._out.raw else f"plain({const_name})"
        self._out.line(f"{made} = {fresh} if {condition} else M")
        if hit := self._hit():
            self._out.line(f"if {condition} and L and ({hit}): {self._slow([made])}")
        self._write([made])

    def _simple(self) -> None:
        made = [self._out.fresh("w") for _ in self.paths]
        run = self._out.keep("fast", fast(self.rule, back=self.block.back))
        missing = " and ".join(f"{value} is M" for value in self.values)
        self._out.line(f"if {missing}: {' = '.join(made)} = M")
        self._out.line("else:")
        self._out.indent += 1
        for value in self.values:
            self._out.line(f"if type({value}) is Raw: {value} = plain({value})")
        found = self._out.fresh("f")
        self._out.line(f"{found} = {run}({', '.join(self.values)})")
        self._out.line(f"if {found} is None: {self._slow(made)}")
        unpacked = f"{', '.join(made)} = {found}"
        self._out.line(f"else: {unpacked}")
        self._out.indent -= 1
        if hit := self._hit():
            self._out.line(f"if L and ({hit}): {self._slow(made)}")
        self._write(made)

    def _nested(self) -> None:
        made, value = self._out.fresh("w"), self.values[0]
        run = self._out.keep("inner", _inner(self.rule, back=self.block.back, raw=self._out.raw))
        line = self._out.line
        line(f"if {value} is M: {made} = M")
        line("else:")
        if self.block.losing:
            # Plain values are changed in place, so the interpreter must begin again.
            again = self._slow([made]) if self._out.raw else "raise Unusual"
            hit = self._hit()
            line(f"    if L and ({hit}): {self._slow([made])}")
            line("    else:")
            line(f"        try: {made} = {run}({value})")
            line("        except Loses:")
            line(f"            if type({value}) is not Raw: raise Unusual")
            line(f"            {again}")
            line(f"if {value} is M and L and ({hit}): {self._slow([made])}")
        else:
            line(f"    {made} = {run}({value})")
        self._write([made])


def _inner(rule: Rule, *, back: bool, raw: bool) -> Callable[[Any], Any]:
    """What a nested rule does to a value when nothing inside is lost; Loses if something is."""
    listed = _listed_raw if raw else _listed_plain
    assert isinstance(rule, Move | Each | Wrap | Keyed)
    one = _item(rule.inside, back=back, raw=raw)
    match rule:
        case Move():
            return one
        case Wrap():
            return (lambda value: _only(listed(value), one)) if back else partial(_alone, one=one)
        case Each():
            return lambda value: [one(item) for item in listed(value)]
        case Keyed() if raw and rule.value:
            return _keyed_raw(rule, one, back=back)
        case Keyed():
            return partial(_unkeyed if back else _keyed, rule, one=one, raw=raw)


def _item(block: Block, *, back: bool, raw: bool) -> Callable[[Any], Any]:
    """A function for one value by the rules of a block; anything lost raises Loses."""
    if block.trivial:
        return lambda value: value
    opened = _opened_raw if raw else _opened_plain
    writer = _Writer(raw=raw)
    writer.line("def convert(top):")
    writer.indent = 1
    _BlockWriter(writer, block, back=back, losing=False).write()
    writer.line("return top")
    run = writer.function("convert")

    def convert(value: Any) -> Any:
        try:
            return run(opened(value))
        except Unusual:
            raise _Loses from None

    return convert


def _only(items: list[Any], one: Callable[[Any], Any]) -> Any:
    if len(items) != 1 or _is_null(items[0]):
        raise _Loses
    return one(items[0])


def _alone(value: Any, one: Callable[[Any], Any]) -> list[Any]:
    if _is_null(value):
        raise _Loses
    return [one(value)]


def _is_null(value: Any) -> bool:
    return value is None or (type(value) is Raw and bytes(value) == b"null")


def _keyed_raw(rule: Keyed, one: Callable[[Any], Any], *, back: bool) -> Callable[[Any], Any]:
    """A list of items with a key and a value, and a map, without decoding the values."""
    fields: list[tuple[str, Any, Any]] = [
        ("name", str, msgspec.field(name=rule.key)),
        ("value", Raw, msgspec.field(name=rule.value)),
    ]
    item: Any = msgspec.defstruct("Item", fields, forbid_unknown_fields=True)
    decode = msgspec.json.Decoder(list[item]).decode

    def keyed(value: Any) -> Object:
        found = _decoded(decode, value)
        names = [each.name for each in found]
        if any(map(operator.ge, names, names[1:])):
            raise _Loses
        return {each.name: one(each.value) for each in found}

    def unkeyed(value: Any) -> list[Any]:
        entries = _decoded(_fields, value)
        return [item(name, one(entries[name])) for name in sorted(entries)]

    return unkeyed if back else keyed


def _decoded(decode: Callable[[Any], Any], value: Any) -> Any:
    """A value that may be bytes, or was opened or made before, as a decoder has it."""
    try:
        return decode(value if type(value) is Raw else msgspec.json.encode(value))
    except (msgspec.MsgspecError, TypeError, UnicodeError, RecursionError):
        raise _Loses from None


def _keyed(rule: Keyed, value: Any, *, one: Callable[[Any], Any], raw: bool) -> Object:
    made: Object = {}
    last = None
    for item in _listed_raw(value) if raw else _listed_plain(value):
        fields = dict(_opened_raw(item) if raw else _opened_plain(item))
        name = _plain(fields.pop(rule.key, None))
        if type(name) is not str or (last is not None and name <= last):
            raise _Loses
        last = name
        if rule.value:
            if len(fields) != 1 or rule.value not in fields:
                raise _Loses
            made[name] = one(fields[rule.value])
        else:
            made[name] = one(fields)
    return made


def _unkeyed(rule: Keyed, value: Any, *, one: Callable[[Any], Any], raw: bool) -> list[Any]:
    opened = _opened_raw if raw else _opened_plain
    entries = opened(value)
    made: list[Any] = []
    for name in sorted(entries):
        found = one(entries[name])
        if rule.value:
            made.append({rule.key: name, rule.value: found})
            continue
        fields = opened(found)
        if rule.key in fields:
            raise _Loses
        made.append({rule.key: name, **fields})
    return made


# What schemas say


def _can_lose(rule: Rule) -> bool:
    return not (isinstance(rule, Move) and rule.inside.trivial)


def _flat(paths: Iterable[Sequence[Path]]) -> list[Path]:
    return [path for each in paths for path in each]


Watched = dict[Path, tuple[frozenset[str] | None, frozenset[str]]]
"""For objects: the fields that they may have, if that is limited, and those they may not."""


def _watched(block: Block, *, back: bool) -> Watched:
    """Where what is read may have fields that what is written lacks, and no rule tells which."""
    source, target = block.read(back=back), block.written(back=back)
    found: Watched = {}
    if target is not None:
        named = {path for rule in block.rules for paths in rule.ports(back=back) for path in paths}
        _watch((), source or _OPEN, target, named, found)
    return found


_OPEN: Final = Structure(preserves=True)


def _watch(
    at: Path, source: Structure, target: Structure, named: set[Path], found: Watched
) -> None:
    refused: set[str] = set()
    inside = {path[len(at)] for path in named if len(path) > len(at) and path[: len(at)] == at}
    for name in names_in(source) | names_in(target):
        path = (*at, name)
        if path in named or not knows(source, name):
            continue
        one, other = child(source, name), child(target, name)
        if not knows(target, name):
            refused |= {name} - inside
        elif one is not None and other is not None and one.fields and other.fields:
            _watch(path, one, other, named, found)
        elif loses(one, other):
            refused.add(name)
    allowed = None
    if is_open(source) and not is_open(target):
        allowed = frozenset({*target.fields, *inside, *(META_FIELDS if target.embedded else ())})
    if allowed is not None or refused:
        found[at] = (allowed, frozenset(refused))


def _is_alone(block: Block, at: Path, *, back: bool) -> bool:
    """Whether an object with named fields inside is there in what is read alone."""
    target = block.written(back=back)
    for name in at:
        if target is None:
            return False
        if not knows(target, name):
            return True
        target = target.child(name)
    return False


def _settled(place: Structure | None, paths: Iterable[Path], far: Settled) -> Settled:
    found = place is not None and any(_has_default(place, path) for path in paths)
    return Settled(place is not None or far.has_schema, found or far.has_defaults)


def _all_settled(places: Iterable[Structure | None]) -> Settled:
    found = [place for place in places if place is not None]
    return Settled(bool(found), any(_has_defaults_inside(place) for place in found))


def _has_default(place: Structure, path: Path) -> bool:
    at: Structure | None = place
    for name in path:
        at = at.child(name) if at is not None else None
        if at is None:
            return False
        if at.default is not None:
            return True
    return at is not None and _has_defaults_inside(at)


def _has_defaults_inside(place: Structure) -> bool:
    return place.default is not None or any(_has_defaults_inside(each) for each in place.within())
