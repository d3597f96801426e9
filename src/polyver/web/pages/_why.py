"""The page that explains why a reference gets its release, and no other."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from polyver.web._html import Child, Html, tag
from polyver.web.pages._elements import address, empty, labels, lineage_address, stage, table
from polyver.web.pages._lineage import answer, crumbs

__all__ = ["why_page"]

Data = Mapping[str, Any]


def why_page(data: Data) -> tuple[str, Html]:
    """Return the title and content of the explanation."""
    main = tag(
        "div",
        crumbs(data["capability"]),
        tag("h1", f"Why {data['release'] or 'unresolved'}?"),
        tag("div", _question(data), id="question", data_live=True),
        tag("h2", "Not chosen"),
        tag("div", _rejected(data), id="rejected", data_live=True),
    )
    return f"Why {data['lineage']}?", main


def _question(data: Data) -> Html:
    rows: list[tuple[str, Child]] = [
        ("used by", tag("a", data["name"], href=address(f"/dependents/{data['name']}"))),
        ("reference", tag("code", data["at"])),
        ("lineage", tag("a", data["lineage"], href=lineage_address(data))),
        ("requests", data["requested"] or tag("span", "default", class_="quiet")),
        ("uses", answer(data)),
    ]
    rows += [("since", data["since"])] if "since" in data else []
    rows += [("labels", labels(data["labels"]))] if data["labels"] else []
    rows.append(("policy", data["policy"]))
    return tag("dl", [tag("div", tag("dt", n), tag("dd", v)) for n, v in rows], class_="facts tall")


def _rejected(data: Data) -> Html:
    if not data["rejected"]:
        return empty("There is no other release.")
    rows = [
        (tag("strong", each["release"], class_="name"), stage(each["stage"]), each["why"])
        for each in data["rejected"]
    ]
    columns = ("Release", "Stage", "Why not")
    return table(columns, rows, caption="Releases that were not chosen", of="rejected")
