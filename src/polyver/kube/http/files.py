"""Files that only their owner can read, replaced atomically."""

from __future__ import annotations

import os
import secrets
from pathlib import Path

from polyver.core import PolyverError

__all__ = ["FolderFailed", "private_folder", "refusal", "write_file"]


class FolderFailed(PolyverError):
    """A folder that cannot be used."""


def refusal(error: OSError, folder: Path) -> str:
    """Return a message with the file that the system refused, or the folder, and the reason."""
    file = error.filename2 or error.filename or folder
    return f"{file} cannot be used: {error.strerror or error}"


def private_folder(folder: Path) -> None:
    """Create a folder that only its owner can read, or restrict an existing one."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    folder.chmod(0o700)


def write_file(path: Path, content: bytes) -> None:
    """Replace a file atomically; only its owner can read it."""
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    try:
        with open(temporary, "xb", opener=lambda f, flags: os.open(f, flags, 0o600)) as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
