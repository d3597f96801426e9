"""Heads of requests that were read before: who asks again and again sends the same bytes.

Nothing about a head can be different if all of its bytes are the same; how long the body is may be.
"""

from __future__ import annotations

from typing import NamedTuple

from polyver.serving.http import AtOnce, Head, Quick

__all__ = ["Key", "KnownHead", "KnownHeads", "taken_apart"]

Key = tuple[bytes, bytes]
"""What stands before and behind the length of the body."""

_LENGTH = b"\r\nContent-Length: "
_MOST_DIGITS = 8
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


class KnownHead(NamedTuple):
    """A head, and who may answer its bodies at once."""

    head: Head
    target: tuple[str, bytes, bytes]
    quick: Quick

    def headers(self, size: int) -> list[tuple[bytes, bytes]]:
        """Those of a request with a body of this size."""
        length = (b"content-length", b"%d" % size)
        return [length if each[0] == length[0] else each for each in self.head.headers]


class KnownHeads(dict[Key, KnownHead]):
    """The heads whose bodies may be answered at once; as many as fit."""

    def __init__(self, at_once: AtOnce | None) -> None:
        self._at_once = at_once

    def learn(self, key: Key, head: Head, target: tuple[str, bytes, bytes]) -> None:
        """Know a head from now on, if that is of use and nothing about it is special."""
        if head.method == "HEAD" or not _is_plain(key, [name for name, _ in head.headers]):
            return
        quick = self._at_once(head) if self._at_once is not None else None
        if quick is None:
            return
        if len(self) >= _MOST_KNOWN:
            self.clear()  # clients have few heads; somebody makes them up
        self[key] = KnownHead(head, target, quick)


def _is_plain(key: Key, names: list[bytes]) -> bool:
    """Whether a head ends where it seems to, and its body where the one length says."""
    lines = b"\r\n".join(each for each in key if each).split(b"\r\n")
    # The line of the request is there, and the one with the length is not.
    all_read = len(lines) == len(names) and len(b"".join(lines).splitlines()) == 1
    return all_read and names.count(b"content-length") == 1 and b"transfer-encoding" not in names
