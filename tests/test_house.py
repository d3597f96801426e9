"""The house: imports point one way, and the contract that says so can break."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.fixture
def house(tmp_path: Path) -> Path:
    """A copy of the source that a test may spoil."""
    shutil.copytree(ROOT / "src", tmp_path / "src")
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    return tmp_path


def lint(house: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [Path(sys.executable).parent / "lint-imports", "--no-logo", "--no-cache"],
        cwd=house,
        env={"PYTHONPATH": str(house / "src"), "COLUMNS": "200"},
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_contracts_hold(house: Path) -> None:
    found = lint(house)
    assert "4 kept, 0 broken" in found.stdout
    assert found.returncode == 0


@pytest.mark.parametrize(
    ("room", "line", "complaint"),
    [
        (
            "core/versions.py",
            "from polyver import objects",
            "core is not allowed to import polyver.obj",
        ),
        ("core/resolve.py", "import time", "core is not allowed to import time"),
        ("core/lineage.py", "import msgspec", "core is not allowed to import msgspec"),
        ("objects/codec.py", "from polyver.cli import main", "objects is not allowed to import"),
        (
            "capabilities/functions/_policy.py",
            "from polyver.capabilities import definitions",
            "functions is not allowed to import polyver.capabilities.definitions",
        ),
        (
            "webhook/app.py",
            "from polyver.server import api",
            "webhook is not allowed to import polyver.server",
        ),
        (
            "web/_page.py",
            "from polyver.engine import Engine",
            "web is not allowed to import polyver.engine",
        ),
        (
            "serving/health.py",
            "from polyver.webhook import App",
            "serving is not allowed to import polyver.webhook",
        ),
        (
            "native/__init__.py",
            "from polyver import core",
            "native is not allowed to import polyver.core",
        ),
        ("attic/__init__.py", "", "polyver.attic"),
    ],
)
def test_a_contract_breaks_when_an_import_points_back(
    house: Path, room: str, line: str, complaint: str
) -> None:
    spoilt = house / "src" / "polyver" / room
    spoilt.parent.mkdir(exist_ok=True)
    with spoilt.open("a") as file:
        file.write(f"\n{line}\n")
    found = lint(house)
    assert found.returncode == 1
    assert complaint in found.stdout


def test_pins_have_hashes_and_no_address() -> None:
    for name in ("runtime", "dev", "uv"):
        text = (ROOT / "requirements" / f"{name}.txt").read_text()
        assert "://" not in text
        assert "--index" not in text
        for pin in text.replace("\\\n", "").splitlines():
            assert "==" in pin
            assert "--hash=sha256:" in pin
