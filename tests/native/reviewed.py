"""Reviews for compiled code, and what it says of them; it is only there where it was built."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from polyver.apis.conversion import Converter, DeclaredEdge, Rules
from polyver.kube.objects import encode_json
from polyver.native import Compiled, Program, compiled

needs_native = pytest.mark.skipif(compiled is None, reason="polyver.native is not built")

GROUP, KIND = "ex.io", "Thing"
Object = dict[str, Any]
Add = Callable[[Rules], object]


def native() -> Compiled:
    assert compiled is not None
    return compiled


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
    """A review; what is bytes already is in it as it is."""
    texts = [each if isinstance(each, bytes) else encode_json(each) for each in objects]
    request = encode_json({"uid": "1", "desiredAPIVersion": f"{GROUP}/{version}", **more})
    about = {"kind": "ConversionReview", "apiVersion": "apiextensions.k8s.io/v1"}
    head = encode_json(about)[:-1] + b',"request":' + request[:-1]
    return head + b',"objects":[' + b",".join(texts) + b"]}}"


def program(known: Converter, source: str, target: str) -> Program:
    found = known.program(source, target)
    assert found is not None
    return found


def converted(known: Converter, *objects: Any, source: str = "v1", target: str = "v2") -> list[Any]:
    """What compiled code alone makes of objects, all of them."""
    table = native().table((program(known, source, target),))
    told = native().answer(table, asked(*objects, version=target))
    assert told is not None
    text, count, _, holes = told
    assert (count, holes) == (len(objects), None)
    found: list[Any] = json.loads(text)["response"]["convertedObjects"]
    return found
