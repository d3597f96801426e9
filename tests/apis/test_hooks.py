"""Hooks and controllers: what a kind's author registers, and how it is called."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from polyver import apis

HEAD = {"apiVersion": "ex.io/v1", "kind": "Toy"}


class Toys:
    """A kind of its own for each test."""

    def __init__(self) -> None:
        self.kind = apis.Kind("Toy", group="ex.io")

        @self.kind.version("v1")
        class Toy(apis.Fields):
            class Part(apis.Fields):
                name: str | None = None
                size: int | None = None

            colour: str | None = None
            parts: list[Part] | None = None

        self.cls = Toy


@pytest.fixture
def toys() -> Toys:
    return Toys()


def test_a_default_hook_changes_a_typed_object_and_leaves_the_rest(toys: Toys) -> None:
    cls: Any = toys.cls

    @toys.kind.default("v1")
    def paint(toy: cls) -> None:
        toy.colour = toy.colour or "red"
        for part in toy.parts or ():
            part.size = part.size or 1

    obj = {**HEAD, "unknown": 1, "parts": [{"name": "a", "other": True}, {"size": 5}]}
    assert toys.kind.defaulted("v1", obj) == {
        **HEAD,
        "unknown": 1,
        "colour": "red",
        "parts": [{"name": "a", "other": True, "size": 1}, {"size": 5}],
    }
    assert "colour" not in obj
    assert toys.kind.has_hooks("v1") == (True, False)


def test_a_default_hook_may_return_another_object_and_take_away(toys: Toys) -> None:
    cls: Any = toys.cls

    @toys.kind.default("v1")
    def renew(toy: cls) -> cls:
        return cls(colour=None, parts=[cls.Part(name="new")])

    found = toys.kind.defaulted("v1", {**HEAD, "colour": "red", "more": 1})
    assert found == {**HEAD, "more": 1, "parts": [{"name": "new"}]}


def test_hooks_take_plain_data_if_they_say_so_and_run_in_their_order(toys: Toys) -> None:
    @toys.kind.default("v1")
    def first(toy: dict[str, Any]) -> None:
        toy["colour"] = "red"

    @toys.kind.default("v1")
    def second(toy: dict[str, Any]) -> dict[str, Any]:
        return toy | {"colour": f"dark {toy['colour']}"}

    given = dict(HEAD)
    assert toys.kind.defaulted("v1", given)["colour"] == "dark red"
    assert toys.kind.defaulted("v2", given) == given == HEAD


def test_a_validate_hook_finds_problems(toys: Toys) -> None:
    cls: Any = toys.cls

    @toys.kind.validate("v1")
    def colours(toy: cls) -> Iterator[apis.Problem]:
        if toy.colour == "green":
            yield apis.Problem("colour", "is green")

    @toys.kind.validate("v1")
    def stays(toy: cls, old: cls | None) -> None:
        if old and toy.colour != old.colour:
            raise ValueError("toys are never painted")

    green, red = {**HEAD, "colour": "green"}, {**HEAD, "colour": "red"}
    assert toys.kind.problems("v1", red) == []
    assert [str(each) for each in toys.kind.problems("v1", green)] == ["colour: is green"]
    assert [str(each) for each in toys.kind.problems("v1", green, red)] == [
        "colour: is green",
        "toys are never painted",
    ]


def test_an_object_that_a_hook_cannot_take_is_a_problem(toys: Toys) -> None:
    cls: Any = toys.cls

    @toys.kind.validate("v1")
    def colours(toy: cls) -> None: ...

    [problem] = toys.kind.problems("v1", {**HEAD, "colour": 5})
    assert problem == apis.Problem("colour", "Toy: expected a string, got an integer")


def test_a_bug_in_a_hook_is_left_to_who_called_it(toys: Toys) -> None:
    @toys.kind.validate("v1")
    def broken(toy: dict[str, Any]) -> None:
        raise KeyError("spec")

    with pytest.raises(KeyError):
        toys.kind.problems("v1", HEAD)


def test_a_hook_for_a_version_that_is_not_there_is_refused(toys: Toys) -> None:
    @toys.kind.default("v2")
    def paint(toy: dict[str, Any]) -> None: ...

    with pytest.raises(apis.InvalidKind, match=r"paint is for Toy v2, which is not declared; know"):
        toys.kind.definition()


def test_a_hook_for_the_class_of_another_version_is_refused(toys: Toys) -> None:
    other: Any = Toys().cls

    @toys.kind.validate("v1")
    def look(toy: other) -> None: ...

    with pytest.raises(apis.InvalidKind, match="look is for Toy v1, and takes Toy; use the class"):
        toys.kind.definition()


def test_a_hook_takes_what_hooks_take(toys: Toys) -> None:
    with pytest.raises(apis.InvalidKind, match="must take the object"):
        toys.kind.default("v1")(lambda: None)


def test_a_kind_has_one_controller(toys: Toys) -> None:
    @toys.kind.reconcile
    def first(toy: object) -> None: ...

    assert toys.kind.controller is first
    with pytest.raises(apis.InvalidKind, match=r"Toy already has a controller, .*first"):
        toys.kind.reconcile(lambda toy: None)
