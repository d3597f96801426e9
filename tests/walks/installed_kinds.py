"""Kites, whose controller makes a ConfigMap for each: what an installation is told to serve."""

from __future__ import annotations

from polyver import apis

GROUP = "kites.example.com"
KITES = apis.Kind("Kite", group=GROUP)


@KITES.version("v1")
class KiteV1(apis.Fields):
    class Spec(apis.Fields):
        length: int

    class Status(apis.Fields):
        flies: bool | None = None

    spec: Spec
    status: Status | None = None


@KITES.version("v2", storage=True)
class KiteV2(apis.Fields):
    class Spec(apis.Fields):
        metres: int

    class Status(apis.Fields):
        flies: bool | None = None

    spec: Spec
    status: Status | None = None


@KITES.edge("v1", "v2")
def v1_v2(e: apis.Rules) -> None:
    e.move("spec.length", "spec.metres")


@KITES.default("v2")
def fill_in(kite: KiteV2) -> None:
    kite.spec.metres = kite.spec.metres or 10


@KITES.reconcile
def reconcile(kite: KiteV2) -> apis.Outcome:
    tail = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "tail"},
        "data": {"metres": str(kite.spec.metres)},
    }
    return apis.Outcome(objects=[tail], status=KiteV2.Status(flies=True))
