"""Declared classes to draw: every sort of field, within what an API server takes."""

from __future__ import annotations

from datetime import UTC, date, datetime
from enum import Enum
from types import GenericAlias
from typing import Annotated, Any, Literal

import annotated_types
import msgspec
from hypothesis import strategies as st

from polyver import apis


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


@apis.part
class Port:
    """Where something listens."""

    name: str
    number: Annotated[int, apis.Ge(1), apis.Lt(65536)] = 80
    protocol: Literal["TCP", "UDP"] = "TCP"


DEFAULTS: list[tuple[Any, Any]] = [
    (str, "a"),
    (int, -1),
    (float, 1.5),
    (bool, True),
    (datetime, datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)),
    (date, date(2026, 1, 2)),
    (Colour, Colour.RED),
    (Literal["a", "b"], "b"),
    (Literal[1, 2], 1),
    (Annotated[int, apis.Ge(0), apis.Le(9)], 9),
    (Annotated[int, annotated_types.Interval(gt=0, lt=9)], 8),
    (Annotated[float, apis.MultipleOf(0.5)], 2.5),
    (Annotated[int, apis.Format("int32")], 2**31 - 1),
    (Annotated[str, apis.MinLength(1), apis.MaxLength(5)], "abcde"),
    (Annotated[str, apis.Pattern("^[a-z]+$"), apis.MaxLength(9)], "abc"),
    (Annotated[str, msgspec.Meta(max_length=3, description="Not long.")], ""),
    (Annotated[str, apis.Format("byte")], "YQ=="),
    (Annotated[str, apis.MaxLength(9), apis.Rule("self.size() < 9", message="is long")], "b"),
    (apis.IntOrString, "50%"),
    (apis.Anything, {"a": [1, None]}),
    (dict[str, Any], {"a": {}}),
    (list[int], [1, 2]),
    (Port, Port(name="http")),
    (list[Port], [Port(name="http", number=8080)]),
    (dict[str, bool], {"a": False}),
]
SCALARS = [hint for hint, _ in DEFAULTS[:18]]
OTHERS: list[Any] = [
    apis.IntOrString,
    apis.Anything,
    dict,
    dict[str, Any],
    apis.EmbeddedResource,
    Port,
    Annotated[list[Port], apis.ListMap("name"), apis.MaxLength(4)],
    Annotated[list[str], apis.ListSet()],
    Annotated[list[int], apis.Atomic()],
    Annotated[dict[str, str], apis.Atomic()],
    Annotated[dict[str, int], apis.MaxLength(3)],
]
NAMES = st.sampled_from(["a", "b", "from_", "someField", "x1"])


def nullable(hint: Any) -> Any:
    return apis.Nullable[hint]  # type: ignore[misc]


def in_list(hint: Any) -> Any:
    return GenericAlias(list, (hint,))


def in_map(hint: Any) -> Any:
    return GenericAlias(dict, (str, hint))


def hints(classes: st.SearchStrategy[type]) -> st.SearchStrategy[Any]:
    plain = st.sampled_from(SCALARS + OTHERS) | classes
    deeper = plain | plain.map(in_list) | plain.map(in_map) | plain.map(in_map).map(in_list)
    return st.one_of(
        deeper,
        deeper.map(lambda hint: hint | None),
        deeper.map(nullable),
        deeper.map(nullable).map(in_list),
    )


@st.composite
def classes(draw: st.DrawFn, depth: int = 1) -> type:
    """A class with a few fields, some of them classes inside of it."""
    inside = classes(depth - 1) if depth else st.just(Port)
    names = draw(st.lists(NAMES, unique=True, min_size=1, max_size=4))
    pairs = hints(inside).map(lambda hint: (hint, ...)) | hints(inside).map(lambda h: (h, None))
    fields = {name: draw(pairs | st.sampled_from(DEFAULTS)) for name in names}
    drawn = {name: hint for name, (hint, _) in fields.items()}
    defaults = {name: default for name, (_, default) in fields.items() if default is not ...}
    nested = {f"Inner{number}": each for number, each in enumerate(_classes_in([*drawn.values()]))}
    body = {"__annotations__": drawn, "__doc__": draw(st.sampled_from([None, "Some text."]))}
    return type("Drawn", (), {**body, **defaults, **nested})


def _classes_in(hints: list[Any]) -> list[type]:
    found: list[type] = []
    for hint in hints:
        if isinstance(hint, type) and hint.__name__ == "Drawn":
            found.append(hint)
        found += _classes_in(list(getattr(hint, "__args__", ())))
    return found


@st.composite
def kinds(draw: st.DrawFn, most: int = 3, group: str = "drawn.example.com") -> apis.Kind:
    """A kind with a few versions, of which one is stored; what one lacks is carried."""
    versions = draw(
        st.lists(st.sampled_from(["v1", "v2", "v1beta1"]), unique=True, min_size=1, max_size=most)
    )
    stored = draw(st.sampled_from(versions))
    kind = apis.Kind("Drawn", group=group, scope=draw(st.sampled_from(["Namespaced", "Cluster"])))
    for version in versions:
        cls = draw(classes())
        status = draw(st.booleans())
        if status:
            cls = type("Drawn", (), {"__annotations__": {"spec": cls, "status": cls}, "Inner": cls})
        kind.version(
            version,
            storage=version == stored,
            deprecated=draw(st.booleans() | st.just("please do not")),
            columns=draw(
                st.sampled_from([[], [apis.Column("Age", ".metadata.creationTimestamp")]])
            ),
        )(cls)
        if version != stored:
            kind.edge(version, stored)(lambda _: None)
    return kind
