"""Build CustomResourceDefinition manifests, always in apiextensions.k8s.io/v1.

The same kind always gives the same manifest.
"""

from __future__ import annotations

import copy
from typing import Any

from polyver.apis.definition import Column, DefinedVersion, Definition, Names, Scale
from polyver.kube.objects.webhooks import INJECT_CA_FROM, Webhook, client_data

__all__ = [
    "column_data",
    "conversion_data",
    "crd_of",
    "scale_data",
]

_ANYTHING = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}


def crd_of(definition: Definition, conversion: Webhook | None = None) -> dict[str, Any]:
    """Build the CustomResourceDefinition of a kind.

    If the kind has several versions, the manifest names the webhook that converts objects of the
    kind: `conversion`, or else the webhook that the kind states.

    >>> from polyver import apis
    >>> toy = apis.Kind("Toy", group="ex.io")
    >>> @toy.version("v1")
    ... class Toy:
    ...     colour: str
    >>> crd_of(toy.definition())["spec"]["names"]["plural"]
    'toys'
    """
    several = len(definition.versions) > 1
    webhook = (conversion or definition.webhook) if several else None
    if definition.strategy == "None":
        webhook = None
    annotations = dict(definition.annotations)
    if webhook and webhook.inject_ca_from:
        annotations[INJECT_CA_FROM] = webhook.inject_ca_from
    elif webhook and definition.webhook:
        annotations.pop(INJECT_CA_FROM, None)  # it was for the webhook that is replaced
    metadata = {"name": definition.name}
    spec: dict[str, Any] = {"group": definition.group, "names": _names(definition.names)}
    spec["scope"] = definition.scope
    if several:
        spec["conversion"] = conversion_data(webhook) if webhook else {"strategy": "None"}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": _said(metadata, labels=dict(definition.labels), annotations=annotations),
        "spec": {**spec, "versions": [_version(each) for each in definition.versions]},
    }


def _said(data: dict[str, Any], **more: Any) -> dict[str, Any]:
    """Add the fields `more` to `data`, except fields with an empty value; return the result."""
    return data | {name: value for name, value in more.items() if value not in ("", None, [], {})}


def _names(names: Names) -> dict[str, Any]:
    return _said(
        {"kind": names.kind},
        listKind=names.list_kind,
        plural=names.plural,
        singular=names.singular,
        shortNames=list(names.short_names),
        categories=list(names.categories),
    )


def conversion_data(webhook: Webhook) -> dict[str, Any]:
    """Build the value of `spec.conversion` for a webhook."""
    client, reviews = client_data(webhook), list(webhook.reviews)
    return {
        "strategy": "Webhook",
        "webhook": {"clientConfig": client, "conversionReviewVersions": reviews},
    }


def _version(version: DefinedVersion) -> dict[str, Any]:
    data: dict[str, Any] = {"name": version.name, "served": version.served}
    data["storage"] = version.storage
    if version.deprecated:
        data["deprecated"] = True
        data |= {} if version.warning is None else {"deprecationWarning": version.warning}
    data["schema"] = {"openAPIV3Schema": copy.deepcopy(version.schema or _ANYTHING)}
    parts = _said({}, scale=scale_data(version.scale) if version.scale else None)
    return _said(
        data,
        subresources=({"status": {}} if version.status else {}) | parts,
        additionalPrinterColumns=[column_data(each) for each in version.columns],
        selectableFields=[{"jsonPath": path} for path in version.selectable],
    )


def scale_data(scale: Scale) -> dict[str, Any]:
    """Build the value of the field `scale` in manifests."""
    found = {"specReplicasPath": scale.replicas, "statusReplicasPath": scale.status_replicas}
    return _said(found, labelSelectorPath=scale.selector)


def column_data(column: Column) -> dict[str, Any]:
    """Build the entry for a column in the field `additionalPrinterColumns` of manifests."""
    return _said(
        {"name": column.name, "type": column.type, "jsonPath": column.path},
        format=column.format,
        description=column.description,
        priority=column.priority or None,
    )
