"""What the pages list is what there is."""

from __future__ import annotations

import datetime
import re
from functools import partial
from pathlib import Path

from polyver import apis, functions, testing
from polyver.app.capabilities import NAMES, Choices
from polyver.app.installing import Installation, manifests
from polyver.app.installing.manifests import rights, rights_inside
from polyver.capability.capability import Surroundings
from polyver.compositions.runtimes.metrics import collector
from polyver.controllers.metrics import collector_of
from polyver.definitions.kinds import DEFINITIONS
from polyver.kube.objects.builtin import builtin_kinds
from polyver.kube.server.metrics import ApiServerMetrics
from polyver.rollouts.metrics import RolloutMetrics
from polyver.webhook.metrics import WebhookMetrics

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "reference" / "server.md").read_text()
WEBHOOK = (DOCS / "how-to" / "serve-a-conversion-webhook.md").read_text()
REFERENCE = DOCS / "reference"


def section(title: str) -> str:
    return PAGE.split(f"## {title}\n")[1].split("\n## ")[0]


def test_every_built_in_kind_is_listed() -> None:
    rows = re.findall(r"^\| `(.+)` \| (.+) \|$", section("Built-in kinds"), re.MULTILINE)
    listed = {(version, kind) for version, kinds in rows for kind in kinds.split(", ")}
    assert listed == {(kind.api_version, kind.kind) for kind in builtin_kinds()}


def test_every_metric_is_listed() -> None:
    figures = partial(collector, list)
    metrics = ApiServerMetrics(also=[collector_of(lambda: None), figures])
    metrics.observe("GET", "/version", 200, 0.1)
    body = metrics.response().body
    assert isinstance(body, bytes)
    listed = set(re.findall(r"^\| `(.+?)` \|", section("Metrics"), re.MULTILINE))
    assert listed == set(re.findall(r"^# TYPE (\S+)", body.decode(), re.MULTILINE))


def test_every_metric_of_rollouts_is_listed() -> None:
    found = RolloutMetrics().collector().collect()
    names = {f"{each.name}{'_total' * (each.type == 'counter')}" for each in found}
    text = (REFERENCE / "rollouts.md").read_text().split("## Metrics\n")[1]
    assert set(re.findall(r"^\| `(.+?)` \|", text, re.MULTILINE)) == names


def test_every_metric_of_the_webhook_is_listed() -> None:
    body = WebhookMetrics(lambda: datetime.datetime.now(datetime.UTC)).response().body
    assert isinstance(body, bytes)
    listed = set(re.findall(r"^\| `(polyver_\w+)` \|", WEBHOOK, re.MULTILINE))
    # With each of them, the library also tells since when it is counted.
    found = re.findall(r"^# TYPE (\S+?)(?:_created)? ", body.decode(), re.MULTILINE)
    assert {name.removesuffix("_total") for name in found} == {
        name.removesuffix("_total") for name in listed
    }


def test_every_option_of_the_webhook_is_told_of() -> None:
    reference = (DOCS / "reference" / "cli.md").read_text()
    own = reference.split("## polyver serve\n")[1].split("\n## ")[0]
    options = set(re.findall(r"`(--[a-z-]+)", own)) - {"--help"}
    assert options
    assert {option for option in options if option not in WEBHOOK} == set()


def test_everything_that_declares_kinds_is_there() -> None:
    page = re.sub("```.*?```", "", (REFERENCE / "declaring.md").read_text(), flags=re.DOTALL)
    code = " ".join(re.findall("`[^`]+`", page))
    assert [name for name in apis.__all__ if not re.search(rf"\b{name}\b", code)] == []


def test_everything_that_registers_functions_is_there() -> None:
    page = (REFERENCE / "functions.md").read_text()
    code = " ".join(re.findall("`[^`]+`", page))
    assert [name for name in functions.__all__ if not re.search(rf"\b{name}\b", code)] == []


def test_every_name_of_the_test_kit_is_told_of() -> None:
    page = (DOCS / "reference" / "testing.md").read_text()
    assert {name for name in testing.__all__ if f"`{name}" not in page} == set()


def test_every_right_of_an_installation_is_listed_and_no_other() -> None:
    page = (REFERENCE / "installation.md").read_text()
    text = page.partition("## Rights")[2].partition("## Pods")[0]
    choices = Choices(frozenset(NAMES))
    around = Surroundings(namespace="polyver-system")
    wanted = Installation("a:1", contributions=choices.contributions(around))
    for written, part in (
        ("the four kinds of definitions", ""),
        ("the same, `/status`", "/status"),
    ):
        [row] = [line for line in text.splitlines() if written in line]
        kinds = [f"`{kind.names.plural}{part}`" for kind in DEFINITIONS]
        text = text.replace(row, "\n".join(row.replace(written, kind) for kind in kinds))
    listed = re.findall(r"^\| (\S+) \| `(\S+)` \| ([a-z, ]+) \| (\S+) \|", text, re.MULTILINE)
    expected = [
        (
            f"`{each.group}`" if each.group else "core",
            each.resource,
            ", ".join(each.verbs),
            f"`{each.name}`" if each.name else "all",
        )
        for each in (*rights(wanted), *rights_inside(wanted))
    ]
    assert sorted(listed) == sorted(expected)


def test_every_object_of_an_installation_is_listed() -> None:
    text = (REFERENCE / "installation.md").read_text()
    kinds = {each["kind"] for each in manifests(Installation("a:1"))}
    assert {kind for kind in kinds if kind in text} == kinds
