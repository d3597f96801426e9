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
from tests.deadlines import HANG

from polyver.testing import NoAssets, find_assets

ROOT = Path(__file__).parents[2]
PAGES = sorted(
    page.relative_to(ROOT)
    for pattern in ("*.md", "docs/**/*.md", "examples/**/*.md", "src/**/*.md")
    for page in ROOT.glob(pattern)
)
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
# In a page whose commands need a control plane, a comment above them says how it was started.
STARTED = re.compile(r"^<!-- commands run with: polyver (up.*) -->$", re.MULTILINE)
# What differs from run to run; and the widths of columns, which follow from it.
AGE, SPACES = re.compile(r"\b(\d+m)?\d+(\.\d+)?s\b"), re.compile(r" +$| +(?= )", re.MULTILINE)
PATIENCE = HANG
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
def control_plane(arguments: str, folder: Path) -> Iterator[dict[str, str]]:
    """The environment for commands that talk to a control plane, while it runs."""
    command = ["polyver", *arguments.split(), "--port", "0", "--data", ":memory:"]
    started = subprocess.Popen(
        command, cwd=folder, env=environment() | {"TMPDIR": str(folder)}, stdout=-1, text=True
    )
    try:
        assert started.stdout
        ready, export = started.stdout.readline(), started.stdout.readline()
        assert ready.startswith("polyver is ready")
        # kubectl keeps what it discovered by address, and a port may be that of an earlier server.
        cache = {"KUBECACHEDIR": str(folder / "kubectl-cache")}
        yield environment() | cache | {"KUBECONFIG": export.strip().partition("=")[2]}
        started.terminate()
        assert started.wait(PATIENCE) == 0
    finally:
        started.kill()
        started.communicate()


@pytest.mark.parametrize("page", [p for p in PAGES if blocks(p, "console")], ids=str)
def test_commands_print_what_the_page_shows(page: Path, tmp_path: Path) -> None:
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    above, *rest = STARTED.split((ROOT / page).read_text(), maxsplit=1)
    folder, left_out = follow(above, tmp_path, environment())
    if rest:
        with control_plane(rest[0], folder) as variables:
            left_out += follow(rest[1], folder, variables)[1]
    if left_out:
        pytest.skip(NO_KUBECTL.format(left_out))


def follow(text: str, folder: Path, variables: dict[str, str]) -> tuple[Path, list[str]]:
    """Do what a page says: type its commands, and edit files as its diffs show.

    Returned are the folder that this ends in, and the commands that could not be run.
    """
    left_out: list[str] = []
    for language, block in BLOCK.findall(text):
        if language == "diff":
            edit(block, folder)
        if language != "console" or "$ " not in block:
            continue
        if "kubectl" in block and kubectl() is None:
            left_out += [command for command, _ in commands(block)]
            continue
        for command, expected in commands(block):
            if command.startswith("cd "):
                folder = folder / command.removeprefix("cd ")
            else:
                assert stable(output(command, folder, variables)) == stable(expected), command
    return folder, left_out


def edit(block: str, folder: Path) -> None:
    """Change the file that the first line names; what is to be changed must be there once."""
    first, *lines = block.splitlines()
    file = folder / first.removeprefix("--- ")
    old, new = (
        "".join(f"{line[1:]}\n" for line in lines if line[:1] in ("", " ", sign)) for sign in "-+"
    )
    text = file.read_text()
    assert text.count(old) == 1, block
    file.write_text(text.replace(old, new))


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
    files = [tmp_path / f"test_{number}.py" for number in range(len(found))]
    for file, block in zip(files, found, strict=True):
        file.write_text(block)
    (tmp_path / "pytest.ini").touch()
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *map(str, files)]
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
