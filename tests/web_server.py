"""An HTTP server whose answers a test chooses, and that remembers the requests."""

from __future__ import annotations

import http.server
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Asked:
    """One request."""

    method: str
    target: str
    headers: Mapping[str, str]
    body: bytes


@dataclass
class WebServer:
    """A server on a free port of 127.0.0.1; without an answer for a target, it answers with 200."""

    port: int = 0
    answers: dict[str, tuple[int, bytes]] = field(default_factory=dict)
    """The statuses and bodies of answers, by target or by path."""
    headers: dict[str, Mapping[str, str]] = field(default_factory=dict)
    asked: list[Asked] = field(default_factory=list)

    @property
    def pattern(self) -> str:
        return f"127.0.0.1:{self.port}"

    @property
    def url(self) -> str:
        return f"http://{self.pattern}"


@contextmanager
def web_server() -> Iterator[WebServer]:
    web = WebServer()

    class Handler(http.server.BaseHTTPRequestHandler):
        def answer(self) -> None:
            length = int(self.headers.get("content-length") or 0)
            headers = {name.lower(): value for name, value in self.headers.items()}
            asked = Asked(self.command, self.path, headers, self.rfile.read(length))
            web.asked.append(asked)
            path = self.path.partition("?")[0]
            status, body = web.answers.get(self.path) or web.answers.get(path) or (200, b"")
            self.send_response(status)
            for name, value in web.headers.get(path, {}).items():
                self.send_header(name, value)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        do_GET = do_POST = answer  # noqa: N815 - names of the library

        def log_message(self, *arguments: object) -> None:
            del arguments

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        web.port = server.server_port
        thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
        thread.start()
        try:
            yield web
        finally:
            server.shutdown()
            thread.join()
