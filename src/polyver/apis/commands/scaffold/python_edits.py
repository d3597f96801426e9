"""Add a version to a user's Python module by editing its text; other text stays unchanged.

The edited text is parsed and compared with the original text. If there is any difference except the
planned additions, nothing is written.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from polyver.apis.commands.scaffold import templates as texts
from polyver.apis.commands.scaffold.sources import (
    FoundKind,
    FoundVersion,
    NotEditable,
    PythonSource,
)
from polyver.core import listed

__all__ = ["AddedVersion", "add_import", "add_version"]

_KEPT = ("columns", "status", "scale", "selectable")
"""The arguments of `@kind.version(…)` that a new version takes over from the copied version.

They describe fields. Other arguments, such as `served`, `deprecated` and `hub`, are not copied.
"""
_METHODS = ("convert_to", "convert_from")
_BOM = "\ufeff"


@dataclass(frozen=True, slots=True)
class AddedVersion:
    """The text of a module with the new version added, and the decisions to print."""

    text: str
    source: str
    """The version that was copied."""
    stored: str
    has_spec: bool
    """True if the class of the copied version declares a spec."""
    extend: str = ""
    """The name of the user's function that converts between all versions; empty if there is none.

    The user must extend this function, so that it also converts the new version.
    """


@dataclass(frozen=True, slots=True)
class _Edit:
    start: int
    end: int
    text: str


class _Places:
    """Computes the byte offsets of syntax nodes and lines in a source text."""

    def __init__(self, source: PythonSource) -> None:
        self.data = source.text.removeprefix(_BOM).encode()
        self._starts = [0]
        for line in self.data.splitlines(keepends=True):
            self._starts.append(self._starts[-1] + len(line))

    def span(self, node: ast.expr | ast.stmt | ast.keyword) -> tuple[int, int]:
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        start = self._starts[node.lineno - 1] + node.col_offset
        return start, self._starts[node.end_lineno - 1] + node.end_col_offset

    def line(self, number: int) -> int:
        """Return the offset at which a line begins; the first line is 1."""
        return self._starts[min(number, len(self._starts)) - 1]

    def text(self, node: ast.expr | ast.stmt | ast.keyword) -> str:
        start, end = self.span(node)
        return self.data[start:end].decode()

    def edited(self, edits: Sequence[_Edit], start: int = 0, end: int | None = None) -> str:
        """Return the text between two offsets, with the edits applied."""
        made, at = [], start
        for edit in sorted(edits, key=lambda each: each.start):
            made += [self.data[at : edit.start], edit.text.encode()]
            at = edit.end
        return b"".join([*made, self.data[at:end]]).decode()


def add_version(kind: FoundKind, version: str, *, storage: bool) -> AddedVersion:
    """Add a version to the module of a kind.

    The class of the new version is a copy of the class of the version that is declared last.
    """
    source, known = kind.source, kind.source.versions(kind.name)
    if not known:
        raise NotEditable(f"no version of {kind.kind} is declared in {source.shown}")
    stored = version if storage else _stored(kind, known)
    _check_hub(kind, known, moves=storage)
    places = _Places(source)
    edits = [edit for each in known for edit in _storage_edits(each, stored, places, source)]
    copied = known[-1]
    function, edge = _edge(kind, copied.name, version)
    new = _copy(kind, known, version, storage=storage, places=places)
    end = _end(kind, known)
    block = f"\n\n{new}\n\n\n{edge}" if edge else f"\n\n{new}\n"
    edits.append(_inserted(block, places, end, source))
    text = places.edited(edits)
    whole = next((each.name for each in source.decorated(kind.name, "convert")), "")
    added = {_class_name(copied, kind, version), *([function] if edge else [])}
    wanted = {name: name == stored for name in [*(each.name for each in known), version]}
    _check(kind, text, added, wanted)
    return AddedVersion(f"{_bom(source)}{text}", copied.name, stored, _has_spec(copied.cls), whole)


def add_import(source: PythonSource, name: str) -> str:
    """Return the text of an `__init__.py` with one more import of a kind."""
    places, line = _Places(source), texts.reexport(name)
    line_before, gap = _before_import(source.tree.body, name)
    edit = _inserted(f"{gap}{line}", places, line_before, source)
    text = places.edited([edit])
    before = [ast.dump(each) for each in source.tree.body]
    try:
        after = [ast.dump(each) for each in ast.parse(text).body]
        after.remove(ast.dump(ast.parse(line).body[0]))
    except (SyntaxError, ValueError):
        after = []
    if before != after:
        hint = "give each of its imports a line of its own, and run this again"
        raise NotEditable(f"{source.shown} cannot be edited safely", hint=hint)
    return f"{_bom(source)}{text}"


def _before_import(body: Sequence[ast.stmt], name: str) -> tuple[int, str]:
    """Return the line after which to insert an import, and the separator that it needs."""
    imports = [each for each in body if isinstance(each, ast.Import | ast.ImportFrom)]
    for each in imports:
        if isinstance(each, ast.ImportFrom) and each.level == 1 and (each.module or "") > name:
            return each.lineno - 1, ""
    if imports:
        return imports[-1].end_lineno or 0, ""
    has_doc = bool(body) and isinstance(body[0], ast.Expr)
    return (body[0].end_lineno or 0, "\n") if has_doc else (0, "")


def _inserted(block: str, places: _Places, line: int, source: PythonSource) -> _Edit:
    """Build the edit that inserts lines after a line, with the line endings of the file."""
    at = places.line(line + 1)
    if places.data[:at] and not places.data[:at].endswith((b"\n", b"\r")):
        block = f"\n{block}"
    return _Edit(at, at, block.replace("\r\n", "\n").replace("\n", _newline(source)))


def _stored(kind: FoundKind, known: Sequence[FoundVersion]) -> str:
    """Find the storage version in the source text; raise an error if the text does not state it."""
    if len(known) == 1 and _said(known[0], kind.source) is not False:
        return known[0].name
    found = [each.name for each in known if _said(each, kind.source)]
    if len(found) != 1:
        names = f"two storage versions, {listed(found)}" if found else "no storage version"
        raise NotEditable(f"{kind.kind} has {names}", at=kind.place)
    return found[0]


def _said(version: FoundVersion, source: PythonSource) -> bool | None:
    at = f"{source.shown}:{version.call.lineno}"
    if any(each.arg is None for each in version.call.keywords):
        raise NotEditable(f"{version.name} takes arguments that are not literals", at=at)
    match version.storage:
        case None:
            return None
        case ast.Constant(value=True | False | None as value):
            return value
        case _:
            raise NotEditable(f"storage of {version.name} is not the literal True or False", at=at)


def _check_hub(kind: FoundKind, known: Sequence[FoundVersion], *, moves: bool) -> None:
    """Raise an error if a new storage version would also become the hub of conversion methods.

    By default the storage version is the hub, and the methods of the user convert to the old hub.
    `moves` is True if the new version becomes the storage version.
    """
    has_methods = any(
        isinstance(each, ast.FunctionDef) and each.name in _METHODS
        for version in known
        for each in version.cls.body
    )
    says_hub = any(each.arg == "hub" for version in known for each in version.call.keywords)
    if moves and has_methods and not says_hub:
        stored = _stored(kind, known)
        fact = f"its versions convert through the hub {stored}, which a new storage version moves"
        hint = f"write hub=True at {stored}, and run this again"
        raise NotEditable(fact, at=kind.place, hint=hint)


def _storage_edits(
    version: FoundVersion, stored: str, places: _Places, source: PythonSource
) -> Iterator[_Edit]:
    """Yield the edits of a version's `storage` argument that make `stored` the storage version."""
    wanted = version.name == stored
    if _said(version, source) is wanted:
        return
    if version.storage is not None:
        yield _Edit(*places.span(version.storage), str(wanted))
        return
    arguments: list[ast.expr | ast.keyword] = [*version.call.args, *version.call.keywords]
    name, end = arguments[0], places.span(arguments[0])[1]
    if name.lineno == version.call.lineno:
        yield _Edit(end, end, f", storage={wanted}")
        return
    newline, indent = _newline(source), " " * name.col_offset
    if arguments[1:] and arguments[1].lineno > name.lineno:
        # A line of its own, so that a comment stays next to its argument.
        below = places.line(name.lineno + 1)
        yield _Edit(below, below, f"{indent}storage={wanted},{newline}")
    else:
        yield _Edit(end, end, f",{newline}{indent}storage={wanted}")


