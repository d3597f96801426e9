"""The project that `polyver create` edits: its folder, its pyproject.toml, and its Python files."""

from __future__ import annotations

import keyword
import re
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from polyver.apis.commands.kinds import kinds_said, table
from polyver.apis.commands.scaffold import templates as texts
from polyver.apis.commands.scaffold.sources import NotEditable, PythonSource, read_source
from polyver.cli.exit_codes import Misused, UnreadableInput
from polyver.cli.files import SUFFIXES

__all__ = ["KindsPackage", "Project", "read_project"]

_TOML = "pyproject.toml"


@dataclass(frozen=True, slots=True)
class KindsPackage:
    """The Python package to which new kinds are added."""

    folder: Path
    module: str
    is_new: bool


@dataclass(frozen=True, slots=True)
class Project:
    """A project: its folder, and its pyproject.toml as text and as parsed data.

    The text is None if there is no pyproject.toml.
    """

    root: Path
    toml: str | None
    said: dict[str, Any]

    @property
    def kinds(self) -> list[str] | None:
        """The modules, files or folders of kinds that the project lists; None if it lists none."""
        return kinds_said(self.said, self.shown(self.root / _TOML))

    def _entries(self) -> list[str]:
        return [f"{self.package()}.kinds"] if self.kinds is None else self.kinds

    def shown(self, path: Path) -> str:
        """Return a path relative to the current folder; other paths are returned unchanged."""
        here = Path.cwd()
        return str(path.relative_to(here)) if path.is_relative_to(here) else str(path)

    def sources(self) -> Iterator[PythonSource]:
        """Yield the Python files that may declare kinds."""
        seen: set[Path] = set()
        for entry in self._entries():
            for file in self._files(entry):
                if file not in seen:
                    seen.add(file)
                    if _may_declare(file):
                        yield read_source(file, self.shown(file))

    def _files(self, entry: str) -> list[Path]:
        path = self.root / entry
        if not _is_path(entry, self.root):
            found = [self._module(entry, base) for base in self._bases()]
            path = next((each for each in found if each.exists()), path)
        if path.is_dir():
            inside = [each for each in sorted(path.rglob("*.py")) if each.is_file()]
            return [each for each in inside if "/." not in f"/{each.relative_to(path)}"]
        return [path] if path.suffix == ".py" and path.is_file() else []

    def _bases(self) -> tuple[Path, Path]:
        return self.root / "src", self.root

    def _module(self, name: str, base: Path) -> Path:
        path = base.joinpath(*name.split("."))
        return path if path.is_dir() else path.with_name(f"{path.name}.py")

    def home(self) -> KindsPackage:
        """Return the package to which new kinds are added.

        The project's pyproject.toml lists where its kinds are. polyver uses the first entry of this
        list that is a package, or for which a package can be created.
        """
        for entry in self._entries():
            if found := self._home(entry):
                return found
        fact = (
            "none of the modules with kinds of this project is a package that can hold more kinds"
        )
        hint = f'add "{self.package()}.kinds" to the kinds in [tool.polyver], and run this again'
        raise Misused(fact, at=self.shown(self.root / _TOML), hint=hint)

    def _home(self, entry: str) -> KindsPackage | None:
        if _is_path(entry, self.root):
            path = self.root / entry / "__init__.py"
            return (
                KindsPackage(path.parent, self.module_of(path), is_new=False)
                if path.exists()
                else None
            )
        if not all(map(str.isidentifier, entry.split("."))):
            return None
        for base in self._bases():
            path = self._module(entry, base)
            if path.is_dir():
                return KindsPackage(path, entry, is_new=not (path / "__init__.py").exists())
            if path.exists():
                return None
        top = entry.partition(".")[0]
        is_flat = (self.root / top).is_dir() and not (self.root / "src" / top).is_dir()
        base = self.root if is_flat else self.root / "src"
        return KindsPackage(base.joinpath(*entry.split(".")), entry, is_new=True)

    def module_of(self, path: Path) -> str:
        """Return the name by which the module in a file is imported."""
        top = self.root / "src"
        if not path.is_relative_to(top) or (top / "__init__.py").exists():
            top = path.parent
            while (top / "__init__.py").exists():
                top = top.parent
        steps = path.relative_to(top).with_suffix("").parts
        return ".".join(steps[:-1] if steps[-1] == "__init__" else steps)

    def package(self) -> str:
        """Return the name of the project's top-level package."""
        name = table(self.said, "project").get("name")
        found = name if isinstance(name, str) else self.root.name
        made = re.sub("[^a-z0-9]+", "_", found.lower()).strip("_")
        taken = made in sys.stdlib_module_names or made in ("polyver", "tests")
        if not made.isidentifier() or keyword.iskeyword(made) or taken:
            fact = f'the name of this project, "{found}", is not a valid package name'
            hint = f"change the [project] name in {_TOML}, or choose a folder with --output"
            raise Misused(fact, at=self.shown(self.root), hint=hint)
        return made

    def with_kinds(self, module: str) -> str | None:
        """Return the text of pyproject.toml with a module of kinds added.

        Return None if pyproject.toml already has a list of kinds.
        """
        if self.toml is None:
            return texts.pyproject(self.package(), module)
        if self.kinds is not None:
            return None
        path = "" if self._has_pytest() or not self._is_below_src(module) else "src"
        text = self._added(self.toml, texts.tool_sections(module, path=path), module)
        self._check(text, module)
        return text

    def _added(self, toml: str, sections: str, module: str) -> str:
        newline = "\r\n" if "\r\n" in toml else "\n"
        header = re.search(r"^\[tool\.polyver\][^\n]*\n", toml, re.MULTILINE)
        if header:
            end = header.end()
            return f'{toml[:end]}kinds = ["{module}"]{newline}{toml[end:]}'
        gap = "" if not toml else "\n" if toml.endswith("\n") else "\n\n"
        return toml + (gap + sections).replace("\n", newline)

    def _is_below_src(self, module: str) -> bool:
        return not self._module(module, self.root).parent.is_dir()

    def _has_pytest(self) -> bool:
        files = ("pytest.ini", ".pytest.ini", "tox.ini", "setup.cfg", "pytest.toml")
        return "pytest" in table(self.said, "tool") or any(
            (self.root / name).exists() for name in files
        )

    def _check(self, text: str, module: str) -> None:
        """Raise an error unless the new text lists the module, and has no other change."""
        try:
            found = tomllib.loads(text)
        except ValueError:
            found = {}
        tool = found.get("tool", {})
        kinds = tool.get("polyver", {}).pop("kinds", None)
        if "pytest" not in table(self.said, "tool"):
            tool.pop("pytest", None)
        if kinds != [module] or _filled(found) != _filled(self.said):
            raise NotEditable(
                f"{_TOML} cannot be edited safely",
                at=self.shown(self.root / _TOML),
                hint=f'write [tool.polyver] kinds = ["{module}"] to it, and run this again',
            )


