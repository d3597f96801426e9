"""Functions on a control plane: what users see of them and their revisions."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from tests.compositions.controllers.installing import (
    EVENTS,
    PROVIDERS,
    MemoryRuntime,
    NotToBeHad,
    World,
    condition,
    run,
)
from tests.compositions.samples import SEED, by_label, digest_of, function, package, seed, use

from polyver.client import GroupVersionResource, find
from polyver.compositions.controllers.packages import FUNCTION_REVISIONS, FUNCTIONS
from polyver.compositions.names import FORCED, IN_USE, PACKAGE, SERVED, revision_name
from polyver.compositions.runtimes import ServingStatus
from polyver.core.plain import Object
from polyver.kube.objects.status import ApiError
from polyver.kube.store import MemoryStore

ACTIVE, INACTIVE = "Active", "Inactive"


def name_of(version: str, name: str = "resize") -> str:
    return revision_name(name, digest_of(package(version, name)))


def test_the_seeds_functions_run_as_printed() -> None:
    async def scenario(world: World) -> None:
        found = await world.install(seed())
        name = revision_name("function-patch-and-transform", digest_of(f"{SEED}:v0.8.2"))
        assert found["status"]["currentRevision"] == name
        [only] = await world.revisions("function-patch-and-transform")
        assert only["spec"]["image"] == f"{SEED}:v0.8.2"
        assert only["spec"]["digest"] == digest_of(f"{SEED}:v0.8.2")
        await world.write(seed(release_channel="alpha"))

        def is_labelled(found: Object) -> bool:
            return bool(found["metadata"]["labels"].get("release-channel") == "alpha")

        found = await world.until(name, is_labelled, FUNCTION_REVISIONS)
        assert found["metadata"]["labels"][PACKAGE] == "function-patch-and-transform"
        assert found["spec"]["revision"] == 1

    run(scenario)


def test_what_allows_deletion_is_copied_to_the_current_revision() -> None:
    async def scenario(world: World) -> None:
        found = await world.install(seed())
        name, allowed = found["metadata"]["name"], {"polyver.dev/allow-deletion": "true"}
        change = {"metadata": {"annotations": allowed}}
        await world.client.patch(FUNCTIONS, name, change=change)
        current = found["status"]["currentRevision"]

        def is_copied(found: Object) -> bool:
            return bool(allowed.items() <= (found["metadata"].get("annotations") or {}).items())

        await world.until(current, is_copied, FUNCTION_REVISIONS)

    run(scenario)


def test_two_revisions_are_active_at_two_endpoints_and_a_third_ends_the_first() -> None:
    async def scenario(world: World) -> None:
        limits: dict[str, Any] = {"revisionHistoryLimit": 4, "activeRevisionLimit": 2}
        await world.install(function(version="v1", **limits))
        await world.install(function(version="v2", **limits))
        await world.settled("resize", (1, ACTIVE), (2, ACTIVE))
        both = [
            await world.until(name_of(version), _answers, FUNCTION_REVISIONS)
            for version in ("v1", "v2")
        ]
        assert len({each["status"]["endpoint"] for each in both}) == 2
        for each in both:
            assert condition(each, "Healthy")["status"] == "True"
            assert condition(each, "RuntimeHealthy")["reason"] == "Serving"
        await world.install(function(version="v3", **limits))
        await world.settled("resize", (1, INACTIVE), (2, ACTIVE), (3, ACTIVE))
        await world.served(name_of("v2"), name_of("v3"))
        first = await world.until(
            name_of("v1"), lambda found: not _answers(found), FUNCTION_REVISIONS
        )
        assert condition(first, "Healthy")["reason"] == "InactivePackageRevision"

    run(scenario)


def _answers(found: Object) -> bool:
    return "endpoint" in (found.get("status") or {})


def test_with_the_usual_limits_one_revision_takes_the_place_of_the_other() -> None:
    async def scenario(world: World) -> None:
        await world.install(function(version="v1"))
        await world.install(function(version="v2"))
        await world.settled("resize", (2, ACTIVE))
        await world.served(name_of("v2"))
        assert await find(world.client, FUNCTION_REVISIONS, name_of("v1")) is None

    run(scenario)


def test_content_that_comes_back_is_renumbered_and_labelled_anew() -> None:
    async def scenario(world: World) -> None:
        for version, channel in (("v1", "a"), ("v2", "b"), ("v1", "c")):
            labels = {"channel": channel}
            await world.install(function(version=version, labels=labels, revisionHistoryLimit=4))
        second, first = await world.settled("resize", (2, INACTIVE), (3, ACTIVE))
        assert first["metadata"]["name"] == name_of("v1")
        assert first["metadata"]["labels"]["channel"] == "c"
        assert second["metadata"]["labels"]["channel"] == "b"

    run(scenario)


def test_another_reference_to_the_same_content_makes_no_revision() -> None:
    async def scenario(world: World) -> None:
        world.runtime.contents[package("v1.0")] = digest_of(package("v1"))
        await world.install(function(version="v1"))
        found = await world.install(function(version="v1.0"))
        assert found["status"]["currentRevision"] == name_of("v1")
        assert await world.states("resize") == [(1, ACTIVE)]

    run(scenario)


def test_with_manual_users_activate_and_deactivate() -> None:
    async def scenario(world: World) -> None:
        said: dict[str, Any] = {"revisionActivationPolicy": "Manual", "revisionHistoryLimit": 0}
        found = await world.install(function(version="v1", **said))
        assert condition(found, "Installed")["reason"] == "InactivePackageRevision"
        await world.install(function(version="v2", **said))
        assert await world.states("resize") == [(1, INACTIVE), (2, INACTIVE)]
        for version in ("v1", "v2"):
            await set_state(world, name_of(version), ACTIVE)
        await world.served(name_of("v1"), name_of("v2"))
        await world.until("resize", lambda found: condition(found, "Installed")["status"] == "True")
        await set_state(world, name_of("v2"), INACTIVE)
        await world.served(name_of("v1"))
        assert await world.states("resize") == [(1, ACTIVE), (2, INACTIVE)]

    run(scenario)


async def set_state(world: World, name: str, state: str, **annotations: str) -> None:
    about = {"metadata": {"annotations": annotations}} if annotations else {}
    change = {"spec": {"desiredState": state}, **about}
    await world.client.patch(FUNCTION_REVISIONS, name, change=change)


def test_with_automatic_what_users_deactivate_is_activated_again() -> None:
    async def scenario(world: World) -> None:
        await world.install(function(version="v1"))
        await world.served(name_of("v1"))
        await set_state(world, name_of("v1"), INACTIVE)
        await world.settled("resize", (1, ACTIVE))
        await world.served(name_of("v1"))

    run(scenario)


def test_a_package_that_cannot_be_had_is_told_and_tried_again_and_the_old_one_runs_on() -> None:
    async def scenario(world: World) -> None:
        await world.install(function(version="v1"))
        await world.served(name_of("v1"))
        world.runtime.unknown[package("v2")] = NotToBeHad("nobody has allowed it")
        await world.write(function(version="v2"))
        found = await world.until(
            "resize",
            lambda found: (
                condition(found, "Installed").get("message") is not None
                and condition(found, "Installed")["status"] == "False"
            ),
        )
        assert condition(found, "Installed")["reason"] == "NotAllowed"
        assert "nobody has allowed it" in condition(found, "Installed")["message"]
        assert found["status"]["currentIdentifier"] == package("v1")
        assert condition(found, "Healthy")["status"] == "True"
        assert await world.states("resize") == [(1, ACTIVE)]
        assert world.runtime.wanted.keys() == {name_of("v1")}
        del world.runtime.unknown[package("v2")]
        await world.settled("resize", (2, ACTIVE))
        events = (await world.client.list(EVENTS, "default")).items
        assert "NotAllowed" in [each["reason"] for each in events]

    run(scenario)


def test_a_package_is_looked_into_once_unless_it_is_always_to_be() -> None:
    async def scenario(world: World) -> None:
        await world.install(function(version="v1"))
        await world.write(function(version="v1", labels={"a": "b"}))
        await world.until(
            name_of("v1"), lambda found: "a" in found["metadata"]["labels"], FUNCTION_REVISIONS
        )
        assert world.runtime.asked == [package("v1")]
        always = function("fresh", packagePullPolicy="Always")
        await world.install(always)
        world.runtime.contents[always["spec"]["package"]] = digest_of("other")
        await world.settled("fresh", (2, ACTIVE))

    run(scenario)


def test_what_a_runtime_has_to_tell_is_seen() -> None:
    async def scenario(world: World) -> None:
        await world.install(function(version="v1"))
        await world.until("resize", lambda found: condition(found, "Healthy")["status"] == "True")
        world.runtime.tell(
            name_of("v1"), ServingStatus(reason="Crashed", message="it ended with 1")
        )
        found = await world.until(
            "resize", lambda found: condition(found, "Healthy")["status"] == "False"
        )
        assert condition(found, "Healthy")["message"] == "Crashed: it ended with 1"
        revision = await world.until(name_of("v1"), lambda _: True, FUNCTION_REVISIONS)
        assert condition(revision, "RuntimeHealthy")["reason"] == "Crashed"
        assert "endpoint" not in revision["status"]
        world.runtime.tell(name_of("v1"), None)
        await world.until("resize", lambda found: condition(found, "Healthy")["status"] == "True")

    run(scenario)


def test_a_function_that_goes_takes_its_revisions_along() -> None:
    async def scenario(world: World) -> None:
        await world.install(function(version="v1"))
        await world.served(name_of("v1"))
        found = await world.until(name_of("v1"), lambda _: True, FUNCTION_REVISIONS)
        assert found["metadata"]["finalizers"] == [SERVED]
        await world.client.delete(FUNCTIONS, "resize", propagation="Background")
        await world.settled("resize")
        await world.served()

    run(scenario)


def test_what_is_selected_stays_active_and_the_function_says_for_whom() -> None:
    async def scenario(world: World) -> None:
        spec: dict[str, Any] = {"revisionHistoryLimit": 4}
        await world.install(function(version="v1", labels={"channel": "stable"}, **spec))
        world.users.known = [use("shop-0123456", by_label(channel="stable"))]
        await world.install(function(version="v2", labels={"channel": "alpha"}, **spec))
        found = await world.until(
            "resize", lambda found: condition(found, "Postponed")["status"] == "True"
        )
        assert "CompositionRevision shop-0123456" in condition(found, "Postponed")["message"]
        await world.settled("resize", (1, ACTIVE), (2, ACTIVE))
        await held(world, name_of("v1"))
        for refused in (
            set_state(world, name_of("v1"), INACTIVE),
            world.client.delete(FUNCTION_REVISIONS, name_of("v1")),
            world.client.delete(FUNCTIONS, "resize"),
        ):
            with pytest.raises(ApiError, match="selected by CompositionRevision shop") as caught:
                await refused
            assert caught.value.code == 403
        world.users.known = []
        world.functions.wake("resize")
        await world.settled("resize", (1, INACTIVE), (2, ACTIVE))
        await world.until("resize", lambda found: not found["metadata"].get("finalizers"))

    run(scenario)


async def held(world: World, name: str) -> Object:
    def is_held(found: Object) -> bool:
        return IN_USE in found["metadata"].get("finalizers", ())

    await world.until("resize", is_held)
    return await world.until(name, is_held, FUNCTION_REVISIONS)


def test_who_knows_what_they_do_may_deactivate_what_is_selected() -> None:
    async def scenario(world: World) -> None:
        spec: dict[str, Any] = {"revisionActivationPolicy": "Manual"}
        await world.install(function(version="v1", **spec))
        await set_state(world, name_of("v1"), ACTIVE)
        world.users.known = [use("shop-0123456")]
        world.functions.wake("resize")
        await held(world, name_of("v1"))
        with pytest.raises(ApiError, match="selected by"):
            await set_state(world, name_of("v1"), INACTIVE)
        await set_state(world, name_of("v1"), INACTIVE, **{FORCED: "at noon"})
        await world.served()

    run(scenario)


def test_a_used_revision_that_goes_without_being_reviewed_is_served_until_nobody_uses_it() -> None:
    async def scenario(world: World) -> None:
        await world.install(function(version="v1"))
        world.users.known = [use("shop-0123456")]
        world.functions.wake("resize")
        await held(world, name_of("v1"))
        before = await world.until(name_of("v1"), _answers, FUNCTION_REVISIONS)
        await world.client.delete(FUNCTION_REVISIONS, name_of("v1"))
        await world.until(name_of("v1"), _is_going, FUNCTION_REVISIONS)
        assert world.runtime.wanted.keys() == {name_of("v1")}
        world.users.known = []
        world.functions.wake("resize")
        again = await world.until(
            name_of("v1"), lambda found: not _is_going(found), FUNCTION_REVISIONS
        )
        assert again["metadata"]["uid"] != before["metadata"]["uid"]

    run(scenario, admitted=False)


def _is_going(found: Object) -> bool:
    return "deletionTimestamp" in found["metadata"]


def test_where_users_cannot_be_asked_what_is_new_comes_and_what_is_old_stays() -> None:
    async def scenario(world: World) -> None:
        await world.install(function(version="v1", revisionHistoryLimit=2))
        world.functions.synced = False
        await world.install(function(version="v2", revisionHistoryLimit=2))
        await world.settled("resize", (1, ACTIVE), (2, ACTIVE))
        world.functions.synced = True
        world.functions.wake("resize")
        await world.settled("resize", (1, INACTIVE), (2, ACTIVE))

    run(scenario)


def test_without_strict_references_nobody_is_asked() -> None:
    async def scenario(world: World) -> None:
        spec: dict[str, Any] = {"revisionHistoryLimit": 4, "strictReferences": False}
        world.users.known = [use("shop-0123456", by_label(channel="stable"))]
        await world.install(function(version="v1", labels={"channel": "stable"}, **spec))
        await world.install(function(version="v2", **spec))
        await world.settled("resize", (1, INACTIVE), (2, ACTIVE))
        await world.client.delete(FUNCTIONS, "resize", propagation="Background")
        await world.settled("resize")

    run(scenario)


@pytest.mark.parametrize(
    ("spec", "complaint"),
    [
        ({"activeRevisionLimit": 2}, "spec.activeRevisionLimit: Invalid value: 2 active revisions"),
        ({"activeRevisionLimit": 0}, "spec.activeRevisionLimit"),
        ({"revisionHistoryLimit": -1}, "spec.revisionHistoryLimit"),
        ({"package": "Not A Package"}, "spec.package: Invalid value"),
        ({"revisionActivationPolicy": "Sometimes"}, "spec.revisionActivationPolicy"),
    ],
)
def test_what_breaks_a_rule_is_refused_with_its_place(spec: Object, complaint: str) -> None:
    async def scenario(world: World) -> None:
        made = function()
        with pytest.raises(ApiError) as caught:
            await world.client.create(FUNCTIONS, {**made, "spec": {**made["spec"], **spec}})
        assert caught.value.code == 422
        assert complaint in caught.value.message

    run(scenario)


def test_other_packages_have_one_active_revision_and_are_checked_no_more() -> None:
    async def scenario(world: World) -> None:
        made = function(kind="Provider", activeRevisionLimit=2, revisionHistoryLimit=0)
        with pytest.raises(ApiError, match="only functions may have several"):
            await world.client.create(PROVIDERS, made)
        found = await world.client.create(PROVIDERS, function(kind="Provider"))
        assert found["spec"]["activeRevisionLimit"] == 1

    run(scenario)


def test_a_revision_is_not_changed_by_hand() -> None:
    async def scenario(world: World) -> None:
        await world.install(function(version="v1"))
        for spec, place in (
            ({"image": package("v2")}, "spec.image"),
            ({"revision": 7}, "spec.revision"),
        ):
            with pytest.raises(ApiError, match=place):
                await world.client.patch(FUNCTION_REVISIONS, name_of("v1"), change={"spec": spec})

    run(scenario)


def test_without_the_feature_a_limit_is_refused_and_never_ignored() -> None:
    store, runtime = MemoryStore(), MemoryRuntime()

    async def before(world: World) -> None:
        await world.install(function(version="v1", activeRevisionLimit=2, revisionHistoryLimit=2))
        await world.write(function("other"))

    async def after(world: World) -> None:
        with pytest.raises(ApiError, match="FunctionRevisions, which is disabled"):
            await world.client.create(FUNCTIONS, seed())
        found = await world.until(
            "resize", lambda found: condition(found, "Installed")["reason"] == "FeatureOff"
        )
        assert "keep 1" in condition(found, "Installed")["message"]
        await world.served(name_of("v1"), name_of("v1", "other"))
        await world.install(function(version="v1", revisionHistoryLimit=2))

    run(before, store=store, runtime=runtime)
    run(after, store=store, several=False)


def test_after_a_restart_everything_is_served_again_and_nothing_is_looked_into() -> None:
    store = MemoryStore()
    first, second = MemoryRuntime(), MemoryRuntime()
    spec: dict[str, Any] = {"revisionHistoryLimit": 3, "activeRevisionLimit": 2}

    async def before(world: World) -> None:
        for version in ("v1", "v2", "v3"):
            await world.install(function(version=version, **spec))

    async def after(world: World) -> None:
        await world.served(name_of("v2"), name_of("v3"))
        await world.settled("resize", (1, INACTIVE), (2, ACTIVE), (3, ACTIVE))

    run(before, store=store, runtime=first)
    assert first.closed
    run(after, store=store, runtime=second)
    assert second.asked == []


def test_a_revision_of_others_is_not_taken_over() -> None:
    async def scenario(world: World) -> None:
        theirs = {
            "apiVersion": "pkg.crossplane.io/v1",
            "kind": "FunctionRevision",
            "metadata": {"name": name_of("v1")},
            "spec": {"image": "theirs", "revision": 1, "desiredState": INACTIVE},
        }
        await world.client.create(FUNCTION_REVISIONS, theirs)
        await world.write(function(version="v1"))
        found = await world.until(
            "resize", lambda found: condition(found, "Installed").get("reason") == "NameTaken"
        )
        assert name_of("v1") in condition(found, "Installed")["message"]

    run(scenario, admitted=False)


def test_what_somebody_else_serves_is_at_the_address_that_the_function_says() -> None:
    async def scenario(world: World) -> None:
        there = {"polyver.dev/endpoint": "http://127.0.0.1:9443"}
        await world.install(function(version="v1", annotations=there))
        name = revision_name("resize", package("v1"))
        found = await world.until(name, _answers, FUNCTION_REVISIONS)
        assert found["status"]["endpoint"] == "http://127.0.0.1:9443"
        moved = {"polyver.dev/endpoint": "http://127.0.0.1:9444"}
        await world.write(function(version="v1", annotations=moved))
        await world.until(
            name,
            lambda found: (found.get("status") or {}).get("endpoint") == "http://127.0.0.1:9444",
            FUNCTION_REVISIONS,
        )

    run(scenario)


def test_one_revision_can_be_served_by_somebody_else() -> None:
    async def scenario(world: World) -> None:
        await world.install(function(version="v1"))
        change = {"metadata": {"annotations": {"polyver.dev/endpoint": "http://127.0.0.1:9443"}}}
        await world.client.patch(FUNCTION_REVISIONS, name_of("v1"), change=change)
        await world.until(
            name_of("v1"),
            lambda found: (found.get("status") or {}).get("endpoint") == "http://127.0.0.1:9443",
            FUNCTION_REVISIONS,
        )
        await world.write(function(version="v1", labels={"a": "b"}))
        found = await world.until(
            name_of("v1"), lambda found: "a" in found["metadata"]["labels"], FUNCTION_REVISIONS
        )
        assert found["metadata"]["annotations"]["polyver.dev/endpoint"] == "http://127.0.0.1:9443"
        assert world.runtime.asked == [package("v1")]

    run(scenario)


def test_the_older_version_of_the_api_shows_the_same() -> None:
    async def scenario(world: World) -> None:
        older = GroupVersionResource("pkg.crossplane.io", "v1beta1", "functions", namespaced=False)
        made = {**seed(), "apiVersion": "pkg.crossplane.io/v1beta1"}
        await world.client.create(older, made)
        name = made["metadata"]["name"]
        await world.until(name, lambda found: "currentRevision" in (found.get("status") or {}))
        found = await world.client.get(older, name)
        assert found["spec"]["activeRevisionLimit"] == 2
        with pytest.raises(ApiError, match="more than revisionHistoryLimit keeps"):
            await world.client.patch(older, name, change={"spec": {"activeRevisionLimit": 5}})

    run(scenario)


def test_functions_whose_packages_take_long_hold_up_nobody_else() -> None:
    class Stuck(MemoryRuntime):
        async def digest(self, package: str, *, address: str = "") -> str:
            if "stuck" in package:
                await asyncio.Event().wait()
            return await super().digest(package, address=address)

    async def scenario(world: World) -> None:
        for number in range(9):
            await world.write(function(f"stuck{number}"))
        await world.install(function("resize"))

    run(scenario, runtime=Stuck())
