"""The list of dependents, and the page of one dependent."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from polyver.web._html import Child, Html, tag
from polyver.web.pages._elements import (
    address,
    counted,
    empty,
    labels,
    lineage_address,
    paging,
    search,
    table,
    why_address,
)
from polyver.web.pages._lineage import answer

__all__ = ["dependent_page", "dependents_page"]

Data = Mapping[str, Any]


def dependents_page(data: Data) -> tuple[str, Html]:
    """Build the title and content of one page of the list of dependents."""
    main = tag(
        "div",
        tag("h1", "Dependents"),
        search("/dependents", data["text"], "Find a dependent by kind, namespace or name"),
        tag("div", _rows(data), id="rows", data_live=True),
    )
    return "Dependents", main


def _rows(data: Data) -> list[Child]:
    if not data["items"]:
        return [empty("No dependent matches." if data["text"] else "There are no dependents.")]
    rows = [
        (
            tag("a", each["name"], href=address(f"/dependents/{each['name']}"), class_="name"),
            counted(each["places"], "reference"),
            _state(each),
        )
        for each in data["items"]
    ]
    total = tag("p", counted(data["total"], "dependent"), class_="quiet")
    shown = table(("Dependent", "Requests", "State"), rows, caption="Dependents", of="dependents")
    return [total, shown, paging(data, "/dependents", q=data["text"])]


def _state(each: Data) -> list[Child]:
    bad, warned = each["problems"], each["warnings"]
    if not bad and not warned:
        return [tag("span", "all resolved", class_="quiet")]
    return [
        tag("p", f"{counted(bad, 'reference')} unresolved", class_="bad") if bad else None,
        tag("p", f"{counted(warned, 'reference')} with warnings", class_="warn")
        if warned
        else None,
    ]


def dependent_page(data: Data) -> tuple[str, Html]:
    """Build the title and content of the page of one dependent."""
    rows = [
        (
            tag("code", each["at"]),
            _asks(each),
            answer(each),
            tag("a", "Why?", href=why_address(each, each)) if each.get("path") else None,
        )
        for each in data["uses"]
    ]
    caption = f"References of {data['name']}"
    shown = table(("Reference", "Requests", "Uses", ""), rows, caption=caption, of="places")
    back = tag(
        "nav", tag("a", "Dependents", href="/dependents"), class_="crumbs", aria_label="breadcrumb"
    )
    main = tag(
        "div",
        back,
        tag("h1", data["name"]),
        tag("div", labels(data["labels"]), shown, id="rows", data_live=True),
    )
    return str(data["name"]), main


def _asks(each: Data) -> list[Child]:
    if not each.get("path"):
        return [each["requested"]]
    wanted = f"@{each['requested']}" if each["requested"] else ""
    return [tag("a", each["lineage"], href=lineage_address(each)), wanted]
