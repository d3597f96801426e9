"""The page of one lineage: its releases in order, and its dependents.

A second page explains why a reference gets its release, and no other release.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from polyver.web._html import Child, Html, tag
from polyver.web.pages._elements import (
    address,
    attention,
    counted,
    empty,
    labels,
    lineage_address,
    paging,
    search,
    stage,
    table,
    tabs,
    why_address,
    without_users,
)
from polyver.web.pages._rollouts import rollout_address

__all__ = ["answer", "crumbs", "lineage_page", "moves", "why_page"]

Data = Mapping[str, Any]
_NOTHING = "-"


def lineage_page(data: Data) -> tuple[str, Html]:
    """Build the title and content of the page of one lineage."""
    main = tag(
        "div",
        crumbs(data["capability"]),
        tag("h1", data["name"], " ", tag("small", data["noun"])),
        tag("div", _about(data), id="about", data_live=True),
        tag("div", _attention(data), id="attention", data_live=True),
        tag("h2", "Releases"),
        tag("div", _releases(data), id="releases", data_live=True),
        tag("h2", "Used by", id="uses"),
        tag("div", _filters(data), id="filters", data_live=True),
        _search(data),
        tag("div", _uses(data), id="rows", data_live=True),
    )
    return str(data["name"]), main


def _attention(data: Data) -> Html | None:
    return attention(data["attention"], total=data["attentionTotal"], named=False)


def crumbs(capability: str) -> Html:
    """Build the navigation links above the title, to the list of lineages of a capability."""
    link = tag("a", capability, href=address("/", capability=capability))
    return tag(
        "nav", tag("a", "Lineages", href="/"), " › ", link, class_="crumbs", aria_label="breadcrumb"
    )


def _about(data: Data) -> list[Child]:
    usual = data["default"]
    if "release" in usual:
        said: Child = [tag("strong", usual["release"]), f" ({usual['reason']})"]
    else:
        said = tag("span", usual["problem"], class_="bad")
    facts = [("in", data["scope"]), *data["facts"].items()]
    shown = [tag("div", tag("dt", name), tag("dd", value)) for name, value in facts if value]
    asks = tag("div", tag("dt", "default"), tag("dd", said))
    text = tag("p", data["text"], class_="lead") if data["text"] else None
    return [text, tag("dl", shown, asks, class_="facts")]


def _releases(data: Data) -> list[Child]:
    if not data["releases"]:
        return [empty("No release is published.")]
    rows = [
        (
            tag("strong", each["name"], class_="name"),
            [stage(each["stage"]), [tag("span", m, class_="mark") for m in each.get("marks", ())]],
            _users(data, each),
            _notes(each),
        )
        for each in data["releases"]
    ]
    columns = ("Release", "Stage", "Used by", "Notes")
    caption = f"Releases of {data['name']}, highest first"
    more = data["releasesTotal"] - len(rows)
    rest = (
        tag("p", f"and {more:,} lower releases without references", class_="quiet")
        if more
        else None
    )
    return [table(columns, rows, caption=caption, of="releases"), rest]


def _users(data: Data, release: Data) -> Child:
    if not release["users"]:
        return tag("span", without_users(data), class_="quiet")
    href = lineage_address(data, release=release["name"]) + "#uses"
    return tag("a", counted(release["users"], "reference"), href=href)


def _notes(each: Data) -> list[Child]:
    clock = [
        f"deprecated since {each['since']}" if "since" in each else "",
        _removal(each),
        f"use {each['use']}" if "use" in each else "",
    ]
    said = ", ".join(filter(None, clock))
    digest = tag("code", each["digest"], class_="digest") if "digest" in each else None
    return [
        tag("p", said, class_="warn") if said else None,
        _gate(each),
        tag("p", each["notice"]) if "notice" in each else None,
        tag("p", each["text"]) if "text" in each else None,
        labels(each.get("labels", {})),
        _table(each),
        digest,
    ]


def _gate(each: Data) -> Html | None:
    """Build the note about a release that a rollout holds, with a link to the rollout."""
    if "gate" not in each:
        return None
    if "rollout" not in each:
        return tag("p", each["gate"], class_="warn")
    return tag("p", tag("a", each["gate"], href=rollout_address(each["rollout"])))


def _removal(each: Data) -> str:
    if "removedIn" not in each:
        return ""
    is_gone = each["stage"] in ("removed", "dropped", "unserved")
    return f"{'removed' if is_gone else 'will be removed'} in {each['removedIn']}"


def _table(each: Data) -> Html | None:
    if "table" not in each:
        return None
    found = each["table"]
    name = f"{found['title']} of {each['name']}"
    rows = [(tag("code", first), *rest) for first, *rest in found["rows"]]
    shown = table(found["columns"], rows, caption=name, of=found["title"].lower())
    title = f"{found['title']} ({len(rows)})"
    return tag("details", tag("summary", title), shown, id=f"table-{each['name']}")


# Dependents.


def _filters(data: Data) -> Html:
    chosen, text = data["uses"]["release"], data["uses"]["text"]
    counts = [
        (each["name"], each["name"], each["users"]) for each in data["releases"] if each["users"]
    ]
    lost = [(_NOTHING, "unresolved", data["unanswered"])] if data["unanswered"] else []
    return tabs(
        (("", "All", data["dependents"]), *counts, *lost),
        chosen,
        about="by release",
        link=lambda release: lineage_address(data, release=release, q=text) + "#uses",
    )


def _search(data: Data) -> Html | None:
    if not data["dependents"]:
        return None
    uses = data["uses"]
    href = lineage_address(data) + "#uses"
    return search(href, uses["text"], "Find a dependent", release=uses["release"])


def _uses(data: Data) -> list[Child]:
    uses = data["uses"]
    if not uses["items"]:
        sought = uses["text"] or uses["release"]
        return [empty("No dependent matches." if sought else _nobody(data))]
    rows = [
        (
            tag("a", each["name"], href=address(f"/dependents/{each['name']}")),
            tag("code", each["at"]),
            each["requested"] or tag("span", "default", class_="quiet"),
            answer(each),
            tag(
                "a",
                "Why?",
                href=why_address(data, each),
                aria_label=f"Why does {each['name']} use it?",
            ),
        )
        for each in uses["items"]
    ]
    columns = ("Dependent", "Reference", "Requests", "Uses", "")
    shown = table(columns, rows, caption=f"Dependents of {data['name']}", of="uses")
    path = f"/lineages/{data['capability']}/{data['path']}"
    return [shown, paging(uses, path, release=uses["release"], q=uses["text"])]


def _nobody(data: Data) -> str:
    reason = "" if data["counted"] else ": it has only one release"
    return f"{without_users(data).capitalize()}{reason}."


def answer(row: Data) -> list[Child]:
    """Build the HTML for the release that a reference gets, with the reason and warnings.

    For an unresolved reference, build the error and its hint.
    """
    if "problem" in row:
        hint = tag("p", row["hint"], class_="hint") if row.get("hint") else None
        return [tag("span", row["problem"], class_="bad"), hint]
    warnings: Sequence[str] = row["warnings"]
    warned = [tag("p", each, class_="warn") for each in warnings]
    return [
        tag("strong", row["release"]),
        " ",
        tag("span", row["reason"], class_="quiet"),
        moves(row),
        warned,
    ]


def moves(row: Data) -> Html | None:
    """Build a note if a reference still uses another release than it now resolves to."""
    if "uses" not in row:
        return None
    return tag("p", f"uses {row['uses']} until the move is done", class_="warn")


# The page of one reference.


def why_page(data: Data) -> tuple[str, Html]:
    """Build the title and content of the page that explains a reference."""
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
