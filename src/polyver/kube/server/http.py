"""Requests and responses of the pipeline, with or without a socket."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from polyver.kube.http.http import HttpResponse
from polyver.kube.server.admission import User

__all__ = ["Handler", "HttpRequest", "HttpResponse", "User"]


@dataclass(slots=True)
class HttpRequest:
    """A request to the pipeline."""

    method: str
    path: str
    """The decoded path without the query."""
    query: str
    headers: Mapping[str, str]
    """Headers by their names in lower case."""
    body: bytes
    user: User
    remote: str = ""


class Handler(Protocol):
    """The request pipeline, or a wrapper around it."""

    async def handle(self, request: HttpRequest) -> HttpResponse: ...
