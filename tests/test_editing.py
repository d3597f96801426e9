"""Edits are repeated after a Conflict, and after no other refusal."""

from __future__ import annotations

from typing import Any

import pytest
from tests.editing import edited

from polyver.kube.objects.status import ApiError


class Server:
    """Has one object, and refuses writes of it as it is told."""

    def __init__(self, *refusals: ApiError) -> None:
        self.count = 0
        self._refusals = [*refusals]

    def ask(self, method: str, path: str, body: Any = None) -> Any:
        assert path == "/a"
        if method == "GET":
            return {"count": self.count}
        if self._refusals:
            self.count += 10  # by somebody else
            raise self._refusals.pop(0)
        self.count = body["count"]
        return body


def add_one(obj: Any) -> None:
    obj["count"] += 1


def test_an_edit_is_made_again_on_what_somebody_else_has_written() -> None:
    conflict = ApiError(409, "Conflict", "the object has been modified")
    server = Server(conflict, conflict)
    assert edited(server.ask, "/a", add_one) == {"count": 21}
    assert server.count == 21


@pytest.mark.parametrize(
    "refusal", [ApiError(422, "Invalid", "no"), ApiError(409, "AlreadyExists", "no")]
)
def test_another_refusal_is_raised_at_once(refusal: ApiError) -> None:
    server = Server(refusal)
    with pytest.raises(ApiError) as raised:
        edited(server.ask, "/a", add_one)
    assert raised.value is refusal
    assert server.count == 10
