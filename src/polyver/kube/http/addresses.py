"""Addresses of servers: host names and URLs."""

from __future__ import annotations

import socket

__all__ = ["LOOPBACK", "local_names", "url"]

LOOPBACK = "127.0.0.1"
_LOCAL = ("localhost", LOOPBACK, "::1")
_ANY = ("0.0.0.0", "::", "")  # noqa: S104 - these are recognised, not listened on


def local_names(host: str) -> list[str]:
    """List the names and addresses by which clients address a server that listens on `host`.

    >>> local_names("10.1.2.3")
    ['10.1.2.3', 'localhost', '127.0.0.1', '::1']
    """
    own = socket.gethostname() if host in _ANY else host
    return list(dict.fromkeys((own, *_LOCAL)))


def url(host: str, port: int, *, scheme: str = "https") -> str:
    """Build the URL at which clients reach a server that listens on `host` and `port`.

    >>> url("::", 6450), url("fe80::1", 443)
    ('https://127.0.0.1:6450', 'https://[fe80::1]:443')
    """
    shown = LOOPBACK if host in _ANY else host
    return f"{scheme}://[{shown}]:{port}" if ":" in shown else f"{scheme}://{shown}:{port}"
