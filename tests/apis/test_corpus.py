"""The kinds of the corpus are converted as by the Go code of their projects, and lose nothing."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from functools import cache

import pytest
from tests.peers.conversions.corpus import CorpusKind, Object, corpus, version_of
from tests.peers.conversions.corpus import walks as plan
from tests.peers.conversions.recorded import (
    RecordedWalk,
    back_differences,
    changed,
    difference_of,
    recorded_walks,
    view_differences,
)

from polyver.apis.compatibility import FindingSeverity
from polyver.apis.conversion import ANNOTATION, Converter
from polyver.kube.objects.schema import check_schema, compile_schema

KINDS = {kind.name: kind for kind in corpus()}
WALKED = {name: kind for name, kind in KINDS.items() if kind.program}


@cache
def converter(name: str) -> Converter:
    return KINDS[name].converter()


def walks(kind: CorpusKind) -> Iterator[RecordedWalk]:
    return (walk for walk in recorded_walks() if walk.kind is kind)


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_the_schemas_are_valid_and_allow_the_objects(kind: CorpusKind) -> None:
    versions = {each.name: each for each in kind.definition.versions}
    assert {*versions} == {*kind.versions}
    for version in versions.values():
        assert version.schema is not None
        assert check_schema(version.schema, "", status=version.status) == []
    for obj in kind.objects:
        schema = compile_schema(versions[version_of(obj)].schema or {})
        assert schema.prune(copy.deepcopy(obj)) == []
        assert schema.validate(obj) == []


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_a_conversion_to_any_version_and_back_returns_the_object(kind: CorpusKind) -> None:
    found = converter(kind.name)
    for obj in kind.objects:
        for stop in kind.versions:
            view = found.convert(obj, stop)
            assert found.convert(view, version_of(obj)) == obj
            for to in kind.versions:
                assert found.convert(view, to) == found.convert(obj, to)


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_the_check_has_no_breaking_findings(kind: CorpusKind) -> None:
    found = kind.checked(examples=0)
    assert not [each for each in found if each.severity is FindingSeverity.BREAKING]


@pytest.mark.parametrize("kind", WALKED.values(), ids=WALKED)
def test_views_are_those_of_the_go_code_except_for_known_differences(kind: CorpusKind) -> None:
    unknown, used = [], set()
    for walk in walks(kind):
        for found in view_differences(walk, converter(kind.name)):
            known = difference_of(walk, found)
            if known is None:
                unknown.append((walk.object, walk.to, found))
            used.add(known)
    assert not unknown
    assert used - {None} == {*kind.differences}, "kinds.yaml lists differences that there are not"


@pytest.mark.parametrize("kind", WALKED.values(), ids=WALKED)
def test_nothing_is_lost_that_the_go_code_keeps(kind: CorpusKind) -> None:
    for walk in walks(kind):
        go, ours = back_differences(walk, converter(kind.name))
        lost = [each for each in ours if not any(covers(other.path, each.path) for other in go)]
        assert not lost, (walk.object, walk.to, walk.change)


def covers(path: str, other: str) -> bool:
    """Report whether a field is another one, or contains it."""
    return other == path or other.startswith((f"{path}.", f"{path}[]"))


def test_everything_was_recorded() -> None:
    planned = [
        (walk.kind, walk.object, walk.to, walk.edit)
        for kind in WALKED.values()
        for walk, _ in plan(kind)
    ]
    assert len(planned) == len(recorded_walks())
    for kind in WALKED.values():
        assert len([walk for walk in walks(kind) if walk.change]) == len(kind.edits)


def test_the_annotation_of_preserved_fields_is_in_views_alone() -> None:
    for kind in KINDS.values():
        for obj in kind.objects:
            assert ANNOTATION not in (obj["metadata"].get("annotations") or {})


def test_differences_are_found_where_a_value_changes() -> None:
    obj: Object = {"metadata": {}, "spec": {"a": [{"b": 1}], "c": "x"}}
    other: Object = {"metadata": {}, "spec": {"a": [{"b": 2}], "d": {}}}
    assert [each.path for each in changed(obj, other)] == ["spec.a[].b", "spec.c"]
