"""A caller made with the messages of Crossplane's SDK: what bench/calling.py measures against.

It runs in the environment of the function. How and what to call comes as JSON on stdin.
"""

from __future__ import annotations

import asyncio
import json
import resource
import sys
import time
from typing import Any

import grpc
from crossplane.function.proto.v1 import run_function_pb2 as protocol  # type: ignore[import-not-found]
from crossplane.function.proto.v1 import run_function_pb2_grpc as service
from crossplane.function.resource import dict_to_struct, struct_to_dict  # type: ignore[import-not-found]


async def main(asked: dict[str, Any]) -> list[dict[str, float]]:
    texts = (asked[each].encode() for each in ("bundle", "key", "certificate"))
    credentials = grpc.ssl_channel_credentials(*texts)
    options = [("grpc.ssl_target_name_override", asked["name"])]
    async with grpc.aio.secure_channel(asked["address"], credentials, options) as channel:
        stub = service.FunctionRunnerServiceStub(channel)

        async def call() -> None:
            request = protocol.RunFunctionRequest(meta=protocol.RequestMeta(tag="bench"))
            request.observed.composite.resource.CopyFrom(dict_to_struct(asked["bucket"]))
            response = await stub.RunFunction(request, timeout=10)
            resources = response.desired.resources.items()
            found = {name: struct_to_dict(each.resource) for name, each in resources}
            assert set(found) == {"settings", "access"}

        await measured(call, 8, 100)
        return [await measured(call, each, asked["calls"]) for each in asked["concurrent"]]


async def measured(call: Any, concurrent: int, calls: int) -> dict[str, float]:
    times: list[float] = []
    left = iter(range(calls))

    async def worker() -> None:
        for _ in left:
            start = time.perf_counter()
            await call()
            times.append(time.perf_counter() - start)

    before, start = cpu(), time.perf_counter()
    await asyncio.gather(*(worker() for _ in range(concurrent)))
    seconds, used = time.perf_counter() - start, cpu() - before
    times.sort()
    p50, p99 = times[len(times) // 2], times[len(times) * 99 // 100]
    return {"rate": calls / seconds, "p50": p50, "p99": p99, "cpu": used / calls}


def cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    json.dump(asyncio.run(main(json.load(sys.stdin))), sys.stdout)
