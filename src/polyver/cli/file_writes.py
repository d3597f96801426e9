"""Write several files together: either all of them, or none."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from polyver.cli.exit_codes import UnreadableInput

__all__ = ["File", "write_all"]


@dataclass(frozen=True, slots=True)
class File:
    """A file to write, with its new and its old content; a new file has no old content."""

    path: Path
    text: str
    before: str | None = None

    @property
    def is_new(self) -> bool:
        return self.before is None


def write_all(files: Sequence[File]) -> None:
    """Write all files. If one cannot be written, restore the earlier state of the others."""
    undo: list[tuple[Path, str | None]] = []
    try:
        for file in files:
            for folder in reversed([each for each in file.path.parents if not each.exists()]):
                folder.mkdir()
                undo.append((folder, None))
            _write(file)
            undo.append((file.path, file.before))
    except OSError as error:
        _take_back(undo)
        reason = error.strerror or str(error)
        raise UnreadableInput(
            f"{file.path} cannot be written: {reason}; nothing was changed"
        ) from None


def _write(file: File) -> None:
    content = file.text.encode()
    if file.is_new:
        _write_new(file.path, content)
        return
    real = file.path.resolve()  # the target of a symbolic link is replaced, not the link
    beside = real.with_name(f".{real.name}.polyver")
    try:
        beside.write_bytes(content)
        shutil.copymode(real, beside)
        beside.replace(real)
    finally:
        beside.unlink(missing_ok=True)


def _write_new(path: Path, content: bytes) -> None:
    with path.open("xb") as new:  # fails if another process created it meanwhile
        try:
            new.write(content)
            new.flush()
        except OSError:
            path.unlink()
            raise


def _take_back(undo: list[tuple[Path, str | None]]) -> None:
    for path, before in reversed(undo):
        if before is not None:
            path.write_bytes(before.encode())
        elif path.is_dir():
            path.rmdir()
        else:
            path.unlink()
