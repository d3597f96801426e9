"""Watches the objects of composite resources, so that a test knows every object that has changed.

A test that reads all objects from time to time can miss a change that is reverted soon after it.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from tests.walks.support import PATIENCE, eventually

from polyver.kube.objects.status import ApiError

if TYPE_CHECKING:
    from tests.walks.support import Server

_END = "seen-until-here"


class Witness:
    """Records the names of all objects of a list that were created, changed or deleted."""

    def __init__(self, server: Server, path: str, version: str) -> None:
        context = ssl.create_default_context(cafile=server.ca_file)
        host = server.url.removeprefix("https://")
        self._connection = http.client.HTTPSConnection(host, context=context, timeout=PATIENCE)
        headers = {"Authorization": f"Bearer {server.token}"}
        self._connection.request("GET", f"{path}?watch=1&resourceVersion={version}", None, headers)
        self._socket = self._connection.sock
        self._response = self._connection.getresponse()
        self.names: set[str] = set()
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def _read(self) -> None:
        with contextlib.suppress(OSError, ValueError):  # the test has failed, and closed it
            while _END not in self.names and (line := self._response.readline()):
                self.names.add(json.loads(line)["object"]["metadata"].get("name", ""))
        self._connection.close()

    def abandon(self) -> None:
        """Stop to watch."""
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._thread.join(PATIENCE)

    def end(self) -> set[str]:
        """Return the names, when the watch has reached the object that was created at the end."""
        self._thread.join(PATIENCE)
        assert _END in self.names, "the watch has ended too early"
        return self.names - {_END}


@contextmanager
def witnessed(server: Server, request: Any, path: str) -> Iterator[set[str]]:
    """Yield a set that has, after the block, the names of all objects that have changed in it."""
    version = request("GET", f"{path}?limit=1")["metadata"]["resourceVersion"]
    witness, found = Witness(server, path, version), set[str]()
    try:
        yield found
    except BaseException:
        witness.abandon()
        raise
    request("POST", path, {"metadata": {"name": _END}})
    found |= witness.end()
    request("DELETE", f"{path}/{_END}")
    eventually(lambda: _is_gone(request, f"{path}/{_END}"))


def _is_gone(request: Any, path: str) -> bool:
    try:
        request("GET", path)
    except ApiError:
        return True
    return False
