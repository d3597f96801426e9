"""Calls a function the way polyver does, for a first look at what it answers.

python examples/revisions/call.py ADDRESS [--certificates FOLDER --revision NAME]
"""

from __future__ import annotations

import argparse
import asyncio
import datetime
import json
import sys
from dataclasses import asdict
from pathlib import Path

from polyver.compositions import Request, RequestMeta, Resource, State
from polyver.compositions.calls import Caller, CertificateFolder, Endpoint, FunctionFailed

BUCKET = {
    "apiVersion": "custom-api.example.org/v1alpha1",
    "kind": "AcmeBucket",
    "metadata": {"name": "my-bucket", "namespace": "default"},
    "spec": {"region": "eu-north", "gigabytes": 20, "readers": ["web", "reports"]},
}


def main() -> int:
    parser = argparse.ArgumentParser(description="Call a composition function.")
    parser.add_argument("address")
    parser.add_argument("--certificates", type=Path)
    parser.add_argument("--revision", default="function-bucket")
    given = parser.parse_args()
    try:
        print(asyncio.run(called(given.address, given.certificates, given.revision)))  # noqa: T201
    except FunctionFailed as error:
        print(error, file=sys.stderr)  # noqa: T201
        return 1
    return 0


async def called(address: str, certificates: Path | None, revision: str) -> str:
    now = datetime.datetime.now(datetime.UTC)
    trust = CertificateFolder(certificates).trust(revision, now=now) if certificates else None
    caller = Caller()
    try:
        request = Request(RequestMeta("first"), State(Resource(BUCKET)))
        response = await caller.call(Endpoint(revision, address, trust), request)
    finally:
        await caller.close()
    return json.dumps(asdict(response), indent=2, default=str)


if __name__ == "__main__":
    sys.exit(main())
