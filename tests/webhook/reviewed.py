"""Reviews of a small kind that is converted by rules."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from polyver.apis.conversion import Converter, DeclaredEdge, Rules
from polyver.kube.objects import encode_json

GROUP, KIND = "ex.io", "Thing"
Object = dict[str, Any]
Add = Callable[[Rules], object]


def by_rules(*edges: Add, **options: Any) -> Converter:
    """A converter of v1, v2 and so on, with the rules between each two."""
    declared = []
    for number, add in enumerate(edges, 1):
        rules = Rules()
        add(rules)
        declared.append(DeclaredEdge(f"v{number}", f"v{number + 1}", rules.block()))
    versions = [f"v{number + 1}" for number in range(len(edges) + 1)]
    return Converter(GROUP, KIND, versions, declared, **options)


def thing(spec: Any, version: str = "v1", **more: Any) -> Object:
    named = {"apiVersion": f"{GROUP}/{version}", "kind": KIND, "metadata": {"name": "a"}}
    return {**named, "spec": spec, **more}


def asked(*objects: Any, version: str = "v2", **more: Any) -> bytes:
    """A review; objects that are bytes are in it as they are."""
    texts = [each if isinstance(each, bytes) else encode_json(each) for each in objects]
    request = encode_json({"uid": "1", "desiredAPIVersion": f"{GROUP}/{version}", **more})
    about = {"kind": "ConversionReview", "apiVersion": "apiextensions.k8s.io/v1"}
    head = encode_json(about)[:-1] + b',"request":' + request[:-1]
    return head + b',"objects":[' + b",".join(texts) + b"]}}"
