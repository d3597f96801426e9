"""A kind that reserves a field for what is carried leaves annotations alone."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.apis.conversions import check_compiled, crontab
from tests.apis.forms import GROUP, V1, V2, V3, rules_1_2, rules_2_3
from tests.apis.test_conversion_law import check_law

from polyver import apis
from polyver.apis.conversion import CarryTooLarge, Converter
from polyver.apis.trials import check
from polyver.testing.strategies import objects_from_schema

Object = dict[str, Any]


def declared(carry: str = "kept") -> apis.Kind:
    kind = apis.Kind("CronTab", group=GROUP, carry=carry)
    kind.version("v1")(V1)
    kind.version("v2", storage=True)(V2)
    kind.version("v3")(V3)
    kind.edge("v1", "v2")(rules_1_2)
    kind.edge("v2", "v3")(rules_2_3)
    return kind


def converter() -> Converter:
    made = declared().converter
    assert made is not None
    return made


KNOWN = converter()


def test_what_a_version_cannot_express_is_in_the_field() -> None:
    old = crontab("v1", cronSpec="@daily", note="mine")
    new = KNOWN.convert(old, "v3")
    assert msgspec.json.decode(new.pop("kept")) == {
        "format": 1,
        "lost": {"v1": {"spec.note": {"is": "mine"}}},
    }
    assert new == crontab("v3", schedule="@daily")
    assert KNOWN.convert(KNOWN.convert(old, "v3"), "v1") == old


@given(st.data())
def test_the_law_holds(data: st.DataObject) -> None:
    first, stop, target = (data.draw(st.sampled_from(KNOWN.versions)) for _ in range(3))
    version = declared("").definition().version(first)
    assert version is not None
    assert version.schema is not None
    about = {"api_version": f"{GROUP}/{first}", "kind": "CronTab"}
    check_law(KNOWN, data.draw(objects_from_schema(version.schema, **about)), stop, target)


@pytest.mark.parametrize("kept", ["", '{"format": 1, "lost": {"v1": {"kept": {"is": 5}}}}'])
def test_nothing_in_the_field_breaks_a_conversion(kept: str) -> None:
    obj = crontab("v2", schedule="@daily") | {"kept": kept}
    check_compiled(KNOWN, obj, "v1")
    assert KNOWN.convert(obj, "v1") == crontab("v1", cronSpec="@daily")


def test_there_is_more_room_than_in_annotations() -> None:
    old = crontab("v1", note="x" * 500_000)
    assert KNOWN.convert(KNOWN.convert(old, "v3"), "v1") == old
    with pytest.raises(CarryTooLarge, match=r"spec.note of v1 \(1200009 bytes\)"):
        KNOWN.convert(crontab("v1", note="x" * 1_200_000), "v3")


def test_all_versions_get_the_field() -> None:
    for version in declared().definition().versions:
        assert version.schema is not None
        assert version.schema["properties"]["kept"]["type"] == "string"


def test_check_draws_nothing_for_it_and_finds_nothing() -> None:
    checked = check(declared(), examples=60)
    assert {each.rule for each in checked.findings} <= {"invalid"}
    assert "kept" not in {fate.path for ledger in checked.ledgers for fate in ledger.fates}


@pytest.mark.parametrize("name", ["spec", "status", "metadata", "a.b", "a-b"])
def test_some_names_cannot_be_reserved(name: str) -> None:
    with pytest.raises(apis.InvalidKind, match="cannot be a field next to spec"):
        declared(name).definition()


def test_a_field_of_a_version_is_not_reserved() -> None:
    kind = apis.Kind("CronTab", group=GROUP, carry="size")

    @kind.version("v1")
    class Sized(apis.Fields):
        size: int = 1

    with pytest.raises(
        apis.InvalidKind, match=r"in size, which v1 \(.*Sized\) declares as its own"
    ):
        kind.definition()


def test_rules_leave_it_alone() -> None:
    kind = declared()
    kind.version("v4")(V3)
    kind.edge("v3", "v4")(lambda e: e.drop("kept"))
    with pytest.raises(apis.InvalidKind, match="a rule between v3 and v4 names it"):
        kind.definition()
