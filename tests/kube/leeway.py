"""Where an answer of the embedded server is as good as the real one's without being equal to it.

Each rule is narrow: it says of two values what has to hold between them, and both are still read.
"""

from __future__ import annotations

import re
from itertools import groupby
from typing import Any

from tests.kube.explain import NOTHING

_PROTOBUF_ANSWER = re.compile(
    r"\.responses\.\d{3}\.content\.application/vnd\.kubernetes\.protobuf(;stream=watch)?$"
)


def leeway(field: str, theirs: Any, ours: Any) -> bool:
    """Whether a field is good enough."""
    if field == "calls" and ours is not NOTHING:
        return without_repeats(theirs, ours)
    # Decision 12: answers have no protobuf form.
    return ours is NOTHING and _PROTOBUF_ANSWER.search(field) is not None


def without_repeats(theirs: list[str], ours: list[str]) -> bool:
    """Whether a webhook was asked the same in the same order, if less often in a row.

    The real server asks several times in a row for the same conversion, to find out who owns what.
    Every conversion that it needs has to be there, none that it does not, and none more often.
    """
    runs = [[(call, len(list(run))) for call, run in groupby(calls)] for calls in (theirs, ours)]
    one, other = runs
    return [call for call, _ in one] == [call for call, _ in other] and all(
        count <= most for (_, most), (_, count) in zip(one, other, strict=True)
    )
