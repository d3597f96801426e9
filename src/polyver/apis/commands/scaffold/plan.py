"""Plan the files that `polyver create api` writes to a project.

The whole plan is made before the first file is written, so that an error leaves the project
unchanged.
"""

from __future__ import annotations

import builtins
import keyword
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from polyver.apis.commands.scaffold import templates as texts
from polyver.apis.commands.scaffold.project import KindsPackage, Project
from polyver.apis.commands.scaffold.python_edits import AddedVersion, add_import, add_version
from polyver.apis.commands.scaffold.sources import FoundKind, NotEditable, PythonSource, read_source
from polyver.cli.exit_codes import Misused
from polyver.cli.file_writes import File
from polyver.languages.values.names import dns_1035_label_problems, dns_subdomain_problems

__all__ = ["NewApi", "ScaffoldPlan", "plan"]

_USED = {*dir(builtins), "apis", "converted", "given", "pytest", "reconcile", "st", "whole"}
"""Names that the generated code uses. The variable of a kind must not have one of these names."""
_VERSION = re.compile("v[1-9][0-9]*((alpha|beta)[1-9][0-9]*)?")


@dataclass(frozen=True, slots=True)
class NewApi:
    """The arguments of `polyver create api`."""

    group: str
    version: str
    kind: str
    storage: bool = False
    plural: str = ""
    scope: Literal["Namespaced", "Cluster"] | None = None

    def check(self) -> None:
        """Raise an error if an API server would refuse a name, or if Python cannot use the name."""
        if not re.fullmatch("[A-Z][A-Za-z0-9]{0,62}", self.kind):
            hint = "use letters and digits, and begin with a capital, as in CronTab"
            raise Misused(f"--kind {self.kind} is not a valid name", hint=hint)
        if not _VERSION.fullmatch(self.version) or dns_1035_label_problems(self.version):
            hint = "write v1, v2beta1 or v3alpha1"
            raise Misused(f"--version {self.version} is not an API version", hint=hint)
        if "." not in self.group or dns_subdomain_problems(self.group):
            hint = "write a domain such as stable.example.com"
            raise Misused(f"--group {self.group} is not a domain name with a dot", hint=hint)
        if self.plural and (problems := dns_1035_label_problems(self.plural)):
            raise Misused(f"--plural {self.plural} cannot be a name: {problems[0]}")


@dataclass(frozen=True, slots=True)
class ScaffoldPlan:
    """The files to write, and what the command decided for a new version of an existing kind."""

    files: Sequence[File]
    added: AddedVersion | None = None
    """The decisions for a new version of an existing kind, which the command prints.

    None for a new kind.
    """


def plan(project: Project, api: NewApi) -> ScaffoldPlan:
    """Plan the files for a new kind, or for a new version of an existing kind."""
    api.check()
    sources = [*project.sources()]
    kind = _kind(sources, api)
    if kind is None:
        return ScaffoldPlan([*_new_kind(project, api)])
    return _new_version(project, kind, api, sources)


def _kind(sources: Sequence[PythonSource], api: NewApi) -> FoundKind | None:
    found = [each for source in sources for each in source.kinds() if each.kind == api.kind]
    for kind in found:
        if kind.group is None:
            fact = f"the group of {api.kind} is not a string literal, so it cannot be read"
            hint = 'write a literal such as group="stable.example.com"'
            raise NotEditable(fact, at=kind.place, hint=hint)
    same = [kind for kind in found if kind.group == api.group]
    if len(same) > 1:
        places = f"{same[0].place} and {same[1].place}"
        raise NotEditable(f"{api.kind} of {api.group} is declared twice", at=places)
    return same[0] if same else None


# A new version of an existing kind.


def _new_version(
    project: Project, kind: FoundKind, api: NewApi, sources: Sequence[PythonSource]
) -> ScaffoldPlan:
    _check_version(kind, api, sources)
    try:
        added = add_version(kind, api.version, storage=api.storage)
    except NotEditable as error:
        raise NotEditable(error.fact, at=error.at, hint=error.hint or _by_hand(kind, api)) from None
    module = project.module_of(kind.source.path)
    law = project.root / "tests" / f"test_{kind.name}.py"
    table = project.root / "tests" / f"test_{kind.name}_{api.version}.py"
    _check_free(project, [table])
    pair, has_spec = (added.source, api.version), added.has_spec
    text = texts.table_test(api.kind, kind.name, module, pair, has_spec=has_spec)
    files = [File(kind.source.path, added.text, kind.source.text), File(table, text)]
    if not law.exists():
        example = f"{api.group}/{added.source}"
        text = texts.law_test(api.kind, kind.name, module, example, has_spec=has_spec)
        files.insert(1, File(law, text))
    return ScaffoldPlan(files, added)


