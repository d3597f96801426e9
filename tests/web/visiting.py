"""A control plane with a page, and someone who looks at it."""

from __future__ import annotations

import http.client
import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

from tests.deadlines import HANG
from tests.definitions.samples import Platform
from tests.walks.support import eventually

from polyver.functions.loading import load_functions
from polyver.functions.registering import Functions
from polyver.testing import EmbeddedServer

EXAMPLE = Path(__file__).parents[2] / "examples"
FUNCTIONS = str(EXAMPLE / "functions" / "backup_functions" / "__init__.py")
CATALOGUE = str(EXAMPLE / "functions" / "backup_functions" / "catalogue.yaml")
CAPABILITIES = ("apis", "functions", "definitions")
PATIENCE = HANG


def functions() -> Functions:
    return load_functions([FUNCTIONS], [CATALOGUE])


class Answer:
    """What was answered: its status, its headers, and what it says."""

    def __init__(self, response: http.client.HTTPResponse) -> None:
        self.status = response.status
        self.headers = {name.lower(): value for name, value in response.getheaders()}
        self.text = response.read().decode()

    @property
    def json(self) -> Any:
        return json.loads(self.text)

    @property
    def words(self) -> str:
        """What a reader sees, without the markup."""
        reader = _Reader()
        reader.feed(self.text)
        return re.sub(r"\s+", " ", " ".join(reader.texts))

    @property
    def tags(self) -> list[tuple[str, dict[str, str | None]]]:
        reader = _Reader()
        reader.feed(self.text)
        return reader.tags


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.texts: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []

    def handle_data(self, data: str) -> None:
        self.texts.append(data)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))


class Visitor:
    """Someone with the address of a page."""

    def __init__(self, address: str) -> None:
        parts = urlsplit(address)
        self.host = parts.netloc
        self.token = parts.query.removeprefix("token=")

    def ask(self, path: str, method: str = "GET", **headers: str) -> Answer:
        """Ask as nobody in particular."""
        connection = http.client.HTTPConnection(self.host, timeout=PATIENCE)
        try:
            sent = {name.replace("_", "-"): value for name, value in headers.items()}
            connection.request(method, path, headers=sent)
            return Answer(connection.getresponse())
        finally:
            connection.close()

    def see(self, path: str, **query: str | int) -> Answer:
        """Look at a page as one who may."""
        written = quote(path, safe="/")
        asked = f"{written}?{urlencode(query)}" if query else written
        return self.ask(asked, authorization=f"Bearer {self.token}")

    def data(self, path: str, **query: str | int) -> Any:
        answer = self.see(f"/api{path}", **query)
        assert answer.status == 200, answer.text
        return answer.json

    def lineage(self, capability: str, path: str, **query: str | int) -> Any:
        return self.data(f"/lineages/{capability}/{path}", **query)


class Visited:
    """A control plane, its page, and what is on it."""

    def __init__(self, server: EmbeddedServer) -> None:
        self.server = server
        self.platform = Platform(server)
        self.visitor = Visitor(server.page)

    def create(self, kind: str, path: str, obj: dict[str, Any]) -> Any:
        _, _, group, version, *_ = path.split("/")
        whole = {"apiVersion": f"{group}/{version}", "kind": kind, **obj}
        return self.server.request("POST", path, whole)

    def eventually(self, is_so: Any) -> Any:
        """Pages follow what is written; not in the same moment."""
        return eventually(is_so)


@contextmanager
def visited() -> Iterator[Visited]:
    with EmbeddedServer(capabilities=CAPABILITIES, functions=functions(), page=True) as server:
        around = Visited(server)
        try:
            yield around
        finally:
            around.platform.close()
