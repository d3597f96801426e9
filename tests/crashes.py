"""Start `polyver serve` or `polyver up` again and again, use it from many connections at once.

python -m tests.crashes serve|up MINUTES

Each server gets many requests of all sorts in its first moments, when modules are imported and
types are used for the first time, with threads that take turns after a microsecond. It is then
ended, and its exit code looked at: anything but 0 is a crash. The command fails if there was one.
"""

from __future__ import annotations

import http.client
import json
import os
import signal
import ssl
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

THREADS = 24
SECONDS = 2.0
"""For how long each server is used."""
STARTED = "import sys; sys.setswitchinterval(1e-6); from polyver.app import main; sys.exit(main())"

TYPED = """
from polyver import apis

{kinds}
"""
KIND = """
kind{n} = apis.Kind("Toy{n}", group="ex.io", plural="toy{n}s")

@kind{n}.version("v1")
class Toy{n}V1:
    class Spec:
        size: int
        tags: list[str] | None = None
    spec: Spec

@kind{n}.version("v2", storage=True)
class Toy{n}V2:
    class Spec:
        size: int
        tags: list[str] | None = None
    spec: Spec

@kind{n}.converts("v1", "v2")
def up{n}(toy: Toy{n}V1) -> Toy{n}V2:
    return Toy{n}V2(spec=Toy{n}V2.Spec(size=toy.spec.size, tags=toy.spec.tags))

@kind{n}.converts("v2", "v1")
def down{n}(toy: Toy{n}V2) -> Toy{n}V1:
    return Toy{n}V1(spec=Toy{n}V1.Spec(size=toy.spec.size, tags=toy.spec.tags))

@kind{n}.validate("v2")
def check{n}(toy: Toy{n}V2) -> None:
    if toy.spec.size > 100:
        raise ValueError("too large")
"""
RULES = """
apiVersion: polyver.dev/v1alpha1
kind: Conversion
metadata: {name: rules.ex.io}
spec:
  group: ex.io
  kind: Rule
  versions: [v1, v2]
  edges:
  - from: v1
    to: v2
    rules:
    - move: {from: spec.a, to: spec.b}
    - keyed: {from: spec.list, to: spec.map, key: name, value: value}
"""
TOYS = 4


@dataclass
class Found:
    """What was counted."""

    starts: int = 0
    requests: int = 0
    answers: Counter[int] = field(default_factory=Counter)
    crashes: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Target:
    """A server to ask."""

    host: str
    ca: Path
    token: str = ""

    def connect(self) -> http.client.HTTPSConnection:
        context = ssl.create_default_context(cafile=self.ca)
        return http.client.HTTPSConnection(self.host, context=context, timeout=60)

    def headers(self) -> dict[str, str]:
        found = {"content-type": "application/json"}
        return found | ({"authorization": f"Bearer {self.token}"} if self.token else {})


def main() -> int:
    what, minutes = sys.argv[1], float(sys.argv[2])
    found, until = Found(), time.monotonic() + 60 * minutes
    with tempfile.TemporaryDirectory(prefix="polyver-crashes-") as folder:
        while time.monotonic() < until:
            _round(what, Path(folder), found)
            if found.starts % 10 == 0:
                _print(what, found)
    _print(what, found)
    for crash in found.crashes:
        print(crash)
    return 1 if found.crashes or not found.starts else 0


def _print(what: str, found: Found) -> None:
    answers = ", ".join(f"{status}: {n}" for status, n in sorted(found.answers.items()))
    print(
        f"{what}: {found.starts} starts, {found.requests} requests ({answers}), "
        f"{len(found.crashes)} crashes",
        flush=True,
    )


def _round(what: str, folder: Path, found: Found) -> None:
    """Start a server, use it, and look at how it ends."""
    (folder / "kinds.py").write_text(
        TYPED.format(kinds="".join(KIND.format(n=number) for number in range(TOYS)))
    )
    (folder / "rules.yaml").write_text(RULES)
    log = folder / "stderr"
    with log.open("wb") as errors:
        process = subprocess.Popen(
            [sys.executable, "-c", STARTED, *_command(what, folder)],
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            env={**os.environ, "PYTHONFAULTHANDLER": "1"},
        )
    with process:
        assert process.stdout is not None
        line = process.stdout.readline()
        if "https://" in line:
            found.starts += 1
            _use(_target(what, line, folder), _requests(what), found)
        process.send_signal(signal.SIGTERM)
        process.stdout.read()
        code = process.wait()
    if code != 0:
        found.crashes.append(f"exit code {code}: {log.read_text()[-4000:]}")


