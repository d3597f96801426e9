"""The layout of every page: navigation, the live state, and notes about incomplete data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from polyver.web._html import Html, tag

__all__ = ["PageLayout", "problem_page"]


@dataclass(frozen=True, slots=True)
class PageLayout:
    """The properties of a page other than its content."""

    path: str
    runs: bool = False
    revision: int = 0
    problems: Mapping[str, str] = field(default_factory=dict)
    is_synced: bool = True

    def around(self, title: str, main: Html) -> Html:
        """Return the whole page."""
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
    """Return the title and content of an error page."""
    title = "Not found" if status == 404 else "Error"
    back = tag("p", tag("a", "All lineages", href="/"))
    return title, tag("div", tag("h1", title), tag("p", detail), back)
