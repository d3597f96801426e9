"""What package references stand for, and who may run what."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from polyver.compositions.runtimes.process import (
    Folder,
    NotAllowed,
    Packages,
    PackageUnusable,
    Requirement,
    Wheel,
    read_packages,
)
from polyver.core import PolyverError


def read(tmp_path: Path, text: str) -> object:
    file = tmp_path / "map.yaml"
    file.write_text(text)
    return read_packages(file)


def test_a_map_names_folders_wheels_and_requirements(tmp_path: Path) -> None:
    (tmp_path / "fn").mkdir()
    (tmp_path / "fn-1.0-py3-none-any.whl").touch()
    text = """
    example.com/fn:v1: fn
    example.com/fn:v2: ./fn
    example.com/fn:v3: fn-1.0-py3-none-any.whl
    example.com/fn:v4: fn == 1.2.3
    """
    folder = Folder((tmp_path / "fn").resolve())
    assert read(tmp_path, text) == {
        "example.com/fn:v1": folder,
        "example.com/fn:v2": folder,
        "example.com/fn:v3": Wheel((tmp_path / "fn-1.0-py3-none-any.whl").resolve()),
        "example.com/fn:v4": Requirement("fn", "1.2.3"),
    }


def test_an_empty_map_names_nothing(tmp_path: Path) -> None:
    assert read(tmp_path, "# later\n") == {}


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("a: missing", "there is no folder .*missing.*map.yaml:1, a"),
        ("\na: missing.whl", "there is no wheel .*map.yaml:2, a"),
        ("a: fn>=1", r"not a requirement pinned with == \(.*map.yaml:1, a\); write name==1.2.3"),
        ("a: fn==1.*", "not a requirement pinned"),
        ("a: --index-url==1", "not a requirement pinned"),
        ("a: 5", "map.yaml:1, a.*put it in quotes"),
        ("a: ''", "it has no path"),
        ("a: x\na: y", 'duplicate key "a"'),
        ("- a", "map.yaml:1"),
        ("a: .\n---\nb: .", "there is a second document"),
        ("a: [", "map.yaml:"),
    ],
)
def test_what_is_wrong_with_a_map_is_told_with_its_place(
    tmp_path: Path, text: str, complaint: str
) -> None:
    with pytest.raises(PolyverError, match=complaint):
        read(tmp_path, text)


def test_a_map_that_cannot_be_read_is_told(tmp_path: Path) -> None:
    with pytest.raises(PackageUnusable, match="cannot be read: No such file"):
        read_packages(tmp_path / "map.yaml")
    (tmp_path / "map.yaml").write_bytes(b"a: .\nb: \xff")
    with pytest.raises(PackageUnusable, match=r"not UTF-8.*map\.yaml:2"):
        read_packages(tmp_path / "map.yaml")


def test_the_map_comes_before_what_a_reference_says_itself(tmp_path: Path) -> None:
    inside = Folder(tmp_path)
    packages = Packages({"pypi:fn==1.0": inside, "file:/elsewhere": inside})
    assert packages.find("pypi:fn==1.0") == inside
    assert packages.find("file:/elsewhere") == inside


@given(st.text())
def test_no_reference_is_run_that_nobody_has_named(reference: str) -> None:
    for text in (reference, f"file:{reference}", f"pypi:{reference}"):
        with pytest.raises(NotAllowed, match="--packages"):
            Packages().find(text)


@given(st.text())
def test_whatever_a_reference_says_is_a_source_or_an_error(reference: str) -> None:
    packages = Packages(allows_others=True, base=Path("/no/such/place"))
    for text in (reference, f"file:{reference}", f"pypi:{reference}"):
        with suppress(PolyverError):
            packages.find(text)


def test_references_name_folders_wheels_and_requirements_where_they_may(tmp_path: Path) -> None:
    (tmp_path / "a b").mkdir()
    packages = Packages(allows_others=True, base=tmp_path)
    folder = Folder((tmp_path / "a b").resolve())
    for reference in ("file:a b", f"file:{tmp_path}/a b", f"file://{tmp_path}/a%20b"):
        assert packages.find(reference) == folder
    assert packages.find("pypi:fn==1.0") == Requirement("fn", "1.0")
    with pytest.raises(PackageUnusable, match="another machine"):
        packages.find("file://example.com/fn")
    with pytest.raises(PackageUnusable, match="pinned with =="):
        packages.find("pypi:fn")
    for odd in ("~nobody", "x" * 5000, "\ud800"):
        with pytest.raises(PackageUnusable, match="there is no folder"):
            packages.find(f"file:{odd}")
    with pytest.raises(NotAllowed, match="is unknown"):
        packages.find("xpkg.example.com/fn:v1")
