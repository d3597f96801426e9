"""Masking of the values of Secrets in text that other users may read.

A message may come from polyver, from a blueprint or composition function, from an API server or
from an HTTP client, and each of these may quote a value in its own form. So `Masks` masks a value
in the usual forms: unchanged, in base64, in a URL, in JSON, and as a Python string literal. Some
programs quote single lines of a value, or single strings of a value that is JSON. So `Masks` also
masks these lines and strings. Mask a text before you cut it: if a text is cut first, a part of a
value may remain, and this part is not masked.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any, Final
from urllib.parse import quote, quote_plus

import msgspec

from polyver.kube.objects.codec import encode_json

__all__ = ["MASK", "Masks", "is_masked"]

MASK: Final = "***"
_SHORTEST: Final = 4
"""The minimum length of a masked value.

If shorter values were masked, little of a text would remain.
"""
_SHORTEST_LINE: Final = 8
_MOST_PARTS: Final = 500
"""The maximum number of lines and strings of a value that are masked one by one.

If a value has more, only the whole value is masked.
"""
_LARGEST_JSON: Final = 64 * 1024


class Masks:
    """A set of values that must not appear in texts for other users."""

    def __init__(self) -> None:
        self._values: dict[str, None] = {}
        self._forms: dict[str, None] = {}
        self._ordered: list[str] | None = None

    def __bool__(self) -> bool:
        return bool(self._forms)

    @property
    def values(self) -> list[str]:
        """The values that were added, so that another process can build equal masks."""
        return list(self._values)

    def add(self, value: str) -> None:
        """Add a value, which `mask` replaces from now on."""
        if len(value) < _SHORTEST or value in self._values:
            return
        self._values[value] = None
        for part in (value, *_parts(value)):
            self._forms |= dict.fromkeys(_forms(part))
        self._ordered = None

    def add_all(self, value: object) -> None:
        """Add every string in plain data."""
        for text in _strings(value):
            self.add(text)

    def add_secret(self, secret: Mapping[str, Any]) -> None:
        """Add the values of a Secret. A binary value is added in its base64 form."""
        for encoded in (secret.get("data") or {}).values():
            self.add_encoded(encoded)
        for text in (secret.get("stringData") or {}).values():
            self.add(str(text))
        applied = _last_applied(secret)
        if applied is not None:
            self.add_secret(applied)

    def add_encoded(self, encoded: object) -> None:
        """Add a value that is given in base64."""
        if not isinstance(encoded, str):
            return
        try:
            self.add_bytes(base64.b64decode(encoded))
        except (binascii.Error, ValueError):
            self.add(encoded)

    def add_bytes(self, content: bytes) -> None:
        """Add bytes: as a string if they are valid UTF-8, otherwise in base64."""
        try:
            text = content.decode()
        except UnicodeDecodeError:
            self.add(base64.b64encode(content).decode())
            return
        self.add(text)
        # Most values in files end with a line break, which messages leave out.
        self.add(text.strip())

    def mask(self, text: str) -> str:
        """Replace every added value in a text by `***`.

        >>> masks = Masks()
        >>> masks.add("hunter2")
        >>> masks.mask("no login with hunter2 (aHVudGVyMg==)")
        'no login with *** (***)'
        """
        if self._ordered is None:
            # Longer forms come first, because a value may be a part of another value.
            self._ordered = sorted(self._forms, key=len, reverse=True)
        # This loop is ten times as fast as one regular expression for all forms.
        for form in self._ordered:
            if form in text:
                text = text.replace(form, MASK)
        return text

    def mask_all(self, value: Any) -> Any:
        """Mask all strings in plain data; keys of mappings are not changed."""
        match value:
            case str():
                return self.mask(value)
            case Mapping():
                return {key: self.mask_all(each) for key, each in value.items()}
            case list() | tuple():
                return [self.mask_all(each) for each in value]
            case _:
                return value

    def is_in(self, value: object) -> bool:
        """Report whether a string or a key in plain data contains an added value."""
        return any(self.mask(text) != text for text in _strings(value, keys=True))


def is_masked(value: object) -> bool:
    """Report whether a string in plain data contains `***`, which stands for a masked value."""
    return any(MASK in text for text in _strings(value))


def _forms(value: str) -> Iterator[str]:
    """Yield a value in each form in which a message may quote it, such as in base64 or in a URL."""
    content = value.encode(errors="surrogatepass")
    encoded = base64.b64encode(content).decode()
    yield value
    yield from (encoded, encoded.rstrip("="))
    yield base64.urlsafe_b64encode(content).decode().rstrip("=")
    yield from (quote(content, safe=""), quote(content), quote_plus(content))
    yield encode_json(value).decode(errors="replace")[1:-1]
    yield repr(value)[1:-1]


def _parts(value: str) -> list[str]:
    """Return the lines of a value, and its strings if it is JSON: a message may quote them."""
    lines = [line.strip() for line in value.splitlines()]
    found = [line for line in lines if len(line) >= _SHORTEST_LINE] if len(lines) > 1 else []
    if value.lstrip()[:1] in ("{", "[") and len(value) <= _LARGEST_JSON:
        with suppress(msgspec.MsgspecError, RecursionError):
            found += list(_strings(msgspec.json.decode(value)))
    kept = [each for each in dict.fromkeys(found) if len(each) >= _SHORTEST and each != value]
    return kept if len(kept) <= _MOST_PARTS else []


def _strings(value: object, *, keys: bool = False) -> Iterator[str]:
    left = [value]
    while left:
        match left.pop():
            case str() as text:
                yield text
            case Mapping() as mapping:
                left += mapping.values()
                left += mapping if keys else ()
            case list() | tuple() as items:
                left += items
            case _:
                pass


def _last_applied(secret: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Return the copy of a Secret that `kubectl apply` writes to an annotation, or None."""
    annotations = (secret.get("metadata") or {}).get("annotations") or {}
    try:
        found = msgspec.json.decode(annotations["kubectl.kubernetes.io/last-applied-configuration"])
    except (KeyError, TypeError, msgspec.MsgspecError):
        return None
    return found if isinstance(found, dict) else None
