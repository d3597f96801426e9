"""Settings for all tests."""

from __future__ import annotations

import gc
import os
import re
import time
from collections.abc import Generator
from pathlib import Path

import pytest
from hypothesis import settings

# Tests that serve with gRPC load it themselves: polyver sets the same before it does.
os.environ |= {"GRPC_VERBOSITY": "NONE", "GRPC_ENABLE_FORK_SUPPORT": "0"}

# No test depends on how fast this machine is.
settings.register_profile("polyver", settings(), deadline=None, print_blob=True)
settings.load_profile("polyver")
_STARTED = time.monotonic()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--stop-after",
        type=float,
        metavar="SECONDS",
        help="run no further test after this time: each of those fails, and so names itself",
    )


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    limit: float | None = item.config.getoption("--stop-after")
    if limit is not None and time.monotonic() - _STARTED > limit:
        pytest.fail(f"not run: the time limit of {limit:g} s was reached before", pytrace=False)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Many thousand tests stay until the end: no search for garbage looks at them."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.collect()
        gc.freeze()
        gc.enable()


@pytest.hookimpl(wrapper=True, optionalhook=True)
def pytest_xdist_auto_num_workers() -> Generator[None, int, int]:
    """Two more than there are cores: tests often wait for the processes that they started."""
    found = yield
    return found if "PYTEST_XDIST_AUTO_NUM_WORKERS" in os.environ else found + 2


@pytest.fixture(scope="session", autouse=True)
def kubectl_cache(tmp_path_factory: pytest.TempPathFactory) -> Generator[None, None, None]:
    """Have kubectl forget earlier runs: it keeps discovery by address, and ports are used again."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("KUBECACHEDIR", str(tmp_path_factory.mktemp("kubectl-cache")))
        yield


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    kube = Path(__file__).parent / "kube"
    count = len(list((kube / "recorded").glob("*.json")))
    go_mod = (kube / "modules" / "kubernetes" / "go.mod").read_text()
    found = re.search(r"k8s\.io/kubernetes (v\S+)", go_mod)
    version = found[1] if found else "?"
    terminalreporter.write_line(
        f"{count} transcripts of kube-apiserver {version} are held; `make e2e` asks the real one"
    )
