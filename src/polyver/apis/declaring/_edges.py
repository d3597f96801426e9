"""Connect the versions of a declared kind by rules, functions, methods, or one function for all.

An edge connects two versions. Rules, functions and methods add edges to one tree of versions, so
users can combine them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, get_args

import msgspec

from polyver.apis.conversion import Converter, DeclaredEdge, FunctionEdge, PrunedObject, Rules
from polyver.apis.conversion.reading import largest_part
from polyver.apis.declaring._fields import shown_name
from polyver.apis.declaring._hooks import KindHook, make_hook
from polyver.apis.declaring._objects import from_own, is_part, to_object
from polyver.apis.definition import Definition, InvalidKind
from polyver.core import InvalidTree, PolyverError, listed
from polyver.core.plain import Object

__all__ = ["Edges", "check_strategy", "edges_missing"]

Function = Callable[[Object], Object]
AnyEdge = DeclaredEdge | FunctionEdge


@dataclass(frozen=True, slots=True)
class _Way:
    """A user's function that converts objects of one version to another version."""

    hook: KindHook
    convert: Function
    """The same function, wrapped so that it takes and returns plain data."""


@dataclass(slots=True)
class Edges:
    """The declared conversions of a kind."""

    group: str
    rules: list[DeclaredEdge] = field(default_factory=list)
    functions: dict[tuple[str, str], _Way] = field(default_factory=dict)
    whole: Callable[[Object, str], Object] | None = None
    """The user's function that converts from any version to any other; None if there is none."""

    def add_rules(self, source: str, target: str, write: Callable[[Rules], Any]) -> None:
        rules = Rules(place=_place(write))
        try:
            write(rules)
            block = rules.block()
        except PolyverError as error:
            at = f"{source} to {target}, {shown_name(write)}"
            raise InvalidKind(error.fact, at=at, hint=error.hint) from None
        self.rules.append(DeclaredEdge(source, target, block))

    def add_function(
        self, source: str, target: str, function: Callable[..., Any], names: Mapping[str, Any]
    ) -> None:
        if (source, target) in self.functions:
            first = self.functions[source, target].hook.name
            fact = f"{source} to {target} is already converted by {first}"
            raise InvalidKind(fact, at=shown_name(function))
        hook = make_hook(source, function, names, most=1)
        there = _plain(hook, f"{self.group}/{source}", f"{self.group}/{target}")
        self.functions[source, target] = _Way(hook, there)

    def add_whole(self, function: Callable[[Object, str], Object]) -> None:
        if self.whole is not None:
            fact = f"all versions are already converted by {shown_name(self.whole)}"
            raise InvalidKind(fact, at=shown_name(function))
        self.whole = function

    def converter(
        self, definition: Definition, classes: Mapping[str, type], *, carry: str = ""
    ) -> Converter:
        """Build the converter of a kind; raise an error if edges do not connect all versions."""
        names = [version.name for version in definition.versions]
        schemas = {v.name: v.schema for v in definition.versions if v.schema is not None}
        edges = self._all(definition, classes)
        _check_carry(definition, edges, carry)
        try:
            return Converter(
                definition.group,
                definition.kind,
                names,
                edges,
                hub=definition.hub,
                schemas=schemas,
                carry=carry,
            )
        except InvalidTree as error:
            fact = f"{definition.kind} cannot be converted: {error.fact}"
            raise InvalidKind(fact, at=definition.place) from None

    def connected_part(self, definition: Definition, classes: Mapping[str, type]) -> Converter:
        """Build a converter of the versions that are connected; other versions are left out."""
        edges = self._all(definition, classes) if self.exist(classes) else []
        names = [version.name for version in definition.versions]
        part = largest_part(names, [(edge.source, edge.target) for edge in edges])
        schemas = {v.name: v.schema for v in definition.versions if v.schema and v.name in part}
        inside = [edge for edge in edges if {edge.source, edge.target} <= {*part}]
        return Converter(definition.group, definition.kind, part, inside, schemas=schemas)

    def _all(self, definition: Definition, classes: Mapping[str, type]) -> list[AnyEdge]:
        names = [version.name for version in definition.versions]
        hub = definition.hub
        if not self.exist(classes):
            return [DeclaredEdge(hub, each, Rules().block()) for each in names if each != hub]
        edges: list[AnyEdge] = [
            *self.rules,
            *self._pairs(classes),
            *_by_methods(definition, classes),
        ]
        if self.whole is not None:
            edges += _by_one(self.whole, definition.group, hub, _apart(names, edges, hub))
        return edges

    def _pairs(self, classes: Mapping[str, type]) -> Iterator[FunctionEdge]:
        seen: set[tuple[str, str]] = set()
        for (source, target), way in self.functions.items():
            back = self.functions.get((target, source))
            if back is None:
                fact = (
                    f"{way.hook.name} converts {source} to {target}, but no function converts back"
                )
                raise InvalidKind(fact, hint=f'write @….converts("{target}", "{source}")')
            taken = way.hook.cls
            if taken is not None and taken is not classes.get(source):
                fact = f"{way.hook.name} converts {source} to {target}, and takes "
                hint = "use the class of that version, or dict, as its type"
                raise InvalidKind(f"{fact}{shown_name(taken)}", hint=hint)
            if (target, source) not in seen:
                yield FunctionEdge(source, target, way.convert, back.convert)
            seen.add((source, target))

    def exist(self, classes: Mapping[str, type]) -> bool:
        """Report whether any conversion is declared."""
        methods = any(_methods(name, classes) for name in classes)
        return bool(self.rules or self.functions or self.whole or methods)


