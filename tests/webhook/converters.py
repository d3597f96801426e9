"""A converter as users would write one: right, wrong in every way that matters, and slow."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import msgspec
from tests.kube.webhook import converted

from polyver.core import PolyverError
from polyver.kube.objects import encode_json
from polyver.webhook import Converters

GROUP = "hosts.example.com"
SECRET = "a secret of user code"
Object = dict[str, Any]


class Hosts:
    """`spec.hostPort` in v1 is `spec.host` and `spec.port` in v2.

    `change` is done to what was converted; an object that asks for it fails, or takes its time.
    """

    def __init__(
        self,
        kind: str = "Host",
        *,
        group: str = GROUP,
        change: Callable[[Object], object] = id,
        functions: bool = False,
    ) -> None:
        self.group = group
        self.kind = kind
        self.versions = ("v1", "v2")
        self.calls_functions = functions
        self._change = change

    def convert_raw(self, raw: bytes | msgspec.Raw, version: str) -> bytes:
        item: Object = msgspec.json.decode(raw)
        spec = item.get("spec") or {}
        if spec.get("wrong"):
            raise PolyverError("hosts have no such port", at="spec.hostPort", hint="choose 80")
        if spec.get("raises"):
            raise ValueError(SECRET)
        time.sleep(spec.get("seconds", 0))
        found = converted(item, f"{self.group}/{version}")
        self._change(found)
        return encode_json(found)

    def conversion_path(self, source: str, target: str) -> None:
        """All is converted raw."""


def served(*converters: Hosts) -> Converters:
    return {(each.group, each.kind): each for each in converters or (Hosts(),)}


def host(version: str = "v1", name: str = "a", **spec: Any) -> Object:
    """An object as API servers send it."""
    metadata = {"name": name, "namespace": "default", "uid": f"uid-of-{name}"}
    named = {"apiVersion": f"{GROUP}/{version}", "kind": "Host", "metadata": metadata}
    return named | ({"spec": spec} if spec else {})


def asked(*objects: Any, version: str = "v2", review: str = "v1", uid: str = "1") -> bytes:
    """A review."""
    request = {"uid": uid, "desiredAPIVersion": f"{GROUP}/{version}", "objects": list(objects)}
    named = {"apiVersion": f"apiextensions.k8s.io/{review}", "kind": "ConversionReview"}
    return encode_json(named | {"request": request})
