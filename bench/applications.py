"""Many applications on `polyver up`: how fast they are rendered first, and what one release costs.

python -m bench.applications --applications 20000 --definitions 50

All are there before their definitions are published, so that what is measured is resolving,
rendering, applying and recording. Another process asks the API for a small object meanwhile.
"""

from __future__ import annotations

import argparse
import base64
import http.client
import json
import multiprocessing
import re
import shutil
import signal
import ssl
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any

import yaml
from bench.rows import Curve, Found, Row, say

GROUP = "/apis/core.oam.dev"
MOVED = 10
PROBE = "/api/v1/namespaces/default/configmaps/probe"
TEMPLATE = """\
apiVersion: v1
kind: ConfigMap
metadata: {name: "{{ .context.appName }}-{{ .context.name }}"}
data:
  image: "{{ .parameter.image }}"
  size: "{{ .parameter.size }}"
  version: "{{ .context.version }}"
"""
SCHEMA = {
    "type": "object",
    "required": ["image"],
    "properties": {"image": {"type": "string"}, "size": {"type": "integer", "default": 1}},
}


class Server:
    """A running `polyver up`, and a connection to it."""

    def __init__(self, kubeconfig: Path, pid: int) -> None:
        self.pid = pid
        text = yaml.safe_load(kubeconfig.read_text())
        cluster = text["clusters"][0]["cluster"]
        self.host = cluster["server"].removeprefix("https://")
        self.token = next(
            each["user"]["token"] for each in text["users"] if "token" in each["user"]
        )
        self.ca = base64.b64decode(cluster["certificate-authority-data"]).decode()

    def connect(self) -> Connection:
        return Connection(self.host, self.token, self.ca)

    @property
    def cpu(self) -> float:
        """The seconds that it has used so far."""
        # What clock_getcpuclockid(3) gives for a process.
        return time.clock_gettime((~self.pid << 3) | 2)

    @property
    def memory(self) -> str:
        found = re.search(r"VmRSS:\s+(\d+)", Path(f"/proc/{self.pid}/status").read_text())
        return f"{int(found[1]) // 1024 if found else 0} MB"


class Connection:
    """Asks as the administrator."""

    def __init__(self, host: str, token: str, ca: str) -> None:
        context = ssl.create_default_context(cadata=ca)
        self._http = http.client.HTTPSConnection(host, context=context, timeout=120)
        self._headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}

    def close(self) -> None:
        self._http.close()

    def raw(self, method: str, path: str, body: object = None) -> bytes:
        sent = None if body is None else json.dumps(body)
        self._http.request(method, path, sent, self._headers)
        answer = self._http.getresponse()
        text = answer.read()
        assert answer.status < 400, text
        return text

    def lines(self, method: str, path: str) -> Iterator[bytes]:
        """The lines of an answer, as they come."""
        self._http.request(method, path, None, self._headers)
        answer = self._http.getresponse()
        assert answer.status < 400, answer.read()
        while line := answer.readline():
            yield line

    def ask(self, method: str, path: str, body: object = None) -> Any:
        return json.loads(self.raw(method, path, body))

    def counts(self) -> dict[str, int]:
        text = self.raw("GET", "/metrics").decode()
        pattern = r'polyver_controller_done_total\{controller="applications",what="(\w+)"\} (\S+)'
        return {name: int(float(count)) for name, count in re.findall(pattern, text)}


@contextmanager
def running(
    folder: Path, capabilities: str = "apis,definitions", *options: str
) -> Iterator[Server]:
    command = [sys.executable, "-m", "polyver", "up", "--port", "0", "--data", str(folder)]
    command += ["--capabilities", capabilities, *options]
    with (folder / "log").open("w") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log)
    try:
        file = folder / "kubeconfig"
        until(lambda: file.exists() and "ready" in (folder / "log").read_text().lower(), 30)
        yield Server(file, process.pid)
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(30)


def until(is_so: Callable[[], object], patience: float, *, every: float = 0.05) -> None:
    end = time.monotonic() + patience
    while not is_so():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(every)


def definition(name: str, *versions: str) -> dict[str, Any]:
    block = {"gotemplate": {"parameters": SCHEMA, "template": TEMPLATE}}
    workload = {"definition": {"apiVersion": "v1", "kind": "ConfigMap"}}
    entries = [{"version": v, "workload": workload, "schematic": block} for v in versions]
    return {
        "apiVersion": "core.oam.dev/v2beta1",
        "kind": "ComponentDefinition",
        "metadata": {"name": name, "namespace": "vela-system"},
        "spec": {"versions": entries},
    }


