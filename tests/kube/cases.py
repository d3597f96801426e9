"""Cases: what to ask an API server, as short lists of steps in data files.

A file in cases/ holds one document for each case; cases/given/ holds manifests that several cases
begin with. README.md beside this file says how a case is written.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from msgspec import UNSET, Struct, UnsetType, field
from tests.kube.hooks import Configuration  # noqa: TC002 (msgspec reads it)

from polyver.kube.objects import Document, load_manifests

HERE = Path(__file__).parent
METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE")


class Step(Struct, forbid_unknown_fields=True):
    """One thing to do; exactly one of the first fields says what."""

    get: str | None = field(default=None, name="GET")
    post: str | None = field(default=None, name="POST")
    put: str | None = field(default=None, name="PUT")
    patch: str | None = field(default=None, name="PATCH")
    delete: str | None = field(default=None, name="DELETE")
    kubectl: str | None = None
    watch: str | None = None
    webhook: str | None = None
    restart: str | None = None
    hooks: list[Configuration] | None = None

    body: Any = UNSET
    type: str = "json"
    accept: str = "json"
    headers: dict[str, str] = {}
    as_: str = field(default="admin", name="as")
    save: dict[str, str] = {}
    pick: list[str] = []
    omit: list[str] = []
    until: dict[str, Any] = {}
    while_: list[Step] = field(default_factory=list, name="while")
    events: int = 0

    @property
    def method(self) -> str | None:
        return next((m for m in METHODS if getattr(self, m.lower()) is not None), None)

    @property
    def path(self) -> str:
        path = getattr(self, self.method.lower()) if self.method else self.watch
        assert isinstance(path, str)
        return path

    @property
    def title(self) -> str:
        """How people call the step."""
        if self.method:
            return f"{self.method} {self.path}"
        named = {"kubectl": self.kubectl, "watch": self.watch, "webhook": self.webhook}
        named["restart"] = self.restart
        if self.hooks is not None:
            named["hooks"] = ", ".join(each.name for each in self.hooks) or "none"
        return next(f"{kind} {what}" for kind, what in named.items() if what is not None)

    @property
    def has_body(self) -> bool:
        return not isinstance(self.body, UnsetType)


class Case(Struct, forbid_unknown_fields=True):
    """A name, what it shows, what it begins with, and its steps."""

    case: str
    about: str
    steps: list[Step]
    given: list[str] = []


@cache
def load_cases(folder: Path = HERE / "cases") -> dict[str, Case]:
    """Every case by its name."""
    found: dict[str, Case] = {}
    for path in sorted(folder.glob("*.yaml")):
        for document in load_manifests(path.read_text(), path.name):
            case = document.read(Case)
            if case.case in found:
                raise document.error(f"there are two cases {case.case}", "case")
            for number, step in enumerate(case.steps):
                _check(step, document, "steps", number)
            found[case.case] = case
    return found


def load_given(name: str, folder: Path = HERE / "cases" / "given") -> list[Document]:
    """The manifests that a case begins with."""
    path = folder / f"{name}.yaml"
    return load_manifests(path.read_text(), path.name)


def _check(step: Step, document: Document, *path: str | int) -> None:
    said = [step.method, step.kubectl, step.watch, step.webhook, step.restart, step.hooks]
    if sum(what is not None for what in said) != 1:
        raise document.error("a step says exactly one thing to do", *path)
    for number, inner in enumerate(step.while_):
        _check(inner, document, *path, "while", number)


def known_differences(path: Path = HERE / "known.yaml") -> Iterator[KnownDifference]:
    """Where the embedded server differs from the real one on purpose, with the reason."""
    for document in load_manifests(path.read_text(), path.name):
        yield document.read(KnownDifference)


class KnownDifference(Struct, forbid_unknown_fields=True):
    """A field of a step in which we differ, and why; case and field may hold a `*`."""

    case: str
    field: str
    reason: str
    step: int = 0
    """Its number, from 1; 0 is every step."""

    def covers(self, case: str, step: int, field: str) -> bool:
        return self.step in (0, step) and _like(case, self.case) and _like(field, self.field)


def _like(text: str, pattern: str) -> bool:
    parts = map(re.escape, pattern.split("*"))
    return re.fullmatch(".*".join(parts), text) is not None
