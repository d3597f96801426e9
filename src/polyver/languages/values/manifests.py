"""Manifests as text: read as kubectl reads them, with errors that know their line; and written."""

from __future__ import annotations

import operator
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

import msgspec
import yaml

from polyver.languages.values.parse import (
    InvalidManifest,
    Mark,
    RefusedManifest,
    YamlReader,
    read_json,
)
from polyver.languages.values.scalars import number, scalar
from polyver.languages.values.strings import without_nulls

__all__ = [
    "Document",
    "InvalidManifest",
    "Path",
    "dotted",
    "dump_yaml",
    "load_manifests",
    "problem_of",
]

T = TypeVar("T")
Path = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class Document:
    """One document of a file: its value, and where each part of it was written."""

    value: object
    source: str
    _mark: Mark
    _path: Path = ()

    def place(self, *path: str | int) -> str:
        """Where a field was written, or the nearest thing around it: `defs.yaml:7, spec.version`.

        >>> load_manifests("a: 1\\nb: [2]", "x.yaml")[0].place("b", 0)
        'x.yaml:2, b[0]'
        """
        where = f"{self.source}:{self._mark_at(path).line}"
        whole = self._path + path
        return f"{where}, {dotted(whole)}" if whole else where

    def read(self, kind: type[T]) -> T:
        """The value as a typed structure."""
        try:
            return msgspec.convert(self.value, kind)
        except msgspec.ValidationError as error:
            fact, path, hint = problem_of(error, self.value)
            raise InvalidManifest(fact, at=self.place(*path), hint=hint) from None

    def without_nulls(self) -> Document:
        """The same without its nulls, which in a Kubernetes object are as good as nothing."""
        return Document(without_nulls(self.value), self.source, self._mark, self._path)

    def key_was_text(self, *path: str | int) -> bool:
        """Whether the last key of a path was written as text, and not as a number or a boolean."""
        return self._mark_at(path).key_was_text

    def part(self, *path: str | int) -> Document:
        """What is at a path, as a document of its own."""
        value = _at(self.value, path)
        return Document(value, self.source, self._mark_at(path), self._path + path)

    def _mark_at(self, path: Path) -> Mark:
        """The mark of what is at a path, or of the nearest thing around it."""
        mark = self._mark
        for step in path:
            if step not in mark.inside:
                break
            mark = mark.inside[step]
        return mark

    def error(self, fact: str, *path: str | int, hint: str = "") -> InvalidManifest:
        return InvalidManifest(fact, at=self.place(*path), hint=hint)


def dotted(path: Path) -> str:
    """A path as people write it.

    >>> dotted(("spec", "ports", 0, "app.kubernetes.io/name"))
    'spec.ports[0]."app.kubernetes.io/name"'
    """
    text = ""
    for step in path:
        if isinstance(step, int):
            text += f"[{step}]"
        else:
            shown = step if re.fullmatch(r"[\w/-]+", step) else f'"{step}"'
            text += f".{shown}" if text else shown
    return text


def problem_of(error: msgspec.ValidationError, value: object) -> tuple[str, Path, str]:
    """What msgspec complains of in a value, in plain words: the fact, the path and a next step."""
    fact, _, where = str(error).partition(" - at ")
    return _plain(fact), _steps(where.strip("`"), value, fact), _advice(fact)


def _steps(where: str, value: object, fact: str) -> Path:
    """The path in a message of msgspec, `$.spec.versions[0].version`.

    It does not tell which key of a mapping is wrong, so the first one of that type is taken.
    """
    known, unknown, _ = where.partition("[...]")
    found = re.findall(r"\[(\d+)\]|\.([^.\[\]]+)", known)
    steps: list[str | int] = [int(number) if number else name for number, name in found]
    value = _at(value, steps)
    if unknown and isinstance(value, dict):
        wrong = re.search("got `(.*)`", fact)
        steps += [key for key, inner in value.items() if wrong and _kind(inner) == wrong[1]][:1]
    return tuple(steps)


def _at(value: object, path: Sequence[str | int]) -> object:
    for step in path:
        value = operator.getitem(value, step)  # type: ignore[call-overload]
    return value


def _kind(value: object) -> str:
    """What msgspec calls the type of a value."""
    names = {dict: "object", list: "array", type(None): "null"}
    return names.get(type(value), type(value).__name__)


def _plain(fact: str) -> str:
    words = {
        "`object`": "a mapping",
        "`array`": "a list",
        "`str`": "a string",
        "`int`": "an integer",
    }
    words |= {"`bool`": "a boolean", "`null`": "null", "`float`": "a number"}
    fact = fact.replace(" | null`", "`")
    for name, word in words.items():
        fact = fact.replace(name, word)
    fact = re.sub("^Object missing required field (.*)$", r"\1 is missing", fact)
    fact = re.sub("^Object contains unknown field (.*)$", r"unknown field \1", fact)
    fact = fact.replace("`", '"')
    return fact[:1].lower() + fact[1:]


def _advice(fact: str) -> str:
    return "put it in quotes" if re.match("Expected `str.*got `(int|float|bool)`", fact) else ""


def load_manifests(text: str, source: str) -> list[Document]:
    """The documents of a YAML or JSON text, those that are empty left out.

    >>> [document.value for document in load_manifests("mode: 0644\\n---\\nday: 2026-01-02", "x")]
    [{'mode': 420}, {'day': '2026-01-02'}]
    """
    documents: list[Document] = []
    problem: InvalidManifest | None = None
    try:
        for value, mark in YamlReader(text, source).documents():
            documents.append(Document(value, source, mark))
    except RefusedManifest:
        raise
    except InvalidManifest as error:
        problem = error
    if text.lstrip().startswith(("{", "[")):
        # JSON is nearly YAML: the lines are the same, escapes and odd characters are not.
        found = read_json(text, source)
        if found is not None:
            mark = documents[0]._mark if documents and problem is None else Mark(1)
            return [Document(found, source, mark)]
    if problem is not None:
        raise problem
    return documents


_TIME = "tag:yaml.org,2002:timestamp"
"""What kubectl takes for text, and others do not."""


class _Dumper(yaml.CSafeDumper):
    """Quotes every text that would be read as something else, by kubectl or by others."""

    def resolve(self, kind: type, value: str, implicit: tuple[bool, bool]) -> str:
        tag: str = super().resolve(kind, value, implicit)  # type: ignore[no-untyped-call]
        if kind is yaml.ScalarNode and implicit[0] and tag != _TIME:
            return "" if value == "<<" else _TAGS[type(scalar(value))]
        return tag

    def ignore_aliases(self, data: object) -> bool:  # noqa: ARG002 - PyYAML's signature
        return True


def _represent_float(dumper: _Dumper, value: float) -> yaml.ScalarNode:
    shown = number(value, "")
    if isinstance(shown, int):
        return dumper.represent_int(shown)
    return dumper.represent_float(value)


_Dumper.add_representer(float, _represent_float)

_TAGS: Mapping[type, str] = {
    kind: f"tag:yaml.org,2002:{name}"
    for kind, name in (
        (type(None), "null"),
        (bool, "bool"),
        (int, "int"),
        (float, "float"),
        (str, "str"),
    )
}


def dump_yaml(value: object) -> str:
    """Plain data as YAML that kubectl reads back as the same data.

    >>> print(dump_yaml({"version": "1.2", "answer": "y", "size": 2}), end="")
    version: '1.2'
    answer: 'y'
    size: 2
    """
    text: str = yaml.dump(
        value, Dumper=_Dumper, sort_keys=False, allow_unicode=True, default_flow_style=False
    )
    return text
