"""Access control for the page: a browser sends a token first, and a cookie afterwards.

The page is read-only, and is served on the loopback address. Other users of the machine must not
read it, and neither must web sites that make a browser send requests to the page.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import parse_qsl, urlencode

__all__ = ["LoginRedirect", "PageAuthenticator", "host_is_local"]

LASTS = 7 * 24 * 3600
"""The lifetime of a cookie, in seconds."""
_LOCAL = frozenset(("127.0.0.1", "localhost", "[::1]"))


def host_is_local(host: str) -> bool:
    """Report whether a Host header names this machine by a name that nobody else can register.

    A web site can let its own name resolve to 127.0.0.1, so that browsers send requests to the
    page. Such a browser sends the name of the web site in the Host header, and the page refuses the
    request. Any port is accepted, so that port forwarding works.

    >>> host_is_local("127.0.0.1:6451"), host_is_local("evil.example:6451")
    (True, False)
    """
    name, colon, port = host.rpartition(":")
    if not colon or host.endswith("]"):
        name, port = host, "0"
    return name.lower() in _LOCAL and port.isascii() and port.isdigit()


@dataclass(frozen=True, slots=True)
class LoginRedirect:
    """The response to a URL with a token: sets a cookie, and redirects to the URL without token."""

    cookie: str
    address: str


class PageAuthenticator:
    """Checks the token or the cookie of a request."""

    def __init__(self, token: str) -> None:
        self._key = token.encode()
        self._name = f"polyver-{hashlib.sha256(b'name' + self._key).hexdigest()[:8]}"

    def entered(self, path: str, query: str, now: float) -> LoginRedirect | None:
        """Return the redirect for a URL with a valid token; None for every other URL."""
        pairs = parse_qsl(query, keep_blank_values=True)
        if not any(name == "token" and self._is_token(value) for name, value in pairs):
            return None
        until = int(now) + LASTS
        value = f"{until}.{self._signed(until)}"
        # The cookie is not marked Secure: that requires TLS, and these requests never leave the
        # machine.
        cookie = f"{self._name}={value}; Path=/; Max-Age={LASTS}; HttpOnly; SameSite=Strict"
        rest = urlencode([(name, value) for name, value in pairs if name != "token"])
        # The location begins with one slash: with two slashes, the browser would go to another
        # host.
        address = "/" + path.lstrip("/\\")
        return LoginRedirect(cookie, f"{address}?{rest}" if rest else address)

    def allows(self, headers: Mapping[str, str], now: float) -> bool:
        """Report whether a request has the bearer token, or a valid cookie."""
        scheme, _, token = headers.get("authorization", "").partition(" ")
        if scheme.lower() == "bearer":
            return self._is_token(token.strip())
        until, _, signature = self._cookie(headers.get("cookie", "")).partition(".")
        if not (until.isascii() and until.isdigit() and len(until) < 16) or int(until) < now:
            return False
        wanted = self._signed(int(until)).encode()
        return hmac.compare_digest(wanted, signature.encode("utf-8", "replace"))

    def _cookie(self, text: str) -> str:
        # Cookies are parsed here, because browsers also send the cookies of other ports of this
        # machine. A malformed cookie among them must not hide ours.
        pairs = (each.strip().partition("=") for each in text.split(";"))
        return next((value for name, _, value in pairs if name == self._name), "")

    def _is_token(self, text: str) -> bool:
        return hmac.compare_digest(self._key, text.encode("utf-8", "replace"))

    def _signed(self, until: int) -> str:
        return hmac.new(self._key, f"page until {until}".encode(), hashlib.sha256).hexdigest()
