"""Templates for the files of a new project, which the user owns and edits afterwards."""

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
    """Format a call in one line if it fits; otherwise write each argument on its own line.

    >>> call("f", ["a", "b=1"])
    'f(a, b=1)'
    """
    line = f"{start}({', '.join(arguments)})"
    if len(line) <= WIDTH and "\n" not in line:
        return line
    inside = "".join(f"    {each},\n" for each in arguments)
    return f"{start}(\n{inside})"


def kind_module(kind: str, name: str, cls: str, version: str, arguments: Sequence[str]) -> str:
    """Build a module with a kind, its first version and its controller.

    `arguments` are passed to `Kind`.
    """
    made = call(f"{name} = apis.Kind", [f'"{kind}"', *arguments])
    decorator = call(f"@{name}.version", [f'"{version}"', "storage=True"])
    return f'''"""{kind}: its versions, the conversions between them, and its controller."""

from typing import Any

from polyver import apis

{made}


{decorator}
class {cls}(apis.Fields):
    """A {kind}."""

    class Spec(apis.Fields):
        """The desired state."""

        message: str = ""
        """An example: replace it with your own fields."""

    class Status(apis.Fields):
        """The observed state."""

        observedGeneration: int | None = None
        """The generation of the object that the controller has observed."""

    metadata: dict[str, Any]
    spec: Spec
    status: Status | None = None


@{name}.reconcile
def reconcile(obj: {cls}) -> apis.Outcome:
    """Return the desired state for an object: its status, and the objects that it owns.

    It is called whenever the actual state may differ, not once for each change.
    """
    status = {cls}.Status()
    status.observedGeneration = obj.metadata.get("generation")
    return apis.Outcome(status=status)
'''


def edge(name: str, source: str, target: str, function: str, rules: str) -> str:
    """Build the code of an edge between a version and its copy, which still has the same fields.

    `rules` is the type hint of the argument of the generated function; if empty, there is no hint.
    """
    hint, returned = (f": {rules}", " -> None") if rules else ("", "")
    return f'''@{name}.edge("{source}", "{target}")
def {function}(rules{hint}){returned}:
    """Convert between {source} and {target}; each rule works in both directions."""
    # {target} is still a copy of {source}. Add a rule for each field that is renamed or
    # moved, for example rules.move("spec.message", "spec.text"). A field that only one
    # version has needs no rule: its value is preserved in the other version.
'''


def reexport(name: str) -> str:
    """Build the line that imports a kind in an `__init__.py`."""
    return f"{_imported(f'.{name}', f'{name} as {name}')}\n"


def _imported(module: str, name: str) -> str:
    line = f"from {module} import {name}"
    return line if len(line) <= WIDTH else f"from {module} import (\n    {name},\n)"


def package(name: str) -> str:
    """Return the `__init__.py` of a package of kinds."""
    return f'"""The kinds of this project, one module each."""\n\n{reexport(name)}'


def law_test(kind: str, name: str, module: str, example: str, *, has_spec: bool) -> str:
    """Build tests that an object is unchanged after conversion to another version and back."""
    spec = '\n        "spec": {},' if has_spec else ""
    return f'''"""{kind}: properties that hold for all of its versions, present and future."""

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
    # Typical objects: add those that must never break.
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
def test_converting_through_another_version_changes_nothing(
    data: st.DataObject, start: str, stop: str, end: str
) -> None:
    """The round-trip law; if start and end are equal, it tests a round trip."""
    obj = data.draw(OBJECTS[start])
    assert converted(converted(obj, stop), end) == converted(obj, end)


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("example", EXAMPLES)
def test_examples_survive_a_round_trip(example: Object, version: str) -> None:
    own = example["apiVersion"].rpartition("/")[2]
    assert converted(converted(example, version), own) == example
'''


def table_test(kind: str, name: str, module: str, pair: tuple[str, str], *, has_spec: bool) -> str:
    """Build a parametrised test of a conversion, without cases; the user adds the test cases."""
    source, target = pair
    fields = '{"spec": {}}' if has_spec else "{}"
    return f'''"""{kind}: conversion between {source} and {target}."""

from typing import Any

import pytest

{_imported(module, name)}

Object = dict[str, Any]
KIND = {name}.definition()
CASES: list[tuple[Object, Object]] = [
    # Fields in {source} and the same fields in {target}: one line for each rule and for each
    # special value, for example
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
    """Build the tables of pyproject.toml for polyver and, unless `path` is empty, for pytest.

    `path` is the value of `pythonpath`, the folder from which pytest imports the project.
    """
    own = f'[tool.polyver]\nkinds = ["{kinds}"]\n'
    return f'[tool.pytest.ini_options]\npythonpath = ["{path}"]\n\n{own}' if path else own
