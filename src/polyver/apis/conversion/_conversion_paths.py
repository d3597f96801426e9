"""The conversion path between each two versions, as one function.

The function converts objects whose fields may still be JSON, as a webhook gets hundreds of them.
Fields that no rule reads are never decoded; users' functions get the whole object, decoded once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from msgspec import MsgspecError, Raw
from msgspec.json import decode, encode

from polyver.apis.conversion._carry import PreservedFields
from polyver.apis.conversion._compiler import Compiled, compile_path
from polyver.apis.conversion._delta import has_guards
from polyver.apis.conversion._keeping import PreservedFieldsStore
from polyver.apis.conversion._runtime import Unusual
from polyver.apis.conversion.hops import ByFunctions, ByRules, ConversionStep
from polyver.core import ConversionTree, Hop
from polyver.core.plain import Object
from polyver.kube.objects.converted_metadata import check_identity, restored

__all__ = ["ConversionPath", "ConversionPaths", "ConvertOpened"]

ConvertOpened = Callable[[Object], Object | Raw | None]
"""Converts an object, maybe in place; returns None if only the interpreter can convert it."""
Convert = Callable[[Object, str], Object]


@dataclass(frozen=True, slots=True)
class ConversionPath:
    """The function that converts between two versions, and its properties."""

    convert: ConvertOpened
    calls_functions: bool
    touches_metadata: bool
    """True if rules may change labels and annotations, which must be checked afterwards."""


class ConversionPaths(dict[tuple[str, str], ConversionPath | None]):
    """The conversion path for two versions, compiled when it is first used."""

    def __init__(
        self,
        tree: ConversionTree[ConversionStep],
        group: str,
        keeping: PreservedFieldsStore,
        convert: Convert,
    ) -> None:
        self._tree = tree
        self._group = group
        self._keeping = keeping
        self._convert = convert

    def __missing__(self, pair: tuple[str, str]) -> ConversionPath | None:
        self[pair] = self._made(*pair)
        return self[pair]

    def _made(self, source: str, target: str) -> ConversionPath | None:
        hops = self._tree.way(source, target)
        changes = _touches_metadata(hops)
        if any(isinstance(hop.convert, ByFunctions) for hop in hops):
            by_functions = _by_functions(target, self._convert)
            return ConversionPath(by_functions, calls_functions=True, touches_metadata=changes)
        compiled = compile_path(hops)
        if compiled is None:
            return None
        by_rules = _by_rules(hops, compiled, self._keeping, f"{self._group}/{target}")
        return ConversionPath(by_rules, calls_functions=False, touches_metadata=changes)


def _touches_metadata(hops: Sequence[Hop[ConversionStep]]) -> bool:
    steps = [hop.convert for hop in hops if isinstance(hop.convert, ByRules)]
    rules = [rule for step in steps for rule in step.block.rules]
    return any(path[0] == "metadata" for rule in rules for path in (*rule.sources, *rule.targets))


def _by_functions(target: str, convert: Convert) -> ConvertOpened:
    def converted(top: Object) -> Raw | None:
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

    return converted


def _by_rules(
    hops: Sequence[Hop[ConversionStep]],
    compiled: Compiled,
    keeping: PreservedFieldsStore,
    version: str,
) -> ConvertOpened:
    source, may_be_in = hops[0].source, keeping.may_be_in
    targets = frozenset(hop.target for hop in hops)

    def converted(top: Object) -> Object | None:
        try:
            if may_be_in(top):
                top, carry = keeping.split_raw(top)
                carry.lost.pop(source, None)
                _check_passing(carry, targets)
                compiled(top, carry.lost)
                top = keeping.join_raw(top, carry)
            else:
                lost: dict[str, Any] = {}
                compiled(top, lost)
                if lost:
                    top = keeping.join_raw(top, PreservedFields(lost))
        except (Unusual, MsgspecError, UnicodeError):
            return None
        top["apiVersion"] = version
        return top

    return converted


def _check_passing(carry: PreservedFields, targets: frozenset[str]) -> None:
    """Raise Unusual if preserved fields of versions off the path have guards: they may be stale."""
    passed = carry.lost.keys() - targets
    if any(has_guards(carry.lost[version]) for version in passed):
        raise Unusual
