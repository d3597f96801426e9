"""The test kit for conversions, as authors of kinds use it."""

from __future__ import annotations

from typing import Any

import pytest

from polyver import apis
from polyver.core import PolyverError
from polyver.testing import (
    ConversionCase,
    EmbeddedServer,
    check_conversions,
    check_law,
    conversion_cases,
    walk_versions,
)
from polyver.testing.plugin import Kube

Object = dict[str, Any]


def toys(*, wrong: str = "") -> apis.Kind:
    kind = apis.Kind("Toy", group="toys.example.com")

    @kind.version("v1alpha1")
    class Old:
        class Spec:
            size: int | None
            colour: str | None

        spec: Spec

    @kind.version("v1beta1")
    class Middle:
        class Spec:
            length: int | None
            colour: str | None

        spec: Spec

    @kind.version("v1", storage=True)
    class New:
        class Spec:
            length: int | None
            colour: str | None
            weight: int | None

        spec: Spec

    @kind.edge("v1beta1", "v1")
    def _(rules: Any) -> None:
        pass

    @kind.converts("v1alpha1", "v1beta1")
    def up(obj: dict) -> dict:  # type: ignore[type-arg]
        spec = obj["spec"]
        if spec.get("colour") == "none" and not wrong:
            raise ValueError("no colour at all")
        named = {"length" if name == "size" else name: value for name, value in spec.items()}
        if wrong and spec.get("colour") == wrong:
            named["length"] = 99
        return {**obj, "spec": named}

    @kind.converts("v1beta1", "v1alpha1")
    def down(obj: dict) -> dict:  # type: ignore[type-arg]
        named = {"size" if n == "length" else n: v for n, v in obj["spec"].items()}
        return {**obj, "spec": named}

    return kind


def toy(version: str, **spec: Any) -> Object:
    return {
        "apiVersion": f"toys.example.com/{version}",
        "kind": "Toy",
        "metadata": {"name": "a"},
        "spec": spec,
    }


KIND = toys()
CASES = [
    ConversionCase("a size is a length", "v1", toy("v1alpha1", size=3), toy("v1", length=3)),
    ConversionCase("nothing stays nothing", "v1alpha1", toy("v1"), toy("v1alpha1")),
    ConversionCase("a weight is carried", "v1alpha1", toy("v1", weight=3), toy("v1alpha1")),
    ConversionCase("whatever comes out", "v1", toy("v1alpha1", colour="red")),
    ConversionCase("no colour", "v1", toy("v1alpha1", colour="none"), error="no colour at all"),
]


# Rows of a table.


@conversion_cases(CASES)
def test_every_row_is_a_test_of_its_own(case: ConversionCase) -> None:
    case.check(KIND)


def test_rows_are_named_after_what_they_say() -> None:
    assert conversion_cases(CASES).kwargs["ids"][0] == "a size is a length"


def test_a_table_tells_of_every_row_that_fails() -> None:
    check_conversions(KIND, CASES)
    assert KIND.converter is not None
    check_conversions(KIND.converter, CASES)
    wrong = [
        ConversionCase("wrong", "v1", toy("v1alpha1", size=3), toy("v1", length=4)),
        *CASES,
        ConversionCase("no error", "v1", toy("v1alpha1"), error="too small"),
        ConversionCase("another error", "v1", toy("v1alpha1", colour="none"), error="too small"),
        ConversionCase("no version", "v7", toy("v1")),
    ]
    with pytest.raises(AssertionError) as failed:
        check_conversions(KIND, wrong)
    text = str(failed.value)
    assert "wrong: it is converted to something else" in text
    assert "-  length: 4\n+  length: 3" in text
    assert "no error: it is converted, and should fail with 'too small'" in text
    assert "another error: it fails with ValueError: no colour at all, and not with" in text
    assert "no version: it fails with NotConvertible" in text
    assert all(f"{case.name}: it" not in text for case in CASES)


