"""Makes transcripts comparable: what differs from run to run gets a name that does not.

Equal things get equal names in the order in which they appear, so that a resourceVersion that
should have stayed, or a uid that should have changed, still shows. Prose that explains fields to
people is Kubernetes' own, so that only its being there is kept.
"""

from __future__ import annotations

import base64
import json
import re
from typing import Any

_UUID = re.compile(r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b")
_TIME = re.compile(r"\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")
_AGE = re.compile(r"\b(\d+[smh])+\b")
_HASH = re.compile(r"hash=[0-9A-F]{32,}")
_CURRENT = re.compile(r"(current: |revision=)\d+")
_COMPACTED = re.compile(r"(too old resource version: )\d+ \(\d+\)")
_WRITTEN = re.compile(r'(resourceVersion\\*"?: ?\\*"?)(\d+)')
_IN_RECORD = re.compile(r"(ResourceVersion in record \()(\d+)")
_SCRATCH = re.compile(r"/tmp/(LIVE|MERGED)-\d+")
_FILE_TIME = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d+ [-+]\d{4}")
_SPACES = re.compile(r" {2,}")
_TOKEN = re.compile(r"\beyJ[\w-]+\.eyJ[\w-]+\.[\w-]+")
_PROSE = re.compile(r"  (?!<)[^\t]+")
WORDS = "<words>"
BUILD = ("gitCommit", "buildDate", "goVersion", "compiler", "platform")


class Stable:
    """Names for everything in one transcript that differs from run to run."""

    def __init__(self, known: dict[str, str]) -> None:
        """`known` are texts of this run, such as addresses, and what they are called."""
        self._texts = {text: f"<{name}>" for text, name in known.items()}
        self._names: dict[tuple[str, str], str] = {}

    def value(self, value: Any) -> Any:
        match value:
            case dict():
                return self._mapping(value)
            case list():
                return [self.value(item) for item in value]
            case str():
                return self.text(value)
            case _:
                return value

    def text(self, text: str) -> str:
        for found, name in self._texts.items():
            text = text.replace(found, name)
        text = _TOKEN.sub(lambda found: f"<token {_claims(found[0])}>", text)
        text = _UUID.sub(lambda found: self._name("uid", found[0]), text)
        text = _TIME.sub("<time>", text)
        text = _HASH.sub("hash=<hash>", text)
        text = _COMPACTED.sub(r"\1<rv>", text)
        for pattern in (_WRITTEN, _IN_RECORD):
            text = pattern.sub(lambda found: found[1] + self._name("rv", found[2]), text)
        return _CURRENT.sub(r"\1<rv>", text)

    def picked(self, path: str, value: Any) -> Any:
        """A part of an answer, which is called as its path ends."""
        return self._field(path.rpartition(".")[2], value)

    def printed(self, text: str) -> list[str]:
        """What a command printed: its lines, without the widths of columns and ages."""
        text = _FILE_TIME.sub("<time>", _SCRATCH.sub(r"<\1>", text))
        lines = self.text(text).splitlines()
        return [_AGE.sub("<age>", _SPACES.sub("  ", line)).rstrip() for line in lines]

    def explained(self, text: str) -> list[str]:
        """What `kubectl explain` printed: of paragraphs, that there are any."""
        lines = [f"  {WORDS}" if _PROSE.fullmatch(line) else line for line in self.printed(text)]
        ends = [*lines[1:], ""]
        return [line for line, next_ in zip(lines, ends, strict=True) if not _goes_on(line, next_)]

    def _name(self, kind: str, value: str) -> str:
        count = sum(known == kind for known, _ in self._names)
        return self._names.setdefault((kind, value), f"<{kind}-{count + 1}>")

    def _mapping(self, value: dict[str, Any]) -> dict[str, Any]:
        self._learn_generated_name(value)
        value = without_build(without_list_version(value))
        return {self.text(key): self._field(key, value[key]) for key in sorted(value)}

    def _learn_generated_name(self, value: dict[str, Any]) -> None:
        prefix, name = value.get("generateName"), value.get("name")
        if isinstance(prefix, str) and isinstance(name, str) and name.startswith(prefix):
            self._texts.setdefault(name, f"{prefix}<suffix>")

    def _field(self, key: str, value: Any) -> Any:
        if key == "resourceVersion" and isinstance(value, str) and value not in ("", "0"):
            return value if value.startswith("<") else self._name("rv", value)
        if key == "continue" and value:
            return "<continue>"
        if key == "description" and isinstance(value, str) and " " in value:
            return WORDS
        if key == "managedFields" and isinstance(value, list):
            # The real server sorts these by time, to the second.
            return sorted((self.value(entry) for entry in value), key=_entry_order)
        if key == "rows" and isinstance(value, list):
            return [self._row(self.value(row)) for row in value]
        return self.value(value)

    def _row(self, row: Any) -> Any:
        if isinstance(row, dict) and isinstance(row.get("cells"), list):
            cells = [
                "<age>" if isinstance(cell, str) and _AGE.fullmatch(cell) else cell
                for cell in row["cells"]
            ]
            return {**row, "cells": cells}
        return row


def without_list_version(value: Any) -> Any:
    """A list is as of the newest write anywhere, which may or may not be one of the case's."""
    if not isinstance(value, dict) or not ("items" in value or "rows" in value):
        return value
    metadata = value.get("metadata")
    if not isinstance(metadata, dict) or not metadata.get("resourceVersion"):
        return value
    return {**value, "metadata": {**metadata, "resourceVersion": "<list-rv>"}}


def without_build(value: dict[str, Any]) -> dict[str, Any]:
    """The version of a program, without what tells one build of it from another."""
    if not isinstance(version := value.get("gitVersion"), str):
        return value
    return value | dict.fromkeys(BUILD, "<build>") | {"gitVersion": version.partition("+")[0]}


def _claims(token: str) -> str:
    """What a signed token says, with its times as seconds after it was made."""
    head, claims = (_part(text) for text in token.split(".")[:2])
    times = {name: claims[name] - claims["iat"] for name in ("iat", "nbf", "exp")}
    return json.dumps({"alg": head["alg"]} | claims | times, sort_keys=True)


def _part(text: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)))
    return found


def _goes_on(line: str, after: str) -> bool:
    return line == after == f"  {WORDS}"


def _entry_order(entry: dict[str, Any]) -> tuple[str, ...]:
    names = ("operation", "manager", "apiVersion", "subresource")
    return tuple(str(entry.get(name, "")) for name in names)
