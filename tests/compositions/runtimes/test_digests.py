"""The digest of a folder: its files' paths and bytes, and nothing else."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from polyver.compositions.runtimes.process import PackageUnusable, folder_digest
from polyver.compositions.runtimes.process._digests import copy_folder, digest_of, is_content

NAMES = st.text("abc.-_é", min_size=1, max_size=4).filter(
    lambda name: name not in (".", "..") and is_content(name)
)
PATHS = st.lists(NAMES, min_size=1, max_size=3).map("/".join)


def _are_files(files: Mapping[str, bytes]) -> bool:
    """Whether no path is also a folder of another."""
    return not any(
        other.startswith(f"{path}/") for path in files for other in files if other != path
    )


FILES = st.dictionaries(PATHS, st.binary(max_size=8), min_size=1, max_size=5).filter(_are_files)


def written(folder: str | Path, files: Mapping[str, bytes]) -> Path:
    for path, content in files.items():
        file = Path(folder) / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)
    return Path(folder)


def digest(files: Mapping[str, bytes]) -> str:
    with tempfile.TemporaryDirectory() as folder:
        return folder_digest(written(folder, files))


@settings(max_examples=30)
@given(FILES, st.randoms())
def test_the_order_of_files_does_not_matter(files: dict[str, bytes], random: object) -> None:
    again = list(files.items())
    random.shuffle(again)  # type: ignore[attr-defined]
    assert digest(files) == digest(dict(again))


@settings(max_examples=30)
@given(FILES, FILES)
def test_any_other_path_or_byte_makes_another_digest(
    one: dict[str, bytes], other: dict[str, bytes]
) -> None:
    assert (digest(one) == digest(other)) == (one == other)


@given(st.dictionaries(st.text(max_size=4), st.binary(min_size=32, max_size=32), max_size=4))
def test_what_is_in_a_path_is_never_taken_for_something_else(files: dict[str, bytes]) -> None:
    for path in files:
        moved = {f"{each}x" if each == path else each: files[each] for each in files}
        assume(len(moved) == len(files))
        assert digest_of(moved) != digest_of(files)


@settings(max_examples=30)
@given(FILES)
def test_a_copy_has_the_digest_that_is_told_of_it(files: dict[str, bytes]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        source = written(Path(folder) / "source", files)
        told = copy_folder(source, Path(folder) / "copy")
        assert told == folder_digest(source) == folder_digest(Path(folder) / "copy")


@pytest.mark.parametrize(
    "left_behind",
    [
        "__pycache__/main.cpython-311.pyc",
        "function/__pycache__/x",
        ".git/HEAD",
        "main.pyc",
        "fn.egg-info/PKG-INFO",
        ".venv/bin/python",
        "env/pyvenv.cfg",
        "function/.mypy_cache/x",
        ".DS_Store",
    ],
)
def test_what_tools_leave_behind_is_no_content(tmp_path: Path, left_behind: str) -> None:
    folder = written(tmp_path / "fn", {"function/main.py": b"x"})
    before = folder_digest(folder)
    written(folder, {left_behind: b"left"})
    assert folder_digest(folder) == before
    copy_folder(folder, tmp_path / "copy")
    assert not (tmp_path / "copy" / left_behind).exists()


def test_a_file_that_is_not_left_out_counts_wherever_it_is(tmp_path: Path) -> None:
    folder = written(tmp_path, {"main.py": b"x"})
    before = folder_digest(folder)
    written(folder, {"build/lib.py": b""})
    assert folder_digest(folder) != before


def test_a_link_is_the_file_that_it_leads_to(tmp_path: Path) -> None:
    linked = written(tmp_path / "linked", {"a.py": b"x"})
    (linked / "b.py").symlink_to("a.py")
    plain = written(tmp_path / "plain", {"a.py": b"x", "b.py": b"x"})
    assert folder_digest(linked) == folder_digest(plain)


@pytest.mark.parametrize(
    ("target", "complaint"),
    [
        ("/etc/hostname", "points outside the folder"),
        ("../outside", "points outside the folder"),
        ("inner", "is a link to a folder"),
        ("nowhere", "cannot be read"),
        ("link", "cannot be read"),
    ],
)
def test_a_link_to_anything_else_is_refused(tmp_path: Path, target: str, complaint: str) -> None:
    folder = written(tmp_path / "fn", {"inner/main.py": b"x"})
    (tmp_path / "outside").write_text("a secret")
    (folder / "link").symlink_to(target)
    with pytest.raises(PackageUnusable, match=complaint):
        folder_digest(folder)


def test_pipes_are_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(PackageUnusable, match="not a regular file"):
        folder_digest(tmp_path)


def test_an_empty_folder_is_no_package(tmp_path: Path) -> None:
    (tmp_path / "inner").mkdir()
    with pytest.raises(PackageUnusable, match="the folder is empty:"):
        folder_digest(tmp_path)


def test_folders_without_end_are_refused(tmp_path: Path) -> None:
    folder = tmp_path
    for _ in range(120):
        folder /= "x"
    written(folder, {"main.py": b"x"})
    with pytest.raises(PackageUnusable, match="deeper than"):
        folder_digest(tmp_path)
