"""Settings for all tests."""

from __future__ import annotations

import os
import re
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from hypothesis import settings

if TYPE_CHECKING:
    import pytest

# Tests that serve with gRPC load it themselves: polyver sets the same before it does.
os.environ |= {"GRPC_VERBOSITY": "NONE", "GRPC_ENABLE_FORK_SUPPORT": "0"}

# No test depends on how fast this machine is.
settings.register_profile("polyver", settings(), deadline=None, print_blob=True)
settings.load_profile("polyver")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if not _is_native():
        terminalreporter.write_line(
            "polyver.native is not built: reviews were tested in Python alone; "
            "`python -m polyver.native.build` builds it, or says why not"
        )
    kube = Path(__file__).parent / "kube"
    count = len(list((kube / "recorded").glob("*.json")))
    go_mod = (kube / "modules" / "kubernetes" / "go.mod").read_text()
    found = re.search(r"k8s\.io/kubernetes (v\S+)", go_mod)
    version = found[1] if found else "?"
    terminalreporter.write_line(
        f"{count} transcripts of kube-apiserver {version} are held; `make e2e` asks the real one"
    )


def _is_native() -> bool:
    try:
        import_module("polyver.native._reviews")
    except ImportError:
        return False
    return True
