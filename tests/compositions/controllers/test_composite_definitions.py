"""Definitions of composite resources on a control plane: what users see of their kinds."""

from __future__ import annotations

from typing import Any

import pytest
from tests.compositions.composing import GROUP, KIND, definition, version
from tests.compositions.controllers.composed import (
    CONVERSIONS,
    DEFINITIONS,
    NAME,
    World,
    alive,
    bucket,
    buckets,
    run,
)
from tests.compositions.controllers.installing import condition
from tests.controllers.mortal import Mortal

from polyver.apis import conversion_kind
from polyver.client import CRDS, GroupVersionResource
from polyver.compositions.controllers.compositions import ClientCompositionLookup
from polyver.compositions.names import DEFINED, DELETED_BY_FORCE
from polyver.core.plain import Object
from polyver.kube.objects.status import ApiError
from polyver.kube.server.identity import CONTROLLERS

OLD, NEW = version("v1alpha1"), version("v1")
BOTH = [NEW, version("v1alpha1", referenceable=False)]
URL = "https://hooks.example.org/convert"
WEBHOOK = {"clientConfig": {"url": URL}, "conversionReviewVersions": ["v1"]}
FORCED = {"metadata": {"annotations": {DELETED_BY_FORCE: "true"}}}


async def define(world: World, *versions: Object, **spec: Any) -> Object:
    """Write a definition, and wait until its kind is as it says."""
    await world.write(DEFINITIONS, definition(*versions, **spec))
    return await world.established()


def test_the_kind_of_a_definition_is_served() -> None:
    async def scenario(world: World) -> None:
        found = await define(world)
        assert found["status"]["controllers"]["compositeResourceType"] == {
            "apiVersion": f"{GROUP}/v1alpha1",
            "kind": KIND,
        }
        made = await world.client.create(buckets(), bucket())
        assert made["spec"]["compositionUpdatePolicy"] == "Automatic"
        assert "Offered" not in [each["type"] for each in found["status"]["conditions"]]
        [owner] = (await world.crd())["metadata"]["ownerReferences"]
        assert (owner["kind"], owner["name"]) == ("CompositeResourceDefinition", NAME)

    alive(scenario)


def test_the_newer_version_of_the_api_defines_namespaced_kinds() -> None:
    async def scenario(world: World) -> None:
        newer = GroupVersionResource(DEFINITIONS.group, "v2", DEFINITIONS.plural, namespaced=False)
        api_version = f"{DEFINITIONS.group}/v2"
        wrong = definition(OLD, NEW)
        with pytest.raises(ApiError, match="v1alpha1, v1 are referenceable"):
            await world.client.create(newer, {**wrong, "apiVersion": api_version})
        await world.client.create(newer, {**definition(), "apiVersion": api_version})
        found = await world.established()
        assert (found["apiVersion"], found["spec"]["scope"]) == (
            definition()["apiVersion"],
            "Namespaced",
        )
        assert (await world.crd())["spec"]["scope"] == "Namespaced"
        mine = GroupVersionResource(GROUP, "v1alpha1", "acmebuckets")
        made = {**bucket(), "metadata": {"name": "one", "namespace": "default"}}
        await world.client.create(mine, made)
        with pytest.raises(ApiError, match="this would also delete AcmeBucket default/one"):
            await world.client.delete(newer, NAME)

    alive(scenario)


def test_no_claims_are_offered_and_that_is_said() -> None:
    async def scenario(world: World) -> None:
        await define(world, claimNames={"kind": "Bucket", "plural": "buckets"})
        assert "claims are not supported" in await world.told(
            "Offered", "False", "ClaimsUnsupported"
        )
        await world.client.patch(DEFINITIONS, NAME, change={"spec": {"claimNames": None}})
        await world.until(DEFINITIONS, NAME, lambda obj: not condition(obj, "Offered"))

    alive(scenario)


def test_a_kind_of_somebody_else_is_left_alone() -> None:
    async def scenario(world: World) -> None:
        await define(world)
        theirs = await world.crd()
        await world.client.delete(DEFINITIONS, NAME)
        await world.gone(DEFINITIONS, NAME)
        about = {"name": NAME, "labels": {"whose": "theirs"}}
        await world.client.create(CRDS, {**theirs, "metadata": about})
        await world.write(DEFINITIONS, definition(NEW))
        message = await world.told("Applied", "False", "NotOurs")
        assert "with another owner" in message
        found = await world.crd()
        assert [each["name"] for each in found["spec"]["versions"]] == ["v1alpha1"]
        assert found["metadata"]["labels"] == {"whose": "theirs"}
        await world.client.delete(DEFINITIONS, NAME)
        await world.gone(DEFINITIONS, NAME)
        assert (await world.crd())["metadata"]["uid"] == found["metadata"]["uid"]
        await world.write(DEFINITIONS, definition(NEW))
        await world.client.delete(CRDS, NAME)
        await world.established()

    alive(scenario)


