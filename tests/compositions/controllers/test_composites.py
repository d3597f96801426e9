"""The controller of composite resources: what users see of it."""

from __future__ import annotations

import asyncio
import base64
from dataclasses import replace
from typing import Any

import pytest
from tests.compositions import composing
from tests.compositions.controllers.composing import (
    BUCKETS,
    COMPOSITIONS,
    MAPS,
    REVISIONS,
    SECRETS,
    World,
    condition,
    is_ready,
    run,
    says,
    settings,
)
from tests.compositions.running import config, passing

from polyver.client import GroupVersionResource as Place
from polyver.client import find
from polyver.compositions.controllers.packages import FUNCTION_REVISIONS
from polyver.compositions.messages import (
    Condition,
    Ready,
    Request,
    Requirements,
    Resource,
    ResourceSelector,
    Response,
    Result,
    SchemaSelector,
    Severity,
    State,
    Status,
)
from polyver.core.plain import Object

CANARY = {"channel": "canary"}
SELECTING = composing.step(functionRevisionSelector={"matchLabels": CANARY})
NAMING = composing.step(functionRevisionRef={"name": composing.name_of("b")})


async def installed(world: World, **composition: Any) -> str:
    await world.define()
    await world.install("a", 1, settings)
    return await world.compose(composing.composition(**composition))


def test_a_composite_resource_is_composed_and_ready() -> None:
    async def scenario(world: World) -> None:
        revision = await installed(world)
        await world.bucket(size=3)
        found = await world.until(is_ready)
        assert await world.maps() == {"settings": {"size": "3"}}
        assert found["spec"]["compositionRef"] == {"name": "example"}
        assert found["spec"]["compositionRevisionRef"] == {"name": revision}
        [reference] = found["spec"]["resourceRefs"]
        made = await world.client.get(MAPS, reference["name"], "shop")
        assert made["metadata"]["ownerReferences"][0]["uid"] == found["metadata"]["uid"]
        [step] = found["status"]["pipeline"]
        assert step == {
            "step": "run",
            "function": composing.FUNCTION,
            "revision": composing.name_of("a"),
            "digest": composing.digest_of("a"),
        }

    run(scenario)


def test_what_is_composed_follows_what_is_asked_for() -> None:
    async def scenario(world: World) -> None:
        await installed(world)
        await world.bucket(size=3)
        await world.until(is_ready)
        await world.client.patch(BUCKETS, "my-bucket", change={"spec": {"size": 4}})
        await world.mapped(settings={"size": "4"})

    run(scenario)


def test_what_somebody_changes_or_deletes_is_put_back() -> None:
    async def scenario(world: World) -> None:
        await installed(world)
        await world.bucket(size=3)
        [reference] = (await world.until(is_ready))["spec"]["resourceRefs"]
        name = reference["name"]
        await world.client.patch(MAPS, name, "shop", change={"data": {"size": "5"}}, manager="me")
        await world.mapped(settings={"size": "3"})
        await world.client.delete(MAPS, name, "shop")
        await world.mapped(settings={"size": "3"})

    run(scenario)


# Which revisions.


def test_those_that_select_a_new_revision_of_a_function_move_and_others_stay() -> None:
    async def scenario(world: World) -> None:
        await world.define()
        await world.install("a", 1, settings, labels=CANARY)
        await world.compose(composing.composition("canary", SELECTING))
        await world.compose(composing.composition("others"))
        await world.bucket("one", compositionRef={"name": "canary"})
        await world.bucket("two", compositionRef={"name": "others"})
        for name in ("one", "two"):
            await world.until(is_ready, name)
        await world.install("b", 2, settings)
        moved = await world.until(_uses("b"), "two")
        assert is_ready(moved)
        assert _uses("a")(await world.client.get(BUCKETS, "one"))
        assert world.called[composing.name_of("b")] >= 1

    run(scenario)


