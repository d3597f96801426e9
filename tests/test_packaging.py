"""The wheel is pure Python, and wheel and source distribution hold all that is needed."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tarfile
from pathlib import Path
from zipfile import ZipFile

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "polyver"


def files_of_the_package() -> set[str]:
    found = [each for each in PACKAGE.rglob("*") if each.is_file() and each.suffix != ".pyc"]
    return {str(each.relative_to(PACKAGE.parent)) for each in found}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A copy of the files that wheels are built from."""
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, tmp_path)
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(PACKAGE, tmp_path / "src" / "polyver", ignore=ignored)
    return tmp_path


def built(project: Path, target: str) -> Path:
    """Return the file that hatchling builds."""
    command = [sys.executable, "-m", "hatchling", "build", "-t", target, "-d", f"made-{target}"]
    subprocess.run(command, cwd=project, capture_output=True, check=True)
    [made] = (project / f"made-{target}").iterdir()
    return made


def test_the_wheel_is_pure_python_and_holds_the_whole_package(project: Path) -> None:
    wheel = built(project, "wheel")
    assert wheel.name.endswith("-py3-none-any.whl")
    with ZipFile(wheel) as archive:
        files = set(archive.namelist())
    assert {each for each in files if each.startswith("polyver/")} == files_of_the_package()
    assert {each.rpartition("/")[2] for each in files} >= {
        "METADATA",
        "entry_points.txt",
        "LICENSE",
    }


def test_a_wheel_can_be_built_from_the_source_distribution(project: Path) -> None:
    source = built(project, "sdist")
    with tarfile.open(source) as archive:
        archive.extractall(project / "unpacked", filter="data")
    [unpacked] = (project / "unpacked").iterdir()
    with ZipFile(built(unpacked, "wheel")) as archive_again:
        assert files_of_the_package() <= set(archive_again.namelist())


def test_the_product_contains_no_native_code() -> None:
    assert not [
        each for each in files_of_the_package() if Path(each).suffix in {".c", ".so", ".pyx"}
    ]
