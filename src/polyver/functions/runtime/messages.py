"""Messages between polyver and the worker process of a call: lines of JSON on a socket."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import msgspec

__all__ = [
    "LARGEST_LINE",
    "WorkerMessage",
    "WorkerRequest",
    "decode_answer",
    "decode_request",
    "encode_line",
]

LARGEST_LINE = 64 * 1024 * 1024
"""Maximum size of a request in bytes.

It is large, because the arguments and the data for templates may contain whole objects.
"""


class WorkerRequest(msgspec.Struct):
    """The request to make one call. It is the first message to a worker process."""

    function: str
    version: str
    place: str
    """File and line of the registration: `backup.py:12`.

    It is needed because several packages may register a function with the same name.
    """
    arguments: dict[str, Any]
    params: dict[str, Any]
    phase: str
    deadline: datetime
    namespace: str
    key: str
    allows: list[str]
    cluster: msgspec.Raw
    """The API server, as JSON of the entry `cluster` in a kubeconfig."""
    user: msgspec.Raw
    """The credentials, as JSON of the entry `user` in a kubeconfig."""
    server: str
    """Name of the API server in error messages."""
    runs_pods: bool
    secrets: list[str]
    """Values that the worker masks in its messages."""
    output: int
    """Maximum size of the value that the function returns, in bytes."""
    log: int
    """Maximum size of the function's log, in bytes."""


class WorkerMessage(msgspec.Struct, omit_defaults=True):
    """A message from a worker process: a log line, values to mask, or the result of the call."""

    level: str = ""
    """Level of the log line: `info` or `warning`. Empty if the message is no log line."""
    event: str = ""
    facts: dict[str, Any] = {}
    secrets: list[str] = []
    """Values that the function has read from Secrets. polyver masks them from then on."""
    output: dict[str, Any] | None = None
    failed: str = ""
    trace: str = ""


# Create the decoder here, in one thread: msgspec prepares a type when it is first used.
_encode = msgspec.json.Encoder().encode_lines
decode_request = msgspec.json.Decoder(WorkerRequest).decode
decode_answer = msgspec.json.Decoder(WorkerMessage).decode


def encode_line(message: WorkerRequest | WorkerMessage | dict[str, Any]) -> bytes:
    """Encode a message as one line of JSON."""
    return _encode([message])
