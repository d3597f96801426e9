"""managedFields of one API version, as another version of the same object sees them."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.apis.conversions import EVERY_RULE, SCHEMAS, converter

from polyver.apis.conversion import ANNOTATION
from polyver.kube.objects.apply import (
    Scope,
    VersionChange,
    apply,
    entries_in_version,
    fields_of,
    track_update,
)
from polyver.kube.objects.schema import compile_schema
from polyver.kube.objects.type_shapes import Shape

Object = dict[str, Any]
GROUP = "stable.example.com"
NOW = "2026-01-31T12:00:00Z"


def with_keys(schema: Object) -> Object:
    """A schema whose containers are a list with a key, so that each item has its own owners."""
    found = copy.deepcopy(schema)
    containers = found["properties"]["spec"]["properties"]["containers"]
    containers |= {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]}
    return found


KEYED = {name: with_keys(each) for name, each in SCHEMAS.items()}
CONVERTER = converter(EVERY_RULE, KEYED)
SHAPES = {f"{GROUP}/{name}": compile_schema(each).shape for name, each in KEYED.items()}


def convert(obj: Object, api_version: str) -> Object:
    return CONVERTER.convert(obj, api_version.rpartition("/")[2])


def change(source: str = "v1", target: str = "v2") -> VersionChange:
    return VersionChange(f"{GROUP}/{source}", f"{GROUP}/{target}", SHAPES, convert, (ANNOTATION,))


def scope(version: str) -> Scope:
    return Scope(f"{GROUP}/{version}", "CronTab", SHAPES, convert=convert)


def crontab(version: str, **spec: Any) -> Object:
    about = {"apiVersion": f"{GROUP}/{version}", "kind": "CronTab", "metadata": {"name": "a"}}
    return about | {"spec": spec}


def applied(live: Object | None, config: Object, manager: str, *, force: bool = False) -> Object:
    version = config["apiVersion"].rpartition("/")[2]
    there = None if live is None else convert(live, config["apiVersion"])
    made, entries = apply(
        there, config, scope=scope(version), manager=manager, now=NOW, force=force
    )
    return {**made, "metadata": {**made["metadata"], "managedFields": entries}}


def moved(live: Object, target: str = "v2") -> Object:
    """The object as stored in another version, with no entry of v1."""
    stored = convert(live, f"{GROUP}/{target}")
    entries = entries_in_version(stored, change("v1", target))
    return {**stored, "metadata": {**stored["metadata"], "managedFields": entries}}


def owned(obj: Object, manager: str) -> Object:
    [found] = [e for e in obj["metadata"]["managedFields"] if e["manager"] == manager]
    assert found["apiVersion"] != f"{GROUP}/v1"
    fields: Object = found["fieldsV1"]
    return fields


CONFIG = {
    "cronSpec": "@daily",
    "hostPort": "h:80",
    "image": "x",
    "policy": "Allow",
    "containers": [{"name": "one", "cmd": "run"}],
}


def test_an_applier_owns_what_it_would_own_if_it_had_applied_in_the_other_version() -> None:
    live = applied(None, crontab("v1", **CONFIG), "team")
    for target in ("v2", "v3"):
        config = convert(crontab("v1", **CONFIG), f"{GROUP}/{target}")
        expected = applied(None, config, "team")
        assert owned(moved(live, target), "team") == owned(expected, "team")


def test_fields_of_two_managers_stay_apart() -> None:
    live = applied(None, crontab("v1", cronSpec="@daily"), "one")
    live = applied(live, crontab("v1", image="x", policy="Allow"), "two")
    found = moved(live)
    assert owned(found, "one") == {"f:spec": {"f:schedule": {}}}
    assert owned(found, "two") == {"f:spec": {"f:images": {}, "f:policy": {}}}


def test_managers_of_one_list_item_keep_their_own_fields_of_it() -> None:
    live = applied(None, crontab("v1", containers=[{"name": "one", "cmd": "run"}]), "one")
    live = applied(live, crontab("v1", containers=[{"name": "one", "debug": "yes"}]), "two")
    found = moved(live)
    item = 'k:{"name":"one"}'
    assert owned(found, "one")["f:spec"]["f:containers"][item] == {
        ".": {},
        "f:command": {},
        "f:name": {},
    }
    assert owned(found, "two")["f:spec"]["f:containers"][item] == {".": {}, "f:name": {}}


def test_who_applied_in_the_old_version_applies_in_the_other_without_conflict() -> None:
    found = moved(applied(None, crontab("v1", **CONFIG), "team"))
    less = crontab("v2", schedule="@hourly", policy="allow")
    after = applied(found, less, "team")
    assert after["spec"] == {"schedule": "@hourly", "policy": "allow"}


def test_entries_of_one_updater_in_both_versions_become_one() -> None:
    live = applied(None, crontab("v1", **CONFIG), "team")
    for version, name, value in (("v1", "cronSpec", "@hourly"), ("v2", "images", ["y"])):
        old = convert(live, f"{GROUP}/{version}")
        new = copy.deepcopy(old)
        new["spec"][name] = value
        entries = track_update(old, new, scope=scope(version), manager="editor", now=NOW)
        live = {**new, "metadata": {**new["metadata"], "managedFields": entries}}
    found = moved(live)
    assert owned(found, "editor") == {"f:spec": {"f:images": {}, "f:schedule": {}}}


def test_labels_stay_owned_and_the_preserved_fields_have_no_owner() -> None:
    config = crontab("v1", legacyMode={"a": "b"}, only1={"a": "b"})
    config["metadata"]["labels"] = {"team": "a"}
    found = moved(applied(None, config, "team"))
    assert ANNOTATION in found["metadata"]["annotations"]
    assert owned(found, "team")["f:metadata"] == {"f:labels": {"f:team": {}}}


LOOSE = Shape("object", preserves=True)
NAMES = st.sampled_from(["a", "b", "c"])
VALUES = st.recursive(
    st.integers(0, 3), lambda inner: st.dictionaries(NAMES, inner, min_size=1), max_leaves=6
)


@given(st.dictionaries(NAMES, VALUES, min_size=1), st.data())
def test_between_versions_with_the_same_fields_an_applier_keeps_its_fields(
    spec: Object, data: st.DataObject
) -> None:
    mine = {name: each for name, each in spec.items() if data.draw(st.booleans(), label=name)}
    about = {"apiVersion": "e/v2", "kind": "K", "metadata": {"name": "a"}}
    fields = fields_of({"spec": mine}, LOOSE)
    entry = {"manager": "m", "operation": "Apply", "apiVersion": "e/v1", "fieldsV1": fields}
    obj = {**about, "metadata": {"name": "a", "managedFields": [entry]}, "spec": spec}
    same = VersionChange(
        "e/v1", "e/v2", {"e/v1": LOOSE, "e/v2": LOOSE}, lambda o, v: {**o, "apiVersion": v}
    )
    found = entries_in_version(obj, same)
    if mine:
        [only] = found
        kept = only["fieldsV1"]["f:spec"]
        assert {k: v for k, v in kept.items() if k != "."} == {
            k: v for k, v in fields["f:spec"].items() if k != "."
        }


@pytest.mark.parametrize("left", [{}, {"f:spec": {}}])
def test_an_owner_without_fields_in_the_other_version_is_left_out(left: Object) -> None:
    entry = {"manager": "m", "operation": "Update", "apiVersion": f"{GROUP}/v1", "fieldsV1": left}
    obj = crontab("v2")
    obj["metadata"]["managedFields"] = [entry]
    assert len(entries_in_version(obj, change())) <= 1
