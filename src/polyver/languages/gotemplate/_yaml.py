"""Writes plain data as YAML in the style of Helm."""

from __future__ import annotations

import re
from collections.abc import Mapping

import yaml

from polyver.languages.values.scalars import scalar
from polyver.languages.values.strings import number_text

__all__ = ["yaml_text"]

_TAG = "tag:yaml.org,2002:"
_TAGS: Mapping[type, str] = {
    type(None): f"{_TAG}null",
    bool: f"{_TAG}bool",
    int: f"{_TAG}int",
    float: f"{_TAG}float",
    str: f"{_TAG}str",
}


class _Dumper(yaml.CSafeDumper):
    """Keeps strings of several lines, and quotes strings that would be read as another type."""

    def resolve(self, kind: type, value: str, implicit: tuple[bool, bool]) -> str:
        if kind is yaml.ScalarNode and implicit[0]:
            return _TAGS[type(_read(value))]
        tag: str = super().resolve(kind, value, implicit)  # type: ignore[no-untyped-call]
        return tag

    def ignore_aliases(self, data: object) -> bool:  # noqa: ARG002 - PyYAML's signature
        return True


_MOMENT = re.compile(
    r"[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}"
    r"(?:(?:[Tt]| )[0-9]{1,2}:[0-9]{1,2}:[0-9]{1,2}(?:\.[0-9]+)?(?:Z|[+-][0-9]{2}:[0-9]{2})?)?"
)
_SIXTIES = re.compile(r"[-+]?[0-9][0-9_]*(?::[0-5]?[0-9])+(?:\.[0-9_]*)?")
_BOOLEANS = frozenset("y Y yes Yes YES n N no No NO on On ON off Off OFF".split())


def _read(text: str) -> object:
    """Return the value of a plain scalar; True if YAML 1.1 would not read it as a string."""
    if text in _BOOLEANS or _MOMENT.fullmatch(text) or _SIXTIES.fullmatch(text):
        return True
    return scalar(text)


def _represent_text(dumper: _Dumper, text: str) -> yaml.ScalarNode:
    if "\n" in text:
        return dumper.represent_scalar(f"{_TAG}str", text, style="|")
    plain = isinstance(_read(text), str) and text != "<<"
    return dumper.represent_scalar(f"{_TAG}str", text, style=None if plain else '"')


def _represent_float(dumper: _Dumper, value: float) -> yaml.ScalarNode:
    if value.is_integer() and abs(value) < 2**63:
        return dumper.represent_int(int(value))
    text = number_text(value)
    return dumper.represent_scalar(_TAGS[type(_read(text))], text)


_Dumper.add_representer(str, _represent_text)
_Dumper.add_representer(float, _represent_float)


def yaml_text(value: object) -> str:
    """Return plain data as YAML, without the last newline.

    >>> print(yaml_text({"a": "1", "b": [1, "x: y"]}))
    a: "1"
    b:
    - 1
    - 'x: y'
    """
    text: str = yaml.dump(
        value,
        Dumper=_Dumper,
        sort_keys=False,
        allow_unicode=True,
        default_flow_style=False,
        width=1 << 30,
    )
    return text.removesuffix("...\n").removesuffix("\n")
