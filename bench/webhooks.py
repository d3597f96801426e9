"""Conversion webhooks side by side: polyver's, and controller-runtime's real one in Go.

CPU of the servers alone, read from their clocks; rounds of all take turns, so that a noisy machine
is noisy for each. That they answer the same is looked at before anything is timed.
"""

from __future__ import annotations

import argparse
import datetime
import http.client
import itertools
import os
import shutil
import socket
import ssl
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import IO, Any, NamedTuple

import msgspec
from bench.objects import FIELD, ITEMS, review
from bench.rows import Row, print_rows

from polyver.apis.commands.conversions import load_converters
from polyver.apis.conversion import ANNOTATION
from polyver.kube.http.tls import Authority
from polyver.webhook import Reviews

HERE = Path(__file__).parent
PEER = "controller-runtime"
RULES = "rules"
CODE = ("functions", "classes")
GOALS = {
    (RULES, "", 1): 2.5,
    (RULES, "", 100): 8.0,
    (RULES, "", 500): 8.0,
    (RULES, FIELD, 100): 6.0,
    (RULES, ITEMS, 100): 3.0,
    ("functions", "", 100): 2.0,
    ("classes", "", 100): 1.5,
}
"""The goals over HTTPS for objects of 3 KB: by the form of the conversion, the preserved fields and
the number of objects in a review.
"""


@dataclass
class Server:
    """A webhook in a process of its own."""

    name: str
    process: subprocess.Popen[bytes]
    port: int
    took: list[float] = field(default_factory=list)
    """Microseconds of CPU for each object, round by round."""

    @property
    def url(self) -> str:
        return f"https://127.0.0.1:{self.port}/convert?timeout=30s"

    def cpu(self) -> float:
        """The seconds that it has used so far, threads that have ended included."""
        # What clock_getcpuclockid(3) gives for a process.
        return time.clock_gettime((~self.process.pid << 3) | 2)


class Peer(NamedTuple):
    """What is written in Go."""

    webhook: Path
    client: Path
    """Asks any of them, as API servers do."""