def application(number: int, asked: str) -> dict[str, Any]:
    component = {"name": "web", "type": asked, "properties": {"image": f"nginx:{number}"}}
    return {
        "apiVersion": "core.oam.dev/v1beta1",
        "kind": "Application",
        "metadata": {"name": f"a{number}", "namespace": "default"},
        "spec": {"components": [component]},
    }


def create(server: Server, applications: int, moved: int, definitions: int) -> None:
    """All applications; the first few of them ask for another series of the first definition."""

    def some(first: int) -> None:
        connection = server.connect()
        for number in range(first, applications, 4):
            asked = "d0@2" if number < moved else f"d{number % definitions}@1"
            path = f"{GROUP}/v1beta1/namespaces/default/applications"
            connection.raw("POST", path, application(number, asked))

    threads = [threading.Thread(target=some, args=(first,)) for first in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def probe(host: str, token: str, ca: str, ends: Any, found: Any) -> None:
    """How long a GET takes, every 20 ms, until told to end."""
    connection = Connection(host, token, ca)
    times = []
    while not ends.is_set():
        start = time.perf_counter()
        connection.raw("GET", PROBE)
        times.append(time.perf_counter() - start)
        time.sleep(max(0.02 - times[-1], 0))
    found.put(times)


@contextmanager
def probed(server: Server, what: str) -> Iterator[None]:
    """Prints what the latency of the API was meanwhile."""
    context = multiprocessing.get_context("spawn")
    ends, found = context.Event(), context.Queue()
    given = (server.host, server.token, server.ca, ends, found)
    process = context.Process(target=probe, args=given)
    process.start()
    time.sleep(0.5)
    try:
        yield
    finally:
        ends.set()
        times = sorted(found.get())
        process.join()
    shown = [1000 * times[int(len(times) * share)] for share in (0.5, 0.99, 0.999)]
    most = 1000 * times[-1]
    p50, p99, p999 = shown
    print(
        f"  GET during {what}: p50 {p50:.1f} ms, p99 {p99:.1f} ms, p99.9 {p999:.1f} ms, "
        f"most {most:.0f} ms ({len(times)} requests)",
        flush=True,
    )


def write(connection: Connection, obj: dict[str, Any]) -> None:
    path = f"{GROUP}/v2beta1/namespaces/vela-system/componentdefinitions"
    known = connection.ask("GET", f"{path}?fieldSelector=metadata.name={obj['metadata']['name']}")
    if not known["items"]:
        connection.raw("POST", path, obj)
        return
    whole = {**known["items"][0], "spec": obj["spec"]}
    whole |= {"apiVersion": obj["apiVersion"], "kind": obj["kind"]}
    connection.raw("PUT", f"{path}/{obj['metadata']['name']}", whole)


def states(connection: Connection) -> dict[str, int]:
    found: dict[str, int] = {}
    more = ""
    while True:
        path = f"{GROUP}/v1beta1/namespaces/default/applications?limit=500&continue={more}"
        page = connection.ask("GET", path)
        for each in page["items"]:
            state = each.get("status", {}).get("status", "none")
            found[state] = found.get(state, 0) + 1
        more = page["metadata"].get("continue", "")
        if not more:
            return found


@contextmanager
def timed(server: Server, what: str, number: int) -> Iterator[None]:
    began, cpu = time.monotonic(), server.cpu
    yield
    seconds, used = time.monotonic() - began, server.cpu - cpu
    print(
        f"{what}: {seconds:.1f} s, {number / seconds:.0f}/s, CPU {used:.1f} s "
        f"({1000 * used / number:.2f} ms each), {server.memory}",
        flush=True,
    )


def measure(server: Server, args: argparse.Namespace) -> None:
    connection = server.connect()
    config = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "probe"}}
    connection.raw("POST", PROBE.rpartition("/")[0], config)
    with timed(server, f"{args.applications} applications created", args.applications):
        create(server, args.applications, args.moved, args.definitions)
    connection = server.connect()  # the server has let go of one that nobody used for so long
    # They are told that there is no definition first.
    until(lambda: states(connection).get("failed", 0) == args.applications, 600)
    with (
        timed(server, "resolved, rendered, applied, recorded", args.applications),
        probed(server, "the first rendering"),
    ):
        for number in range(args.definitions):
            write(connection, definition(f"d{number}", "1.0.0", "2.0.0"))
        until(lambda: connection.counts().get("applied", 0) >= args.applications, 3600, every=1)
        until(lambda: states(connection).get("running", 0) == args.applications, 600)
    print(f"  {connection.counts()} {states(connection)}")
    before = connection.counts()
    with timed(server, f"a release that moves {args.moved}", args.moved), probed(server, "it"):
        start = time.monotonic()
        write(connection, definition("d0", "1.0.0", "2.0.0", "2.1.0"))
        until(lambda: moved(connection, args.moved, "2.1.0"), 600)
        took = time.monotonic() - start
        time.sleep(2)
    after = connection.counts()
    done = {name: after[name] - before[name] for name in after}
    print(f"  all {args.moved} are running with it after {1000 * took:.0f} ms; {done}")


