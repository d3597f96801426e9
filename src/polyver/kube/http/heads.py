"""Heads of requests that were read before: who asks again and again sends the same bytes.

Nothing about a head can be different if all of its bytes are the same; how long the body is may be.
"""

from __future__ import annotations

from collections.abc import Sequence

from polyver.kube.http.http import Quick, Straight

__all__ = ["HEAD_ENDS", "Filling", "Key", "KnownHead", "KnownHeads", "taken_apart"]

Key = tuple[bytes, bytes]
"""What stands before and behind the length of the body."""

HEAD_ENDS = b"\r\n\r\n"
_LENGTH = b"\r\nContent-Length: "
_MOST_DIGITS = 8
_MOST_BYTES = 4096
_MOST_KNOWN = 256


def taken_apart(head: bytes) -> tuple[Key, int] | None:
    """A head without the length of its body, and that; None if it does not say so as most do.

    >>> taken_apart(b"POST / HTTP/1.1\\r\\nContent-Length: 12\\r\\nHost: a")
    ((b'POST / HTTP/1.1', b'Host: a'), 12)
    """
    before, _, rest = head.partition(_LENGTH)
    digits, _, after = rest.partition(b"\r\n")
    if not digits.isdigit() or len(digits) > _MOST_DIGITS:
        return None
    return (before, after), int(digits)


class Filling:
    """A body of which some has come, behind a head that is known."""

    __slots__ = ("body", "head", "quick", "rest")

    def __init__(self, quick: Quick, head: bytes, come: bytearray, size: int) -> None:
        self.quick = quick
        self.head = head
        self.body = bytearray(size)
        self.body[: len(come)] = come
        self.rest = memoryview(self.body)[len(come) :]
        """Where what comes next belongs."""

    @property
    def come(self) -> bytearray:
        """All of the body that has come."""
        return self.body[: len(self.body) - len(self.rest)]


class KnownHead:
    """Who answers the bodies behind a head, and how the head is told from others."""

    __slots__ = ("lines", "quick", "rest", "start", "straight")

    def __init__(self, key: Key, quick: Quick) -> None:
        before, after = key
        self.quick = quick
        found: object = quick
        self.straight = found.straight if isinstance(found, Straight) else None
        self.lines = found.lines if isinstance(found, Straight) else b""
        self.start = before + _LENGTH
        """All before the length of the body."""
        self.rest = (b"\r\n" + after if after else b"") + HEAD_ENDS
        """All behind it."""


class KnownHeads(dict[Key, KnownHead]):
    """The heads whose bodies may be answered at once; as many as fit."""

    def learn(
        self, came: bytes, target: bytes, headers: Sequence[tuple[bytes, bytes]], quick: Quick
    ) -> None:
        """Know the bytes of a head from now on, if they say what was read and nothing else."""
        found = taken_apart(came)
        if found is None or len(came) > _MOST_BYTES or not _is_plain(came, target, headers):
            return
        if len(self) >= _MOST_KNOWN:
            self.clear()  # clients have few heads; somebody makes them up
        self[found[0]] = KnownHead(found[0], quick)


def _is_plain(came: bytes, target: bytes, headers: Sequence[tuple[bytes, bytes]]) -> bool:
    """Whether a head is written as everybody would, and its body ends where the one length says."""
    names = [name for name, _ in headers]
    lines = [b"%b HTTP/1.1" % target, *(b"%b: %b" % each for each in headers)]
    as_read = came.lower() == b"\r\n".join(lines).lower()
    return as_read and names.count(b"content-length") == 1 and b"transfer-encoding" not in names
