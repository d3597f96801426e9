"""Admission webhooks that answer as a step of a case says, and remember what they were asked."""

from __future__ import annotations

import base64
import json
import threading
import time
from typing import Any
from urllib.parse import urlsplit

from msgspec import Struct, field

PATH = "/admit"
READY = "ready"
Review = dict[str, Any]


class Answer(Struct, forbid_unknown_fields=True, rename="camel"):
    """What a webhook answers with; what is not said is as a webhook that agrees would have it."""

    response: Review = {}
    """Fields of the response in place of `uid` and `allowed`."""
    patch: Any = None
    """A JSON patch, which is sent as the protocol has it."""
    review: Review = {}
    """Fields of the whole review in place of its own; null takes one out."""
    body: str | None = None
    """All that is sent."""
    code: int = 200
    type: str = "application/json"
    wait: float = 0.0


class Hook(Struct, forbid_unknown_fields=True):
    """One webhook of a configuration, and what it answers."""

    name: str
    answer: Answer = field(default_factory=Answer)
    set: dict[str, Any] = {}
    """Fields of the webhook as the configuration has them."""


class Configuration(Struct, forbid_unknown_fields=True):
    """What becomes a MutatingWebhookConfiguration, a ValidatingWebhookConfiguration or both."""

    name: str = "hooks"
    mutating: list[Hook] | None = None
    validating: list[Hook] | None = None


class Hooks:
    """Answers on behalf of the webhooks of one case."""

    def __init__(self, base: str, ca: str) -> None:
        self.base = f"{base}{PATH}"
        self._ca = ca
        self._answers: dict[str, Answer] = {}
        self._asked: list[tuple[str, Review]] = []
        self._lock = threading.Lock()

    def manifest(self, kind: str, name: str, namespace: str, hooks: list[Hook], mark: str) -> Any:
        """A configuration of some webhooks; the first refuses whatever has the mark."""
        made = [self._ready(mark)]
        for hook in hooks:
            place = f"/{name}/{hook.name}"
            self._answers[f"{PATH}{place}"] = hook.answer
            made.append(self._defaults(place, f"{hook.name}.ex.io", namespace) | hook.set)
        return {
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": kind,
            "metadata": {"name": name},
            "webhooks": made,
        }

    def _defaults(self, place: str, name: str, namespace: str) -> Review:
        labels = {"kubernetes.io/metadata.name": namespace}
        return {
            "name": name,
            "clientConfig": {"url": f"{self.base}{place}", "caBundle": self._ca},
            "sideEffects": "None",
            "admissionReviewVersions": ["v1"],
            "namespaceSelector": {"matchLabels": labels},
        }

    def _ready(self, mark: str) -> Review:
        refusal = Answer({"allowed": False, "status": {"message": mark}})
        self._answers[f"{PATH}/{READY}/{mark}"] = refusal
        rule = {"operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"]}
        return self._defaults(f"/{READY}/{mark}", f"{READY}.hooks.ex.io", "default") | {
            "rules": [rule | {"resources": ["configmaps"]}],
            "objectSelector": {"matchLabels": {READY: mark}},
        }

    def answer(self, target: str, review: Review) -> tuple[int, str, bytes]:
        """The code, the media type and the body that a call is answered with."""
        path = urlsplit(target).path
        if not path.startswith(f"{PATH}/{READY}/"):
            with self._lock:
                self._asked.append((target.removeprefix(f"{PATH}/"), review))
        told = self._answers[path]
        time.sleep(told.wait)
        return told.code, told.type, _body(told, review)

    def asked(self, user: str) -> list[tuple[str, Review]]:
        """What one user's requests led to since the last time, and where it was asked."""
        with self._lock:
            found, self._asked = self._asked, []
        return [each for each in found if each[1]["request"]["userInfo"]["username"] == user]


def _body(told: Answer, review: Review) -> bytes:
    if told.body is not None:
        return told.body.encode()
    response: Review = {"uid": review["request"]["uid"], "allowed": True}
    if told.patch is not None:
        encoded = base64.b64encode(json.dumps(told.patch).encode()).decode()
        response |= {"patch": encoded, "patchType": "JSONPatch"}
    response |= told.response
    answer = {"apiVersion": review["apiVersion"], "kind": review["kind"], "response": response}
    answer |= told.review
    return json.dumps({key: each for key, each in answer.items() if each is not None}).encode()
