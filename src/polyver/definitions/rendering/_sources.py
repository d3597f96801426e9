"""The sources of rendered objects: the resolved version of a reference, and its engine."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from polyver.core import PolyverError, listed
from polyver.core.plain import ReadOnlyObject
from polyver.definitions.publishing import known_revision
from polyver.definitions.rendering._engines import (
    Engines,
    TemplateEngine,
    TemplateInput,
    TemplateOutput,
)

__all__ = ["RenderingSource", "RenderingSources", "Revisions"]

Revisions = Mapping[tuple[str, str], ReadOnlyObject]
"""DefinitionRevisions, by their namespaces and names."""


@dataclass(frozen=True, slots=True)
class RenderingSource:
    """The resolved version of a reference, and the engine that renders it."""

    at: str
    resolution: ReadOnlyObject
    name: str
    """Name of the definition."""
    engine: TemplateEngine
    block: ReadOnlyObject
    """The engine's part of `schematic`."""

    @property
    def label(self) -> str:
        """Name in messages."""
        return f"{self.name} {self.resolution['version']}"

    @property
    def is_trait(self) -> bool:
        return bool(self.resolution["kind"] == "Trait")

    def render(self, properties: object, context: ReadOnlyObject) -> TemplateOutput:
        if properties is not None and not isinstance(properties, Mapping):
            raise PolyverError("properties is not a mapping", at=f"{self.at}.properties")
        return self.engine.render(
            self.block, TemplateInput(properties or {}, context, self.at, self.label)
        )


@dataclass(frozen=True, slots=True)
class RenderingSources:
    """The resolutions of an application, with their revisions and engines."""

    resolutions: Mapping[str, ReadOnlyObject]
    """Resolutions by the paths of their references."""
    revisions: Revisions
    engines: Engines

    def source(self, at: str) -> RenderingSource:
        """Return the source of a component or a trait."""
        place = f"{at}.type"
        resolution = self.resolutions.get(place)
        if resolution is None:
            raise PolyverError("no version was chosen for it", at=place)
        namespace, _, name = resolution["definition"].rpartition("/")
        content = self._content(resolution, namespace, place)
        label = f"{name} {resolution['version']}"
        engine, block = self._engine(content.get("schematic") or {}, label, place)
        return RenderingSource(at, resolution, name, engine, block)

    def _content(self, resolution: ReadOnlyObject, namespace: str, at: str) -> ReadOnlyObject:
        """Return the definition's content as published in this version."""
        name = resolution["revision"]
        found = self.revisions.get((namespace, name))
        known = known_revision(found) if found is not None else None
        if known is None:
            raise PolyverError(f"there is no DefinitionRevision {namespace}/{name}", at=at)
        if known.digest != resolution["digest"]:
            fact = f"DefinitionRevision {namespace}/{name} has the digest {known.digest}"
            hint = f"the application uses {resolution['digest']}"
            raise PolyverError(fact, at=at, hint=hint)
        return known.content

    def _engine(
        self, schematic: object, label: str, at: str
    ) -> tuple[TemplateEngine, ReadOnlyObject]:
        if not isinstance(schematic, Mapping):
            raise PolyverError(f"the schematic of {label} is not a mapping", at=at)
        there = [name for name, block in schematic.items() if block is not None]
        known = f"there are engines for {listed(sorted(self.engines))}"
        if len(there) != 1:
            what = f"{len(there)} schematics: {listed(there)}" if there else "no schematic"
            raise PolyverError(f"{label} has {what}", at=at, hint=f"it needs one; {known}")
        engine, block = self.engines.get(there[0]), schematic[there[0]]
        if engine is None:
            fact = f"{label} needs the engine {there[0]}, which is not available"
            raise PolyverError(fact, at=at, hint=known)
        if not isinstance(block, Mapping):
            raise PolyverError(f"schematic.{there[0]} of {label} is not a mapping", at=at)
        return engine, block