def _uses(content: str) -> Any:
    def holds(found: Object) -> bool:
        pipeline = (found.get("status") or {}).get("pipeline") or [{}]
        return bool(pipeline[0].get("revision") == composing.name_of(content))

    return holds


def test_by_policy_a_new_revision_of_a_composition_is_taken_at_once_or_not() -> None:
    async def scenario(world: World) -> None:
        first = await installed(world, labels={"channel": "stable"})
        await world.bucket("one")
        await world.bucket("two", compositionUpdatePolicy="Manual")
        for name in ("one", "two"):
            await world.until(is_ready, name)
        second = await world.compose(composing.composition(labels=CANARY))
        await world.until(_noted(second), "one")
        assert _noted(first)(await world.client.get(BUCKETS, "two"))
        selector = {"matchLabels": CANARY}
        change = {"spec": {"compositionRevisionSelector": selector}}
        await world.client.patch(BUCKETS, "two", change=change)
        await world.until(_noted(second), "two")
        spec = {"compositionRevisionSelector": None, "compositionRevisionRef": {"name": first}}
        await world.client.patch(BUCKETS, "two", change={"spec": spec})
        found = await world.until(_noted(first), "two")
        assert found["spec"]["compositionRevisionRef"] == {"name": first}

    run(scenario)


def _noted(revision: str) -> Any:
    return lambda found: found["spec"].get("compositionRevisionRef") == {"name": revision}


async def _nothing(world: World) -> None:
    pass


async def _two_compositions(world: World) -> None:
    for name in ("a", "b"):
        await world.compose(composing.composition(name))


async def _no_function(world: World) -> None:
    await world.compose(composing.composition())


async def _inactive(world: World) -> None:
    await world.compose(composing.composition())
    await world.install("a", 1, settings, active=False)


async def _unlabelled(world: World) -> None:
    await world.compose(composing.composition("example", SELECTING))
    await world.install("a", 1, settings)


async def _labelled_inactive(world: World) -> None:
    await world.compose(composing.composition("example", SELECTING))
    await world.install("a", 1, settings, active=False, labels=CANARY)


async def _unknown_revision(world: World) -> None:
    await world.compose(composing.composition("example", NAMING))
    await world.install("a", 1, settings)


async def _named_inactive(world: World) -> None:
    await world.compose(composing.composition("example", NAMING))
    await world.install("b", 1, settings, active=False)


async def _foreign(world: World) -> None:
    name = composing.name_of("b", "others")
    step = composing.step(functionRevisionRef={"name": name})
    await world.compose(composing.composition("example", step))
    await world.install("b", 1, settings, function="others")


async def _unserved(world: World) -> None:
    await world.compose(composing.composition())
    await world.install("a", 1, "")


async def _without_credentials(world: World) -> None:
    secret = {"namespace": "shop", "name": "key"}
    given = [{"name": "key", "source": "Secret", "secretRef": secret}]
    await world.compose(composing.composition("example", composing.step(credentials=given)))
    await world.install("a", 1, settings)


@pytest.mark.parametrize(
    ("prepare", "reason"),
    [
        (_nothing, "CompositionNotFound"),
        (_two_compositions, "CompositionNotChosen"),
        (_no_function, "FunctionNotInstalled"),
        (_inactive, "NoActiveRevision"),
        (_unlabelled, "NoRevisionMatches"),
        (_labelled_inactive, "MatchingRevisionsInactive"),
        (_unknown_revision, "RevisionNotFound"),
        (_named_inactive, "RevisionInactive"),
        (_foreign, "OtherFunctionsRevision"),
        (_unserved, "RevisionNotServed"),
        (_without_credentials, "CredentialsNotFound"),
    ],
)
def test_what_cannot_be_composed_says_why_and_holds_up_nobody_else(
    prepare: Any, reason: str
) -> None:
    async def scenario(world: World) -> None:
        await world.define()
        await prepare(world)
        await world.bucket("one")
        found = await world.until(says(reason), "one")
        told = condition(found, "Synced")["message"]
        await world.until_told(reason, told)
        assert await world.maps() == {}
        # What is right is composed beside it.
        function = composing.step(function="right")
        await world.install("r", 1, settings, function="right")
        await world.compose(composing.composition("right", function))
        await world.bucket("two", compositionRef={"name": "right"}, size=2)
        await world.until(is_ready, "two")

    run(scenario)


