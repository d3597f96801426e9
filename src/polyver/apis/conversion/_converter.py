"""Objects of one kind, from any of its versions to any other, with nothing lost.

Conversion goes along the tree, an edge at a time. What the carry says is trusted after its guards
were checked against the object as it came in, and gets new guards from the object as it goes out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from msgspec import MsgspecError, Raw, json

from polyver.apis.conversion._carry import Carry, format_of
from polyver.apis.conversion._compile import Compiled, Unusual, compile_way
from polyver.apis.conversion._delta import without
from polyver.apis.conversion._keeping import InAnnotation, InField, Keeping
from polyver.apis.conversion._native import native_way
from polyver.apis.conversion._opened import OpenedWays, Way, check_passing, touches_metadata
from polyver.apis.conversion._program import program_of
from polyver.apis.conversion.hops import ByFunctions, Function, Step, by_rules
from polyver.apis.conversion.reading import Declared, DeclaredEdge
from polyver.apis.definition import Definition
from polyver.core import ConversionTree, Edge, Hop, InvalidTree, PolyverError, listed
from polyver.kube.objects import encode_json
from polyver.kube.objects.converted import fresh
from polyver.kube.objects.opened import Opened
from polyver.kube.objects.schema import Schema, compile_schema
from polyver.kube.objects.schema.structure import Structure, read_structure
from polyver.native import Program, compiled

__all__ = ["Converter", "FunctionEdge", "NotConvertible", "Tree", "build_converter"]

Object = dict[str, Any]
Tree = ConversionTree[Step]
Schemas = Mapping[str, Schema]
"""The compiled schemas of versions, as far as they are known."""


class NotConvertible(PolyverError):
    """An object that is of no version that is known, or a version that is not."""


@dataclass(frozen=True, slots=True)
class FunctionEdge:
    """Two versions, and a function for each direction."""

    source: str
    target: str
    there: Function
    back: Function


class Converter:
    """All versions of one kind, and the ways between them.

    Without the schema of a version it cannot tell which fields that lacks: they are passed on.
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
        """With `carry`, what is carried is kept in this field beside `spec`."""
        self.group = group
        self.kind = kind
        self.versions = tuple(versions)
        self.keeping = Keeping(InField(carry) if carry else InAnnotation())
        """Where what is carried is kept."""
        self.on_unknown_format: Callable[[str, str], None] = lambda *_: None
        """Called once for each format of preserved fields that is not known, with an object."""
        self._unknown_formats: set[str] = set()
        self.schemas = {name: compile_schema(each) for name, each in (schemas or {}).items()}
        structures = {name: read_structure(each) for name, each in (schemas or {}).items()}
        self.calls_functions = any(isinstance(edge, FunctionEdge) for edge in edges)
        """Whether code of a user has a part in it, which may take any time."""
        steps = [_edge(edge, structures) for edge in edges]
        self.tree: Tree = ConversionTree(versions=versions, edges=steps, hub=hub)
        self._plain = _Ways(self.tree)
        self._opened = OpenedWays(self.tree, group, self.keeping, self.convert)
        self._natively: dict[tuple[str, str], Callable[[Object], Object | None] | None] = {}

    def convert(self, obj: Object, version: str) -> Object:
        """An object in another version, as new data.

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
            made = fresh(obj) if source == version else self._converted(obj, source, version)
        except RecursionError:
            if self.calls_functions:  # it may be theirs
                raise
            raise NotConvertible("it has too many levels inside of each other") from None
        return {"apiVersion": "", **made} | {"apiVersion": f"{self.group}/{version}"}

    def versions_between(self, source: str, target: str) -> list[str]:
        """Return the versions that a conversion leads through, without the first and the last."""
        return [hop.target for hop in self.tree.way(source, target)][:-1]

    def _converted(self, obj: Object, source: str, target: str) -> Object:
        made = self._compiled(obj, source, target)
        if made is not None:
            return made
        rest = {name: value for name, value in obj.items() if name != "apiVersion"}
        return self.interpreted(rest, source, target)

    def interpreted(self, obj: Object, source: str, target: str) -> Object:
        """An object without apiVersion in another version, by the plain interpreter."""
        visible, carry = self._split(obj)
        conversion = _Conversion(self.tree, self.schemas)
        conversion.trust(visible, carry, source)
        return self.keeping.join(conversion.converted(visible, carry, source, target), carry)

    def convert_raw(self, raw: bytes | Raw, version: str) -> bytes:
        """The same for an object that is JSON: what no rule looks into is not even decoded."""
        top = _top(raw)
        source = self.version_of({name: _value(top.get(name)) for name in ("apiVersion", "kind")})
        self._check(version)
        if source == version:
            return bytes(raw)
        way = self._opened[source, version]
        made = way(top) if way is not None else None
        return encode_json(self.convert(_whole(raw), version) if made is None else made)

    def way(self, source: str, target: str) -> Way | None:
        """What converts mappings whose values may be JSON; None if only `convert_raw` does.

        It may change them, and returns None for one that has to be converted raw.
        """
        if touches_metadata(self.tree.way(source, target)):
            return None
        return self._opened[source, target]

    def program(self, source: str, target: str) -> Program | None:
        """The same way for compiled code; None if that does not know a rule on it."""
        hops = self.tree.way(source, target)
        blocks = None if touches_metadata(hops) or not hops else program_of(hops)
        if blocks is None:
            return None
        named = (f"{self.group}/{target}", f"{self.group}/{source}", self.kind)
        return (*map(encode_json, named), self.keeping.sign, blocks)

    def natively(self, obj: Object, version: str) -> Object | None:
        """What compiled code makes of an object; None if it was not built, or leaves it to us."""
        pair = (self.version_of(obj), version)
        if pair not in self._natively:
            program = self.program(*pair) if compiled is not None else None
            wanted = f"{self.group}/{version}"
            way = native_way(compiled, program, wanted) if compiled and program else None
            self._natively[pair] = way
        found = self._natively[pair]
        return None if found is None else found(obj)

    def _compiled(self, obj: Object, source: str, target: str) -> Object | None:
        """What the compiled rules make of an object; None if the interpreter has to."""
        run = self._plain[source, target]
        if run is None:
            return None
        made, carry = self._split(fresh(obj))
        carry.lost.pop(source, None)
        try:
            check_passing(carry, self.tree.way(source, target))
            run(made, carry.lost)
        except Unusual:
            return None
        return self.keeping.join(made, carry)

    def _split(self, obj: Object) -> tuple[Object, Carry]:
        visible, carry = self.keeping.split(obj)
        if carry.unknown and len(self._unknown_formats) < _MOST_FORMATS:
            found = format_of(carry.unknown)
            if found not in self._unknown_formats:
                self._unknown_formats.add(found)
                self.on_unknown_format(found, _name_of(obj))
        return visible, carry

    def unknown_format(self, obj: Object) -> str:
        """Name the format of preserved fields that cannot be read; nothing if they can."""
        carry = self.keeping.split(obj)[1]
        return format_of(carry.unknown) if carry.unknown else ""

    def visible(self, obj: Object) -> Object:
        """An object as clients see it: without its carry, and an empty map of annotations."""
        return self.keeping.split(obj)[0]

    def carried(self, obj: Object) -> dict[str, list[str]]:
        """The fields that an object carries for each version that has them."""
        carry = self.keeping.split(obj)[1]
        return {version: [*lost] for version, lost in carry.lost.items()}

    def version_of(self, obj: Mapping[str, Any]) -> str:
        """The version that an object is in."""
        found, kind = obj.get("apiVersion"), obj.get("kind")
        group, _, version = found.rpartition("/") if isinstance(found, str) else ("", "", "")
        if (group, kind) != (self.group, self.kind):
            fact = f"{kind} of {found} is no {self.kind} of {self.group}"
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


def build_converter(declared: Declared, definition: Definition | None = None) -> Converter:
    """What a Conversion describes, with the schemas of the kind's definition if that is known."""
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


