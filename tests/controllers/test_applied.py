"""What a controller notes of the objects that it has applied, and what it takes for its own."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from polyver.controllers.owned_objects.inventory import (
    APPLIED,
    AppliedObject,
    is_made_for,
    noted,
    part_of,
    text_of,
    unwanted,
)

TEXT = st.text(max_size=5)
PARTS = st.lists(st.builds(AppliedObject, TEXT, TEXT, TEXT, TEXT), max_size=5)


def owner(text: str | None) -> dict[str, Any]:
    annotations = {} if text is None else {"annotations": {APPLIED: text}}
    return {"metadata": {"name": "a", "uid": "1", **annotations}}


@given(PARTS)
def test_what_is_noted_is_read_again(parts: list[AppliedObject]) -> None:
    assert noted(owner(text_of(parts))) == sorted(set(parts))


@given(PARTS)
def test_the_order_in_which_objects_are_wanted_makes_no_difference(
    parts: list[AppliedObject],
) -> None:
    assert text_of(parts) == text_of(parts[::-1])


@given(PARTS, PARTS)
def test_nothing_that_is_wanted_is_unwanted(
    before: list[AppliedObject], wanted: list[AppliedObject]
) -> None:
    assert {*unwanted(before, wanted), *wanted} == {*before, *wanted}
    assert not {*unwanted(before, wanted)} & {*wanted}


def test_an_object_is_the_same_in_every_version() -> None:
    one, other = (
        {"apiVersion": f"ex.io/{version}", "kind": "Toy", "metadata": {"name": "a"}}
        for version in ("v1", "v2")
    )
    assert part_of(one) == part_of(other) == AppliedObject("ex.io", "Toy", "", "a")


MINE = {"manager": "toys", "operation": "Apply"}


@pytest.mark.parametrize(
    ("metadata", "mine"),
    [
        ({"ownerReferences": [{"uid": "1"}], "managedFields": [MINE]}, True),
        ({"ownerReferences": [{"uid": "2"}], "managedFields": [MINE]}, False),
        ({"ownerReferences": [{"uid": "1"}, {"uid": "2"}], "managedFields": [MINE]}, False),
        ({"ownerReferences": [{"uid": "1"}], "managedFields": [MINE | {"manager": "x"}]}, False),
        ({"ownerReferences": [{"uid": "1"}], "managedFields": [MINE | {"operation": "x"}]}, False),
        ({"ownerReferences": [{"uid": "1"}]}, False),
        ({"managedFields": [MINE]}, False),
    ],
)
def test_an_object_is_ones_own_by_its_only_owner_and_by_who_applied_it(
    metadata: dict[str, Any], mine: bool
) -> None:
    assert is_made_for({"metadata": metadata}, owner(None), ["toys"]) is mine