@pytest.mark.parametrize("prepare", [_no_function, _inactive, _unserved])
def test_it_goes_on_as_soon_as_there_is_something_to_call(prepare: Any) -> None:
    async def scenario(world: World) -> None:
        await world.define()
        await prepare(world)
        await world.bucket(size=1)
        await world.until(lambda found: condition(found, "Synced").get("status") == "False")
        there = await find(world.client, FUNCTION_REVISIONS, composing.name_of("a"))
        address = await world.serve(settings)
        if there is None:
            await world.install("a", 1, address)
        else:
            await world.endpoint(there, address)
            change = {"spec": {"desiredState": "Active"}}
            await world.client.patch(FUNCTION_REVISIONS, composing.name_of("a"), change=change)
        await world.until(is_ready)

    # Nothing is tried again in time: it has to be woken.
    run(scenario, patient=True)


def test_the_reason_is_another_one_as_soon_as_that_is_so() -> None:
    async def scenario(world: World) -> None:
        await world.define()
        await world.bucket(compositionRef={"name": "example"})
        await world.until(says("CompositionNotFound"))
        obj = composing.composition("example", SELECTING)
        del obj["metadata"]["uid"]
        await world.client.create(COMPOSITIONS, obj)
        await world.until(says("RevisionNotFound"))
        await world.compose(obj)
        await world.until(says("FunctionNotInstalled"))
        await world.install("a", 1, settings, active=False)
        await world.until(says("NoRevisionMatches"))
        await world.install("b", 2, settings, active=False, labels=CANARY)
        await world.until(says("MatchingRevisionsInactive"))
        change = {"spec": {"desiredState": "Active"}}
        await world.client.patch(FUNCTION_REVISIONS, composing.name_of("b"), change=change)
        await world.until(is_ready)

    # Nothing is tried again in time: it has to be woken.
    run(scenario, patient=True)


# What comes of it.


def test_what_is_wanted_no_longer_is_removed() -> None:
    async def scenario(world: World) -> None:
        def some(request: Request) -> Response:
            size = request.observed.composite.resource["spec"]["size"]
            names = [f"m{number}" for number in range(size)]
            made = {name: Resource(config(name), ready=Ready.TRUE) for name in names}
            return passing(request, desired=replace(request.desired, resources=made))

        await world.define()
        await world.install("a", 1, some)
        await world.compose(composing.composition())
        await world.bucket(size=3)
        await world.mapped(m0={}, m1={}, m2={})
        await world.client.patch(BUCKETS, "my-bucket", change={"spec": {"size": 1}})
        await world.mapped(m0={})
        found = await world.until(lambda found: len(found["spec"]["resourceRefs"]) == 1)
        assert found["spec"]["resourceRefs"][0]["name"] == "m0"

    run(scenario)


def test_one_that_is_refused_does_not_keep_others_back() -> None:
    async def scenario(world: World) -> None:
        def some(request: Request) -> Response:
            made = {
                "fine": config("fine"),
                "broken": {**config("broken"), "data": {"a": 1}},
                "strange": {"apiVersion": "no.such/v1", "kind": "Thing", "metadata": {}},
                "astray": {"apiVersion": "v1", "kind": "ConfigMap"},
            }
            resources = {name: Resource(obj, ready=Ready.TRUE) for name, obj in made.items()}
            return passing(request, desired=State(resources=resources))

        await world.define()
        await world.install("a", 1, some)
        await world.compose(composing.composition())
        await world.bucket()
        found = await world.until(says("ReconcileError"))
        message = condition(found, "Synced")["message"]
        assert "astray (ConfigMap has no namespace)" in message
        assert "strange (no no.such/v1 Thing is served)" in message
        assert "broken" in message
        assert (await world.maps()).keys() == {"fine"}
        await world.until_told("KindNotServed", "strange (no no.such/v1 Thing is served)")

    run(scenario)