def _command(what: str, folder: Path) -> list[str]:
    command = [what, "--port", "0", "--kinds", str(folder / "kinds.py")]
    if what == "serve":
        own = ["-f", str(folder / "rules.yaml"), "--certificates", str(folder / "own")]
        return [*command, *own, "--linger", "0"]
    return [*command, "--load", str(folder / "rules.yaml"), "--data", str(folder / "data")]


def _target(what: str, line: str, folder: Path) -> Target:
    host = line.partition("https://")[2].split("/")[0].split()[0].rstrip(";")
    if what == "serve":
        return Target(host, folder / "own" / "ca.crt")
    own = folder / "data" / "credentials"
    return Target(host, own / "ca.crt", (own / "admin.token").read_text())


def _use(target: Target, requests: Callable[[int], Iterator[Any]], found: Found) -> None:
    until = time.monotonic() + SECONDS

    def run(number: int) -> Counter[int]:
        answers: Counter[int] = Counter()
        with closing(target.connect()) as connection:
            for method, path, body in requests(number):
                if time.monotonic() > until:
                    break
                with _told(answers):
                    sent = None if body is None else json.dumps(body)
                    connection.request(method, path, sent, target.headers())
                    answer = connection.getresponse()
                    answer.read()
                    answers[answer.status] += 1
        return answers

    with ThreadPoolExecutor(THREADS) as threads:
        for answers in threads.map(run, range(THREADS)):
            found.answers.update(answers)
            found.requests += answers.total()


@contextmanager
def _told(answers: Counter[int]) -> Iterator[None]:
    """Count a connection that breaks as 0; whether the process crashed is seen at its end."""
    try:
        yield
    except (OSError, http.client.HTTPException):
        answers[0] += 1


def _requests(what: str) -> Callable[[int], Iterator[Any]]:
    return _reviews if what == "serve" else _objects


def _reviews(number: int) -> Iterator[tuple[str, str, Any]]:
    for turn in count(number):
        kind = f"Toy{turn % TOYS}" if turn % 3 else "Rule"
        version, wanted = (("v1", "v2"), ("v2", "v1"))[turn % 2]
        spec: Any = {"size": turn % 120, "a": 1, "list": [{"name": "x", "value": turn}]}
        if turn % 7 == 0:
            kind, spec = "Nothing", "wrong"
        obj = {"apiVersion": f"ex.io/{version}", "kind": kind, "metadata": {"name": f"a{turn}"}}
        objects = [obj | {"spec": spec}] * (turn % 40 + 1)
        request = {"uid": "1", "desiredAPIVersion": f"ex.io/{wanted}", "objects": objects}
        head = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview"}
        yield "POST", "/convert?timeout=30s", head | {"request": request}
        resource = {"group": "ex.io", "version": version, "resource": f"{kind.lower()}s"}
        named = {"group": "ex.io", "version": version, "kind": kind}
        admission = {"uid": "1", "kind": named, "resource": resource, "operation": "CREATE"}
        admission |= {"object": objects[0], "namespace": "default"}
        head = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview"}
        where = ("/admit/validate", "/admit/mutate")[turn % 2]
        yield "POST", f"{where}?timeout=10s", head | {"request": admission}
        yield "GET", ("/readyz", "/metrics")[turn % 2], None


def _objects(number: int) -> Iterator[tuple[str, str, Any]]:
    for turn in count(number):
        plural, version = f"toy{turn % TOYS}s", ("v1", "v2")[turn % 2]
        where = f"/apis/ex.io/{version}/namespaces/default/{plural}"
        body = {"apiVersion": f"ex.io/{version}", "kind": f"Toy{turn % TOYS}"}
        name = f"a{number}-{turn}"
        obj = body | {"metadata": {"name": name}, "spec": {"size": turn % 120}}
        yield "POST", where, obj
        yield "GET", f"/apis/ex.io/{('v2', 'v1')[turn % 2]}/namespaces/default/{plural}", None
        yield "PUT", f"{where}/{name}", obj
        yield "GET", f"{where}/{name}", None
        yield "GET", ("/openapi/v2", "/apis", "/api/v1/namespaces", "/metrics")[turn % 4], None
        secret = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}}
        yield "POST", "/api/v1/namespaces/default/configmaps", secret | {"data": {"a": "b"}}
        yield "DELETE", f"/api/v1/namespaces/default/configmaps/{name}", None
        yield "DELETE", f"{where}/{name}", None


if __name__ == "__main__":
    sys.exit(main())
