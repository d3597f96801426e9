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
"""Arguments and parameters hold whole objects; an answer is far smaller."""


class WorkerRequest(msgspec.Struct):
    """One call, sent to a worker process before anything else."""

    function: str
    version: str
    place: str
    """Where it is registered: two packages may register the same name."""
    arguments: dict[str, Any]
    params: dict[str, Any]
    phase: str
    deadline: datetime
    namespace: str
    key: str
    allows: list[str]
    cluster: msgspec.Raw
    """The API server, as a kubeconfig has it."""
    user: msgspec.Raw
    """The credentials for it."""
    server: str
    """What it is called in errors."""
    runs_pods: bool
    secrets: list[str]
    """Values that must not be shown."""
    output: int
    """How many bytes the output may have."""
    log: int
    """How many bytes the log may have."""


class WorkerMessage(msgspec.Struct, omit_defaults=True):
    """A message of a worker process: a line of the log, or at the end an output or a failure."""

    level: str = ""
    """info or warning, of a line of the log."""
    event: str = ""
    facts: dict[str, Any] = {}
    secrets: list[str] = []
    """Values that the function has read from Secrets."""
    output: dict[str, Any] | None = None
    failed: str = ""
    trace: str = ""


# Made here, on one thread: msgspec prepares a type when it is used for the first time.
_encode = msgspec.json.Encoder().encode_lines
decode_request = msgspec.json.Decoder(WorkerRequest).decode
decode_answer = msgspec.json.Decoder(WorkerMessage).decode


def encode_line(message: WorkerRequest | WorkerMessage | dict[str, Any]) -> bytes:
    """Return a message as one line."""
    return _encode([message])
