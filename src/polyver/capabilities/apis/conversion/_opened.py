"""Ways for objects that are opened, from bytes to bytes: what a webhook is asked for in hundreds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from msgspec import MsgspecError

from polyver.capabilities.apis.conversion._carry import Carry
from polyver.capabilities.apis.conversion._compile import Compiled, Unusual, compile_way
from polyver.capabilities.apis.conversion._delta import has_guards
from polyver.capabilities.apis.conversion._hops import Step
from polyver.capabilities.apis.conversion._keeping import Keeping
from polyver.core import ConversionTree, Hop

__all__ = ["OpenedWays", "Way", "check_passing"]

Object = dict[str, Any]
Way = Callable[[Object], Object | None]


class OpenedWays(dict[tuple[str, str], Way | None]):
    """The way from one version to another, made when it is first asked for."""

    def __init__(self, tree: ConversionTree[Step], group: str, keeping: Keeping) -> None:
        self._tree = tree
        self._group = group
        self._keeping = keeping

    def __missing__(self, pair: tuple[str, str]) -> Way | None:
        hops = self._tree.way(*pair)
        lean, whole = (compile_way(hops, raw=True, lean=each) for each in (True, False))
        made = None
        if lean is not None and whole is not None:
            made = _by_rules(hops, lean, whole, self._keeping, f"{self._group}/{pair[1]}")
        self[pair] = made
        return made


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
