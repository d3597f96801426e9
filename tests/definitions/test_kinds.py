"""Definitions are converted between v1beta1 and v2beta1 by the same law as any other kind."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.apis.test_conversion_law import check_law

from polyver import apis
from polyver.definitions.kinds import COMPONENTS, DEFINITIONS, GROUP, KINDS
from polyver.testing.strategies import objects_from_schema

Object = dict[str, Any]
WORKLOAD = {"definition": {"apiVersion": "v1", "kind": "ConfigMap"}}
kinds = pytest.mark.parametrize("kind", DEFINITIONS, ids=lambda kind: kind.kind)


def component(api_version: str, spec: Object, name: str = "my-component") -> Object:
    about = {"apiVersion": f"{GROUP}/{api_version}", "kind": "ComponentDefinition"}
    return {**about, "metadata": {"name": name, "namespace": "vela-system"}, "spec": spec}


def entry(version: str | None, **more: Any) -> Object:
    return ({"version": version} if version else {}) | {"workload": WORKLOAD, **more}


def converted(obj: Object, version: str) -> Object:
    assert COMPONENTS.converter is not None
    return COMPONENTS.converter.convert(obj, version)


@kinds
@settings(max_examples=15)
@given(st.data())
def test_the_law_holds(kind: apis.Kind, data: st.DataObject) -> None:
    assert kind.converter is not None
    first, stop, target = (data.draw(st.sampled_from(kind.converter.versions)) for _ in range(3))
    version = kind.definition().version(first)
    assert version is not None
    assert version.schema is not None
    shape = {**version.schema, "properties": {**version.schema["properties"]}}
    del shape["properties"]["carry"]
    about = {"api_version": f"{GROUP}/{first}", "kind": kind.kind}
    check_law(kind.converter, data.draw(objects_from_schema(shape, **about)), stop, target)


@settings(max_examples=50)
@given(
    st.lists(
        st.builds(
            entry,
            st.from_regex(r"\A(v?[0-3](\.[0-3]){0,2}(-rc\.[0-3])?|junk)\Z") | st.none(),
            extension=st.dictionaries(st.text("ab", min_size=1), st.integers(0, 3)),
        ),
        max_size=6,
    )
)
def test_any_list_of_versions_comes_back(entries: list[Object]) -> None:
    whole = component("v2beta1", {"versions": entries})
    assert converted(converted(whole, "v1beta1"), "v2beta1") == whole


def test_the_manifest_of_the_seed_is_stored_with_its_highest_version() -> None:
    whole = component("v2beta1", {"versions": [entry("2"), entry("3.4")]})
    assert converted(whole, "v1beta1")["spec"] == entry("3.4")


@pytest.mark.parametrize(
    ("versions", "stored"),
    [
        (["1.10.0", "1.9.0"], "1.10.0"),
        (["1.0.0", "2.0.0-rc.1"], "1.0.0"),
        (["2.0.0-rc.2", "2.0.0-rc.10"], "2.0.0-rc.10"),
        (["junk", "0.1"], "0.1"),
    ],
)
def test_a_prerelease_is_stored_only_if_there_is_nothing_else(
    versions: list[str], stored: str
) -> None:
    whole = component("v2beta1", {"versions": [entry(version) for version in versions]})
    assert converted(whole, "v1beta1")["spec"]["version"] == stored


def test_v2beta1_with_300_versions_is_read_back_as_both_with_nothing_lost() -> None:
    text = "x" * 1000
    entries = [entry(f"1.{n}.0", schematic={"cue": {"template": text}}) for n in range(300)]
    whole = component("v2beta1", {"versions": entries})
    stored = converted(whole, "v1beta1")
    assert stored["spec"] == entries[-1]
    assert "annotations" not in stored["metadata"]
    assert converted(stored, "v2beta1") == whole


def test_a_legacy_object_shows_as_one_entry_without_a_version() -> None:
    old = component("v1beta1", {"workload": WORKLOAD})
    assert converted(old, "v2beta1")["spec"] == {"versions": [{"workload": WORKLOAD}]}
    assert "carry" not in converted(old, "v2beta1")


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.kind)
def test_every_kind_can_be_defined(kind: apis.Kind) -> None:
    crd = apis.crd_of(kind.definition())
    assert crd["spec"]["group"] == GROUP
    assert [each["name"] for each in crd["spec"]["versions"] if each["storage"]] == ["v1beta1"]
