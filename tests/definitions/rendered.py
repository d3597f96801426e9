"""Published definitions, and applications that are rendered with them, by decisions alone."""

from __future__ import annotations

from typing import Any

from tests.definitions.samples import GROUP, SYSTEM

from polyver.definitions.publishing import decide, read_definition, revision_object, status_of
from polyver.definitions.rendering import Engines, GoTemplates, Rendered, render, revisions_of
from polyver.definitions.resolution import Homes, choose_all, lineage_in, resolution_data

Object = dict[str, Any]
NOW = "2026-01-01T00:00:00Z"
EXAMPLE: Object = {
    "parameters": {
        "type": "object",
        "required": ["image"],
        "properties": {"image": {"type": "string"}, "size": {"type": "integer", "default": 1}},
    },
    "template": """\
apiVersion: v1
kind: ConfigMap
metadata: {name: "{{ .context.name }}"}
data: {image: "{{ .parameter.image }}", size: "{{ .parameter.size }}"}
""",
}
"""The schematic of the example in the documentation."""


def gotemplate(template: str, **properties: Any) -> Object:
    """A schematic whose parameters have these schemas."""
    schema = {"type": "object", "properties": properties}
    return {"gotemplate": {"parameters": schema, "template": template}}


def component(name: str, schematic: Object, *, version: str = "1.0.0", **more: Any) -> Object:
    """A definition with one version."""
    workload = {"workload": {"definition": {"apiVersion": "v1", "kind": "ConfigMap"}}}
    return _definition("ComponentDefinition", name, version, schematic, workload, more)


def trait(name: str, schematic: Object, *, version: str = "1.0.0", **more: Any) -> Object:
    return _definition("TraitDefinition", name, version, schematic, {}, more)


def _definition(kind: str, name: str, version: str, schematic: Object, *more: Object) -> Object:
    entry: Object = {"version": version, "schematic": schematic}
    for each in more:
        entry |= each
    return {
        "apiVersion": f"{GROUP}/v2beta1",
        "kind": kind,
        "metadata": {"name": name, "namespace": SYSTEM, "uid": f"u-{name}", "generation": 1},
        "spec": {"versions": [entry]},
    }


def uses(
    name: str, type_: str, properties: Any = None, traits: list[Object] | None = None
) -> Object:
    """A component of an application."""
    made: Object = {"name": name, "type": type_}
    made |= {"properties": properties} if properties is not None else {}
    return made | ({"traits": traits} if traits else {})


def application(*components: Object, **metadata: Any) -> Object:
    return {
        "apiVersion": f"{GROUP}/v1beta1",
        "kind": "Application",
        "metadata": {"name": "shop", "namespace": "default", **metadata},
        "spec": {"components": [*components]},
    }


class Platform:
    """Definitions that are published, and what renders them."""

    def __init__(self, *definitions: Object, engines: Engines | None = None) -> None:
        self._engines = engines or {"gotemplate": GoTemplates()}
        self._homes: dict[tuple[str, str], Homes] = {}
        self.revisions: dict[tuple[str, str], Object] = {}
        for each in definitions:
            self.publish(each)

    def publish(self, definition: Object) -> None:
        wanted, refusals = read_definition(definition)
        decision = decide(wanted, [])
        assert not refusals
        assert not decision.refusals
        for new in decision.create:
            self.revisions[wanted.namespace, new.name] = revision_object(wanted, new, definition)
        told = {**definition, "status": status_of(definition, decision, [], now=NOW)}
        lineage = lineage_in(told)
        assert lineage is not None
        self._homes[wanted.kind, wanted.name] = {wanted.namespace: lineage}

    def resolutions(self, app: Object) -> list[Object]:
        chosen, errors = choose_all(app, lambda kind, name: self._homes.get((kind, name), {}))
        assert not errors
        return [resolution_data(each, now=NOW) for each in chosen]

    def render(self, app: Object, **more: Any) -> Rendered:
        resolutions = self.resolutions(app)
        needed = {key: self.revisions[key] for key in revisions_of(resolutions)}
        return render(app, resolutions, needed, self._engines, **more)

    def objects(self, *components: Object, **more: Any) -> list[Object]:
        """What an application with some components means."""
        rendered = self.render(application(*components), **more)
        assert not rendered.errors, [*map(str, rendered.errors)]
        return [each.object for each in rendered.outputs]

    def errors(self, *components: Object) -> list[str]:
        """What is wrong with it."""
        return [*map(str, self.render(application(*components)).errors)]
