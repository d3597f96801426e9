"""Templates for the files of a new project; afterwards the user owns and edits them."""

from __future__ import annotations

from collections.abc import Sequence

__all__ = [
    "call",
    "edge",
    "kind_module",
    "law_test",
    "package",
    "pyproject",
    "reexport",
    "table_test",
    "tool_sections",
]

WIDTH = 88
"""The usual maximum line length of formatters."""


def call(start: str, arguments: Sequence[str]) -> str:
    """Return a call in one line, or with a line for each argument.

    >>> call("f", ["a", "b=1"])
    'f(a, b=1)'
    """
    line = f"{start}({', '.join(arguments)})"
    if len(line) <= WIDTH and "\n" not in line:
        return line
    inside = "".join(f"    {each},\n" for each in arguments)
    return f"{start}(\n{inside})"


def kind_module(kind: str, name: str, cls: str, version: str, arguments: Sequence[str]) -> str:
    """Return a module with a kind, its first version and its controller; `arguments` are Kind's."""
    made = call(f"{name} = apis.Kind", [f'"{kind}"', *arguments])
    decorator = call(f"@{name}.version", [f'"{version}"', "storage=True"])
    return f'''"""{kind}: its versions, what is between them, and its controller."""

from typing import Any

from polyver import apis

{made}


{decorator}
class {cls}(apis.Fields):
    """A {kind}."""

    class Spec(apis.Fields):
        """What is asked for."""

        message: str = ""
        """An example: put fields of your own in its place."""

    class Status(apis.Fields):
        """What is there."""

        observedGeneration: int | None = None
        """The generation of the object that the controller has seen."""

    metadata: dict[str, Any]
    spec: Spec
    status: Status | None = None


@{name}.reconcile
def reconcile(obj: {cls}) -> apis.Outcome:
    """Say what should be there for an object: its status, and objects that it owns.

    It is called whenever that may not be so, and not once for each change.
    """
    status = {cls}.Status()
    status.observedGeneration = obj.metadata.get("generation")
    return apis.Outcome(status=status)
'''


def edge(name: str, source: str, target: str, function: str, rules: str) -> str:
    """Return an edge between two equal versions; `rules` is the type hint of its argument."""
    hint, returned = (f": {rules}", " -> None") if rules else ("", "")
    return f'''@{name}.edge("{source}", "{target}")
def {function}(rules{hint}){returned}:
    """What is different in {target}; each rule works in both directions."""
    # {target} is a copy of {source} so far. When a field gets another name or place there,
    # say so here, as in rules.move("spec.message", "spec.text"). A field that only one
    # of them has needs no rule: it is carried while an object is in the other.
'''


def reexport(name: str) -> str:
    """Return the line by which a package imports a kind."""
    return f"{_imported(f'.{name}', f'{name} as {name}')}\n"


def _imported(module: str, name: str) -> str:
    line = f"from {module} import {name}"
    return line if len(line) <= WIDTH else f"from {module} import (\n    {name},\n)"


def package(name: str) -> str:
    """Return the `__init__.py` of a package of kinds."""
    return f'"""The kinds of this project, each in a module of its own."""\n\n{reexport(name)}'


def law_test(kind: str, name: str, module: str, example: str, *, has_spec: bool) -> str:
    """Return tests of the round-trip property that hold for any number of versions."""
    spec = '\n        "spec": {},' if has_spec else ""
    return f'''"""{kind}: what holds for all of its versions, those of tomorrow too."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from polyver.testing.strategies import objects_from_schema

{_imported(module, name)}

Object = dict[str, Any]
KIND = {name}.definition()
VERSIONS = [version.name for version in KIND.versions]
ANY = st.sampled_from(VERSIONS)
OBJECTS = {{
    version.name: objects_from_schema(
        version.schema or {{}},
        api_version=KIND.api_version(version.name),
        kind=KIND.kind,
    )
    for version in KIND.versions
}}
EXAMPLES: list[Object] = [
    # Objects as people write them: add those that must never break.
    {{
        "apiVersion": "{example}",
        "kind": "{kind}",
        "metadata": {{"name": "first"}},{spec}
    }},
]


def converted(obj: Object, version: str) -> Object:
    """An object in another version; a single version converts to itself."""
    converter = {name}.converter
    return converter.convert(obj, version) if converter else obj


@given(st.data(), ANY, ANY, ANY)
def test_a_stop_on_the_way_changes_nothing(
    data: st.DataObject, start: str, stop: str, end: str
) -> None:
    """The law of conversion; where start and end are the same, it is the way back."""
    obj = data.draw(OBJECTS[start])
    assert converted(converted(obj, stop), end) == converted(obj, end)


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("example", EXAMPLES)
def test_examples_come_back_from_every_version(example: Object, version: str) -> None:
    own = example["apiVersion"].rpartition("/")[2]
    assert converted(converted(example, version), own) == example
'''


def table_test(kind: str, name: str, module: str, pair: tuple[str, str], *, has_spec: bool) -> str:
    """Return a table test of the conversion between two versions, for the user to fill in."""
    source, target = pair
    fields = '{"spec": {}}' if has_spec else "{}"
    return f'''"""{kind} {target}: what its objects are in {source}."""

from typing import Any

import pytest

{_imported(module, name)}

Object = dict[str, Any]
KIND = {name}.definition()
CASES: list[tuple[Object, Object]] = [
    # What is in {source}, and what that is in {target}: a line for each rule, and one for each
    # value that is special, as in
    # ({{"spec": {{"message": "hello"}}}}, {{"spec": {{"text": "hello"}}}}),
    ({fields}, {fields}),
]


def whole(version: str, fields: Object) -> Object:
    about = {{"apiVersion": KIND.api_version(version), "kind": KIND.kind}}
    return about | {{"metadata": {{"name": "first"}}}} | fields


def converted(obj: Object, version: str) -> Object:
    assert {name}.converter is not None
    return {name}.converter.convert(obj, version)


@pytest.mark.parametrize(("old", "new"), CASES)
def test_{source}_becomes_{target}(old: Object, new: Object) -> None:
    assert converted(whole("{source}", old), "{target}") == whole("{target}", new)


@pytest.mark.parametrize(("old", "new"), CASES)
def test_{target}_becomes_{source}(old: Object, new: Object) -> None:
    assert converted(whole("{target}", new), "{source}") == whole("{source}", old)
'''


def pyproject(package_name: str, kinds: str) -> str:
    """Return the pyproject.toml of a new project."""
    return f"""[build-system]
requires = ["hatchling"]
build-backend = "hatchling.build"

[project]
name = "{package_name.replace("_", "-")}"
version = "0.1.0"
requires-python = ">=3.11"
dependencies = ["polyver"]

[dependency-groups]
dev = ["hypothesis", "pytest"]

[tool.hatch.build.targets.wheel]
packages = ["src/{package_name}"]

[tool.mypy]
files = ["src", "tests"]
mypy_path = "src"

{tool_sections(kinds, path="src")}"""


def tool_sections(kinds: str, *, path: str) -> str:
    """Return the settings of polyver, and those of pytest if `path` is given."""
    own = f'[tool.polyver]\nkinds = ["{kinds}"]\n'
    return f'[tool.pytest.ini_options]\npythonpath = ["{path}"]\n\n{own}' if path else own