def _check_version(kind: FoundKind, api: NewApi, sources: Sequence[PythonSource]) -> None:
    if api.plural or api.scope:
        fact = f"{api.kind} already has its plural and scope"
        raise Misused(fact, at=kind.place, hint="omit --plural and --scope, or change them there")
    for version in kind.source.versions(kind.name):
        if version.name == api.version:
            at = f"{kind.source.shown}:{version.call.lineno}"
            hint = "to store it, write storage=True there and storage=False at the other versions"
            raise Misused(
                f"{api.kind} already has {api.version}", at=at, hint=hint if api.storage else ""
            )
    for source in sources:
        if source is not kind.source and kind.name in source.names():
            is_own = any(each.name == kind.name for each in source.kinds())
            if not is_own and source.versions(kind.name):
                fact = f"versions of {api.kind} are in {source.shown} as well"
                raise NotEditable(fact, at=kind.place, hint=_by_hand(kind, api))


def _by_hand(kind: FoundKind, api: NewApi) -> str:
    others = ", and write storage=False at all other versions" if api.storage else ""
    return (
        f'do it manually: declare a class below @{kind.name}.version("{api.version}", '
        f'storage={api.storage}), connect it with @{kind.name}.edge(…, "{api.version}"){others}'
    )


# A new kind.


def _new_kind(project: Project, api: NewApi) -> Iterator[File]:
    home = project.home()
    name = _name(project, home, api)
    module, test = home.folder / f"{name}.py", project.root / "tests" / f"test_{name}.py"
    _check_free(project, [module, test])
    toml = project.with_kinds(home.module)
    if toml is not None:
        yield File(project.root / "pyproject.toml", toml, project.toml)
    yield from _packages(home, project.root)
    yield _init(project, home, name)
    arguments = [f'group="{api.group}"']
    arguments += [f'plural="{api.plural}"'] if api.plural else []
    arguments += [f'scope="{api.scope}"'] if api.scope == "Cluster" else []
    cls = f"{api.kind}{api.version.capitalize()}"
    yield File(module, texts.kind_module(api.kind, name, cls, api.version, arguments))
    example = f"{api.group}/{api.version}"
    yield File(
        test, texts.law_test(api.kind, name, f"{home.module}.{name}", example, has_spec=True)
    )


def _name(project: Project, home: KindsPackage, api: NewApi) -> str:
    """Choose the name of a kind's variable and module; append the group if the name is taken."""
    short = api.kind.lower()
    short += "_" if keyword.iskeyword(short) or short in _USED else ""
    init = home.folder / "__init__.py"
    taken = read_source(init, project.shown(init)).names() if init.is_file() else set()
    if (home.folder / f"{short}.py").exists() or short in taken:
        return f"{short}_{re.sub('[^a-z0-9]', '_', api.group)}"
    return short


def _packages(home: KindsPackage, root: Path) -> Iterator[File]:
    """Yield an `__init__.py` for each missing folder between the root and the package of kinds."""
    for _ in home.module.split(".")[1:]:
        home_up = home.folder.parent
        if home_up != root and not home_up.exists():
            yield File(home_up / "__init__.py", "")
        home = KindsPackage(home_up, home.module, home.is_new)


def _init(project: Project, home: KindsPackage, name: str) -> File:
    path = home.folder / "__init__.py"
    if home.is_new:
        return File(path, texts.package(name))
    source = read_source(path, project.shown(path))
    return File(path, add_import(source, name), source.text)


def _check_free(project: Project, paths: Sequence[Path]) -> None:
    for path in paths:
        if path.exists() or path.is_symlink():
            fact = f"{project.shown(path)} already exists"
            raise Misused(fact, hint="move it, or choose another name")