def build_peer() -> Peer:
    """The webhook in Go, built from its public module, and who asks it."""
    if shutil.which("go") is None:
        sys.exit("there is no Go on this machine, so NOTHING was compared: install it")
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "polyver" / "peers"
    cache.mkdir(parents=True, exist_ok=True)
    made = Peer(cache / "conversion", cache / "client")
    for each in made:
        command = ["go", "build", "-o", str(each), f"./{each.name}"]
        subprocess.run(command, cwd=HERE / "peers", check=True)
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
    command = ["serve", *tls, "--port"]
    own = [sys.executable, "-m", "polyver", *command]
    with ExitStack() as undo:

        def start(name: str, command: Sequence[str], port: int) -> Server:
            process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
            undo.callback(process.wait)
            undo.callback(process.terminate)
            until_open(port)
            return Server(name, process, port)

        ports = [free_port() for _ in range(4)]
        at = f"127.0.0.1:{ports[0]}"
        go = [str(peer), "-listen", at, "-cert", str(certificate), "-key", str(key)]
        rules = ["--conversions", str(HERE / "kinds" / "rules.yaml")]
        forms = {RULES: rules} | {
            form: ["--kinds", str(HERE / "kinds" / f"{form}.py")] for form in CODE
        }
        yield [
            start(PEER, go, ports[0]),
            *(
                start(form, [*own, str(port), *named], port)
                for port, (form, named) in zip(ports[1:], forms.items(), strict=True)
            ),
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
    """A value without fields that are empty: Go writes some that were not there.

    The annotation with the preserved fields is left out as well: the peer loses these fields.
    """
    if isinstance(value, dict):
        kept = {key: without_nothing(each) for key, each in value.items() if key != ANNOTATION}
        return {key: each for key, each in kept.items() if each not in (None, {}, [])}
    return [*map(without_nothing, value)] if isinstance(value, list) else value


def check_equal(all_of_them: Sequence[Server], body: bytes) -> None:
    answers = [converted(ask(connect(each), body)) for each in all_of_them]
    for server, answer in zip(all_of_them, answers, strict=True):
        if answer != answers[0]:
            sys.exit(f"{server.name} answers something else than {all_of_them[0].name}")


# What is timed.


@dataclass(frozen=True)
class Load:
    """What is asked in a round: the same review, over connections that stay open."""

    client: Path
    body: Path
    size: int
    count: int
    connections: int
    preserved: str = ""

    @property
    def requests(self) -> int:
        """Over each of the connections; enough that nothing is new to a server."""
        return max(1600 // self.count // self.connections, 2)

    @property
    def command(self) -> list[str]:
        many = ["-connections", str(self.connections), "-requests", str(self.requests)]
        return [str(self.client), "-body", str(self.body), *many]


def round_of(server: Server, load: Load) -> None:
    """One round."""
    command = [*load.command, "-url", server.url]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        expect(process.stdout, b"ready")
        began = server.cpu()
        process.stdin.write(b"\n")
        process.stdin.flush()
        expect(process.stdout, b"done")
        objects = load.requests * load.connections * load.count
        server.took.append((server.cpu() - began) / objects * 1e6)


def expect(lines: IO[bytes], word: bytes) -> None:
    if lines.readline().strip() != word:
        sys.exit("the client failed")


def over_https(
    peer: Peer,
    rounds: int,
    sizes: Sequence[int],
    counts: Sequence[int],
    connections: Sequence[int],
) -> Iterator[Row]:
    with tempfile.TemporaryDirectory() as folder, servers(Path(folder), peer.webhook) as found:
        for size, count in itertools.product(sizes, counts):
            check_equal(found, review(count, size))
        for size, count, many in itertools.product(sizes, counts, connections):
            body = Path(folder) / "review.json"
            body.write_bytes(review(count, size))
            yield from measure(found, Load(peer.client, body, size, count, many), rounds)
        # The peer drops the preserved fields, as its versions do not have them.
        for preserved, size in itertools.product((FIELD, ITEMS), sizes):
            check_equal(found[:2], review(100, size, preserved=preserved))
            body.write_bytes(review(100, size, preserved=preserved))
            yield from measure(found[:2], Load(peer.client, body, size, 100, 8, preserved), rounds)


def measure(found: Sequence[Server], load: Load, rounds: int) -> Iterator[Row]:
    for each in found:
        each.took.clear()
    for _ in range(rounds):
        for each in found:
            round_of(each, load)
    what = f"{described(load.count, load.size)}, {load.connections} at once"
    what += f", {load.preserved}" if load.preserved else ""
    theirs, *own = found
    for each in own:
        yield Row(
            name=f"conversion by {each.name} over HTTPS, {what}",
            unit="µs",
            ours=tuple(each.took),
            peer=theirs.name,
            theirs=tuple(theirs.took),
            goal=goal_of(each.name, load),
        )


def described(count: int, size: int) -> str:
    return f"{count} × {size // 1000} KB"


def goal_of(form: str, load: Load) -> float | None:
    return GOALS.get((form, load.preserved, load.count)) if load.size == 3000 else None


def forms() -> dict[str, Reviews]:
    """The kind of the comparison, once for each way to say how it is converted."""
    rules = load_converters([str(HERE / "kinds" / "rules.yaml")])
    in_python = {form: load_converters([], [str(HERE / "kinds" / f"{form}.py")]) for form in CODE}
    return {
        RULES: Reviews(rules),
        **{form: Reviews(found) for form, found in in_python.items()},
    }


def in_process(
    peer: Path, rounds: int, sizes: Sequence[int], counts: Sequence[int]
) -> Iterator[Row]:
    """The handlers alone: no TLS, no HTTP."""
    ours = forms()
    for size, count in itertools.product(sizes, counts):
        body = review(count, size)
        check_equal_in_process(peer, ours, body)
        took = timed_in_process(peer, ours, body, rounds, count)
        for form in ours:
            yield Row(
                name=f"conversion by {form}, in process, {described(count, size)}",
                unit="µs",
                ours=tuple(took[form]),
                peer=PEER,
                theirs=tuple(took[PEER]),
            )


def check_equal_in_process(peer: Path, ours: Mapping[str, Reviews], body: bytes) -> None:
    expected = converted(go_answer(peer, body, 1).stdout)
    for form, reviews in ours.items():
        if converted(reviews.answer(body).body) != expected:
            sys.exit(f"polyver, {form} answers something else than {PEER}")
        check_unknown_kept(form, reviews)


def check_unknown_kept(form: str, reviews: Reviews) -> None:
    """Fields that no version is known to have are kept, whatever is said of speed; not by Go."""
    body = review(1, 3000).replace(b'"spec":{', b'"spec":{"unknown":{"a":[1.50,null]},')
    if form != "classes" and b'"unknown":{"a":[1.5' not in reviews.answer(body).body:
        sys.exit(f"polyver, {form} does not keep a field that is unknown")


def timed_in_process(
    peer: Path, ours: Mapping[str, Reviews], body: bytes, rounds: int, count: int
) -> dict[str, list[float]]:
    """Microseconds of CPU for each object, round by round; the peer and each form take turns."""
    took: dict[str, list[float]] = {PEER: [], **{form: [] for form in ours}}
    for _ in range(rounds):
        took[PEER].append(median(go_rounds(peer, body, 10)) / count)
        for form, reviews in ours.items():
            once = []
            for _ in range(3 if form in CODE else 10):
                began = time.process_time_ns()
                reviews.answer(body)
                once.append((time.process_time_ns() - began) / count / 1e3)
            took[form].append(median(once))
    return took


def go_rounds(peer: Path, body: bytes, rounds: int) -> list[float]:
    told = go_answer(peer, body, rounds + 5).stderr
    return [int(line) / 1e3 for line in told.split()][5:]


def go_answer(peer: Path, body: bytes, rounds: int) -> subprocess.CompletedProcess[bytes]:
    with tempfile.NamedTemporaryFile(suffix=".json") as file:
        file.write(body)
        file.flush()
        command = [str(peer), "-review", file.name, "-rounds", str(rounds)]
        return subprocess.run(command, capture_output=True, check=True)


def rows(*, quick: bool = False) -> Iterator[Row]:
    peer, rounds = build_peer(), 3 if quick else 7
    yield from in_process(peer.webhook, rounds, [3000], [1, 100])
    yield from over_https(peer, rounds, [3000], [1, 100], [1, 8])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=7)
    given = parser.parse_args()
    peer = build_peer()
    sizes, counts = (1000, 3000, 10000), (1, 100, 500)
    print("CPU of the server for each object; the median of all rounds\n")
    print_rows(
        [
            *in_process(peer.webhook, given.rounds, sizes, counts),
            *over_https(peer, given.rounds, sizes, counts, [1, 8]),
        ]
    )


if __name__ == "__main__":
    main()
