"""The interface of template engines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from polyver.core import PolyverError
from polyver.core.plain import ReadOnlyObject

__all__ = [
    "Engines",
    "TemplateDocument",
    "TemplateEngine",
    "TemplateInput",
    "TemplateOutput",
    "UnfitParameters",
]


@dataclass(frozen=True, slots=True)
class TemplateInput:
    """The input of a template."""

    parameters: ReadOnlyObject
    """The user's properties, as written; the engine validates them and adds defaults."""
    context: ReadOnlyObject
    """The context of the template."""
    at: str
    """Path in the application: `spec.components[0]`, `spec.components[0].traits[1]`."""
    template: str
    """Name of the template in messages: `webservice 1.2.3`."""

    @property
    def properties(self) -> str:
        """Path of the parameters."""
        return f"{self.at}.properties"


@dataclass(frozen=True, slots=True)
class TemplateDocument:
    """An object that a template made."""

    object: dict[str, Any]
    at: str
    """Its position in the template: `document 2`, `outputs.service`."""
    name: str = ""
    """The key under `outputs`; empty for the main object, and for those without a key."""


@dataclass(frozen=True, slots=True)
class TemplateOutput:
    """All output of a template."""

    output: TemplateDocument | None = None
    """The main object: the workload of a component."""
    outputs: Sequence[TemplateDocument] = ()
    """All other objects."""
    patched: Mapping[str, dict[str, Any]] = field(default_factory=dict)
    """Patched objects of `context.output` and `context.outputs`, each as a whole, by name; the name
    of the main object is empty.
    """


class UnfitParameters(PolyverError):
    """Parameters that are invalid, for one or several reasons."""

    def __init__(self, errors: Sequence[PolyverError]) -> None:
        first = errors[0]
        super().__init__(first.fact, at=first.at, hint=first.hint)
        self.errors = tuple(errors)

    def __str__(self) -> str:
        return "; ".join(map(str, self.errors))


class TemplateEngine(Protocol):
    """Renders templates of one language; a blocking one must have its own timeout."""

    def render(self, schematic: ReadOnlyObject, given: TemplateInput) -> TemplateOutput:
        """Render a template.

        `schematic` is the engine's part of one version, such as `schematic.gotemplate`. Problems of
        the parameters are raised together as `UnfitParameters`, each with its path in the
        application; other problems as another `PolyverError`.
        """
        ...


Engines = Mapping[str, TemplateEngine]
"""Engines by the field of `schematic` that each renders."""
