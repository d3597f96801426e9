"""Error messages for the HTTP responses of webhooks, in the words of kube-apiserver's client."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from polyver.kube.objects.typed_bodies import Undecodable, decode_plain
from polyver.languages.values.strings import quoted

__all__ = ["WebhookResponse", "problem_of", "retry_after"]

_MOST_SHOWN = 2048
_TEXTS = {
    400: "the server rejected our request for an unknown reason",
    401: "the server has asked for the client to provide credentials",
    404: "the server could not find the requested resource",
    405: "the server does not allow this method on the requested resource",
    409: "the server reported a conflict",
    422: "the server rejected our request due to an error in our request",
    429: "the server has received too many requests and has asked us to try again later",
    503: "the server is currently unable to handle the request",
    504: (
        "the server was unable to return a response in the time allotted, "
        "but may still be processing the request"
    ),
}
_UNACCEPTABLE = "the server was unable to respond with a content type that the client supports"


@dataclass(frozen=True, slots=True)
class WebhookResponse:
    """An HTTP response of a webhook. The names of the headers are in lower case."""

    status: int
    body: bytes = b""
    headers: dict[str, str] = field(default_factory=dict)


def problem_of(answer: WebhookResponse) -> str:
    """Return the error message for a response with an error status or an empty body; otherwise "".

    >>> problem_of(WebhookResponse(503))
    'the server is currently unable to handle the request'
    """
    if 200 <= answer.status <= 206:
        media = answer.headers.get("content-type") or "application/json"
        text = f"0-length response with status code: {answer.status} and content type: {media}"
        return "" if answer.body else text
    message = _message_of_status(answer.body)
    return _message_of_code(answer) if message is None else message


def retry_after(answer: WebhookResponse) -> int | None:
    """Return the seconds after which the webhook wants to be called again; None if it does not."""
    if answer.status != 429 and answer.status < 500:
        return None
    try:
        return max(0, int(answer.headers.get("retry-after", "")))
    except ValueError:
        return None


def _message_of_status(body: bytes) -> str | None:
    """Return the message of the Status object in a body; None if the body has no Status."""
    if body.lstrip()[:1] != b"{":
        return None
    try:
        found: dict[str, Any] = decode_plain(body)[0]
    except Undecodable:
        return None
    if found.get("kind") != "Status" or found.get("apiVersion") not in (None, "", "v1"):
        return None
    message = found.get("message") or ""
    return message if found.get("status") == "Failure" and isinstance(message, str) else None


def _message_of_code(answer: WebhookResponse) -> str:
    code, text = answer.status, _text(answer)
    if code in _TEXTS:
        return _TEXTS[code]
    if code in (403, 415):
        return text
    if code == 406:
        return _UNACCEPTABLE if text in ("", "unknown") else text
    if code >= 500:
        return f"an error on the server ({quoted(text)}) has prevented the request from succeeding"
    return f"the server responded with the status code {code} but did not return more information"


def _text(answer: WebhookResponse) -> str:
    media = answer.headers.get("content-type", "")
    if media and not media.lower().startswith("text/"):
        return "unknown"
    return answer.body[:_MOST_SHOWN].decode(errors="replace").strip()
