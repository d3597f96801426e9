"""Decides which function packages may run, and finds the source of each package.

The source is a folder, a wheel or a requirement for a package index.

A user who may create a Function object must not be able to run any code. So the operator of polyver
lists the packages that may run, or allows all packages to which `file:` and `pypi:` references
refer.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar
from urllib.parse import unquote

from polyver.compositions.runtimes.interface import Reason
from polyver.core import PolyverError
from polyver.languages.values.manifests import Document, load_manifests

__all__ = [
    "Folder",
    "NotAllowed",
    "PackageUnusable",
    "Packages",
    "Requirement",
    "Source",
    "Wheel",
    "read_packages",
]

_REQUIREMENT = re.compile(
    r"(?P<name>[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?)\s*==\s*"
    r"(?P<version>[A-Za-z0-9][A-Za-z0-9.!+_-]*)"
)
_SPECIFIES = re.compile(r"[<>=~!]")
_LARGEST_MAP = 1 << 20


class PackageUnusable(PolyverError):
    """A package cannot be served. `reason` is the reason that conditions of its revision show."""

    reason: ClassVar[Reason] = "NotUsable"


class NotAllowed(PackageUnusable):
    """The operator of polyver has not allowed this package to run."""

    reason = "NotAllowed"


@dataclass(frozen=True, slots=True)
class Folder:
    """A package that is a folder on this machine."""

    path: Path


@dataclass(frozen=True, slots=True)
class Wheel:
    """A package that is a wheel, a built Python distribution, on this machine."""

    path: Path


@dataclass(frozen=True, slots=True)
class Requirement:
    """A package that is a Python distribution in a package index, pinned to one version.

    >>> Requirement.read("function-greet == 1.2.3").text
    'function-greet==1.2.3'
    """

    name: str
    version: str

    @classmethod
    def read(cls, text: str) -> Requirement:
        """Parse a requirement for one version. Raise PackageUnusable for any other text."""
        found = _REQUIREMENT.fullmatch(text.strip())
        if found is None:
            hint = "write name==1.2.3"
            raise PackageUnusable(f'"{text}" is not a requirement pinned with ==', hint=hint)
        return cls(found["name"], found["version"])

    @property
    def text(self) -> str:
        return f"{self.name}=={self.version}"


Source = Folder | Wheel | Requirement


@dataclass(frozen=True, slots=True)
class Packages:
    """The packages that may run."""

    named: Mapping[str, Source] = field(default_factory=dict)
    """The packages that the file of `--packages` lists, by package reference."""
    allows_others: bool = False
    """True with the option `--allow-packages`.

    Packages that the file does not list may then run too, if they have a `file:` or `pypi:`
    reference.
    """
    base: Path = field(default_factory=Path.cwd)
    """The folder to which relative paths in `file:` references are relative."""

    def find(self, reference: str) -> Source:
        """Return the source of a package. Raise PackageUnusable if it is missing or not allowed."""
        return _there(self.locate(reference))

    def locate(self, reference: str) -> Source:
        """Return the source of a package, even if it does not exist.

        Raise NotAllowed if the package must not run.
        """
        if reference in self.named:
            return self.named[reference]
        scheme, found, rest = reference.partition(":")
        if not found or scheme not in ("file", "pypi"):
            fact = f'the location of the package "{reference}" is unknown'
            hint = "list its folder, wheel or requirement in the file of --packages"
            raise NotAllowed(fact, hint=hint)
        if not self.allows_others:
            hint = "list it in the file of --packages, or start polyver with --allow-packages"
            raise NotAllowed(f'the package "{reference}" is not allowed to run', hint=hint)
        return Requirement.read(rest) if scheme == "pypi" else _local(rest, self.base)


def read_packages(file: Path) -> Mapping[str, Source]:
    """Read the file of `--packages`, which maps package references to their sources."""
    documents = load_manifests(_text(file), str(file))
    if len(documents) > 1:
        raise documents[1].error("there is a second document", hint="one mapping is expected")
    found = documents[0].read(dict[str, str]) if documents else {}
    return {each: _named(documents[0], each, file.parent) for each in found}


def _text(file: Path) -> str:
    try:
        with file.open("rb") as opened:
            content = opened.read(_LARGEST_MAP + 1)
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else str(error)
        raise PackageUnusable(f"{file} cannot be read: {why}", at="--packages") from None
    if len(content) > _LARGEST_MAP:
        raise PackageUnusable(f"{file} is larger than {_LARGEST_MAP >> 20} MiB", at="--packages")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise PackageUnusable("this is not UTF-8 text", at=f"{file}:{line}") from None


def _named(document: Document, reference: str, base: Path) -> Source:
    assert isinstance(document.value, dict)
    text = str(document.value[reference])
    try:
        if "/" not in text and _SPECIFIES.search(text):
            return Requirement.read(text)
        return _there(_local(text, base))
    except PackageUnusable as error:
        raise document.error(error.fact, reference, hint=error.hint) from None


def _local(text: str, base: Path) -> Source:
    """Parse the path of a folder or wheel: from a `file:` reference or `--packages` file."""
    if text.startswith("//"):
        host, slash, path = text[2:].partition("/")
        if host not in ("", "localhost"):
            hint = "write file:///path for a file on this machine"
            raise PackageUnusable(f'"{host}" is another machine', hint=hint)
        text = unquote(slash + path)
    if not text or "\0" in text:
        raise PackageUnusable("it has no path", hint="use a folder or a wheel")
    try:
        found = (base / text).resolve()
    except (OSError, ValueError, RuntimeError):  # too long, invalid UTF-8, or a loop of links
        raise PackageUnusable(f"there is no folder {text!r}") from None
    return Wheel(found) if found.suffix == ".whl" else Folder(found)


def _there(source: Source) -> Source:
    """Return the given source. Raise PackageUnusable if its folder or file does not exist."""
    match source:
        case Folder(path) if not _is(path, Path.is_dir):
            if _is(path, Path.exists):
                raise PackageUnusable(f"{path} is neither a folder nor a wheel")
            raise PackageUnusable(f"there is no folder {path}")
        case Wheel(path) if not _is(path, Path.is_file):
            raise PackageUnusable(f"there is no wheel {path}")
    return source


def _is(path: Path, what: Callable[[Path], bool]) -> bool:
    try:
        return what(path)
    except OSError:  # name too long, or no permission
        return False
