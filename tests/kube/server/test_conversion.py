"""Conversions without a webhook, what is remembered, and what failures are answered with."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.deadlines import HANG

from polyver.apis.conversion import Converter, FunctionEdge
from polyver.kube.objects.kinds import ResourceKind
from polyver.kube.objects.status import ApiError
from polyver.kube.server.conversion import (
    Cache,
    ConversionStrategy,
    InProcessConversion,
    RenamingConversion,
    UnreadableObject,
    WebhookConversion,
    conversion_of,
    unreadable,
    unreadable_list,
    unreadable_update,
)

Object = dict[str, Any]
RECORDED = Path(__file__).parents[2] / "kube" / "recorded"
SOURCE = "conversion webhook for ex.io/v1, Kind=Gadget"


def gadget(name: str = "a", revision: str = "7") -> Object:
    metadata = {"name": name, "uid": f"u-{name}", "resourceVersion": revision, "generation": 2}
    return {"apiVersion": "ex.io/v1", "kind": "Gadget", "metadata": metadata, "spec": {"size": 1}}


def converted(conversion: ConversionStrategy, obj: Object, version: str = "ex.io/v2") -> Object:
    return asyncio.run(conversion.convert(obj, version))


def by(there: Callable[[Object], Object]) -> InProcessConversion:
    """A conversion between two versions by a function, which is its own way back."""
    edge = FunctionEdge("v1", "v2", there, there)
    return InProcessConversion(Converter("ex.io", "Gadget", ["v1", "v2"], [edge]))


def test_a_definition_says_which_conversion_it_wants() -> None:
    kind = ResourceKind("ex.io", "v1", "Gadget", "gadgets", "gadget", namespaced=True)
    assert isinstance(conversion_of(None, kind), RenamingConversion)
    assert isinstance(conversion_of({"strategy": "None"}, kind), RenamingConversion)
    hook = {"clientConfig": {"url": "https://h/"}, "conversionReviewVersions": ["v1"]}
    assert isinstance(
        conversion_of({"strategy": "Webhook", "webhook": hook}, kind), WebhookConversion
    )


@given(st.dictionaries(st.text(max_size=2), st.lists(st.integers(), max_size=2), max_size=3))
def test_without_conversion_nothing_changes_but_the_version(spec: Object) -> None:
    original = gadget() | {"spec": spec}
    found = converted(RenamingConversion(), original)
    assert found == original | {"apiVersion": "ex.io/v2"}
    assert original["apiVersion"] == "ex.io/v1"
    assert found["spec"] is not original["spec"]


def test_a_function_converts_in_process_and_may_change_what_it_is_given() -> None:
    def negated(obj: Object) -> Object:
        obj["spec"]["size"] *= -1
        return obj

    original = gadget()
    found = converted(by(negated), original)
    assert found == gadget() | {"apiVersion": "ex.io/v2", "spec": {"size": -1}}
    assert original == gadget()


def test_a_function_may_not_touch_what_a_webhook_may_not() -> None:
    def greedy(obj: Object) -> Object:
        metadata = obj["metadata"] | {"generation": 9, "name": "b", "finalizers": ["f"]}
        return obj | {"apiVersion": "ex.io/v9", "kind": "Other", "metadata": metadata}

    assert converted(by(greedy), gadget()) == gadget() | {"apiVersion": "ex.io/v2"}


def _fails(obj: Object) -> Object:
    raise ValueError(f"the password of {obj['metadata']['name']}")


def test_what_a_function_raises_is_for_the_log_alone(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(ApiError) as refused:
        converted(by(_fails), gadget())
    told = "Gadget a cannot be converted to v2; see the log"
    assert refused.value.message == f"{SOURCE} failed: {told}"
    assert "the password of a" in capsys.readouterr().err


def test_a_function_that_takes_too_long_is_not_waited_for() -> None:
    waits = threading.Event()

    def slow(obj: Object) -> Object:
        waits.wait(HANG)
        return obj

    edge = FunctionEdge("v1", "v2", slow, slow)
    converter = Converter("ex.io", "Gadget", ["v1", "v2"], [edge])

    async def asked() -> None:
        with pytest.raises(ApiError) as refused:
            await InProcessConversion(converter, timeout=0.01).convert(gadget(), "ex.io/v2")
        assert refused.value.message == f"{SOURCE} failed: no answer within 0 s"
        waits.set()

    asyncio.run(asked())


def test_a_function_is_not_called_for_what_is_in_the_version_already() -> None:
    assert converted(by(_fails), gadget(), "ex.io/v1") == gadget()


class Counting:
    """Remembers what it was asked; fails, or waits, when it is told to."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str, str]] = []
        self.fails = False
        self.ready = asyncio.Event()
        self.ready.set()

    async def convert(self, obj: Object, api_version: str) -> Object:
        metadata = obj["metadata"]
        self.asked.append((metadata["name"], metadata["resourceVersion"], api_version))
        await self.ready.wait()
        if self.fails:
            raise ApiError(500, "", "no")
        return await RenamingConversion().convert(obj, api_version)

    async def close(self) -> None:
        pass


def test_one_state_of_an_object_is_converted_once_for_each_version() -> None:
    async def run() -> list[tuple[str, str, str]]:
        counting = Counting()
        cache = Cache(counting)
        for obj in (gadget("a"), gadget("a"), gadget("b"), gadget("a", "8"), gadget("a")):
            assert (await cache.convert(obj, "ex.io/v2"))["metadata"] == obj["metadata"]
        await cache.convert(gadget("a"), "ex.io/v3")
        await cache.close()
        return counting.asked

    asked = asyncio.run(run())
    states = [("a", "7"), ("b", "7"), ("a", "8")]
    assert asked == [(*state, "ex.io/v2") for state in states] + [("a", "7", "ex.io/v3")]


