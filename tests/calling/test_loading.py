"""What is not needed is not loaded: gRPC takes longer to load than a start may take."""

from __future__ import annotations

import subprocess
import sys

import pytest


@pytest.mark.parametrize("modules", ["polyver.calling", "polyver.calling, polyver.cli.up"])
def test_grpc_is_loaded_with_the_first_call_only(modules: str) -> None:
    code = f"import sys, {modules}; print(sorted({{'grpc', 'google.protobuf'}} & set(sys.modules)))"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout == "[]\n"


def test_a_call_needs_no_protobuf() -> None:
    code = """
import asyncio, sys
from polyver.calling import Caller, Endpoint, FunctionFailed
from polyver.capabilities.revisions.messages import Request

async def main():
    caller = Caller()
    try:
        await caller.call(Endpoint("fn-1", "127.0.0.1:1"), Request(), within=0.05)
    except FunctionFailed as error:
        print(error.failure, "grpc" in sys.modules, "google.protobuf" in sys.modules)
    await caller.close()

asyncio.run(main())
"""
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout == "Unreachable True False\n"
    assert found.stderr == ""
