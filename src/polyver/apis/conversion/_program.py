"""Rules as a program for compiled code: what the code that is written for Python does, as data.

Only ways on which every rule is one that the compiled code knows have a program. What such a
program does not expect it leaves to Python, so it need not know of anything that is lost.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import msgspec

from polyver.apis.conversion._block import Block
from polyver.apis.conversion._watching import is_alone, watched
from polyver.apis.conversion.hops import Step, compilable
from polyver.apis.conversion.nested import Each, Keyed, Move, Wrap
from polyver.apis.conversion.paths import Path
from polyver.apis.conversion.rules import Cast, Const, Drop, Rule, Scale, Split, Values
from polyver.core import Hop
from polyver.native import Program

__all__ = ["program_of"]

_OPERATIONS: Final = (
    "move drop const_written const_read values to_whole to_text times divided split join "
    "wrap unwrap each keyed unkeyed"
).split()
_TAKEN, _NOT_EMPTY, _PINNED = 1, 2, 4
_GOES, _ALONE = 1, 2
_MOST: Final = 10**18
_MOST_LEVELS: Final = 10
"""Rules inside of rules: Python's own code takes not many more."""
_LONGEST: Final = 50
"""Names in a path."""


class _Unknown(Exception):
    """A rule that the compiled code does not know."""


def program_of(hops: Sequence[Hop[Step]]) -> Program | None:
    """The blocks of a way, one for each hop; None if Python has to walk it."""
    steps = compilable(hops)
    if steps is None:
        return None
    try:
        return tuple(_BlockProgram(step.block, back=step.back).made() for step in steps)
    except (_Unknown, UnicodeEncodeError):
        return None


@dataclass(slots=True)
class _BlockProgram:
    """A block in one direction; what is at a path is known by its number from then on."""

    block: Block
    back: bool
    level: int = 0
    numbers: dict[Path, int] = field(default_factory=lambda: {(): 0})
    anchors: list[bytes] = field(default_factory=list)

    def made(self) -> Program:
        rules, back = self.block.rules, self.back
        ports = [rule.ports(back=back) for rule in rules]
        reads = [path for paths, _ in ports for path in paths]
        writes = [path for _, paths in ports for path in paths]
        looked_at = watched(self.block, back=back)
        containers = self._containers({*reads}, {*writes}, looked_at)
        allowed = [(at, names) for at, (names, _) in looked_at.items() if names is not None]
        refused = [(at, names) for at, (_, names) in looked_at.items() if names]
        first = 0
        written: list[Program] = []
        for rule, (read, _) in zip(rules, ports, strict=True):
            written.append(self._rule(rule, first))
            first += len(read)
        strays = [(path[:-1], {path[-1]}) for path in {*writes} - {*reads}]
        return (
            containers,
            self._names(allowed),
            self._names(refused),
            tuple(self.anchors),
            tuple(map(self._port, reads)),
            self._cleans(reads),
            self._names(strays),
            tuple(written),
        )

    @property
    def _pinned(self) -> int:
        return 1 if self.block.root else 0

    def _containers(
        self, reads: set[Path], writes: set[Path], looked_at: Iterable[Path]
    ) -> Program:
        inside = {path[:size] for path in reads | writes for size in range(1, len(path))}
        inside |= {at[:size] for at in looked_at for size in range(1, len(at) + 1)}
        made: list[Program] = []
        if any(len(at) > _LONGEST for at in inside):
            raise _Unknown
        for at in sorted(inside, key=lambda each: (len(each), each)):
            taken = any(at[:size] in reads for size in range(1, len(at) + 1))
            flags = _NOT_EMPTY if len(at) > self._pinned else _PINNED
            made.append((self.numbers[at[:-1]], _text(at[-1]), flags | (_TAKEN if taken else 0)))
            self.numbers[at] = len(made)
        return tuple(made)

    def _port(self, path: Path) -> Program:
        return (self.numbers[path[:-1]], _text(path[-1]))

    def _names(self, found: Iterable[tuple[Path, Iterable[str]]]) -> Program:
        return tuple((self.numbers[at], tuple(map(_text, sorted(names)))) for at, names in found)

    def _cleans(self, reads: Iterable[Path]) -> Program:
        emptied = {path[:size] for path in reads for size in range(1, len(path))}
        made: list[Program] = []
        for at in sorted(emptied, key=len, reverse=True):
            goes = _GOES if len(at) > self._pinned else 0
            alone = _ALONE if is_alone(self.block, at, back=self.back) else 0
            made.append((self.numbers[at], goes | alone))
        return tuple(made)

    # Rules.

    def _rule(self, rule: Rule, first: int) -> Program:
        reads, writes = rule.ports(back=self.back)
        if self.block.root and any(path[0] == "metadata" for path in (*reads, *writes)):
            raise _Unknown
        operation, number, words = _said(rule, back=self.back)
        anchor = self._anchor(rule) if isinstance(rule, Const) else -1
        ports = tuple(map(self._port, writes))
        counted = (_OPERATIONS.index(operation), first, len(reads), ports)
        return (*counted, anchor, number, words, self._inside(rule))

    def _anchor(self, rule: Const) -> int:
        """The number of what a constant is part of, and without which it is not there."""
        if not self.block.root or len(rule.at) == 1:
            return -1
        self.anchors.append(_text(rule.at[0]))
        return len(self.anchors) - 1

    def _inside(self, rule: Rule) -> Program | None:
        if not isinstance(rule, Move | Wrap | Each | Keyed) or rule.inside.trivial:
            return None
        if self.level == _MOST_LEVELS:
            raise _Unknown
        return _BlockProgram(rule.inside, back=self.back, level=self.level + 1).made()


