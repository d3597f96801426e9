"""Find kinds in Python source text by its syntax, without running it.

So kinds are also found in code that cannot run yet. Their exact positions in the text are known,
which polyver needs for editing the text.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from polyver.cli.exit_codes import UnreadableInput

__all__ = ["FoundKind", "FoundVersion", "NotEditable", "PythonSource", "read_source"]

Function = ast.FunctionDef | ast.AsyncFunctionDef


class NotEditable(UnreadableInput):
    """Source text of a user that polyver cannot edit safely."""


@dataclass(frozen=True, slots=True)
class FoundVersion:
    """A class with the decorator `@kind.version(…)`, as found in the source text."""

    name: str
    cls: ast.ClassDef
    call: ast.Call

    @property
    def storage(self) -> ast.expr | None:
        """The expression of the argument `storage`; None if the argument is not given."""
        return next((each.value for each in self.call.keywords if each.arg == "storage"), None)


@dataclass(frozen=True, slots=True)
class FoundKind:
    """A kind that a module declares at its top level: `name = apis.Kind(kind, group=…)`."""

    source: PythonSource
    name: str
    kind: str
    group: str | None
    """The API group; None if it cannot be read from the source text.

    It can be read if the argument is a string literal, or a variable that is set to one.
    """
    call: ast.Call

    @property
    def place(self) -> str:
        return f"{self.source.shown}:{self.call.lineno}"

    @property
    def prefix(self) -> str:
        """The name by which this module uses polyver.apis, such as `apis` in `apis.Kind`."""
        return ast.unparse(self.call.func).rpartition(".")[0]

    @property
    def strategy(self) -> str | None:
        return _text(_argument(self.call, "strategy"), {})


@dataclass(frozen=True, slots=True)
class PythonSource:
    """A Python source file."""

    path: Path
    shown: str
    text: str
    tree: ast.Module

    def kinds(self) -> Iterator[FoundKind]:
        """Yield the kinds that are declared at the top level."""
        texts = {name: text for name, each in self._assigned() if (text := _text(each, {}))}
        imported = {"Kind", *self._imported_kinds()}
        for name, value in self._assigned():
            if isinstance(value, ast.Call) and _last_name(value.func) in imported:
                kind = _text(_argument(value, "kind", 0), texts)
                if kind is not None:
                    group = _text(_argument(value, "group"), texts)
                    yield FoundKind(self, name, kind, group, value)

    def versions(self, kind: str) -> list[FoundVersion]:
        """Return the versions of a kind; raise an error if one of their classes is nested."""
        calls = [each for each in ast.walk(self.tree) if _is_call_of(each, kind, "version")]
        found = [
            FoundVersion(_version_name(call, self.shown), cls, call)
            for cls in self.tree.body
            if isinstance(cls, ast.ClassDef)
            for call in cls.decorator_list
            if isinstance(call, ast.Call) and call in calls
        ]
        known = [each.call for each in found]
        for call in calls:
            if call not in known:
                at = f"{self.shown}:{call.lineno}"  # type: ignore[attr-defined]
                raise NotEditable(f"{kind}.version does not decorate a top-level class", at=at)
        return found

    def decorated(self, kind: str, method: str) -> list[Function]:
        """Return the top-level functions with the decorator `@kind.method` or `@kind.method(…)`."""
        return [
            each
            for each in self.tree.body
            if isinstance(each, Function)
            and any(
                _is_method(mark.func if isinstance(mark, ast.Call) else mark, kind, method)
                for mark in each.decorator_list
            )
        ]

    def names(self) -> set[str]:
        """Return the names that are defined or imported in this module."""
        found = {name for name, _ in self._assigned()}
        for each in self.tree.body:
            if isinstance(each, ast.ClassDef | Function):
                found.add(each.name)
            elif isinstance(each, ast.Import | ast.ImportFrom):
                found |= {(alias.asname or alias.name).partition(".")[0] for alias in each.names}
        return found

    def _assigned(self) -> Iterator[tuple[str, ast.expr]]:
        for each in self.tree.body:
            targets: list[ast.expr] = []
            if isinstance(each, ast.Assign):
                targets = each.targets
            elif isinstance(each, ast.AnnAssign):
                targets = [each.target]
            for target in targets:
                if isinstance(target, ast.Name) and each.value is not None:  # type: ignore[attr-defined]
                    yield target.id, each.value  # type: ignore[attr-defined]

    def _imported_kinds(self) -> Iterator[str]:
        for each in self.tree.body:
            if isinstance(each, ast.ImportFrom) and each.module == "polyver.apis":
                yield from (
                    alias.asname or alias.name for alias in each.names if alias.name == "Kind"
                )


def read_source(path: Path, shown: str) -> PythonSource:
    """Read and parse a Python file; the message of a syntax error names the line."""
    try:
        text = path.read_bytes().decode("utf-8")
        tree = ast.parse(text.removeprefix("\ufeff"))
    except UnicodeDecodeError:
        raise UnreadableInput(f"{shown} is not UTF-8 text") from None
    except OSError as error:
        raise UnreadableInput(f"{shown} cannot be read: {error.strerror}") from None
    except SyntaxError as error:
        raise UnreadableInput(
            f"{shown} is not valid Python: {error.msg}", at=f"{shown}:{error.lineno}"
        ) from None
    except (ValueError, RecursionError) as error:
        raise UnreadableInput(f"{shown} is not valid Python: {error}") from None
    return PythonSource(path, shown, text, tree)


def _argument(call: ast.Call, name: str, position: int | None = None) -> ast.expr | None:
    if position is not None and len(call.args) > position:
        return call.args[position]
    return next((each.value for each in call.keywords if each.arg == name), None)


def _text(value: ast.expr | None, known: dict[str, str]) -> str | None:
    if isinstance(value, ast.Constant) and isinstance(value.value, str):
        return value.value
    return known.get(value.id) if isinstance(value, ast.Name) else None


def _last_name(function: ast.expr) -> str:
    return ast.unparse(function).rpartition(".")[2]


def _is_method(found: ast.AST, kind: str, method: str) -> bool:
    return (
        isinstance(found, ast.Attribute)
        and found.attr == method
        and isinstance(found.value, ast.Name)
        and found.value.id == kind
    )


def _is_call_of(found: ast.AST, kind: str, method: str) -> bool:
    return isinstance(found, ast.Call) and _is_method(found.func, kind, method)


def _version_name(call: ast.Call, shown: str) -> str:
    name = _text(_argument(call, "name", 0), {})
    if name is None:
        fact = "the name of a version is not a string literal"
        raise NotEditable(fact, at=f"{shown}:{call.lineno}")
    return name
