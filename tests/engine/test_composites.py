"""The controller of composite resources: what users see of it."""

from __future__ import annotations

from dataclasses import replace

from tests.capabilities.revisions import composing
from tests.capabilities.revisions.running import config, passing
from tests.engine.composing import MAPS, World, is_ready, run

from polyver.capabilities.revisions.messages import Ready, Request, Resource, Response


def settings(request: Request) -> Response:
    """Composes one ConfigMap, which is ready when it is there."""
    spec = request.observed.composite.resource["spec"]
    ready = Ready.TRUE if "settings" in request.observed.resources else Ready.FALSE
    made = Resource(config(size=str(spec.get("size", 0))), ready=ready)
    desired = replace(request.desired, resources={**request.desired.resources, "settings": made})
    return passing(request, desired=desired)


async def installed(world: World) -> str:
    await world.define()
    await world.install("a", 1, settings)
    return await world.compose(composing.composition())


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
