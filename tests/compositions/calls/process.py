"""A function in its own process: `python -m tests.compositions.calls.process`.

It writes its port to stdout. The folder has the certificates, as a function's has.
"""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

from tests.compositions.calls.serving import V1, Context, serving

from polyver.compositions.calls.protocol import decode_request, encode_response
from polyver.compositions.messages import Response, ResponseMeta
from polyver.kube.http.tls import Pair


async def echo(request: bytes, context: Context) -> bytes:
    asked = decode_request(request)
    return encode_response(Response(ResponseMeta(asked.meta.tag), asked.observed))


async def hang(request: bytes, context: Context) -> bytes:
    await asyncio.Event().wait()
    return b""


async def crash(request: bytes, context: Context) -> bytes:
    os._exit(1)


METHODS = {"echo": echo, "hang": hang, "crash": crash}


async def main(behaviour: str, folder: Path, port: int) -> None:
    pair = Pair((folder / "tls.crt").read_bytes(), (folder / "tls.key").read_bytes())
    bundle = (folder / "ca.crt").read_bytes()
    async with serving({V1: METHODS[behaviour]}, shown=pair, bundle=bundle, port=port) as address:
        print(address, flush=True)
        await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3])))
