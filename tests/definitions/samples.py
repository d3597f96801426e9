"""Definitions and applications for tests, and a control plane that publishes and resolves them."""

from __future__ import annotations

import http.client
import json
import ssl
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from tests.deadlines import HANG
from tests.editing import edited
from tests.walks.support import eventually

from polyver.kube.objects.status import ApiError
from polyver.testing import EmbeddedServer, LocalCluster

Object = dict[str, Any]
GROUP = "core.oam.dev"
WORKLOAD = {"definition": {"apiVersion": "v1", "kind": "ConfigMap"}}
SYSTEM = "vela-system"


def entry(version: str | None, *, parameters: Object | None = None, **more: Any) -> Object:
    """A version of a component that renders nothing; `parameters` are properties of its schema."""
    made: Object = {"version": version} if version is not None else {}
    made |= {"workload": WORKLOAD, "schematic": {"gotemplate": {"template": ""}}, **more}
    if parameters is not None:
        schema = {"type": "object", "properties": parameters}
        made["schematic"] = {"gotemplate": {"parameters": schema, "template": ""}}
    return made


CONFIG = """\
apiVersion: v1
kind: ConfigMap
metadata: {name: "{{ .context.appName }}-{{ .context.name }}"}
data: {image: "{{ .parameter.image }}", version: "{{ .context.version }}"}
"""
PARAMETERS = {"image": {"type": "string"}, "size": {"type": "integer", "default": 1}}


def templated(version: str, template: str = CONFIG, **parameters: Object) -> Object:
    """A version that renders something: by default a ConfigMap from the parameter `image`."""
    schema: Object = {"type": "object", "properties": parameters or PARAMETERS}
    schema |= {} if parameters else {"required": ["image"]}
    block = {"gotemplate": {"parameters": schema, "template": template}}
    return {"version": version, "workload": WORKLOAD, "schematic": block}


def definition(
    name: str,
    *entries: Object | str,
    kind: str = "ComponentDefinition",
    namespace: str = SYSTEM,
    **annotations: str,
) -> Object:
    """A definition in v2beta1; a version alone stands for an entry with it."""
    versions = [entry(each) if isinstance(each, str) else each for each in entries]
    if kind != "ComponentDefinition":
        versions = [{k: v for k, v in each.items() if k != "workload"} for each in versions]
    return {
        "apiVersion": f"{GROUP}/v2beta1",
        "kind": kind,
        "metadata": {"name": name, "namespace": namespace, "annotations": annotations},
        "spec": {"versions": versions},
    }


def using(**properties: int) -> Object:
    """An application that names a definition of each kind."""
    traits = [{"type": "traitdefinition", "properties": {}}]
    component = {"name": "a", "type": "componentdefinition@1.1", "properties": properties}
    return {
        "components": [{**component, "traits": traits}],
        "policies": [{"name": "a", "type": "policydefinition"}],
        "workflow": {"steps": [{"name": "a", "type": "workflowstepdefinition"}]},
    }


def legacy(name: str, content: str, *, named: str = "", version: str | None = None) -> Object:
    """A definition in v1beta1, whose content is told apart by a text."""
    annotations = {"definitionrevision.oam.dev/name": named} if named else {}
    return {
        "apiVersion": f"{GROUP}/v1beta1",
        "kind": "ComponentDefinition",
        "metadata": {"name": name, "namespace": SYSTEM, "annotations": annotations},
        "spec": entry(version, podSpecPath=content),
    }


def application(
    name: str,
    *types: str,
    namespace: str = "default",
    properties: Any = None,
    **annotations: str,
) -> Object:
    """An application with a component of each type: `c0`, `c1`, …."""
    more = {} if properties is None else {"properties": properties}
    components = [{"name": f"c{number}", "type": each, **more} for number, each in enumerate(types)]
    said = {f"app.oam.dev/{key}": text for key, text in annotations.items()}
    return {
        "apiVersion": f"{GROUP}/v1beta1",
        "kind": "Application",
        "metadata": {"name": name, "namespace": namespace, "annotations": said},
        "spec": {"components": components},
    }


def path_of(obj: Object) -> str:
    return f"{collection_of(obj)}/{obj['metadata']['name']}"


def collection_of(obj: Object) -> str:
    plural = f"{obj['kind'].lower()}s"
    return f"/apis/{obj['apiVersion']}/namespaces/{obj['metadata']['namespace']}/{plural}"


