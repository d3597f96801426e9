"""The architecture: imports point one way, and each contract fails when an import breaks it."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """A copy of the source that a test may spoil."""
    shutil.copytree(ROOT / "src", tmp_path / "src")
    shutil.copytree(ROOT / "tools", tmp_path / "tools")
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    return tmp_path


def lint(copy: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [Path(sys.executable).parent / "lint-imports", "--no-logo", "--no-cache"],
        cwd=copy,
        env={"PYTHONPATH": str(copy / "src"), "COLUMNS": "200"},
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_contracts_hold(copy: Path) -> None:
    found = lint(copy)
    assert "4 kept, 0 broken" in found.stdout
    assert found.returncode == 0


@pytest.mark.parametrize(
    ("module", "line", "complaint"),
    [
        (
            "core/versions.py",
            "from polyver.kube import objects",
            "core is not allowed to import polyver.kube",
        ),
        ("core/resolve.py", "import time", "core is not allowed to import time"),
        ("core/lineage.py", "import msgspec", "core is not allowed to import msgspec"),
        (
            "languages/values/names.py",
            "from polyver.kube.objects import codec",
            "languages is not allowed to import polyver.kube",
        ),
        (
            "kube/objects/codec.py",
            "from polyver.app import main",
            "kube is not allowed to import polyver.app",
        ),
        (
            "kube/server/custom.py",
            "from polyver.apis import conversion",
            "kube is not allowed to import polyver.apis",
        ),
        (
            "functions/policy.py",
            "from polyver.definitions import names",
            "functions is not allowed to import polyver.definitions",
        ),
        (
            "definitions/resolution.py",
            "import asyncio",
            "definitions.resolution is not allowed to import asyncio",
        ),
        (
            "cli/output.py",
            "from polyver.compositions import names",
            "cli is not allowed to import polyver.compositions",
        ),
        (
            "webhook/app.py",
            "from polyver.controllers import Engine",
            "webhook is not allowed to import polyver.controllers",
        ),
        (
            "web/_page.py",
            "from polyver.cli import output",
            "web is not allowed to import polyver.cli",
        ),
        ("attic/__init__.py", "", "polyver.attic"),
    ],
)
def test_a_contract_breaks_when_an_import_points_back(
    copy: Path, module: str, line: str, complaint: str
) -> None:
    spoilt = copy / "src" / "polyver" / module
    spoilt.parent.mkdir(exist_ok=True)
    with spoilt.open("a") as file:
        file.write(f"\n{line}\n")
    found = lint(copy)
    assert found.returncode == 1
    assert complaint in found.stdout


def check_names(copy: Path) -> tuple[int, str]:
    command = [sys.executable, str(copy / "tools" / "check_names.py")]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    return ended.returncode, ended.stderr


def test_names_are_used_once_and_private_modules_by_their_package(copy: Path) -> None:
    assert check_names(copy) == (0, "")


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        (
            "class Lineage:\n    pass",
            "class Lineage is defined in polyver.core.lineage, polyver.web.",
        ),
        (
            "from polyver.kube.store import _open",
            "imports polyver.kube.store._open, which is private to polyver.kube.store",
        ),
    ],
)
def test_a_shared_name_or_a_private_import_is_reported(
    copy: Path, text: str, complaint: str
) -> None:
    with (copy / "src" / "polyver" / "web" / "view_model.py").open("a") as file:
        file.write(f"\n{text}\n")
    code, found = check_names(copy)
    assert code == 1
    assert complaint in found


def test_the_page_about_the_architecture_names_modules_that_exist() -> None:
    page = (ROOT / "docs" / "explanation" / "architecture.md").read_text()
    places = (ROOT / "src" / "polyver", ROOT)
    named = re.findall(r"`([a-z_]+/[a-z_/]+\.py)`", page)
    assert len(named) > 20
    assert [each for each in named if not any((at / each).is_file() for at in places)] == []
    # In the lists of modules, a name without a folder is in the folder of one on the same line.
    paths = page.partition("## Six paths")[2].partition("\n## ")[0]
    steps = [re.findall(r"`([a-z_/]+\.py)`", line) for line in paths.splitlines()]
    short = [(name, step) for step in steps for name in step if "/" not in name]
    assert len(short) > 5
    for name, step in short:
        beside = [places[0] / each for each in step if "/" in each]
        assert any(each.with_name(name).is_file() for each in beside), name


def test_pins_have_hashes_and_no_address() -> None:
    for name in ("runtime", "dev", "uv"):
        text = (ROOT / "requirements" / f"{name}.txt").read_text()
        assert "://" not in text
        assert "--index" not in text
        for pin in text.replace("\\\n", "").splitlines():
            assert "==" in pin
            assert "--hash=sha256:" in pin
