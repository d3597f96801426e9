"""The cost of a step of a rollout, by the number of applications that follow the definition.

python -m bench.rollouts --applications 10000 100000

A step brings a release to a fixed number of the applications; later the rollout is aborted, and
they return. Measured is the CPU time of `polyver up`: for the step with the preflight before it,
for the pause after it, and for the return.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bench.applications import Connection, Server, create, definition, rest, running, until, write
from bench.rows import Found, Row, say

STEP = 1000
PAUSE = 20.0
"""Seconds of the pause during which the CPU time is measured."""
SAMPLE = 100
POLICIES = "/apis/polyver.dev/v1alpha1/namespaces/vela-system/rolloutpolicies"
ROLLOUT = "/apis/polyver.dev/v1alpha1/namespaces/vela-system/rollouts/d0-1.0.1"


def policy(step: int) -> dict[str, Any]:
    target = {"group": "core.oam.dev", "kind": "ComponentDefinition", "name": "d0"}
    steps = [{"count": step, "pause": {"until": "Approved"}}, {"share": "100%"}]
    return {
        "apiVersion": "polyver.dev/v1alpha1",
        "kind": "RolloutPolicy",
        "metadata": {"name": "careful"},
        "spec": {"targets": [target], "steps": steps, "preflight": {"sample": SAMPLE}},
    }


def status(connection: Connection) -> dict[str, Any]:
    found = connection.ask("GET", ROLLOUT.rpartition("/")[0])["items"]
    return (found[0].get("status") or {}) if found else {}


def ready(connection: Connection) -> bool:
    found = connection.ask("GET", f"{POLICIES}/careful").get("status") or {}
    return any(each["status"] == "True" for each in found.get("conditions") or ())


def measured(server: Server, size: int, step: int) -> dict[str, float]:
    """Return the seconds of CPU time, and of waiting, for one rollout."""
    write(server.connect(), definition("d0", "1.0.0"))
    create(server, size, 0, 1)
    connection = server.connect()
    until(lambda: connection.counts().get("applied", 0) >= size, 7200, every=2)
    rest(server, 600)
    connection = server.connect()
    connection.raw("POST", POLICIES, policy(step))
    until(lambda: ready(connection), 600)
    rest(server, 600)
    found: dict[str, float] = {}
    began, cpu = time.monotonic(), server.cpu
    write(connection, definition("d0", "1.0.0", "1.0.1"))
    until(lambda: status(connection).get("state") == "Paused", 3600, every=0.5)
    assert status(connection)["dependents"]["healthy"] == step
    found["step waited"] = time.monotonic() - began
    rest(server, 600)
    found["step CPU"] = server.cpu - cpu
    cpu = server.cpu
    time.sleep(PAUSE)
    found["pause CPU"] = server.cpu - cpu
    began, cpu = time.monotonic(), server.cpu
    aborted = connection.ask("GET", ROLLOUT)
    aborted["spec"]["aborted"] = True
    connection.raw("PUT", ROLLOUT, aborted)
    until(lambda: status(connection).get("state") == "Aborted", 600)
    until(lambda: not status(connection)["dependents"]["moved"], 3600, every=0.5)
    found["return waited"] = time.monotonic() - began
    rest(server, 600)
    found["return CPU"] = server.cpu - cpu
    say(f"{size:,} applications: {found}, {server.memory}")
    return found


def rows(*, quick: bool = False, sizes: tuple[int, ...] = ()) -> Iterator[Found]:
    sizes = sizes or ((200, 1000) if quick else (2_000, 10_000))
    step = min(STEP, sizes[0] // 4)
    taken = {}
    for size in sizes:
        say(f"a rollout to {step:,} of {size:,} applications")
        with (
            tempfile.TemporaryDirectory(prefix="polyver-bench-") as folder,
            running(Path(folder)) as server,
        ):
            taken[size] = measured(server, size, step)
    for size, found in taken.items():
        name = f"a step of a rollout to {step:,} of {size:,} applications"
        yield Row(name=f"{name}, until all are healthy", unit="s", ours=(found["step waited"],))
        yield Row(name=f"{name}, CPU", unit="s", ours=(found["step CPU"],))
        yield Row(name=f"{name}, CPU of its return", unit="s", ours=(found["return CPU"],))
    first, last = (taken[each]["step CPU"] for each in (min(sizes), max(sizes)))
    told = f"CPU of a step, {max(sizes):,} applications beside {min(sizes):,}"
    yield Row(name=told, unit="×", ours=(last / first,), most=2)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--applications", type=int, nargs="+", default=[2_000, 10_000])
    for each in rows(sizes=tuple(parser.parse_args().applications)):
        print(each, flush=True)


if __name__ == "__main__":
    main()
