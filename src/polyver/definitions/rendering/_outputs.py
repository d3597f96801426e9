"""Rendered objects and their sources; names are defaulted, duplicates reported."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from polyver.core import PolyverError
from polyver.definitions.rendering._engines import TemplateDocument, TemplateOutput
from polyver.definitions.rendering._sources import RenderingSource

__all__ = ["Made", "RenderedObject", "doubled", "made_by"]


@dataclass(frozen=True, slots=True)
class RenderedObject:
    """An object of an application, and its source."""

    object: dict[str, Any]
    """The object, with a name and a namespace, by default the application's: the caller removes the
    namespace of cluster-scoped kinds, and adds labels and owners.
    """
    component: str
    at: str
    """`spec.components[0]`, or the trait's path."""
    definition: str
    """Name of the definition that made it."""
    trait: bool = False
    """True if a trait made the object."""
    name: str = ""
    """The key under `outputs`; empty for a component's main object, and for those without a key."""
    main: bool = False
    """True for the main object of its component."""

    @property
    def identity(self) -> tuple[str, str, str, str]:
        """The apiVersion, kind, namespace and name."""
        obj, metadata = self.object, self.object["metadata"]
        return obj["apiVersion"], obj["kind"], metadata["namespace"], metadata["name"]


@dataclass(frozen=True, slots=True)
class Made:
    """An object as its template made it; traits may patch it."""

    document: TemplateDocument
    source: RenderingSource
    component: str
    main: bool

    def patched(self, changes: Mapping[str, dict[str, Any]]) -> Made:
        """Return the object as a trait patches it."""
        name = self.document.name
        if (not name and not self.main) or name not in changes:
            return self
        return replace(self, document=replace(self.document, object=changes[name]))

    def placed(self, namespace: str) -> RenderedObject:
        """Return the object with a default name and namespace."""
        obj, source = self.document.object, self.source
        where = f"{source.at}, {self.document.at} of {source.label}"
        for field in ("apiVersion", "kind"):
            if not isinstance(obj.get(field), str) or not obj[field]:
                raise PolyverError(f"an object without {field} was rendered", at=where)
        metadata = obj.get("metadata") or {}
        if not isinstance(metadata, dict):
            raise PolyverError("metadata is not a mapping", at=where)
        said = {"name": self._default_name, "namespace": namespace}
        said |= {field: metadata[field] for field in said if metadata.get(field)}
        for field, text in said.items():
            if not isinstance(text, str):
                raise PolyverError(f"metadata.{field} is not a string", at=where)
        whole = {**obj, "metadata": {**metadata, **said}}
        return RenderedObject(
            *(whole, self.component, source.at, source.name),
            trait=source.is_trait,
            name=self.document.name,
            main=self.main,
        )

    @property
    def _default_name(self) -> str:
        """Its name if the template sets none."""
        trait = self.source.name if self.source.is_trait else ""
        parts = [self.component, *([] if self.main else [trait, self.document.name])]
        return "-".join(each.lower().replace("_", "-") for each in parts if each)


def made_by(source: RenderingSource, component: str, found: TemplateOutput) -> Iterator[Made]:
    """Yield all documents of one template; only a component has a main one."""
    if found.output is not None:
        yield Made(found.output, source, component, main=not source.is_trait)
    for each in found.outputs:
        yield Made(each, source, component, main=False)


def doubled(outputs: Iterable[RenderedObject]) -> Iterator[PolyverError]:
    """Yield an error for each object that is rendered twice, in any API version."""
    seen: dict[tuple[str, ...], RenderedObject] = {}
    for each in outputs:
        version, *rest = each.identity
        group = version.rpartition("/")[0]
        first = seen.setdefault((group, *rest), each)
        if first is not each:
            kind, namespace, name = rest
            fact = f"{kind} {namespace}/{name} is rendered twice"
            hint = f"{first.at} also renders it; give one of them another name"
            yield PolyverError(fact, at=each.at, hint=hint)
