"""Files that are kept for their owner's eyes alone, and replaced as a whole."""

from __future__ import annotations

import os
import secrets
from pathlib import Path

from polyver.core import PolyverError

__all__ = ["FolderFailed", "private_folder", "refusal", "write_file"]


class FolderFailed(PolyverError):
    """A folder in which nothing can be kept."""


def refusal(error: OSError, folder: Path) -> str:
    """Say which file the system refused, and why; the folder if the error names no file."""
    file = error.filename2 or error.filename or folder
    return f"{file} cannot be used: {error.strerror or error}"


def private_folder(folder: Path) -> None:
    """Make a folder that only its owner reads, or make that of one that is there."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    folder.chmod(0o700)


def write_file(path: Path, content: bytes) -> None:
    """Replace a file as a whole, for its owner's eyes alone."""
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    try:
        with open(temporary, "xb", opener=lambda f, flags: os.open(f, flags, 0o600)) as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
