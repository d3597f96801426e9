"""Kinds that nobody wrote: schemas and objects drawn at random, sent to both servers.

The embedded server and the real one say the same of each: of the definition, of objects that fit
and of those that do not, and of what is stored after writes in every form. Rules in CEL are left
out.
"""

from __future__ import annotations

import http.client
import itertools
import json
import os
import re
import ssl
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from tests.deadlines import HANG
from tests.kube.drawn import Maker, places
from tests.kube.explain import differences
from tests.kube.stable import Stable

from polyver.testing import EmbeddedServer, LocalCluster

pytestmark = pytest.mark.kube

CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
GROUP = "drawn.ex.io"
OBJECTS = 3
TIMES = int(os.environ.get("POLYVER_GENERATED_TIMES", "1"))
"""How many times as many kinds as usual; `make e2e-long` sets it."""
PATIENCE = HANG
MERGE, APPLY = "application/merge-patch+json", "application/apply-patch+yaml"
numbers = itertools.count()
# What is drawn follows from the seed in no way that could be made smaller.
PHASES = (Phase.explicit, Phase.reuse, Phase.generate)


def number(text: str) -> int | float:
    """An integer as the real server holds it, however it is written: a large one is a number."""
    return int(text) if -(2**63) <= int(text) < 2**63 else float(text)


def held(value: Any) -> Any:
    """A value without numbers that are written in one way and held in another.

    Integers of more than 64 bits change their type on kube-apiserver when they are stored, which
    then counts as a change. It loses who owns an item of a set that is no exact float. 5.0 is 5 to
    the embedded server, which shows in the name of a type. A refused merge patch shows numbers as
    the client wrote them, which matters where there is an exponent.
    """
    match value:
        case dict():
            return {key: held(each) for key, each in value.items()}
        case list():
            return [held(each) for each in value]
        case int():
            return value if abs(value) < 2**53 else 2**52
        case float() if value.is_integer() and abs(value) < 2**53:
            return int(value)
        case float() if "e" in repr(value):
            return 0.5
    return value


class Wide(Maker):
    """Schemas as large public definitions have them: hundreds of fields, and every kind of list."""

    def spec(self) -> dict[str, Any]:
        """What a kind has below `spec`: a few fields with everything, or very many."""
        if self.chance(0.8):
            return self.with_defaults(self._object(3))
        size = self.dice.choice([60, 200, 400])
        fields = {f"field{number}": self.schema(1) for number in range(size)}
        fields["template"] = self._object(4)
        required = self.dice.sample([*fields], 2) if self.chance(0.5) else []
        made: dict[str, Any] = {"type": "object", "properties": fields}
        return self.with_defaults(made | ({"required": required} if required else {}))

    def value(self, schema: dict[str, Any], wild: float = 0.12) -> Any:
        made = held(super().value(schema, wild))
        # kube-apiserver stores a null that an apply brings here, and drops it when it reads. The
        # next write then counts as a change even if it changes nothing. The case
        # apply-drops-nulls has what clients see of it.
        is_open = "type" not in schema and not schema.get("nullable")
        # kube-apiserver takes a list for some strings with a format. It then never notes who
        # owns what, as such an object does not fit its own types.
        is_format = schema.get("type") == "string" and "format" in schema
        odd = (made is None and is_open) or (isinstance(made, list) and is_format)
        return "odd" if odd else made

    def _integer(self, depth: int) -> dict[str, Any]:
        form = self.dice.choice(["int32", "int64"])
        return super()._integer(depth) | {"format": form}

    def _number(self, depth: int) -> dict[str, Any]:
        form = self.dice.choice(["float", "double"])
        return super()._number(depth) | {"format": form}

    def _object(self, depth: int) -> dict[str, Any]:
        # What is pruned below a bare `true` counts as a change on the real server, if applied.
        made = super()._object(depth)
        made.pop("additionalProperties", None)
        kind = self.dice.choice(["", "", "", "granular", "atomic"])
        return made | ({"x-kubernetes-map-type": kind} if kind else {})

    def _map(self, depth: int) -> dict[str, Any]:
        made = super()._map(depth)
        return made if made["additionalProperties"] is not True else self._map(depth)

    def _array(self, depth: int) -> dict[str, Any]:
        made = super()._array(depth)
        return {"x-kubernetes-list-type": "atomic"} | made if self.chance(0.3) else made


class Asked:
    """One of the servers."""

    def __init__(self, url: str, ca_file: Path, token: str) -> None:
        trust = ssl.create_default_context(cafile=ca_file)
        place = urlsplit(url).netloc
        self._connection = http.client.HTTPSConnection(place, context=trust, timeout=PATIENCE)
        self._headers = {"Authorization": f"Bearer {token}", "User-Agent": "drawn/1"}

    def close(self) -> None:
        self._connection.close()

    def ask(self, method: str, path: str, body: Any, media: str) -> dict[str, Any]:
        content = None if body is None else json.dumps(body)
        headers = self._headers | {"Content-Type": media}
        self._connection.request(method, path, content, headers)
        answer = self._connection.getresponse()
        text = answer.read()
        warnings = sorted(answer.headers.get_all("Warning") or ())
        found = json.loads(text, parse_int=number) if text.startswith(b"{") else text.decode()
        return {"status": answer.status, "warnings": warnings, "body": found}