def _has_spec(cls: ast.ClassDef) -> bool:
    return any(
        isinstance(each, ast.AnnAssign)
        and isinstance(each.target, ast.Name)
        and each.target.id == "spec"
        for each in cls.body
    )


def _bom(source: PythonSource) -> str:
    return _BOM if source.text.startswith(_BOM) else ""


def _newline(source: PythonSource) -> str:
    return "\r\n" if "\r\n" in source.text else "\n"


def _class_name(copied: FoundVersion, kind: FoundKind, version: str) -> str:
    name, suffix = copied.cls.name, copied.name.capitalize()
    return (
        f"{name.removesuffix(suffix) if name.endswith(suffix) else kind.kind}{version.capitalize()}"
    )


def _copy(
    kind: FoundKind,
    known: Sequence[FoundVersion],
    version: str,
    *,
    storage: bool,
    places: _Places,
) -> str:
    copied = known[-1]
    name = _class_name(copied, kind, version)
    if name in kind.source.names():
        at = f"{kind.source.shown}:{copied.cls.lineno}"
        raise NotEditable(f"the class of {version} would be {name}, which already exists", at=at)
    kept = [places.text(each) for each in copied.call.keywords if each.arg in _KEPT]
    arguments = [f'"{version}"', f"storage={storage}", *kept]
    versions = [each.call for each in known]
    marks = [
        texts.call(f"@{kind.name}.version", arguments)
        if mark is copied.call
        else f"@{places.text(mark)}"
        for mark in copied.cls.decorator_list
        if mark is copied.call or mark not in versions
    ]
    start, end = places.span(copied.cls)
    body = places.edited([*_renamed(copied.cls, name, places)], start, end)
    return "\n".join([*marks, body.rstrip()])