def _may_declare(file: Path) -> bool:
    """Report whether to parse a file as one that may declare kinds.

    A file that cannot be read is parsed too: parsing it raises the error for the user.
    """
    try:
        content = file.read_bytes()
    except OSError:
        return True
    return b"polyver" in content or b".version(" in content


def _is_path(entry: str, root: Path) -> bool:
    path = root / entry
    return path.suffix in (".py", *SUFFIXES) or "/" in entry or path.is_dir()


def _filled(said: dict[str, Any]) -> dict[str, Any]:
    """Return the parsed pyproject.toml without empty `tool` tables, for comparing two of them."""
    tool = {name: each for name, each in table(said, "tool").items() if each != {}}
    return {**said, "tool": tool}


def read_project(output: str | None) -> Project:
    """Read the project in the folder `output`, by default in the current folder."""
    root = Path(output or ".").resolve()
    if root.exists() and not root.is_dir():
        raise Misused(f"--output {output} is not a folder")
    file = root / _TOML
    if not file.exists():
        if output is None:
            _check_around(root)
        return Project(root, None, {})
    try:
        text = file.read_bytes().decode()
        return Project(root, text, tomllib.loads(text))
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise UnreadableInput(f"{file} cannot be read: {reason}") from None


def _check_around(root: Path) -> None:
    """Raise an error if a folder is inside of another project, because users rarely intend this."""
    for folder in root.parents:
        file = folder / _TOML
        if file.is_file() and b"[tool.polyver]" in file.read_bytes():
            fact = f"this folder is inside the project {folder}"
            hint = f"use --output {folder}, or --output . for a new project here"
            raise Misused(fact, hint=hint)
