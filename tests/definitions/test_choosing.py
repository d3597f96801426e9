"""Choosing as a decision: what it makes of records that are incomplete, or not its own."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.definitions.samples import application, definition

from polyver.core import Lineage, Release, SemVer
from polyver.definitions.resolution import (
    choose_all,
    lineage_in,
    newest_revision,
    surplus_revisions,
)

Object = dict[str, Any]


def revision(number: object) -> Object:
    return {"metadata": {"name": f"shop-v{number}"}}


@settings(max_examples=30)
@given(st.permutations(range(1, 14)))
def test_revisions_are_ordered_by_number_not_by_text(order: list[int]) -> None:
    made = [*map(revision, order), revision("x"), revision(0)]
    assert newest_revision(made) == revision(13)
    assert surplus_revisions(made) == ["shop-v1", "shop-v2", "shop-v3"]


def test_of_few_revisions_none_is_too_many() -> None:
    assert surplus_revisions([revision(1)]) == []
    assert newest_revision([]) is None


@pytest.mark.parametrize(
    "versions",
    [
        [],
        [{"version": "junk", "revision": "a", "digest": "b", "stage": "published"}],
        [
            {"version": "1.0.0", "revision": "a", "digest": "b", "stage": "published"},
            {"version": "2", "revision": "c", "digest": "d", "stage": "published"},
        ],
    ],
    ids=["nothing", "no version", "mixed"],
)
def test_a_status_that_makes_no_sense_is_no_lineage(versions: list[Object]) -> None:
    assert lineage_in(definition("web") | {"status": {"versions": versions}}) is None


def test_every_place_that_fails_is_told() -> None:
    web = {"vela-system": Lineage("web", [Release(SemVer.parse("1.0.0"))])}
    app = application("shop", "web@1", "web@2", "none", "web@>1")
    chosen, errors = choose_all(app, lambda _, name: web if name == "web" else {})
    assert [each.revision for each in chosen] == ["web-v1.0.0"]
    assert [error.at for error in errors] == [
        "spec.components[1].type",
        "spec.components[2].type",
        "spec.components[3].type",
    ]
    assert "searched in default and vela-system" in str(errors[1])
