"""Read Conversions from YAML; errors name the file, the line and the rule."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import msgspec
from msgspec import Struct

from polyver.apis.conversion._block import InvalidRules, RuleBlock
from polyver.apis.conversion._building import InvalidRule, Rules
from polyver.apis.conversion.case_rules import WhenRule
from polyver.apis.conversion.completeness import Completeness, PreservedNames
from polyver.apis.conversion.paths import InvalidFieldPath, parse_path
from polyver.apis.conversion.values import MISSING
from polyver.core import ConversionTree, Edge, InvalidTree, PolyverError, listed
from polyver.kube.objects import Document, objects_of
from polyver.kube.objects.codec import prepare

__all__ = [
    "GROUP",
    "KIND",
    "DeclaredConversion",
    "DeclaredEdge",
    "largest_part",
    "read_connected_part",
    "read_conversion",
    "read_conversions",
]

GROUP, KIND = "polyver.dev", "Conversion"


@dataclass(frozen=True, slots=True)
class DeclaredEdge:
    """Two versions and the rules between them, as read from a Conversion or declared in Python."""

    source: str
    target: str
    block: RuleBlock


@dataclass(frozen=True, slots=True)
class DeclaredConversion:
    """The content of a Conversion: a kind, its versions, and the edges between the versions."""

    name: str
    group: str
    kind: str
    versions: tuple[str, ...]
    edges: tuple[DeclaredEdge, ...]
    hub: str | None
    document: Document
    completeness: Completeness = field(default_factory=Completeness)

    def error(self, fact: str, *path: str | int, hint: str = "") -> PolyverError:
        return self.document.error(fact, *path, hint=hint)


class _Edge(Struct, rename={"source": "from", "target": "to"}, forbid_unknown_fields=True):
    source: str
    target: str
    rules: list[dict[str, Any]] = []


class _Preserved(Struct, rename={"edits_lose": "editsLose"}, forbid_unknown_fields=True):
    version: str
    fields: list[str] = []
    edits_lose: list[str] = []


class _Spec(Struct, forbid_unknown_fields=True):
    group: str
    kind: str
    versions: list[str]
    edges: list[_Edge] = []
    hub: str | None = None
    completeness: Literal["acknowledged"] | None = None
    preserved: list[_Preserved] = []


class _Metadata(Struct):
    name: str = ""


class _Conversion(Struct):
    spec: _Spec
    metadata: _Metadata = msgspec.field(default_factory=_Metadata)


prepare(_Conversion)


def read_conversions(documents: Iterable[Document]) -> Iterator[DeclaredConversion]:
    """Yield the Conversions among manifests; skip all other objects."""
    for document in objects_of(documents, GROUP, KIND):
        yield read_conversion(document)


def read_conversion(document: Document) -> DeclaredConversion:
    """Read one Conversion."""
    found = _checked(document)
    _check_tree(document, found.spec)
    return _declared(document, found, found.spec.versions)


def read_connected_part(document: Document) -> DeclaredConversion:
    """Read a Conversion whose edges need not connect all versions.

    The result has the largest set of versions that are connected with each other.
    """
    found = _checked(document)
    pairs = [(edge.source, edge.target) for edge in found.spec.edges]
    return _declared(document, found, largest_part(found.spec.versions, pairs))


def largest_part(versions: Sequence[str], pairs: Sequence[tuple[str, str]]) -> list[str]:
    """Return the largest set of versions that pairs of versions connect, in the given order.

    >>> largest_part(["v1", "v2", "v3"], [("v2", "v3")])
    ['v2', 'v3']
    """
    parts = [{each} for each in versions]
    for pair in pairs:
        joined = [part for part in parts if part & {*pair}]
        parts = [part for part in parts if part not in joined] + [set().union(*joined)]
    best = max(parts, key=len)
    return [each for each in versions if each in best]


def _checked(document: Document) -> _Conversion:
    """Read a Conversion without its rules; raise an error for an invalid name or group."""
    found = document.read(_Conversion)
    spec = found.spec
    if not spec.versions:
        raise document.error("no version is declared", "spec", "versions")
    if not spec.group:
        raise document.error("a kind with conversions needs a group", "spec", "group")
    plural, _, group = found.metadata.name.partition(".")
    if found.metadata.name and not (plural and group == spec.group):
        raise document.error(
            f"{found.metadata.name} is not the name of a CRD of {spec.group}",
            "metadata",
            "name",
            hint=f"use the CRD's name, PLURAL.{spec.group}",
        )
    return found


def _declared(
    document: Document, found: _Conversion, versions: Sequence[str]
) -> DeclaredConversion:
    spec = found.spec
    edges = [
        DeclaredEdge(edge.source, edge.target, _block(document.part("spec", "edges", number)))
        for number, edge in enumerate(spec.edges)
        if {edge.source, edge.target} <= {*versions}
    ]
    return DeclaredConversion(
        found.metadata.name,
        spec.group,
        spec.kind,
        tuple(versions),
        tuple(edges),
        spec.hub,
        document,
        _completeness(document, spec),
    )


def _completeness(document: Document, spec: _Spec) -> Completeness:
    preserved: dict[str, PreservedNames] = {}
    for number, each in enumerate(spec.preserved):
        at = ("spec", "preserved", number)
        if each.version not in spec.versions:
            fact, hint = f"{each.version} is not declared", f"known: {listed(spec.versions)}"
            raise document.error(fact, *at, "version", hint=hint)
        if each.version in preserved:
            raise document.error(f"{each.version} is named twice", *at, "version")
        names = (tuple(each.fields), tuple(each.edits_lose))
        preserved[each.version] = PreservedNames(*names, document.place(*at))
    return Completeness(spec.completeness is not None, preserved)


def _check_tree(document: Document, spec: _Spec) -> None:
    """Raise an error unless the edges connect all versions to one tree.

    In a tree, exactly one path of edges connects any two versions.
    """
    for number, edge in enumerate(spec.edges):
        for name, version in (("from", edge.source), ("to", edge.target)):
            if version not in spec.versions:
                fact, hint = f"{version} is not declared", f"known: {listed(spec.versions)}"
                raise document.error(fact, "spec", "edges", number, name, hint=hint)
    if spec.hub is not None and spec.hub not in spec.versions:
        raise document.error(f"the hub {spec.hub} is not declared", "spec", "hub")
    edges = [Edge(edge.source, edge.target, True, True) for edge in spec.edges]
    try:
        ConversionTree(versions=spec.versions, edges=edges, hub=spec.hub)
    except InvalidTree as error:
        raise document.error(error.fact, "spec", "edges") from None


def _block(edge: Document) -> RuleBlock:
    rules = Rules(place=edge.place())
    read_rules(edge, rules)
    return rules.block()


def read_rules(holder: Document, rules: Rules) -> None:
    """Read the rules that a mapping has under its key `rules`, and add them to `rules`."""
    value = holder.value
    found = value.get("rules") if isinstance(value, Mapping) else None
    for number in range(len(found or ())):
        _read_rule(holder.part("rules", number), rules)
    try:
        rules.block()
    except InvalidRules as error:
        written: Any = holder.part("rules", error.rule)
        raise written.error(error.fact, *written.value, hint=error.hint) from None


def _read_rule(part: Document, rules: Rules) -> None:
    """Read a mapping with one rule, and add this rule to `rules`."""
    rule, known = part.value, ", ".join(sorted(_READERS))
    if not isinstance(rule, Mapping) or len(rule) != 1:
        raise part.error("a rule is a mapping with one key", hint=f"which is one of {known}")
    [name] = rule
    if name not in _READERS:
        raise part.error(f"{name!r} is not a rule", str(name), hint=f"known: {known}")
    rules.reading = part.place()
    try:
        _READERS[name](part.part(name), rules)
    except (InvalidRule, InvalidRules, InvalidFieldPath) as error:
        raise part.error(error.fact, name, hint=error.hint) from None


class _FromTo(Struct, rename={"source": "from", "target": "to"}, forbid_unknown_fields=True):
    source: str
    target: str


class _Wrap(_FromTo):
    rules: list[Any] = []


class _Split(Struct, rename={"source": "from"}, forbid_unknown_fields=True):
    source: str
    into: list[str]
    separator: str
    types: list[str] | None = None
    absent: str | None = None


class _Values(Struct, rename={"words": "map", "target": "as"}, forbid_unknown_fields=True):
    at: str
    words: dict[str, Any]
    target: str = ""


class _Cast(
    Struct,
    rename={"source": "from", "into": "to", "target": "as"},
    forbid_unknown_fields=True,
):
    at: str
    source: str
    into: str
    target: str = ""


class _Scale(_FromTo):
    factor: int | float | str
    types: tuple[str, ...] = ("integer", "integer")


class _Duration(_FromTo):
    unit: str
    types: tuple[str, str] = ("string", "integer")
    form: str = "go"


class _Quantity(_FromTo):
    unit: str = ""
    types: tuple[str, str] = ("string", "integer")
    form: str = ""


class _Join(_FromTo):
    separator: str


class _Pattern(Struct, rename={"source": "from"}, forbid_unknown_fields=True):
    source: str
    pattern: str
    into: dict[str, str]
    types: dict[str, str] = {}


class _RenameKeys(Struct, rename={"words": "map", "target": "as"}, forbid_unknown_fields=True):
    at: str
    words: dict[str, str]
    target: str = ""
    rules: list[Any] = []


class _Keyed(_FromTo):
    key: str
    value: str = ""


class _At(Struct, forbid_unknown_fields=True):
    at: str


class _Const(_At):
    value: Any


class _Within(Struct, rename={"target": "as"}, forbid_unknown_fields=True):
    at: str
    target: str = ""
    rules: list[Any] = []


class _Each(Struct, rename={"target": "as"}, forbid_unknown_fields=True):
    at: str
    target: str = ""
    key: str | list[str] = []
    rules: list[Any] = []


class _Default(_FromTo):
    value: Any


class _Case(Struct, rename={"value": "is", "target": "as"}, forbid_unknown_fields=True):
    value: Any
    target: Any = MISSING
    rules: list[Any] = []


class _Recurse(Struct, rename={"target": "as"}, forbid_unknown_fields=True):
    at: str
    target: str = ""
    key: str | list[str] = []
    up: int = 0


class _Otherwise(Struct, forbid_unknown_fields=True):
    rules: list[Any] = []


class _When(Struct, rename={"source": "from", "target": "to"}, forbid_unknown_fields=True):
    source: str
    cases: list[_Case]
    target: str = ""
    otherwise: _Otherwise | None = None


class _Cel(Struct, rename={"source": "from", "target": "to"}, forbid_unknown_fields=True):
    source: str | dict[str, str]
    target: str | dict[str, str]
    forward: str
    back: str


prepare(_FromTo, _Wrap, _Split, _Values, _Cast, _Scale, _Keyed, _At, _Const, _Within, _Each)
prepare(_Duration, _Quantity, _Join, _Pattern, _RenameKeys)
prepare(_Cel, _Default, _Recurse, _When)


def _move(part: Document, rules: Rules) -> None:
    found = part.read(_FromTo)
    rules.move(found.source, found.target)


def _split(part: Document, rules: Rules) -> None:
    found = part.read(_Split)
    rules.split(
        found.source,
        into=found.into,
        separator=found.separator,
        types=found.types,  # type: ignore[arg-type]
        absent=found.absent,
    )


def _wrap(part: Document, rules: Rules) -> None:
    found = part.read(_Wrap)
    read_rules(part, rules.wrap(found.source, found.target))


def _values(part: Document, rules: Rules) -> None:
    found = part.read(_Values)
    _check_keys(part, found.words)
    rules.values(found.at, found.words, to=found.target)


def _check_keys(part: Document, words: Mapping[str, Any]) -> None:
    """Raise an error if a key of `map` is not a string in YAML."""
    for key in words:
        if not part.key_was_text("map", key):
            raise part.error(f"{key} is not a string", "map", key, hint="put it in quotes")


def _cast(part: Document, rules: Rules) -> None:
    found = part.read(_Cast)
    rules.cast(found.at, found.source, found.into, to=found.target)  # type: ignore[arg-type]


def _scale(part: Document, rules: Rules) -> None:
    found = part.read(_Scale)
    rules.scale(found.source, found.target, found.factor, types=found.types)  # type: ignore[arg-type]


def _duration(part: Document, rules: Rules) -> None:
    found = part.read(_Duration)
    rules.duration(
        found.source,
        found.target,
        unit=found.unit,
        types=found.types,  # type: ignore[arg-type]
        form=found.form,
    )


def _quantity(part: Document, rules: Rules) -> None:
    found = part.read(_Quantity)
    rules.quantity(
        found.source,
        found.target,
        unit=found.unit,
        types=found.types,  # type: ignore[arg-type]
        form=found.form,
    )


def _join(part: Document, rules: Rules) -> None:
    found = part.read(_Join)
    rules.join(found.source, found.target, separator=found.separator)


def _pattern(part: Document, rules: Rules) -> None:
    found = part.read(_Pattern)
    rules.pattern(
        found.source,
        found.pattern,
        into=found.into,
        types=found.types,  # type: ignore[arg-type]
    )


def _rename_keys(part: Document, rules: Rules) -> None:
    found = part.read(_RenameKeys)
    _check_keys(part, found.words)
    read_rules(part, rules.rename_keys(found.at, found.words, to=found.target))


def _reverse(part: Document, rules: Rules) -> None:
    _read_rule(part, rules.reverse())


def _keyed(part: Document, rules: Rules) -> None:
    found = part.read(_Keyed)
    rules.keyed(found.source, found.target, key=found.key, value=found.value)


def _drop(part: Document, rules: Rules) -> None:
    rules.drop(part.read(_At).at)


def _added(part: Document, rules: Rules) -> None:
    rules.add(part.read(_At).at)


def _const(part: Document, rules: Rules) -> None:
    found = part.read(_Const)
    rules.const(found.at, found.value)


def _cel(part: Document, rules: Rules) -> None:
    found = part.read(_Cel)
    rules.cel(found.source, found.target, forward=found.forward, back=found.back)


def _default(part: Document, rules: Rules) -> None:
    found = part.read(_Default)
    rules.default(found.source, found.target, found.value)


def _when(part: Document, rules: Rules) -> None:
    found = part.read(_When)
    made = rules.when(found.source, to=found.target)
    for number, case in enumerate(found.cases):
        read_rules(part.part("cases", number), made.case(case.value, to=case.target))
    if found.otherwise is not None:
        read_rules(part.part("otherwise"), made.otherwise())
    made.completed(WhenRule(parse_path(found.source), parse_path(found.target or found.source)))


def _recurse(part: Document, rules: Rules) -> None:
    found = part.read(_Recurse)
    rules.recurse(found.at, to=found.target, key=found.key, up=found.up)


def _each(part: Document, rules: Rules) -> None:
    found = part.read(_Each)
    read_rules(part, rules.each(found.at, to=found.target, key=found.key))


def _within(part: Document, rules: Rules) -> None:
    found = part.read(_Within)
    read_rules(part, rules.within(found.at, to=found.target))


_READERS: dict[str, Callable[[Document, Rules], None]] = {
    "add": _added,
    "cast": _cast,
    "cel": _cel,
    "const": _const,
    "default": _default,
    "drop": _drop,
    "duration": _duration,
    "each": _each,
    "join": _join,
    "keyed": _keyed,
    "move": _move,
    "pattern": _pattern,
    "quantity": _quantity,
    "recurse": _recurse,
    "rename_keys": _rename_keys,
    "reverse": _reverse,
    "scale": _scale,
    "split": _split,
    "values": _values,
    "when": _when,
    "within": _within,
    "wrap": _wrap,
}