def _check_versions(declared: Declared, definition: Definition) -> None:
    known = {version.name for version in definition.versions}
    error = declared.document.error
    if missing := [each for each in known if each not in declared.versions]:
        names = listed(sorted(missing))
        raise error(f"{definition.name} has also {names}", "spec", "versions")
    if extra := [each for each in declared.versions if each not in known]:
        where = declared.versions.index(extra[0])
        raise error(f"{definition.name} has no version {extra[0]}", "spec", "versions", where)


def _edge(edge: DeclaredEdge | FunctionEdge, structures: Mapping[str, Structure]) -> Edge[Step]:
    source, target = structures.get(edge.source), structures.get(edge.target)
    if isinstance(edge, DeclaredEdge):
        block = edge.block.bound(source, target)
        steps = by_rules(block, back=False), by_rules(block, back=True)
        return Edge(edge.source, edge.target, *steps)
    there = ByFunctions(edge.there, edge.back, source, target)
    back = ByFunctions(edge.back, edge.there, target, source)
    return Edge(edge.source, edge.target, there, back)


_opened = json.Decoder(Opened).decode
_fields = json.Decoder(dict[str, Raw]).decode
_plain = json.Decoder().decode


def _top(raw: bytes | Raw) -> Object:
    """The fields of an object that is JSON, opened if they can be."""
    try:
        return _opened(raw).fields()
    except (MsgspecError, UnicodeError, RecursionError):
        pass
    try:
        return _fields(raw)
    except (MsgspecError, UnicodeError, RecursionError) as error:
        raise NotConvertible(f"this is no object: {error}") from None


