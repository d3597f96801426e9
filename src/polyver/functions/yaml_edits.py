"""Edits of single nodes in a YAML text. All other characters stay unchanged."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass

import yaml

__all__ = ["Places"]


@dataclass(frozen=True, slots=True)
class _Edit:
    start: int
    end: int
    text: str


class Places:
    """A YAML text, its nodes, and the edits that are not applied yet."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._root = yaml.compose(text, Loader=yaml.SafeLoader)
        self._edits: list[_Edit] = []

    def edited(self) -> str:
        """Apply all edits, and return the new text."""
        text = self._text
        for edit in sorted(self._edits, key=lambda each: each.start, reverse=True):
            text = text[: edit.start] + edit.text + text[edit.end :]
        return text

    def put(self, fields: Mapping[str, str], *path: str) -> None:
        """Set fields of the mapping at a path. Replace existing fields, and add the others."""
        node = self._node(*path)
        if not isinstance(node, yaml.MappingNode):
            return
        known = {key.value: value for key, value in node.value}
        for name, value in fields.items():
            if name in known:
                found = known[name]
                written = _written(value, found.style)
                self._edits.append(_Edit(found.start_mark.index, found.end_mark.index, written))
        missing = {name: value for name, value in fields.items() if name not in known}
        if missing:
            self._insert(node, missing)

    def append(self, value: str, *path: str) -> None:
        """Append an item to the list at a path. Do nothing if the list is missing or empty."""
        node = self._node(*path)
        if not isinstance(node, yaml.SequenceNode) or not node.value:
            return
        last = node.value[-1]
        written = _written(value, last.style)
        if node.flow_style:
            self._edits.append(_Edit(last.end_mark.index, last.end_mark.index, f", {written}"))
        else:
            self._insert_lines(last, node.start_mark.column, [f"- {written}"])

    def _node(self, *path: str) -> yaml.Node | None:
        node: yaml.Node | None = self._root
        for step in path:
            if not isinstance(node, yaml.MappingNode):
                return None
            node = next((value for key, value in node.value if key.value == step), None)
        return node

    def _insert(self, node: yaml.MappingNode, fields: Mapping[str, str]) -> None:
        first_key, (_, last) = node.value[0][0], node.value[-1]
        style = '"' if first_key.style == '"' else None  # as in JSON
        pairs = [
            f"{_written(name, style)}: {_written(value, style)}" for name, value in fields.items()
        ]
        if node.flow_style:
            at = last.end_mark.index
            self._edits.append(_Edit(at, at, "".join(f", {pair}" for pair in pairs)))
        else:
            self._insert_lines(last, first_key.start_mark.column, pairs)

    def _insert_lines(self, last: yaml.Node, column: int, lines: list[str]) -> None:
        """Insert lines below the line in which a node ends.

        A comment at the end of that line keeps its position.
        """
        end = self._text.find("\n", last.end_mark.index)
        end = len(self._text) if end < 0 else end
        newline = "\n"
        if self._text[end - 1 : end] == "\r":
            end, newline = end - 1, "\r\n"
        self._edits.append(_Edit(end, end, "".join(f"{newline}{' ' * column}{x}" for x in lines)))


def _written(value: str, style: str | None) -> str:
    """Quote a string in the given YAML style: `"`, `'`, or None for no quotes."""
    if style == '"':
        return json.dumps(value, ensure_ascii=False)
    return f"'{value}'" if style == "'" else value
