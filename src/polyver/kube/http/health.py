"""Health endpoints such as /readyz, with the same answers as those of kube-apiserver."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from urllib.parse import parse_qs

from polyver.kube.http.http import HttpResponse
from polyver.kube.objects.codec import encode_json

__all__ = ["Checks", "health"]

Checks = Mapping[str, Callable[[], str]]
"""Health checks by name; each function returns a problem, or an empty string if there is none."""

_PLAIN = [("Content-Type", "text/plain; charset=utf-8")]
_HEADERS = [*_PLAIN, ("X-Content-Type-Options", "nosniff")]


def health(path: str, query: str, checks: Checks, *, failing: int = 500) -> HttpResponse:
    """Answer a request for /healthz, /livez or /readyz, or for one check, such as /livez/ping.

    If a check fails, the status code is `failing`.

    >>> health("/livez", "verbose", {"ping": lambda: ""}).body
    b'[+]ping ok\\nlivez check passed\\n'
    """
    name, _, check = path.removeprefix("/").partition("/")
    if check:
        return _one(checks[check](), failing) if check in checks else _nothing()
    if path.endswith("/"):
        return _nothing()
    options = parse_qs(query, keep_blank_values=True)
    excluded = set(options.get("exclude", ()))
    lines = [_line(each, checks, excluded) for each in checks]
    if unknown := sorted(excluded - set(checks)):
        names = ",".join(encode_json(each).decode() for each in unknown)
        lines.append(f"warn: some health checks cannot be excluded: no matches for {names}")
    # The reason for a failure is shown only at the path of the check, such as /livez/ping.
    if any(line.startswith("[-]") for line in lines):
        return HttpResponse(failing, list(_HEADERS), _text([*lines, f"{name} check failed"]))
    passed = _text([*lines, f"{name} check passed"])
    return HttpResponse(200, list(_HEADERS), passed if "verbose" in options else b"ok")


def _one(problem: str, failing: int) -> HttpResponse:
    if problem:
        return HttpResponse(failing, list(_HEADERS), f"internal server error: {problem}\n".encode())
    return HttpResponse(200, list(_PLAIN), b"ok")


def _line(check: str, checks: Checks, excluded: set[str]) -> str:
    if check in excluded:
        return f"[+]{check} excluded: ok"
    return f"[-]{check} failed: reason withheld" if checks[check]() else f"[+]{check} ok"


def _text(lines: list[str]) -> bytes:
    return "".join(f"{line}\n" for line in lines).encode()


def _nothing() -> HttpResponse:
    return HttpResponse(404, list(_HEADERS), b"404 page not found\n")