def test_what_somebody_else_controls_is_not_taken_over() -> None:
    async def scenario(world: World) -> None:
        def named(request: Request) -> Response:
            made = {"taken": Resource(config("taken", size="1"))}
            return passing(request, desired=State(resources=made))

        await world.define()
        await world.install("a", 1, named)
        await world.compose(composing.composition())
        other = await world.client.create(MAPS, {"metadata": {"name": "other"}}, "shop")
        owner = {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "name": "other",
            "uid": other["metadata"]["uid"],
            "controller": True,
        }
        metadata = {"name": "taken", "ownerReferences": [owner]}
        before = await world.client.create(MAPS, {"metadata": metadata}, "shop")
        await world.bucket()
        found = await world.until(says("ReconcileError"))
        assert "taken" in condition(found, "Synced")["message"]
        assert await world.client.get(MAPS, "taken", "shop") == before
        await world.client.delete(BUCKETS, "my-bucket")
        await world.gone("my-bucket")
        assert await world.client.get(MAPS, "taken", "shop") == before

    run(scenario)


def test_functions_have_fields_and_conditions_beside_those_of_others() -> None:
    async def scenario(world: World) -> None:
        def telling(request: Request) -> Response:
            size = request.observed.composite.resource["spec"].get("size", 0)
            status = {"small": True, "deep": {"a": size}} if size < 5 else {"deep": {"b": size}}
            said = Condition("Sized", Status.TRUE, "Known", f"{size}")
            result = Result(Severity.NORMAL, "sized it", "Sizing")
            desired = State(Resource({"status": status}))
            return passing(request, desired=desired, conditions=(said,), results=(result,))

        open_status = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
        version = composing.version()
        schema = version["schema"]["openAPIV3Schema"]
        schema["properties"]["status"] = open_status
        await world.define(version)
        await world.install("a", 1, telling)
        await world.compose(composing.composition())
        await world.bucket(size=3)
        found = await world.until(is_ready)
        assert (found["status"]["small"], found["status"]["deep"]) == (True, {"a": 3})
        assert condition(found, "Sized")["message"] == "3"
        await world.until_told("Sizing", 'pipeline step "run": sized it')
        others = {"status": {"theirs": 1, "deep": {"c": 1}}}
        await world.client.patch(
            BUCKETS, "my-bucket", change=others, subresource="status", manager="me"
        )
        await world.client.patch(BUCKETS, "my-bucket", change={"spec": {"size": 7}})
        found = await world.until(lambda found: condition(found, "Sized")["message"] == "7")
        assert "small" not in found["status"]
        assert found["status"]["theirs"] == 1
        assert found["status"]["deep"] == {"b": 7, "c": 1}

    run(scenario)


def test_a_status_that_the_kind_does_not_have_is_told() -> None:
    async def scenario(world: World) -> None:
        def telling(request: Request) -> Response:
            return passing(request, desired=State(Resource({"status": {"unknown": 1}})))

        await world.define()
        made = await world.install("a", 1, telling)
        await world.compose(composing.composition())
        await world.bucket()
        found = await world.until(says("InvalidStatus"))
        assert "unknown" in condition(found, "Synced")["message"]
        assert [each["revision"] for each in found["status"]["pipeline"]] == [
            made["metadata"]["name"]
        ]

    run(scenario)


