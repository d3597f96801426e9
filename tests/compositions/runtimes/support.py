"""Real functions in real processes, small enough to be started by the dozen, and ways to wait."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import grpc
from tests.deadlines import HANG

from polyver.client import Backoff
from polyver.compositions.calls import CertificateFolder, Endpoint
from polyver.compositions.runtimes import DesiredRevision, Runtime, ServingStatus
from polyver.compositions.runtimes.process import Packages, ProcessRuntime, Timing
from polyver.languages.values.manifests import dump_yaml

RUN = "/apiextensions.fn.proto.v1.FunctionRunnerService/RunFunction"

# No test waits for a time to pass: these are short where something is to happen after them, and
# long where it is not.
QUICK = Timing(
    start=30.0,
    ask_every=0.05,
    ask_while_starting=0.02,
    answer=5.0,
    silence=60.0,
    drain=0.0,
    grace=5.0,
    restarts=Backoff(first=0.01, most=0.05),
    rebuilds=Backoff(first=0.01, most=0.05),
)

_FUNCTION = """
import argparse, os, signal, subprocess, sys, time
from concurrent import futures
from pathlib import Path

parser = argparse.ArgumentParser()
parser.add_argument("--address")
parser.add_argument("--tls-certs-dir")
given = parser.parse_args()
print("started by", sys.argv, flush=True)
pids = os.environ.get("PIDS")

def note(pid):
    if pids:
        with open(pids, "a") as file:
            file.write(f"{pid}\\n")

note(os.getpid())
exec(os.environ.get("BEFORE", ""))
import grpc

def answer(request, context):
    exec(os.environ.get("CALLED", ""))
    return os.environ.get("ANSWER", "hello").encode()

def handler(details):
    if details.method.endswith("/RunFunction"):
        return grpc.unary_unary_rpc_method_handler(answer)

class Handler(grpc.GenericRpcHandler):
    def service(self, details):
        return handler(details)

folder = Path(given.tls_certs_dir)
key, cert, ca = ((folder / name).read_bytes() for name in ("tls.key", "tls.crt", "ca.crt"))
server = grpc.server(futures.ThreadPoolExecutor(4))
server.add_generic_rpc_handlers([Handler()])
credentials = grpc.ssl_server_credentials([(key, cert)], ca, require_client_auth=True)
assert server.add_secure_port(given.address, credentials)
server.start()
signal.signal(signal.SIGTERM, lambda *_: server.stop(5))
server.wait_for_termination()
"""


def function_folder(folder: Path, **env: str) -> Path:
    """A folder that says itself how its function is run; variables say what it does."""
    folder.mkdir(parents=True)
    (folder / "serve.py").write_text(_FUNCTION)
    told = {"command": ["{python}", "serve.py"], "env": env}
    (folder / "polyver-function.yaml").write_text(dump_yaml(told))
    return folder


@asynccontextmanager
async def process_runtime(
    data: Path, packages: Mapping[str, Path] | None = None, **settings: object
) -> AsyncIterator[ProcessRuntime]:
    """A runtime with functions in folders."""
    from polyver.compositions.runtimes.process import Folder

    named = {name: Folder(path) for name, path in (packages or {}).items()}
    certificates = CertificateFolder(data / "certificates")
    timing = settings.pop("timing", QUICK)
    runtime = ProcessRuntime(
        data / "packages",
        Packages(named),
        certificates,
        timing=timing,  # type: ignore[arg-type]
        **settings,  # type: ignore[arg-type]
    )
    try:
        yield runtime
    finally:
        await runtime.close()


async def until(
    runtime: Runtime,
    wanted: DesiredRevision,
    holds: Callable[[ServingStatus], object] = lambda s: s.healthy,
) -> ServingStatus:
    """What becomes of a revision, as soon as it is as expected."""
    news = asyncio.Event()
    runtime.observe(lambda _: news.set())
    served = ServingStatus()
    try:
        async with asyncio.timeout(HANG):
            while not holds(served := await runtime.serve(wanted)):
                await news.wait()
                news.clear()
    except TimeoutError:
        raise AssertionError(served) from None
    return served


async def wanted_of(runtime: Runtime, package: str, name: str = "fn-1") -> DesiredRevision:
    return DesiredRevision(name, package, await runtime.digest(package))


def _same(message: bytes) -> bytes:
    return message


async def called(endpoint: Endpoint) -> bytes:
    """What a function answers."""
    trust = endpoint.trust
    if trust is None:
        channel = grpc.aio.insecure_channel(endpoint.address)
    else:
        credentials = grpc.ssl_channel_credentials(
            trust.bundle, trust.pair.key, trust.pair.certificate
        )
        options = [("grpc.ssl_target_name_override", trust.name)]
        channel = grpc.aio.secure_channel(endpoint.address, credentials, options)
    async with channel:
        answer: bytes = await channel.unary_unary(RUN, _same, _same)(b"", timeout=HANG)
    return answer


async def answer_of(runtime: Runtime, wanted: DesiredRevision) -> bytes:
    served = await until(runtime, wanted)
    return await called(await runtime.reach(wanted.name, served.endpoint))


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    try:
        # One that nobody has waited for yet has ended all the same.
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return sys.platform != "linux"


async def settled(holds: Callable[[], object]) -> None:
    """Wait for something that nobody tells of."""
    async with asyncio.timeout(HANG):
        while not holds():
            await asyncio.sleep(0.01)


def noted(file: Path) -> list[int]:
    """The processes that functions noted, in order."""
    return [int(line) for line in file.read_text().split()] if file.exists() else []


# A project as Crossplane's template lays it out, which builds itself: no index is needed for that.

_PROJECT = """
[build-system]
requires = []
build-backend = "backend"
backend-path = ["."]
"""

_BACKEND = """
import os, zipfile
from pathlib import Path

