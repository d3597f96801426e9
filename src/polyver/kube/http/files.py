"""Files that only their owner can read, replaced atomically."""

from __future__ import annotations

import os
import secrets
from pathlib import Path

from polyver.core import PolyverError

__all__ = ["FolderFailed", "private_folder", "refusal", "write_file"]


class FolderFailed(PolyverError):
    """Raised if a folder cannot be created, read or written."""


def refusal(error: OSError, folder: Path) -> str:
    """Build the error message for a failed file operation.

    The message names the file, or `folder` if the error names no file; and it states the reason.
    """
    file = error.filename2 or error.filename or folder
    return f"{file} cannot be used: {error.strerror or error}"


def private_folder(folder: Path) -> None:
    """Create a folder if it does not exist, and allow only its owner to read the folder."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    folder.chmod(0o700)


def write_file(path: Path, content: bytes) -> None:
    """Write a file that only its owner can read.

    If the file exists, it is replaced in one step: readers see either the old or the new content.
    """
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    try:
        with open(temporary, "xb", opener=lambda f, flags: os.open(f, flags, 0o600)) as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
