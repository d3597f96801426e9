"""Compositions on a control plane: what users see of their revisions."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.compositions.composing import ALPHA, composition, definition, step
from tests.compositions.controllers.composed import (
    COMPOSITION_REVISIONS,
    COMPOSITIONS,
    DEFINITIONS,
    World,
    alive,
    bucket,
    buckets,
    run,
)
from tests.controllers.mortal import Mortal

from polyver.client import find
from polyver.compositions.decisions import composition_changes
from polyver.compositions.names import COMPOSITION, CONTENT, DELETED_BY_FORCE, USED
from polyver.core.plain import Object
from polyver.kube.objects.status import ApiError
from polyver.kube.server.identity import CONTROLLERS

CHOOSING: Object = {"functionRevisionRef": {"name": "function-a-0123456789ab"}}
FORCED = {"metadata": {"annotations": {DELETED_BY_FORCE: "true"}}}


def content(number: int, labels: dict[str, str] | None = None, name: str = "example") -> Object:
    """A Composition with some content."""
    return composition(name, step(f"run-{number}"), labels=labels)


def step_of(obj: Object) -> str:
    return str(obj["spec"]["pipeline"][0]["step"])


def is_used(obj: Object) -> bool:
    return USED in (obj["metadata"].get("finalizers") or ())


def test_each_content_has_a_revision_and_what_comes_back_the_next_number() -> None:
    async def scenario(world: World) -> None:
        made = await world.write(COMPOSITIONS, content(1, ALPHA))
        [first] = await world.numbered(1)
        assert first["spec"] == {**made["spec"], "revision": 1}
        labels = first["metadata"]["labels"]
        assert labels == {**ALPHA, COMPOSITION: "example", CONTENT: labels[CONTENT]}
        assert first["metadata"]["name"] == f"example-{labels[CONTENT][:7]}"
        assert first["metadata"]["ownerReferences"][0]["uid"] == made["metadata"]["uid"]
        await world.write(COMPOSITIONS, content(1))
        [_, other] = await world.numbered(1, 2)
        assert "release-channel" not in other["metadata"]["labels"]
        about = {"metadata": {"annotations": {"who": "me"}}}
        await world.client.patch(COMPOSITIONS, "example", change=about)
        await world.write(COMPOSITIONS, content(1, ALPHA))
        [second, again] = await world.numbered(2, 3)
        assert again["metadata"]["uid"] == first["metadata"]["uid"]
        assert second["metadata"]["uid"] == other["metadata"]["uid"]
        await world.client.delete(COMPOSITIONS, "example")
        await world.numbered()

    alive(scenario)


def test_a_revision_that_is_deleted_is_made_again_if_it_is_the_one_of_now() -> None:
    async def scenario(world: World) -> None:
        for number in (1, 2):
            await world.write(COMPOSITIONS, content(number))
            await world.numbered(*range(1, number + 1))
        older, newest = await world.revisions()
        for each in (older, newest):
            await world.client.delete(COMPOSITION_REVISIONS, each["metadata"]["name"])
        [only] = await world.numbered(1)
        assert step_of(only) == "run-2"

    alive(scenario)


def test_revisions_of_a_restore_are_adopted() -> None:
    async def scenario(world: World) -> None:
        for number in (1, 2):
            await world.write(COMPOSITIONS, content(number))
            await world.numbered(*range(1, number + 1))
        kept = await world.revisions()
        await world.client.delete(COMPOSITIONS, "example")
        await world.numbered()
        for each in kept:
            about = {key: each["metadata"][key] for key in ("name", "labels")}
            restored = {**each, "metadata": about}
            await world.client.create(COMPOSITION_REVISIONS, restored)
        made = await world.write(COMPOSITIONS, content(2))

        def is_adopted(obj: Object) -> bool:
            owners = obj["metadata"].get("ownerReferences") or ()
            return [each["uid"] for each in owners] == [made["metadata"]["uid"]]

        for each in kept:
            await world.until(COMPOSITION_REVISIONS, each["metadata"]["name"], is_adopted)
        await world.numbered(1, 2)

    alive(scenario)


def test_a_revision_never_changes() -> None:
    async def scenario(world: World) -> None:
        await world.write(COMPOSITIONS, content(1))
        [only] = await world.numbered(1)
        name = only["metadata"]["name"]
        changes: Sequence[tuple[Object, str]] = [
            ({"spec": {"pipeline": [step("other")]}}, "spec.pipeline"),
            ({"spec": {"revision": 0}}, "spec.revision"),
            ({"metadata": {"labels": {COMPOSITION: "other"}}}, "metadata.labels"),
        ]
        for change, place in changes:
            with pytest.raises(ApiError, match=place):
                await world.client.patch(COMPOSITION_REVISIONS, name, change=change)
        await world.client.patch(
            COMPOSITION_REVISIONS, name, change={"metadata": {"labels": {"mine": "too"}}}
        )
        twice = {**only, "metadata": {"name": "example-2", "labels": {COMPOSITION: "example"}}}
        with pytest.raises(ApiError, match="has the number 1"):
            await world.client.create(COMPOSITION_REVISIONS, twice)
        nobodys = {**only, "metadata": {"name": "example-2"}}
        with pytest.raises(ApiError, match="no label that names its composition"):
            await world.client.create(COMPOSITION_REVISIONS, nobodys)

    alive(scenario)


def test_what_composite_resources_use_is_not_deleted() -> None:
    async def scenario(world: World) -> None:
        await world.write(DEFINITIONS, definition())
        await world.write(COMPOSITIONS, content(1))
        await world.established()
        first = (await world.numbered(1))[0]["metadata"]["name"]
        await world.client.create(buckets(), bucket("one", revision=first))
        await world.until(COMPOSITIONS, "example", is_used)
        await world.write(COMPOSITIONS, content(2))
        second = (await world.numbered(1, 2))[1]["metadata"]["name"]
        for each in ((COMPOSITIONS, "example"), (COMPOSITION_REVISIONS, first)):
            with pytest.raises(ApiError, match="it is used by AcmeBucket one") as caught:
                await world.client.delete(*each)
            assert caught.value.code == 403
        moved = {"spec": {"compositionRevisionRef": {"name": second}}}
        await world.client.patch(buckets(), "one", change=moved)
        await world.until(COMPOSITION_REVISIONS, first, lambda obj: not is_used(obj))
        await world.until(COMPOSITION_REVISIONS, second, is_used)
        await world.client.delete(COMPOSITION_REVISIONS, first)
        await world.numbered(2)
        await world.client.delete(buckets(), "one")
        await world.until(COMPOSITIONS, "example", lambda obj: not is_used(obj))
        await world.client.delete(COMPOSITIONS, "example")
        await world.numbered()

    alive(scenario)


def test_what_is_deleted_all_the_same_stays_until_nobody_uses_it() -> None:
    async def scenario(world: World) -> None:
        await world.write(DEFINITIONS, definition())
        await world.write(COMPOSITIONS, content(1))
        await world.established()
        name = (await world.numbered(1))[0]["metadata"]["name"]
        for each in ("one", "two"):
            await world.client.create(buckets(), bucket(each, revision=name))
        await world.until(COMPOSITION_REVISIONS, name, is_used)
        await world.until(COMPOSITIONS, "example", is_used)
        await world.client.delete(COMPOSITION_REVISIONS, name)
        await world.client.delete(COMPOSITIONS, "example")
        await world.client.delete(buckets(), "one")
        assert is_used(await world.client.get(COMPOSITION_REVISIONS, name))
        await world.client.delete(buckets(), "two")
        await world.gone(COMPOSITION_REVISIONS, name)
        await world.gone(COMPOSITIONS, "example")

    alive(scenario, admitted=False)


def test_by_force_it_goes_and_that_is_recorded() -> None:
    async def scenario(world: World) -> None:
        await world.write(DEFINITIONS, definition())
        await world.write(COMPOSITIONS, content(1))
        await world.established()
        name = (await world.numbered(1))[0]["metadata"]["name"]
        await world.client.create(buckets(), bucket("one", revision=name))
        await world.until(COMPOSITION_REVISIONS, name, is_used)
        await world.write(COMPOSITIONS, content(2))
        await world.numbered(1, 2)
        await world.client.patch(COMPOSITION_REVISIONS, name, change=FORCED)
        await world.client.delete(COMPOSITION_REVISIONS, name)
        await world.gone(COMPOSITION_REVISIONS, name)
        assert (
            await world.event("DeletedByForce")
            == "deleted by force, although used by AcmeBucket one"
        )

    alive(scenario)


@pytest.mark.parametrize("admitted", [True, False], ids=["in-admission", "by-the-controller"])
def test_a_composition_that_cannot_be_makes_no_revision(admitted: bool) -> None:
    wrong = composition("example", step(), step())

    async def scenario(world: World) -> None:
        await world.write(COMPOSITIONS, content(1))
        await world.numbered(1)
        if admitted:
            with pytest.raises(ApiError, match=r"spec.pipeline\[1\]"):
                await world.write(COMPOSITIONS, wrong)
            return
        twice = composition("example", step(credentials=[{"name": "c", "source": "Secret"}]))
        await world.write(COMPOSITIONS, twice)
        assert "the secret of the credentials" in await world.event("InvalidPipeline")
        await world.numbered(1)

    alive(scenario, admitted=admitted)


@pytest.mark.parametrize("admitted", [True, False], ids=["in-admission", "by-the-controller"])
def test_without_the_feature_no_step_chooses_a_revision(admitted: bool) -> None:
    choosing = composition("example", step(**CHOOSING))

    async def scenario(world: World) -> None:
        if not admitted:
            await world.write(COMPOSITIONS, choosing)
            assert "FunctionRevisions, which is disabled" in await world.event("FeatureOff")
            assert await world.revisions() == []
            return
        place = r"spec.pipeline\[0\].functionRevisionRef: Invalid value"
        with pytest.raises(ApiError, match=place):
            await world.write(COMPOSITIONS, choosing)
        made = composition_changes(choosing, []).create
        assert made is not None
        labels = {COMPOSITION: "example"}
        revision = {**choosing, "kind": "CompositionRevision"}
        revision["metadata"] = {"name": made.name, "labels": labels}
        revision["spec"] = {**choosing["spec"], "revision": 1}
        with pytest.raises(ApiError, match=place):
            await world.client.create(COMPOSITION_REVISIONS, revision)

    alive(scenario, several=False, admitted=admitted)


def test_a_revision_of_others_is_not_taken_over() -> None:
    async def scenario(world: World) -> None:
        made = composition_changes(content(1), []).create
        assert made is not None
        about = {"name": made.name, "labels": {COMPOSITION: "other"}}
        theirs = {**content(2), "kind": "CompositionRevision", "metadata": about}
        theirs["spec"] = {**theirs["spec"], "revision": 1}
        await world.client.create(COMPOSITION_REVISIONS, theirs)
        await world.write(COMPOSITIONS, content(1))
        assert f"would be named {made.name}" in await world.event("NameTaken")
        found = await find(world.client, COMPOSITION_REVISIONS, made.name)
        assert found is not None
        assert step_of(found) == "run-2"

    alive(scenario)


# Whatever order, and whatever happens in between.

EDITS = st.lists(st.tuples(st.integers(0, 2), st.booleans()), min_size=1, max_size=6)


@settings(max_examples=4, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(EDITS, min_size=2, max_size=5))
def test_the_newest_revision_is_the_content_of_now_and_numbers_only_rise(
    programs: list[list[tuple[int, bool]]],
) -> None:
    """Each program is the edits of one Composition; some are seen one by one, others at once."""

    async def edit(world: World, name: str, edits: list[tuple[int, bool]]) -> None:
        seen: list[int] = []
        for number, waits in edits:
            await world.write(COMPOSITIONS, content(number, name=name))
            if waits:
                seen.append(await newest(world, name, f"run-{number}"))
        seen.append(await newest(world, name, f"run-{edits[-1][0]}"))
        found = await world.revisions(name)
        numbers = [each["spec"]["revision"] for each in found]
        assert sorted(set(numbers)) == numbers
        assert seen == sorted(seen)
        assert numbers[-1] == seen[-1]
        assert {step_of(each) for each in found} <= {f"run-{number}" for number, _ in edits}

    async def newest(world: World, name: str, wanted: str) -> int:
        while True:
            found = await world.revisions(name)
            if found and step_of(found[-1]) == wanted:
                return int(found[-1]["spec"]["revision"])
            await asyncio.sleep(0.002)

    async def scenario(world: World) -> None:
        work = [edit(world, f"c{place}", edits) for place, edits in enumerate(programs)]
        await asyncio.gather(*work)

    alive(scenario)


# It makes a revision, tells of it; then renumbers another one, and holds what is used.
@pytest.mark.parametrize("after", range(1, 6))
def test_killed_after_any_write_it_comes_to_the_same_end(after: int) -> None:
    async def scenario(world: World) -> None:
        async def begin() -> None:
            await world.write(DEFINITIONS, definition())
            await world.established()
            for number in (1, 2):
                await world.write(COMPOSITIONS, content(number))
                await world.numbered(*range(1, number + 1))

        await world.live(begin)
        first = (await world.revisions())[0]["metadata"]["name"]
        await world.client.create(buckets(), bucket(revision=first))
        await world.write(COMPOSITIONS, content(1))
        other = content(7, name="other")
        await world.write(COMPOSITIONS, other)
        mortal = Mortal(world.api, CONTROLLERS, after)
        await world.live(mortal.killed.wait, mortal)

        async def ended() -> None:
            found = await world.numbered(2, 3)
            assert found[1]["metadata"]["name"] == first
            await world.numbered(1, composition="other")
            await world.until(COMPOSITION_REVISIONS, first, is_used)
            await world.until(COMPOSITIONS, "example", is_used)

        await world.live(ended)

    run(scenario)


def test_what_allows_deletion_is_copied_to_the_revision_of_now() -> None:
    async def scenario(world: World) -> None:
        await world.write(COMPOSITIONS, content(1))
        [first] = await world.numbered(1)
        allowed = {"polyver.dev/allow-deletion": "true"}
        change = {"metadata": {"annotations": allowed}}
        await world.client.patch(COMPOSITIONS, "example", change=change)
        await world.until(
            COMPOSITION_REVISIONS,
            first["metadata"]["name"],
            lambda found: found["metadata"].get("annotations") == allowed,
        )

    alive(scenario)
