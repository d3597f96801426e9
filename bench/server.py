"""`polyver up` beside kube-apiserver and etcd: start, memory, and the CPU of requests.

python -m bench.server [--quick]

CPU of all processes of a server, read from their clocks; rounds of both take turns, so that a
noisy machine is noisy for each. That they answer the same is looked at before anything is timed.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import tempfile
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import uvloop
from bench.asking import Connection
from bench.planes import Plane, kubernetes, polyver
from bench.rows import Row, print_rows

GROUP = "bench.polyver.dev"
KINDS = f"/apis/{GROUP}/v1"
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"
METADATA = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io,application/json"
APPLY = "application/apply-patch+yaml"
PEER = "kube-apiserver + etcd"
LISTED = 1000
CONNECTIONS = 4
WATCHERS = 100


@dataclass(frozen=True)
class Size:
    """How much is done."""

    rounds: int
    starts: int
    requests: int
    """Of each connection in a round."""
    lists: int
    changes: int
    """That every watcher sees in a round."""
    capabilities: bool


FULL = Size(rounds=7, starts=5, requests=100, lists=10, changes=20, capabilities=True)
QUICK = Size(rounds=3, starts=2, requests=40, lists=3, changes=10, capabilities=False)


# The kind and its objects.


def definition() -> dict[str, Any]:
    text, number = {"type": "string"}, {"type": "integer"}
    container: dict[str, Any] = {
        "type": "object",
        "required": ["name", "image"],
        "properties": {
            "name": {**text, "minLength": 1},
            "image": text,
            "args": {"type": "array", "items": text},
            "env": {
                "type": "array",
                "items": {
                    "type": "object",
                    "required": ["name"],
                    "properties": {"name": text, "value": text},
                },
                "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": ["name"],
            },
            "limits": {"type": "object", "additionalProperties": text},
        },
    }
    spec = {
        "type": "object",
        "required": ["size"],
        "properties": {
            "size": {**number, "minimum": 0, "maximum": 100000},
            "policy": {**text, "enum": ["Always", "Never"], "default": "Always"},
            "containers": {
                "type": "array",
                "items": container,
                "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": ["name"],
            },
            "notes": {"type": "object", "additionalProperties": text},
        },
    }
    schema = {"type": "object", "properties": {"spec": spec, "status": {"type": "object"}}}
    columns = [
        {"name": "Size", "type": "integer", "jsonPath": ".spec.size"},
        {"name": "Image", "type": "string", "jsonPath": ".spec.containers[0].image"},
    ]
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": schema},
        "subresources": {"status": {}},
        "additionalPrinterColumns": columns,
    }
    names = {"plural": "gadgets", "singular": "gadget", "kind": "Gadget", "listKind": "GadgetList"}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"gadgets.{GROUP}"},
        "spec": {"group": GROUP, "names": names, "scope": "Namespaced", "versions": [version]},
    }


def gadget(name: str, size: int = 1) -> dict[str, Any]:
    """An object of 1 KB."""
    env = [{"name": f"SETTING_{each}", "value": f"value-{each}-of-{name}"} for each in range(4)]
    limits = {"cpu": "500m", "memory": "256Mi"}
    containers = [
        {"name": each, "image": f"registry.example.com/{each}:1.{size}", "args": ["--verbose"]}
        | {"env": env, "limits": limits}
        for each in ("web", "proxy")
    ]
    return {
        "apiVersion": f"{GROUP}/v1",
        "kind": "Gadget",
        "metadata": {"name": name, "labels": {"app": "bench", "tier": "front"}},
        "spec": {"size": size, "containers": containers, "notes": {"owner": "team-a"}},
    }


def path_of(namespace: str, name: str = "") -> str:
    return f"{KINDS}/namespaces/{namespace}/gadgets" + (f"/{name}" if name else "")


async def prepare(plane: Plane) -> None:
    """The kind, its namespaces, and objects to be listed."""
    connection = await Connection.open(plane)
    await connection.ask("POST", DEFINITIONS, definition())
    for name in ("one", "many", "made"):
        namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
        await connection.ask("POST", "/api/v1/namespaces", namespace)
    while True:
        found = await connection.ask("GET", f"{DEFINITIONS}/gadgets.{GROUP}")
        states = {each["type"]: each["status"] for each in found["status"].get("conditions", ())}
        if states.get("Established") == "True":
            break
        await asyncio.sleep(0.05)
    await asyncio.sleep(1)  # the real server serves it a little later than it says
    for number in range(LISTED):
        await connection.ask("POST", path_of("many"), gadget(f"gadget-{number:04}", number))
    connection.close()


# That both answer the same.

_OWN = frozenset(
    # The descriptions of a table's columns are prose, which each writes in its own words.
    {"uid", "resourceVersion", "creationTimestamp", "time", "continue", "description"}
)


def without_own(value: Any) -> Any:
    """An answer without what each server chooses for itself."""
    if isinstance(value, dict):
        return {key: without_own(each) for key, each in value.items() if key not in _OWN}
    return [*map(without_own, value)] if isinstance(value, list) else value


async def answers(plane: Plane) -> list[Any]:
    """One answer to each of the requests that will be timed."""
    connection = await Connection.open(plane)
    watching = await Connection.open(plane)
    ask, found = connection.ask, []
    found.append(await ask("POST", path_of("one"), gadget("same")))
    lines = await watching.lines(
        f"{path_of('one')}?watch=1&resourceVersion={found[0]['metadata']['resourceVersion']}"
    )
    found.append(await ask("GET", path_of("one", "same")))
    found.append(await ask("PUT", path_of("one", "same"), changed(found[-1], 2)))
    applied = gadget("applied")
    for size in (1, 2):
        applied["spec"]["size"] = size
        found.append(await ask("PATCH", applying("one", "applied"), applied, media=APPLY))
    for query, accept in LISTS.values():
        found.append(await ask("GET", f"{path_of('many')}{query}", accept=accept))
    found += [json.loads(line) for line in await lines.take(3)]
    for name in ("same", "applied"):
        await ask("DELETE", path_of("one", name))
    watching.close()
    connection.close()
    return [without_own(each) for each in found]


async def check_equal(planes: Sequence[Plane]) -> None:
    first, second = [await answers(each) for each in planes]
    for number, (one, other) in enumerate(zip(first, second, strict=True)):
        if one != other:
            raise SystemExit(f"answer {number} is not the same:\n{one!s:.2000}\n{other!s:.2000}")


# What is asked in a round.

LISTS = {
    "list of 1,000": ("", "application/json"),
    "list of 1,000 by 500": ("?limit=500", "application/json"),
    "list of 1,000 as a table by 500": ("?limit=500", TABLE),
    "list of 1,000, metadata alone": ("", METADATA),
}
Work = Callable[[Connection, str, int], Awaitable[object]]
"""What one connection does: its own name, and how often."""


def changed(obj: dict[str, Any], size: int) -> dict[str, Any]:
    return {**obj, "spec": {**obj["spec"], "size": size}}


def applying(namespace: str, name: str) -> str:
    return f"{path_of(namespace, name)}?fieldManager=bench&force=true"


async def create(connection: Connection, own: str, count: int) -> None:
    for number in range(count):
        body = json.dumps(gadget(f"{own}-{number}", number)).encode()
        await connection.raw("POST", path_of("made"), body)


async def get(connection: Connection, own: str, count: int) -> None:
    del own
    for number in range(count):
        await connection.raw("GET", path_of("many", f"gadget-{number:04}"))


async def update(connection: Connection, own: str, count: int) -> None:
    """Replace objects that this connection has created."""
    for number in range(count):
        path = path_of("made", f"{own}-{number}")
        obj = json.loads(await connection.raw("GET", path))
        await connection.raw("PUT", path, json.dumps(changed(obj, number + 1000)).encode())


async def apply(connection: Connection, own: str, count: int) -> None:
    """Apply to one object again and again, each time with a change."""
    for number in range(count):
        body = json.dumps(gadget(f"{own}-0", number + 2000)).encode()
        await connection.raw("PATCH", applying("made", f"{own}-0"), body, media=APPLY)


async def listed(connection: Connection, own: str, count: int, *, query: str, accept: str) -> None:
    del own
    for _ in range(count):
        await connection.raw("GET", f"{path_of('many')}{query}", accept=accept)


async def round_of(plane: Plane, work: Work, own: str, connections: int, count: int) -> float:
    """Seconds of CPU for each request."""
    opened = [await Connection.open(plane) for _ in range(connections)]
    for each in opened:
        await each.raw("GET", "/readyz")
    began = plane.cpu()
    await asyncio.gather(
        *(work(each, f"{own}-{number}", count) for number, each in enumerate(opened))
    )
    used = plane.cpu() - began
    for each in opened:
        each.close()
    return used / (connections * count)


async def watch_round(plane: Plane, changes: int) -> float:
    """Seconds of CPU for each event that a watcher gets, the writes included."""
    writer = await Connection.open(plane)
    path = path_of("many", "gadget-0000")
    obj = await writer.ask("GET", path)
    opened = [await Connection.open(plane) for _ in range(WATCHERS)]
    found = await writer.ask("GET", f"{path_of('many')}?limit=1")
    query = f"?watch=1&resourceVersion={found['metadata']['resourceVersion']}"
    streams = [await each.lines(path_of("many") + query) for each in opened]
    began = plane.cpu()
    reading = [asyncio.create_task(each.take(changes)) for each in streams]
    for number in range(changes):
        obj = await writer.ask("PUT", path, changed(obj, obj["spec"]["size"] + number + 1))
        # Each is told before the next is made: a watcher that gets many at once costs less.
        await asyncio.sleep(0.02)
    seen = await asyncio.gather(*reading)
    used = plane.cpu() - began
    last = [json.loads(lines[-1])["object"]["metadata"]["resourceVersion"] for lines in seen]
    assert set(last) == {obj["metadata"]["resourceVersion"]}, "a watcher missed a change"
    for each in (writer, *opened):
        each.close()
    return used / (changes * WATCHERS)


@dataclass(frozen=True)
class Measured:
    """One piece of work, and how it is told."""

    name: str
    unit: str
    scale: float
    once: Callable[[Plane, int], Awaitable[float]]
    """One round; each has its number."""
    goal: float | None = None


def all_work(size: Size) -> Iterator[Measured]:
    requests, lists = size.requests, size.lists

    def over(work: Work, count: int, connections: int = CONNECTIONS) -> Any:
        async def once(plane: Plane, number: int) -> float:
            return await round_of(plane, work, f"round-{number}", connections, count)

        return once

    yield Measured("create of 1 KB, durable", "ms", 1e3, over(create, requests), goal=4)
    yield Measured("get of 1 KB", "ms", 1e3, over(get, requests), goal=4)
    yield Measured("get and update of 1 KB", "ms", 1e3, over(update, requests))
    yield Measured("server-side apply of 1 KB", "ms", 1e3, over(apply, requests))
    for name, (query, accept) in LISTS.items():
        work = partial(listed, query=query, accept=accept)
        goal = 4 if not query and accept == "application/json" else None
        yield Measured(name, "ms", 1e3, over(work, lists, 1), goal)

    async def watched(plane: Plane, number: int) -> float:
        del number
        return await watch_round(plane, size.changes)

    yield Measured(f"an event to each of {WATCHERS} watchers", "µs", 1e6, watched)


async def measure(planes: Sequence[Plane], work: Measured, rounds: int) -> Row:
    took: list[list[float]] = [[], []]
    for number in range(rounds):
        for plane, found in zip(planes, took, strict=True):
            found.append(await work.once(plane, number) * work.scale)
    theirs, ours = map(tuple, took)
    name = f"{work.name}, CPU"
    return Row(name=name, unit=work.unit, peer=PEER, theirs=theirs, ours=ours, goal=work.goal)


# Starts and memory.


def start_rows(folder: Path, size: Size) -> Iterator[Row]:
    """On empty folders, again and again."""
    took: list[list[Plane]] = [[], []]
    memory: list[list[float]] = [[], []]
    for number in range(size.starts + 1):
        for at, start in enumerate((kubernetes, polyver)):
            with start(folder / f"start-{at}-{number}") as plane:
                if number:  # the first one reads programs from the disk
                    plane.rest()
                    took[at].append(plane)
                    memory[at].append(plane.memory())
    yield from _ready_rows("start to /readyz", took, goal=4, most=1)
    yield _row("memory after the start", "MB", memory, most=90)


def _ready_rows(
    name: str, took: Sequence[Sequence[Plane]], goal: float | None, most: float | None
) -> Iterator[Row]:
    wall = [[each.ready_wall for each in planes] for planes in took]
    cpu = [[each.ready_cpu for each in planes] for planes in took]
    yield _row(name, "s", wall, goal, most)
    yield _row(f"{name}, CPU", "s", cpu, goal)


def _row(
    name: str,
    unit: str,
    took: Sequence[Sequence[float]],
    goal: float | None = None,
    most: float | None = None,
) -> Row:
    theirs, ours = map(tuple, took)
    return Row(name=name, unit=unit, peer=PEER, theirs=theirs, ours=ours, goal=goal, most=most)


def capability_rows(folder: Path) -> Iterator[Row]:
    """What each capability adds to the memory after a start."""
    for number, names in enumerate(
        ("", "apis", "apis,functions", "apis,definitions", "apis,compositions", _ALL)
    ):
        with polyver(folder / f"having-{number}", "--capabilities", names) as plane:
            plane.rest()
            found = (plane.memory(),)
        name = f"memory with --capabilities {names}" if names else "memory without capabilities"
        yield Row(name=name, unit="MB", ours=found)


_ALL = "apis,functions,definitions,compositions"


def load_rows(folder: Path, size: Size) -> Iterator[Row]:
    """The CPU of requests, memory after them, and another start with all that they have left."""
    with ExitStack() as undo:
        planes = [
            undo.enter_context(start(folder / plane))
            for plane, start in (("peer", kubernetes), ("ours", polyver))
        ]
        yield from _loaded(planes, size)
    took: list[list[Plane]] = [[], []]
    for _ in range(size.starts):
        for at, (name, start) in enumerate((("peer", kubernetes), ("ours", polyver))):
            with start(folder / name) as plane:
                took[at].append(plane)
    yield from _ready_rows("restart with the objects of all that", took, None, None)


def _loaded(planes: Sequence[Plane], size: Size) -> Iterator[Row]:
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        for plane in planes:
            runner.run(prepare(plane))
        runner.run(check_equal(planes))
        for plane in planes:
            plane.rest()
        yield _row("memory with 1,000 objects", "MB", [[each.memory()] for each in planes])
        for work in all_work(size):
            yield runner.run(measure(planes, work, size.rounds))
        for plane in planes:
            plane.rest()
        yield _row("memory after all that", "MB", [[each.memory()] for each in planes])


def rows(*, quick: bool = False) -> Iterator[Row]:
    """All that is measured, as it is."""
    size = QUICK if quick else FULL
    with tempfile.TemporaryDirectory(prefix="polyver-bench-") as name:
        folder = Path(name)
        yield from start_rows(folder, size)
        yield from load_rows(folder, size)
        if size.capabilities:
            yield from capability_rows(folder)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer rounds")
    given = parser.parse_args()
    print("CPU of all processes of a server for each request or event; medians (least…most)\n")
    print_rows(rows(quick=given.quick))


if __name__ == "__main__":
    main()
