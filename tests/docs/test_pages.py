"""The documentation: what it shows is what happens, and its links lead somewhere."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = sorted(
    page.relative_to(ROOT)
    for page in (*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("examples/**/*.md"))
)
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks(page: Path, language: str) -> list[str]:
    found = BLOCK.findall((ROOT / page).read_text())
    return [
        text for kind, text in found if kind == language and (kind != "console" or "$ " in text)
    ]


def commands(block: str) -> list[tuple[str, str]]:
    """Each command behind `$`, with the lines behind `>` that continue it, and its output."""
    found: list[tuple[str, str]] = []
    for line in block.splitlines():
        if line.startswith("$ "):
            found.append((line[2:], ""))
        elif line.startswith("> ") and not found[-1][1]:
            found[-1] = (f"{found[-1][0]}\n{line[2:]}", "")
        else:
            found[-1] = (found[-1][0], f"{found[-1][1]}{line}\n")
    return found


@pytest.mark.parametrize("page", [p for p in PAGES if blocks(p, "console")], ids=str)
def test_commands_print_what_the_page_shows(page: Path, tmp_path: Path) -> None:
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    for block in blocks(page, "console"):
        for command, expected in commands(block):
            ran = subprocess.run(
                ["bash", "-c", f"exec 2>&1\n{command}"],
                cwd=tmp_path,
                env={**os.environ, "PATH": path},
                capture_output=True,
                text=True,
                check=False,
            )
            assert ran.stdout == expected, command


@pytest.mark.parametrize("page", [p for p in PAGES if blocks(p, "python")], ids=str)
def test_python_runs_as_the_page_shows_it(page: Path) -> None:
    for block in blocks(page, "python"):
        exec(compile(block, str(page), "exec"), {})


@pytest.mark.parametrize("page", PAGES, ids=str)
def test_links_lead_somewhere(page: Path) -> None:
    text = (ROOT / page).read_text()
    for link in re.findall(r"\]\(([^)#\s]+)[^)]*\)", text):
        if "://" not in link:
            assert ((ROOT / page).parent / link).exists(), link


def test_every_decision_has_a_status() -> None:
    pages = sorted(ROOT.glob("docs/decisions/0*.md"))
    assert pages
    for page in pages:
        assert re.search(
            r"^Status: (proposed|accepted|replaced by .*)$", page.read_text(), re.MULTILINE
        ), page
