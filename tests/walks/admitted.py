"""Lamps in two versions, with hooks, for the walks that ask who has a say in a write."""

from __future__ import annotations

import sys
import time
from typing import Any

from polyver import apis

GROUP = "lamps.example.com"
SECRET = "a secret of user code"
LAMPS = apis.Kind("Lamp", group=GROUP)


@LAMPS.version("v1")
class LampV1(apis.Fields):
    class Spec(apis.Fields):
        power: int
        colour: str | None = None
        legacy: str | None = None

    metadata: dict[str, Any]
    spec: Spec


@LAMPS.version("v2", storage=True)
class LampV2(apis.Fields):
    class Spec(apis.Fields):
        watts: int
        colour: str | None = None
        notes: list[str] | None = None

    class Status(apis.Fields):
        lit: bool | None = None

    metadata: dict[str, Any]
    spec: Spec
    status: Status | None = None


@LAMPS.edge("v1", "v2")
def v1_v2(e: apis.Rules) -> None:
    e.move("spec.power", "spec.watts")


BULBS = apis.Kind("Bulb", group=GROUP, carry="lost")


@BULBS.version("v1", storage=True)
class BulbV1(apis.Fields):
    class Spec(apis.Fields):
        size: int
        legacy: str | None = None

    spec: Spec


@BULBS.version("v2")
class BulbV2(apis.Fields):
    class Spec(apis.Fields):
        size: int

    spec: Spec


@BULBS.edge("v1", "v2")
def same(e: apis.Rules) -> None:
    del e


@LAMPS.default("v1")
def fill_in(lamp: LampV1) -> None:
    if lamp.spec.colour is None:
        lamp.spec.colour = "white"


@LAMPS.validate("v2")
def look(lamp: LampV2, old: LampV2 | None) -> list[apis.Problem]:
    name = lamp.metadata["name"]
    if name == "broken":
        raise RuntimeError(SECRET)
    if name == "leaves":
        sys.exit(1)
    if name == "stops":
        next(iter(()))
    if name == "slow":
        time.sleep(60)
    found = []
    if lamp.spec.watts > 100:
        found.append(apis.Problem("spec.watts", "is too bright"))
    if old is not None and old.spec.colour != lamp.spec.colour:
        found.append(apis.Problem("spec.colour", f"was {old.spec.colour}"))
    return found
