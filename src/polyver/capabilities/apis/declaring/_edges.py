"""How the versions of a declared kind are connected: by rules, functions, methods, or one for all.

All of these become edges of one tree, so they mix freely.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from polyver.capabilities.apis._definition import Definition, InvalidKind
from polyver.capabilities.apis.conversion import (
    Converter,
    DeclaredEdge,
    FunctionEdge,
    Rules,
)
from polyver.capabilities.apis.declaring._fields import shown_name
from polyver.capabilities.apis.declaring._hooks import make_hook
from polyver.capabilities.apis.declaring._objects import from_object, is_part, to_object
from polyver.core import InvalidTree, PolyverError, listed

__all__ = ["Edges", "edges_missing"]

Object = dict[str, Any]
Function = Callable[[Object], Object]
AnyEdge = DeclaredEdge | FunctionEdge


@dataclass(slots=True)
class Edges:
    """What was said about converting a kind."""

    group: str
    rules: list[DeclaredEdge] = field(default_factory=list)
    functions: dict[tuple[str, str], tuple[Function, str]] = field(default_factory=dict)
    """For each direction, a function on plain data, and what it is called."""
    whole: Callable[[Object, str], Object] | None = None
    """What converts from any version to any other."""

    def add_rules(self, source: str, target: str, write: Callable[[Rules], Any]) -> None:
        rules = Rules()
        try:
            write(rules)
            block = rules.block()
        except PolyverError as error:
            at = f"{source} to {target}, {write.__qualname__}"
            raise InvalidKind(error.fact, at=at, hint=error.hint) from None
        self.rules.append(DeclaredEdge(source, target, block))

    def add_function(
        self, source: str, target: str, function: Callable[..., Any], names: Mapping[str, Any]
    ) -> None:
        if (source, target) in self.functions:
            first = self.functions[source, target][1]
            fact = f"{source} to {target} is converted by {first} already"
            raise InvalidKind(fact, at=function.__qualname__)
        hook = make_hook(source, function, names, most=1)
        there = _plain(function, hook.cls, f"{self.group}/{source}")
        self.functions[source, target] = (there, function.__qualname__)

    def add_whole(self, function: Callable[[Object, str], Object]) -> None:
        if self.whole is not None:
            fact = f"all versions are converted by {self.whole.__qualname__} already"
            raise InvalidKind(fact, at=function.__qualname__)
        self.whole = function

    def converter(self, definition: Definition, classes: Mapping[str, type]) -> Converter:
        """What converts objects of a kind; an error names what is missing between versions."""
        names = [version.name for version in definition.versions]
        schemas = {v.name: v.schema for v in definition.versions if v.schema is not None}
        edges = [*self._all(definition, classes)]
        try:
            return Converter(
                definition.group,
                definition.kind,
                names,
                edges,
                hub=definition.hub or None,
                schemas=schemas,
            )
        except InvalidTree as error:
            fact = f"{definition.kind} cannot be converted: {error.fact}"
            hint = "connect its versions with @….edge" if not edges else ""
            raise InvalidKind(fact, at=definition.place, hint=hint) from None

    def _all(self, definition: Definition, classes: Mapping[str, type]) -> Iterator[AnyEdge]:
        yield from self.rules
        yield from self._pairs()
        yield from _by_methods(definition, classes)
        group, hub = definition.group, definition.hub
        others = [version.name for version in definition.versions if version.name != hub]
        if definition.strategy == "None" and others:
            yield from (DeclaredEdge(hub, each, Rules().block()) for each in others)
        if self.whole is not None:
            for each in others:
                there = _to(self.whole, group, hub, each)
                yield FunctionEdge(hub, each, there, _to(self.whole, group, each, hub))

    def _pairs(self) -> Iterator[FunctionEdge]:
        seen: set[tuple[str, str]] = set()
        for (source, target), (there, name) in self.functions.items():
            if (target, source) not in self.functions:
                fact = f"{name} converts {source} to {target}, and nothing converts back"
                raise InvalidKind(fact, hint=f'write @….converts("{target}", "{source}")')
            if (target, source) not in seen:
                yield FunctionEdge(source, target, there, self.functions[target, source][0])
            seen.add((source, target))

    def exist(self, classes: Mapping[str, type]) -> bool:
        """Whether anything at all was said."""
        methods = any(hasattr(cls, "convert_to") for cls in classes.values())
        return bool(self.rules or self.functions or self.whole or methods)


def _plain(function: Callable[..., Any], cls: type | None, api_version: str) -> Function:
    """A function on plain data, whatever it takes and returns."""

    def convert(obj: Object) -> Object:
        whole = {"apiVersion": api_version, **obj}
        made = function(from_object(cls, whole) if cls is not None else whole)
        return _data(made, function.__qualname__)

    return convert


def _data(made: Any, name: str) -> Object:
    if is_part(type(made)):
        return to_object(made)
    if not isinstance(made, dict):
        raise TypeError(f"{name} returned {type(made).__name__}, not an object")
    return made


def _to(whole: Callable[[Object, str], Object], group: str, source: str, target: str) -> Function:
    def convert(obj: Object) -> Object:
        said = {"apiVersion": f"{group}/{source}", **obj}
        return _data(whole(said, target), whole.__qualname__)

    return convert


def _by_methods(definition: Definition, classes: Mapping[str, type]) -> Iterator[FunctionEdge]:
    hub = classes.get(definition.hub)
    for name, cls in classes.items():
        there, back = hasattr(cls, "convert_to"), hasattr(cls, "convert_from")
        if not there and not back:
            continue
        if cls is hub:
            fact = f"{shown_name(cls)} is the hub, and converts to nothing"
            raise InvalidKind(fact, hint="convert_to and convert_from belong to the spokes")
        if not there or not back:
            lacks = "convert_from" if there else "convert_to"
            fact = f"{shown_name(cls)} has no {lacks}, so there is only one way"
            raise InvalidKind(fact, at=definition.place)
        assert hub is not None
        yield FunctionEdge(name, definition.hub, _method_to(cls, hub), _method_from(cls, hub))


def _method_to(cls: Any, hub: Any) -> Function:
    """`spoke.convert_to(hub)` fills in a hub that is empty, or returns one."""

    def convert(obj: Object) -> Object:
        spoke, empty = from_object(cls, obj), _empty(hub, obj)
        made = spoke.convert_to(empty)
        return to_object(empty if made is None else made)

    return convert


def _method_from(cls: Any, hub: Any) -> Function:
    """`spoke.convert_from(hub)` fills in a spoke that is empty, or returns one."""

    def convert(obj: Object) -> Object:
        source, empty = from_object(hub, obj), _empty(cls, obj)
        made = empty.convert_from(source)
        return to_object(empty if made is None else made)

    return convert


def _empty(cls: Any, obj: Object) -> Any:
    """An object of a class with nothing but its metadata."""
    metadata = {"metadata": obj["metadata"]} if "metadata" in obj else {}
    needed = [
        name
        for name, parameter in inspect.signature(cls).parameters.items()
        if parameter.default is inspect.Parameter.empty
    ]
    return cls(**dict.fromkeys(needed), **metadata)


def edges_missing(definition: Definition) -> InvalidKind:
    """The error for several versions that nothing connects."""
    names = listed([version.name for version in definition.versions])
    return InvalidKind(
        f"{definition.kind} has several versions, {names}, and nothing converts between them",
        at=definition.place,
        hint='connect them with @….edge, or say strategy="None" if only apiVersion differs',
    )
