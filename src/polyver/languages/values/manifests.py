"""Reads manifests in YAML and JSON as kubectl does, with line numbers for errors; writes YAML."""

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
    number,
    read_json,
    scalar,
)
from polyver.languages.values.strings import without_nulls

__all__ = [
    "Document",
    "InvalidManifest",
    "Path",
    "dotted",
    "dump_flow_yaml",
    "dump_yaml",
    "load_manifests",
    "problem_of",
]

T = TypeVar("T")
Path = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class Document:
    """One document of a YAML or JSON file: its value, and the line of each part of the value."""

    value: object
    source: str
    _mark: Mark
    _path: Path = ()

    def place(self, *path: str | int) -> str:
        """Write the position of a field, such as `defs.yaml:7, spec.version`.

        If the field does not exist, use the line of its nearest existing parent.

        >>> load_manifests("a: 1\\nb: [2]", "x.yaml")[0].place("b", 0)
        'x.yaml:2, b[0]'
        """
        where = f"{self.source}:{self._mark_at(path).line}"
        whole = self._path + path
        return f"{where}, {dotted(whole)}" if whole else where

    def read(self, kind: type[T]) -> T:
        """Convert the value to a type such as a msgspec Struct.

        Raise `InvalidManifest` if it does not fit.
        """
        try:
            return msgspec.convert(self.value, kind)
        except msgspec.ValidationError as error:
            fact, path, hint = problem_of(error, self.value)
            raise InvalidManifest(fact, at=self.place(*path), hint=hint) from None

    def without_nulls(self) -> Document:
        """Return the document without nulls; in a Kubernetes object, null means an absent field."""
        return Document(without_nulls(self.value), self.source, self._mark, self._path)

    def key_was_text(self, *path: str | int) -> bool:
        """Report whether the last key of a path is written as a string, not as a number."""
        return self._mark_at(path).key_was_text

    def part(self, *path: str | int) -> Document:
        """Return a document that has only the value at a path."""
        value = _at(self.value, path)
        return Document(value, self.source, self._mark_at(path), self._path + path)

    def _mark_at(self, path: Path) -> Mark:
        """Return the line information of the value at a path, or of its nearest existing parent."""
        mark = self._mark
        for step in path:
            if step not in mark.inside:
                break
            mark = mark.inside[step]
        return mark

    def error(self, fact: str, *path: str | int, hint: str = "") -> InvalidManifest:
        return InvalidManifest(fact, at=self.place(*path), hint=hint)


def dotted(path: Path) -> str:
    """Write a path with dots, and with indexes in brackets.

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
    """Convert a validation error of msgspec to the parts of our error: fact, path and hint."""
    fact, _, where = str(error).partition(" - at ")
    return _plain(fact), _steps(where.strip("`"), value, fact), _advice(fact)


def _steps(where: str, value: object, fact: str) -> Path:
    """Read the path in a message of msgspec, such as `$.spec.versions[0].version`.

    For a value in a mapping, msgspec writes `[...]` instead of the key. The path then has the first
    key whose value has the wrong type.
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
    """Return msgspec's name for the type of a value."""
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
    """Parse a YAML or JSON text; return its documents, except empty documents.

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
        # Take the lines from the YAML parser, but the values from a JSON parser: YAML reads some
        # escapes and characters in another way.
        found = read_json(text, source)
        if found is not None:
            mark = documents[0]._mark if documents and problem is None else Mark(1)
            return [Document(found, source, mark)]
    if problem is not None:
        raise problem
    return documents


_TIME = "tag:yaml.org,2002:timestamp"
"""The YAML tag of timestamps. kubectl reads a timestamp as a string, other YAML readers do not."""


class _Dumper(yaml.CSafeDumper):
    """Writes YAML; quotes each string that kubectl or others would read as another type."""

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
    """Write plain data as YAML that kubectl reads back as the same data.

    >>> print(dump_yaml({"version": "1.2", "answer": "y", "size": 2}), end="")
    version: '1.2'
    answer: 'y'
    size: 2
    """
    text: str = yaml.dump(
        value, Dumper=_Dumper, sort_keys=False, allow_unicode=True, default_flow_style=False
    )
    return text


_ONE_LINE = 2**30


def dump_flow_yaml(value: object) -> str:
    """Write plain data as YAML on one line, without a line end.

    >>> dump_flow_yaml({"from": "a.b", "separator": ":", "types": ["y"]})
    "{from: a.b, separator: ':', types: ['y']}"
    """
    text: str = yaml.dump(
        value,
        Dumper=_Dumper,
        sort_keys=False,
        allow_unicode=True,
        default_flow_style=True,
        width=_ONE_LINE,
    )
    return text.removesuffix("\n").removesuffix("\n...")
