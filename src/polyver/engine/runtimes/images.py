"""References to images, which nobody here looks into."""

from __future__ import annotations

__all__ = ["image_digest"]


def image_digest(reference: str) -> str:
    """An image's digest if its reference has one, else the reference.

    >>> image_digest("registry.example.com/fn:v1@sha256:" + "0" * 64)[:10], image_digest("fn:v1")
    ('sha256:000', 'fn:v1')
    """
    _, found, hexadecimal = reference.partition("@sha256:")
    return f"sha256:{hexadecimal}" if found else reference
