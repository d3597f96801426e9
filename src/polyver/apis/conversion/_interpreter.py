"""The interpreter: converts an object edge by edge, and so defines the result of a conversion.

It trusts preserved fields only after it has checked their guards against the object before the
conversion. Afterwards it sets new guards from the converted object. The compiled rules are tested
against the interpreter.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from polyver.apis.conversion._carry import PreservedFields
from polyver.apis.conversion._delta import without
from polyver.apis.conversion.hops import ConversionStep
from polyver.core import ConversionTree, Hop
from polyver.core.plain import Object
from polyver.kube.objects.converted_metadata import fresh
from polyver.kube.objects.schema import Schema

__all__ = ["Interpreter", "Schemas", "Tree"]

Tree = ConversionTree[ConversionStep]
Schemas = Mapping[str, Schema]
"""The compiled schemas of versions that have one."""


class Interpreter:
    """Converts objects of one kind, each without apiVersion and apart from its preserved fields."""

    def __init__(self, tree: Tree, schemas: Schemas) -> None:
        self._tree = tree
        self._schemas = schemas

    def convert(self, obj: Object, carry: PreservedFields, source: str, target: str) -> Object:
        """Return an object in another version; its preserved fields are changed in place."""
        self._trust(obj, carry, source)
        made = self._walk(obj, carry, source, target)
        self._seal(made, carry, target)
        return made

    def _walk(self, obj: Object, carry: PreservedFields, source: str, target: str) -> Object:
        """Convert an object along the path; update its checked preserved fields in place."""
        for hop in self._tree.way(source, target):
            made = hop.convert.run(obj)
            made = hop.convert.restored(made, carry.lost.pop(hop.target, {}))
            if lost := hop.convert.lost(obj, made):
                carry.lost[hop.source] = lost
            obj = made
        return obj

    def _trust(self, obj: Object, carry: PreservedFields, version: str) -> None:
        """Drop preserved fields whose guards do not match the object as it is now."""
        for lost_version, hop, view in self._views(obj, carry, version):
            lost = carry.lost[lost_version]
            checked = hop.convert.guards(lost, view)
            stale = {id(entry) for entry, key, now in checked if entry[key] != now}
            carry.lost[lost_version] = without(lost, stale)

    def _seal(self, obj: Object, carry: PreservedFields, version: str) -> None:
        """Set the guards of all preserved fields from the object as it is now."""
        for lost_version, hop, view in self._views(obj, carry, version):
            for entry, key, now in list(hop.convert.guards(carry.lost[lost_version], view)):
                entry[key] = now

    def _views(
        self, obj: Object, carry: PreservedFields, version: str
    ) -> Iterable[tuple[str, Hop[ConversionStep], Object]]:
        """Yield each version with preserved fields, the last hop to it, and the object to convert.

        Defaults are filled in, as an API server may do so at any time.
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
