"""What functions run in: built once from a copy, complete or not there, kept within bounds."""

from __future__ import annotations

import asyncio
import os
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from tests.compositions.runtimes.support import (
    QUICK,
    answer_of,
    function_folder,
    process_runtime,
    project_folder,
    settled,
    until,
    wanted_of,
    wheel_of,
)

from polyver.client import Backoff
from polyver.compositions.calls import CertificateFolder
from polyver.compositions.runtimes.process import (
    Folder,
    Packages,
    PackageUnusable,
    ProcessRuntime,
    Requirement,
    Source,
    Wheel,
)
from polyver.kube.http.files import FolderFailed


def environments(data: Path) -> list[str]:
    """The folders of environments."""
    folder = data / "packages" / "environments"
    return sorted(each.name for each in folder.iterdir() if each.is_dir())


def builds(file: Path) -> int:
    return len(file.read_text().split()) if file.exists() else 0


@pytest.fixture
def built(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where each build of a project leaves a line."""
    monkeypatch.setenv("PIP_TEST_BUILDS", str(tmp_path / "builds"))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    return tmp_path / "builds"


def test_a_project_is_installed_once_and_served_from_there_after_a_restart(
    tmp_path: Path, built: Path
) -> None:
    async def scenario() -> None:
        folder, data = project_folder(tmp_path / "fn"), tmp_path / "data"
        async with process_runtime(data, {"fn": folder}) as runtime:
            wanted = await wanted_of(runtime, "fn")
            assert await answer_of(runtime, wanted) == b"installed"
        [before] = environments(data)
        (folder / "function" / "main.py").unlink()
        async with process_runtime(data, {"fn": folder}) as runtime:
            assert await answer_of(runtime, wanted) == b"installed"
        assert environments(data) == [before]
        assert builds(built) == 1

    asyncio.run(scenario())


def test_those_who_want_the_same_at_once_build_it_once(tmp_path: Path) -> None:
    async def scenario() -> None:
        packages, data = {"fn": function_folder(tmp_path / "fn")}, tmp_path / "data"
        async with process_runtime(data, packages) as one, process_runtime(data, packages) as two:
            first = await wanted_of(one, "fn", "fn-1")
            second, third = replace(first, name="fn-2"), replace(first, name="fn-3")
            served = until(one, first), until(one, second), until(two, third)
            assert all(each.healthy for each in await asyncio.gather(*served))
            assert len(environments(data)) == 1

    asyncio.run(scenario())


def test_what_a_crash_left_half_built_is_built_anew(tmp_path: Path) -> None:
    async def scenario() -> None:
        packages, data = {"fn": function_folder(tmp_path / "fn")}, tmp_path / "data"
        async with process_runtime(data, packages) as runtime:
            wanted = await wanted_of(runtime, "fn")
            digits = wanted.digest.removeprefix("sha256:")
            half = data / "packages" / "environments" / f"{digits}.0123abcd"
            (half / "python" / "bin").mkdir(parents=True)
            assert await answer_of(runtime, wanted) == b"hello"
            assert not half.exists()
        [before] = environments(data)
        record = data / "packages" / "environments" / f"{digits}.json"
        record.write_bytes(record.read_bytes()[:20])
        async with process_runtime(data, packages) as runtime:
            assert await answer_of(runtime, wanted) == b"hello"
            [after] = environments(data)
            assert after != before

    asyncio.run(scenario())


def test_a_build_that_fails_is_told_with_the_last_lines(tmp_path: Path, built: Path) -> None:
    async def scenario() -> None:
        folder = project_folder(tmp_path / "fn")
        (folder / "backend.py").write_text("import sys; sys.exit('there is no compiler')")
        timing = replace(QUICK, rebuilds=Backoff(first=60))
        async with process_runtime(tmp_path / "data", {"fn": folder}, timing=timing) as runtime:
            wanted = await wanted_of(runtime, "fn")
            failed = await until(runtime, wanted, lambda s: s.reason == "BuildFailed")
            assert "it cannot be installed: " in failed.message
            assert "there is no compiler" in failed.message
            assert "tried again in" in failed.message
            assert not environments(tmp_path / "data")

    asyncio.run(scenario())


def test_a_wheel_and_the_requirement_for_it_are_the_same_content(
    tmp_path: Path, built: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wheel = wheel_of(project_folder(tmp_path / "fn"), tmp_path / "index")
    monkeypatch.setenv("PIP_FIND_LINKS", str(wheel.parent))

    async def scenario() -> None:
        named: dict[str, Source] = {
            "wheel": Wheel(wheel),
            "pinned": Requirement.read("tiny-function==1.2.3"),
        }
        certificates = CertificateFolder(tmp_path / "certificates")
        runtime = ProcessRuntime(tmp_path / "packages", Packages(named), certificates, timing=QUICK)
        try:
            digest = await runtime.digest("pinned")
            assert digest == await runtime.digest("wheel")
            assert await answer_of(runtime, await wanted_of(runtime, "pinned")) == b"installed"
            # Once fetched it stays what it is.
            wheel.unlink()
            assert await runtime.digest("pinned") == digest
        finally:
            await runtime.close()

    asyncio.run(scenario())


def test_a_requirement_that_cannot_be_fetched_says_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9/")
    monkeypatch.setenv("PIP_RETRIES", "1")
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    for name in ("PIP_FIND_LINKS", "PIP_EXTRA_INDEX_URL"):
        monkeypatch.delenv(name, raising=False)

    async def scenario() -> None:
        packages = Packages(allows_others=True, base=tmp_path)
        certificates = CertificateFolder(tmp_path / "certificates")
        runtime = ProcessRuntime(tmp_path / "packages", packages, certificates, timing=QUICK)
        try:
            with pytest.raises(PackageUnusable, match="index cannot be reached"):
                await runtime.digest("pypi:tiny-function==1.2.3")
        finally:
            await runtime.close()

    asyncio.run(scenario())


def test_environments_that_nobody_uses_are_kept_within_bounds(tmp_path: Path) -> None:
    async def scenario() -> None:
        packages = {each: function_folder(tmp_path / each, ANSWER=each) for each in "abcd"}
        data = tmp_path / "data"
        async with process_runtime(data, packages, kept=1) as runtime:
            wanted = {each: await wanted_of(runtime, each, f"fn-{each}") for each in packages}
            for each in wanted.values():
                await until(runtime, each)
            assert len(environments(data)) == 4
            for name in "bcd":
                await runtime.end(f"fn-{name}")
            # One is in use, and one is kept of the others.
            await settled(lambda: len(environments(data)) == 2)
            assert await answer_of(runtime, wanted["a"]) == b"a"
            assert len(list((data / "packages" / "sources").iterdir())) == 2

    asyncio.run(scenario())


def test_a_folder_in_which_nothing_can_be_kept_is_told(tmp_path: Path) -> None:
    (tmp_path / "packages").write_text("a file")
    certificates = CertificateFolder(tmp_path / "certificates")
    with pytest.raises(FolderFailed, match="packages cannot be used"):
        ProcessRuntime(tmp_path / "packages", Packages(), certificates)

    async def scenario() -> None:
        folder, data = function_folder(tmp_path / "fn"), tmp_path / "data"
        async with process_runtime(data, {"fn": folder}) as runtime:
            wanted = await wanted_of(runtime, "fn")
            shutil.rmtree(data / "packages" / "environments")
            refused = await until(runtime, wanted, lambda s: s.reason == "NotUsable")
            assert "environments" in refused.message
            shutil.rmtree(data / "packages" / "sources")
            (data / "packages" / "sources").write_text("a file")
            with pytest.raises(FolderFailed, match="nothing can be stored"):
                await runtime.digest("fn")

    asyncio.run(scenario())


def test_nobody_else_reads_what_is_kept(tmp_path: Path) -> None:
    async def scenario() -> None:
        folder = function_folder(tmp_path / "fn")
        async with process_runtime(tmp_path / "data", {"fn": folder}) as runtime:
            await until(runtime, await wanted_of(runtime, "fn"))
            root = tmp_path / "data" / "packages"
            for each in (root, *(one for one in root.iterdir() if one.is_dir())):
                assert each.stat().st_mode & 0o777 == 0o700

    asyncio.run(scenario())


def test_a_folder_that_says_nothing_of_how_it_is_run_is_refused(tmp_path: Path) -> None:
    async def scenario() -> None:
        folder = tmp_path / "fn"
        folder.mkdir()
        (folder / "main.py").write_text("")
        async with process_runtime(tmp_path / "data", {"fn": folder}) as runtime:
            wanted = await wanted_of(runtime, "fn")
            refused = await until(runtime, wanted, lambda s: s.reason == "NotUsable")
            assert "polyver-function.yaml" in refused.message

    asyncio.run(scenario())


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("command: run", "polyver-function.yaml:1, command"),
        ("command: []", "no program to run"),
        ("command: [run, {address}]", "command[1]); put it in quotes"),
        ("command: [run]\nenv: {a b: c}", '"a b" cannot be a variable'),
        ("command: [run]\nenv: {A: 1}", "put it in quotes"),
        ("command: [run]\nflags: []", "unknown field flags"),
        ("command: [run\n", "polyver-function.yaml:"),
        ("", "one document is expected"),
    ],
)
def test_what_is_wrong_with_a_command_is_told_with_its_place(
    tmp_path: Path, text: str, complaint: str
) -> None:
    async def scenario() -> None:
        folder = tmp_path / "fn"
        folder.mkdir()
        (folder / "polyver-function.yaml").write_text(text)
        async with process_runtime(tmp_path / "data", {"fn": folder}) as runtime:
            wanted = await wanted_of(runtime, "fn")
            refused = await until(runtime, wanted, lambda s: s.reason == "NotUsable")
            assert complaint in refused.message.replace('"flags"', "flags")

    asyncio.run(scenario())


def test_a_folder_on_this_machine_is_found_once_it_is_allowed(tmp_path: Path) -> None:
    async def scenario() -> None:
        folder = function_folder(tmp_path / "fn", ANSWER="from file")
        packages = Packages(allows_others=True, base=tmp_path)
        certificates = CertificateFolder(tmp_path / "certificates")
        runtime = ProcessRuntime(tmp_path / "packages", packages, certificates, timing=QUICK)
        try:
            assert packages.find("file:fn") == Folder(folder.resolve())
            assert await answer_of(runtime, await wanted_of(runtime, "file:./fn")) == b"from file"
        finally:
            await runtime.close()

    asyncio.run(scenario())