def test_a_pipeline_that_fails_changes_nothing_but_conditions() -> None:
    async def scenario(world: World) -> None:
        def moody(request: Request) -> Response:
            if request.observed.composite.resource["spec"].get("size") == 9:
                return passing(request, results=(Result(Severity.FATAL, "too large"),))
            said = Condition("Sized", Status.TRUE, "Known", "ok")
            return replace(settings(request), conditions=(said,))

        await world.define()
        await world.install("a", 1, moody)
        await world.compose(composing.composition())
        await world.bucket(size=3)
        before = await world.until(is_ready)
        await world.client.patch(BUCKETS, "my-bucket", change={"spec": {"size": 9}})
        found = await world.until(says("FatalResult"))
        assert condition(found, "Ready")["status"] == "True"
        assert condition(found, "Sized")["status"] == "Unknown"
        assert found["status"]["pipeline"] == before["status"]["pipeline"]
        assert await world.maps() == {"settings": {"size": "3"}}
        await world.client.patch(BUCKETS, "my-bucket", change={"spec": {"size": 2}})
        found = await world.until(is_ready)
        assert condition(found, "Sized")["status"] == "True"
        assert "message" not in condition(found, "Synced")

    run(scenario)


def test_connection_details_are_published_to_a_secret_of_its_own() -> None:
    async def scenario(world: World) -> None:
        def connected(request: Request) -> Response:
            seen = request.observed.resources.get("settings")
            host = seen.connection_details.get("host", b"none") if seen else b"none"
            composed = config()
            composed |= {"kind": "Secret", "stringData": {}}
            del composed["data"]
            own = Resource(connection_details={"host": host, "hidden": b"x"})
            return passing(request, desired=State(own))

        await world.define(connectionSecretKeys=["host"])
        await world.install("a", 1, connected)
        await world.compose(composing.composition())
        await world.bucket(writeConnectionSecretToRef={"namespace": "shop", "name": "my-details"})
        found = await world.until(is_ready)
        secret = await world.client.get(SECRETS, "my-details", "shop")
        assert secret["data"] == {"host": base64.b64encode(b"none").decode()}
        assert secret["type"] == "connection.crossplane.io/v1alpha1"
        assert found["status"]["connectionDetails"]["lastPublishedTime"]
        await world.client.create(SECRETS, {"metadata": {"name": "mine"}}, "shop")
        taken = {"namespace": "shop", "name": "mine"}
        await world.bucket("two", writeConnectionSecretToRef=taken)
        found = await world.until(says("ReconcileError"), "two")
        assert "has another owner" in condition(found, "Synced")["message"]
        await world.client.delete(BUCKETS, "my-bucket")
        while await find(world.client, SECRETS, "my-details", "shop") is not None:
            await asyncio.sleep(0.002)

    run(scenario)


def test_functions_see_what_they_ask_for() -> None:
    async def scenario(world: World) -> None:
        wanted = Requirements(
            resources={
                "one": ResourceSelector("v1", "ConfigMap", match_name="plan", namespace="shop"),
                "none": ResourceSelector("v1", "ConfigMap", match_name="no", namespace="shop"),
            },
            extra_resources={"all": ResourceSelector("v1", "ConfigMap", match_labels={"a": "b"})},
            schemas={
                "bucket": SchemaSelector(composing.VERSION, composing.KIND),
                "map": SchemaSelector("v1", "ConfigMap"),
            },
        )

        def asking(request: Request) -> Response:
            if "one" not in request.required_resources:
                return passing(request, requirements=wanted)
            [one] = request.required_resources["one"]
            every = [each.resource["metadata"]["name"] for each in request.extra_resources["all"]]
            fields = request.required_schemas["bucket"]["properties"]
            seen = config(
                one=one.resource["data"]["size"],
                none=str(request.required_resources["none"]),
                every=",".join(sorted(every)),
                kinds=",".join(each.resource["kind"] for each in request.extra_resources["all"]),
                fields=",".join(sorted(fields)),
                map=str(request.required_schemas["map"]),
            )
            made = {"seen": Resource(seen, ready=Ready.TRUE)}
            return passing(request, requirements=wanted, desired=State(resources=made))

        await world.define()
        for name, labels in {"plan": {"a": "b"}, "other": {"a": "b"}, "third": {}}.items():
            metadata = {"name": name, "labels": labels}
            await world.client.create(MAPS, {"metadata": metadata, "data": {"size": name}}, "shop")
        await world.install("a", 1, asking)
        await world.compose(composing.composition())
        await world.bucket()
        await world.until(is_ready)
        [seen] = (await world.maps()).values()
        assert seen == {
            "one": "plan",
            "none": "()",
            "every": "other,plan",
            "kinds": "ConfigMap,ConfigMap",
            "fields": "apiVersion,kind,metadata,spec,status",
            "map": "{}",
        }

    run(scenario)


