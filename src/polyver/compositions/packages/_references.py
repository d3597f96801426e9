"""References of packages: images, and `file:` and `pypi:` of the process runtime."""

from __future__ import annotations

import re

from polyver.capability import Refusal

__all__ = ["check_reference"]

_AT = "spec.package"
_WORD = r"[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*"
_HOST = r"[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?"
_REGISTRY = rf"(?:{_HOST}(?:\.{_HOST})*(?::[0-9]{{1,5}})?/)?"
_TAG = r"(?::[A-Za-z0-9_][A-Za-z0-9_.-]{0,127})?"
_DIGEST = r"(?:@[a-z0-9]+(?:[+._-][a-z0-9]+)*:[0-9a-f]{32,})?"
_IMAGE = re.compile(rf"{_REGISTRY}{_WORD}(?:/{_WORD})*{_TAG}{_DIGEST}")
_NAME = r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?"
_REQUIREMENT = re.compile(rf"{_NAME}\s*==\s*[A-Za-z0-9][A-Za-z0-9.!+_-]*")
_LONGEST = 4096


def check_reference(text: str, *, at: str = _AT) -> list[Refusal]:
    """Return the problems of a package's reference.

    >>> check_reference("xpkg.example.org/functions/resize:v0.2.0")
    []
    >>> print(check_reference("pypi:resize")[0])
    "resize" has no version (spec.package); pin it: pypi:NAME==VERSION
    """
    if len(text) > _LONGEST:
        return [Refusal("InvalidPackage", f"the reference has {len(text)} characters", at=at)]
    scheme, colon, rest = text.partition(":")
    if colon and scheme == "file":
        return [] if rest.strip() else [_refusal(text, at, "write file:PATH")]
    if colon and scheme == "pypi":
        if _REQUIREMENT.fullmatch(rest):
            return []
        fact = f'"{rest}" has no version'
        return [Refusal("InvalidPackage", fact, at=at, hint="pin it: pypi:NAME==VERSION")]
    if _IMAGE.fullmatch(text):
        return []
    return [_refusal(text, at, "write HOST/PATH:TAG, file:PATH or pypi:NAME==VERSION")]


def _refusal(text: str, at: str, hint: str) -> Refusal:
    return Refusal("InvalidPackage", f'"{text}" is not a package reference', at=at, hint=hint)
