"""The webhook server: answers conversion and admission reviews; has certificates and metrics."""

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
