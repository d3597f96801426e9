"""CEL values for URLs, from which expressions can read parts such as the host."""

from __future__ import annotations

import re
import urllib.parse
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from polyver.languages.cel._values import CelEvaluationError, Dictionary, List, Opaque
from polyver.languages.values.formats import text_format
from polyver.languages.values.strings import quoted

__all__ = ["URL", "URLS", "is_uri"]

_SHAPE = re.compile(
    r"(?:([A-Za-z][A-Za-z0-9+.-]*):)?(?://([^/?#]*))?([^?#]*)(\?[^#]*)?(#.*)?", re.DOTALL
)


@dataclass(frozen=True, slots=True)
class URL(Opaque):
    """A parsed URL, from which an expression can read parts such as the host."""

    text: str
    scheme: str
    host: str
    path: str
    query: str
    type_name = "kubernetes.URL"

    @classmethod
    def parse(cls, text: str) -> URL:
        """Parse an absolute URL or an absolute path."""
        if not is_uri(text):
            problem = f"parse {quoted(text)}: {_problem(text)}"
            raise CelEvaluationError(f"URL parse error during conversion from string: {problem}")
        found = _SHAPE.fullmatch(text)
        assert found is not None
        scheme, authority, path, query, _ = found.groups()
        host = urllib.parse.unquote((authority or "").rpartition("@")[2])
        if scheme and not authority and path and not path.startswith("/"):
            path = ""
        return cls(text, (scheme or "").lower(), host, path or "", (query or "")[1:])

    @property
    def hostname(self) -> str:
        return self._split[0]

    @property
    def port(self) -> str:
        return self._split[1]

    @property
    def _split(self) -> tuple[str, str]:
        name, colon, port = self.host.rpartition(":")
        if not colon or not re.fullmatch("[0-9]*", port):
            name, port = self.host, ""
        if name.startswith("[") and name.endswith("]"):
            name = name[1:-1]
        return name, port

    def parameters(self) -> Dictionary:
        """Return the query parameters."""
        found: dict[str, list[str]] = {}
        for pair in filter(None, self.query.split("&")):
            if ";" in pair:
                continue
            key, _, value = pair.partition("=")
            if _is_escaped(key) and _is_escaped(value):
                name = urllib.parse.unquote_plus(key)
                found.setdefault(name, []).append(urllib.parse.unquote_plus(value))
        return Dictionary([(key, List(values)) for key, values in found.items()])


def _is_escaped(text: str) -> bool:
    return re.search("%(?![0-9a-fA-F]{2})", text) is None


def is_uri(text: str) -> bool:
    """Report whether a string is an absolute URL or an absolute path."""
    known = text_format("uri")
    return known is not None and known(text)


def _problem(text: str) -> str:
    if not text:
        return "empty url"
    if re.search(r"[\x00-\x1f\x7f]", text):
        return "net/url: invalid control character in URL"
    if text.startswith(":"):
        return "missing protocol scheme"
    space = re.match(r"[A-Za-z][A-Za-z0-9+.-]*://[^/?#]*? ", text)
    if space is not None:
        return 'invalid character " " in host name'
    wrong = re.search("%(?![0-9a-fA-F]{2}).{0,2}", text)
    if wrong is not None:
        return f"invalid URL escape {quoted(wrong[0])}"
    return "invalid URI for request"


def _escaped_path(found: URL) -> str:
    if _is_escaped(found.path) and re.fullmatch(
        r"[A-Za-z0-9\-._~!$&'()*+,;=:@/%\[\]]*", found.path
    ):
        return found.path
    return urllib.parse.quote(urllib.parse.unquote(found.path), safe="$&+,/:;=@-_.~")


URLS: dict[str, Callable[..., Any]] = {
    "string_to_url": URL.parse,
    "is_url_string": is_uri,
    "url_get_scheme": lambda found: found.scheme,
    "url_get_host": lambda found: found.host,
    "url_get_hostname": lambda found: found.hostname,
    "url_get_port": lambda found: found.port,
    "url_get_escaped_path": _escaped_path,
    "url_get_query": lambda found: found.parameters(),
}
