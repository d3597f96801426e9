"""Sends each shape while another client asks for something small, and notes what that waits for."""

from __future__ import annotations

import http.client
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tests.hostile.kinds import DEFINITIONS, ROWS, THING, THINGS, thing
from tests.hostile.serving import CONFIG_MAPS, Prober, Server, running

if TYPE_CHECKING:
    from tests.hostile.shapes import Shape

__all__ = ["Measured", "measured", "prepared", "table"]

http.client._MAXHEADERS = 10_000  # type: ignore[attr-defined]  # warnings, as kube-apiserver sends
_SETTLED = 3


@dataclass(frozen=True)
class Measured:
    """Delays of other clients while the server handles the requests of a shape."""

    shape: Shape
    statuses: tuple[int, ...]
    seconds: float
    """Until the last answer to the shape itself."""
    worst: float
    typical: float
    """The 99th percentile of the delays."""
    waited: float
    """The longest time until an answer, whatever else the machine did."""
    asked: int


@contextmanager
def prepared(folder: Path, *, rows: int) -> Iterator[Server]:
    """A server with the kinds and objects that the shapes need."""
    with running(folder) as server:
        client = server.client()
        assert client.send("POST", DEFINITIONS, THING).status == 201
        while client.ask("GET", THINGS).status != 200:
            time.sleep(0.05)
        assert client.send("POST", CONFIG_MAPS, {"metadata": {"name": "probed"}}).status == 201
        namespace = {"metadata": {"name": "rows"}}
        assert client.send("POST", "/api/v1/namespaces", namespace).status == 201
        for number in range(rows):
            row = thing(f"row-{number:05}", plain=["a", "b"], entries=[{"name": "n"}])
            assert client.send("POST", ROWS, row).status == 201
        client.close()
        yield server


def measured(server: Server, shape: Shape, size: int) -> Measured:
    """Send a shape and watch what another client sees meanwhile."""
    client = server.client()
    with Prober(server) as prober:
        began = time.perf_counter()
        statuses = tuple(shape.send(client, min(size, shape.largest)))
        seconds = time.perf_counter() - began
        asked = len(prober.delays)
        while len(prober.delays) < asked + 2 * _SETTLED:  # what goes on in the background
            time.sleep(0.01)
    client.close()
    worst = max(each.counted for each in prober.delays)
    waited = max(each.seconds for each in prober.delays)
    typical = prober.percentile(0.99)
    return Measured(shape, statuses, seconds, worst, typical, waited, len(prober.delays))


def table(rows: list[Measured]) -> str:
    """All shapes with the delay that others saw, in milliseconds."""
    lines = [f"{'shape':36} {'answered in':>11} {'p99':>8} {'worst':>8} {'waited':>8}  statuses"]
    for row in rows:
        times = f"{row.seconds:9.2f} s {row.typical * 1000:5.0f} ms {row.worst * 1000:5.0f} ms"
        told = " ".join(map(str, dict.fromkeys(row.statuses)))
        lines.append(f"{row.shape.name:36} {times} {row.waited * 1000:5.0f} ms  {told}")
    return "\n".join(lines)