def test_a_function_that_asks_for_a_kind_that_is_not_served_waits_for_it() -> None:
    async def scenario(world: World) -> None:
        def asking(request: Request) -> Response:
            wanted = {"x": ResourceSelector("ex.io/v1", "Thing", match_labels={})}
            return passing(request, requirements=Requirements(resources=wanted))

        await world.define()
        await world.install("a", 1, asking)
        await world.compose(composing.composition())
        await world.bucket()
        found = await world.until(says("KindNotServed"))
        assert "no ex.io/v1 Thing is served" in condition(found, "Synced")["message"]
        await world.kind("ex.io", "Thing", "things")
        await world.until(is_ready)

    run(scenario, patient=True)


# Its life.


def test_one_that_is_paused_is_left_alone() -> None:
    async def scenario(world: World) -> None:
        await installed(world)
        await world.bucket(size=3)
        await world.until(is_ready)
        pause = {"metadata": {"annotations": {"crossplane.io/paused": "true"}}, "spec": {"size": 4}}
        await world.client.patch(BUCKETS, "my-bucket", change=pause)
        await world.until(says("ReconcilePaused"))
        assert await world.maps() == {"settings": {"size": "3"}}
        pause = {"metadata": {"annotations": {"crossplane.io/paused": None}}}
        await world.client.patch(BUCKETS, "my-bucket", change=pause)
        await world.mapped(settings={"size": "4"})
        await world.until(is_ready)

    run(scenario)


def test_with_a_composite_resource_goes_what_it_is_composed_of() -> None:
    async def scenario(world: World) -> None:
        await installed(world)
        await world.bucket(size=3)
        await world.until(is_ready)
        await world.client.delete(BUCKETS, "my-bucket")
        await world.gone("my-bucket")
        await world.mapped()

    run(scenario)


def test_one_that_crossplane_held_goes_as_well() -> None:
    async def scenario(world: World) -> None:
        await installed(world)
        await world.bucket(size=3)
        await world.until(is_ready)
        held = {"metadata": {"finalizers": ["composite.apiextensions.crossplane.io", "ex.io/me"]}}
        await world.client.patch(BUCKETS, "my-bucket", change=held)
        await world.client.delete(BUCKETS, "my-bucket")
        found = await world.until(lambda found: found["metadata"]["finalizers"] == ["ex.io/me"])
        assert condition(found, "Ready")["reason"] == "Deleting"
        await world.client.patch(BUCKETS, "my-bucket", change={"metadata": {"finalizers": None}})
        await world.gone("my-bucket")

    run(scenario)


