"""Declaring a kind: what classes and hints become in its schema, and what is refused and where."""

from __future__ import annotations

import dataclasses
import enum
import re
import sys
from collections.abc import Mapping
from datetime import date, datetime
from types import ModuleType
from typing import Annotated, Any, ClassVar, Literal, NewType, NotRequired, TypedDict

import annotated_types
import msgspec
import pytest

from polyver import apis

GROUP = "stable.example.com"


def schema_of(hint: Any, **body: Any) -> dict[str, Any]:
    """What a field of some type is in the schema."""
    kind = apis.Kind("Thing", group=GROUP)
    kind.version("v1")(type("Thing", (), {"__annotations__": {"field": hint}, **body}))
    schema = kind.definition().versions[0].schema
    assert schema is not None
    found: dict[str, Any] = schema["properties"]["field"]
    return found


def refused(hint: Any, **body: Any) -> str:
    with pytest.raises(apis.InvalidKind) as caught:
        schema_of(hint, **body)
    return str(caught.value)


class Policy(enum.Enum):
    ALLOW = "Allow"
    FORBID = "Forbid"


PRESERVE = {"x-kubernetes-preserve-unknown-fields": True}


@pytest.mark.parametrize(
    ("hint", "schema"),
    [
        (str, {"type": "string"}),
        (int, {"type": "integer"}),
        (float, {"type": "number"}),
        (bool, {"type": "boolean"}),
        (datetime, {"type": "string", "format": "date-time"}),
        (date, {"type": "string", "format": "date"}),
        (Literal["a", "b"], {"type": "string", "enum": ["a", "b"]}),
        (Literal[1, 2], {"type": "integer", "enum": [1, 2]}),
        (Policy, {"type": "string", "enum": ["Allow", "Forbid"]}),
        (list[str], {"type": "array", "items": {"type": "string"}}),
        (dict[str, int], {"type": "object", "additionalProperties": {"type": "integer"}}),
        (Mapping[str, int], {"type": "object", "additionalProperties": {"type": "integer"}}),
        (dict, {"type": "object", **PRESERVE}),
        (dict[str, Any], {"type": "object", **PRESERVE}),
        (apis.Anything, PRESERVE),
        (object, PRESERVE),
        (str | None, {"type": "string"}),
        (apis.Nullable[str], {"type": "string", "nullable": True}),  # type: ignore[misc]
        (
            int | str,
            {
                "x-kubernetes-int-or-string": True,
                "anyOf": [{"type": "integer"}, {"type": "string"}],
            },
        ),
        (
            apis.EmbeddedResource,
            {"type": "object", **PRESERVE, "x-kubernetes-embedded-resource": True},
        ),
        (
            Annotated[list[str], apis.ListSet()],
            {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"},
        ),
        (
            Annotated[list[str], apis.Atomic()],
            {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "atomic"},
        ),
        (
            Annotated[dict[str, str], apis.Atomic()],
            {
                "type": "object",
                "additionalProperties": {"type": "string"},
                "x-kubernetes-map-type": "atomic",
            },
        ),
        (Annotated[int, apis.Ge(1), apis.Le(9)], {"type": "integer", "minimum": 1, "maximum": 9}),
        (
            Annotated[float, apis.Gt(0), apis.Lt(1.5)],
            {
                "type": "number",
                "minimum": 0,
                "exclusiveMinimum": True,
                "maximum": 1.5,
                "exclusiveMaximum": True,
            },
        ),
        (Annotated[int, apis.MultipleOf(5)], {"type": "integer", "multipleOf": 5}),
        (
            Annotated[str, apis.MinLength(1), apis.MaxLength(9)],
            {"type": "string", "minLength": 1, "maxLength": 9},
        ),
        (
            Annotated[list[int], apis.MinLength(1), apis.MaxLength(9)],
            {"type": "array", "items": {"type": "integer"}, "minItems": 1, "maxItems": 9},
        ),
        (
            Annotated[dict[str, int], apis.MaxLength(9)],
            {
                "type": "object",
                "additionalProperties": {"type": "integer"},
                "maxProperties": 9,
            },
        ),
        (Annotated[str, apis.Pattern("^a")], {"type": "string", "pattern": "^a"}),
        (Annotated[str, re.compile("^a")], {"type": "string", "pattern": "^a"}),
        (Annotated[int, apis.Format("int32")], {"type": "integer", "format": "int32"}),
        (Annotated[str, apis.Description("Words.")], {"description": "Words.", "type": "string"}),
        (Annotated[str, "a note", object()], {"type": "string"}),
        (Annotated[int, annotated_types.Ge(1)], {"type": "integer", "minimum": 1}),
        (
            Annotated[str, annotated_types.Len(0, 9)],
            {"type": "string", "maxLength": 9},
        ),
        (
            Annotated[int, msgspec.Meta(ge=1, title="Count")],
            {"type": "integer", "minimum": 1, "title": "Count"},
        ),
        (
            Annotated[str, apis.Rule("self != 'x'", message="not x")],
            {
                "type": "string",
                "x-kubernetes-validations": [{"rule": "self != 'x'", "message": "not x"}],
            },
        ),
    ],
)
def test_a_hint_becomes_a_schema(hint: Any, schema: dict[str, Any]) -> None:
    assert schema_of(hint) == schema


def test_the_printed_example_is_one_kind_in_two_versions() -> None:
    crontab = apis.Kind("CronTab", group=GROUP, short_names=["ct"])

    @crontab.version("v1")
    class CronTabV1:
        """Runs a command on a schedule."""

        class Spec:
            cronSpec: str  # noqa: N815
            """When to run, in cron syntax."""
            replicas: Annotated[int, annotated_types.Ge(1), annotated_types.Le(10)] = 1

        spec: Spec

    @crontab.version("v2", storage=True)
    class CronTabV2:
        class Spec:
            schedule: str

        spec: Spec

    @crontab.edge("v1", "v2")
    def v1_v2(e: apis.Rules) -> None:
        e.move("spec.cronSpec", "spec.schedule")

    definition = crontab.definition()
    assert definition.name == "crontabs.stable.example.com"
    assert (definition.storage, definition.hub) == ("v2", "v2")
    v1 = definition.version("v1")
    assert v1 is not None
    assert v1.schema == {
        "description": "Runs a command on a schedule.",
        "type": "object",
        "properties": {
            "apiVersion": {"type": "string"},
            "kind": {"type": "string"},
            "metadata": {"type": "object"},
            "spec": {
                "type": "object",
                "properties": {
                    "cronSpec": {
                        "description": "When to run, in cron syntax.",
                        "type": "string",
                    },
                    "replicas": {"type": "integer", "minimum": 1, "maximum": 10, "default": 1},
                },
                "required": ["cronSpec"],
            },
        },
        "required": ["spec"],
    }
    assert crontab.versions == {"v1": CronTabV1, "v2": CronTabV2}


class Address(TypedDict):
    street: str
    number: NotRequired[int]


@dataclasses.dataclass
class Door:
    wide: float
    colours: list[str] = dataclasses.field(default_factory=lambda: ["red"])


class Window(msgspec.Struct, rename="camel"):
    is_open: bool
    panes: int = 2


def test_typed_dicts_dataclasses_and_structs_are_parts_as_well() -> None:
    assert schema_of(Address) == {
        "type": "object",
        "properties": {"street": {"type": "string"}, "number": {"type": "integer"}},
        "required": ["street"],
    }
    assert schema_of(Door) == {
        "type": "object",
        "properties": {
            "wide": {"type": "number"},
            "colours": {"type": "array", "items": {"type": "string"}, "default": ["red"]},
        },
        "required": ["wide"],
    }
    assert schema_of(list[Window])["items"] == {
        "type": "object",
        "properties": {"isOpen": {"type": "boolean"}, "panes": {"type": "integer", "default": 2}},
        "required": ["isOpen"],
    }


def test_objects_hold_what_such_parts_declare() -> None:
    house = apis.Kind("House", group=GROUP)

    @house.version("v1")
    class House:
        address: Address
        doors: list[Door]
        windows: dict[str, Window]

    obj = {
        "apiVersion": f"{GROUP}/v1",
        "kind": "House",
        "address": {"street": "High"},
        "doors": [{"wide": 1}, {"wide": 0.5, "colours": []}],
        "windows": {"left": {"isOpen": True}},
    }
    found = apis.from_object(House, obj)
    assert found.address["street"] == "High"
    assert found.doors[0].wide == 1
    assert found.windows["left"].is_open is True
    assert apis.to_object(found) == obj


def test_a_field_may_be_called_what_python_cannot_call_it() -> None:
    kind = apis.Kind("Thing", group=GROUP)

    @kind.version("v1")
    class Thing(apis.Fields):
        from_: str
        dashed: str = apis.Field(name="with-dashes", description="Has dashes.", minLength=1)
        count: Annotated[int, apis.Field(name="Count", default=2)] = 2

    schema = kind.definition().versions[0].schema
    assert schema is not None
    assert {*schema["properties"]} >= {"from", "with-dashes", "Count"}
    assert schema["properties"]["with-dashes"] == {
        "description": "Has dashes.",
        "type": "string",
        "minLength": 1,
    }
    assert schema["required"] == ["from", "with-dashes"]
    made = Thing(from_="here", dashed="a")
    assert apis.to_object(made) == {
        "apiVersion": f"{GROUP}/v1",
        "kind": "Thing",
        "from": "here",
        "with-dashes": "a",
    }


def test_rules_and_marks_stand_above_classes() -> None:
    kind = apis.Kind("Thing", group=GROUP)

    @kind.version("v1")
    @apis.Rule("has(self.spec)")
    class Thing:
        @apis.Rule("self.min <= self.max", message="min is above max", field_path=".min")
        @apis.Rule("self.max < 9", reason="FieldValueForbidden")
        @apis.Preserve()
        class Spec:
            min: int
            max: int

        spec: Annotated[Spec, apis.Atomic()]

    schema = kind.definition().versions[0].schema
    assert schema is not None
    assert schema["x-kubernetes-validations"] == [{"rule": "has(self.spec)"}]
    spec = schema["properties"]["spec"]
    assert spec["x-kubernetes-validations"] == [
        {"rule": "self.min <= self.max", "message": "min is above max", "fieldPath": ".min"},
        {"rule": "self.max < 9", "reason": "FieldValueForbidden"},
    ]
    assert spec["x-kubernetes-preserve-unknown-fields"] is True
    assert spec["x-kubernetes-map-type"] == "atomic"


def test_defaults_are_plain_data_and_need_not_be_immutable() -> None:
    assert schema_of(list[str], field=["a"])["default"] == ["a"]
    assert schema_of(dict[str, int], field={"a": 1})["default"] == {"a": 1}
    assert schema_of(Policy, field=Policy.FORBID)["default"] == "Forbid"
    assert schema_of(Port, field=Port(number=8080))["default"] == {"number": 8080}


def test_a_field_is_required_if_it_has_no_default_and_may_not_be_left_out() -> None:
    kind = apis.Kind("Thing", group=GROUP)

    @kind.version("v1")
    class Thing:
        needed: str
        null: apis.Nullable[str]
        null_or_nothing: apis.Nullable[str] = None
        optional: str | None
        also: str | None = None
        default: str = "a"
        either: str | None = "a"
        status: str
        """A server drops it from what is created."""
        shared: ClassVar[int] = 1

    schema = kind.definition().versions[0].schema
    assert schema is not None
    assert schema["required"] == ["needed", "null"]
    assert schema["properties"]["either"]["default"] == "a"
    assert "shared" not in schema["properties"]


@apis.part
class Port:
    """Where something listens."""

    number: int
    """From 1 to 65535."""


def test_a_part_is_used_in_many_classes() -> None:
    described = {
        "description": "Where something listens.",
        "type": "object",
        "properties": {"number": {"description": "From 1 to 65535.", "type": "integer"}},
        "required": ["number"],
    }
    assert schema_of(Port) == described
    assert schema_of(list[Port])["items"] == described
    marked = schema_of(Annotated[list[Port], apis.ListMap("number")])
    assert marked["x-kubernetes-list-map-keys"] == ["number"]


def test_a_class_may_be_made_from_that_of_another_version() -> None:
    kind = apis.Kind("Thing", group=GROUP, strategy="None")

    @kind.version("v1")
    class V1:
        class Spec:
            one: str
            """The first."""

        spec: Spec

    @kind.version("v2", storage=True)
    class V2:
        class Spec(V1.Spec):
            two: str | None

        spec: Spec

    v2 = kind.definition().versions[0].schema
    assert v2 is not None
    assert v2["properties"]["spec"]["properties"] == {
        "one": {"description": "The first.", "type": "string"},
        "two": {"type": "string"},
    }
    made = kind.from_object(
        {"apiVersion": f"{GROUP}/v2", "kind": "Thing", "spec": {"one": "a", "two": "b"}}
    )
    assert isinstance(made, V2)
    assert (made.spec.one, made.spec.two) == ("a", "b")


def test_a_version_says_how_it_is_served() -> None:
    kind = apis.Kind(
        "Toy",
        group=GROUP,
        scope="Cluster",
        categories=["all"],
        singular="toi",
        list_kind="Toys",
        strategy="None",
    )
    scale = apis.Scale(".spec.replicas", ".status.replicas", ".status.selector")
    columns = [apis.Column("Colour", ".spec.colour", priority=1, description="Its colour.")]

    @kind.version(
        "v1beta1",
        served=False,
        deprecated="v1beta1 is old; use v1",
        columns=columns,
        scale=scale,
        selectable=[".spec.colour"],
    )
    class Old:
        class Spec:
            colour: str
            replicas: int

        spec: Spec
        status: dict[str, Any] | None

    @kind.version("v1", storage=True, deprecated=True, status=False)
    class New:
        status: str

    new, old = apis.crd_of(kind.definition())["spec"]["versions"]
    old.pop("schema")
    assert old == {
        "name": "v1beta1",
        "served": False,
        "storage": False,
        "deprecated": True,
        "deprecationWarning": "v1beta1 is old; use v1",
        "subresources": {
            "status": {},
            "scale": {
                "specReplicasPath": ".spec.replicas",
                "statusReplicasPath": ".status.replicas",
                "labelSelectorPath": ".status.selector",
            },
        },
        "additionalPrinterColumns": [
            {
                "name": "Colour",
                "type": "string",
                "jsonPath": ".spec.colour",
                "description": "Its colour.",
                "priority": 1,
            }
        ],
        "selectableFields": [{"jsonPath": ".spec.colour"}],
    }
    assert new["deprecated"] is True
    assert "subresources" not in new
    assert new["schema"]["openAPIV3Schema"]["required"] == ["status"]


@pytest.mark.parametrize(
    ("kind", "plural"),
    [
        ("CronTab", "crontabs"),
        ("Policy", "policies"),
        ("Gateway", "gateways"),
        ("Ingress", "ingresses"),
        ("Switch", "switches"),
        ("Box", "boxes"),
    ],
)
def test_the_plural_follows_from_the_kind(kind: str, plural: str) -> None:
    assert apis.Kind(kind, group=GROUP).names.plural == plural


# What is refused.


class Node:
    children: list[Node]


class Outside:
    field: str


@pytest.mark.parametrize(
    ("hint", "body", "says"),
    [
        (bytes, {}, "bytes is not a type for a field (Thing.field); write Annotated[str, apis.For"),
        (set[str], {}, "set[str] is not a type for a field (Thing.field); write Annotated[list"),
        (list, {}, "list is not a type for a field (Thing.field); write list[Any]"),
        (complex, {}, "complex is not a type for a field (Thing.field)"),
        (Outside, {}, "Outside is not a type for a field (Thing.field); if it is your class"),
        (str | bool, {}, "str | bool has several types (Thing.field); only int | str"),
        (Literal["a", 1], {}, "the values to choose from must all be strings, or all integers"),
        (dict[int, str], {}, "the keys of dict[int, str] are not strings (Thing.field)"),
        (list[str | None], {}, "an item of a list or map cannot be absent (Thing.field[]); writ"),
        (
            Annotated[str, apis.Ge(1)],
            {},
            "ge applies to numbers, but this is a string (Thing.field)",
        ),
        (
            Annotated[int, apis.MinLength(1)],
            {},
            "min_length applies to strings, lists and maps, but th",
        ),
        (
            Annotated[int, apis.Pattern("a")],
            {},
            "pattern applies to strings, but this is an integer",
        ),
        (
            Annotated[str, apis.ListSet()],
            {},
            "ListSet() applies to lists, but this is a string (Thing.fi",
        ),
        (Annotated[list[str], apis.ListMap()], {}, "a ListMap needs the names of its keys"),
        (Annotated[int, apis.Ge(1), apis.Gt(2)], {}, "minimum is both 1 and 2 (Thing.field)"),
        (
            int,
            {"field": object()},
            "is not JSON data (Thing.field); use a value that JSON can express",
        ),
        (float, {"field": float("nan")}, "the default nan is not JSON data (Thing.field); use"),
        (int, {"field": "a"}, 'v1 cannot be served: Invalid value: "string":  in body must be of'),
        (
            Annotated[int, apis.Le(3)],
            {"field": 4},
            "should be less than or equal to 3 (Thing.field.default)",
        ),
        (Annotated[str, apis.Pattern("(")], {}, "must be a valid regular expression"),
        (
            Annotated[list[Port], apis.ListMap("name")],
            {},
            "entries must all be names of item properties (Thing.field.x-kubernetes-list-map-keys)",
        ),
        (
            "Missing",
            {},
            "Missing is not defined where Thing is declared; declare Missing before it",
        ),
        (int, {"__init__": lambda self: None}, "objects are created with keywords (Thing)"),
    ],
)
def test_a_field_that_cannot_be_is_refused(hint: Any, body: dict[str, Any], says: str) -> None:
    assert says in refused(hint, **body)


def test_a_class_that_contains_itself_is_refused() -> None:
    with pytest.raises(apis.InvalidKind) as caught:
        apis.part(Node)
    assert str(caught.value) == (
        "Node contains itself, which a schema cannot express (Node.children[]); "
        "use apis.Anything for that field"
    )


def test_what_all_objects_have_cannot_be_something_else() -> None:
    kind = apis.Kind("Thing", group=GROUP)
    for name, hint in {"metadata": Port, "kind": int, "apiVersion": dict}.items():
        with pytest.raises(apis.InvalidKind, match=f"{name} has the same type in all kinds"):
            kind.version("v1")(type("Thing", (), {"__annotations__": {name: hint}}))


def test_a_manifest_is_nobody_elses() -> None:
    definition = kind_with(("v1", {})).definition()
    apis.crd_of(definition)["spec"]["versions"][0]["schema"]["openAPIV3Schema"].clear()
    schema = apis.crd_of(definition)["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    assert schema["required"] == ["a"]


def test_a_field_may_be_called_as_its_type() -> None:
    kind = apis.Kind("Thing", group=GROUP)

    @kind.version("v1")
    class Thing:
        date: date | None = None

    schema = kind.definition().versions[0].schema
    assert schema is not None
    assert schema["properties"]["date"] == {"type": "string", "format": "date"}


ELSEWHERE = """
from __future__ import annotations
import dataclasses
Port = int

@dataclasses.dataclass
class Harbour:
    port: Port
"""


def test_a_class_from_elsewhere_means_what_its_names_mean_there(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    elsewhere: Any = ModuleType("elsewhere")
    monkeypatch.setitem(sys.modules, "elsewhere", elsewhere)
    exec(ELSEWHERE, vars(elsewhere))
    kind = apis.Kind("Thing", group=GROUP)
    assert Port is not elsewhere.Port
    kind.version("v1")(type("Thing", (), {"__annotations__": {"field": elsewhere.Harbour}}))
    schema = kind.definition().versions[0].schema
    assert schema is not None
    assert schema["properties"]["field"]["properties"] == {"port": {"type": "integer"}}


NEW_NAME = NewType("NEW_NAME", str)


def test_a_new_type_is_what_it_is_made_of() -> None:
    assert schema_of(NEW_NAME) == {"type": "string"}


def test_a_mark_that_comes_too_late_is_refused() -> None:
    with pytest.raises(
        apis.InvalidKind, match="is applied too late to Port; put it below the deco"
    ):
        apis.Preserve()(Port)


def kind_with(*versions: tuple[str, dict[str, Any]], **names: Any) -> apis.Kind:
    kind = apis.Kind(**({"kind": "Toy", "group": GROUP} | names))
    for name, options in versions:
        body = {"__annotations__": {"a": str}}
        kind.version(name, **options)(type(f"Toy{name.upper()}", (), body))
    return kind


STORED = {"storage": True}


@pytest.mark.parametrize(
    ("kind", "says"),
    [
        (kind_with(), "Toy has no version"),
        (
            kind_with(("v1", {}), ("v2", {})),
            "Toy has no storage version among v1 (ToyV1), v2 (ToyV2)",
        ),
        (kind_with(("v1", {"storage": False})), "Toy has no storage version among v1 (ToyV1)"),
        (
            kind_with(("v1", STORED), ("v2", STORED)),
            "Toy has two storage versions, v1 (ToyV1), v2 (ToyV2)",
        ),
        (
            kind_with(("v1", {**STORED, "hub": True}), ("v2", {"hub": True})),
            "Toy has two hubs, v1 (ToyV1), v2 (ToyV2)",
        ),
        (
            kind_with(("v1", STORED), ("v2", {})),
            "Toy has several versions, v2, v1, but no conversion between them",
        ),
        (kind_with(("V1", {})), '"V1" is not a version: a DNS-1035 label'),
        (kind_with(("v1", {}), group="example"), 'Toy has a group "example" that is not a domain'),
        (kind_with(("v1", {}), kind="My Toy"), 'has a kind "my toy" that is invalid'),
        (kind_with(("v1", {}), plural="Toys"), 'Toy has a plural "Toys" that is invalid'),
        (kind_with(("v1", {}), short_names=["T"]), 'Toy has a short name "T" that is invalid'),
        (kind_with(("v1", {}), list_kind="Toy"), "Toy has the same name as its lists"),
        (kind_with(("v1", {}), scope="cluster"), "Toy has the scope cluster"),
        (kind_with(("v1", {}), strategy="Webhook"), "Toy has the strategy Webhook"),
        (
            kind_with(("v1", {"columns": [apis.Column("A", "a")]})),
            'Invalid value: "a": must be a simple json path starting with .',
        ),
        (kind_with(("v1", {"selectable": [".b"]})), "is an invalid path"),
        (kind_with(("v1", {"scale": apis.Scale(".a")})), "should be a json path under .spec"),
        (kind_with(("v1", {"deprecated": "a\nb"})), "must be one line of printable characters"),
    ],
)
def test_a_kind_that_cannot_be_is_refused_when_it_is_complete(kind: apis.Kind, says: str) -> None:
    with pytest.raises(apis.InvalidKind) as caught:
        kind.definition()
    assert says in str(caught.value)


def test_a_version_that_is_declared_twice_is_refused() -> None:
    with pytest.raises(apis.InvalidKind, match="Toy v1 is declared twice, by ToyV1 and ToyV1"):
        kind_with(("v1", {}), ("v1", {}))


def test_one_version_is_stored_without_a_word_and_a_hub_may_be_another() -> None:
    assert kind_with(("v1", {})).definition().storage == "v1"
    kind = kind_with(("v1", STORED), ("v2", {"hub": True}), strategy="None")
    assert (kind.definition().storage, kind.hub) == ("v1", "v2")


def test_a_kind_can_be_declared_further_after_it_was_looked_at() -> None:
    kind = kind_with(("v1", STORED), strategy="None")
    assert len(kind.definition().versions) == 1
    kind.version("v2")(type("ToyV2", (), {"__annotations__": {"a": str}}))
    assert [version.name for version in kind.definition().versions] == ["v2", "v1"]
