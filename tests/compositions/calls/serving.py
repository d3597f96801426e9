"""Small functions to call: real gRPC servers, without any SDK."""

from __future__ import annotations

import datetime
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import grpc
import grpc.aio

from polyver.compositions.calls import Endpoint, Trust
from polyver.kube.http.tls import Authority, Pair

V1 = "/apiextensions.fn.proto.v1.FunctionRunnerService/RunFunction"
V1BETA1 = "/apiextensions.fn.proto.v1beta1.FunctionRunnerService/RunFunction"
HEALTH = "/grpc.health.v1.Health/Check"
NAME = "fn-1"
NOW = datetime.datetime.now(datetime.UTC)
LONG_AGO = NOW - datetime.timedelta(days=400)
AUTHORITY = Authority.create("functions", now=NOW)
OTHER = Authority.create("others", now=NOW)
SHOWN = AUTHORITY.server(NAME, now=NOW)
TRUST = Trust(AUTHORITY.pem, AUTHORITY.client("polyver", now=NOW), NAME)

if TYPE_CHECKING:
    Context = grpc.aio.ServicerContext[bytes, bytes]
else:
    Context = grpc.aio.ServicerContext
Method = Callable[[bytes, Context], Awaitable[bytes]]


class _Methods(grpc.GenericRpcHandler):  # type: ignore[type-arg]  # it has none at run time
    def __init__(self, methods: Mapping[str, Method]) -> None:
        self._methods = methods

    def service(
        self, handler_call_details: grpc.HandlerCallDetails
    ) -> grpc.RpcMethodHandler[bytes, bytes] | None:
        method = self._methods.get(handler_call_details.method)
        return grpc.unary_unary_rpc_method_handler(method) if method else None


@asynccontextmanager
async def serving(
    methods: Mapping[str, Method] = {},
    *,
    shown: Pair | None = SHOWN,
    bundle: bytes = AUTHORITY.pem,
    port: int = 0,
) -> AsyncIterator[str]:
    """A server that runs while the body does; the address. Without a pair it has no TLS."""
    server = grpc.aio.server(options=[("grpc.so_reuseport", 0)])
    server.add_generic_rpc_handlers((_Methods(methods),))
    address = f"127.0.0.1:{port}"
    if shown is None:
        port = server.add_insecure_port(address)
    else:
        pairs = [(shown.key, shown.certificate)]
        credentials = grpc.ssl_server_credentials(pairs, bundle, require_client_auth=True)
        port = server.add_secure_port(address, credentials)
    await server.start()
    try:
        yield f"127.0.0.1:{port}"
    finally:
        await server.stop(None)


def at(address: str, trust: Trust | None = TRUST) -> Endpoint:
    return Endpoint(NAME, address, trust)
