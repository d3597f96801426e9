"""The reference: what it lists is what there is."""

from __future__ import annotations

import re
from pathlib import Path

from polyver import apis
from polyver.objects.builtin import builtin_kinds
from polyver.server.metrics import Metrics

REFERENCE = Path(__file__).parents[2] / "docs" / "reference"
PAGE = (REFERENCE / "server.md").read_text()


def section(title: str) -> str:
    return PAGE.split(f"## {title}\n")[1].split("\n## ")[0]


def test_every_built_in_kind_is_listed() -> None:
    rows = re.findall(r"^\| `(.+)` \| (.+) \|$", section("Built-in kinds"), re.MULTILINE)
    listed = {(version, kind) for version, kinds in rows for kind in kinds.split(", ")}
    assert listed == {(kind.api_version, kind.kind) for kind in builtin_kinds()}


def test_every_metric_is_listed() -> None:
    metrics = Metrics()
    metrics.observe("GET", "/version", 200, 0.1)
    body = metrics.response().body
    assert isinstance(body, bytes)
    listed = set(re.findall(r"^\| `(.+?)` \|", section("Metrics"), re.MULTILINE))
    assert listed == set(re.findall(r"^# TYPE (\S+)", body.decode(), re.MULTILINE))


def test_everything_that_declares_kinds_is_there() -> None:
    page = (REFERENCE / "declaring.md").read_text()
    code = " ".join(re.findall("`[^`]+`", page))
    assert [name for name in apis.__all__ if not re.search(rf"\b{name}\b", code)] == []
