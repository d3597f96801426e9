"""Validation of names and labels, with kube-apiserver's messages."""

from __future__ import annotations

import re

__all__ = [
    "dns_1035_label_problems",
    "dns_label_problems",
    "dns_subdomain_problems",
    "label_key_problems",
    "label_value_problems",
]

_LABEL = re.compile("[a-z0-9]([-a-z0-9]*[a-z0-9])?")
_SUBDOMAIN = re.compile(rf"{_LABEL.pattern}(\.{_LABEL.pattern})*")
_LOWER_CASE = "must consist of lower case alphanumeric characters"
_ENDS = "must start and end with an alphanumeric character"
_NAME = re.compile("([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]")
_VALUE = re.compile("(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?")
_CHARACTERS = "alphanumeric characters, '-', '_' or '.', and must start and end with "
_CHARACTERS += "an alphanumeric character"


def dns_label_problems(name: str) -> list[str]:
    """Return the errors in an RFC 1123 label.

    >>> dns_label_problems("a-1")
    []
    """
    if _LABEL.fullmatch(name):
        return [] if len(name) <= 63 else ["must be no more than 63 characters"]
    long = [] if len(name) <= 63 else ["must be no more than 63 characters"]
    # If dots are the only error in a name, report only the error about dots.
    if _SUBDOMAIN.fullmatch(name):
        return [*long, "must not contain dots"]
    return [
        *long,
        f"a lowercase RFC 1123 label {_LOWER_CASE} or '-', and {_ENDS} (e.g. 'my-name',  or "
        f"'123-abc', regex used for validation is '{_LABEL.pattern}')",
    ]


def dns_subdomain_problems(name: str) -> list[str]:
    """Return the errors in an RFC 1123 subdomain."""
    problems = [] if len(name) <= 253 else ["must be no more than 253 characters"]
    if not _SUBDOMAIN.fullmatch(name):
        problems.append(
            f"a lowercase RFC 1123 subdomain {_LOWER_CASE}, '-' or '.', and {_ENDS} (e.g. "
            f"'example.com', regex used for validation is '{_SUBDOMAIN.pattern}')"
        )
    return problems


def dns_1035_label_problems(name: str) -> list[str]:
    """Return the errors in an RFC 1035 label."""
    pattern = "[a-z]([-a-z0-9]*[a-z0-9])?"
    problems = [] if len(name) <= 63 else ["must be no more than 63 characters"]
    if not re.fullmatch(pattern, name):
        problems.append(
            f"a DNS-1035 label {_LOWER_CASE} or '-', start with an alphabetic character, and end "
            "with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for "
            f"validation is '{pattern}')"
        )
    return problems


def label_key_problems(key: str) -> list[str]:
    """Return the errors in a label key."""
    prefix, slash, name = key.rpartition("/")
    if "/" in prefix:
        return [
            f"a valid label key must consist of {_CHARACTERS} (e.g. 'MyName',  or 'my.name',  or "
            f"'123-abc', regex used for validation is '{_NAME.pattern}') with an optional DNS "
            "subdomain prefix and '/' (e.g. 'example.com/MyName')"
        ]
    problems: list[str] = []
    if slash and not prefix:
        problems.append("prefix part must be non-empty")
    elif slash and not _SUBDOMAIN.fullmatch(prefix):
        problems.append(
            "prefix part a lowercase RFC 1123 subdomain must consist of lower case alphanumeric "
            "characters, '-' or '.', and must start and end with an alphanumeric character (e.g. "
            f"'example.com', regex used for validation is '{_SUBDOMAIN.pattern}')"
        )
    if not name:
        problems.append("name part must be non-empty")
    elif len(name) > 63:
        problems.append("name part must be no more than 63 bytes")
    if not _NAME.fullmatch(name):
        problems.append(
            f"name part must consist of {_CHARACTERS} (e.g. 'MyName',  or 'my.name',  or "
            f"'123-abc', regex used for validation is '{_NAME.pattern}')"
        )
    return problems


def label_value_problems(value: str) -> list[str]:
    """Return the errors in a label value."""
    problems: list[str] = []
    if len(value) > 63:
        problems.append("must be no more than 63 bytes")
    if not _VALUE.fullmatch(value):
        problems.append(
            f"a valid label must be an empty string or consist of {_CHARACTERS} (e.g. 'MyValue',  "
            f"or 'my_value',  or '12345', regex used for validation is '{_VALUE.pattern}')"
        )
    return problems
