"""Controller that writes polyver's webhook configurations for admission."""

from __future__ import annotations

import base64
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import Any

from polyver.apis.admission.conversions import CONVERSIONS_WANTED
from polyver.apis.admission.kinds import wanted_by
from polyver.apis.conversion_kind import CONVERSIONS, definition_of
from polyver.apis.declaring import Kind as DeclaredKind
from polyver.client import CRDS, Change, Client, GroupVersionResource, find
from polyver.client.field_managers import POLYVER
from polyver.controllers.controller import Controller, Watch, exactly
from polyver.core import PolyverError
from polyver.core.plain import Object
from polyver.kube.objects.kinds import ResourceKind
from polyver.kube.objects.webhooks import Webhook
from polyver.webhook.configurations import AdmissionRegistration, configurations

__all__ = ["RegistrationController"]

_NAME = "polyver"
_CONVERSIONS = GroupVersionResource(
    CONVERSIONS.group, "v1alpha1", CONVERSIONS.names.plural, namespaced=False
)
_REGISTRATIONS = {
    f"{sort}WebhookConfiguration": GroupVersionResource(
        "admissionregistration.k8s.io",
        "v1",
        f"{sort.lower()}webhookconfigurations",
        namespaced=False,
    )
    for sort in ("Mutating", "Validating")
}


class RegistrationController(Controller[str]):
    """Writes all admission registrations of polyver to its webhook configurations.

    There is a single key to reconcile, because all registrations are in two objects: one
    MutatingWebhookConfiguration and one ValidatingWebhookConfiguration.
    """

    name = "registrations"

    def __init__(
        self,
        client: Client,
        webhook: Webhook,
        *,
        kinds: Sequence[DeclaredKind] = (),
        wanted: Sequence[AdmissionRegistration] = (),
        bundle: Callable[[], Awaitable[bytes]] | None = None,
    ) -> None:
        """Create the controller.

        `kinds` are the kinds declared in Python. `wanted` are the registrations of other
        capabilities.

        `bundle` returns the current CA bundle of the webhook server.
        """
        self._client = client
        self._webhook = webhook
        self._kinds = kinds
        self._more = wanted
        self._bundle = bundle

    @property
    def watches(self) -> Sequence[Watch[Any, str]]:
        return [
            Watch(kinds=exactly(resource), observe=_observe, keep=_state, metadata=True)
            for resource in (_CONVERSIONS, CRDS, *_REGISTRATIONS.values())
        ]

    async def reconcile(self, _: str, /) -> None:
        wanted = [CONVERSIONS_WANTED, *self._more]
        for kind in self._kinds:
            wanted += wanted_by(kind)
        for name in await self._converted():
            wanted += await self._wanted(name)
        for kind_name, resource in _REGISTRATIONS.items():
            await self._keep(kind_name, resource, wanted)

    async def _converted(self) -> list[str]:
        """Return the names of CRDs with a Conversion, except CRDs of kinds declared in Python."""
        known = {kind.definition().name for kind in self._kinds}
        found = await self._client.list(_CONVERSIONS, metadata=True)
        return sorted({each["metadata"]["name"] for each in found.items} - known)

    async def _wanted(self, name: str) -> list[AdmissionRegistration]:
        crd = await find(self._client, CRDS, name)
        if crd is None:
            return []
        try:
            definition = definition_of(crd)
        except PolyverError:  # the condition of its Conversion reports it
            return []
        return wanted_by(DeclaredKind.of(replace(definition, strategy=None)))

    async def _keep(
        self, kind: str, resource: GroupVersionResource, wanted: Sequence[AdmissionRegistration]
    ) -> None:
        """Apply registrations to a webhook configuration of polyver.

        Webhooks in this configuration that other field managers have added are kept.
        """
        found = await find(self._client, resource, _NAME)
        # Read the configuration first, then the CA bundle. If another replica writes a newer bundle
        # after these reads, the write of this replica fails, because its resourceVersion is old. So
        # an old bundle never replaces a newer bundle.
        webhook = self._webhook
        if self._bundle is not None:
            text = base64.b64encode(await self._bundle()).decode()
            webhook = replace(webhook, ca_bundle=text)
        made = {each["kind"]: each for each in configurations(wanted, webhook, name=_NAME)}
        if kind not in made:
            if found is None or not found.get("webhooks"):
                return
            made[kind] = _empty(kind)
        if found is not None:
            made[kind]["metadata"]["resourceVersion"] = found["metadata"]["resourceVersion"]
        await self._client.apply(resource, made[kind], manager=POLYVER, force=True)


def _empty(kind: str) -> Object:
    about = {"apiVersion": "admissionregistration.k8s.io/v1", "kind": kind}
    return about | {"metadata": {"name": _NAME}}


def _state(kind: ResourceKind, obj: Object) -> tuple[Any, ...]:
    del kind
    metadata = obj["metadata"]
    return metadata["uid"], metadata.get("generation"), metadata.get("deletionTimestamp")


def _observe(kind: ResourceKind, change: Change[Any]) -> Sequence[str]:
    others = kind.group == "admissionregistration.k8s.io" and change.key.name != _NAME
    return (_NAME,) if not others and change.before != change.after else ()
