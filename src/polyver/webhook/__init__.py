"""Conversion for API servers that ask over HTTPS: reviews, certificates, health and metrics."""

from polyver.webhook.app import App
from polyver.webhook.conversion import Converter, Converters, Key, Reviewed, review

__all__ = ["App", "Converter", "Converters", "Key", "Reviewed", "review"]
