"""The history of an application as data: which revision is meant, and what returning to it is."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.definitions.samples import application

from polyver.core import Lineage, PolyverError, Release, SemVer
from polyver.definitions.history import LAST_APPLIED, earlier, history_of, returned
from polyver.definitions.resolution import choose_all, resolution_data, revision_of

Object = dict[str, Any]
VERSIONS = ("1.0.0", "1.1.0", "2.0.0", "2.1.0")
WEB = {"vela-system": Lineage("web", [Release(SemVer.parse(v), f"sha256:{v}") for v in VERSIONS])}


def homes(kind: str, name: str) -> Any:
    return WEB if (kind, name) == ("ComponentDefinition", "web") else {}


def recorded(*states: str, publish: str = "") -> list[Object]:
    """Revisions of an application that asked for one thing after the other."""
    found: list[Object] = []
    for state in states:
        annotations = {"publishVersion": publish} if publish else {}
        app = application("shop", f"web@{state}", **annotations)
        chosen, errors = choose_all(app, homes)
        assert not errors
        resolutions = [resolution_data(each, now="2026-01-01T00:00:00Z") for each in chosen]
        made, _ = revision_of(app, resolutions, found[-1] if found else None)
        found.append(made)
    return found


@settings(max_examples=40)
@given(st.lists(st.sampled_from(["1", "1.0.0", "2", "2.0.0"]), min_size=1, max_size=6), st.data())
def test_returning_to_any_revision_gives_its_spec_and_its_versions(
    states: list[str], data: st.DataObject
) -> None:
    history = history_of(recorded(*states))
    target = data.draw(st.sampled_from(history))
    app = returned(application("shop", "web@2.1.0"), target)
    chosen, errors = choose_all(app, homes)
    assert not errors
    assert app["spec"] == target.spec
    got = [(str(each.resolution.release.version), each.resolution.reason) for each in chosen]
    assert got == [(each.version, "locked") for each in target.places]


def test_a_revision_that_recorded_the_same_is_told() -> None:
    history = history_of(recorded("1.0.0", "2.0.0", "1.0.0", "2.0.0"))
    assert [each.same_as for each in history] == [None, None, 1, 2]


@pytest.mark.parametrize(
    ("states", "to", "wanted"),
    [
        (("1.0.0", "2.0.0"), "", 1),
        (("1.0.0", "2.0.0", "1.0.0"), "", 2),
        (("1.0.0", "2.0.0", "2.1.0"), "1", 1),
        (("1.0.0", "2.0.0", "2.1.0"), "v1", 1),
        (("1.0.0", "2.0.0", "2.1.0"), "shop-v2", 2),
    ],
)
def test_a_revision_is_meant_by_number_or_name_or_is_the_last_that_was_other(
    states: tuple[str, ...], to: str, wanted: int
) -> None:
    assert earlier("shop", history_of(recorded(*states)), to).number == wanted


@pytest.mark.parametrize(
    ("states", "to", "fact"),
    [
        ((), "", "shop has no ApplicationRevision"),
        (("1.0.0",), "", "shop has no earlier revision than shop-v1"),
        (("1.0.0",), "2", "shop has no revision 2"),
        (("1.0.0",), "other-v1", "shop has no revision other-v1"),
    ],
)
def test_a_revision_that_is_not_there_is_told(states: tuple[str, ...], to: str, fact: str) -> None:
    with pytest.raises(PolyverError) as error:
        earlier("shop", history_of(recorded(*states)), to)
    assert error.value.fact == fact


def test_what_was_published_on_demand_is_so_again_and_else_is_not() -> None:
    [one] = history_of(recorded("1.0.0", publish="one"))
    [none] = history_of(recorded("1.0.0"))
    app = application("shop", "web@2", publishVersion="two")
    key = "app.oam.dev/publishVersion"
    assert returned(app, one)["metadata"]["annotations"][key] == "one"
    assert key not in returned(app, none)["metadata"]["annotations"]


def test_what_kubectl_compares_with_is_the_spec_that_is_there() -> None:
    [first] = history_of(recorded("1.0.0"))
    app = application("shop", "web@2")
    app["metadata"]["annotations"][LAST_APPLIED] = json.dumps({"kind": "Application", "spec": {}})
    said = json.loads(returned(app, first)["metadata"]["annotations"][LAST_APPLIED])
    assert said == {"kind": "Application", "spec": first.spec}
    for torn in ("torn", "5"):
        app["metadata"]["annotations"][LAST_APPLIED] = torn
        assert returned(app, first)["metadata"]["annotations"][LAST_APPLIED] == torn


def test_what_is_kept_until_it_is_published_anew_is_not_asked_of_its_lock() -> None:
    [first] = history_of(recorded("2.0.0"))
    app = returned(application("shop", "web@2"), first)
    chosen, _ = choose_all(app, homes)
    pinned = [resolution_data(each, now="2026-01-01T00:00:00Z") for each in chosen]
    app["metadata"]["annotations"]["app.oam.dev/publishVersion"] = "one"
    other = [{**each, "version": "2.1.0", "digest": "sha256:2.1.0"} for each in pinned]
    app["status"] = {"resolutions": other, "publishVersion": "one"}
    [kept], errors = choose_all(app, homes)
    assert not errors
    assert kept.resolution.release.name == "2.1.0"
