"""Read the files, the folders or the standard input that the option `-f` names."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from polyver.cli.exit_codes import UnreadableInput

if TYPE_CHECKING:
    from polyver.kube.objects import Document

_LARGEST = 16 * 1024 * 1024
SUFFIXES = (".yaml", ".yml", ".json")


def read_manifests(names: Sequence[str]) -> list[Document]:
    """Read all documents of the named files and folders, in the order of `names`."""
    from polyver.kube.objects import load_manifests

    return [
        document
        for name in names
        for source, text in _texts(name)
        for document in load_manifests(text, source)
    ]


def fingerprint(names: Sequence[str]) -> str:
    """Return a digest of files; it changes when a file is changed, added or removed."""
    from polyver.kube.objects import digest

    try:
        return digest([pair for name in names for pair in _texts(name)])
    except UnreadableInput as error:
        return str(error)


def data_folder() -> Path:
    """Return the default folder for polyver's data."""
    base = os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share"
    return Path(base) / "polyver"


def read_standard_input() -> str:
    """Read standard input to its end; return it as a string."""
    if sys.stdin is None:
        raise UnreadableInput("standard input is closed")
    return _decoded(sys.stdin.buffer.read(_LARGEST + 1), "standard input")


def _texts(name: str) -> Iterator[tuple[str, str]]:
    if name == "-":
        yield "standard input", read_standard_input()
        return
    if not name:
        raise UnreadableInput("the name of a file is empty")
    path = Path(name)
    try:
        if path.is_dir():
            yield from _folder(path)
            return
        with path.open("rb") as file:
            content = file.read(_LARGEST + 1)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise UnreadableInput(f"{name} cannot be read: {reason}") from None
    yield name, _decoded(content, name)


def _folder(path: Path) -> Iterator[tuple[str, str]]:
    names = [str(file) for file in sorted(path.iterdir()) if file.suffix in SUFFIXES]
    if not names:
        raise UnreadableInput(f"{path} contains no {', '.join(SUFFIXES)} file")
    for name in names:
        yield from _texts(name)


def _decoded(content: bytes, source: str) -> str:
    if len(content) > _LARGEST:
        raise UnreadableInput(f"{source} is larger than {_LARGEST // 1024 // 1024} MiB")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise UnreadableInput(f"{source}:{line} is not UTF-8 text") from None
