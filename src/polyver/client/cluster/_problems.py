"""Errors between polyver and a cluster, each with the place to check."""

from __future__ import annotations

from polyver.core import PolyverError
from polyver.kube.objects.status import ApiError

__all__ = ["NoAccess", "Unauthorized", "Unreachable", "Untrusted"]


class NoAccess(PolyverError):
    """No cluster is configured, or its configuration cannot be used."""


class Unreachable(PolyverError):
    """A server that does not respond, or not completely."""


class Untrusted(Unreachable):
    """A server whose certificate is not trusted."""


class Unauthorized(ApiError):
    """A 401 response, with the place of the credentials."""

    def __init__(self, refused: ApiError, *, place: str, hint: str) -> None:
        super().__init__(
            refused.code,
            refused.reason,
            refused.message,
            details=refused.details,
            headers=refused.headers,
            metadata=refused.metadata,
        )
        self._fact = f"the server does not accept the credentials: {refused.message}"
        self._at = place
        self._hint = hint
