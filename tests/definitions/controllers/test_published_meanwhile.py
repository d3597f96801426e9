"""A version that is added while the controller reads the definition is published, too."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from tests.deadlines import HANG
from tests.definitions.controllers.world import DEFINITIONS, World, run
from tests.definitions.samples import SYSTEM, definition, templated

from polyver.client import find
from polyver.definitions.controllers import definitions

if TYPE_CHECKING:
    import pytest

FIRST, SECOND = templated("1.0.0"), templated("1.1.0")


def test_a_version_that_is_added_while_the_definition_is_read_is_published(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    added = asyncio.Event()

    async def scenario(world: World) -> None:
        async def overtaken(*arguments: Any) -> Any:
            """Read an object; before the controller gets it, a user adds a version."""
            found = await find(*arguments)
            noted = found["metadata"].get("annotations") if found is not None else None
            if "changed" in (noted or {}) and not added.is_set():
                added.set()
                made = definition("web", FIRST, SECOND)
                await world.client.apply(DEFINITIONS, made, manager="test", force=True)
                for _ in range(20):  # time for the watch to report the change
                    await asyncio.sleep(0.005)
            return found

        monkeypatch.setattr(definitions, "find", overtaken)
        await world.publish(FIRST)
        change = {"metadata": {"annotations": {"changed": "yes"}}}
        await world.client.patch(DEFINITIONS, "web", SYSTEM, change=change, manager="test")
        async with asyncio.timeout(HANG):
            while await world.published() != 2:
                await asyncio.sleep(0.005)

    asyncio.run(run(scenario))
    assert added.is_set()
