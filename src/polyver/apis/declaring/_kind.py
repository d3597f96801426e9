"""A kind that is declared in Python: its names, a class for each version, and what goes with it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import FrameType, MappingProxyType
from typing import Any, Literal, TypeVar, dataclass_transform

from polyver.apis.conversion import Converter, Rules
from polyver.apis.declaring import _checks, _hooks
from polyver.apis.declaring._classes import ClassReader
from polyver.apis.declaring._edges import Edges, check_strategy, edges_missing
from polyver.apis.declaring._fields import shown_name
from polyver.apis.declaring._hooks import KindHook, Problem
from polyver.apis.declaring._markers import Field, FieldOptions
from polyver.apis.declaring._objects import DeclaredObject, NotAsDeclared, from_object
from polyver.apis.definition import (
    Column,
    DefinedVersion,
    Definition,
    InvalidKind,
    Names,
    Scale,
    Scope,
)
from polyver.apis.manifests import definitions_of
from polyver.core import listed
from polyver.core.plain import Object
from polyver.kube.objects import load_manifests

__all__ = ["DeclaredVersion", "Kind", "part", "read_kinds"]

T = TypeVar("T")
F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class DeclaredVersion:
    """A version and the class that declares it."""

    cls: type[DeclaredObject]
    version: DefinedVersion
    storage: bool | None
    """As it was said; None leaves it to the number of versions."""
    hub: bool


class Kind:
    """A kind and its versions.

    >>> crontab = Kind("CronTab", group="stable.example.com", short_names=["ct"])
    >>> @crontab.version("v1")
    ... class CronTabV1:
    ...     class Spec:
    ...         schedule: str
    ...     spec: Spec
    >>> crontab.definition().name
    'crontabs.stable.example.com'
    >>> CronTabV1(spec=CronTabV1.Spec(schedule="@daily")).spec.schedule
    '@daily'
    """

    def __init__(
        self,
        kind: str,
        *,
        group: str,
        plural: str = "",
        singular: str = "",
        list_kind: str = "",
        short_names: Sequence[str] = (),
        categories: Sequence[str] = (),
        scope: Scope = "Namespaced",
        strategy: Literal["None"] | None = None,
        carry: str = "",
    ) -> None:
        """With `strategy="None"` versions differ in apiVersion only, and need no edges.

        With `carry`, all versions get a field of this name beside `spec`, for what is carried.
        """
        self.kind = kind
        self.group = group
        self.scope = scope
        self.strategy = strategy
        self.carry = carry
        self.names = Names(
            kind,
            plural or _plural(kind),
            singular or kind.lower(),
            list_kind or f"{kind}List",
            tuple(short_names),
            tuple(categories),
        )
        self._declared: dict[str, DeclaredVersion] = {}
        self._defaults: list[KindHook] = []
        self._checks: list[KindHook] = []
        self._reconcile: Callable[..., Any] | None = None
        self._takes: KindHook | None = None
        self._edges = Edges(group)
        self._converter: Converter | None = None
        self._definition: Definition | None = None
        self._given: Definition | None = None
        self.place = _place(sys._getframe(1))
        """Where it is declared: `kinds.py:7`."""

    @classmethod
    def of(cls, definition: Definition) -> Kind:
        """A kind that is defined elsewhere; it has no classes, and its objects are dicts."""
        names = definition.names
        kind = cls(
            names.kind,
            group=definition.group,
            plural=names.plural,
            singular=names.singular,
            list_kind=names.list_kind,
            short_names=names.short_names,
            categories=names.categories,
            scope=definition.scope,
            strategy=definition.strategy,
        )
        kind._given, kind.place = definition, definition.place
        return kind

    @property
    def is_ours(self) -> bool:
        """Whether it is declared here, and not in a manifest that somebody else keeps."""
        return self._given is None

    def __repr__(self) -> str:
        return f"<Kind {self.kind}.{self.group}>"

    @property
    def versions(self) -> Mapping[str, type[Any]]:
        """The class of each version, in the order in which they were declared."""
        return MappingProxyType({name: each.cls for name, each in self._declared.items()})

    @property
    def hub(self) -> str:
        """The version that says that it is the hub, else the one that is stored."""
        return self.definition().hub

    @dataclass_transform(kw_only_default=True, field_specifiers=(Field, FieldOptions))
    def version(
        self,
        name: str,
        *,
        served: bool = True,
        storage: bool | None = None,
        deprecated: bool | str = False,
        hub: bool = False,
        columns: Sequence[Column] = (),
        status: bool | None = None,
        scale: Scale | None = None,
        selectable: Sequence[str] = (),
    ) -> Callable[[type[T]], type[T]]:
        """Declare a version by the class below.

        `deprecated` may be what clients are warned with. Without `status` there is one if the
        class has such a field. The class becomes one for objects, made with keywords.
        """
        names = _around(sys._getframe(1))

        def read(cls: type[T]) -> type[T]:
            self._check_new(name, cls)
            about = {"apiVersion": f"{self.group}/{name}", "kind": self.kind}
            made: Any = ClassReader(names).whole(cls, status=status, about=about)
            has_status = "status" in made.__schema__["properties"] if status is None else status
            version = DefinedVersion(
                name,
                served=served,
                deprecated=bool(deprecated),
                warning=deprecated if isinstance(deprecated, str) else None,
                schema=made.__schema__,
                columns=tuple(columns),
                status=has_status,
                scale=scale,
                selectable=tuple(selectable),
            )
            self._declared[name] = DeclaredVersion(made, version, storage, hub)
            self._definition = None
            found: type[T] = made
            return found

        return read

    def _check_new(self, name: str, cls: type) -> None:
        if self._given is not None:
            fact = f"{self.kind} was read from {self.place}, so versions cannot be added"
            raise InvalidKind(fact, at=shown_name(cls))
        if name in self._declared:
            other = shown_name(self._declared[name].cls)
            fact = f"{self.kind} {name} is declared twice, by {other} and {shown_name(cls)}"
            raise InvalidKind(fact)

    def definition(self) -> Definition:
        """The kind as data; everything that is wrong with the whole of it is raised here."""
        if self._definition is None:
            made = self._given or _checks.complete(self, tuple(self._declared.values()))
            classes = {version.name: self.versions.get(version.name) for version in made.versions}
            _checks.check_hooks(self.kind, (*self._defaults, *self._checks), classes)
            self._converter = self._connected(made)
            self._definition = made
        return self._definition

    def _connected(self, definition: Definition) -> Converter | None:
        several = len(definition.versions) > 1
        said = self._edges.exist(self.versions)
        if said and self.is_ours:
            check_strategy(definition)
        if said or (several and definition.strategy == "None"):
            return self._edges.converter(definition, self.versions, carry=self.carry)
        if several and self.is_ours:
            raise edges_missing(definition)
        return None

    @property
    def converter(self) -> Converter | None:
        """What converts its objects; None if nothing was said and nothing has to be."""
        self.definition()
        return self._converter

    def from_object(self, obj: Mapping[str, Any]) -> Any:
        """Plain data as an object of the class of its version."""
        if self._given is not None:
            fact = f"{self.kind} was read from {self.place}, so it has no classes"
            raise NotAsDeclared(fact, hint="its objects are dicts")
        group, _, version = str(obj.get("apiVersion", "")).rpartition("/")
        declared = self._declared.get(version) if group == self.group else None
        if declared is None or obj.get("kind") != self.kind:
            fact = f"{obj.get('apiVersion')} {obj.get('kind')} is not a version of {self.kind}"
            raise NotAsDeclared(fact, hint=f"known: {listed([*self._declared])}")
        return from_object(declared.cls, obj)

    # How objects get from one version to another.

    def edge(
        self, source: str, target: str
    ) -> Callable[[Callable[[Rules], Any]], Callable[[Rules], Any]]:
        """Connect two versions by rules, which the function below writes down; each is two-way."""

        def read(write: Callable[[Rules], Any]) -> Callable[[Rules], Any]:
            self._edges.add_rules(source, target, write)
            self._definition = None
            return write

        return read

    def converts(self, source: str, target: str) -> Callable[[F], F]:
        """Connect two versions by a function for this direction; there must be one back as well.

        It gets an object of the version's class, or a dict if its hint says so.
        """
        names = _around(sys._getframe(1))

        def register(function: F) -> F:
            self._edges.add_function(source, target, function, names)
            self._definition = None
            return function

        return register

    def convert(self, function: F) -> F:
        """Have one function convert between all versions: it gets an object and the version.

        Where there are other edges, it connects what those leave apart from the hub.
        """
        self._edges.add_whole(function)
        self._definition = None
        return function

    # What is done when objects are written, and afterwards.

    def default(self, version: str) -> Callable[[F], F]:
        """Have a function fill in what is missing in new and changed objects of a version.

        It gets an object of the version's class, or a dict if its hint says so, and changes it
        or returns another.
        """
        return self._hook(version, self._defaults, 1, _around(sys._getframe(1)))

    def validate(self, version: str) -> Callable[[F], F]:
        """Have a function look for problems in objects of a version before they are stored.

        It gets the object, and the old one or None if it takes two; it returns problems, or
        raises ValueError.
        """
        return self._hook(version, self._checks, 2, _around(sys._getframe(1)))

    def _hook(
        self, version: str, hooks: list[KindHook], most: int, names: Mapping[str, Any]
    ) -> Callable[[F], F]:
        def register(function: F) -> F:
            hooks.append(_hooks.make_hook(version, function, names, most=most))
            self._definition = None
            return function

        return register

    def defaulted(self, version: str, obj: Mapping[str, Any]) -> Object:
        """An object of a version with what the kind's hooks fill in."""
        return _hooks.defaulted([each for each in self._defaults if each.version == version], obj)

    def problems(
        self, version: str, obj: Mapping[str, Any], old: Mapping[str, Any] | None = None
    ) -> list[Problem]:
        """What the kind's hooks find wrong with an object of a version."""
        return _hooks.problems([each for each in self._checks if each.version == version], obj, old)

    def has_hooks(self, version: str) -> tuple[bool, bool]:
        """Whether there is anything that fills in, and anything that looks for problems."""
        return (
            any(each.version == version for each in self._defaults),
            any(each.version == version for each in self._checks),
        )

    def reconcile(self, function: F) -> F:
        """Have a function called whenever an object may not be as it should: the controller."""
        if self._reconcile is not None:
            fact = f"{self.kind} already has a controller, {self._reconcile.__qualname__}"
            raise InvalidKind(fact, at=function.__qualname__, hint="one kind has one controller")
        names = _around(sys._getframe(1))
        hook = _hooks.make_hook("", function, names, most=1)
        found = [name for name, cls in self.versions.items() if cls is hook.cls]
        self._reconcile, self._takes = function, replace(hook, version=(found or [""])[0])
        return function

    @property
    def controller_takes(self) -> KindHook:
        """How it takes objects: in the version whose class it names, else in the stored one."""
        assert self._takes is not None
        return self._takes

    @property
    def controller(self) -> Callable[..., Any] | None:
        """What `reconcile` registered."""
        return self._reconcile


def read_kinds(text: str, source: str = "manifest") -> list[Kind]:
    """The kinds in CustomResourceDefinitions, as YAML or JSON; `source` is for errors."""
    return [Kind.of(definition) for definition in definitions_of(load_manifests(text, source))]


@dataclass_transform(kw_only_default=True, field_specifiers=(Field, FieldOptions))
def part(cls: type[T]) -> type[T]:
    """Read a class that is part of objects, wherever fields name it.

    >>> @part
    ... class Port:
    ...     number: int
    >>> Port(number=80).number
    80
    """
    place = ClassReader(_around(sys._getframe(1))).part(cls)
    found: type[T] = place.python
    return found


def _around(frame: FrameType) -> Mapping[str, Any]:
    """The names that can be used where a class or function is declared."""
    return {**frame.f_globals, **frame.f_locals}


def _place(frame: FrameType) -> str:
    return f"{frame.f_code.co_filename}:{frame.f_lineno}"


def _plural(kind: str) -> str:
    word = kind.lower()
    if word.endswith(("s", "x", "z", "ch", "sh")):
        return f"{word}es"
    if word.endswith("y") and word[-2:-1] not in tuple("aeiou"):
        return f"{word[:-1]}ies"
    return f"{word}s"
