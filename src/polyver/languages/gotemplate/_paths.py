"""Template functions for file paths and URLs, which only change strings and read no file."""

from __future__ import annotations

import posixpath
import re
from typing import Any
from urllib.parse import quote, unquote_to_bytes

from polyver.languages.gotemplate._functions import FunctionTable
from polyver.languages.gotemplate._values import TemplateFailure, decoded, encoded, kind_of

__all__ = ["PATHS"]

PATHS = FunctionTable("paths")


@PATHS.add("base osBase", "string")
def _base(path: str) -> str:
    if not path:
        return "."
    return path.rstrip("/").rpartition("/")[2] or "/"


@PATHS.add("clean osClean", "string")
def _clean(path: str) -> str:
    cleaned = posixpath.normpath(path)
    # Two leading slashes have a meaning in POSIX, but not in Go.
    return cleaned.replace("//", "/", 1) if cleaned.startswith("//") else cleaned


@PATHS.add("dir osDir", "string")
def _dir(path: str) -> str:
    head, slash, _ = path.rpartition("/")
    return _clean(head + slash)


@PATHS.add("ext osExt", "string")
def _ext(path: str) -> str:
    name = path.rpartition("/")[2]
    _, dot, after = name.rpartition(".")
    return f".{after}" if dot else ""


PATHS.put("isAbs osIsAbs", "string", lambda path: path.startswith("/"))

# URLs

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):")
_ESCAPE = re.compile(r"%(?![0-9a-fA-F]{2})")
_USER = "$&+,;="
_FIELDS = ("scheme", "host", "path", "query", "opaque", "fragment", "userinfo")


def _unescaped(text: str) -> str:
    wrong = _ESCAPE.search(text)
    if wrong is not None:
        at = wrong.start()
        raise TemplateFailure(f'unable to parse url: invalid URL escape "{text[at : at + 3]}"')
    return decoded(unquote_to_bytes(encoded(text)))


@PATHS.add("urlParse", "string")
def _url_parse(text: str) -> dict[str, Any]:
    if any(char < " " or char == "\x7f" for char in text):
        raise TemplateFailure("unable to parse url: invalid control character in URL")
    rest, _, fragment = text.partition("#")
    scheme, rest = _scheme(rest)
    rest, _, query = rest.partition("?")
    found: dict[str, Any] = dict.fromkeys((*_FIELDS, "hostname"), "")
    found |= {"scheme": scheme.lower(), "query": query, "fragment": _unescaped(fragment)}
    if scheme and not rest.startswith("/"):
        return found | {"opaque": rest}
    if not scheme and ":" in rest.partition("/")[0]:
        raise TemplateFailure("unable to parse url: first path segment in URL cannot contain colon")
    if rest.startswith("//") and (scheme or not rest.startswith("///")):
        authority, slash, path = rest[2:].partition("/")
        found |= _authority(authority)
        rest = slash + path
    return found | {"path": _unescaped(rest)}


def _scheme(rest: str) -> tuple[str, str]:
    found = _SCHEME.match(rest)
    if found is not None:
        return found[1], rest[found.end() :]
    if rest.startswith(":"):
        raise TemplateFailure("unable to parse url: missing protocol scheme")
    return "", rest


def _authority(text: str) -> dict[str, str]:
    user, at, host = text.rpartition("@")
    if not at:
        host = text
    if host.startswith("["):
        name, bracket, port = host[1:].rpartition("]")
        if not bracket:
            raise TemplateFailure("unable to parse url: missing ']' in host")
    else:
        name, _, port = host.rpartition(":") if ":" in host else (host, "", "")
        port = f":{port}" if ":" in host else ""
    if port and not re.fullmatch(":[0-9]*", port):
        raise TemplateFailure(f'unable to parse url: invalid port "{port}" after host')
    escape = re.search("%(?!25)[0-7][0-9a-fA-F]", host)
    if escape is not None:
        raise TemplateFailure(f'unable to parse url: invalid URL escape "{escape[0]}"')
    if re.search(r"[ <>\"\\^`{|}]", host):
        raise TemplateFailure("unable to parse url: invalid character in host name")
    return {"userinfo": _user(user), "host": _unescaped(host), "hostname": _unescaped(name)}


def _user(text: str) -> str:
    if not text:
        return ""
    if not re.fullmatch(r"[A-Za-z0-9\-._:~!$&'()*+,;=%@]*", text):
        raise TemplateFailure("unable to parse url: net/url: invalid userinfo")
    name, colon, password = text.partition(":")
    parts = [quote(encoded(_unescaped(part)), safe=f"{_USER}~") for part in (name, password)]
    return f"{parts[0]}:{parts[1]}" if colon else parts[0]


@PATHS.add("urlJoin", "dict")
def _url_join(parts: dict[str, Any]) -> str:
    for name in _FIELDS:
        if not isinstance(parts.get(name, ""), str):
            kind = kind_of(parts[name])
            raise TemplateFailure(
                f"unable to parse {name} key, must be of type string, but {kind} found"
            )
    scheme, host, path = (parts.get(name, "") for name in _FIELDS[:3])
    text = f"{scheme}:" if scheme else ""
    if parts.get("opaque"):
        text += parts["opaque"]
    else:
        text += _joined_path(scheme, host, path, _user(parts.get("userinfo", "")), bool(text))
    if parts.get("query"):
        text += f"?{parts['query']}"
    if parts.get("fragment"):
        text += f"#{quote(encoded(parts['fragment']), safe='!$&()*+,;=:@/?~')}"
    return text


def _joined_path(scheme: str, host: str, path: str, user: str, absolute: bool) -> str:
    text = ""
    if scheme or host or user:
        if host or path or user:
            text = "//" if host or user or path.startswith("/") else ""
        text += f"{user}@" if user else ""
        text += host if host.startswith("[") else quote(encoded(host), safe="!$&'()*+,;=:[]<>\"~")
    shown = "*" if path == "*" else quote(encoded(path), safe="$&+,/:;=@~")
    if shown and not shown.startswith("/") and host:
        return f"{text}/{shown}"
    if not text and not absolute and ":" in shown.partition("/")[0]:
        return f"./{shown}"
    return text + shown