def test_what_somebody_changes_of_a_kind_is_put_back() -> None:
    async def scenario(world: World) -> None:
        await define(world)
        versions = (await world.crd())["spec"]["versions"]
        changed = [{**each, "additionalPrinterColumns": []} for each in versions]
        await world.client.patch(CRDS, NAME, change={"spec": {"versions": changed}})
        await world.until(CRDS, NAME, lambda obj: obj["spec"]["versions"] == versions)
        await world.client.delete(CRDS, NAME)
        await world.until(CRDS, NAME, lambda obj: "deletionTimestamp" not in obj["metadata"])
        await world.established()

    alive(scenario)


def test_two_definitions_of_one_kind_do_not_share_its_names() -> None:
    async def scenario(world: World) -> None:
        await define(world)
        other = definition(names={"kind": KIND, "plural": "others"})
        other["metadata"]["name"] = name = f"others.{GROUP}"
        await world.write(DEFINITIONS, other)
        message = await world.told("Established", "False", "NamesNotAccepted", name)
        assert KIND in message

    alive(scenario)


@pytest.mark.parametrize("admitted", [True, False], ids=["in-admission", "by-the-controller"])
def test_a_definition_that_cannot_be_changes_nothing(admitted: bool) -> None:
    wrong = definition(OLD, version("v1"))

    async def scenario(world: World) -> None:
        await define(world)
        if admitted:
            with pytest.raises(ApiError, match=r"spec\.versions: Invalid value: v1alpha1, v1 are"):
                await world.write(DEFINITIONS, wrong)
            return
        await world.write(DEFINITIONS, wrong)
        assert "spec.versions" in await world.told("Applied", "False", "InvalidVersion")
        found = await world.client.get(DEFINITIONS, NAME)
        assert condition(found, "Established")["status"] == "True"
        await world.client.create(buckets(), bucket())

    alive(scenario, admitted=admitted)


def test_the_stored_version_moves_and_objects_are_there_in_both() -> None:
    async def scenario(world: World) -> None:
        await define(world, OLD)
        await world.client.create(buckets(), bucket())
        found = await define(world, *BOTH)
        composed = found["status"]["controllers"]["compositeResourceType"]
        assert composed["apiVersion"] == f"{GROUP}/v1"
        for each in ("v1", "v1alpha1"):
            there = await world.until(buckets(each), "one", bool)
            assert there["apiVersion"] == f"{GROUP}/{each}"
        assert (await world.crd())["status"]["storedVersions"] == ["v1alpha1", "v1"]

    alive(scenario)


@pytest.mark.parametrize("admitted", [True, False], ids=["in-admission", "by-the-controller"])
def test_objects_do_not_lose_fields_to_a_new_version_that_nothing_converts_to(
    admitted: bool,
) -> None:
    async def scenario(world: World) -> None:
        await define(world, OLD)
        await world.client.create(buckets(), bucket() | {"spec": {"size": 3}})
        wanted = definition(version("v1", gigabytes={"type": "integer"}), BOTH[1])
        if admitted:
            with pytest.raises(ApiError, match=r"would lose spec\.size in v1"):
                await world.write(DEFINITIONS, wanted)
        else:
            await world.write(DEFINITIONS, wanted)
            message = await world.told("Applied", "False", "ConversionMissing")
            assert "leave v1alpha1 referenceable" in message
        found = await world.client.get(buckets(), "one")
        assert found["spec"]["size"] == 3
        assert [each["name"] for each in (await world.crd())["spec"]["versions"]] == ["v1alpha1"]

    alive(scenario, admitted=admitted)


@pytest.mark.parametrize("admitted", [True, False], ids=["in-admission", "by-the-controller"])
def test_a_version_in_which_objects_may_be_stored_is_not_dropped(admitted: bool) -> None:
    async def scenario(world: World) -> None:
        await define(world, OLD)
        await world.client.create(buckets(), bucket())
        await define(world, *BOTH)
        if admitted:
            with pytest.raises(ApiError, match="may be stored as v1alpha1: AcmeBucket one"):
                await world.write(DEFINITIONS, definition(NEW))
        else:
            await world.write(DEFINITIONS, definition(NEW))
            message = await world.told("Applied", "False", "VersionStored")
            assert "AcmeBucket one" in message
        assert len((await world.crd())["spec"]["versions"]) == 2
        await world.until(buckets("v1"), "one", bool)  # a new version is served in a moment
        await world.client.delete(buckets("v1"), "one")
        await define(world, NEW)
        found = await world.crd()
        assert [each["name"] for each in found["spec"]["versions"]] == ["v1"]
        assert found["status"]["storedVersions"] == ["v1"]

    alive(scenario, admitted=admitted)


