"""Who may see the page: who has its token, or a cookie that was given for it, on this machine.

The page is read-only and on the loopback address; what is left to keep out are other users of the
machine, and web sites that have a browser ask for them.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import parse_qsl, urlencode

__all__ = ["LoginRedirect", "PageAuthenticator", "host_is_local"]

LASTS = 7 * 24 * 3600
"""How many seconds a browser is let in for one token."""
_LOCAL = frozenset(("127.0.0.1", "localhost", "[::1]"))


def host_is_local(host: str) -> bool:
    """Whether a Host header names this machine by a name that nobody else can take.

    A web site whose name is made to mean 127.0.0.1 has its own name there. Any port will do, so
    that one can be forwarded.

    >>> host_is_local("127.0.0.1:6451"), host_is_local("evil.example:6451")
    (True, False)
    """
    name, colon, port = host.rpartition(":")
    if not colon or host.endswith("]"):
        name, port = host, "0"
    return name.lower() in _LOCAL and port.isascii() and port.isdigit()


@dataclass(frozen=True, slots=True)
class LoginRedirect:
    """A token in an address: the cookie that it is worth, and the address without it."""

    cookie: str
    address: str


class PageAuthenticator:
    """Tells who has the token."""

    def __init__(self, token: str) -> None:
        self._key = token.encode()
        self._name = f"polyver-{hashlib.sha256(b'name' + self._key).hexdigest()[:8]}"

    def entered(self, path: str, query: str, now: float) -> LoginRedirect | None:
        """What follows from an address with a good token; None if it has none that is good."""
        pairs = parse_qsl(query, keep_blank_values=True)
        if not any(name == "token" and self._is_token(value) for name, value in pairs):
            return None
        until = int(now) + LASTS
        value = f"{until}.{self._signed(until)}"
        # Not Secure: that is for TLS, and this never leaves the machine.
        cookie = f"{self._name}={value}; Path=/; Max-Age={LASTS}; HttpOnly; SameSite=Strict"
        rest = urlencode([(name, value) for name, value in pairs if name != "token"])
        # One slash: two would be another host.
        address = "/" + path.lstrip("/\\")
        return LoginRedirect(cookie, f"{address}?{rest}" if rest else address)

    def allows(self, headers: Mapping[str, str], now: float) -> bool:
        """Whether a request shows the token as its bearer, or a cookie that still counts."""
        scheme, _, token = headers.get("authorization", "").partition(" ")
        if scheme.lower() == "bearer":
            return self._is_token(token.strip())
        until, _, signature = self._cookie(headers.get("cookie", "")).partition(".")
        if not (until.isascii() and until.isdigit() and len(until) < 16) or int(until) < now:
            return False
        wanted = self._signed(int(until)).encode()
        return hmac.compare_digest(wanted, signature.encode("utf-8", "replace"))

    def _cookie(self, text: str) -> str:
        # By hand: what runs on other ports of this machine has its cookies sent here, too, and
        # one that is written oddly must not hide ours.
        pairs = (each.strip().partition("=") for each in text.split(";"))
        return next((value for name, _, value in pairs if name == self._name), "")

    def _is_token(self, text: str) -> bool:
        return hmac.compare_digest(self._key, text.encode("utf-8", "replace"))

    def _signed(self, until: int) -> str:
        return hmac.new(self._key, f"page until {until}".encode(), hashlib.sha256).hexdigest()
