"""The context of templates, with KubeVela's names."""

from __future__ import annotations

import itertools
from typing import Any, Final

from polyver.core.plain import ReadOnlyObject
from polyver.definitions.names import PUBLISH_VERSION
from polyver.kube.objects import digest

__all__ = ["ApplicationContext", "cluster_version"]

_SHOWN: Final = 10


def cluster_version(release: ReadOnlyObject) -> dict[str, Any]:
    """Return a server's version in the form of the template context.

    >>> cluster_version({"major": "1", "minor": "30+", "gitVersion": "v1.30.2-a"})["minor"]
    30
    """
    minor = "".join(itertools.takewhile(str.isdecimal, str(release.get("minor") or "")))
    told = {name: str(release.get(name) or "") for name in ("major", "gitVersion", "platform")}
    return {**told, "minor": int(minor or 0)}


class ApplicationContext:
    """The application for which templates are rendered."""

    def __init__(
        self, application: ReadOnlyObject, app_revision: str, more: ReadOnlyObject
    ) -> None:
        metadata: ReadOnlyObject = application["metadata"]
        annotations: ReadOnlyObject = metadata.get("annotations") or {}
        number = app_revision.rpartition("-v")[2]
        self._common: dict[str, Any] = {
            "cluster": "local",
            "replicaKey": "",
            "workflowName": "",
            **more,
            "appName": metadata["name"],
            "namespace": metadata.get("namespace", ""),
            "appRevision": app_revision,
            "appRevisionNum": int(number) if number.isdecimal() else 0,
            "appLabels": metadata.get("labels") or {},
            "appAnnotations": annotations,
            "publishVersion": annotations.get(PUBLISH_VERSION, ""),
        }

    @property
    def namespace(self) -> str:
        found: str = self._common["namespace"]
        return found

    def of_component(self, component: ReadOnlyObject, resolution: ReadOnlyObject) -> dict[str, Any]:
        """Return the context of a component's template."""
        name = component["name"]
        # Another component, or another version of its definition, is another revision of it.
        content = digest([component, resolution["digest"]]).rpartition(":")[2][:_SHOWN]
        mine = {"name": name, "revision": f"{name}-{content}", "version": resolution["version"]}
        return self._common | mine

    @staticmethod
    def of_trait(
        component: ReadOnlyObject,
        resolution: ReadOnlyObject,
        output: ReadOnlyObject | None,
        outputs: ReadOnlyObject,
    ) -> dict[str, Any]:
        """Return the context of a trait's template: its component's context and objects."""
        made = {"output": output} if output is not None else {}
        return {**component, "version": resolution["version"], **made, "outputs": outputs}
