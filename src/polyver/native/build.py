"""Builds the module `_reviews` from reviews.c with the machine's own C compiler, in its place.

It is the standard library alone and can be run as a file, because installations run it before
polyver is there: `python -m polyver.native.build`, or `python src/polyver/native/build.py`.

For fuzzing by hand, `--sanitize` builds into build/native-asan, from where Python loads it with the
runtime of the sanitizers before everything else:

    LD_PRELOAD=$(cc -print-file-name=libasan.so) ASAN_OPTIONS=detect_leaks=0 \\
        PYTHONPATH=build/native-asan python -c 'import _reviews'
"""

from __future__ import annotations

import argparse
import os
import shlex
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

__all__ = ["MODULE", "SOURCE", "Built", "NotBuilt", "build", "is_stale", "main", "tools"]

SOURCE = Path(__file__).with_name("reviews.c")
MODULE = "_reviews.abi3.so"
SANITIZED = Path("build", "native-asan")
COMPILERS = ("cc", "gcc", "clang")
PATIENCE = 300

# What it means when nothing was built.
FAILED, UNFIT, INTERRUPTED = 1, 3, 130

WARNINGS = ("-Wall", "-Wextra")
QUICK = ("-O2", "-DNDEBUG")
WATCHED = ("-O1", "-g", "-fno-omit-frame-pointer")
SANITIZERS = ("-fsanitize=address,undefined", "-fno-sanitize-recover=undefined")
# The symbols of Python are those of the process that loads the module.
SHARED = ("-bundle", "-undefined", "dynamic_lookup") if sys.platform == "darwin" else ("-shared",)

DEBIAN = "on Debian: apt install python3-dev gcc"
# Created and not executed: what it needs at run time need not be there when it is built.
LOAD = """
import sys
from importlib.machinery import ExtensionFileLoader
from importlib.util import module_from_spec, spec_from_loader
module_from_spec(spec_from_loader("_reviews", ExtensionFileLoader("_reviews", sys.argv[1])))
"""


class NotBuilt(Exception):
    """Why there is no module, in one line, and the exit code that says the same."""

    def __init__(self, reason: str, *, code: int = FAILED, output: str = "") -> None:
        super().__init__(reason)
        self.code = code
        self.output = output


@dataclass(frozen=True)
class Built:
    """What was done, in one line, and what the compiler has warned of."""

    line: str
    output: str = ""


def build(folder: Path = SOURCE.parent, *, force: bool = False, sanitize: bool = False) -> Built:
    """Build the module into a folder, if there is none that is up to date.

    It appears there as a whole or not at all. One that is older than its source is taken away if
    there can be no new one: it would do something else than its source says.
    """
    target = folder / MODULE
    if not SOURCE.is_file():
        raise NotBuilt(f"there is no {SOURCE}")
    try:
        if not force and _is_current(target, sanitize=sanitize):
            return Built(f"{target} is up to date")
        return _build(target, sanitize=sanitize)
    except OSError as error:
        _remove_stale(target)
        place = error.filename or target
        raise NotBuilt(f"{place}: {error.strerror or error}") from None
    except NotBuilt:
        _remove_stale(target)
        raise


def _build(target: Path, *, sanitize: bool) -> Built:
    compiler, headers = tools()
    target.parent.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(dir=target.parent, prefix=".building-") as folder:
        made = Path(folder, MODULE)
        output = _compile(compiler, headers, made, sanitize=sanitize)
        if not sanitize:
            _load(made, compiler)
        made.replace(target)
    return Built(f"{target} was built with {shlex.join(compiler)}", output)


def tools() -> tuple[list[str], list[str]]:
    """The command of the compiler, and the folders of Python's headers; or why there are none."""
    return _compiler(), _headers()


def _compiler() -> list[str]:
    """$CC, which has to be there and may have arguments, or the first that is."""
    wanted = os.environ.get("CC", "").strip()
    if not wanted:
        found = next(filter(shutil.which, COMPILERS), None)
        if found is None:
            raise NotBuilt(f"there is no C compiler; {DEBIAN}", code=UNFIT)
        return [found]
    try:
        command = shlex.split(wanted)
    except ValueError as error:
        raise NotBuilt(f"CC={wanted!r} is no command: {error}", code=UNFIT) from None
    if not shutil.which(command[0]):
        there = f"there is no program {command[0]!r}, which CC asks for"
        raise NotBuilt(f"{there}; unset CC to use what is on the PATH", code=UNFIT)
    return command


