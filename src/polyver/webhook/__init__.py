"""The webhook server for conversion and admission: reviews, certificates, metrics."""

from polyver.webhook.admission import admit
from polyver.webhook.app import ReviewHandlers, WebhookApp
from polyver.webhook.conversion import Converters, ReviewConverter, Reviews, review
from polyver.webhook.reviews import Key, Reviewed

__all__ = [
    "Converters",
    "Key",
    "ReviewConverter",
    "ReviewHandlers",
    "Reviewed",
    "Reviews",
    "WebhookApp",
    "admit",
    "review",
]
