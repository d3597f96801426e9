"""Conversion webhooks side by side: polyver's, and controller-runtime's real one in Go.

CPU of the servers alone, read from their clocks; rounds of all take turns, so that a noisy machine
is noisy for each. That they answer the same is looked at before anything is timed.
"""

from __future__ import annotations

import argparse
import datetime
import http.client
import os
import shutil
import socket
import ssl
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median, quantiles
from typing import Any

import msgspec
from bench.objects import review

from polyver.cli._conversions import load_converters
from polyver.tls import Authority
from polyver.webhook import Converters
from polyver.webhook import review as answer_review

HERE = Path(__file__).parent
GOALS = {("https", 1): 5.0, ("https", 100): 10.0, ("process", 100): 12.0}


@dataclass
class Server:
    """A webhook in a process of its own."""

    name: str
    process: subprocess.Popen[bytes]
    port: int
    took: list[float] = field(default_factory=list)
    """Microseconds of CPU for each object, round by round."""

    def cpu(self) -> float:
        """The seconds that it has used so far, threads that have ended included."""
        # What clock_getcpuclockid(3) gives for a process.
        return time.clock_gettime((~self.process.pid << 3) | 2)


def build_peer() -> Path:
    """The webhook in Go, built from its public module."""
    if shutil.which("go") is None:
        sys.exit("there is no Go on this machine, so NOTHING was compared: install it")
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "polyver" / "peers"
    made = cache / "conversion"
    cache.mkdir(parents=True, exist_ok=True)
    subprocess.run(["go", "build", "-o", str(made), "./conversion"], cwd=HERE / "peers", check=True)
    return made


@contextmanager
def servers(folder: Path, peer: Path) -> Iterator[list[Server]]:
    """All of them, with the same certificate."""
    now = datetime.datetime.now(datetime.UTC)
    pair = Authority.create("bench", now=now).server("localhost", "127.0.0.1", now=now)
    certificate, key = folder / "tls.crt", folder / "tls.key"
    certificate.write_bytes(pair.certificate)
    key.write_bytes(pair.key)
    tls = ["--tls-cert", str(certificate), "--tls-key", str(key)]
    own = [sys.executable, "-m", "polyver", "serve", *tls, "--port"]
    with ExitStack() as undo:

        def start(name: str, command: Sequence[str], port: int) -> Server:
            process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
            undo.callback(process.wait)
            undo.callback(process.terminate)
            until_open(port)
            return Server(name, process, port)

        ports = [free_port() for _ in range(3)]
        at = f"127.0.0.1:{ports[0]}"
        go = [str(peer), "-listen", at, "-cert", str(certificate), "-key", str(key)]
        rules = ["--conversions", str(HERE / "kinds" / "rules.yaml")]
        functions = ["--kinds", str(HERE / "kinds" / "functions.py")]
        yield [
            start("controller-runtime", go, ports[0]),
            start("polyver, rules", [*own, str(ports[1]), *rules], ports[1]),
            start("polyver, functions", [*own, str(ports[2]), *functions], ports[2]),
        ]


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port: int = found.getsockname()[1]
        return port


def until_open(port: int) -> None:
    for _ in range(300):
        with socket.socket() as tried:
            if tried.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.1)
    sys.exit(f"nobody listens at {port}")


# What is asked.


def connect(server: Server) -> http.client.HTTPSConnection:
    context = ssl._create_unverified_context()
    return http.client.HTTPSConnection("127.0.0.1", server.port, context=context, timeout=60)


def ask(connection: http.client.HTTPSConnection, body: bytes) -> bytes:
    headers = {"content-type": "application/json"}
    connection.request("POST", "/convert?timeout=30s", body, headers)
    answer = connection.getresponse()
    text = answer.read()
    if answer.status != 200:
        sys.exit(f"{answer.status}: {text[:500]!r}")
    return text


def converted(answer: bytes) -> list[dict[str, Any]]:
    found = msgspec.json.decode(answer)["response"]
    if found["result"]["status"] != "Success":
        sys.exit(f"not converted: {found['result']}")
    objects: list[dict[str, Any]] = found["convertedObjects"]
    return [without_nothing(each) for each in objects]


def without_nothing(value: Any) -> Any:
    """A value without fields that are empty: Go writes some that were not there."""
    if isinstance(value, dict):
        kept = {key: without_nothing(each) for key, each in value.items()}
        return {key: each for key, each in kept.items() if each not in (None, {}, [])}
    return [*map(without_nothing, value)] if isinstance(value, list) else value


def check_equal(all_of_them: Sequence[Server], body: bytes) -> None:
    answers = [converted(ask(connect(each), body)) for each in all_of_them]
    for server, answer in zip(all_of_them, answers, strict=True):
        if answer != answers[0]:
            sys.exit(f"{server.name} answers something else than {all_of_them[0].name}")


# What is timed.


