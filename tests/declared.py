"""Declared classes to draw: every sort of field, within what an API server takes."""

from __future__ import annotations

from datetime import date, datetime
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


SCALARS: list[Any] = [
    str,
    int,
    float,
    bool,
    datetime,
    date,
    Colour,
    Literal["a", "b"],
    Literal[1, 2],
    Annotated[int, apis.Ge(0), apis.Le(9)],
    Annotated[int, annotated_types.Interval(gt=0, lt=9)],
    Annotated[float, apis.MultipleOf(0.5)],
    Annotated[int, apis.Format("int32")],
    Annotated[str, apis.MinLength(1), apis.MaxLength(5)],
    Annotated[str, apis.Pattern("^[a-z]+$"), apis.MaxLength(9)],
    Annotated[str, msgspec.Meta(max_length=3, description="Not long.")],
    Annotated[str, apis.Format("byte")],
    Annotated[str, apis.MaxLength(9), apis.Rule("self.size() < 9", message="is long")],
]
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


def hints(classes: st.SearchStrategy[type]) -> st.SearchStrategy[Any]:
    plain = st.sampled_from(SCALARS + OTHERS) | classes
    deeper = st.recursive(
        plain,
        lambda inner: st.one_of(
            inner.map(lambda hint: GenericAlias(list, (hint,))),
            inner.map(lambda hint: GenericAlias(dict, (str, hint))),
        ),
        max_leaves=3,
    )
    return st.one_of(
        deeper,
        deeper.map(lambda hint: hint | None),
        deeper.map(nullable),
        deeper.map(lambda hint: GenericAlias(list, (nullable(hint),))),
    )


@st.composite
def classes(draw: st.DrawFn, depth: int = 1) -> type:
    """A class with a few fields, some of them classes inside of it."""
    inside = classes(depth - 1) if depth else st.just(Port)
    names = draw(st.lists(NAMES, unique=True, min_size=1, max_size=4))
    drawn = {name: draw(hints(inside)) for name in names}
    defaults = {name: None for name in names if draw(st.booleans())}
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
    """A kind with a few versions, of which one is stored."""
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
    return kind
