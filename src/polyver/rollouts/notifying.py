"""Sends the notifications of rollouts in their own tasks, so that no decision waits for them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

from polyver.client import Backoff, Client, Clock, chance, sleep
from polyver.client.field_managers import POLYVER
from polyver.controllers.egress import HttpNotAllowed, HttpServer, InvalidUrl
from polyver.controllers.events import Events
from polyver.controllers.outgoing import HttpRequests, NoAnswer
from polyver.controllers.statuses import write_status
from polyver.core import PolyverError
from polyver.core.plain import Object
from polyver.kube.http.logs import Log
from polyver.kube.objects import encode_json
from polyver.rollouts.names import ROLLOUTS_ON
from polyver.rollouts.notices import notice_document, notice_id, notice_url

__all__ = ["Notifier"]

TRIES: Final = 5
"""The maximum number of attempts to send a notification."""
PAUSES: Final = Backoff(first=1, most=30)
"""The pauses between two attempts, in seconds."""


class Notifier:
    """Sends each notification until the server accepts it; gives up after `TRIES` failures."""

    def __init__(
        self, client: Client, requests: HttpRequests, clock: Clock, events: Events, log: Log
    ) -> None:
        self._client = client
        self._requests = requests
        self._clock = clock
        self._events = events
        self._log = log
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._done: set[str] = set()
        """The identifiers of notifications that polyver has sent or given up, and that are not
        removed from the status yet.
        """

    async def settle(self, obj: Object, wake: Callable[[], None]) -> Object:
        """Start to send the notifications in the status; remove those that are done.

        A notification is done if polyver has sent it or given it up. `wake` is called each time one
        is done. Return the rollout as it is stored after that.
        """
        status = obj.get("status") or {}
        pending = {notice_id(obj, each): each for each in status.get("notifications") or ()}
        for name, each in pending.items():
            if name not in self._tasks and name not in self._done:
                self._tasks[name] = asyncio.create_task(self._send(name, obj, each, wake))
        done = self._done & pending.keys()
        if not done:
            return obj
        left = [each for name, each in pending.items() if name not in done]
        status = {name: value for name, value in status.items() if name != "notifications"}
        status |= {"notifications": left} if left else {}
        obj = await write_status(self._client, ROLLOUTS_ON, obj, status, manager=POLYVER)
        self._done -= done
        return obj

    async def close(self) -> None:
        """Cancel all attempts. The next leader sends the notifications that are still stored."""
        tasks = [*self._tasks.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _send(self, name: str, obj: Object, notice: Object, wake: Callable[[], None]) -> None:
        url, problem = notice_url(obj, notice), ""
        for number in range(1, TRIES + 1):
            try:
                problem = await self._post(url, obj, notice)
            except (InvalidUrl, HttpNotAllowed) as error:
                problem = str(error)
                break
            if not problem:
                break
            if number < TRIES:
                await sleep(self._clock, PAUSES.delay(number, spread=chance()))
        if problem:
            at = f"spec.notify[{notice['notify']}].url"
            message = f"{notice['event']} was not reported: {problem} ({at})"
            await self._events.tell(obj, "NotificationFailed", message, type="Warning", once=name)
        self._done.add(name)
        self._tasks.pop(name, None)
        wake()

    async def _post(self, url: str, obj: Object, notice: Object) -> str:
        """Send a notification once. Return the error message, or "" if the server accepts it."""
        body = encode_json(notice_document(obj, notice))
        try:
            answer = await self._requests.send("POST", url, json=body)
        except NoAnswer as error:
            return str(error)
        except PolyverError:
            raise
        except Exception as error:
            self._log.failure("a notification could not be sent", error)
            return f"an internal error: {type(error).__name__}"
        if 200 <= answer.status < 300:
            return ""
        # The path of such a URL is often a secret, so messages have only the server.
        return f"{HttpServer.of(url)} answered with the status {answer.status}"