def round_of(server: Server, body: bytes, connections: int, requests: int, count: int) -> None:
    """One round: so many requests over so many connections that stay open."""
    ready = threading.Barrier(connections + 1)
    done = threading.Barrier(connections + 1)

    def client() -> None:
        connection = connect(server)
        ask(connection, body)
        ready.wait()
        for _ in range(requests):
            ask(connection, body)
        done.wait()
        connection.close()

    threads = [threading.Thread(target=client) for _ in range(connections)]
    for each in threads:
        each.start()
    ready.wait()
    began = server.cpu()
    done.wait()
    server.took.append((server.cpu() - began) / (requests * connections * count) * 1e6)
    for each in threads:
        each.join()


def over_https(peer: Path, rounds: int) -> None:
    with tempfile.TemporaryDirectory() as folder, servers(Path(folder), peer) as found:
        for size in (1000, 3000, 10000):
            for count in (1, 100, 500):
                check_equal(found, review(count, size))
        head = ["https", "objects", "bytes", "conns", *(each.name for each in found), "times less"]
        print_row(head)
        for size in (1000, 3000, 10000):
            for count in (1, 100, 500):
                for connections in (1, 8):
                    measure(found, size, count, connections, rounds)


def measure(found: Sequence[Server], size: int, count: int, connections: int, rounds: int) -> None:
    body = review(count, size)
    requests = max(1, 400 // count // connections)
    for each in found:
        each.took.clear()
    for _ in range(rounds):
        for each in found:
            round_of(each, body, connections, requests, count)
    row = ["https", count, len(body) // count, connections, *map(told, found)]
    print_row([*row, ratio("https", size, count, found[0].took, found[1].took)])


def told(server: Server) -> str:
    low, high = min(server.took), max(server.took)
    return f"{median(server.took):.1f} µs ({low:.1f}…{high:.1f})"


def ratio(where: str, size: int, count: int, theirs: list[float], ours: list[float]) -> str:
    times = median(theirs) / median(ours)
    goal = GOALS.get((where, count)) if size == 3000 else None
    return f"{times:.1f}" + (f" (goal {goal:g})" if goal else "")


FORMS = {"rules": "rules.yaml", "functions": "functions.py", "classes": "classes.py"}


def forms() -> dict[str, Converters]:
    """The kind of the comparison, once for each way to say how it is converted."""
    places = {form: str(HERE / "kinds" / file) for form, file in FORMS.items()}
    return {
        form: load_converters([place]) if form == "rules" else load_converters([], [place])
        for form, place in places.items()
    }


def in_process(peer: Path, rounds: int) -> None:
    """The handlers alone: no TLS, no HTTP."""
    ours = forms()
    heads = ["controller-runtime", *(f"polyver, {form}" for form in ours), "times less"]
    print_row(["process", "objects", "bytes", "", *heads])
    for size in (1000, 3000, 10000):
        for count in (1, 100, 500):
            body = review(count, size)
            check_equal_in_process(peer, ours, body)
            took = timed_in_process(peer, ours, body, rounds, count)
            row = ["process", count, len(body) // count, "", *map(spread, took.values())]
            times = ratio("process", size, count, took["go"], took["rules"])
            print_row([*row, times])


def check_equal_in_process(peer: Path, ours: Mapping[str, Converters], body: bytes) -> None:
    expected = converted(go_answer(peer, body, 1).stdout)
    for form, converters in ours.items():
        if converted(answer_review(body, converters).body) != expected:
            sys.exit(f"polyver, {form} answers something else than controller-runtime")


def timed_in_process(
    peer: Path, ours: Mapping[str, Converters], body: bytes, rounds: int, count: int
) -> dict[str, list[float]]:
    """Microseconds of CPU for each object; the peer and each form take turns."""
    took: dict[str, list[float]] = {"go": [], **{form: [] for form in ours}}
    for _ in range(rounds):
        took["go"] += [each / count for each in go_rounds(peer, body, 10)]
        for form, converters in ours.items():
            for _ in range(10 if form == "rules" else 3):
                began = time.process_time_ns()
                answer_review(body, converters)
                took[form].append((time.process_time_ns() - began) / count / 1e3)
    return took


def spread(took: Sequence[float]) -> str:
    low, *_, high = quantiles(took, n=10)
    return f"{median(took):.1f} µs ({low:.1f}…{high:.1f})"


def go_rounds(peer: Path, body: bytes, rounds: int) -> list[float]:
    told = go_answer(peer, body, rounds + 5).stderr
    return [int(line) / 1e3 for line in told.split()][5:]


def go_answer(peer: Path, body: bytes, rounds: int) -> subprocess.CompletedProcess[bytes]:
    with tempfile.NamedTemporaryFile(suffix=".json") as file:
        file.write(body)
        file.flush()
        command = [str(peer), "-review", file.name, "-rounds", str(rounds)]
        return subprocess.run(command, capture_output=True, check=True)


def print_row(cells: Sequence[object]) -> None:
    widths = [8, 7, 6, 5, *[26] * (len(cells) - 5), 16]
    print("  ".join(f"{cell!s:<{width}}" for cell, width in zip(cells, widths, strict=True)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=7)
    given = parser.parse_args()
    peer = build_peer()
    print("CPU of the server for each object; the median of all rounds, the least and the most\n")
    in_process(peer, given.rounds)
    print()
    over_https(peer, given.rounds)


if __name__ == "__main__":
    main()