def _renamed(cls: ast.ClassDef, name: str, places: _Places) -> Iterator[_Edit]:
    """Yield the edits that rename a copied class and remove its conversion methods."""
    start = places.span(cls)[0]
    at = places.data.index(cls.name.encode(), start + len("class"))
    yield _Edit(at, at + len(cls.name.encode()), name)
    gone = [
        each for each in cls.body if isinstance(each, ast.FunctionDef) and each.name in _METHODS
    ]
    spans = [_lines(each, places) for each in gone]
    only = len(gone) == len(cls.body)
    for number, (first, last) in enumerate(spans):
        indent = " " * cls.body[0].col_offset
        yield _Edit(first, last, f"{indent}pass\n" if only and number == 0 else "")
    for node in ast.walk(cls):
        if isinstance(node, ast.Name) and node.id == cls.name:
            first, last = places.span(node)
            if not any(start <= first < end for start, end in spans):
                yield _Edit(first, last, name)


def _lines(function: ast.FunctionDef, places: _Places) -> tuple[int, int]:
    """Return the offsets at which the lines of a function, with its decorators, begin and end."""
    first = min([function.lineno, *(mark.lineno for mark in function.decorator_list)])
    return places.line(first), places.line((function.end_lineno or first) + 1)


def _edge(kind: FoundKind, source: str, target: str) -> tuple[str, str]:
    """Build the name and the code of an edge between two versions.

    The code is empty if no edge is needed: the versions differ only in apiVersion, or one function
    of the user converts all versions.
    """
    name = f"{kind.name}_{source}_to_{target}"
    while name in kind.source.names():
        name += "_"
    if kind.strategy == "None" or kind.source.decorated(kind.name, "convert"):
        return name, ""
    rules = f"{kind.prefix}.Rules" if kind.prefix else ""
    return name, texts.edge(kind.name, source, target, name, rules)


def _end(kind: FoundKind, known: Sequence[FoundVersion]) -> int:
    """Return the number of the line after which the new version is inserted.

    This is the last line of the declared versions and edges.
    """
    between = [
        each for method in ("edge", "converts") for each in kind.source.decorated(kind.name, method)
    ]
    last = max(each.end_lineno or 0 for each in [*between, *(each.cls for each in known)])
    below = kind.source.text.removeprefix(_BOM).encode().splitlines()[last:]
    for number, line in enumerate(below, last + 1):
        if line.strip() and not re.match(rb"[ \t]+#", line):
            break
        last = number if line.strip() else last  # a comment that ends a class or a function
    return last


def _check(kind: FoundKind, text: str, added: set[str], storage: Mapping[str, bool]) -> None:
    """Raise an error unless the new text equals the old text apart from the planned additions."""
    source = kind.source
    problem = NotEditable(f"{source.shown} cannot be edited safely", at=kind.place)
    try:
        new = PythonSource(source.path, source.shown, text, ast.parse(text))
        found = {each.name: _said(each, new) for each in new.versions(kind.name)}
    except (SyntaxError, NotEditable):
        raise problem from None
    rest = [each for each in new.tree.body if getattr(each, "name", None) not in added]
    others = _without_storage(rest) == _without_storage(source.tree.body)
    if found != storage or not others or len(rest) + len(added) != len(new.tree.body):
        raise problem


def _without_storage(body: Sequence[ast.stmt]) -> list[str]:
    """Return statements in a comparable form, without their `storage` arguments."""
    parsed = ast.parse("\n".join(map(ast.unparse, body)))
    for node in ast.walk(parsed):
        if isinstance(node, ast.Call):
            node.keywords = [each for each in node.keywords if each.arg != "storage"]
    return [ast.dump(each) for each in parsed.body]