def moved(connection: Connection, number: int, version: str) -> bool:
    """Whether all that are to move have moved, by what they applied."""
    path = "/api/v1/namespaces/default/configmaps"
    found = [connection.ask("GET", f"{path}/a{each}-web") for each in range(number)]
    if any(each["data"]["version"] != version for each in found):
        return False
    path = f"{GROUP}/v1beta1/namespaces/default/applications"
    return all(runs(connection.ask("GET", f"{path}/a{each}"), version) for each in range(number))


def restart(server: Server, args: argparse.Namespace) -> None:
    """What a new process does about applications that have not changed."""
    connection = server.connect()
    with timed(server, "looked at again after a restart", args.applications), probed(server, "it"):
        rest(server, 600)
    print(f"  {connection.counts()} {states(connection)}")


# What a release costs, by how many applications there are.


def rows(*, quick: bool = False) -> Iterator[Found]:
    sizes, rounds = ((100, 500), 3) if quick else ((100, 1_000, 5_000), 7)
    taken = {}
    for size in sizes:
        say(f"{size:,} applications, and {rounds} releases that move {MOVED} of them")
        with (
            tempfile.TemporaryDirectory(prefix="polyver-bench-") as folder,
            running(Path(folder)) as server,
        ):
            taken[size] = released(server, size, rounds)
    for size, (waited, used) in taken.items():
        name = f"a release moves {MOVED} of {size:,} applications"
        yield Row(name=f"{name}, until all run with it", unit="ms", ours=waited)
        yield Row(name=f"{name}, CPU", unit="ms", ours=used)
    first, last = (taken[size][1] for size in (min(sizes), max(sizes)))
    grown = tuple(one / other for one, other in zip(last, first, strict=True))
    told = f"CPU of a release, {max(sizes):,} applications beside {min(sizes):,}"
    yield Row(name=told, unit="×", ours=grown, most=2)
    points = tuple((size, median(used)) for size, (_, used) in taken.items())
    yield Curve(name=f"release, {MOVED} move", unit="ms", sizes="applications", points=points)


def released(server: Server, size: int, rounds: int) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Milliseconds until all have moved, and of CPU, for release after release."""
    connection = server.connect()
    versions = ["1.0.0", "2.0.0"]
    definitions = min(50, size // MOVED)
    for number in range(definitions):
        write(connection, definition(f"d{number}", *versions))
    create(server, size, MOVED, definitions)
    connection = server.connect()  # the server has let go of one that nobody used for so long
    until(lambda: states(connection).get("running", 0) == size, 600, every=1)
    taken = []
    for number in range(rounds):
        versions.append(f"2.{number + 1}.0")
        taken.append(release(server, connection, versions))
    waited, used = zip(*taken, strict=True)
    return waited, used


def release(server: Server, connection: Connection, versions: list[str]) -> tuple[float, float]:
    path = f"{GROUP}/v1beta1/namespaces/default/applications"
    at = connection.ask("GET", f"{path}?limit=1")["metadata"]["resourceVersion"]
    # Seen in a watch, because asking again and again costs the server more than the release.
    events = server.connect().lines("GET", f"{path}?watch=1&resourceVersion={at}")
    rest(server)
    began, cpu = time.perf_counter(), server.cpu
    write(connection, definition("d0", *versions))
    missing = {f"a{number}" for number in range(MOVED)}
    while missing:
        obj = json.loads(next(events))["object"]
        if runs(obj, versions[-1]):
            missing.discard(obj["metadata"]["name"])
    waited = time.perf_counter() - began
    rest(server)
    assert moved(connection, MOVED, versions[-1])
    return waited * 1e3, (server.cpu - cpu) * 1e3


def runs(application: Any, version: str) -> bool:
    status = application.get("status", {})
    found = [each.get("version") for each in status.get("resolutions", ())]
    return status.get("status") == "running" and found == [version]


def rest(server: Server, patience: float = 60) -> None:
    """Wait until it has nothing to do."""
    used = [server.cpu - 1.0]

    def rests() -> bool:
        time.sleep(0.5)
        used.append(server.cpu)
        return used[-1] - used[-2] < 0.05

    until(rests, patience)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--applications", type=int, default=2000)
    parser.add_argument("--definitions", type=int, default=50)
    parser.add_argument("--moved", type=int, default=10)
    args = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="polyver-bench-"))
    try:
        with running(folder) as server:
            measure(server, args)
        (folder / "log").unlink()
        with running(folder) as server:
            restart(server, args)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
