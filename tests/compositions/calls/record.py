"""Records what Crossplane's Python SDK makes of messages, for the tests of ours.

The SDK pins grpcio and protobuf, so it has an environment of its own:

    python -m venv sdk && sdk/bin/pip install crossplane-function-sdk-python
    sdk/bin/python tests/compositions/calls/record.py

Each record has the value as polyver's messages have it, as JSON, and the bytes of the SDK.
"""

from __future__ import annotations

import base64
import importlib
import json
import random
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

from google.protobuf import json_format

HERE = Path(__file__).parent
SEED = 40
Json = dict[str, Any]


def main() -> None:
    cases = [*written(), *drawn(random.Random(SEED))]
    names = ("crossplane-function-sdk-python", "grpcio", "protobuf")
    lines = [{name: version(name) for name in names}, *(recorded(*case) for case in cases)]
    text = "\n".join(json.dumps(line, ensure_ascii=False) for line in lines)
    (HERE / "recorded" / "messages.jsonl").write_text(text + "\n")
    print(f"{len(cases)} messages")


def recorded(kind: str, value: Json) -> Json:
    made = []
    for release in ("v1", "v1beta1"):
        sdk = importlib.import_module(f"crossplane.function.proto.{release}.run_function_pb2")
        message = getattr(sdk, f"RunFunction{kind}")()
        json_format.ParseDict(protobuf_json(kind, value), message)
        made.append(message.SerializeToString(deterministic=True))
    if made[0] != made[1]:
        raise SystemExit(f"v1 and v1beta1 differ for {value}")
    content = base64.b64encode(made[0]).decode()
    return {"kind": kind, "value": in_order(value), "bytes": content}


def in_order(value: Any) -> Any:
    """With keys in the order in which the SDK writes them: what begins with another is first."""
    match value:
        case dict():
            return {key: in_order(value[key]) for key in sorted(value, key=_rank)}
        case list():
            return [in_order(item) for item in value]
    return value


def _rank(key: str) -> bytes:
    return key.encode() + b"\xff"


# The same value in protobuf's JSON, which has a message around some of its parts.


def protobuf_json(kind: str, value: Json) -> Json:
    changes = _REQUEST if kind == "Request" else _RESPONSE
    return {name: changes.get(name, lambda same: same)(part) for name, part in value.items()}


def _items(groups: Json) -> Json:
    return {name: {"items": items} for name, items in groups.items()}


def _selectors(selectors: Json) -> Json:
    return {
        name: {
            key: {"labels": part} if key == "match_labels" else part
            for key, part in selector.items()
        }
        for name, selector in selectors.items()
    }


def _requirements(requirements: Json) -> Json:
    return {
        name: part if name == "schemas" else _selectors(part) for name, part in requirements.items()
    }


_REQUEST = {
    "extra_resources": _items,
    "required_resources": _items,
    "credentials": lambda each: {
        name: {"credential_data": {"data": data} if data else {}} for name, data in each.items()
    },
    "required_schemas": lambda each: {
        name: {"openapi_v3": schema} if schema else {} for name, schema in each.items()
    },
}
_RESPONSE = {
    "meta": lambda meta: meta | ({"ttl": f"{meta['ttl']:.9f}s"} if "ttl" in meta else {}),
    "requirements": _requirements,
}


# Values.


