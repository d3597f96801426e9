"""Building the compiled module: it is there as a whole or not at all, and why not is one line."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from polyver.native import build as building

ROOT = Path(__file__).parents[2]
SOURCE = """
#define Py_LIMITED_API 0x030B0000
#include <Python.h>

static PyModuleDef_Slot slots[] = {{0, NULL}};
static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, .m_name = "_reviews", .m_slots = slots
};

PyMODINIT_FUNC PyInit__reviews(void) { return PyModuleDef_Init(&definition); }
"""
# What stands for a compiler gets the file to write, and all arguments.
COMPILER = """#!{python}
import os, signal, sys
made = sys.argv[sys.argv.index("-o") + 1]
{does}
"""
HALF = 'open(made, "wb").write(b"\\x7fELF")'


def nothing_to_build_with() -> str:
    try:
        building.tools()
    except building.NotBuilt as error:
        return str(error)
    return ""


needs_compiler = pytest.mark.skipif(
    bool(nothing_to_build_with()), reason=f"NOT TESTED: {nothing_to_build_with()}"
)


@dataclass(frozen=True)
class Room:
    """A copy of the room in which a test may build."""

    folder: Path

    @property
    def source(self) -> Path:
        return self.folder / "reviews.c"

    @property
    def module(self) -> Path:
        return self.folder / building.MODULE

    def build(self, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, self.folder / "build.py", *arguments],
            cwd=self.folder,
            env={**os.environ, **environment},
            capture_output=True,
            text=True,
            check=False,
        )

    def put_module(self, *, stale: bool) -> None:
        """One that was built earlier, before or after the last change of the source."""
        self.module.write_bytes(b"built earlier")
        for path in (self.source, self.folder / "build.py"):
            os.utime(path, (1000, 1000))
        os.utime(self.module, (999, 999) if stale else (1001, 1001))

    def has_nothing_else(self) -> bool:
        known = {"build.py", "reviews.c", building.MODULE}
        return {each.name for each in self.folder.iterdir()} <= known


@pytest.fixture
def room(tmp_path: Path) -> Room:
    folder = tmp_path / "native"
    folder.mkdir()
    shutil.copy(str(building.__file__), folder / "build.py")
    (folder / "reviews.c").write_text(SOURCE)
    return Room(folder)


@pytest.fixture
def compiler(tmp_path: Path) -> Callable[[str], str]:
    def write(does: str) -> str:
        path = tmp_path / "compiler"
        path.write_text(COMPILER.format(python=sys.executable, does=does))
        path.chmod(0o755)
        return str(path)

    return write


def one_line(said: str) -> str:
    """The line that is said, which is all there is, and no traceback."""
    assert said.count("\n") == 1
    assert said.endswith("\n")
    return said


def loads(folder: Path) -> bool:
    path = os.pathsep.join([str(folder), str(ROOT / "src")])
    command = [sys.executable, "-c", "import _reviews; print(_reviews.__file__)"]
    ran = subprocess.run(
        command, env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True, check=True
    )
    return Path(ran.stdout.strip()) == folder / building.MODULE


@needs_compiler
def test_the_module_is_built_and_loads(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert building.main(["--into", str(tmp_path / "new" / "folder")]) == 0
    assert "was built with" in one_line(capsys.readouterr().err)
    assert loads(tmp_path / "new" / "folder")


@needs_compiler
def test_what_is_up_to_date_is_built_again_only_by_force(room: Room) -> None:
    room.build()
    first = room.module.stat().st_ino
    again = room.build()
    assert again.returncode == 0
    assert "is up to date" in one_line(again.stderr)
    assert room.module.stat().st_ino == first
    forced = room.build("--force")
    assert "was built with" in one_line(forced.stderr)
    assert room.module.stat().st_ino != first


@needs_compiler
def test_a_newer_source_is_built(room: Room) -> None:
    room.put_module(stale=True)
    assert "was built with" in one_line(room.build().stderr)
    assert loads(room.folder)


@needs_compiler
def test_what_python_cannot_load_is_not_up_to_date(room: Room) -> None:
    room.put_module(stale=False)
    assert "was built with" in one_line(room.build().stderr)
    assert loads(room.folder)


@pytest.mark.parametrize(
    ("environment", "reason"),
    [
        ({"CC": "", "PATH": "/nowhere"}, "there is no C compiler; on Debian: apt install"),
        ({"CC": "no-such-cc -O3"}, "there is no program 'no-such-cc', which CC asks for; unset CC"),
        ({"CC": "cc 'half"}, 'CC="cc \'half" is no command: No closing quotation'),
        ({"CC": "/"}, "there is no program '/'"),
    ],
)
def test_without_a_compiler_it_is_said_in_one_line(
    room: Room, environment: dict[str, str], reason: str
) -> None:
    ran = room.build(**environment)
    assert ran.returncode == building.UNFIT
    assert f"polyver.native was not built: {reason}" in one_line(ran.stderr)
    assert "everything works without it" in ran.stderr
    assert not room.module.exists()


def test_without_headers_it_is_said_what_brings_them(
    tmp_path: Path,
    compiler: Callable[[str], str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("CC", compiler(HALF))
    monkeypatch.setattr("sysconfig.get_path", lambda name: "/nowhere")
    assert building.main(["--into", str(tmp_path)]) == building.UNFIT
    said = one_line(capsys.readouterr().err)
    assert "there is no Python.h in /nowhere; on Debian: apt install python3-dev gcc" in said


@needs_compiler
def test_what_the_compiler_refuses_is_told_in_its_own_words(room: Room) -> None:
    room.source.write_text(SOURCE + "int broken = ;\n")
    ran = room.build()
    assert ran.returncode == building.FAILED
    assert "int broken = ;" in ran.stderr
    assert f"could not compile {room.source} (exit code 1)" in ran.stderr.splitlines()[-1]
    assert not room.module.exists()
    assert room.has_nothing_else()


@needs_compiler
def test_warnings_are_told_of_what_was_built(room: Room) -> None:
    room.source.write_text(SOURCE + "static int unused;\n")
    ran = room.build()
    assert ran.returncode == 0
    assert "unused" in ran.stderr
    assert "was built with" in ran.stderr.splitlines()[-1]


@pytest.mark.parametrize(
    ("does", "reason"),
    [
        (f"{HALF}; sys.exit(1)", "(exit code 1)"),
        (f"{HALF}; os.kill(os.getpid(), signal.SIGKILL)", "(signal 9)"),
        ("", "(exit code 0)"),
        (HALF, "Python cannot load what"),
        ('open(made, "wb")', "Python cannot load what"),
    ],
    ids=["fails", "is killed", "writes nothing", "writes half", "writes an empty file"],
)
def test_half_a_module_never_takes_the_place_of_one(
    room: Room, compiler: Callable[[str], str], does: str, reason: str
) -> None:
    room.put_module(stale=False)
    ran = room.build("--force", CC=compiler(does))
    assert ran.returncode == building.FAILED
    assert reason in one_line(ran.stderr)
    assert room.module.read_bytes() == b"built earlier"
    assert room.has_nothing_else()


def test_who_is_killed_while_building_leaves_what_was_there(
    room: Room, compiler: Callable[[str], str]
) -> None:
    room.put_module(stale=False)
    killed = room.build("--force", CC=compiler(f"{HALF}; os.kill(os.getppid(), signal.SIGKILL)"))
    assert killed.returncode < 0
    assert room.module.read_bytes() == b"built earlier"


def test_what_is_older_than_its_source_goes_if_there_can_be_no_new_one(room: Room) -> None:
    room.put_module(stale=True)
    assert room.build(CC="no-such-cc").returncode == building.UNFIT
    assert not room.module.exists()


def test_a_folder_that_cannot_be_written_is_named(
    room: Room, compiler: Callable[[str], str]
) -> None:
    ran = room.build("--into", str(room.source / "below"), CC=compiler(HALF))
    assert ran.returncode == building.FAILED
    assert f"{room.source / 'below'}: Not a directory" in one_line(ran.stderr)


def test_a_program_that_is_none_is_named(room: Room, tmp_path: Path) -> None:
    program = tmp_path / "no-program"
    program.write_bytes(b"\x00\x01\x02")
    program.chmod(0o755)
    ran = room.build(CC=str(program))
    assert ran.returncode == building.FAILED
    assert f"{program}: Exec format error" in one_line(ran.stderr)


def test_sanitizers_have_a_place_of_their_own(room: Room, compiler: Callable[[str], str]) -> None:
    told = 'open(made, "w").write(" ".join(sys.argv))'
    assert room.build("--sanitize", CC=compiler(told)).returncode == 0
    made = room.folder / "build" / "native-asan" / building.MODULE
    assert "-fsanitize=address,undefined" in made.read_text()
    assert not room.module.exists()
