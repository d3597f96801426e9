"""Finds the command that runs the function of a package."""

from __future__ import annotations

import re
import sys
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from polyver.compositions.runtimes.process._packages import PackageUnusable
from polyver.kube.objects.codec import prepare
from polyver.languages.values.manifests import Document, load_manifests

__all__ = ["FILE", "FunctionCommand", "FunctionProject", "command_of", "filled", "read_project"]

FILE = "polyver-function.yaml"
_PYTHON = ("pyproject.toml", "setup.py", "setup.cfg")
_MODULE = "function.main"
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_LARGEST = 1 << 20
_USUAL = ("--address", "{address}", "--tls-certs-dir", "{tls}")


class FunctionCommand(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The command that runs a function, as the file `polyver-function.yaml` defines it.

    polyver also stores it in the record of an environment.
    """

    command: list[str]
    """The program and its arguments.

    polyver replaces {address} by the address at which the function must listen, {tls} by the folder
    with its certificates, and {python} by the path of polyver's own Python interpreter.
    """
    env: dict[str, str] = {}
    """Additional environment variables. polyver replaces {address}, {tls} and {python} in them too.
    """


prepare(FunctionCommand)


@dataclass(frozen=True, slots=True)
class FunctionProject:
    """The result of `read_project`: the command that a folder defines, and whether it is Python."""

    command: FunctionCommand | None = None
    """The command that the folder defines. None if it defines no command."""
    is_python: bool = False
    """True if the folder is a Python project, which must be installed."""


def read_project(folder: Path) -> FunctionProject:
    """Find out how to run the function in a folder.

    Raise PackageUnusable if the folder does not define how to run it.
    """
    is_python = any((folder / name).is_file() for name in _PYTHON)
    if (folder / FILE).is_file():
        return FunctionProject(_read(folder / FILE), is_python)
    if not is_python:
        hint = f"add a {FILE} that names a command, or a pyproject.toml"
        raise PackageUnusable("the folder does not define how its function is run", hint=hint)
    return FunctionProject(is_python=True)


def _read(file: Path) -> FunctionCommand:
    content = file.read_bytes()
    if len(content) > _LARGEST:
        raise PackageUnusable(f"{FILE} is larger than {_LARGEST >> 20} MiB")
    try:
        documents = load_manifests(content.decode("utf-8-sig"), FILE)
    except UnicodeDecodeError:
        raise PackageUnusable("this is not UTF-8 text", at=FILE) from None
    if len(documents) != 1:
        raise PackageUnusable("one document is expected", at=FILE, hint="set a command in it")
    _check_arguments(documents[0])
    found = documents[0].read(FunctionCommand)
    if not found.command or not found.command[0]:
        raise documents[0].error("there is no program to run", "command")
    for number, each in enumerate(found.command):
        if "\0" in each:
            raise documents[0].error("an argument contains a zero byte", "command", number)
    for name, value in found.env.items():
        if not _VARIABLE.fullmatch(name) or "\0" in value:
            raise documents[0].error(f'"{name}" cannot be a variable', "env", name)
    return found


def _check_arguments(document: Document) -> None:
    """Raise an error with a hint if an argument is a mapping instead of a string.

    This happens if the user writes {address} without quotes: in YAML, this is a mapping.
    """
    value = document.value if isinstance(document.value, dict) else {}
    arguments = value.get("command")
    for number, each in enumerate(arguments if isinstance(arguments, list) else ()):
        if isinstance(each, dict):
            hint = 'put it in quotes: "{address}", "{tls}", "{python}"'
            raise document.error("an argument is a mapping", "command", number, hint=hint)


def command_of(name: str, scripts: Collection[str], *, has_module: bool) -> FunctionCommand:
    """Return the command that runs the function of an installed distribution.

    The command runs the module `function.main`, as in Crossplane's template, or a script of the
    distribution.

    >>> command_of("greet", ["greet"], has_module=False).command
    ['greet']
    >>> command_of("greet", [], has_module=True).command
    ['python', '-m', 'function.main']
    """
    if has_module:
        return FunctionCommand(["python", "-m", _MODULE])
    for script in ("function", name):
        if script in scripts:
            return FunctionCommand([script])
    if len(scripts) == 1:
        return FunctionCommand([*scripts])
    hint = f"it needs a module {_MODULE}, or a script called function or {name}"
    raise PackageUnusable(f"{name} does not define how its function is run", hint=hint)


def filled(
    command: FunctionCommand, *, address: str, tls: str
) -> tuple[Sequence[str], Mapping[str, str]]:
    """Return the command line and the additional environment variables for one start of a function.

    If the command contains neither {address} nor {tls}, add the flags `--address` and
    `--tls-certs-dir`.

    >>> filled(FunctionCommand(["run"]), address="127.0.0.1:1", tls="/tls")[0]
    ['run', '--address', '127.0.0.1:1', '--tls-certs-dir', '/tls']
    >>> filled(FunctionCommand(["run", "--at={address}"]), address="127.0.0.1:1", tls="/tls")[0]
    ['run', '--at=127.0.0.1:1']
    >>> filled(FunctionCommand(["{python}", "serve.py"]), address="127.0.0.1:1", tls="/tls")[0][1:]
    ['serve.py', '--address', '127.0.0.1:1', '--tls-certs-dir', '/tls']
    """
    places = {"{address}": address, "{tls}": tls}

    def fill(text: str) -> str:
        for place, value in (places | {"{python}": sys.executable}).items():
            text = text.replace(place, value)
        return text

    texts = (*command.command, *command.env.values())
    usual = [] if any(place in text for place in places for text in texts) else [*_USUAL]
    argv = [fill(each) for each in (*command.command, *usual)]
    return argv, {name: fill(value) for name, value in command.env.items()}