def test_what_is_not_served_yet_does_not_look_as_if_it_had_no_objects() -> None:
    async def scenario(world: World) -> None:
        await define(world)
        await world.client.create(buckets(), bucket())
        crd = await world.crd()
        soon = {**crd["spec"]["versions"][0], "name": "v9"}
        for versions in ([soon, *crd["spec"]["versions"]], [soon]):
            asked = ClientCompositionLookup(world.client).composites(
                {**crd, "spec": {**crd["spec"], "versions": versions}}
            )
            if len(versions) == 2:
                assert await asked == ["AcmeBucket one"]
                continue
            with pytest.raises(ApiError, match="cannot be read at the moment"):
                await asked

    alive(scenario)


def test_without_objects_one_version_takes_the_place_of_another_at_once() -> None:
    async def scenario(world: World) -> None:
        await define(world, OLD)
        await define(world, NEW)
        assert (await world.crd())["status"]["storedVersions"] == ["v1"]
        await world.created(buckets("v1"), bucket(version="v1"))

    alive(scenario)


# Who converts.


def conversion() -> Object:
    rules = [{"move": {"from": "spec.size", "to": "spec.gigabytes"}}]
    return {
        "apiVersion": "polyver.dev/v1alpha1",
        "kind": "Conversion",
        "metadata": {"name": NAME},
        "spec": {
            "group": GROUP,
            "kind": KIND,
            "versions": ["v1", "v1alpha1"],
            "edges": [{"from": "v1alpha1", "to": "v1", "rules": rules}],
        },
    }


@pytest.mark.parametrize(
    "said",
    [{}, {"conversion": {"strategy": "Webhook", "webhook": WEBHOOK}}],
    ids=["nobody", "a-webhook"],
)
def test_a_conversion_converts_whatever_the_definition_says_and_while_it_is_there(
    said: Object,
) -> None:
    number: Object = {"type": "integer"}
    versions = (
        version("v1", gigabytes=number),
        version("v1alpha1", referenceable=False, size=number),
    )

    def client(crd: Object) -> Object:
        found: Object = (crd["spec"]["conversion"].get("webhook") or {}).get("clientConfig") or {}
        return found

    def before(crd: Object) -> bool:
        return bool(client(crd).get("url") == (URL if said else None))

    async def scenario(world: World) -> None:
        await define(world, *versions, **said)
        await world.until(CRDS, NAME, before)
        await world.client.create(CONVERSIONS, conversion())
        serving = await world.until(CONVERSIONS, NAME, lambda obj: condition(obj, "Serving"))
        assert condition(serving, "Serving")["status"] == "True"
        found = await world.until(CRDS, NAME, lambda crd: client(crd).get("url", URL) != URL)
        old = {**bucket(), "spec": {"size": 3}}
        await world.client.create(buckets(), old)
        assert (await world.client.get(buckets("v1"), "one"))["spec"]["gigabytes"] == 3
        # Both controllers have looked at it again, and neither has written.
        await world.client.patch(DEFINITIONS, NAME, change={"metadata": {"labels": {"a": "b"}}})
        after = await world.until(CRDS, NAME, lambda crd: crd["metadata"].get("labels"))
        assert after["spec"]["conversion"] == found["spec"]["conversion"]
        forced = {conversion_kind.FORCED: "v1,v1alpha1"}
        await world.client.patch(CONVERSIONS, NAME, change={"metadata": {"annotations": forced}})
        await world.client.delete(CONVERSIONS, NAME)
        await world.gone(CONVERSIONS, NAME)
        await world.client.patch(DEFINITIONS, NAME, change={"metadata": {"labels": {"a": "c"}}})
        if said:
            await world.until(CRDS, NAME, before)
        else:  # Without anything that converts, objects would lose fields.
            last = await world.until(CRDS, NAME, lambda crd: crd["metadata"]["labels"]["a"] == "c")
            assert last["spec"]["conversion"]["strategy"] == "Webhook"

    alive(scenario)


# When it goes.


def test_a_definition_goes_with_its_kind() -> None:
    async def scenario(world: World) -> None:
        await define(world)
        await world.client.delete(DEFINITIONS, NAME)
        await world.gone(DEFINITIONS, NAME)
        await world.gone(CRDS, NAME)

    alive(scenario)


