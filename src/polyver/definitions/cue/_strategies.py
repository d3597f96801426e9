"""Merge strategies of a trait's patch, which KubeVela reads from comments.

`cue export --out cue` prints the comments together with the data below them. So this parser needs
only fields, lists and values, no expressions.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Final

__all__ = ["Path", "Tags", "tags_above", "tags_of"]

Path = tuple[str | int, ...]
Tags = Mapping[Path, Mapping[str, str]]
"""Tags of the fields of a patch, by their paths."""

_WORDS: Final = re.compile(
    r"""
      //[^\n]*
    | (?P<raw>\#*)(?P<quote>\"{3}|'{3}|"|')
        (?:\\(?P=raw).|(?!(?P=quote)(?P=raw)).)*
      (?P=quote)(?P=raw)
    | [{}\[\]:,]
    | [^\s{}\[\]:,"'\#/]+
    """,
    re.VERBOSE | re.DOTALL,
)
_TAG: Final = re.compile(r"^//\s*\+([\w-]+)\s*=\s*(\S+)\s*$")
_ABOVE: Final = r"((?:^[ \t]*//[^\n]*\n)+){name}[ \t]*:"


def tags_above(template: str, name: str) -> dict[str, str]:
    """Return the tags above a top-level field of a template, from all its occurrences.

    >>> tags_above("// +patchStrategy=jsonPatch\\npatch: operations: []", "patch")
    {'patchStrategy': 'jsonPatch'}
    """
    found: dict[str, str] = {}
    for above in re.findall(_ABOVE.format(name=re.escape(name)), template, re.MULTILINE):
        for line in above.splitlines():
            found |= _tag(line.strip())
    return found


def tags_of(exported: str) -> Tags:
    """Return the tags of the fields in exported data.

    >>> tags_of('a: {\\n\\t// +patchKey=name\\n\\tb: [{c: 1}]\\n}')
    {('a', 'b'): {'patchKey': 'name'}}
    """
    return _Reader(exported).read()


def _tag(comment: str) -> dict[str, str]:
    found = _TAG.match(comment)
    return {found[1]: found[2]} if found else {}


class _Reader:
    """Walks over exported data, and collects the comments above each field."""

    def __init__(self, text: str) -> None:
        self._words = [found[0] for found in _WORDS.finditer(text)]
        self._at = 0
        self._found: dict[Path, dict[str, str]] = {}

    def read(self) -> Tags:
        self._fields(())
        return self._found

    def _word(self, ahead: int = 0) -> str:
        """Return a word without consuming it; empty after the last one."""
        at = self._at + ahead
        return self._words[at] if at < len(self._words) else ""

    def _fields(self, path: Path) -> None:
        said: dict[str, str] = {}
        while (word := self._word()) not in ("}", ""):
            if word.startswith("//"):
                said |= _tag(word)
            elif self._word(1) == ":":
                self._field(path, said)
                said = {}
                continue
            self._at += 1

    def _field(self, path: Path, said: dict[str, str]) -> None:
        here = (*path, _label(self._word()))
        if said:
            self._found.setdefault(here, {}).update(said)
        self._at += 2
        self._value(here)

    def _value(self, path: Path) -> None:
        opened = self._word()
        if self._word(1) == ":":  # a single field, as in `a: b: 1`
            self._field(path, {})
            return
        self._at += 1
        if opened == "{":
            self._fields(path)
            self._at += 1
        elif opened == "[":
            self._items(path)
            self._at += 1

    def _items(self, path: Path) -> None:
        number = 0
        while (word := self._word()) not in ("]", ""):
            if word == "," or word.startswith("//"):
                self._at += 1
                continue
            self._value((*path, number))
            number += 1


def _label(word: str) -> str:
    label: str = json.loads(word) if word.startswith('"') else word
    return label