# Functions.


def _plain(hook: KindHook, source: str, target: str) -> Function:
    """Wrap a user's conversion function, so that it takes and returns plain data.

    The user's function may take and return objects of declared classes.
    """

    def convert(obj: Object) -> Object:
        said = {"apiVersion": source, **obj}
        given = said if hook.cls is None else _read(hook.cls, said)
        return _data(hook.function(given), hook.name, target, obj)

    return _wrapping(hook.function, convert)


def _wrapping(user: Callable[..., Any], convert: Function) -> Function:
    """Return `convert`, marked as a wrapper of a user's function, so that findings can name it."""
    convert.__wrapped__ = user  # type: ignore[attr-defined]
    return convert


def _place(function: Callable[..., Any]) -> str:
    """Return the file and line of a function: `kinds.py:7`."""
    code = getattr(function, "__code__", None)
    return f"{code.co_filename}:{code.co_firstlineno}" if code is not None else ""


def _data(made: Any, name: str, version: str, source: Object) -> Object:
    """Convert the result of a user's function to plain data.

    `source` is the input of the function. A part is a field whose value is an object. If a required
    part was missing in `source`, `_read` has added an empty object, so that the function can set
    fields in it. If the user's function leaves the part empty, `_data` removes it.
    """
    if isinstance(made, dict):
        return made
    if not is_part(type(made)) or getattr(made, "apiVersion", None) != version:
        found = "None" if made is None else f"an object of {type(made).__name__}"
        raise TypeError(f"{name} returned {found}, not an object of {version}")
    needed = {*type(made).__schema__.get("required", ())} - source.keys()
    plain = to_object(made)
    return PrunedObject(
        {k: each for k, each in plain.items() if k not in needed or not _is_hollow(each)}
    )


def _is_hollow(value: Any) -> bool:
    return type(value) is dict and all(map(_is_hollow, value.values()))


def _read(cls: type, obj: Object) -> Any:
    """Convert plain data to an object of a class.

    Where a required part is missing, add an empty object, so that functions can set fields in it.
    """
    return _filled(from_own(cls, obj))  # conversion functions get copies, so sharing data is safe


def _filled(part: Any) -> Any:
    whole: Any = type(part)
    for name, cls, is_needed in _parts(whole):
        inside = getattr(part, name)
        if inside is None and is_needed:
            inside = cls()
            setattr(part, name, inside)
        if is_part(type(inside)):
            _filled(inside)
    return part


@cache
def _parts(cls: Any) -> list[tuple[str, type, bool]]:
    """Return the fields of a class whose values are objects.

    For each field, return its name, the class of its value, and True if the field is required.
    """
    needed = cls.__schema__.get("required", ())
    return [
        (field.name, part, field.encode_name in needed)
        for field in msgspec.structs.fields(cls)
        for part in get_args(field.type)
        if is_part(part)
    ]


# One function for all versions.


def _by_one(
    whole: Callable[[Object, str], Object], group: str, hub: str, others: Sequence[str]
) -> Iterator[FunctionEdge]:
    for each in others:
        yield FunctionEdge(hub, each, _to(whole, group, hub, each), _to(whole, group, each, hub))


def _to(whole: Callable[[Object, str], Object], group: str, source: str, target: str) -> Function:
    def convert(obj: Object) -> Object:
        said = {"apiVersion": f"{group}/{source}", **obj}
        return _data(whole(said, target), shown_name(whole), f"{group}/{target}", obj)

    return _wrapping(whole, convert)