class Platform:
    """A control plane with the capability definitions, and one connection to it."""

    def __init__(self, server: EmbeddedServer | LocalCluster) -> None:
        self.server = server
        context = ssl.create_default_context(cafile=server.ca_file)
        host = server.url.removeprefix("https://")
        self._connection = http.client.HTTPSConnection(host, context=context, timeout=HANG)
        self.warnings: list[str] = []
        """Of the last answer."""

    def request(self, method: str, path: str, body: object = None) -> Any:
        """The decoded answer, or an ApiError."""
        headers = {"Authorization": f"Bearer {self.server.token}"}
        sent = None if body is None else json.dumps(body)
        about = {**headers, "Content-Type": "application/json"}
        self._connection.request(method, path, sent, about)
        response = self._connection.getresponse()
        self.warnings = response.headers.get_all("Warning") or []
        told = json.loads(response.read())
        if response.status < http.HTTPStatus.BAD_REQUEST:
            return told
        raise ApiError.from_status(told)

    def text(self, path: str) -> str:
        """What is no JSON."""
        headers = {"Authorization": f"Bearer {self.server.token}"}
        self._connection.request("GET", path, headers=headers)
        return self._connection.getresponse().read().decode()

    def close(self) -> None:
        self._connection.close()

    def write(self, obj: Object) -> Object:
        """Create an object, or replace its spec and what its metadata says."""
        try:
            self.get(obj)
        except ApiError as error:
            if error.reason != "NotFound":
                raise
            found: Object = self.request("POST", collection_of(obj), obj)
            return found

        def change(known: Object) -> None:
            known["metadata"]["annotations"] = obj["metadata"].get("annotations") or {}
            known["spec"] = obj["spec"]

        made: Object = edited(self.request, path_of(obj), change)
        return made

    def get(self, obj: Object) -> Object:
        found: Object = self.request("GET", path_of(obj))
        return found

    def publish(self, obj: Object) -> Object:
        """Write a definition, and wait until the controller has dealt with it."""
        generation = self.write(obj)["metadata"]["generation"]
        return self.until(obj, lambda found: _observed(found, "Published") == generation)

    def deploy(self, obj: Object) -> Object:
        """Write an application, and wait until the controller has dealt with it."""
        generation = self.write(obj)["metadata"]["generation"]
        return self.until(obj, lambda found: _is_settled(found, generation))

    def runs(self, obj: Object) -> Object:
        """Write an application, and wait until it runs; its definitions may be on their way."""
        generation = self.write(obj)["metadata"]["generation"]
        return self.until(obj, lambda found: _is_running(found, generation))

    def until(self, obj: Object, is_so: Callable[[Object], bool]) -> Object:
        def look() -> Object | None:
            found = self.get(obj)
            return found if is_so(found) else None

        return eventually(look)

    def uses(self, obj: Object, *versions: str) -> Object:
        """Wait until the components of an application use these versions."""
        return self.until(obj, lambda found: versions_of(found) == [*versions])

    def revisions(self, name: str, namespace: str = SYSTEM) -> list[str]:
        path = f"/apis/{GROUP}/v1beta1/namespaces/{namespace}/definitionrevisions"
        found = [each["metadata"]["name"] for each in self.request("GET", path)["items"]]
        return sorted(each for each in found if each.rpartition("-v")[0] == name)


@contextmanager
def served(**options: Any) -> Iterator[Platform]:
    """A control plane of one's own; without options, one with this capability."""
    with EmbeddedServer(**{"capabilities": ["apis", "definitions"], **options}) as server:
        platform = Platform(server)
        try:
            yield platform
        finally:
            platform.close()


def versions_of(found: Object) -> list[str]:
    return [each["version"] for each in found.get("status", {}).get("resolutions") or ()]


def condition(found: Object, kind: str) -> Object:
    conditions = found.get("status", {}).get("conditions") or ()
    return next((each for each in conditions if each["type"] == kind), {})


def _is_running(found: Object, generation: int) -> bool:
    status = found.get("status", {})
    return (status.get("status"), status.get("observedGeneration")) == ("running", generation)


def _is_settled(found: Object, generation: int) -> bool:
    is_seen = _observed(found, "Resolved") == generation
    return is_seen and found["status"]["status"] != "rendering"


def _observed(found: Object, kind: str) -> int | None:
    return condition(found, kind).get("observedGeneration")
