"""Named string formats, such as `dns1123Label`, against which CEL rules can validate strings."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from polyver.languages.cel._urls import URL, is_uri
from polyver.languages.cel._values import NONE, CelEvaluationError, List, Opaque, Optional
from polyver.languages.values.formats import text_format
from polyver.languages.values.names import (
    dns_1035_label_problems,
    dns_label_problems,
    dns_subdomain_problems,
    label_key_problems,
    label_value_problems,
)

__all__ = ["NAMED_FORMATS", "NamedFormat"]

Problems = Callable[[str], list[str]]


@dataclass(frozen=True, slots=True)
class NamedFormat(Opaque):
    """A named format: the function that finds errors in a string, and the cost of a call."""

    name: str
    problems: Problems
    length: int
    """The length of the format's pattern in kube-apiserver, which determines the cost of a call."""
    type_name = "kubernetes.NamedFormat"

    def equals(self, other: Opaque) -> bool:
        return isinstance(other, NamedFormat) and self.name == other.name

    def validate(self, text: str) -> Optional:
        found = self.problems(text)
        return Optional(List(found)) if found else NONE


def _prefix(problems: Problems) -> Problems:
    """Build a check for prefixes of names: unlike a name, a prefix may end with a dash."""

    def check(text: str) -> list[str]:
        ended = len(text) > 1 and text.endswith("-")
        return problems(f"{text[:-2]}a" if ended else text)

    return check


def _known(name: str, problem: str) -> Problems:
    fits = text_format(name)
    assert fits is not None
    return lambda text: [] if fits(text) else [problem]


def _uri(text: str) -> list[str]:
    if is_uri(text):
        return []
    try:
        URL.parse(text)
    except CelEvaluationError as problem:
        return [str(problem).partition(": ")[2]]
    return []


_ALL = {
    "dns1123Label": NamedFormat("DNS1123Label", dns_label_problems, 30),
    "dns1123Subdomain": NamedFormat("DNS1123Subdomain", dns_subdomain_problems, 60),
    "dns1035Label": NamedFormat("DNS1035Label", dns_1035_label_problems, 30),
    "qualifiedName": NamedFormat("QualifiedName", label_key_problems, 60),
    "dns1123LabelPrefix": NamedFormat("DNS1123LabelPrefix", _prefix(dns_label_problems), 30),
    "dns1123SubdomainPrefix": NamedFormat(
        "DNS1123SubdomainPrefix", _prefix(dns_subdomain_problems), 60
    ),
    "dns1035LabelPrefix": NamedFormat("DNS1035LabelPrefix", _prefix(dns_1035_label_problems), 30),
    "labelValue": NamedFormat("LabelValue", label_value_problems, 40),
    "uri": NamedFormat("URI", _uri, 1103),
    "uuid": NamedFormat("uuid", _known("uuid", "does not match the UUID format"), 71),
    "byte": NamedFormat("byte", _known("byte", "invalid base64"), 84),
    "date": NamedFormat("date", _known("date", "invalid date"), 71),
    "datetime": NamedFormat("datetime", _known("datetime", "invalid datetime"), 71),
}


def _named(name: str) -> Optional:
    return Optional(_ALL[name]) if name in _ALL else NONE


def _constant(found: NamedFormat) -> Callable[[], NamedFormat]:
    return lambda: found


NAMED_FORMATS: dict[str, Callable[..., Any]] = {
    **{f"format.{name}": _constant(found) for name, found in _ALL.items()},
    "format-named": _named,
    "format-validate": lambda found, text: found.validate(text),
}
