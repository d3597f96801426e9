"""What an engine is: it makes documents of one version's template and what a user wrote."""

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
    """What a template is rendered with."""

    parameters: ReadOnlyObject
    """The properties as the user wrote them; checking and defaulting them is the engine's part."""
    context: ReadOnlyObject
    """What the template gets to know of its surroundings."""
    at: str
    """The place in the application: `spec.components[0]`, `spec.components[0].traits[1]`."""
    template: str
    """What messages call the template: `webservice 1.2.3`."""

    @property
    def properties(self) -> str:
        """Where the parameters were written."""
        return f"{self.at}.properties"


@dataclass(frozen=True, slots=True)
class TemplateDocument:
    """An object that a template made."""

    object: dict[str, Any]
    at: str
    """Where the template makes it: `document 2`, `outputs.service`."""
    name: str = ""
    """The key under `outputs`; empty for the main one, and for those that have none."""


@dataclass(frozen=True, slots=True)
class TemplateOutput:
    """All that a template made."""

    output: TemplateDocument | None = None
    """The main object: the workload of a component."""
    outputs: Sequence[TemplateDocument] = ()
    """All others."""
    patched: Mapping[str, dict[str, Any]] = field(default_factory=dict)
    """What a trait changes of the objects in `context.output` and `context.outputs`: each of them
    whole, as it is to be, by its name; the name of the main one is empty."""


class UnfitParameters(PolyverError):
    """Parameters that do not fit, for one reason or several."""

    def __init__(self, errors: Sequence[PolyverError]) -> None:
        first = errors[0]
        super().__init__(first.fact, at=first.at, hint=first.hint)
        self.errors = tuple(errors)

    def __str__(self) -> str:
        return "; ".join(map(str, self.errors))


class TemplateEngine(Protocol):
    """Renders templates of one sort; one that blocks ends by itself after a time."""

    def render(self, schematic: ReadOnlyObject, given: TemplateInput) -> TemplateOutput:
        """The documents of a template.

        `schematic` is the engine's block of one version: what is in `schematic.gotemplate`. All
        that is wrong with the parameters is raised as one `UnfitParameters`, each of them with its
        place in the application; anything else as another `PolyverError`.
        """
        ...


Engines = Mapping[str, TemplateEngine]
"""The engines that there are, by the field of `schematic` that each renders."""
