"""What can be wrong between polyver and a cluster, each with the place to look at."""

from __future__ import annotations

from polyver.core import PolyverError
from polyver.kube.objects.status import ApiError

__all__ = ["NoAccess", "Unauthorized", "Unreachable", "Untrusted"]


class NoAccess(PolyverError):
    """Nothing says how to reach a cluster, or what says it cannot be used."""


class Unreachable(PolyverError):
    """A server that does not answer, or not to the end."""


class Untrusted(Unreachable):
    """A server whose certificate is not one of those that may be trusted."""


class Unauthorized(ApiError):
    """A server that does not know who asks: 401, with what was shown to it."""

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