def _apart(names: Sequence[str], edges: Sequence[AnyEdge], hub: str) -> list[str]:
    """Return the versions that the user's function for all versions must connect to the hub.

    This is the first version of each group of versions that edges connect with one another, but not
    with the hub. Errors in the edges are reported later, when the tree is built.
    """
    found: list[str] = []
    reached = _reached(hub, edges)
    for name in names:
        if name not in reached:
            found.append(name)
            reached |= _reached(name, edges)
    return found


def _reached(start: str, edges: Sequence[AnyEdge]) -> set[str]:
    reached, size = {start}, 0
    while len(reached) > size:
        size = len(reached)
        for edge in edges:
            if {edge.source, edge.target} & reached:
                reached |= {edge.source, edge.target}
    return reached


# Conversion methods of versions that are not the hub (spokes).


def _methods(name: str, classes: Mapping[str, type]) -> list[str]:
    """Return the names of the conversion methods of a version's class.

    Methods that the class inherits from the class of another version are ignored.
    """
    bases = _declared(classes[name]).__mro__
    others = [_declared(cls) for other, cls in classes.items() if other != name]
    theirs = {base for other in others if other in bases for base in other.__mro__}
    return [
        method
        for method in ("convert_to", "convert_from")
        if any(method in vars(base) for base in bases if base not in theirs)
    ]


def _declared(cls: Any) -> type:
    found: type = cls.__declared__
    return found


def _check_carry(definition: Definition, edges: Iterable[AnyEdge], carry: str) -> None:
    """Raise an error if a rule names the field that is reserved for preserved fields."""
    for edge in edges:
        rules = edge.block.rules if isinstance(edge, DeclaredEdge) else ()
        paths = [path for rule in rules for path in (*rule.sources, *rule.targets)]
        if carry and any(path[0] == carry for path in paths):
            fact = f"{carry} is reserved for preserved fields, and a rule between "
            raise InvalidKind(
                f"{fact}{edge.source} and {edge.target} names it", at=definition.place
            )


def _by_methods(definition: Definition, classes: Mapping[str, type]) -> Iterator[FunctionEdge]:
    for name, cls in classes.items():
        methods = _methods(name, classes)
        if not methods:
            continue
        if name == definition.hub:
            fact = f"{shown_name(cls)} is the hub, and needs no conversion methods"
            hint = "define convert_to and convert_from on the other versions"
            raise InvalidKind(fact, at=definition.place, hint=hint)
        if len(methods) == 1:
            lacks = "convert_from" if methods == ["convert_to"] else "convert_to"
            fact = f"{shown_name(cls)} has no {lacks}, so conversion has only one direction"
            raise InvalidKind(fact, at=definition.place)
        hub = classes[definition.hub]
        yield FunctionEdge(name, definition.hub, _method_to(cls, hub), _method_from(cls, hub))


def _method_to(cls: Any, hub: Any) -> Function:
    """Build a function that converts to the hub by the method `convert_to` of a class.

    The method gets an empty object of the hub. It either changes this object, or returns another
    object.
    """

    def convert(obj: Object) -> Object:
        empty = _empty(hub, obj)
        made = _read(cls, obj).convert_to(empty)
        name = f"{shown_name(cls)}.convert_to"
        return _data(empty if made is None else made, name, hub.apiVersion, obj)

    return _wrapping(cls.convert_to, convert)


def _method_from(cls: Any, hub: Any) -> Function:
    """Build a function that converts from the hub by the method `convert_from` of a class.

    The method is called on an empty object of its version, and gets the object of the hub. It
    either changes the object on which it is called, or returns another object.
    """

    def convert(obj: Object) -> Object:
        empty = _empty(cls, obj)
        made = empty.convert_from(_read(hub, obj))
        name = f"{shown_name(cls)}.convert_from"
        return _data(empty if made is None else made, name, cls.apiVersion, obj)

    return _wrapping(cls.convert_from, convert)


def _empty(cls: Any, obj: Object) -> Any:
    """Build an object with the metadata of `obj`, and with empty objects as required parts."""
    return _filled(cls(metadata=obj.get("metadata")))


def check_strategy(definition: Definition) -> None:
    """Raise an error if a kind with the strategy None declares conversions.

    The strategy None states that its versions differ only in apiVersion.
    """
    if definition.strategy == "None":
        fact = f'{definition.kind} has strategy="None", but also conversions'
        raise InvalidKind(fact, at=definition.place, hint="remove one of them")


def edges_missing(definition: Definition) -> InvalidKind:
    """Build the error for a kind with several versions and no conversion."""
    names = listed([version.name for version in definition.versions])
    return InvalidKind(
        f"{definition.kind} has several versions, {names}, but no conversion between them",
        at=definition.place,
        hint='connect them with @….edge, or set strategy="None" if only apiVersion differs',
    )