NAME, VERSION = "tiny_function", "1.2.3"

def build_wheel(folder, settings=None, metadata=None):
    with open(os.environ.get("PIP_TEST_BUILDS", os.devnull), "a") as file:
        file.write("built\\n")
    wheel = f"{NAME}-{VERSION}-py3-none-any.whl"
    info = f"{NAME}-{VERSION}.dist-info"
    with zipfile.ZipFile(Path(folder) / wheel, "w") as archive:
        for file in sorted(Path("function").glob("*.py")):
            archive.write(file)
        about = ["Metadata-Version: 2.1", f"Name: {NAME}", f"Version: {VERSION}", ""]
        archive.writestr(f"{info}/METADATA", "\\n".join(about))
        kind = ["Wheel-Version: 1.0", "Root-Is-Purelib: true", "Tag: py3-none-any", ""]
        archive.writestr(f"{info}/WHEEL", "\\n".join(kind))
        archive.writestr(f"{info}/RECORD", "")
    return wheel
"""


def project_folder(folder: Path, answer: str = "installed") -> Path:
    """A Python project with a module function.main, which knows gRPC from where the tests do."""
    (folder / "function").mkdir(parents=True)
    (folder / "pyproject.toml").write_text(_PROJECT)
    (folder / "backend.py").write_text(_BACKEND)
    (folder / "function" / "__init__.py").write_text("")
    libraries = Path(grpc.__file__).parents[1]
    known = (
        f"import os, sys\nsys.path.append({str(libraries)!r})\nos.environ['ANSWER'] = {answer!r}"
    )
    (folder / "function" / "main.py").write_text(f"{known}\n{_FUNCTION}")
    return folder


def wheel_of(project: Path, to: Path) -> Path:
    """The wheel that a project builds."""
    to.mkdir(exist_ok=True)
    made = subprocess.run(
        [sys.executable, "-c", "import backend, sys; print(backend.build_wheel(sys.argv[1]))", to],
        cwd=project,
        capture_output=True,
        text=True,
        check=True,
    )
    return to / made.stdout.strip()
