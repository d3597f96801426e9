"""The layout of every page, and HTML elements that several pages use.

The layout has the navigation, the live state, and notes about incomplete data.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote, urlencode

from polyver.web._html import Child, Html, tag

__all__ = [
    "PageLayout",
    "address",
    "attention",
    "counted",
    "empty",
    "labels",
    "lineage_address",
    "paging",
    "problem_page",
    "search",
    "share_bar",
    "stage",
    "table",
    "tabs",
    "why_address",
    "without_users",
]

Data = Mapping[str, Any]
_NOT_USED = "not used"
_LEVELS = {"error": "Error", "warning": "Deprecated", "note": _NOT_USED.capitalize()}


def without_users(data: Data) -> str:
    """Return the text to show for a lineage or a release that no reference uses."""
    return _NOT_USED if data["counted"] else "not counted"


def address(path: str, **query: str | int) -> str:
    """Build a URL of the page from a path and parameters; parameters without a value are left out.

    >>> address("/dependents/Application default/shop", q="", page=2)
    '/dependents/Application%20default/shop?page=2'
    """
    asked = {name: value for name, value in query.items() if value}
    written = quote(path, safe="/", errors="replace")
    return f"{written}?{urlencode(asked, errors='replace')}" if asked else written


def lineage_address(about: Data, **query: str | int) -> str:
    """Build the URL of the page of one lineage."""
    return address(f"/lineages/{about['capability']}/{about['path']}", **query)


def why_address(about: Data, row: Data) -> str:
    """Build the URL of the page that explains why a reference gets its release."""
    path = f"/why/{about['capability']}/{about['path']}"
    return address(path, name=row["name"], at=row["at"])


def counted(number: int, one: str, many: str = "") -> str:
    """Format a number with its noun.

    >>> counted(1, "place"), counted(12000, "place")
    ('1 place', '12,000 places')
    """
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def stage(name: str) -> Html:
    """Build the label of a release's stage or of a run's state."""
    return tag("span", name, class_=f"stage stage-{name.replace(' ', '-')}")


def labels(found: Mapping[str, str]) -> Html | None:
    """Build an HTML list of labels as KEY=VALUE; None if there are no labels."""
    if not found:
        return None
    each = [tag("li", f"{key}={value}") for key, value in found.items()]
    return tag("ul", each, class_="labels", aria_label="labels")


def table(
    columns: Sequence[str], rows: Iterable[Sequence[Child]], *, caption: str, of: str = ""
) -> Html:
    """Build an HTML table, which narrow screens show as cards; `of` selects the column widths."""
    heads = [tag("th", column, scope="col") for column in columns]
    body = [
        tag(
            "tr",
            [tag("td", cell, data_label=column) for column, cell in zip(columns, row, strict=True)],
        )
        for row in rows
    ]
    hidden = tag("caption", caption, class_="unseen")
    head = tag("thead", tag("tr", heads))
    return tag("table", hidden, head, tag("tbody", body), class_=of and f"of-{of}")


def attention(concerns: Sequence[Data], *, total: int = 0, named: bool = True) -> Html | None:
    """Build the list of concerns (what needs attention), the worst first; None if there are none.

    `total` is the number of all concerns, if the list has only the first ones.
    """
    if not concerns:
        return None
    items = [_concern(each, named=named) for each in concerns]
    more = (total or len(concerns)) - len(concerns)
    rest = tag("p", f"and {more:,} more", class_="quiet") if more > 0 else None
    return tag("div", tag("ul", items, class_="attention"), rest)


def _concern(each: Data, *, named: bool) -> Html:
    level = tag("span", _LEVELS[each["level"]], class_=f"level level-{each['level']}")
    fact: Child = each["fact"]
    if each["path"]:
        fact = tag("a", each["fact"], href=lineage_address(each, release=each["release"]) + "#uses")
    elif named:
        fact = tag("a", each["fact"], href=address(f"/dependents/{each['name']}"))
    users = f"used by {counted(each['dependents'], 'reference')}" if each["path"] else None
    if each["path"] and each["level"] == "error":
        users = (
            f"requested by {counted(each['dependents'], 'reference')}"
            if each["dependents"]
            else None
        )
    if each["level"] == "note":
        users = _NOT_USED
    hint = tag("span", each["hint"], class_="hint") if each["hint"] else None
    count = tag("span", users, class_="quiet") if users else None
    return tag("li", level, tag("div", tag("p", fact), tag("p", hint, count, class_="below")))


def search(action: str, text: str, label: str, **kept: str) -> Html:
    """Build a search field; `kept` are further parameters that the search request keeps."""
    hidden = [tag("input", type="hidden", name=n, value=v) for n, v in kept.items() if v]
    field = tag(
        "input",
        type="search",
        name="q",
        value=text,
        placeholder=label,
        aria_label=label,
        maxlength=200,
        autocomplete="off",
        spellcheck="false",
    )
    return tag("form", hidden, field, tag("button", "Search"), action=action, role="search")


def paging(data: Data, path: str, **query: str | int) -> Html | None:
    """Build links to the previous page and to the next page, if there are any."""
    page, last = data["page"], data["pages"]
    if last == 1:
        return None
    before = tag("a", "← Previous", href=address(path, **query, page=page - 1), rel="prev")
    after = tag("a", "Next →", href=address(path, **query, page=page + 1), rel="next")
    here = tag("span", f"Page {page:,} of {last:,}", class_="quiet")
    return tag(
        "nav",
        before if page > 1 else tag("span"),
        here,
        after if page < last else tag("span"),
        class_="paging",
        aria_label="pages",
    )


def tabs(
    items: Iterable[tuple[str, str, int | None]],
    chosen: str,
    *,
    about: str,
    link: Callable[[str], str],
) -> Html:
    """Build links that choose what a list shows.

    Each item has a value, a label and the number of entries, or None for no number. `link` returns
    the address for a value. `about` names the tabs for screen readers.
    """
    links = [
        tag(
            "a",
            label,
            tag("small", f"{count:,}") if count is not None else None,
            href=link(value),
            aria_current="true" if value == chosen else None,
        )
        for value, label, count in items
    ]
    return tag("nav", links, class_="tabs", aria_label=about)


def share_bar(
    parts: Iterable[tuple[int, str, str]], total: int, words: str, *, style: str = "share"
) -> Html:
    """Build a bar with the share of each part in a total.

    Each part has a number, the style of its colour, and a name. `words` describe the bar to screen
    readers.
    """
    x, drawn = 0.0, []
    for number, colour, name in parts:
        width = 100 * number / total
        if width:
            about = tag("title", f"{name}: {number:,}")
            size = {"x": f"{x:.2f}", "y": "0", "height": "6", "width": f"{width:.2f}"}
            drawn.append(tag("rect", about, **size, class_=f"part-{colour}"))
        x += width
    return tag(
        "svg",
        drawn,
        viewBox="0 0 100 6",
        preserveAspectRatio="none",
        role="img",
        aria_label=words,
        class_=style,
    )


def empty(text: str) -> Html:
    """Return the text for an empty list."""
    return tag("p", text, class_="empty")


@dataclass(frozen=True, slots=True)
class PageLayout:
    """The parts of a page around its content, such as the navigation and the live state."""

    path: str
    rollouts: bool = False
    runs: bool = False
    revision: int = 0
    problems: Mapping[str, str] = field(default_factory=dict)
    is_synced: bool = True

    def around(self, title: str, main: Html) -> Html:
        """Build the whole page, with this title and with `main` as its content."""
        head = tag(
            "head",
            tag("meta", charset="utf-8"),
            tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
            tag("meta", name="color-scheme", content="light dark"),
            tag("title", f"{title} · polyver"),
            tag("link", rel="icon", href="/static/icon.svg", type="image/svg+xml"),
            tag("link", rel="stylesheet", href="/static/page.css"),
            tag("script", src="/static/page.js", defer=True),
        )
        skip = tag("a", "Skip to content", href="#main", class_="skip")
        notes = tag("div", self._notes(), id="notes", data_live=True)
        body = tag("main", notes, main, id="main", tabindex="-1")
        return tag("html", head, tag("body", skip, self._header(), body), lang="en")

    def _header(self) -> Html:
        brand = tag("a", tag("img", src="/static/icon.svg", alt="", width=22, height=22), "polyver")
        links = [("/", "Lineages", ("/lineages", "/why")), ("/dependents", "Dependents", ())]
        if self.rollouts:
            links.append(("/rollouts", "Rollouts", ()))
        if self.runs:
            links.append(("/runs", "Runs", ()))
        items = [tag("li", self._link(*each)) for each in links]
        live = tag("span", "not live", id="live", class_="live", role="status")
        return tag(
            "header",
            tag("div", brand, class_="brand"),
            tag("nav", tag("ul", items), aria_label="main"),
            live,
        )

    def _link(self, href: str, text: str, inside: tuple[str, ...]) -> Html:
        here = self.path == href or (href != "/" and self.path.startswith(href))
        here = here or self.path.startswith(inside or ("//",))
        return tag("a", text, href=href, aria_current="page" if here else None)

    def _notes(self) -> list[Html]:
        found = [f"{name} may be out of date: {why}" for name, why in self.problems.items()]
        if not self.is_synced and not found:
            found = ["Some objects are not read yet."]
        return [tag("p", each, class_="note", role="alert") for each in found]


def problem_page(status: int, detail: str) -> tuple[str, Html]:
    """Build the title and content of an error page."""
    title = "Not found" if status == 404 else "Error"
    back = tag("p", tag("a", "All lineages", href="/"))
    return title, tag("div", tag("h1", title), tag("p", detail), back)