class Both:
    """Asks both the same, and notes what each of them said."""

    def __init__(self, real: Asked, ours: Asked) -> None:
        self._servers = real, ours

    def start(self) -> None:
        self._said: tuple[list[Any], list[Any]] = ([], [])
        self._names = Stable({}), Stable({})

    def ask(
        self, method: str, path: str, body: Any = None, media: str = "application/json"
    ) -> tuple[Any, Any]:
        found = []
        for server, said, names in zip(self._servers, self._said, self._names, strict=True):
            answer = server.ask(method, path, body, media)
            found.append(answer)
            said.append(
                {"step": f"{method} {path} {json.dumps(body)}"} | names.value(_kept(answer))
            )
        return found[0], found[1]

    def until_served(self, path: str) -> None:
        for server in self._servers:
            end = time.monotonic() + PATIENCE
            while server.ask("GET", path, None, "application/json")["status"] != 200:
                assert time.monotonic() < end, f"{path} is never served"
                time.sleep(0.02)

    def differences(self) -> list[str]:
        real, ours = self._said
        return [str(found) for found in differences("drawn", real, ours)]


def _kept(answer: dict[str, Any]) -> dict[str, Any]:
    """An answer in which nothing depends on the order in which Go walks through its maps."""
    body = answer["body"]
    if not isinstance(body, dict) or body.get("kind") != "Status":
        return answer
    causes = body.get("details", {}).get("causes")
    if not causes:
        # Of what does not fit, an apply names the first that it comes upon.
        message = re.sub(r"(?s)(failed to create typed patch object).*", r"\1", body["message"])
        told = sorted(re.split(r", (?=unknown field)|(?<=decoding error): ", message))
        return answer | {"body": body | {"message": told}}
    told = sorted(json.dumps(each, sort_keys=True) for each in causes)
    return answer | {"body": {"reason": body["reason"], "causes": told}}


@pytest.fixture(scope="module")
def both() -> Iterator[Both]:
    with LocalCluster() as cluster, EmbeddedServer() as server, ExitStack() as ends:
        yield Both(
            *(
                ends.enter_context(closing(Asked(each.url, each.ca_file, each.token)))
                for each in (cluster, server)
            )
        )


def definition(number: int, spec: dict[str, Any]) -> dict[str, Any]:
    status = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    schema = {"type": "object", "properties": {"spec": spec, "status": status}}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    names = {"plural": f"d{number}", "singular": f"d{number}", "kind": f"D{number}"}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"d{number}.{GROUP}"},
        "spec": {
            "group": GROUP,
            "scope": "Cluster",
            "names": names,
            "versions": [version | {"subresources": {"status": {}}}],
        },
    }


def without_status(answer: Any) -> Any:
    """A definition without what is decided in the background."""
    return answer["body"].get("spec", {}).get("versions", [{}])[0].get("schema")


@settings(max_examples=25 * TIMES, phases=PHASES)
@given(st.integers(0, 2**32))
def test_objects_of_any_kind_are_taken_refused_and_stored_alike(both: Both, seed: int) -> None:
    maker, number = Wide(seed), next(numbers)
    spec = maker.spec()
    both.start()
    path, kind = f"/apis/{GROUP}/v1/d{number}", {"apiVersion": f"{GROUP}/v1", "kind": f"D{number}"}
    real, ours = both.ask("POST", CRDS, definition(number, spec))
    if real["status"] == 201 and ours["status"] == 201:
        assert without_status(real) == without_status(ours)
        both.start()
        both.until_served(path)
        for each in range(OBJECTS):
            draw = partial(drawn, maker, kind | {"metadata": {"name": f"o{each}"}}, spec)
            write(both, maker, f"{path}/o{each}", draw)
        both.ask("GET", path)
        for server in both._servers:
            server.ask("DELETE", f"{CRDS}/d{number}.{GROUP}", None, "application/json")
    assert both.differences() == []


def drawn(maker: Wide, named: Any, spec: Any, wild: float) -> Any:
    """An object that more or less fits."""
    return named | {"spec": maker.value(spec, wild)}


def write(both: Both, maker: Wide, own: str, draw: Callable[[float], Any]) -> None:
    """An object from its birth to its last change."""
    path = own.rpartition("/")[0]
    strict = "?fieldValidation=Strict" if maker.chance(0.2) else ""
    both.ask("POST", f"{path}{strict}", draw(maker.dice.choice([0, 0.02, 0.2])))
    both.ask("PATCH", own, {"spec": draw(0.02)["spec"]}, MERGE)
    both.ask("PATCH", f"{own}?fieldManager=one&force=true", draw(0.0), APPLY)
    both.ask("PATCH", f"{own}?fieldManager=two", draw(0.02), APPLY)
    real, _ = both.ask("GET", own)
    if real["status"] == 200:
        changed = held(maker.changed(real["body"].get("spec")))
        both.ask("PATCH", own, {"spec": changed}, MERGE)
    both.ask("PATCH", f"{own}/status", {"status": {"seen": held(maker.anything())}}, MERGE)


def is_left_out(place: dict[str, Any]) -> bool:
    """Rules in CEL, and defaults whose format may be one that their type cannot have."""
    return "x-kubernetes-validations" in place or {"default", "format"} <= place.keys()


@settings(max_examples=120 * TIMES, phases=PHASES)
@given(st.integers(0, 2**32))
def test_a_definition_with_mistakes_is_refused_alike(both: Both, seed: int) -> None:
    maker = Wide(seed)
    spec = maker.broken(maker.schema(2))
    if any(map(is_left_out, places(spec))):
        return
    both.start()
    both.ask("POST", f"{CRDS}?dryRun=All", definition(0, spec))
    assert both.differences() == []
