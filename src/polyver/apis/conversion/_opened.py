"""Ways for objects of which some is still JSON: what a webhook is asked for in hundreds.

What rules do not look into is never read; functions of users are given all, read once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from msgspec import MsgspecError, Raw
from msgspec.json import decode, encode

from polyver.apis.conversion._carry import Carry
from polyver.apis.conversion._compile import Compiled, Unusual, compile_way
from polyver.apis.conversion._delta import has_guards
from polyver.apis.conversion._keeping import Keeping
from polyver.apis.conversion.hops import ByFunctions, ByRules, Step
from polyver.core import ConversionTree, Hop
from polyver.kube.objects.converted import check_identity, restored

__all__ = ["OpenedWays", "Way", "check_passing", "touches_metadata"]

Object = dict[str, Any]
Way = Callable[[Object], Object | Raw | None]
Convert = Callable[[Object, str], Object]


class OpenedWays(dict[tuple[str, str], Way | None]):
    """The way from one version to another, made when it is first asked for."""

    def __init__(
        self, tree: ConversionTree[Step], group: str, keeping: Keeping, convert: Convert
    ) -> None:
        self._tree = tree
        self._group = group
        self._keeping = keeping
        self._convert = convert

    def __missing__(self, pair: tuple[str, str]) -> Way | None:
        self[pair] = self._made(*pair)
        return self[pair]

    def _made(self, source: str, target: str) -> Way | None:
        hops = self._tree.way(source, target)
        if any(isinstance(hop.convert, ByFunctions) for hop in hops):
            return _by_functions(target, self._convert)
        lean, whole = (compile_way(hops, raw=True, lean=each) for each in (True, False))
        if lean is None or whole is None:
            return None
        return _by_rules(hops, lean, whole, self._keeping, f"{self._group}/{target}")


def touches_metadata(hops: Sequence[Hop[Step]]) -> bool:
    """Whether rules may change labels and annotations, which are to be looked at afterwards."""
    steps = [hop.convert for hop in hops if isinstance(hop.convert, ByRules)]
    rules = [rule for step in steps for rule in step.block.rules]
    return any(path[0] == "metadata" for rule in rules for path in (*rule.sources, *rule.targets))


def _by_functions(target: str, convert: Convert) -> Way:
    def way(top: Object) -> Raw | None:
        try:
            obj = decode(encode(top))
        except (MsgspecError, UnicodeError):
            return None  # such as a number that is out of range, which is reported elsewhere
        made = convert(obj, target)
        before, after = obj.get("metadata"), made.get("metadata")
        if after is not before and after != before:
            check_identity(obj, made)
            restored(before if type(before) is dict else {}, after)
        return Raw(encode(made))

    return way


def _by_rules(
    hops: Sequence[Hop[Step]], lean: Compiled, whole: Compiled, keeping: Keeping, version: str
) -> Way:
    source, may_be_in = hops[0].source, keeping.may_be_in

    def convert(top: Object) -> Object | None:
        try:
            if may_be_in(top):
                top, carry = keeping.split_raw(top)
                carry.lost.pop(source, None)
                check_passing(carry, hops)
                whole(top, carry.lost)
                top = keeping.join_raw(top, carry)
            else:
                lost: dict[str, Any] = {}
                lean(top, lost)
                if lost:
                    top = keeping.join_raw(top, Carry(lost))
        except (Unusual, MsgspecError, UnicodeError):
            return None  # something is not what it nearly always is
        top["apiVersion"] = version
        return top

    return convert


def check_passing(carry: Carry, way: Sequence[Hop[Step]]) -> None:
    """What is only passed on needs the interpreter if it has guards: it may be stale."""
    passed = carry.lost.keys() - {hop.target for hop in way}
    if any(has_guards(carry.lost[version]) for version in passed):
        raise Unusual
