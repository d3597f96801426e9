"""Changing an object that others write at the same time."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from tests.deadlines import HANG

from polyver.kube.objects.status import ApiError


def edited(ask: Callable[..., Any], path: str, change: Callable[[Any], object]) -> Any:
    """Read an object, change it in place, write it back, and return what the server answers.

    If a controller writes the object between the two requests, the server refuses the second one
    as a Conflict. Then the object is read and changed again. Every other refusal is raised.
    """
    end = time.monotonic() + HANG
    while True:
        found = ask("GET", path)
        change(found)
        try:
            return ask("PUT", path, found)
        except ApiError as error:
            if error.reason != "Conflict" or time.monotonic() > end:
                raise
