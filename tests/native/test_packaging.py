"""Wheels and editable installations: with the compiled module where there is a compiler."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from zipfile import ZipFile

import pytest
from tests.native.test_build import SOURCE, needs_compiler

from polyver.native import build as building

ROOT = Path(__file__).parents[2]
NATIVE = Path("src", "polyver", "native")
MODULE = f"polyver/native/{building.MODULE}"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """As much of polyver as a wheel is built from, with a module that somebody has built before."""
    for name in ("pyproject.toml", "hatch_build.py", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, tmp_path)
    (tmp_path / NATIVE).mkdir(parents=True)
    for path in (NATIVE / "__init__.py", NATIVE / "build.py"):
        shutil.copy(ROOT / path, tmp_path / path)
    shutil.copy(ROOT / "src" / "polyver" / "__init__.py", tmp_path / "src" / "polyver")
    (tmp_path / NATIVE / "reviews.c").write_text(SOURCE)
    (tmp_path / NATIVE / building.MODULE).write_bytes(b"built before")
    return tmp_path


def wheel(project: Path, target: str = "wheel", **environment: str) -> tuple[str, list[str]]:
    """The tag of what hatchling makes, and the files in it."""
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", target, "-d", "made"],
        cwd=project,
        env={**os.environ, **environment},
        capture_output=True,
        check=True,
    )
    [made] = (project / "made").iterdir()
    with ZipFile(made) as files:
        return made.stem.split("-", 2)[2], files.namelist()


@needs_compiler
def test_a_wheel_has_the_module_for_all_newer_pythons_on_this_platform(project: Path) -> None:
    tag, files = wheel(project)
    assert tag.startswith("cp311-abi3-")
    assert not tag.endswith("-any")
    assert files.count(MODULE) == 1


def test_without_a_compiler_a_wheel_is_pure(project: Path) -> None:
    tag, files = wheel(project, CC="no-such-cc")
    assert tag == "py3-none-any"
    assert MODULE not in files
    assert "polyver/native/reviews.c" in files


@needs_compiler
def test_an_editable_installation_builds_in_place(project: Path) -> None:
    tag, files = wheel(project, "wheel:editable")
    assert tag == "py3-none-any"
    assert MODULE not in files
    assert (project / NATIVE / building.MODULE).read_bytes() != b"built before"


def test_an_editable_installation_needs_no_compiler(project: Path) -> None:
    _, files = wheel(project, "wheel:editable", CC="no-such-cc")
    assert any(name.endswith(".pth") for name in files)
