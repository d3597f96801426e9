"""File locks. When a process ends, even by a crash, the operating system releases its locks."""

from __future__ import annotations

import fcntl
import os
from contextlib import suppress
from pathlib import Path

__all__ = ["FileLock"]


class FileLock:
    """A lock on a file that this process has taken, exclusive or shared."""

    def __init__(self, path: Path, descriptor: int) -> None:
        self._path = path
        self._descriptor = descriptor

    @classmethod
    def take(cls, path: Path, *, shared: bool) -> FileLock | None:
        """Take a lock and return it. Return None if another lock on the file conflicts with it."""
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
            os.close(descriptor)  # the previous holder has removed the file

    def release(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def remove(self) -> None:
        """Remove the locked file, and release the lock. The lock must be exclusive."""
        with suppress(OSError):
            self._path.unlink(missing_ok=True)
        self.release()


def _is(path: Path, descriptor: int) -> bool:
    try:
        there, held = path.stat(), os.fstat(descriptor)
    except FileNotFoundError:
        return False
    return (there.st_dev, there.st_ino) == (held.st_dev, held.st_ino)
