"""Convert the objects of one kind from any of its versions to any other, without loss.

Each conversion path between two versions has one compiled function. For an object that this
function cannot convert, polyver uses the interpreter of rules. Both give the same results.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from msgspec import MsgspecError, Raw, json

from polyver.apis.conversion._conversion_paths import (
    ConversionPaths,
    ConvertOpened,
    Interpreter,
    Tree,
)
from polyver.apis.conversion._preserved_fields import (
    PreservedFieldsStore,
    PreservedInAnnotation,
    PreservedInField,
    format_of,
)
from polyver.apis.conversion.hops import ByFunctions, ConversionStep, Function, by_rules
from polyver.apis.conversion.reading import DeclaredConversion, DeclaredEdge
from polyver.apis.definition import Definition
from polyver.core import ConversionTree, Edge, InvalidTree, PolyverError, listed
from polyver.core.plain import Object
from polyver.kube.objects import encode_json
from polyver.kube.objects.codec import open_object
from polyver.kube.objects.converted_metadata import fresh
from polyver.kube.objects.schema import compile_schema
from polyver.kube.objects.schema.structure import StructuralSchema, read_structure

__all__ = ["Converter", "FunctionEdge", "NotConvertible", "Tree", "build_converter"]


class NotConvertible(PolyverError):
    """An object cannot be converted, for example because its kind or version is not known."""


@dataclass(frozen=True, slots=True)
class FunctionEdge:
    """Two versions, and a function for each direction."""

    source: str
    target: str
    there: Function
    back: Function


class Converter:
    """Converts the objects of one kind between all of its versions.

    In a conversion to a version without a schema, no field is removed: the converter cannot know
    which fields the version lacks.
    """

    def __init__(
        self,
        group: str,
        kind: str,
        versions: Sequence[str],
        edges: Sequence[DeclaredEdge | FunctionEdge],
        *,
        hub: str | None = None,
        schemas: Mapping[str, Mapping[str, Any]] | None = None,
        carry: str = "",
    ) -> None:
        """Create a converter.

        `schemas` are the openAPIV3Schemas by version. `carry` is the top-level field in which
        preserved fields are stored; if it is empty, they are stored in an annotation.
        """
        self.group = group
        self.kind = kind
        self.versions = tuple(versions)
        self.keeping = PreservedFieldsStore(
            PreservedInField(carry) if carry else PreservedInAnnotation()
        )
        """The location in objects at which preserved fields are stored."""
        self.on_unknown_format: Callable[[str, str], None] = lambda *_: None
        """Called when the converter finds a format of preserved fields that it cannot read.

        It is called only once for each such format. The arguments are the format, and the name of
        the object that has preserved fields in this format.
        """
        self._unknown_formats: set[str] = set()
        self.schemas = {name: compile_schema(each) for name, each in (schemas or {}).items()}
        structures = {name: read_structure(each) for name, each in (schemas or {}).items()}
        self.calls_functions = any(map(_calls_functions, edges))
        """True if an edge calls conversion functions of users.

        A call of such a function may take any time, or never end.
        """
        steps = [_edge(edge, structures) for edge in edges]
        self.tree: Tree = ConversionTree(versions=versions, edges=steps, hub=hub)
        self._paths = ConversionPaths(self.tree, group, self.keeping, self.convert)
        self._interpreter = Interpreter(self.tree, self.schemas)

    def convert(self, obj: Object, version: str) -> Object:
        """Convert an object to another version; the result shares no data with it.

        >>> from polyver.apis.conversion import Rules
        >>> rules = Rules()
        >>> rules.move("spec.cronSpec", "spec.schedule")
        >>> edge = DeclaredEdge("v1", "v2", rules.block())
        >>> crontab = Converter("ex.io", "CronTab", ["v1", "v2"], [edge])
        >>> old = {"apiVersion": "ex.io/v1", "kind": "CronTab", "spec": {"cronSpec": "* * * * *"}}
        >>> crontab.convert(old, "v2")["spec"]
        {'schedule': '* * * * *'}
        """
        source = self.version_of(obj)
        self._check(version)
        try:
            made = fresh(obj) if source == version else self._compiled(obj, source, version)
            if made is None:
                rest = {name: value for name, value in obj.items() if name != "apiVersion"}
                made = self.interpreted(rest, source, version)
        except RecursionError:
            if self.calls_functions:  # the error may come from a user's function
                raise
            raise NotConvertible("it is nested too deeply") from None
        return {"apiVersion": "", **made} | {"apiVersion": f"{self.group}/{version}"}

    def versions_between(self, source: str, target: str) -> list[str]:
        """Return the versions between two versions on the conversion path from one to the other."""
        return [hop.target for hop in self.tree.way(source, target)][:-1]

    def _compiled(self, obj: Object, source: str, target: str) -> Object | None:
        """Convert an object by compiled rules.

        Return None if only the interpreter can convert the object.
        """
        path = self._paths[source, target]
        if path is None or path.calls_functions:
            return None
        try:
            top = _fields(_encode(obj))
        except _NO_JSON:
            return None
        made = path.convert(top)
        return None if made is None else _plain(_encode(made))

    def interpreted(self, obj: Object, source: str, target: str) -> Object:
        """Convert an object by the interpreter. The object and the result have no apiVersion."""
        visible, carry = self.keeping.split(obj)
        if carry.unknown and len(self._unknown_formats) < _MOST_FORMATS:
            found = format_of(carry.unknown)
            if found not in self._unknown_formats:
                self._unknown_formats.add(found)
                self.on_unknown_format(found, _name_of(obj))
        made = self._interpreter.convert(visible, carry, source, target)
        return self.keeping.join(made, carry)

    def convert_raw(self, raw: bytes | Raw, version: str) -> bytes:
        """Convert an object from JSON to JSON, without decoding the fields that no rule reads."""
        try:
            top = open_object(raw)
        except (MsgspecError, UnicodeError, RecursionError) as error:
            raise NotConvertible(f"this is not an object: {error}") from None
        source = self.version_of({name: _value(top.get(name)) for name in ("apiVersion", "kind")})
        self._check(version)
        if source == version:
            return bytes(raw)
        path = self._paths[source, version]
        made = path.convert(top) if path is not None else None
        return encode_json(self.convert(_whole(raw), version) if made is None else made)

    def conversion_path(self, source: str, target: str) -> ConvertOpened | None:
        """Return the function that converts objects whose fields may be undecoded JSON, or None.

        If the result is None, only `convert_raw` can convert between the two versions: no function
        can be compiled, or the rules change metadata, which must be checked. The function may
        change an object in place. It returns None for an object that only `convert_raw` can
        convert.
        """
        path = self._paths[source, target]
        return None if path is None or path.touches_metadata else path.convert

    def unknown_format(self, obj: Object) -> str:
        """Return the format of preserved fields if polyver cannot read it, such as `format 2`.

        Return "" if polyver can read the format, or if there are no preserved fields.
        """
        carry = self.keeping.split(obj)[1]
        return format_of(carry.unknown) if carry.unknown else ""

    def visible(self, obj: Object) -> Object:
        """Return an object without its preserved fields and without an empty map of annotations."""
        return self.keeping.split(obj)[0]

    def carried(self, obj: Object) -> dict[str, list[str]]:
        """Return the paths of an object's preserved fields, by the version that has the fields."""
        carry = self.keeping.split(obj)[1]
        return {version: [*lost] for version, lost in carry.lost.items()}

    def version_of(self, obj: Mapping[str, Any]) -> str:
        """Return the version of an object."""
        found, kind = obj.get("apiVersion"), obj.get("kind")
        group, _, version = found.rpartition("/") if isinstance(found, str) else ("", "", "")
        if (group, kind) != (self.group, self.kind):
            fact = f"{kind} of {found} is not a {self.kind} of {self.group}"
            raise NotConvertible(fact, at="apiVersion")
        self._check(version)
        return version

    def _check(self, version: str) -> None:
        if version not in self.versions:
            known = listed(self.versions)
            raise NotConvertible(
                f"{self.kind} of {self.group} has no version {version}", hint=f"known: {known}"
            )


