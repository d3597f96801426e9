"""Pods on a real API server: what it asks a node for, and what comes back when there is none.

The test plays the node: it answers for logs, and says that a pod has ended. Nothing runs.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.deadlines import HANG

from polyver.client import GroupVersionResource
from polyver.client.cluster import ClusterClient, find_access
from polyver.core import PolyverError, SemVer
from polyver.functions import FunctionLog
from polyver.functions.loading import built_in_functions
from polyver.functions.runtime.context import FunctionContext
from polyver.kube.objects.status import ApiError
from polyver.testing import LocalCluster

PODS = GroupVersionResource("", "v1", "pods")
NODES = GroupVersionResource("", "v1", "nodes", namespaced=False)
PRINTED = b'hello\n###Phase-output###: {"key": "size", "value": "12"}\n'


class Node:
    """A node that has logs, and hangs up on everything else."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError, asyncio.IncompleteReadError, ssl.SSLError):
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
            self.asked.append(" ".join(head.split(" ")[:2]))
            if "/containerLogs/" in head:
                writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n" % len(PRINTED))
                writer.write(PRINTED)
                await writer.drain()
        writer.transport.abort()


def tls(cluster: LocalCluster) -> ssl.SSLContext:
    """Any certificate will do: API servers believe their nodes unless they are told otherwise."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(cluster.client_cert_file, cluster.client_key_file)
    return context


@asynccontextmanager
async def node(cluster: LocalCluster, client: ClusterClient) -> AsyncIterator[Node]:
    played = Node()
    server = await asyncio.start_server(played.serve, "127.0.0.1", 0, ssl=tls(cluster))
    port = server.sockets[0].getsockname()[1]
    made = await client.create(NODES, {"metadata": {"name": "n"}})
    address = {"type": "InternalIP", "address": "127.0.0.1"}
    endpoint = {"kubeletEndpoint": {"Port": port}}
    made["status"] = {"addresses": [address], "daemonEndpoints": endpoint}
    await client.update(NODES, made, subresource="status")
    async with server:
        yield played


async def call(client: ClusterClient, name: str, version: str, **arguments: Any) -> Any:
    until = datetime.now(UTC) + timedelta(seconds=30)
    log, params = FunctionLog(), dict[str, Any]()
    context = FunctionContext(client, params, log, "x", until, "default", "uid-0-0")
    function = built_in_functions().get(name).code[SemVer.parse(version)]
    return await function.call(context, arguments)


async def end_of_pods(client: ClusterClient) -> None:
    """Say of the first pod of a task that it has ended, as its node would."""
    while True:
        for pod in (await client.list(PODS, "default")).items:
            if pod["metadata"]["name"].startswith("polyver-task-"):
                name = pod["metadata"]["name"]
                change = {"status": {"phase": "Succeeded"}}
                await client.patch(PODS, name, "default", change=change, subresource="status")
                return
        await asyncio.sleep(0.05)


async def made_pod(client: ClusterClient) -> None:
    spec = {"nodeName": "n", "containers": [{"name": "c", "image": "i"}]}
    async with asyncio.timeout(HANG):
        while True:
            try:
                await client.create(PODS, {"metadata": {"name": "p"}, "spec": spec}, "default")
            except ApiError as error:
                if error.code != 403:  # until there is a service account
                    raise
                await asyncio.sleep(0.1)
            else:
                return


@pytest.mark.kube
def test_commands_logs_and_tasks_go_the_way_of_the_api_server() -> None:
    async def scenario(cluster: LocalCluster) -> None:
        access = find_access(kubeconfig=Path(cluster.kubeconfig))
        async with ClusterClient(access) as client, node(cluster, client) as played:
            await made_pod(client)
            arguments = {"namespace": "default", "pod": "p", "command": ["ls", "-l"]}
            # Over the channel for that, the server tells that the node has hung up.
            with pytest.raises(PolyverError, match="error sending request"):
                await call(client, "KubeExec", "v0.1.0", **arguments)
            path = "/exec/default/p/c?command=ls&command=-l&error=1&output=1"
            assert f"POST {path}" in played.asked
            logs = await client.logs("p", "default", container="c", limit=1000)
            assert logs == PRINTED
            ending = asyncio.create_task(end_of_pods(client))
            override = {"nodeName": "n"}
            found = await call(
                client, "KubeTask", "v0.0.0", image="i", command=["x"], podOverride=override
            )
            await ending
            assert found == {"output": PRINTED.decode(), "size": "12"}

    with LocalCluster() as cluster:
        asyncio.run(scenario(cluster))
