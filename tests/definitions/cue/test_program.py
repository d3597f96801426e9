"""The program is run so that a template reaches nothing with it, and ends."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from tests.walks.support import eventually

from polyver.core import PolyverError
from polyver.definitions.cue import CueEngine, CueFailed, find_cue
from polyver.definitions.cue._program import INSTALL, run_cue
from polyver.definitions.rendering import TemplateInput

GIVEN = TemplateInput({}, {}, "spec.components[0]", "web 1.0.0")


def program(folder: Path, *lines: str) -> Path:
    """Something else in its place, which does what cue might."""
    path = folder / "cue"
    path.write_text("\n".join(["#!/bin/sh", *lines]))
    path.chmod(0o755)
    return path


def test_without_the_program_the_error_says_how_to_install_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("POLYVER_CUE", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(PolyverError) as caught:
        CueEngine().render({"template": "output: {}"}, GIVEN)
    assert str(caught.value) == (
        "web 1.0.0 cannot be rendered: cue is not installed (spec.components[0]); "
        f"install it with `{INSTALL}`, and put it on PATH"
    )
    assert INSTALL == "go install cuelang.org/go/cmd/cue@v0.14.1"


def test_a_program_that_is_installed_later_is_found(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("POLYVER_CUE", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(CueFailed):
        find_cue()
    assert program(tmp_path, "exit 0") == find_cue()


def test_the_variable_names_another_program(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("POLYVER_CUE", str(program(tmp_path, "exit 0")))
    assert find_cue() == tmp_path / "cue"
    monkeypatch.setenv("POLYVER_CUE", str(tmp_path))
    with pytest.raises(CueFailed, match="which is not a program"):
        find_cue()


def test_it_sees_an_empty_folder_and_no_environment(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("SECRET", "s3cret")
    path = program(tmp_path, "export -p", "/bin/ls -A", "/bin/cat")
    printed = run_cue(path, text="the template", seconds=10)
    out = printed.out.decode()
    assert "SECRET" not in out
    assert "HOME" not in out
    assert "CUE_REGISTRY='none'" in out.replace('"', "'")
    assert out.splitlines()[-1] == "the template"


def test_it_is_killed_with_all_that_it_started_when_its_time_is_over(tmp_path: Path) -> None:
    pids = tmp_path / "pids"
    path = program(tmp_path, "/bin/sleep 600 &", f"echo $$ $! > {pids}", "wait")
    with pytest.raises(CueFailed, match="cue did not finish within 2 s"):
        run_cue(path, text="", seconds=2)
    eventually(lambda: not any(map(is_running, pids.read_text().split())))


def is_running(pid: str) -> bool:
    """Whether a process still does something; one that nobody has waited for does not."""
    try:
        return ") Z " not in Path(f"/proc/{pid}/stat").read_text()
    except FileNotFoundError:
        return False


def test_what_prints_without_end_is_ended(tmp_path: Path) -> None:
    path = program(tmp_path, "while :; do echo 0123456789012345678901234567890123456789; done")
    with pytest.raises(CueFailed, match="cue prints more than 8 MiB"):
        run_cue(path, text="", seconds=60)


def test_what_takes_too_much_memory_is_told(tmp_path: Path) -> None:
    path = program(tmp_path, "echo 'fatal error: runtime: cannot allocate memory' >&2", "exit 2")
    with pytest.raises(CueFailed, match="cue needs more than 512 MiB"):
        run_cue(path, text="", seconds=10)


def test_what_ends_by_force_is_told_and_tried_again(tmp_path: Path) -> None:
    engine = CueEngine(program(tmp_path, "kill -9 $$"))
    with pytest.raises(
        PolyverError, match=r"web 1\.0\.0 cannot be rendered: cue ended with signal 9"
    ):
        engine.render({"template": "output: {}"}, GIVEN)
    program(tmp_path, "echo panic: oh no >&2", "exit 2")
    with pytest.raises(PolyverError, match="cue ended with exit code 2: panic: oh no"):
        engine.render({"template": "output: {}"}, GIVEN)
    program(tmp_path, "echo '{}'")
    assert engine.render({"template": "output: {}"}, GIVEN).output is None


def test_a_file_that_is_no_program_is_told(tmp_path: Path) -> None:
    path = tmp_path / "cue"
    path.write_bytes(os.urandom(20))
    path.chmod(0o755)
    with pytest.raises(CueFailed, match="cannot be run: Exec format error"):
        run_cue(path, text="", seconds=10)


def test_the_same_input_is_run_once(tmp_path: Path) -> None:
    count = tmp_path / "count"
    path = program(tmp_path, f"echo x >> {count}", "echo '{}'")
    engine = CueEngine(path)
    for _ in range(3):
        engine.render({"template": "output: {}"}, GIVEN)
    assert count.read_text() == "x\n"
    engine.render({"template": "output: {a: 1}"}, GIVEN)
    assert count.read_text() == "x\nx\n"
