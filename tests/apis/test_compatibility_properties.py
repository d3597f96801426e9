"""Compatibility: where nothing serious is found, nothing that was right is refused or lost."""

from __future__ import annotations

import copy
from typing import Any

from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from tests.apis.mutations import Changed, changed_schemas, is_taken

from polyver.apis.compatibility import FindingSeverity, compare_schemas
from polyver.kube.objects.schema import MalformedMetadata, Schema, compile_schema
from polyver.testing.strategies import objects_from_schema

Json = dict[str, Any]

# Half of the changes are serious, and some schemas refuse nearly everything.
PICKY = settings(suppress_health_check=[HealthCheck.filter_too_much, HealthCheck.too_slow])


def written(checked: Schema, obj: Json) -> tuple[Json, list[str], bool]:
    """What a server makes of an object, what it drops, and whether it takes the rest."""
    kept = copy.deepcopy(obj)
    dropped = checked.prune(kept)
    checked.default(kept)
    return kept, dropped, not checked.validate(kept)


def keeps(old: Schema, new: Schema, obj: Json) -> None:
    """An object that is right before is right afterwards, for its writer and where it is stored."""
    try:
        stored, dropped, right = written(old, obj)
    except MalformedMetadata:
        right = False
    assume(right)
    _, dropped_now, right_now = written(new, obj)
    assert right_now
    assert {*dropped_now} <= {*dropped}
    # Defaults are not pruned when they are filled in, but when they are read and written again.
    settled, _, _ = written(old, stored)
    read, _, right_still = written(new, settled)
    assert right_still
    assert holds(read, settled)


def holds(new: Any, old: Any) -> bool:
    """Whether all of a value is in another; fields may be added to it."""
    if isinstance(old, dict):
        return all(key in new and holds(new[key], value) for key, value in old.items())
    if isinstance(old, list):
        return len(new) == len(old) and all(map(holds, new, old))
    return bool(new == old)


def assume_quiet(old: Json, new: Json) -> None:
    assume(new != old and is_taken(old) and is_taken(new))
    assume(compare_schemas(old, new) == [])


@given(changed_schemas(), st.data())
@settings(PICKY, max_examples=60)
def test_without_findings_every_object_stays_right(changed: Changed, data: st.DataObject) -> None:
    old, new, _ = changed
    assume_quiet(old, new)
    keeps(compile_schema(old), compile_schema(new), data.draw(objects_from_schema(old)))


@given(changed_schemas())
@settings(PICKY, max_examples=100)
def test_without_findings_awkward_objects_stay_right(changed: Changed) -> None:
    old, new, maker = changed
    assume_quiet(old, new)
    keeps(compile_schema(old), compile_schema(new), maker.value(old, 0.0))


@given(changed_schemas())
@settings(PICKY)
def test_a_schema_is_compatible_with_itself(changed: Changed) -> None:
    for schema in changed[:2]:
        again = copy.deepcopy(schema)
        assert compare_schemas(schema, again, least=FindingSeverity.SAFE) == []


@given(changed_schemas())
@settings(PICKY)
def test_whoever_asks_for_more_is_told_the_same_and_more(
    changed: Changed,
) -> None:
    old, new, _ = changed
    told = [compare_schemas(old, new, least=least) for least in FindingSeverity]
    everything = told[-1]
    for least, found in zip(FindingSeverity, told, strict=True):
        assert found == [each for each in everything if each.severity.rank <= least.rank]
