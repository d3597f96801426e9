"""Locks as text: the same result is the same bytes, and what is not the same is named."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.definitions.samples import application

from polyver.core import Lineage, PolyverError, Release, SemVer
from polyver.definitions.locking import (
    Lock,
    Locked,
    differences,
    lock_data,
    lock_of,
    lock_text,
    read_lock,
    with_lock,
)
from polyver.definitions.resolution import choose_all
from polyver.kube.objects import dump_yaml, load_manifests

VERSIONS = ("1.0.0", "1.0.1", "1.1.0", "2.0.0", "2.0.1-rc.1")
WORDS = st.sampled_from(["a", "b", "c", "true", "1.2", "ü", "- x"])
PLACES = st.builds(
    Locked,
    kind=st.sampled_from(["Component", "Trait", "Policy", "WorkflowStep"]),
    component=WORDS,
    definition=st.sampled_from(["vela-system/web", "vela-system/db", "default/web"]),
    requested=st.sampled_from(["", "1", "1.2", "v3"]),
    version=st.sampled_from([*VERSIONS, "3"]),
    revision=WORDS,
    digest=WORDS,
)
LOCKS = st.dictionaries(
    st.tuples(WORDS, WORDS), st.lists(PLACES, max_size=4).map(tuple), max_size=4
).map(Lock)


def lineage(*versions: str) -> Lineage:
    return Lineage("web", [Release(SemVer.parse(v), f"sha256:{v}") for v in versions])


def homes(*versions: str) -> Any:
    found = {"vela-system": lineage(*versions)}
    return lambda kind, name: found if (kind, name) == ("ComponentDefinition", "web") else {}


def written(lock: Lock) -> str:
    return dump_yaml(lock_data(lock))


@given(LOCKS)
def test_a_lock_is_read_as_it_was_written(lock: Lock) -> None:
    [document] = load_manifests(written(lock), "lock.yaml")
    found = read_lock(document)
    assert found == lock
    assert written(found) == written(lock)
    assert differences(lock, found) == []


@given(LOCKS, st.data())
def test_any_single_change_is_named(lock: Lock, data: st.DataObject) -> None:
    named = [(name, at) for name, places in lock.applications.items() for at in range(len(places))]
    if not named:
        return
    name, at = data.draw(st.sampled_from(named))
    places = [*lock.applications[name]]
    field = data.draw(st.sampled_from(Locked.__struct_fields__))
    value = "Policy" if places[at].kind == "Trait" else "Trait"
    value = value if field == "kind" else f"{getattr(places[at], field)}-other"
    places[at] = msgspec.structs.replace(places[at], **{field: value})
    other = replace(lock, applications={**lock.applications, name: tuple(places)})
    found = differences(lock, other)
    assert {each.application for each in found} == {"/".join(name)}
    # Places are found by kind, component and name; another one is one more, and one less.
    is_same = places[at].key == lock.applications[name][at].key
    assert (field if is_same else "place") in {each.what for each in found}


@given(LOCKS, st.data())
def test_an_application_more_or_less_is_named(lock: Lock, data: st.DataObject) -> None:
    if not lock.applications:
        return
    name = data.draw(st.sampled_from([*lock.applications]))
    less = replace(lock, applications={k: v for k, v in lock.applications.items() if k != name})
    [missing] = differences(lock, less)
    [unknown] = differences(less, lock)
    assert str(missing) == f"{'/'.join(name)}: in the lock, but not found"
    assert str(unknown) == f"{'/'.join(name)}: not in the lock"


def test_the_same_version_with_another_digest_is_named() -> None:
    apps = [application("shop", "web@1.0.0")]
    one = lock_of(apps, homes("1.0.0")).lock
    other = {"vela-system": Lineage("web", [Release(SemVer.parse("1.0.0"), "sha256:x")])}
    [found] = differences(one, lock_of(apps, lambda kind, name: other).lock)
    assert (found.what, found.locked, found.found) == ("digest", "sha256:1.0.0", "sha256:x")
    place = "default/shop, Component c0, vela-system/web"
    fact = "the digest of 1.0.0 is sha256:x, locked as sha256:1.0.0"
    assert str(found) == f"{place}: {fact}"


def test_what_does_not_resolve_is_named_with_the_reason() -> None:
    apps = [application("shop", "web@1.0.0")]
    one = lock_of(apps, homes("1.0.0")).lock
    found = lock_of(apps, lambda kind, name: {})
    [told] = differences(one, found.lock, found.failures)
    assert told.what == "unresolved"
    assert "there is no ComponentDefinition web (spec.components[0].type)" in told.fact


@settings(max_examples=40)
@given(st.permutations(VERSIONS), st.permutations(["a", "b", "c"]))
def test_exact_versions_and_series_give_the_same_bytes_in_any_order(
    order: list[str], names: list[str]
) -> None:
    types = {"a": "web@1", "b": "web@1.0.0", "c": "web@2"}
    apps = [application(name, types[name]) for name in names]
    first = [application(name, each) for name, each in types.items()]
    same = lock_of(first, homes(*VERSIONS)).lock
    assert written(lock_of(apps, homes(*order)).lock) == written(same)


def carried(app: dict[str, Any], *versions: str) -> dict[str, Any]:
    """An application that carries the lock of what it gets."""
    [places] = lock_of([app], homes(*versions)).lock.applications.values()
    return with_lock(app, places)


def test_an_application_with_a_lock_gets_what_is_locked_or_nothing() -> None:
    app = carried(application("shop", "web@1", "web"), "1.0.0")
    for versions in (("1.0.0",), ("1.0.0", "1.1.0", "2.0.0")):
        chosen, errors = choose_all(app, homes(*versions))
        assert not errors
        found = [(each.resolution.release.name, each.resolution.reason) for each in chosen]
        assert found == [("1.0.0", "locked")] * 2
    _, errors = choose_all(app, homes("1.1.0"))
    assert [error.fact for error in errors] == ["web is locked to 1.0.0, which does not exist"] * 2


def test_places_may_change_their_order_under_a_lock_and_leave_it_behind() -> None:
    app = carried(application("shop", "web@1", "web@2"), "1.0.0", "2.0.0")
    app["spec"]["components"].reverse()
    chosen, errors = choose_all(app, homes("1.0.0", "2.0.0"))
    assert not errors
    assert [each.resolution.release.name for each in chosen] == ["2.0.0", "1.0.0"]
    del app["spec"]["components"][0]
    assert not choose_all(app, homes("1.0.0", "2.0.0"))[1]


@pytest.mark.parametrize(
    ("types", "fact"),
    [
        (["web@2"], "web is locked to 1.0.0, which is not in series 2"),
        (["web@1", "web@1"], "the lock has no entry for web here"),
    ],
    ids=["another selector", "another place"],
)
def test_a_lock_that_is_not_what_is_asked_for_is_told(types: list[str], fact: str) -> None:
    app = carried(application("shop", "web@1"), "1.0.0")
    app["spec"] = application("shop", *types)["spec"]
    _, [error] = choose_all(app, homes("1.0.0", "2.0.0"))
    assert error.fact == fact
    assert error.at == f"spec.components[{len(types) - 1}].type"


def test_a_definition_of_another_namespace_is_not_the_one_that_is_locked() -> None:
    app = carried(application("shop", "web@1"), "1.0.0")
    both = {"vela-system": lineage("1.0.0"), "default": lineage("1.0.0")}
    _, [error] = choose_all(app, lambda kind, name: both)
    assert error.fact == "the lock has vela-system/web, but default/web is requested"


PLACE: dict[str, Any] = {
    "kind": "Component",
    "component": "c0",
    "definition": "vela-system/web",
    "version": "1.0.0",
    "revision": "web-v1.0.0",
    "digest": "sha256:1.0.0",
}


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "a lock is one list, but this has 0 documents"),
        ("web", "expected a list, got a string"),
        ("[a: 1", "not YAML"),
        (dump_yaml([PLACE | {"version": "1.0"}]), '"1.0" is not a version that can be locked'),
        (dump_yaml([PLACE | {"version": 1}]), "[0].version); put it in quotes"),
        (dump_yaml([PLACE | {"definition": "web"}]), '"web" is not a definition'),
        (dump_yaml([PLACE | {"digest": ""}]), "the digest is empty"),
        (dump_yaml([PLACE | {"kind": "Pod"}]), "invalid enum value"),
        (dump_yaml([PLACE, PLACE | {"color": "red"}]), "[1]"),
        (dump_yaml([{"kind": "Component"}]), "is missing"),
    ],
    ids=["empty", "text", "torn", "series", "number", "name", "digest", "kind", "more", "less"],
)
def test_a_lock_that_cannot_be_read_is_told_with_its_place(text: str, complaint: str) -> None:
    app = application("shop", "web@1")
    app["metadata"]["annotations"]["app.polyver.dev/lock"] = text
    chosen, [error] = choose_all(app, homes("1.0.0"))
    assert not chosen
    assert complaint in str(error)
    assert "app.polyver.dev/lock" in error.at


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"kind": "Pod"}, "Pod of polyver.dev/v1alpha1 is not a lock (lock.yaml:2, kind)"),
        ({"applications": [{"name": "a"}]}, '"namespace" is missing'),
        (
            {"applications": [{"namespace": "a", "name": "b", "resolutions": []}] * 2},
            "a/b is listed twice",
        ),
        (
            {
                "applications": [
                    {"namespace": "a", "name": "b", "resolutions": [PLACE | {"version": "x"}]}
                ]
            },
            "applications[0].resolutions[0].version",
        ),
    ],
    ids=["kind", "field", "twice", "version"],
)
def test_a_file_that_is_no_lock_is_told_with_its_line(
    change: dict[str, Any], complaint: str
) -> None:
    said = {"apiVersion": "polyver.dev/v1alpha1", "kind": "Lock", "applications": []} | change
    [document] = load_manifests(dump_yaml(said), "lock.yaml")
    with pytest.raises(PolyverError) as error:
        read_lock(document)
    assert complaint in str(error.value)


def test_what_is_carried_is_the_part_of_the_file() -> None:
    found = lock_of([application("shop", "web@1")], homes("1.0.0")).lock
    [places] = found.applications.values()
    [part] = lock_data(found)["applications"]
    assert lock_text(places) == dump_yaml(part["resolutions"])