def test_what_is_remembered_cannot_be_changed_from_outside() -> None:
    async def run() -> Object:
        cache = Cache(Counting())
        (await cache.convert(gadget(), "ex.io/v2"))["spec"]["size"] = 99
        return await cache.convert(gadget(), "ex.io/v2")

    assert asyncio.run(run())["spec"] == {"size": 1}


def test_those_who_ask_at_once_share_an_answer_even_if_the_first_goes_away() -> None:
    async def run() -> tuple[int, Object]:
        counting = Counting()
        counting.ready.clear()
        cache = Cache(counting)
        first = asyncio.create_task(cache.convert(gadget(), "ex.io/v2"))
        second = asyncio.create_task(cache.convert(gadget(), "ex.io/v2"))
        await asyncio.sleep(0)
        first.cancel()
        counting.ready.set()
        found = await second
        return len(counting.asked), found

    calls, found = asyncio.run(run())
    assert (calls, found["apiVersion"]) == (1, "ex.io/v2")


def test_failures_are_not_remembered() -> None:
    async def run() -> Object:
        counting = Counting()
        cache = Cache(counting)
        counting.fails = True
        with pytest.raises(ApiError):
            await cache.convert(gadget(), "ex.io/v2")
        counting.fails = False
        return await cache.convert(gadget(), "ex.io/v2")

    assert asyncio.run(run())["apiVersion"] == "ex.io/v2"


def test_what_was_never_stored_is_not_remembered() -> None:
    async def run() -> int:
        counting = Counting()
        cache = Cache(counting)
        unstored = gadget(revision="")
        await cache.convert(unstored, "ex.io/v2")
        await cache.convert(unstored, "ex.io/v2")
        return len(counting.asked)

    assert asyncio.run(run()) == 2


def test_what_was_not_used_for_longest_is_forgotten_first() -> None:
    async def run() -> list[str]:
        counting = Counting()
        two = 2 * len(json.dumps(gadget(), separators=(",", ":")))
        cache = Cache(counting, most_bytes=two)
        for name in ("a", "b", "a", "c", "a", "b"):
            await cache.convert(gadget(name), "ex.io/v2")
        return [name for name, _, _ in counting.asked]

    assert asyncio.run(run()) == ["a", "b", "c", "b"]


def test_closing_ends_what_is_being_asked() -> None:
    async def run() -> bool:
        counting = Counting()
        counting.ready.clear()
        cache = Cache(counting)
        waiting = asyncio.create_task(cache.convert(gadget(), "ex.io/v2"))
        await asyncio.sleep(0)
        await cache.close()
        await asyncio.gather(waiting, return_exceptions=True)
        return waiting.cancelled()

    assert asyncio.run(run())


# What requests are answered with.


def recorded(case: str) -> list[Object]:
    """The refusals of a case, as they were recorded."""
    steps = json.loads((RECORDED / f"{case}.json").read_text())
    return [step["body"] for step in steps if step.get("status") == 500]


def stored(case: str, problem: str) -> tuple[ResourceKind, UnreadableObject]:
    group = f"{case}.ex.io"
    kind = ResourceKind(group, "v2", "Gadget", "gadgets", "gadget", namespaced=True, custom=True)
    text = f"conversion webhook for {group}/v1, Kind=Gadget failed: {problem}"
    return kind, UnreadableObject(case, "a", 7, ApiError(500, "", text))


def stable(error: ApiError) -> Object:
    text = json.dumps(error.status).replace("revision=7", "revision=<rv>")
    found: Object = json.loads(text)
    return found


def test_a_get_and_a_delete_are_answered_as_recorded() -> None:
    case = "conversion-failure-of-one-object"
    got, _, deleted = recorded(case)
    assert stable(unreadable(*stored(case, "this one cannot be converted"))) == got == deleted


def test_a_list_is_answered_as_recorded() -> None:
    case = "conversion-webhook-unreachable"
    refused = "dial tcp 127.0.0.1:1: connect: connection refused"
    kind, found = stored(case, f'Post "https://127.0.0.1:1/convert?timeout=30s": {refused}')
    got, listed, _ = recorded(case)
    assert stable(unreadable(kind, found)) == got
    assert stable(unreadable_list(kind, [found])) == listed


def test_a_list_with_many_failures_tells_of_a_hundred() -> None:
    kind, _ = stored("x", "")
    many = [UnreadableObject("", f"a{n}", 7, ApiError(500, "", "no")) for n in range(120)]
    error = unreadable_list(kind, many)
    assert error.message.endswith(" revision=7: no (and 99 more)")
    assert error.details is not None
    causes = error.details["causes"]
    assert causes[0]["field"] == "/registry/x.ex.io/gadgets/a0"
    truncated = {"reason": "FieldValueTooMany", "message": "too many errors, the list is truncated"}
    assert (len(causes), causes[-1]) == (101, truncated)


def test_an_update_tells_which_revision_could_not_be_read() -> None:
    _, found = stored("x", "no")
    error = unreadable_update(found)
    told = "conversion webhook for x.ex.io/v1, Kind=Gadget failed: no"
    assert error.message == f"object not decodable revision=7: {told}"
    assert (error.code, error.reason, error.details) == (500, "", None)
