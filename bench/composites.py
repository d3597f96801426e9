"""Many composite resources on `polyver up`, through a pipeline of two functions in real processes.

python -m bench.composites --composites 1000
python -m bench.composites --composites 1000 --disturbed

First they are all made, then one function gets a new revision. With `--disturbed` both functions
get one revision after the other and their processes are killed meanwhile, and what is composed is
watched: each step leaves its stamp, so that an object tells which revisions made it.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bench.applications import Connection, Server, running, until

from polyver.kube.objects import dump_yaml

Object = dict[str, Any]
ROOT = Path(__file__).parents[1]
SERVE = ROOT / "examples" / "rollout" / "function-0.8.2" / "serve.py"
STEPS = ("first", "second")
FUNCTIONS = "/apis/pkg.crossplane.io/v1/functions"
REVISIONS = "/apis/pkg.crossplane.io/v1/functionrevisions"
GROUP = "bench.example.org"
STACKS = f"/apis/{GROUP}/v1/stacks"
MAPS = "/api/v1/namespaces/default/configmaps"
PATIENCE = 900.0


# What there is.


def packages(folder: Path, versions: int) -> Path:
    """Both functions in so many versions, and the file that says where they are."""
    told = {}
    for step in STEPS:
        for version in range(1, versions + 1):
            name = f"{step}-{version}"
            function_folder(folder / name, STEP=step, STAMP=str(version))
            told[package_of(step, version)] = f"./{name}"
    file = folder / "packages.yaml"
    file.write_text(dump_yaml(told))
    return file


def function_folder(folder: Path, **env: str) -> None:
    folder.mkdir(parents=True)
    shutil.copy(SERVE, folder / "serve.py")
    shutil.copy(ROOT / "bench" / "stamping.py", folder / "function.py")
    told = {"command": ["{python}", "serve.py"], "env": env}
    (folder / "polyver-function.yaml").write_text(dump_yaml(told))


def package_of(step: str, version: int) -> str:
    return f"xpkg.example.org/{step}:v{version}"


def function(step: str, version: int) -> Object:
    return {
        "apiVersion": "pkg.crossplane.io/v1",
        "kind": "Function",
        "metadata": {"name": step},
        "spec": {"package": package_of(step, version), "revisionHistoryLimit": 2},
    }


DEFINITION: Object = {
    "apiVersion": "apiextensions.crossplane.io/v1",
    "kind": "CompositeResourceDefinition",
    "metadata": {"name": f"stacks.{GROUP}"},
    "spec": {
        "group": GROUP,
        "names": {"kind": "Stack", "plural": "stacks"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "referenceable": True,
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "properties": {
                            "spec": {
                                "type": "object",
                                "properties": {"size": {"type": "integer"}},
                            }
                        },
                    }
                },
            }
        ],
    },
}
COMPOSITION: Object = {
    "apiVersion": "apiextensions.crossplane.io/v1",
    "kind": "Composition",
    "metadata": {"name": "stacks"},
    "spec": {
        "compositeTypeRef": {"apiVersion": f"{GROUP}/v1", "kind": "Stack"},
        "mode": "Pipeline",
        "pipeline": [{"step": step, "functionRef": {"name": step}} for step in STEPS],
    },
}


def stack(number: int) -> Object:
    return {
        "apiVersion": f"{GROUP}/v1",
        "kind": "Stack",
        "metadata": {"name": f"s{number}"},
        "spec": {"size": number},
    }


def prepare(server: Server) -> None:
    """Both functions answer, and the kind is served."""
    with closing(server.connect()) as connection:
        _prepare(connection)


def _prepare(connection: Connection) -> None:
    for step in STEPS:
        connection.raw("POST", FUNCTIONS, function(step, 1))
    group = "/apis/apiextensions.crossplane.io/v1"
    connection.raw("POST", f"{group}/compositeresourcedefinitions", DEFINITION)
    connection.raw("POST", f"{group}/compositions", COMPOSITION)
    until(
        lambda: all(_is_true(connection.ask("GET", f"{FUNCTIONS}/{s}"), "Healthy") for s in STEPS),
        60,
    )
    until(lambda: connection.ask("GET", f"{group}/compositionrevisions")["items"], 60)
    until(lambda: _is_served(connection), 60)


def _is_served(connection: Connection) -> bool:
    found = connection.ask("GET", "/apis")["groups"]
    if GROUP not in {each["name"] for each in found}:
        return False
    kinds = connection.ask("GET", f"/apis/{GROUP}/v1")["resources"]
    return any(each["name"] == "stacks" for each in kinds)


def release(server: Server, step: str, version: int) -> None:
    """Another version of a function, whose revision is the one that steps get on return."""
    with closing(server.connect()) as connection:
        _release(connection, step, version)
        until(lambda: package_of(step, version) in _active(connection, step), 60)


def _release(connection: Connection, step: str, version: int) -> None:
    while True:
        found = connection.ask("GET", f"{FUNCTIONS}/{step}")
        spec = {**found["spec"], "package": package_of(step, version)}
        try:
            connection.raw("PUT", f"{FUNCTIONS}/{step}", {**found, "spec": spec})
        except AssertionError as error:
            if "Conflict" not in str(error):
                raise
        else:
            return


def _active(connection: Connection, step: str) -> set[str]:
    found = connection.ask("GET", REVISIONS)["items"]
    mine = [e for e in found if e["metadata"]["labels"]["pkg.crossplane.io/package"] == step]
    return {e["spec"]["image"] for e in mine if e["spec"]["desiredState"] == "Active"}


def _is_true(obj: Object, kind: str) -> bool:
    conditions = (obj.get("status") or {}).get("conditions") or ()
    return any(each["type"] == kind and each["status"] == "True" for each in conditions)


# Who watches.


class Watch:
    """Tells each state of each object of a kind, as it comes."""

    def __init__(self, server: Server, path: str, tell: Callable[[Object], None]) -> None:
        self._server, self._path, self._tell = server, path, tell
        self._ends = threading.Event()
        self.problem: BaseException | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            with closing(self._server.connect()) as connection:
                listed = connection.ask("GET", self._path)
            for each in listed["items"]:
                self._tell(each)
            since = listed["metadata"]["resourceVersion"]
            while not self._ends.is_set():
                since = self._follow(since)
        except Exception as error:  # the one who waits says it
            self.problem = error

    def _follow(self, since: str) -> str:
        path = f"{self._path}?watch=true&resourceVersion={since}&timeoutSeconds=1"
        with closing(self._server.connect()) as connection:
            for line in connection.lines("GET", path):
                event = json.loads(line)
                assert event["type"] != "ERROR", event
                self._tell(event["object"])
                since = event["object"]["metadata"]["resourceVersion"]
        return since

    def end(self) -> None:
        self._ends.set()

    def ended(self) -> None:
        self._thread.join(PATIENCE)
        if self.problem is not None:
            raise self.problem


@dataclass
class Seen:
    """What was seen of all composite resources and what they are composed of."""

    ready: dict[str, float] = field(default_factory=dict)
    """When each was first ready."""
    states: dict[str, tuple[bool, tuple[str, ...]]] = field(default_factory=dict)
    """Whether each is ready, and the revisions that made it by what it says itself."""
    stamps: dict[str, tuple[int, ...]] = field(default_factory=dict)
    """What is stamped on each object now."""
    pairs: Counter[tuple[int, ...]] = field(default_factory=Counter)
    """All that was ever stamped on one, and how often it was seen."""
    back: list[str] = field(default_factory=list)
    """Objects that went back to a revision from before."""

    def composite(self, obj: Object) -> None:
        name = obj["metadata"]["name"]
        is_ready = _is_true(obj, "Ready") and _is_true(obj, "Synced")
        pipeline = (obj.get("status") or {}).get("pipeline") or ()
        self.states[name] = is_ready, tuple(each["revision"] for each in pipeline)
        if is_ready:
            self.ready.setdefault(name, time.monotonic())

    def composed(self, obj: Object) -> None:
        if "crossplane.io/composite" not in (obj["metadata"].get("labels") or {}):
            return
        name, data = obj["metadata"]["name"], obj["data"]
        stamps = tuple(int(data.get(step, 0)) for step in STEPS)
        before = self.stamps.get(name, (0, 0))
        if any(new < old for new, old in zip(stamps, before, strict=True)):
            self.back.append(f"{name}: {before} → {stamps}")
        self.stamps[name] = stamps
        self.pairs[stamps] += 1


@contextmanager
def watched(server: Server) -> Iterator[Seen]:
    seen = Seen()
    watches = [Watch(server, STACKS, seen.composite), Watch(server, MAPS, seen.composed)]
    try:
        yield seen
    finally:
        for each in watches:
            each.end()
    for each in watches:
        each.ended()


# What it costs.


def _stat(pid: int) -> list[str]:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()


def _below(pid: int) -> Iterator[int]:
    """The processes that a process has started, and those that these have."""
    parents: dict[int, list[int]] = {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                parents.setdefault(int(_stat(int(folder.name))[1]), []).append(int(folder.name))
            except OSError:
                continue  # it has ended meanwhile
    waiting = [pid]
    while waiting:
        found = parents.get(waiting.pop(), [])
        yield from found
        waiting += found


def functions_cpu(server: Server) -> float:
    """Seconds of all processes of functions, those that have ended included."""
    ticks: int = os.sysconf("SC_CLK_TCK")
    total = 0
    for pid in _below(server.pid):
        try:
            total += sum(map(int, _stat(pid)[11:15]))
        except OSError:
            continue
    return total / ticks


@contextmanager
def timed(server: Server, what: str, number: int) -> Iterator[None]:
    began, own, theirs = time.monotonic(), server.cpu, functions_cpu(server)
    yield
    seconds, own = time.monotonic() - began, server.cpu - own
    theirs = functions_cpu(server) - theirs
    print(
        f"{what}: {seconds:.1f} s, {number / seconds:.0f}/s; CPU of the server {own:.1f} s "
        f"({1000 * own / number:.2f} ms each), of functions {theirs:.1f} s "
        f"({1000 * theirs / number:.2f} ms each); {server.memory}",
        flush=True,
    )


def create(server: Server, number: int) -> dict[str, float]:
    """All composite resources, and when each was sent."""
    sent: dict[str, float] = {}

    def some(first: int) -> None:
        with closing(server.connect()) as connection:
            for each in range(first, number, 4):
                sent[f"s{each}"] = time.monotonic()
                connection.raw("POST", STACKS, stack(each))

    threads = [threading.Thread(target=some, args=(first,)) for first in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sent


def shown(times: Sequence[float]) -> str:
    ordered = sorted(times)
    shares = {"p50": 0.5, "p99": 0.99}
    found = [f"{name} {ordered[int(len(ordered) * each)]:.2f} s" for name, each in shares.items()]
    return ", ".join([*found, f"most {ordered[-1]:.2f} s"])


def measure(server: Server, number: int) -> None:
    prepare(server)
    with watched(server) as seen:
        with timed(server, f"{number} composite resources made and ready", number):
            sent = create(server, number)
            until(lambda: len(seen.ready) == number, PATIENCE)
        print(f"  from the request to ready: {shown([seen.ready[n] - sent[n] for n in sent])}")
        with timed(server, f"a new revision of one function, which moves {number}", number):
            release(server, STEPS[0], 2)
            until(lambda: _all_are(seen, (2, 1), number), PATIENCE)


def _all_are(seen: Seen, stamps: tuple[int, ...], number: int) -> bool:
    states = [*seen.states.values()]
    if len(states) != number or not all(is_ready for is_ready, _ in states):
        return False
    return len(seen.stamps) == number and {*seen.stamps.values()} == {stamps}


# Processes are killed.


class Killer:
    """Kills one process of a function after the other, until it is ended.

    Each revision is killed `most` times: after each it is started again a while later than before.
    """

    def __init__(self, server: Server, every: float, most: int) -> None:
        self._server, self._every, self._most = server, every, most
        self._ends = threading.Event()
        self.killed: Counter[str] = Counter()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        turn = 0
        while not self._ends.wait(self._every):
            found = sorted(e for e in _functions(self._server) if self.killed[e[0]] < self._most)
            if found:
                turn += 1
                name, pid = found[turn % len(found)]
                os.kill(pid, signal.SIGKILL)
                self.killed[name] += 1

    def end(self) -> None:
        self._ends.set()
        self._thread.join(PATIENCE)


def _functions(server: Server) -> Iterator[tuple[str, int]]:
    """The processes of functions that run, by step and version."""
    for pid in _below(server.pid):
        try:
            text = Path(f"/proc/{pid}/environ").read_bytes().decode()
            command = Path(f"/proc/{pid}/cmdline").read_bytes()
        except OSError:
            continue
        env = dict(line.partition("=")[::2] for line in text.split("\0"))
        if "STAMP" in env and b"serve.py" in command:
            yield f"{env['STEP']}-{env['STAMP']}", pid


@dataclass(frozen=True)
class Disturbance:
    """What was seen while functions were released and killed under load."""

    seen: Seen
    killed: Counter[str]
    revisions: dict[str, str]
    """The package of each revision."""

    def mixtures(self, versions: int) -> dict[tuple[int, ...], int]:
        """Stamps together that no moment's resolution gives, and how often they were seen.

        The first function always gets a new revision before the second does.
        """
        moments = {(v, v) for v in range(1, versions + 1)} | {
            (v + 1, v) for v in range(1, versions)
        }
        return {pair: count for pair, count in self.seen.pairs.items() if pair not in moments}

    def lies(self) -> list[str]:
        """Composite resources that name other revisions than those that made what is there."""
        found = []
        for name, (_, revisions) in self.seen.states.items():
            made = [package_of(*each) for each in zip(STEPS, self.seen.stamps[name], strict=True)]
            told = [self.revisions.get(each, each) for each in revisions]
            found += [f"{name}: {told}, and made by {made}"] if told != made else []
        return found


def disturb(server: Server, number: int, versions: int, *, every: float, most: int) -> Disturbance:
    """Make them all while both functions go through their versions and are killed meanwhile."""
    prepare(server)
    with watched(server) as seen:
        killer = Killer(server, every, most)
        making = threading.Thread(target=create, args=(server, number))
        making.start()
        some = number // versions
        for version in range(2, versions + 1):
            # Some have to be between any two releases: these could get a mixture.
            _until_some(seen, STEPS[1], version - 1, some)
            release(server, STEPS[0], version)
            _until_some(seen, STEPS[0], version, some)
            release(server, STEPS[1], version)
        making.join()
        killer.end()
        until(lambda: _all_are(seen, (versions,) * len(STEPS), number), PATIENCE)
    with closing(server.connect()) as connection:
        found = connection.ask("GET", REVISIONS)["items"]
    images = {each["metadata"]["name"]: each["spec"]["image"] for each in found}
    return Disturbance(seen, killer.killed, images)


def _until_some(seen: Seen, step: str, version: int, number: int) -> None:
    at = STEPS.index(step)

    def are() -> bool:
        return sum(stamps[at] >= version for stamps in [*seen.stamps.values()]) >= number

    until(are, PATIENCE)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--composites", type=int, default=1000)
    parser.add_argument("--disturbed", action="store_true")
    parser.add_argument("--versions", type=int, default=5)
    parser.add_argument("--kill-every", type=float, default=1.0)
    parser.add_argument("--kill-most", type=int, default=3)
    args = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="polyver-bench-"))
    try:
        file = packages(folder / "functions", args.versions)
        with running(folder, "apis,compositions", "--packages", str(file)) as server:
            if args.disturbed:
                tell(server, args)
            else:
                measure(server, args.composites)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def tell(server: Server, args: argparse.Namespace) -> None:
    with timed(server, f"{args.composites} composite resources, disturbed", args.composites):
        given = {"every": args.kill_every, "most": args.kill_most}
        found = disturb(server, args.composites, args.versions, **given)
    print(f"  killed: {sum(found.killed.values())} processes, {dict(found.killed)}")
    print(f"  stamps seen together: {dict(sorted(found.seen.pairs.items()))}")
    mixtures, back, lies = found.mixtures(args.versions), found.seen.back, found.lies()
    print(f"  mixtures: {mixtures or 'none'}")
    print(f"  went back: {back or 'none'}; told wrongly: {lies or 'none'}")
    if mixtures or back or lies:
        raise SystemExit("some were made by revisions that do not belong together")


if __name__ == "__main__":
    main()
