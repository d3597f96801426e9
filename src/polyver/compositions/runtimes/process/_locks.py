"""Locks on files, which end with the process that holds them, however it ends."""

from __future__ import annotations

import fcntl
import os
from contextlib import suppress
from pathlib import Path

__all__ = ["FileLock"]


class FileLock:
    """One lock that is held: by one alone, or by many together."""

    def __init__(self, path: Path, descriptor: int) -> None:
        self._path = path
        self._descriptor = descriptor

    @classmethod
    def take(cls, path: Path, *, shared: bool) -> FileLock | None:
        """A lock, if it can be had now."""
        while True:
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            try:
                kind = fcntl.LOCK_SH if shared else fcntl.LOCK_EX
                fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
            except BlockingIOError:
                os.close(descriptor)
                return None
            except BaseException:
                os.close(descriptor)
                raise
            if _is(path, descriptor):
                return cls(path, descriptor)
            os.close(descriptor)  # whoever held it has removed the file

    def release(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def remove(self) -> None:
        """Let go of it, and of the file that it is on; only for who holds it alone."""
        with suppress(OSError):
            self._path.unlink(missing_ok=True)
        self.release()


def _is(path: Path, descriptor: int) -> bool:
    try:
        there, held = path.stat(), os.fstat(descriptor)
    except FileNotFoundError:
        return False
    return (there.st_dev, there.st_ino) == (held.st_dev, held.st_ino)