Said = tuple[str, int, tuple[bytes | None, ...]]
"""An operation, its number, and its words."""


_WORDLESS: Final[Mapping[type[Rule], tuple[str, str]]] = {
    Move: ("move", "move"),
    Drop: ("drop", "drop"),
    Wrap: ("wrap", "unwrap"),
    Each: ("each", "each"),
}
"""Rules that say nothing more than where, there and back."""


def _said(rule: Rule, *, back: bool) -> Said:  # noqa: PLR0911 - one for each rule
    if type(rule) in _WORDLESS:
        return _WORDLESS[type(rule)][back], 0, ()
    match rule:
        case Const():
            return "const_read" if back else "const_written", 0, (msgspec.json.encode(rule.value),)
        case Keyed():
            words = (rule.key, rule.value) if rule.value else (rule.key,)
            return "unkeyed" if back else "keyed", 0, tuple(map(_text, words))
        case Values():
            return "values", 0, _words(rule, back=back)
        case Cast():
            return _cast(rule, back=back)
        case Scale() if rule.factor.denominator == 1 and 0 < abs(rule.factor.numerator) < _MOST:
            return "divided" if back else "times", rule.factor.numerator, ()
        case Split() if {*rule.types} <= {"string", "integer"}:
            return _split(rule, back=back)
    raise _Unknown


def _words(rule: Values, *, back: bool) -> tuple[bytes, ...]:
    pairs = [(other, one) if back else (one, other) for one, other in rule.words.items()]
    if any(type(each) not in (str, int, bool) for pair in pairs for each in pair):
        raise _Unknown
    return tuple(msgspec.json.encode(each) for pair in pairs for each in pair)


def _cast(rule: Cast, *, back: bool) -> Said:
    kinds = (rule.source_type, rule.target_type)
    match kinds[::-1] if back else kinds:
        case ("string", "integer"):
            return "to_whole", 0, ()
        case ("integer", "string"):
            return "to_text", 0, ()
    raise _Unknown


def _split(rule: Split, *, back: bool) -> Said:
    texts = (rule.separator, rule.absent)
    if not all(each is None or _text(each)[1:-1] == each.encode() for each in texts):
        raise _Unknown  # it is written with escapes, at which the compiled code gives up
    numbers = [b"0" if kind == "integer" else b"" for kind in rule.types]
    words = [None if each is None else each.encode() for each in texts]
    return "join" if back else "split", 0, (*words, *numbers)


def _text(name: str) -> bytes:
    """A name as it is written in JSON."""
    return msgspec.json.encode(name)
