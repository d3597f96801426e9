"""Installs packages: runs pip as a child process, and shortens the error messages of pip."""

from __future__ import annotations

import asyncio
import importlib.util
import os
import re
import sys
import sysconfig
from collections.abc import Sequence
from pathlib import Path

from polyver.compositions.runtimes.process._locks import FileLock
from polyver.compositions.runtimes.process._packages import PackageUnusable
from polyver.compositions.runtimes.process._restarts import Ending
from polyver.compositions.runtimes.process._subprocesses import ProcessSpec, Supervised

__all__ = ["EnvironmentInstaller", "InstallFailed", "bin_of", "libraries_of"]

_PASSED = ("PATH", "HOME", "LANG", "LC_ALL", "TMPDIR", "SSL_CERT_FILE", "SSL_CERT_DIR")
_PASSED_TOO = re.compile(r"PIP_\w+|REQUESTS_CA_BUNDLE|(https?|all|no)_proxy", re.IGNORECASE)
_OFFLINE = re.compile(
    r"NewConnectionError|Temporary failure in name resolution|Name or service not known"
    r"|Network is unreachable|Connection refused|ConnectTimeout|Could not fetch URL|ProxyError"
)
_ASK_EVERY = 0.1
_QUIET = ("--disable-pip-version-check", "--no-input", "--no-color", "--progress-bar=off")


class InstallFailed(PackageUnusable):
    """pip could not install or download a package. Another try may succeed."""

    reason = "BuildFailed"


def bin_of(environment: Path) -> Path:
    """Return the subfolder of a virtual environment that contains the programs."""
    return environment / "bin"


def libraries_of(environment: Path) -> Path:
    """Return the subfolder of a virtual environment that contains the Python packages."""
    found = {"base": str(environment), "platbase": str(environment)}
    return Path(sysconfig.get_path("purelib", "venv", found))


class EnvironmentInstaller:
    """Creates virtual environments, and installs function packages into them."""

    def __init__(self, folder: Path, *, timeout: float) -> None:
        """Create an installer. `folder` is for its own files, and `timeout` is in seconds."""
        self._folder = folder
        self._timeout = timeout

    async def make(self, environment: Path, log: Path) -> None:
        """Create an empty virtual environment."""
        argv = [sys.executable, "-m", "venv", "--without-pip", str(environment)]
        await self._run(argv, log, "no environment can be created")

    async def install(self, environment: Path, what: str, log: Path) -> None:
        """Install a folder or a wheel, with its dependencies, into a virtual environment."""
        python = str(bin_of(environment) / "python")
        argv = [*await self._pip(log), "--python", python, "install", *_QUIET]
        await self._run([*argv, "--no-warn-script-location", what], log, "it cannot be installed")

    async def download(self, requirement: str, to: Path, log: Path) -> None:
        """Download the wheel of a requirement into the folder `to`, without its dependencies."""
        argv = [*await self._pip(log), "download", *_QUIET, "--no-deps", "--only-binary=:all:"]
        await self._run(
            [*argv, "--dest", str(to), requirement], log, f"{requirement} cannot be fetched"
        )

    async def _pip(self, log: Path) -> Sequence[str]:
        """Return the command that runs pip.

        If polyver's Python has no pip, first create a virtual environment with pip.
        """
        if importlib.util.find_spec("pip"):
            return [sys.executable, "-m", "pip"]
        own = self._folder / f"pip-{sys.version_info.major}.{sys.version_info.minor}"
        while (lock := FileLock.take(own.with_name(f"{own.name}.lock"), shared=False)) is None:
            await asyncio.sleep(_ASK_EVERY)
        try:
            if not (own / "complete").exists():
                argv = [sys.executable, "-m", "venv", "--clear", str(own)]
                await self._run(argv, log, "pip is not available")
                (own / "complete").touch()
        finally:
            lock.release()
        return [str(bin_of(own) / "python"), "-m", "pip"]

    async def _run(self, argv: Sequence[str], log: Path, failing: str) -> None:
        order = ProcessSpec(argv, _environment(), str(self._folder), str(log))
        program = await Supervised.start(order)
        try:
            async with asyncio.timeout(self._timeout):
                ending = await program.wait()
        except TimeoutError:
            raise InstallFailed(f"{failing} within {self._timeout:.0f} s") from None
        finally:
            program.kill()
            await program.wait()
        if ending.code:
            raise _failed(failing, ending)


def _environment() -> dict[str, str]:
    """Return the environment variables for pip, such as those that set its package index."""
    return {
        name: value
        for name, value in os.environ.items()
        if name in _PASSED or _PASSED_TOO.fullmatch(name)
    }


def _failed(failing: str, ending: Ending) -> InstallFailed:
    hint = ""
    if _OFFLINE.search(ending.said):
        hint = "the package index cannot be reached: is there a network?"
    elif "(from versions: none)" in ending.said:
        hint = "the package index does not have it, or cannot be reached"
    return InstallFailed(f"{failing}: {essence(ending)}", hint=hint)


def essence(ending: Ending) -> str:
    r"""Return the lines of pip's output that explain the failure.

    If a subprocess of pip has failed, these are the last lines of its output. Otherwise, these are
    the lines that begin with ERROR or, if there are none, the last lines of pip's output.

    >>> said = "failed:\n [1 lines of output]\n no compiler\n [end of output]\nnote: x"
    >>> essence(Ending(1, said=said)).splitlines()[-1]
    'no compiler'
    """
    inner, found, _ = ending.said.rpartition("[end of output]")
    if found:
        lines = [line.strip() for line in inner.splitlines() if line.strip()]
        return "\n".join(line for line in lines[-5:] if "lines of output]" not in line)[-600:]
    errors = [line for line in ending.said.splitlines() if line.startswith("ERROR:")]
    return "\n".join(errors[-3:])[-600:] or ending.last_lines or ending.fact