def test_a_carry_is_compared_if_the_row_has_one() -> None:
    assert KIND.converter is not None
    made = KIND.converter.convert(toy("v1", weight=3), "v1alpha1")
    check_conversions(KIND, [ConversionCase("a", "v1alpha1", toy("v1", weight=3), made)])
    with pytest.raises(AssertionError):
        check_conversions(KIND, [ConversionCase("a", "v1alpha1", toy("v1", weight=4), made)])


# The law.


def test_the_law_is_one_line() -> None:
    kind = toys()
    with pytest.raises(AssertionError, match="ValueError: no colour at all"):
        check_law(kind, examples=200)  # it fails for one colour, as the table says


def test_the_law_fails_with_the_smallest_object() -> None:
    with pytest.raises(AssertionError) as failed:
        check_law(toys(wrong="red"), examples=400)
    text = str(failed.value)
    assert "breaking edit-lost" in text
    assert "colour: red" in text
    assert text.endswith("seed=0")


# The walk.


def stops(where: Any, seed: Object, **bounds: str) -> list[str]:
    seen: list[str] = []

    def test(obj: Object) -> None:
        seen.append(obj["apiVersion"].removeprefix("toys.example.com/"))

    walk_versions(where, seed, test, **bounds)
    return seen


UP_AND_DOWN = ["v1", "v1alpha1", "v1beta1", "v1", "v1beta1", "v1alpha1"]


def test_a_walk_goes_up_through_the_versions_and_down_again() -> None:
    assert stops(KIND, toy("v1")) == UP_AND_DOWN
    assert stops(KIND.converter, toy("v1")) == UP_AND_DOWN


def test_both_bounds_of_a_walk_are_among_its_stops() -> None:
    assert stops(KIND, toy("v1"), min_version="v1beta1") == ["v1", "v1beta1", "v1", "v1beta1"]
    assert stops(KIND, toy("v1"), max_version="v1alpha1") == ["v1", "v1alpha1"]
    bounds = {"min_version": "v1alpha1", "max_version": "v1beta1"}
    assert stops(KIND, toy("v1"), **bounds) == ["v1", "v1alpha1", "v1beta1", "v1alpha1"]
    with pytest.raises(PolyverError, match="no version is between v2 and v1"):
        stops(KIND, toy("v1"), min_version="v2")


def test_a_walk_ends_with_what_it_began_with() -> None:
    seed = toy("v1", length=3, colour="red", weight=7)
    last = walk_versions(KIND, seed, lambda obj: None)
    assert KIND.converter is not None
    assert KIND.converter.convert(last, "v1") == seed


def test_a_test_that_fails_tells_at_which_stop() -> None:
    def never_beta(obj: Object) -> None:
        assert "beta" not in obj["apiVersion"]

    with pytest.raises(AssertionError) as failed:
        walk_versions(KIND, toy("v1"), never_beta)
    assert failed.value.__notes__ == ["with the object in v1beta1, on the way up"]


def test_a_test_cannot_change_what_goes_on() -> None:
    last = walk_versions(KIND, toy("v1", length=3), lambda obj: obj.clear())
    assert last["spec"] == {"size": 3}


def test_a_walk_on_a_server_writes_the_object_in_each_version() -> None:
    seed = toy("v1", length=3, weight=7)
    with EmbeddedServer(kinds=[toys()]) as server:
        where = Kube(server, "default")
        assert stops(where, seed) == UP_AND_DOWN
        seed["metadata"] = {"name": "b"}
        assert stops(server, seed, min_version="v1") == ["v1", "v1"]
        path = "/apis/toys.example.com/v1/namespaces/default/toys"
        assert server.request("GET", f"{path}/a")["spec"] == {"length": 3, "weight": 7}
        with pytest.raises(PolyverError, match=r"Toy of toys.example.com/v7 is not served"):
            stops(where, toy("v7"))
