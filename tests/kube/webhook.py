"""A conversion webhook that can answer rightly, and wrongly in every way that matters.

The admission webhooks of a case are served at the same address, each at a path of its own.
"""

from __future__ import annotations

import base64
import datetime
import json
import ssl
import tempfile
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Self

from tests.kube.hooks import PATH, Hooks

from polyver.kube.http.tls import Authority

Review = dict[str, Any]


class Webhook:
    """Serves `POST /convert` on loopback over TLS, in the way that `behaviour` says.

    Unless it is given another one, it knows one kind of change: `spec.hostPort` in v1 is
    `spec.host` and `spec.port` in v2.
    """

    def __init__(self, convert: Callable[[Review, str], Review] | None = None) -> None:
        self._convert = convert or converted
        now = datetime.datetime.now(datetime.UTC)
        authority = Authority.create("polyver-webhook", now=now)
        pair = authority.server("127.0.0.1", now=now)
        self.ca = base64.b64encode(authority.pem).decode()
        self.behaviour = "ok"
        self.calls: list[str] = []
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "pair.pem"
            path.write_bytes(pair.certificate + pair.key)
            context.load_cert_chain(path)
        self._server.socket = context.wrap_socket(self._server.socket, server_side=True)
        base = f"https://127.0.0.1:{self._server.server_port}"
        self.url = f"{base}/convert"
        self.hooks = Hooks(base, self.ca)

    def __enter__(self) -> Self:
        # It looks this often whether it is to end, and each case waits for that.
        often = {"poll_interval": 0.01}
        threading.Thread(target=self._server.serve_forever, kwargs=often, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        webhook = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                length = int(self.headers.get("Content-Length", 0))
                review, media = json.loads(self.rfile.read(length)), "application/json"
                if self.path.startswith(PATH):
                    status, media, answer = webhook.hooks.answer(self.path, review)
                else:
                    status, answer = webhook.answer(review)
                self.send_response(status)
                self.send_header("Content-Type", media)
                self.send_header("Content-Length", str(len(answer)))
                with suppress(OSError):  # whoever asked does not wait for what is slow
                    self.end_headers()
                    self.wfile.write(answer)

            def log_message(self, *_: object) -> None:
                pass

        return Handler

    def answer(self, review: Review) -> tuple[int, bytes]:
        request = review["request"]
        self.calls.append(f"{len(request['objects'])} to {request['desiredAPIVersion']}")
        if self.behaviour == "status-500":
            return 500, b"broken on purpose"
        if self.behaviour == "not-json":
            return 200, b"not json"
        if self.behaviour == "slow":
            time.sleep(1)
        wanted = request["desiredAPIVersion"]
        objects = [self._convert(item, wanted) for item in request["objects"]]
        response: Review = {
            "uid": request["uid"],
            "result": {"status": "Success"},
            "convertedObjects": objects,
        }
        if self.behaviour in WRONG:
            WRONG[self.behaviour](response)
        answer = {"apiVersion": review["apiVersion"], "kind": review["kind"], "response": response}
        return 200, json.dumps(answer).encode()


def converted(item: Review, wanted: str) -> Review:
    spec = dict(item.get("spec", {}))
    if wanted.endswith("/v2") and "hostPort" in spec:
        spec["host"], _, spec["port"] = spec.pop("hostPort").partition(":")
    elif wanted.endswith("/v1") and "host" in spec:
        spec["hostPort"] = f"{spec.pop('host')}:{spec.pop('port', '')}"
    return {**item, "apiVersion": wanted, **({"spec": spec} if "spec" in item else {})}


def _each(change: Callable[[Review], object]) -> Callable[[Review], None]:
    def wrong(response: Review) -> None:
        for item in response["convertedObjects"]:
            item["metadata"] = dict(item["metadata"])
            change(item)

    return wrong


WRONG: dict[str, Callable[[Review], object]] = {
    "wrong-uid": lambda response: response.update(uid="another"),
    "no-objects": lambda response: response.update(convertedObjects=[]),
    "one-too-many": lambda response: response["convertedObjects"].append(
        response["convertedObjects"][0]
    ),
    "failure": lambda response: response.update(
        result={"status": "Failed", "message": "this one cannot be converted"}, convertedObjects=[]
    ),
    "no-result": lambda response: response.pop("result"),
    "wrong-version": _each(lambda item: item.update(apiVersion="example.com/v9")),
    "wrong-kind": _each(lambda item: item.update(kind="Other")),
    "changed-name": _each(lambda item: item["metadata"].update(name="other")),
    "changed-namespace": _each(lambda item: item["metadata"].update(namespace="other")),
    "changed-uid": _each(lambda item: item["metadata"].update(uid="other")),
    "changed-labels": _each(lambda item: item["metadata"].update(labels={"converted": "yes"})),
    "changed-finalizers": _each(lambda item: item["metadata"].update(finalizers=["ex.io/mine"])),
    "bad-label": _each(lambda item: item["metadata"].update(labels={"bad label": "!"})),
    "no-metadata": _each(lambda item: item.pop("metadata")),
}
