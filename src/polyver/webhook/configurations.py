"""Build webhook configurations, so that API servers send only the requests that need review."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from polyver.kube.objects.webhooks import INJECT_CA_FROM, Webhook, client_data

__all__ = ["MUTATE", "VALIDATE", "AdmissionRegistration", "configurations"]

MUTATE = "/admit/mutate"
VALIDATE = "/admit/validate"
"""The URL paths of admission reviews: MUTATE is for mutating, VALIDATE for validating webhooks."""
_GROUP = "admissionregistration.k8s.io/v1"


@dataclass(frozen=True, slots=True)
class AdmissionRegistration:
    """The requests for one kind that API servers must send to polyver for review, and why."""

    name: str
    """The purpose of the review, such as `defaults`."""
    group: str = ""
    plural: str = ""
    versions: tuple[str, ...] = ()
    operations: tuple[str, ...] = ("CREATE", "UPDATE")
    mutates: bool = True
    parts: tuple[str, ...] = ()
    """The subresources to review, in addition to the object itself."""
    scope: Literal["Namespaced", "Cluster", "*"] = "Namespaced"
    exact: bool = False
    """If True, only writes in one of `versions` are reviewed.

    If False, writes in other versions are reviewed too: for the review, the API server converts
    them to one of `versions`.
    """
    conditions: Mapping[str, str] = field(default_factory=dict)
    """CEL expressions by name (match conditions); a request is reviewed if all are true."""


def configurations(
    wanted: Iterable[AdmissionRegistration],
    webhook: Webhook,
    *,
    name: str = "polyver",
    failing: Literal["Fail", "Ignore"] = "Fail",
    timeout: int = 10,
) -> list[dict[str, Any]]:
    """Build the manifests of webhook configurations; a configuration without webhooks is left out.

    `webhook` has the address, the CA bundle and the annotation for cert-manager. If it has a URL,
    the URL must be that of the webhook server without a path.

    >>> toys = AdmissionRegistration("defaults", group="ex.io", plural="toys", versions=("v1",))
    >>> [found] = configurations([toys], Webhook("shop", "hooks"))
    >>> found["kind"], found["webhooks"][0]["name"]
    ('MutatingWebhookConfiguration', 'defaults.toys.ex.io')
    """
    all_wanted = list(wanted)
    annotations = {INJECT_CA_FROM: webhook.inject_ca_from} if webhook.inject_ca_from else {}
    metadata = {"name": name} | ({"annotations": annotations} if annotations else {})
    found = []
    for mutates, kind, path in ((True, "Mutating", MUTATE), (False, "Validating", VALIDATE)):
        client = client_data(webhook.at(path))
        common = {"clientConfig": client, "failurePolicy": failing, "timeoutSeconds": timeout}
        webhooks = [_webhook(each, common) for each in all_wanted if each.mutates is mutates]
        named = {"apiVersion": _GROUP, "kind": f"{kind}WebhookConfiguration"}
        if webhooks:
            found.append(named | {"metadata": dict(metadata), "webhooks": webhooks})
    return found


def _webhook(wanted: AdmissionRegistration, common: Mapping[str, Any]) -> dict[str, Any]:
    rule = {
        "apiGroups": [wanted.group],
        "apiVersions": list(wanted.versions),
        "operations": list(wanted.operations),
        "resources": [wanted.plural, *(f"{wanted.plural}/{part}" for part in wanted.parts)],
        "scope": wanted.scope,
    }
    conditions = [{"name": n, "expression": each} for n, each in wanted.conditions.items()]
    return {
        "name": f"{wanted.name}.{wanted.plural}.{wanted.group}",
        "admissionReviewVersions": ["v1", "v1beta1"],
        **common,
        "sideEffects": "None",
        "matchPolicy": "Exact" if wanted.exact else "Equivalent",
        **({"matchConditions": conditions} if conditions else {}),
        "rules": [rule],
    }