def test_one_in_a_namespace_has_its_resources_there() -> None:
    async def scenario(world: World) -> None:
        def local(request: Request) -> Response:
            made = {"local": {"apiVersion": "v1", "kind": "ConfigMap"}}
            resources = {name: Resource(obj, ready=Ready.TRUE) for name, obj in made.items()}
            return passing(request, desired=State(resources=resources))

        await world.define(scope="Namespaced")
        await world.install("a", 1, local)
        revision = await world.compose(composing.composition())
        place = Place(composing.GROUP, "v1alpha1", "acmebuckets")
        for space in ("shop", "default"):
            obj = composing.bucket(namespace=space)
            obj["metadata"] = {"name": "my-bucket", "namespace": space}
            await world.client.create(place, obj)
        for space in ("shop", "default"):
            found = await world.until(is_ready, namespace=space, resource=place)
            inside = found["spec"]["crossplane"]
            assert inside["compositionRevisionRef"] == {"name": revision}
            [reference] = inside["resourceRefs"]
            assert (await world.client.get(MAPS, reference["name"], space))["metadata"]["uid"]

    run(scenario)


def test_of_several_versions_functions_see_the_referenceable_one() -> None:
    async def scenario(world: World) -> None:
        versions = composing.version("v1", referenceable=False), composing.version("v1alpha1")
        await world.define(*versions, conversion={"strategy": "None"})
        await world.install("a", 1, settings)
        await world.compose(composing.composition())
        obj = {**composing.bucket(size=2), "apiVersion": f"{composing.GROUP}/v1"}
        obj["metadata"] = {"name": "my-bucket"}
        await world.client.create(replace(BUCKETS, version="v1"), obj)
        found = await world.until(is_ready)
        [reference] = found["spec"]["resourceRefs"]
        made = await world.client.get(MAPS, reference["name"], "shop")
        assert made["metadata"]["ownerReferences"][0]["apiVersion"] == composing.VERSION

    run(scenario)


def test_a_composition_that_is_deleted_is_told() -> None:
    async def scenario(world: World) -> None:
        revision = await installed(world)
        await world.bucket(size=3)
        await world.until(is_ready)
        await world.client.delete(COMPOSITIONS, "example")
        await world.client.delete(REVISIONS, revision)
        await world.until(says("CompositionNotFound"))
        assert await world.maps() == {"settings": {"size": "3"}}

    run(scenario, patient=True)


CREDENTIAL = "s3cr3t/of the shop"


def _fatal(request: Request) -> Response:
    token = request.credentials["key"]["token"].decode()
    conditions = (Condition("LoggedIn", Status.FALSE, "Refused", f"no login with {token}"),)
    warned = Result(Severity.WARNING, f"{token} is old, {base64.b64encode(token.encode())!r}")
    failed = Result(Severity.FATAL, f"login with {[token]} failed")
    return passing(request, conditions=conditions, results=(warned, failed))


def _raises(request: Request) -> Response:
    raise ValueError(f"no login with {request.credentials['key']['token'].decode()}")


def _refused(request: Request) -> Response:
    made = config(name="login")
    made["metadata"]["labels"] = {"login": request.credentials["key"]["token"].decode()}
    return passing(request, desired=replace(request.desired, resources={"a": Resource(made)}))


@pytest.mark.parametrize("function", [_fatal, _raises, _refused])
def test_messages_of_functions_and_servers_show_no_credentials(
    function: Any, capfd: pytest.CaptureFixture[str]
) -> None:
    async def scenario(world: World) -> None:
        await world.define()
        secret = {"metadata": {"name": "key"}, "stringData": {"token": CREDENTIAL}}
        await world.client.create(SECRETS, secret, "shop")
        where = {"namespace": "shop", "name": "key"}
        given = {"name": "key", "source": "Secret", "secretRef": where}
        step = composing.step(credentials=[given])
        await world.compose(composing.composition("example", step))
        await world.install("a", 1, function)
        await world.bucket()
        found = await world.until(lambda found: condition(found, "Synced").get("status") == "False")
        assert "***" in condition(found, "Synced")["message"]
        while not any("***" in message for _, message in await world.told()):
            await asyncio.sleep(0.002)
        seen = f"{found['status']} {await world.told()} {capfd.readouterr()}"
        encoded = base64.b64encode(CREDENTIAL.encode()).decode()
        assert CREDENTIAL not in seen
        assert encoded not in seen

    run(scenario)
