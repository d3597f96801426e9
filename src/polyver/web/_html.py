"""Build HTML from values. Every string is escaped, unless this module built it."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

__all__ = ["Child", "Html", "document", "tag"]


class Html(str):
    """A string with HTML markup, which is not escaped again."""

    __slots__ = ()


Child = str | int | None | Iterable["Child"]
_VOID = frozenset(("br", "hr", "input", "link", "meta"))


def tag(name: str, /, *children: Child, **attributes: str | int | bool | None) -> Html:
    """Build an HTML element; attributes that are None or False are left out.

    >>> print(tag("a", "<b>", href='/?q="', class_="name", aria_label=None))
    <a href="/?q=&quot;" class="name">&lt;b&gt;</a>
    """
    written = "".join(_attribute(key, value) for key, value in attributes.items())
    if name in _VOID:
        return Html(f"<{name}{written}>")
    return Html(f"<{name}{written}>{_inside(children)}</{name}>")


def _attribute(key: str, value: str | int | bool | None) -> str:
    if value is None or value is False:
        return ""
    name = key.strip("_").replace("_", "-")
    return f" {name}" if value is True else f' {name}="{escape(str(value))}"'


def _inside(child: Child) -> str:
    if child is None:
        return ""
    if isinstance(child, Html):
        return child
    if isinstance(child, str | int):
        return escape(str(child))
    return "".join(map(_inside, child))


def document(root: Html) -> bytes:
    """Return a whole page, encoded."""
    # Names may contain lone surrogates, which cannot be encoded.
    return f"<!doctype html>\n{root}\n".encode("utf-8", "replace")
