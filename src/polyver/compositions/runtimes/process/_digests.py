"""Computes the digest of a folder's content, and copies the content.

If two folders have the same files, they have the same digest. The location of the folders makes no
difference, and neither does the order in which the file system lists the files. Files that tools
generate, such as caches, are not part of the content.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import BinaryIO

from polyver.compositions.runtimes.process._packages import PackageUnusable

__all__ = ["copy_folder", "digest_of", "file_digest", "folder_digest", "is_content"]

_LEFT_OUT = frozenset(
    {
        *(".git", ".hg", ".svn", ".DS_Store"),
        *("__pycache__", ".mypy_cache", ".pytest_cache", ".ruff_cache", ".hypothesis"),
        *(".tox", ".nox", ".venv", "node_modules"),
    }
)
_ENDS_LEFT_OUT = (".pyc", ".pyo", ".egg-info")
_VIRTUAL = "pyvenv.cfg"
_MOST_FILES = 20_000
_DEEPEST = 100
_MOST_BYTES = 512 << 20


def is_content(name: str) -> bool:
    """Report whether files and folders with this name are part of the content of a package.

    >>> is_content("main.py"), is_content("__pycache__"), is_content("x.egg-info")
    (True, False, False)
    """
    return name not in _LEFT_OUT and not name.endswith(_ENDS_LEFT_OUT)


def digest_of(files: Mapping[str, bytes]) -> str:
    """Compute the digest of a folder from the path and the SHA-256 digest of each file.

    >>> digest_of({"a": b"1" * 32, "b": b"2" * 32}) == digest_of({"b": b"2" * 32, "a": b"1" * 32})
    True
    """
    whole = hashlib.sha256(b"polyver folder 1\n")
    for path, content in sorted((os.fsencode(path), content) for path, content in files.items()):
        # The length before the path states where the path ends and the content begins.
        whole.update(len(path).to_bytes(8, "big") + path + content)
    return f"sha256:{whole.hexdigest()}"


def folder_digest(folder: Path) -> str:
    """Compute the digest of the current content of a folder."""
    return _digest_and_copy(folder, None)


def copy_folder(folder: Path, to: Path) -> str:
    """Copy the content of a folder. Return the digest of the copy.

    If the folder changes during the copying, the digest is still that of the copied files.
    """
    return _digest_and_copy(folder, to)


def file_digest(file: Path) -> str:
    """Compute the digest of a file."""
    try:
        with file.open("rb") as opened:
            return f"sha256:{hashlib.file_digest(opened, 'sha256').hexdigest()}"
    except OSError as error:
        raise PackageUnusable(f"{file} cannot be read: {error.strerror}") from None


def _digest_and_copy(folder: Path, to: Path | None) -> str:
    found: dict[str, bytes] = {}
    left = _MOST_BYTES
    try:
        for path, file in _files(folder, folder, ""):
            content, size = _read(file, to / path if to else None, left)
            found[path] = content
            left -= size
            if len(found) > _MOST_FILES or left < 0:
                raise _too_much(folder)
    except OSError as error:
        what, did = error.filename or folder, "copied" if to else "read"
        raise PackageUnusable(f"{what} cannot be {did}: {error.strerror or error}") from None
    if not found:
        raise PackageUnusable(f"the folder is empty: {folder}")
    return digest_of(found)


def _too_much(folder: Path) -> PackageUnusable:
    most = f"{_MOST_FILES} files or {_MOST_BYTES >> 20} MiB"
    hint = "use a folder that contains only the function"
    return PackageUnusable(f"the folder {folder} contains more than {most}", hint=hint)


def _files(root: Path, folder: Path, inside: str) -> Iterator[tuple[str, Path]]:
    if inside.count("/") > _DEEPEST:
        raise PackageUnusable(f"folders in {root} are nested deeper than {_DEEPEST} levels")
    with os.scandir(folder) as entries:
        found = sorted(entries, key=lambda each: each.name)
    if inside and any(each.name == _VIRTUAL for each in found):
        return
    for entry in found:
        if not is_content(entry.name):
            continue
        path, name = Path(entry.path), f"{inside}{entry.name}"
        if entry.is_dir(follow_symlinks=False):
            yield from _files(root, path, f"{name}/")
        else:
            yield name, _followed(root, path, name)


def _followed(root: Path, path: Path, name: str) -> Path:
    """Return the file to read at `path`, which may be a symbolic link.

    Raise PackageUnusable if the link does not lead to a file inside of the folder `root`.
    """
    if path.is_symlink():
        target = Path(os.path.realpath(path))  # raises no error for a loop of links
        if not target.is_relative_to(root.resolve()):
            raise PackageUnusable(f"the link {name} points outside the folder {root}")
        if target.is_dir():
            raise PackageUnusable(f"{name} in the folder {root} is a link to a folder")
        return target
    return path


def _read(file: Path, to: Path | None, most: int) -> tuple[bytes, int]:
    """Read a file and, if `to` is not None, copy its content to the file `to`.

    Return the SHA-256 digest and the size of the content. Stop reading after `most` bytes.
    """
    whole, size = hashlib.sha256(), 0
    # Without O_NONBLOCK, opening a pipe would block.
    with os.fdopen(os.open(file, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as opened:
        mode = os.fstat(opened.fileno()).st_mode
        if not stat.S_ISREG(mode):
            raise PackageUnusable(f"{file} is not a regular file")
        copy = _created(to, mode) if to else None
        try:
            while size <= most and (piece := opened.read(1 << 20)):
                whole.update(piece)
                size += len(piece)
                if copy:
                    copy.write(piece)
        finally:
            if copy:
                copy.close()
    return whole.digest(), size


def _created(file: Path, mode: int) -> BinaryIO:
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    runs = 0o700 if mode & 0o100 else 0o600
    return open(file, "xb", opener=lambda path, flags: os.open(path, flags, runs))
