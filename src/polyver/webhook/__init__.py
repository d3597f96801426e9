"""Conversion and admission for API servers that ask over HTTPS: reviews, certificates, metrics."""

from polyver.webhook.admission import admit
from polyver.webhook.app import App, Served
from polyver.webhook.conversion import Converter, Converters, Reviews, review
from polyver.webhook.reviews import Key, Reviewed

__all__ = [
    "App",
    "Converter",
    "Converters",
    "Key",
    "Reviewed",
    "Reviews",
    "Served",
    "admit",
    "review",
]
