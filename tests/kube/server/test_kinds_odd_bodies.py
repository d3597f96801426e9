"""What fits the types of a built-in kind is stored or refused: nothing makes the server fail."""

from __future__ import annotations

import asyncio
import json
from random import Random
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from polyver.kube.objects.builtin import builtin_kinds, shape_of
from polyver.kube.objects.kinds import ResourceKind
from polyver.kube.objects.type_shapes import Shape
from polyver.kube.server.api import ApiServer
from polyver.kube.server.bootstrap import prepare
from polyver.kube.server.http import HttpRequest, User
from polyver.kube.store import MemoryStore

ADMIN = User("admin", ("system:masters",))
KINDS = [kind for kind in builtin_kinds() if "create" in kind.verbs and "patch" in kind.verbs]
# Words that lead somewhere, and others that lead nowhere.
WORDS = """a a.b Bad_Name ex.io/x 10.0.0.1 10.0.0.0/8 * 0 -1 ClusterIP None NodePort LoadBalancer
    ExternalName Always Never RollingUpdate OnDelete Recreate Resource Object Container Pod User
    ServiceAccount Indexed Prefix In Exists IPv4 é""".split()
TEXTS = ["", "*/5 * * * *", "x" * 300, *WORDS]
FORMATS: dict[str, list[Any]] = {
    "byte": ["AAAA", ""],
    "date-time": ["2020-01-01T00:00:00Z"],
    "fields": [{}],
    "int-or-string": [0, 1, -1, "25%", "x", "200%", 70000],
    "json": [{"a": 1}, 1],
    "microtime": ["2020-01-01T00:00:00.000000Z"],
    "quantity": ["0", "1", "500m", "1Gi", "-1", "1e3", 2, 0.5],
    "raw": [{"a": 1}],
}
SCALARS: dict[str, list[Any]] = {
    "boolean": [True, False],
    "integer": [0, 1, 2, -1, 80, 70000, 30000, 2**31 - 1],
    "number": [0.5],
    "string": TEXTS,
}
DEEPEST = 12


def body(random: Random, shape: Shape, depth: int = 0) -> Any:
    """A value of a shape; the deeper, the less of what there could be."""
    if random.random() < 0.06:
        return None
    if shape.format in FORMATS or shape.type in SCALARS:
        return random.choice(FORMATS.get(shape.format) or SCALARS[shape.type])
    if depth > DEEPEST:
        return [] if shape.type == "array" else {}
    if shape.items is not None:
        return [body(random, shape.items, depth + 1) for _ in range(random.randrange(3))]
    if shape.values is not None:
        keys = random.sample(["a", "b c", "cpu", "storage", "x/y", ""], random.randrange(3))
        return {key: body(random, shape.values, depth + 1) for key in keys}
    share = 0.7 if depth < 3 else 0.3
    return {
        name: body(random, inner, depth + 1)
        for name, inner in shape.fields.items()
        if name not in ("apiVersion", "kind", "metadata") and random.random() < share
    }


async def _ask(api: ApiServer, method: str, path: str, media: str, sent: object) -> int:
    headers = {"content-type": f"application/{media}", "user-agent": "test"}
    answer = await api.handle(
        HttpRequest(method, path, "", headers, json.dumps(sent).encode(), ADMIN)
    )
    return answer.status


async def _statuses(kind: ResourceKind, random: Random) -> list[int]:
    shape = shape_of(kind.group, kind.version, kind.kind)
    root = f"/apis/{kind.api_version}" if kind.group else "/api/v1"
    path = f"{root}{'/namespaces/default' if kind.namespaced else ''}/{kind.plural}"
    async with MemoryStore() as store:
        api = ApiServer(store)
        await prepare(api, port=6443)
        first = (body(random, shape) or {}) | {"metadata": {"name": "odd"}}
        statuses = [await _ask(api, "POST", path, "json", first)]
        for part in ("", "/status")[: 1 + bool(kind.subresource("status"))]:
            change = body(random, shape) or {}
            own = f"{path}/odd{part}"
            statuses.append(await _ask(api, "PATCH", own, "merge-patch+json", change))
        return statuses


@settings(deadline=None, max_examples=150)
@given(st.sampled_from(KINDS), st.randoms(use_true_random=False))
def test_any_body_is_stored_or_refused(kind: ResourceKind, random: Random) -> None:
    assert set(asyncio.run(_statuses(kind, random))) <= {200, 201, 404, 409, 422}
