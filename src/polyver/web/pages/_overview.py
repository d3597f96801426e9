"""The list of all lineages, with concerns first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from polyver.web._html import Child, Html, tag
from polyver.web.pages._elements import (
    address,
    attention,
    counted,
    empty,
    lineage_address,
    paging,
    search,
    share_bar,
    table,
    tabs,
    without_users,
)

__all__ = ["overview_page"]

Data = Mapping[str, Any]
_MOST_CHIPS = 6


def overview_page(data: Data, text: str, capability: str) -> tuple[str, Html]:
    """Build the title and content of the page of all lineages."""
    found: Sequence[Data] = data["lineages"]
    wanted = search("/", text, "Find a lineage by name, version or kind", capability=capability)
    main = tag(
        "div",
        tag("h1", "Lineages"),
        tag("div", _numbers(data), id="numbers", class_="numbers", data_live=True),
        tag("div", _attention(data), id="attention", data_live=True),
        tag("div", _tabs(data["capabilities"], capability, text), wanted, class_="bar"),
        tag(
            "div",
            _sections(found, text, data["descriptions"]),
            paging(data, "/", q=text, capability=capability),
            id="lineages",
            data_live=True,
        ),
    )
    return "Lineages", main


def _numbers(data: Data) -> list[Html]:
    serious = sum(each["level"] != "note" for each in data["attention"])
    return [
        tag("span", counted(data["total"], "lineage")),
        tag("span", counted(data["dependents"], "dependent")),
        tag(
            "span",
            f"{serious:,} {'needs' if serious == 1 else 'need'} attention",
            class_="bad" if serious else None,
        ),
    ]


def _attention(data: Data) -> Child:
    found = attention(data["attention"], total=data["attentionTotal"])
    if found is None:
        return tag(
            "p",
            "No release in use is deprecated, and every reference is resolved.",
            class_="fine",
        )
    return [tag("h2", "Needs attention"), found]


def _tabs(capabilities: Sequence[str], chosen: str, text: str) -> Html:
    return tabs(
        [("", "All", None), *((each, each, None) for each in capabilities)],
        chosen,
        about="capabilities",
        link=lambda capability: address("/", capability=capability, q=text),
    )


def _sections(found: Sequence[Data], text: str, descriptions: Data) -> list[Html]:
    if not found:
        return [
            empty(f"No lineage has “{text}” in its name." if text else "There are no lineages.")
        ]
    names = dict.fromkeys(each["capability"] for each in found)
    return [
        _section(
            name,
            descriptions.get(name, ""),
            [each for each in found if each["capability"] == name],
        )
        for name in names
    ]


def _section(capability: str, description: str, lineages: Sequence[Data]) -> Html:
    words = tag("small", description)
    rows = [
        (
            _name(each),
            _chips(each),
            each["default"].get("release") or tag("span", "none", class_="bad"),
            _users(each),
        )
        for each in lineages
    ]
    shown = table(
        ("Name", "Releases", "Default", "Used by"),
        rows,
        caption=f"Lineages of {capability}",
        of="lineages",
    )
    return tag("section", tag("h2", capability, " ", words), shown)


def _name(each: Data) -> list[Child]:
    about = " · ".join(filter(None, (each["noun"], each["scope"])))
    about = about if each["scope"] else each["text"].partition("\n")[0] or about
    return [
        tag("a", each["name"], href=lineage_address(each), class_="name"),
        tag("span", about, class_="quiet"),
    ]


def _chips(each: Data) -> Html:
    releases: Sequence[Data] = each["releases"]
    shown = [
        tag(
            "li",
            tag(
                "a",
                release["name"],
                tag("small", release["stage"]),
                href=lineage_address(each, release=release["name"]) + "#uses",
                class_=f"chip stage-{release['stage']}",
            ),
        )
        for release in releases[:_MOST_CHIPS]
    ]
    more = len(releases) - _MOST_CHIPS
    rest = tag("li", f"+{more}", class_="quiet") if more > 0 else None
    return tag("ul", shown, rest, class_="chips")


def _users(each: Data) -> list[Child]:
    total = each["dependents"]
    if not total:
        return [tag("span", without_users(each), class_="quiet")]
    lost = each["unanswered"]
    words = f"{lost:,} unresolved"
    bad = tag("span", words, class_="bad") if lost else None
    return [tag("span", counted(total, "reference")), _bar(each, total), bad]


def _bar(each: Data, total: int) -> Html:
    """Build a bar that shows how many references get each release."""
    parts = [(r["users"], r["stage"], r["name"]) for r in each["releases"] if r["users"]]
    parts += [(each["unanswered"], "nothing", "unresolved")] if each["unanswered"] else []
    words = ", ".join(f"{name}: {users}" for users, _, name in parts)
    return share_bar(parts, total, words)
