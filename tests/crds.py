"""Definitions of custom kinds for tests that do not care what is in them."""

from __future__ import annotations

from typing import Any

ANYTHING = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}


def widget_definition(group: str, **version: Any) -> dict[str, Any]:
    """Widgets in one version that keeps every field; more about the version can be said."""
    stored = {"name": "v1", "served": True, "storage": True}
    described = {"schema": {"openAPIV3Schema": ANYTHING}}
    return {
        "metadata": {"name": f"widgets.{group}"},
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": {"plural": "widgets", "kind": "Widget"},
            "versions": [stored | described | version],
        },
    }
