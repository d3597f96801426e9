"""The conversion paths between versions: the compiled function of each path, and the interpreter.

A conversion path leads from one version to another over one or more edges (pairs of versions with
rules or functions). The function of a path converts objects whose fields may still be encoded JSON.
It never decodes fields that no rule reads, because a request to a webhook may contain hundreds of
objects. Conversion functions of users get the whole object, decoded once.

The interpreter converts an object edge by edge, and so defines the result of a conversion. Tests
compare the results of compiled rules with those of the interpreter.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from msgspec import MsgspecError, Raw
from msgspec.json import decode, encode

from polyver.apis.conversion._compiler import Compiled, compile_path
from polyver.apis.conversion._delta import has_guards, without
from polyver.apis.conversion._preserved_fields import PreservedFields, PreservedFieldsStore
from polyver.apis.conversion._runtime import Unusual
from polyver.apis.conversion.hops import ByRules, ConversionStep, calls_functions
from polyver.core import ConversionTree, Hop
from polyver.core.plain import Object
from polyver.kube.objects.converted_metadata import check_identity, fresh, restored
from polyver.kube.objects.schema import Schema

__all__ = ["ConversionPath", "ConversionPaths", "ConvertOpened", "Interpreter", "Schemas", "Tree"]

ConvertOpened = Callable[[Object], Object | Raw | None]
"""Converts an object, possibly in place, and returns the result.

Returns None if only the interpreter can convert the object.
"""
Convert = Callable[[Object, str], Object]
Tree = ConversionTree[ConversionStep]
Schemas = Mapping[str, Schema]
"""The compiled schemas, by version; a version without a schema is left out."""


@dataclass(frozen=True, slots=True)
class ConversionPath:
    """The function of a conversion path; it may call users' functions or change metadata."""

    convert: ConvertOpened
    calls_functions: bool
    touches_metadata: bool
    """True if rules may change labels or annotations. The caller must then check the metadata."""


class ConversionPaths(dict[tuple[str, str], ConversionPath | None]):
    """The conversion paths by source and target version, each compiled at its first use."""

    def __init__(
        self,
        tree: Tree,
        group: str,
        keeping: PreservedFieldsStore,
        convert: Convert,
    ) -> None:
        self._tree = tree
        self._group = group
        self._keeping = keeping
        self._convert = convert

    def __missing__(self, pair: tuple[str, str]) -> ConversionPath | None:
        source, target = pair
        hops = self._tree.way(source, target)
        may_call = any(calls_functions(hop.convert) for hop in hops)
        convert: ConvertOpened | None = None
        if may_call:
            convert = _by_functions(target, self._convert)
        elif (compiled := compile_path(hops)) is not None:
            convert = _by_rules(hops, compiled, self._keeping, f"{self._group}/{target}")
        self[pair] = (
            None if convert is None else ConversionPath(convert, may_call, _touches_metadata(hops))
        )
        return self[pair]


def _touches_metadata(hops: Sequence[Hop[ConversionStep]]) -> bool:
    steps = [hop.convert for hop in hops if isinstance(hop.convert, ByRules)]
    rules = [rule for step in steps for rule in step.block.rules]
    return any(path[0] == "metadata" for rule in rules for path in (*rule.sources, *rule.targets))


def _by_functions(target: str, convert: Convert) -> ConvertOpened:
    def converted(top: Object) -> Raw | None:
        try:
            obj = decode(encode(top))
        except (MsgspecError, UnicodeError):
            # For example, a number is out of range. `convert_raw` then reports the error.
            return None
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
    api_version: str,
) -> ConvertOpened:
    source, may_be_in = hops[0].source, keeping.may_be_in
    targets = frozenset(hop.target for hop in hops)

    def converted(top: Object) -> Object | None:
        try:
            if may_be_in(top):
                top, carry = keeping.split_raw(top)
                carry.lost.pop(source, None)
                passed = carry.lost.keys() - targets
                if any(has_guards(carry.lost[version]) for version in passed):
                    # The interpreter must check the guards of versions that are not on the path.
                    return None
                compiled(top, carry.lost)
                top = keeping.join_raw(top, carry)
            else:
                lost: dict[str, Any] = {}
                compiled(top, lost)
                if lost:
                    top = keeping.join_raw(top, PreservedFields(lost))
        except (Unusual, MsgspecError, UnicodeError):
            return None
        top["apiVersion"] = api_version
        return top

    return converted


class Interpreter:
    """Converts objects of one kind over each edge of a conversion path.

    Callers pass the objects without apiVersion, and their preserved fields separately.
    """

    def __init__(self, tree: Tree, schemas: Schemas) -> None:
        self._tree = tree
        self._schemas = schemas

    def convert(self, obj: Object, carry: PreservedFields, source: str, target: str) -> Object:
        """Convert an object, whose preserved fields are in `carry`, to another version.

        The preserved fields in `carry` are updated in place: restored fields are removed, and lost
        fields are added.
        """
        # A guarded value is restored only if its guard matches the current object. The guard is the
        # fingerprint of the fields on which the value depends. Remove the other guarded values.
        for version, hop, view in self._views(obj, carry, source):
            lost = carry.lost[version]
            checked = hop.convert.guards(lost, view)
            stale = {id(entry) for entry, key, now in checked if entry[key] != now}
            carry.lost[version] = without(lost, stale)
        made = self._walk(obj, carry, source, target)
        # Set the guards of all preserved fields from the converted object.
        for version, hop, view in self._views(made, carry, target):
            for entry, key, now in list(hop.convert.guards(carry.lost[version], view)):
                entry[key] = now
        return made

    def _walk(self, obj: Object, carry: PreservedFields, source: str, target: str) -> Object:
        """Convert an object over each edge of the path from `source` to `target`.

        The preserved fields in `carry` are updated in place.
        """
        for hop in self._tree.way(source, target):
            made = hop.convert.run(obj)
            made = hop.convert.restored(made, carry.lost.pop(hop.target, {}))
            if lost := hop.convert.lost(obj, made):
                carry.lost[hop.source] = lost
            obj = made
        return obj

    def _views(
        self, obj: Object, carry: PreservedFields, version: str
    ) -> Iterable[tuple[str, Hop[ConversionStep], Object]]:
        """Yield the data to check the guards of each version that has preserved fields.

        Each item is a triple: the version, the last step of the conversion path to it, and the
        object in the version from which this step converts. The object has the defaults of its
        version, because an API server may fill in defaults between any two conversions.
        """
        known = [each for each in carry.lost if each in self._tree.versions]
        ways = {each: self._tree.way(version, each) for each in known}
        for lost_version, way in sorted(ways.items(), key=lambda pair: len(pair[1])):
            if not way:  # an object cannot have lost fields of its own version
                del carry.lost[lost_version]
                continue
            hop = way[-1]
            view = self._defaulted(obj, version)
            if hop.source != version:
                kept = PreservedFields({v: fresh(each) for v, each in carry.lost.items()})
                view = self._defaulted(self._walk(view, kept, version, hop.source), hop.source)
            yield lost_version, hop, view

    def _defaulted(self, obj: Object, version: str) -> Object:
        filled: Object = fresh(obj)
        if version in self._schemas:
            self._schemas[version].default(filled)
        return filled