_MOST_FORMATS = 8


def _name_of(obj: Object) -> str:
    metadata = obj.get("metadata")
    found = metadata if type(metadata) is dict else {}
    return "/".join(str(found[each]) for each in ("namespace", "name") if found.get(each))


def build_converter(
    declared: DeclaredConversion, definition: Definition | None = None
) -> Converter:
    """Build the converter of a Conversion. If the CRD is given, the converter uses its schemas."""
    schemas: dict[str, Mapping[str, Any]] = {}
    if definition is not None:
        _check_versions(declared, definition)
        schemas = {v.name: v.schema for v in definition.versions if v.schema is not None}
    try:
        return Converter(
            declared.group,
            declared.kind,
            declared.versions,
            declared.edges,
            hub=declared.hub,
            schemas=schemas,
        )
    except InvalidTree as error:
        raise declared.document.error(error.fact, "spec", "edges") from None


def _check_versions(declared: DeclaredConversion, definition: Definition) -> None:
    known = {version.name for version in definition.versions}
    error = declared.document.error
    if missing := [each for each in known if each not in declared.versions]:
        names = listed(sorted(missing))
        raise error(f"{definition.name} has also {names}", "spec", "versions")
    if extra := [each for each in declared.versions if each not in known]:
        where = declared.versions.index(extra[0])
        raise error(f"{definition.name} has no version {extra[0]}", "spec", "versions", where)


def _calls_functions(edge: DeclaredEdge | FunctionEdge) -> bool:
    return isinstance(edge, FunctionEdge) or edge.block.calls_functions


def _edge(
    edge: DeclaredEdge | FunctionEdge, structures: Mapping[str, StructuralSchema]
) -> Edge[ConversionStep]:
    source, target = structures.get(edge.source), structures.get(edge.target)
    if isinstance(edge, DeclaredEdge):
        block = edge.block.bound(source, target)
        steps = by_rules(block, back=False), by_rules(block, back=True)
        return Edge(edge.source, edge.target, *steps)
    there = ByFunctions(edge.there, edge.back, source, target)
    back = ByFunctions(edge.back, edge.there, target, source)
    return Edge(edge.source, edge.target, there, back)


_fields = json.Decoder(dict[str, Raw]).decode
_plain = json.Decoder().decode
_encode = json.Encoder().encode
_NO_JSON = (MsgspecError, TypeError, UnicodeError, OverflowError)
"""Exceptions for data that cannot be encoded as JSON. The interpreter converts such data."""


def _whole(raw: bytes | Raw) -> Any:
    try:
        return _plain(raw)
    except (MsgspecError, UnicodeError) as error:
        raise NotConvertible(f"it contains a value that cannot be read: {error}") from None


def _value(found: Any) -> Any:
    try:
        return _plain(found) if type(found) is Raw else found
    except (MsgspecError, UnicodeError) as error:
        raise NotConvertible(f"this is not an object: {error}") from None
