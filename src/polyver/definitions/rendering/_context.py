"""What templates get to know of their surroundings, under the names that KubeVela has for it."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import Any, Final

from polyver.definitions.names import PUBLISH_VERSION
from polyver.kube.objects import digest

__all__ = ["Surroundings", "cluster_version"]

Object = Mapping[str, Any]
_SHOWN: Final = 10


def cluster_version(release: Object) -> dict[str, Any]:
    """What a server says that it is, as templates ask for it.

    >>> cluster_version({"major": "1", "minor": "30+", "gitVersion": "v1.30.2-a"})["minor"]
    30
    """
    minor = "".join(itertools.takewhile(str.isdecimal, str(release.get("minor") or "")))
    told = {name: str(release.get(name) or "") for name in ("major", "gitVersion", "platform")}
    return {**told, "minor": int(minor or 0)}


class Surroundings:
    """The application that templates are rendered for."""

    def __init__(self, application: Object, app_revision: str, more: Object) -> None:
        metadata: Object = application["metadata"]
        annotations: Object = metadata.get("annotations") or {}
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

    def of_component(self, component: Object, resolution: Object) -> dict[str, Any]:
        """What the template of a component sees."""
        name = component["name"]
        # Another component, or another version of its definition, is another revision of it.
        content = digest([component, resolution["digest"]]).rpartition(":")[2][:_SHOWN]
        mine = {"name": name, "revision": f"{name}-{content}", "version": resolution["version"]}
        return self._common | mine

    @staticmethod
    def of_trait(
        component: Object, resolution: Object, output: Object | None, outputs: Object
    ) -> dict[str, Any]:
        """What the template of a trait sees: what its component does, and what that made."""
        made = {"output": output} if output is not None else {}
        return {**component, "version": resolution["version"], **made, "outputs": outputs}
