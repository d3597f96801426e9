"""Requests and answers as the pipeline sees them, whether they came by a socket or not."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from polyver.kube.http.http import HttpResponse
from polyver.kube.server.admission import User

__all__ = ["HttpRequest", "HttpResponse", "User"]


@dataclass(slots=True)
class HttpRequest:
    """What is asked for."""

    method: str
    path: str
    """Decoded, without the query."""
    query: str
    headers: Mapping[str, str]
    """By their names in lower case."""
    body: bytes
    user: User
    remote: str = ""
