"""Compatibility on the real API server: what is called breaking or risky there, really is."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from contextlib import closing
from http.client import HTTPException
from typing import Any

import pytest
from tests.apis.changes import ROWS, WITNESSED, Row, identity, schema
from tests.kube.schemas import CRDS, GROUP, Asked, crd

from polyver.apis.compatibility import RULES
from polyver.testing import LocalCluster

pytestmark = pytest.mark.kube
KEPT = {rule.name for rule in RULES.values() if "Kubernetes 1.30" in rule.advice} | {"list-keyed"}


@pytest.fixture(scope="module")
def server() -> Iterator[Asked]:
    with LocalCluster() as cluster, closing(Asked(cluster)) as asked:
        yield asked


class Changed:
    """A kind whose schema changes when it has an object."""

    def __init__(self, server: Asked, row: Row) -> None:
        self._server, self._number = server, ROWS.index(row)
        self.path = f"/apis/{GROUP}/v1/s{self._number}"
        old, new = self._definition(row.old), self._definition(row.new, enum=["x"])
        assert server.ask("POST", CRDS, old)[0] == 201
        server.until(self._is_served, self.path)
        self.stored = self.write(f=row.value, g="before", dry=False)[1]
        changed = {"spec": {"versions": new["spec"]["versions"]}}
        assert server.ask("PATCH", f"{CRDS}/{new['metadata']['name']}", changed)[0] == 200
        server.until(lambda: self.write(probe="y")[0] == 422, self.path)

    def _definition(self, field: Any, **probe: Any) -> dict[str, Any]:
        """A definition with a field more, which tells whether the newer one is in force."""
        made = copy.deepcopy(schema(field))
        made["properties"]["probe"] = {"type": "string"} | probe
        return crd(self._number, made)

    def _is_served(self) -> bool:
        try:
            return self._server.ask("GET", self.path)[0] == 200
        except (HTTPException, ValueError):
            return False  # a page that says 404

    def write(self, *, dry: bool = True, **values: Any) -> tuple[int, Any]:
        named = {"apiVersion": f"{GROUP}/v1", "kind": f"S{self._number}"}
        body = named | {"metadata": {"name": "b" if dry else "a"}} | values
        status, answer, _ = self._server.ask("POST", self.path + "?dryRun=All" * dry, body)
        return status, answer

    def update(self, **values: Any) -> int:
        body = self.stored | values
        return self._server.ask("PUT", f"{self.path}/a?dryRun=All", body)[0]


@pytest.mark.parametrize("row", WITNESSED, ids=identity)
def test_a_change_takes_away_what_is_said(row: Row, server: Asked) -> None:
    changed = Changed(server, row)
    assert changed.stored["g"] == "before"
    status, answer = changed.write(f=row.value)
    lost = ("f" in answer, answer.get("f")) != ("f" in changed.stored, changed.stored.get("f"))
    assert status == 422 or (status == 201 and lost)
    if row.rule in KEPT:
        assert changed.update(g="after") == 200
    if row.rule in ("required-added", "required-field-added"):
        assert changed.update(f={"a": "y"}) == 422
