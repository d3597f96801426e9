"""Escape field names in CEL: a name that is no CEL identifier is converted to an identifier."""

from __future__ import annotations

import re

__all__ = ["escape", "unescape"]

_RESERVED = frozenset(
    "true false null in as break const continue else for function if import let loop package "
    "namespace return var void while".split()
)
_SIGNS = {"__": "__underscores__", ".": "__dot__", "-": "__dash__", "/": "__slash__"}
_WORDS = {escaped[2:-2]: sign for sign, escaped in _SIGNS.items()}


def escape(name: str) -> str | None:
    """Convert a field name to an identifier; return None if the name cannot be escaped.

    >>> escape("a-b"), escape("in"), escape("a__b"), escape("ä"), escape("1a")
    ('a__dash__b', '__in__', 'a__underscores__b', None, None)
    """
    if name in _RESERVED:
        return f"__{name}__"
    if not re.fullmatch(r"[A-Za-z_./-][A-Za-z0-9_./-]*", name):
        return None
    return re.sub(r"__|[-./]", lambda found: _SIGNS[found[0]], name)


def unescape(name: str) -> str | None:
    """Convert an identifier to the field name; return None if an escape in it is invalid.

    >>> unescape("a__dash__b"), unescape("__in__"), unescape("a"), unescape("__x__")
    ('a-b', 'in', 'a', None)
    """
    if "__" not in name:
        return name
    parts = re.split(r"__([^_]+)__", name)
    for number in range(1, len(parts), 2):
        word = parts[number]
        if word in _WORDS:
            parts[number] = _WORDS[word]
        elif word not in _RESERVED or len(name) != len(word) + 4:
            return None
    return "".join(parts)
