"""Widgets in several versions, which a webhook converts, for the walks that need some."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any

from kubernetes import client, config, watch
from tests.walks.conftest import DEFINITIONS, withdraw
from tests.walks.support import Walk, eventually

APPLY = "application/apply-patch+yaml"


class Widgets:
    """The widgets of a walk, in any version."""

    def __init__(self, walk: Walk, api: Any) -> None:
        self.walk = walk
        self._objects = client.CustomObjectsApi(api)

    def _place(self, version: str) -> tuple[str, str, str, str]:
        return self.walk.group, version, self.walk.namespace, "widgets"

    def body(self, version: str, name: str, **spec: Any) -> dict[str, Any]:
        named = {"apiVersion": f"{self.walk.group}/{version}", "kind": "Widget"}
        return named | {"metadata": {"name": name}, "spec": spec}

    def create(self, version: str, name: str, **spec: Any) -> Any:
        return self._objects.create_namespaced_custom_object(
            *self._place(version), self.body(version, name, **spec)
        )

    def get(self, version: str, name: str) -> Any:
        return self._objects.get_namespaced_custom_object(*self._place(version), name)

    def replace(self, version: str, obj: dict[str, Any]) -> Any:
        name = obj["metadata"]["name"]
        return self._objects.replace_namespaced_custom_object(*self._place(version), name, obj)

    def list(self, version: str) -> Any:
        return self._objects.list_namespaced_custom_object(*self._place(version))

    def apply(self, version: str, name: str, manager: str, **spec: Any) -> Any:
        return self._objects.patch_namespaced_custom_object(
            *self._place(version),
            name,
            self.body(version, name, **spec),
            field_manager=manager,
            _content_type=APPLY,
        )

    def watched(self, version: str, since: str, *, most: int) -> Any:
        """The first events after a revision."""
        events: list[Any] = []
        watching: Any = watch
        stream = watching.Watch()
        for event in stream.stream(
            self._objects.list_namespaced_custom_object,
            *self._place(version),
            resource_version=since,
            timeout_seconds=20,
        ):
            events.append(event)
            if len(events) == most:
                stream.stop()
        return events


@contextmanager
def widgets_by_webhook(
    walk: Walk, url: str, ca: str, schemas: Mapping[str, Any], *, storage: str
) -> Iterator[Widgets]:
    """Widgets with a spec of these schemas, by their versions; all of them are served.

    At the end they are deleted, while the webhook still answers.
    """
    conversion = {
        "strategy": "Webhook",
        "webhook": {
            "conversionReviewVersions": ["v1"],
            "clientConfig": {"url": url, "caBundle": ca},
        },
    }
    versions = [
        {
            "name": name,
            "served": True,
            "storage": name == storage,
            "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}},
        }
        for name, spec in schemas.items()
    ]
    names = {"plural": "widgets", "kind": "Widget"}
    spec = {"group": walk.group, "scope": "Namespaced", "names": names, "versions": versions}
    body = {"metadata": {"name": walk.widgets_crd}, "spec": spec | {"conversion": conversion}}
    walk.request("POST", DEFINITIONS, body)
    loaded: Any = config
    try:
        for name in schemas:
            eventually(partial(walk.request, "GET", f"/apis/{walk.group}/{name}/widgets"))
        with loaded.new_client_from_config(str(walk.kubeconfig)) as api:
            yield Widgets(walk, api)
    finally:
        withdraw(walk)
