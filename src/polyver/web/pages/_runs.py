"""The list of runs with their progress, and the page of one run with the versions that it uses."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from polyver.web._html import Child, Html, tag
from polyver.web.pages._elements import (
    address,
    empty,
    lineage_address,
    paging,
    search,
    stage,
    table,
    tabs,
)

__all__ = ["run_page", "runs_page"]

Data = Mapping[str, Any]


def runs_page(data: Data) -> tuple[str, Html]:
    """Build the title and content of one page of the list of runs."""
    main = tag(
        "div",
        tag("h1", "Runs"),
        tag("div", _states(data), id="states", data_live=True),
        search("/runs", data["text"], "Find a run", state=data["state"]),
        tag("div", _rows(data), id="rows", data_live=True),
    )
    return "Runs", main


def _states(data: Data) -> Html:
    states = [("", "All", sum(data["states"].values()))]
    states += [(name, name, count) for name, count in sorted(data["states"].items())]
    return tabs(
        states,
        data["state"],
        about="by state",
        link=lambda state: address("/runs", state=state, q=data["text"]),
    )


def _rows(data: Data) -> list[Child]:
    if not data["items"]:
        return [empty("No run matches.")]
    rows = [
        (
            tag("a", each["name"], href=address(f"/runs/{each['name']}"), class_="name"),
            stage(each["state"]),
            _progress(each),
            each["created"],
        )
        for each in data["items"]
    ]
    shown = table(
        ("Run", "State", "Steps", "Created"), rows, caption="Runs, newest first", of="runs"
    )
    return [shown, paging(data, "/runs", q=data["text"], state=data["state"])]


def _progress(each: Data) -> list[Child]:
    over = sum(step["state"] == "complete" for step in each["steps"])
    warned = tag("p", each["warnings"][0], class_="warn") if each["warnings"] else None
    return [f"{over} of {len(each['steps'])}", warned]


def run_page(data: Data) -> tuple[str, Html]:
    """Build the title and content of the page of one run."""
    back = tag("nav", tag("a", "Runs", href="/runs"), class_="crumbs", aria_label="breadcrumb")
    rows = [
        (
            step["part"],
            step["name"],
            _function(step),
            stage(step["state"]),
            step["reason"],
        )
        for step in data["steps"]
    ]
    steps = table(("Action", "Phase", "Calls", "State", "Why"), rows, caption="Steps", of="steps")
    told = [
        tag("p", stage(data["state"]), " ", tag("span", data["created"], class_="quiet")),
        tag("p", data["problem"], class_="bad") if data["problem"] else None,
        [tag("p", each, class_="warn") for each in data["warnings"]],
        steps if rows else empty("This run has no steps."),
    ]
    main = tag("div", back, tag("h1", data["name"]), tag("div", told, id="run", data_live=True))
    return str(data["name"]), main


def _function(step: Data) -> Child:
    if not step["path"]:
        return step["release"] or None
    link = tag("a", step["path"], href=lineage_address(step))
    return [link, f" {step['release']}"] if step["release"] else link
