"""A run says aloud what it could not measure, and goes on with the rest."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import bench.__main__ as command
import pytest
from bench.report import markdown, read
from bench.rows import Gap, Row
from tests.deadlines import HANG


def test_without_go_the_rows_beside_a_peer_are_left_out_aloud(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", "")
    assert command.main(["conversion"]) == 1
    told = capsys.readouterr().out
    assert "======== NOT MEASURED: conversion: there is no Go on this machine" in told
    assert "0 of 0 goals are met." in told


def test_a_section_that_fails_is_told_with_its_reason(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    section = command.Section("no_such_file", "nothing", 10)
    monkeypatch.setitem(command.SECTIONS, "nothing", section)
    command.measure("nothing", tmp_path / "found", quick=True)
    (found,) = command.findings((tmp_path / "found").read_bytes())
    assert found == Gap("nothing", "ModuleNotFoundError: No module named 'bench.no_such_file'")


def test_a_section_without_time_is_a_gap() -> None:
    assert command.section("core", 0, quick=True) == [Gap("core", "no time was left of 900 s")]


def test_what_does_not_end_in_time_is_ended() -> None:
    assert command.waited([sys.executable, "-c", "import time; time.sleep(60)"], 0.1) is None


def test_what_is_ended_takes_down_what_it_has_started(tmp_path: Path) -> None:
    started = tmp_path / "started"
    program = (
        "import pathlib, subprocess, sys, time\n"
        "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)'])\n"
        f"started = pathlib.Path({str(started)!r})\n"
        "try:\n"
        "    started.with_suffix('.new').write_text(str(child.pid))\n"
        "    started.with_suffix('.new').rename(started)\n"
        "    time.sleep(60)\n"
        "finally:\n"
        "    child.terminate()\n"
        "    child.wait()\n"
    )
    with subprocess.Popen([sys.executable, "-c", program], process_group=0) as process:
        end = time.monotonic() + HANG
        while not started.exists() and time.monotonic() < end:
            time.sleep(0.02)
        command.end(process)
    assert not Path(f"/proc/{int(started.read_text())}").exists()


def test_a_run_that_is_interrupted_tells_what_it_has(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def section(name: str, *_: object, **__: object) -> list[Row]:
        if name == "core":
            raise KeyboardInterrupt
        return [Row(name="read", unit="ms", ours=(1.0,))]

    monkeypatch.setattr(command, "section", section)
    assert command.main(["--quick"]) == 1
    told = capsys.readouterr().out
    assert "read" in told
    assert "NOT MEASURED: core: interrupted" in told
    assert "NOT MEASURED: applications: interrupted" in told


def test_a_section_that_does_not_exist_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        command.main(["memory"])
    assert "there is no memory: conversion, server" in capsys.readouterr().err


def test_findings_come_from_the_process_of_their_section() -> None:
    found = command.section("codec", 60, quick=True)
    assert found
    assert all(isinstance(each, Row) and each.met is None for each in found)


def test_only_a_whole_run_says_how_its_figures_get_into_the_documentation(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(command, "ROOT", tmp_path)
    monkeypatch.setattr(command, "RESULTS", tmp_path / "build")
    monkeypatch.setattr(command, "KEPT", tmp_path / "kept.json")
    section = command.Section("no_such_file", "nothing", 10)
    monkeypatch.setattr(command, "SECTIONS", {"nothing": section, "more": section})
    found: list[Row | Gap] = [Row(name="get", unit="ms", ours=(1.0,))]
    monkeypatch.setattr(command, "section", lambda *_, **__: found)
    assert command.main(["nothing"]) == 0
    assert not (tmp_path / "build").exists()
    assert command.main([]) == 0
    assert "cp build/results.json kept.json && make docs" in capsys.readouterr().out
    assert markdown(read(tmp_path / "build" / "results.json")).startswith("| work |")
    found.append(Gap("put", "the disk is full"))
    assert command.main([]) == 1
    assert "make docs" not in capsys.readouterr().out