def _whole(raw: bytes | Raw) -> Any:
    try:
        return _plain(raw)
    except (MsgspecError, UnicodeError) as error:
        raise NotConvertible(f"it holds a value that cannot be read: {error}") from None


def _value(found: Any) -> Any:
    try:
        return _plain(found) if type(found) is Raw else found
    except (MsgspecError, UnicodeError) as error:
        raise NotConvertible(f"this is no object: {error}") from None


class _Ways(dict[tuple[str, str], Compiled | None]):
    """The compiled way from one version to another, made when it is first asked for."""

    def __init__(self, tree: Tree) -> None:
        self._tree = tree

    def __missing__(self, pair: tuple[str, str]) -> Compiled | None:
        made = self[pair] = compile_way(self._tree.way(*pair), raw=False)
        return made


class _Conversion:
    """The steps of one conversion."""

    def __init__(self, tree: Tree, schemas: Schemas) -> None:
        self._tree = tree
        self._schemas = schemas

    def converted(self, obj: Object, carry: Carry, source: str, target: str) -> Object:
        made = self._walk(obj, carry, source, target)
        self._seal(made, carry, target)
        return made

    def _walk(self, obj: Object, carry: Carry, source: str, target: str) -> Object:
        """Convert along the way; the carry, which is trusted, is changed."""
        for hop in self._tree.way(source, target):
            made = hop.convert.run(obj)
            made = hop.convert.restored(made, carry.lost.pop(hop.target, {}))
            if lost := hop.convert.lost(obj, made):
                carry.lost[hop.source] = lost
            obj = made
        return obj

    def trust(self, obj: Object, carry: Carry, version: str) -> None:
        """Leave in the carry only what belongs to the object as it is."""
        for lost_version, hop, view in self._views(obj, carry, version):
            lost = carry.lost[lost_version]
            checked = hop.convert.guards(lost, view)
            stale = {id(entry) for entry, key, now in checked if entry[key] != now}
            carry.lost[lost_version] = without(lost, stale)

    def _seal(self, obj: Object, carry: Carry, version: str) -> None:
        """Set the guards of all that is carried to what the object looks like."""
        for lost_version, hop, view in self._views(obj, carry, version):
            for entry, key, now in list(hop.convert.guards(carry.lost[lost_version], view)):
                entry[key] = now

    def _views(
        self, obj: Object, carry: Carry, version: str
    ) -> Iterable[tuple[str, Hop[Step], Object]]:
        """For every version that lost something: the step back to it, and what that would read.

        That is the object with its defaults, which an API server may fill in at any time.
        """
        known = [each for each in carry.lost if each in self._tree.versions]
        ways = {each: self._tree.way(version, each) for each in known}
        for lost_version, way in sorted(ways.items(), key=lambda pair: len(pair[1])):
            if not way:  # an object cannot have lost what it could show
                del carry.lost[lost_version]
                continue
            hop = way[-1]
            view = self._defaulted(obj, version)
            if hop.source != version:
                kept = Carry({v: fresh(each) for v, each in carry.lost.items()})
                view = self._defaulted(self._walk(view, kept, version, hop.source), hop.source)
            yield lost_version, hop, view

    def _defaulted(self, obj: Object, version: str) -> Object:
        filled: Object = fresh(obj)
        if version in self._schemas:
            self._schemas[version].default(filled)
        return filled
