"""A kind declared in Python: its names, a class for each version, edges, hooks and a controller."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import FrameType, MappingProxyType
from typing import Any, Literal, TypeVar, dataclass_transform

from polyver.apis.conversion import Converter, Rules
from polyver.apis.conversion.completeness import Completeness, PreservedNames
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
from polyver.kube.objects.webhooks import Webhook

__all__ = ["DeclaredVersion", "Kind", "part", "read_kinds"]

T = TypeVar("T")
F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class DeclaredVersion:
    """A version and the class of its objects."""

    cls: type[DeclaredObject]
    version: DefinedVersion
    storage: bool | None
    """The argument `storage` of the decorator.

    None means that the user did not state it: the version is the storage version if it is the only
    one.
    """
    hub: bool


class Kind:
    """A kind that a user declares in Python, with its versions.

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
        webhook: Webhook | None = None,
        carry: str = "",
        completeness: Literal["acknowledged"] | None = None,
    ) -> None:
        """Declare a kind. `strategy="None"` states that its versions differ only in apiVersion.

        Such versions need no edges. `webhook` is the webhook that converts objects of this kind on
        a cluster: `polyver crds` writes it to the CustomResourceDefinition. `carry` is the name of
        a top-level field that polyver adds to all versions. In this field polyver stores preserved
        fields: values that a version cannot express. By default, polyver stores them in an
        annotation. With `completeness="acknowledged"`, `polyver check` fails for each field that a
        version cannot express, unless a rule `drop` or `add` or the method `preserves` names it.
        """
        self.kind = kind
        self.group = group
        self.scope = scope
        self.strategy = strategy
        self.webhook = webhook
        self.carry = carry
        self.names = Names(
            kind,
            plural or _plural(kind),
            singular or kind.lower(),
            list_kind or f"{kind}List",
            tuple(short_names),
            tuple(categories),
        )
        self.completeness = Completeness(completeness is not None)
        """The decisions about fields that versions cannot express."""
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
        """The file and line of the kind's declaration: `kinds.py:7`."""

    @classmethod
    def of(cls, definition: Definition) -> Kind:
        """Build a kind from its definition in a manifest.

        It has no classes for its versions, so its objects are plain data.
        """
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
            webhook=definition.webhook,
        )
        kind._given, kind.place = definition, definition.place
        return kind

    @property
    def is_ours(self) -> bool:
        """True if the kind is declared in Python, False if it was read from a manifest."""
        return self._given is None

    def __repr__(self) -> str:
        return f"<Kind {self.kind}.{self.group}>"

    @property
    def versions(self) -> Mapping[str, type[Any]]:
        """The class of each version, by the name of the version, in declaration order."""
        return MappingProxyType({name: each.cls for name, each in self._declared.items()})

    @property
    def hub(self) -> str:
        """The version that is declared with `hub=True`; by default, the storage version."""
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
        """Declare a version by the decorated class; return the class for objects of this version.

        `deprecated` is True, or the text of the warning that clients of this version get. By
        default, the status is a subresource if the class has a field `status`. The returned class
        replaces the decorated class. Objects of the returned class are created with keyword
        arguments.
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
        """Return the kind as data; raise an error if the kind is invalid or incomplete."""
        if self._definition is None:
            made = self.unconnected_definition()
            classes = {version.name: self.versions.get(version.name) for version in made.versions}
            _checks.check_hooks(self.kind, (*self._defaults, *self._checks), classes)
            _checks.check_preserved(self.kind, self.completeness, classes)
            self._converter = self._connected(made)
            self._definition = made
        return self._definition

    def unconnected_definition(self) -> Definition:
        """Return the kind as data, without a check that conversions connect its versions."""
        return self._given or _checks.complete(self, tuple(self._declared.values()))

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

    def connected_part(self) -> Converter:
        """Return a converter of the versions that edges connect, if not all are connected.

        Raise an error if the kind is invalid for another reason.
        """
        made = _checks.complete(self, tuple(self._declared.values()))
        return self._edges.connected_part(made, self.versions)

    @property
    def converter(self) -> Converter | None:
        """The converter of the kind's objects; None if no conversion is declared or needed."""
        self.definition()
        return self._converter

    def from_object(self, obj: Mapping[str, Any]) -> Any:
        """Convert plain data to an object of the class of its version."""
        if self._given is not None:
            fact = f"{self.kind} was read from {self.place}, so it has no classes"
            raise NotAsDeclared(fact, hint="its objects are dicts")
        group, _, version = str(obj.get("apiVersion", "")).rpartition("/")
        declared = self._declared.get(version) if group == self.group else None
        if declared is None or obj.get("kind") != self.kind:
            fact = f"{obj.get('apiVersion')} {obj.get('kind')} is not a version of {self.kind}"
            raise NotAsDeclared(fact, hint=f"known: {listed([*self._declared])}")
        return from_object(declared.cls, obj)

    # Conversion.

    def edge(
        self, source: str, target: str
    ) -> Callable[[Callable[[Rules], Any]], Callable[[Rules], Any]]:
        """Connect two versions by rules for both directions, which the decorated function adds."""

        def read(write: Callable[[Rules], Any]) -> Callable[[Rules], Any]:
            self._edges.add_rules(source, target, write)
            self._definition = None
            return write

        return read

    def converts(self, source: str, target: str) -> Callable[[F], F]:
        """Declare the decorated function as the conversion from one version to another.

        The opposite direction needs a function of its own. The function gets an object of the
        version's class, or a dict if its type hint is a dict. It returns the converted object.
        """
        names = _around(sys._getframe(1))

        def register(function: F) -> F:
            self._edges.add_function(source, target, function, names)
            self._definition = None
            return function

        return register

    def convert(self, function: F) -> F:
        """Register one function that converts an object of any version to any other version.

        The function gets the object and the name of the target version. polyver uses it to convert
        between the hub and each version that no other edge connects to the hub. The hub is the
        version in the centre of the tree of conversions, by default the storage version.
        """
        self._edges.add_whole(function)
        self._definition = None
        return function

    def preserves(self, version: str, *fields: str, edits_lose: Sequence[str] = ()) -> None:
        """Name fields of a version that another version cannot express, and polyver preserves.

        `edits_lose` are lists in which an edit of an item in another version may lose data. The
        fields have the notation of the ledger: `spec.ports[].name`.
        """
        known = self.completeness.names(version)
        names = PreservedNames(
            (*known.fields, *fields), (*known.edits_lose, *edits_lose), _place(sys._getframe(1))
        )
        preserved = {**self.completeness.preserved, version: names}
        self.completeness = replace(self.completeness, preserved=preserved)
        self._definition = None

    # Admission hooks, and the controller.

    def default(self, version: str) -> Callable[[F], F]:
        """Register a function that sets defaults in new and changed objects of a version.

        The function gets an object of the version's class, or a dict if its type hint is a dict. It
        changes this object, or returns another object.
        """
        return self._hook(version, self._defaults, 1, _around(sys._getframe(1)))

    def validate(self, version: str) -> Callable[[F], F]:
        """Register a function that checks objects of a version before they are stored.

        The function gets the object. If it has a second parameter, it also gets the old object, or
        None for a new object. It returns or yields problems, or raises ValueError.
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
        """Return an object of a version with the defaults that the kind's hooks set."""
        return _hooks.defaulted([each for each in self._defaults if each.version == version], obj)

    def problems(
        self, version: str, obj: Mapping[str, Any], old: Mapping[str, Any] | None = None
    ) -> list[Problem]:
        """Return the problems that the kind's hooks find in an object of a version."""
        return _hooks.problems([each for each in self._checks if each.version == version], obj, old)

    def has_hooks(self, version: str) -> tuple[bool, bool]:
        """Report whether a version has hooks that set defaults, and hooks that check objects.

        The result is a pair of booleans.
        """
        return (
            any(each.version == version for each in self._defaults),
            any(each.version == version for each in self._checks),
        )

    def reconcile(self, function: F) -> F:
        """Register the controller: a function that polyver calls when an object may need changes.

        The function gets the object, and returns an `Outcome`: the wanted objects and the status.
        """
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
        """The function of the controller, as a hook with the version of the objects that it takes.

        The version is "" if the function takes plain data, which is then in the storage version.
        """
        assert self._takes is not None
        return self._takes

    @property
    def controller(self) -> Callable[..., Any] | None:
        """The function that `reconcile` registered; None if there is none."""
        return self._reconcile


def read_kinds(text: str, source: str = "manifest") -> list[Kind]:
    """Read the kinds in CustomResourceDefinitions, in YAML or JSON; errors name `source`."""
    return [Kind.of(definition) for definition in definitions_of(load_manifests(text, source))]


@dataclass_transform(kw_only_default=True, field_specifiers=(Field, FieldOptions))
def part(cls: type[T]) -> type[T]:
    """Declare a class for parts of objects, for use as the type of fields.

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
    """Return the names in scope at the place where a class or function is declared."""
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