def written() -> list[tuple[str, Json]]:
    """What functions are asked and answer in life, and what is odd."""
    bucket = {
        "apiVersion": "example.org/v1",
        "kind": "Bucket",
        "metadata": {"labels": {"a": "b", "app.kubernetes.io/name": "x"}, "name": "b-1"},
        "spec": {"deep": [[], [{}], {"a": [None, True, False]}], "empty": {}, "size": 3},
    }
    numbers = {
        "big": 2**53,
        "exponent": 1.5e300,
        "half": 0.5,
        "int32": -(2**31),
        "large": 2**62,
        "negative": -1,
        "small": 5e-324,
        "zero": 0,
    }
    texts = {"": "empty key", "ä": "ß", "emoji": "🙂", "long": "x" * 300, "nul": "\0", "q": '"\\'}
    texts |= {"x" * 200: "long key"}
    return [
        ("Request", {}),
        ("Request", {"meta": {"tag": "t", "capabilities": [1, 2, 3, 4, 5]}}),
        ("Request", {"observed": {"composite": {"resource": bucket}}}),
        ("Request", {"desired": {"resources": {"a": {"resource": bucket, "ready": 1}, "b": {}}}}),
        ("Request", {"input": numbers, "context": texts}),
        ("Request", {"input": {}, "context": {}}),
        (
            "Request",
            {
                "credentials": {"aws": {"id": "AAEC", "key": "/////w=="}, "none": {}},
                "extra_resources": {"found": [{"resource": bucket}, {}], "nothing": []},
                "required_resources": {"found": [{"resource": bucket}], "nothing": []},
                "required_schemas": {"found": {"type": "object"}, "nothing": {}},
            },
        ),
        ("Response", {}),
        ("Response", {"meta": {"tag": "t", "ttl": 60.0}}),
        ("Response", {"meta": {"ttl": 0.25}}),
        ("Response", {"meta": {"ttl": 0.0}, "output": {"done": True}}),
        ("Response", {"meta": {"ttl": -1.5}}),
        (
            "Response",
            {
                "desired": {
                    "composite": {
                        "resource": {"status": {"ready": 2}},
                        "connection_details": {"a": "AAEC", "b": ""},
                        "ready": 2,
                    },
                    "resources": {"bucket": {"resource": bucket, "ready": 1}},
                },
                "results": [
                    {"severity": 1, "message": "no"},
                    {"severity": 2, "message": "hm", "reason": "Odd", "target": 2},
                    {"severity": 3, "reason": ""},
                    {},
                ],
                "context": {"apiextensions.crossplane.io/environment": {"a": 1}},
                "requirements": {
                    "extra_resources": {
                        "one": {"api_version": "v1", "kind": "A", "match_name": ""}
                    },
                    "resources": {
                        "all": {"api_version": "v1", "kind": "A", "match_labels": {}},
                        "some": {
                            "api_version": "v1",
                            "kind": "A",
                            "match_labels": {"a": "b", "c": ""},
                            "namespace": "ns",
                        },
                    },
                    "schemas": {"s": {"api_version": "v1", "kind": "A"}},
                },
                "conditions": [
                    {"type": "Ready", "status": 2, "reason": "Fine"},
                    {"type": "Odd", "status": 1, "reason": "R", "message": "", "target": 1},
                    {"type": "Not", "status": 3, "reason": "R", "message": "m", "target": 2},
                ],
            },
        ),
    ]


def drawn(chance: random.Random) -> list[tuple[str, Json]]:
    """Some of all shapes."""
    requests = [
        {
            "observed": {"composite": resource(chance), "resources": named(chance, resource)},
            "desired": {"resources": named(chance, resource)},
            "input": thing(chance, 4),
        }
        for _ in range(8)
    ]
    responses = [
        {"desired": {"resources": named(chance, resource)}, "context": thing(chance, 3)}
        for _ in range(8)
    ]
    return [("Request", each) for each in requests] + [("Response", each) for each in responses]


def resource(chance: random.Random) -> Json:
    found: Json = {"resource": {"kind": "A"} | thing(chance, 3)}
    if chance.random() < 0.3:
        found["connection_details"] = {"k": base64.b64encode(chance.randbytes(9)).decode()}
    if chance.random() < 0.5:
        found["ready"] = chance.randint(1, 2)
    return found


def named(chance: random.Random, made: Any) -> Json:
    return {f"r{n}": made(chance) for n in range(chance.randint(1, 4))}


def thing(chance: random.Random, depth: int) -> Json:
    keys = [word(chance) for _ in range(chance.randint(1, 5))]
    return {key: value(chance, depth - 1) for key in keys}


def value(chance: random.Random, depth: int) -> Any:
    kinds: list[Callable[[], Any]] = [
        lambda: None,
        lambda: chance.random() < 0.5,
        lambda: word(chance),
    ]
    kinds += [lambda: chance.randint(-(2**53), 2**53), lambda: chance.uniform(-9, 9)]
    if depth:
        kinds += [lambda: thing(chance, depth)] * 3
        kinds += [lambda: [value(chance, depth - 1) for _ in range(chance.randint(0, 4))]] * 2
    return chance.choice(kinds)()


def word(chance: random.Random) -> str:
    letters = "abcxyzABC-./0189 äß中🙂\n"
    return "".join(chance.choice(letters) for _ in range(chance.choice((1, 3, 8, 20))))


if __name__ == "__main__":
    main()
