"""The documentation: what it shows is what happens, and its links lead somewhere."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from polyver.testing import NoAssets, find_assets

ROOT = Path(__file__).parents[2]
PAGES = sorted(
    page.relative_to(ROOT)
    for page in (*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("examples/**/*.md"))
)
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
# In a page whose commands need a control plane, a comment says how it was started.
STARTED = re.compile(r"^<!-- commands run with: polyver (up.*) -->$", re.MULTILINE)
# What differs from run to run; and the widths of columns, which follow from it.
AGE, SPACES = re.compile(r"\b(\d+m)?\d+s\b"), re.compile(r" +$| +(?= )", re.MULTILINE)
PATIENCE = 60
NO_KUBECTL = "there is no kubectl on this machine, so {} was not run: `make kube` builds one"


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


def kubectl() -> Path | None:
    try:
        return find_assets() / "kubectl"
    except NoAssets:
        found = shutil.which("kubectl")
        return Path(found) if found else None


def environment() -> dict[str, str]:
    found = kubectl()
    folders = [Path(sys.executable).parent, *([found.parent] if found else [])]
    path = os.pathsep.join([*map(str, folders), os.environ["PATH"]])
    return {**os.environ, "PATH": path}


def stable(text: str) -> str:
    return SPACES.sub("", AGE.sub("<age>", text))


@contextmanager
def control_plane(page: Path, folder: Path) -> Iterator[dict[str, str]]:
    """The environment for a page's commands; if it wants a control plane, one is running."""
    wanted = STARTED.search((ROOT / page).read_text())
    if wanted is None:
        yield environment()
        return
    command = ["polyver", *wanted[1].split(), "--port", "0", "--data", ":memory:"]
    started = subprocess.Popen(
        command, cwd=folder, env=environment() | {"TMPDIR": str(folder)}, stdout=-1, text=True
    )
    try:
        assert started.stdout
        ready, export = started.stdout.readline(), started.stdout.readline()
        assert ready.startswith("polyver is ready")
        yield environment() | {"KUBECONFIG": export.strip().partition("=")[2]}
        started.terminate()
        assert started.wait(PATIENCE) == 0
    finally:
        started.kill()
        started.communicate()


@pytest.mark.parametrize("page", [p for p in PAGES if blocks(p, "console")], ids=str)
def test_commands_print_what_the_page_shows(page: Path, tmp_path: Path) -> None:
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    left_out: list[str] = []
    with control_plane(page, tmp_path) as variables:
        for block in blocks(page, "console"):
            if "kubectl" in block and kubectl() is None:
                left_out += [command for command, _ in commands(block)]
                continue
            for command, expected in commands(block):
                assert stable(output(command, tmp_path, variables)) == stable(expected), command
    if left_out:
        pytest.skip(NO_KUBECTL.format(left_out))


def output(command: str, folder: Path, variables: dict[str, str]) -> str:
    ran = subprocess.run(
        ["bash", "-c", f"exec 2>&1\n{command}"],
        cwd=folder,
        env=variables,
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE,
    )
    return ran.stdout


def python_blocks(page: Path, *, tests: bool) -> list[str]:
    return [text for text in blocks(page, "python") if ("def test_" in text) is tests]


@pytest.mark.parametrize("page", [p for p in PAGES if python_blocks(p, tests=False)], ids=str)
def test_python_runs_as_the_page_shows_it(page: Path) -> None:
    for block in python_blocks(page, tests=False):
        exec(compile(block, str(page), "exec"), {})


@pytest.mark.parametrize("page", [p for p in PAGES if python_blocks(p, tests=True)], ids=str)
def test_tests_that_a_page_shows_pass(page: Path, tmp_path: Path) -> None:
    """Each block is a file of its own, as someone who follows the page would have it."""
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    found = python_blocks(page, tests=True)
    if any("kubectl" in block for block in found) and kubectl() is None:
        pytest.skip(NO_KUBECTL.format(page))
    for number, block in enumerate(found):
        (tmp_path / f"test_{number}.py").write_text(block)
    (tmp_path / "pytest.ini").touch()
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    ran = subprocess.run(
        command, cwd=tmp_path, env=environment(), capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stdout


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