def _headers() -> list[str]:
    """Where those of this Python are, which has to be one that the limited API is for."""
    if sys.implementation.name != "cpython" or sysconfig.get_config_var("Py_GIL_DISABLED"):
        raise NotBuilt("it is for CPython with its lock, which this Python is not", code=UNFIT)
    folders = list(dict.fromkeys(map(sysconfig.get_path, ("include", "platinclude"))))
    if not any(Path(folder, "Python.h").is_file() for folder in folders):
        raise NotBuilt(f"there is no Python.h in {' or '.join(folders)}; {DEBIAN}", code=UNFIT)
    return folders


def _compile(compiler: Sequence[str], headers: Sequence[str], made: Path, *, sanitize: bool) -> str:
    """What the compiler has said, which are warnings if it has done its work."""
    flags = ("-std=c11", *WARNINGS, *((*WATCHED, *SANITIZERS) if sanitize else QUICK))
    included = [argument for folder in headers for argument in ("-I", folder)]
    shared = ("-fPIC", "-fvisibility=hidden", *SHARED)
    ran = _run([*compiler, *flags, *shared, *included, "-o", str(made), str(SOURCE)])
    if ran.returncode or not made.is_file():
        reason = f"{shlex.join(compiler)} could not compile {SOURCE} ({_ended(ran.returncode)})"
        raise NotBuilt(reason, output=ran.stderr)
    return ran.stderr


def _load(made: Path, compiler: Sequence[str]) -> None:
    ran = _run([sys.executable, "-I", "-c", LOAD, str(made)])
    if ran.returncode:
        reason = f"Python cannot load what {shlex.join(compiler)} has made of {SOURCE}"
        said = ran.stderr.strip().rpartition("\n")[2] or _ended(ran.returncode)
        raise NotBuilt(f"{reason}: {said}")


def _run(command: Sequence[str]) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(  # noqa: S603 - the compiler is the choice of whoever installs
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
            timeout=PATIENCE,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise NotBuilt(f"{command[0]} was not done within {PATIENCE} seconds") from None


def _ended(code: int) -> str:
    return f"exit code {code}" if code >= 0 else f"signal {-code}"


def _is_current(target: Path, *, sanitize: bool) -> bool:
    """Whether there is one that is newer than its source, and of use on this machine."""
    if not target.is_file() or is_stale(target):
        return False
    return sanitize or _run([sys.executable, "-I", "-c", LOAD, str(target)]).returncode == 0


def is_stale(target: Path) -> bool:
    """Whether a module is older than what it is built from."""
    sources = (SOURCE, Path(__file__))
    return max(each.stat().st_mtime_ns for each in sources) > target.stat().st_mtime_ns


def _remove_stale(target: Path) -> None:
    try:
        if target.is_file() and is_stale(target):
            target.unlink()
    except OSError as error:
        reason = f"{target} is older than {SOURCE}, and can neither be built nor removed"
        raise NotBuilt(f"{reason}: {error.strerror}") from None


def main(arguments: Sequence[str] | None = None) -> int:
    """Build, say in one line what was done or why not, and return the exit code.

    0: the module is there and up to date. 1: it could not be built. 2: the arguments are wrong.
    3: there is nothing to build it with.
    """
    asked = _parser().parse_args(arguments)
    folder = asked.into or (SANITIZED if asked.sanitize else SOURCE.parent)
    try:
        built = build(folder, force=asked.force, sanitize=asked.sanitize)
    except NotBuilt as error:
        line = f"polyver.native was not built: {error}; everything works without it, for more CPU"
        sys.stderr.write(f"{error.output}{line}\n")
        return error.code
    except KeyboardInterrupt:
        return INTERRUPTED
    sys.stderr.write(f"{built.output}{built.line}\n")
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m polyver.native.build",
        description="Build the compiled module of polyver, which is optional.",
    )
    parser.add_argument("--force", action="store_true", help="build it even if it is up to date")
    parser.add_argument(
        "--sanitize",
        action="store_true",
        help=f"with address and undefined sanitizers, into {SANITIZED}",
    )
    parser.add_argument("--into", type=Path, metavar="FOLDER", help="build it into this folder")
    return parser


if __name__ == "__main__":
    sys.exit(main())
