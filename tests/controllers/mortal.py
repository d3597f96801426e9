"""A client whose process is killed between two writes, for whoever comes after it."""

from __future__ import annotations

import asyncio

from polyver.client.client import ClientRequest, ClientResponse
from polyver.client.in_process import DirectClient
from polyver.kube.server.api import ApiServer
from polyver.kube.server.http import User


class Killed(Exception):
    """What a process that is gone does: nothing any more."""


class Mortal(DirectClient):
    """A client of a process that is killed right after one of its writes."""

    def __init__(self, api: ApiServer, user: User, after: int) -> None:
        super().__init__(api, user)
        self._left = after
        self.killed = asyncio.Event()

    async def _send(self, ask: ClientRequest) -> ClientResponse:
        if self.killed.is_set():
            raise Killed
        answer = await super()._send(ask)
        if ask.method != "GET":
            self._left -= 1
            if self._left == 0:
                self.killed.set()
                raise Killed
        return answer