def test_a_definition_with_objects_is_not_deleted_but_by_force() -> None:
    async def scenario(world: World) -> None:
        await define(world)
        await world.client.create(buckets(), bucket())
        with pytest.raises(ApiError, match="this would also delete AcmeBucket one") as caught:
            await world.client.delete(DEFINITIONS, NAME)
        assert caught.value.code == 403
        await world.client.patch(DEFINITIONS, NAME, change=FORCED)
        await world.client.delete(DEFINITIONS, NAME)
        await world.gone(DEFINITIONS, NAME)
        await world.gone(CRDS, NAME)
        assert await world.event("DeletedByForce") == "deleted by force, with AcmeBucket one"

    alive(scenario)


def test_a_definition_that_was_deleted_all_the_same_waits_for_its_objects() -> None:
    async def scenario(world: World) -> None:
        await define(world)
        for name in ("one", "two"):
            await world.client.create(buckets(), bucket(name))
        await world.client.delete(DEFINITIONS, NAME)
        message = await world.told("Postponed", "True", "InUse")
        assert message == "it is deleted after these: AcmeBucket one, AcmeBucket two"
        for name in ("one", "two"):
            await world.client.get(buckets(), name)
            await world.client.delete(buckets(), name)
        await world.gone(DEFINITIONS, NAME)
        await world.gone(CRDS, NAME)

    alive(scenario, admitted=False)


def test_a_kind_that_was_left_behind_is_the_next_definitions() -> None:
    async def scenario(world: World) -> None:
        await define(world)
        await world.client.create(buckets(), bucket())
        await world.client.patch(DEFINITIONS, NAME, change=FORCED)
        await world.client.delete(DEFINITIONS, NAME, propagation="Orphan")
        await world.gone(DEFINITIONS, NAME)
        left = await world.crd()
        assert not left["metadata"].get("ownerReferences")
        await world.client.get(buckets(), "one")
        found = await define(world, *BOTH)
        after = await world.crd()
        assert after["metadata"]["uid"] == left["metadata"]["uid"]
        assert after["metadata"]["ownerReferences"][0]["uid"] == found["metadata"]["uid"]

    alive(scenario)


def test_after_a_restart_nothing_is_written_again() -> None:
    async def scenario(world: World) -> None:
        async def look() -> None:
            await define(world, *BOTH)

        await world.live(look)
        before = [await world.client.get(each, NAME) for each in (DEFINITIONS, CRDS)]
        assert DEFINED in before[0]["metadata"]["finalizers"]

        async def again() -> None:
            other = definition(names={"kind": "Other", "plural": "others"})
            other["metadata"]["name"] = name = f"others.{GROUP}"
            await world.write(DEFINITIONS, other)
            await world.established(name)  # the ones before it in the queue are done, too

        await world.live(again)
        assert [await world.client.get(each, NAME) for each in (DEFINITIONS, CRDS)] == before

    run(scenario)


# It holds the definition, applies the kind, says who converts, tells its status.
@pytest.mark.parametrize("after", range(1, 5))
def test_killed_after_any_write_it_comes_to_the_same_end(after: int) -> None:
    async def scenario(world: World) -> None:
        said: Object = {"conversion": {"strategy": "Webhook", "webhook": WEBHOOK}}
        await world.write(DEFINITIONS, definition(*BOTH, **said))
        mortal = Mortal(world.api, CONTROLLERS, after)
        await world.live(mortal.killed.wait, mortal)
        await world.live(world.established)
        found = (await world.crd())["spec"]["conversion"]
        assert found["webhook"]["clientConfig"] == {"url": URL}

    run(scenario)


# It keeps the old version unserved, has it stored no longer, drops it, tells its status.
@pytest.mark.parametrize("after", range(1, 5))
def test_killed_while_a_version_goes_it_comes_to_the_same_end(after: int) -> None:
    async def scenario(world: World) -> None:
        await world.write(DEFINITIONS, definition(OLD))
        await world.live(world.established)
        await world.write(DEFINITIONS, definition(NEW))
        mortal = Mortal(world.api, CONTROLLERS, after)
        await world.live(mortal.killed.wait, mortal)
        await world.live(world.established)
        found = await world.crd()
        assert [each["name"] for each in found["spec"]["versions"]] == ["v1"]
        assert found["status"]["storedVersions"] == ["v1"]

    run(scenario)


# It deletes the kind, tells that, lets the definition go.
@pytest.mark.parametrize("after", range(1, 4))
def test_killed_while_it_goes_nothing_is_left_over(after: int) -> None:
    async def scenario(world: World) -> None:
        await world.write(DEFINITIONS, definition())
        await world.live(world.established)
        await world.client.delete(DEFINITIONS, NAME)
        mortal = Mortal(world.api, CONTROLLERS, after)
        await world.live(mortal.killed.wait, mortal)
        await world.live(lambda: world.gone(DEFINITIONS, NAME))
        await world.gone(CRDS, NAME)

    run(scenario)
