"""Create the ServiceAccount `default` and the CA ConfigMap, which every namespace has."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from polyver.client import Change, Client, GroupVersionResource, find
from polyver.controllers.controller import Controller, Watch, exactly
from polyver.controllers.identity import ObjectIdentity, identity_of
from polyver.controllers.kubernetes.namespaces import NAMESPACES
from polyver.core.plain import Object
from polyver.kube.objects.kinds import ResourceKind
from polyver.kube.objects.status import ApiError

__all__ = ["AccountController", "is_terminating"]

_ACCOUNTS = GroupVersionResource("", "v1", "serviceaccounts")
_MAPS = GroupVersionResource("", "v1", "configmaps")
_ACCOUNT = "default"
_CA = "kube-root-ca.crt"
_DESCRIPTION = "kubernetes.io/description"
_ABOUT = "The certificates by which clients in the cluster know its API server."


class AccountController(Controller[str]):
    """Creates the ServiceAccount and the CA ConfigMap in each namespace, also after a deletion."""

    name = "accounts"

    def __init__(self, client: Client, *, ca: str) -> None:
        self._client = client
        self._ca = ca
        self._active: set[str] = set()

    @property
    def watches(self) -> Sequence[Watch[Any, str]]:
        observed = [
            (NAMESPACES, self._observe),
            (_ACCOUNTS, self._observe_named(_ACCOUNT)),
            (_MAPS, self._observe_named(_CA)),
        ]
        return [
            Watch(kinds=exactly(resource), observe=observe, keep=identity_of, metadata=True)
            for resource, observe in observed
        ]

    def _observe(self, kind: ResourceKind, change: Change[ObjectIdentity]) -> Sequence[str]:
        del kind
        if change.after is None or change.after.deleting:
            self._active.discard(change.key.name)
            return ()
        self._active.add(change.key.name)
        return (change.key.name,) if change.before is None else ()

    def _observe_named(
        self, name: str
    ) -> Callable[[ResourceKind, Change[ObjectIdentity]], Sequence[str]]:
        def observe(kind: ResourceKind, change: Change[ObjectIdentity]) -> Sequence[str]:
            del kind
            concerns = change.key.name == name and change.before is not None
            return (change.key.namespace,) if concerns else ()

        return observe

    async def reconcile(self, key: str) -> None:
        if key not in self._active:
            return
        if await find(self._client, _ACCOUNTS, _ACCOUNT, key) is None:
            await self._make(_ACCOUNTS, account(key))
        found = await find(self._client, _MAPS, _CA, key)
        wanted = published(found, key, self._ca)
        if found is None:
            await self._make(_MAPS, wanted)
        elif wanted != found:
            await self._client.update(_MAPS, wanted)

    async def _make(self, resource: GroupVersionResource, content: Object) -> None:
        try:
            await self._client.create(resource, content)
        except ApiError as error:
            if not _is_over(error):
                raise


def _is_over(error: ApiError) -> bool:
    """Report whether a failed create request need not be sent again.

    This is so if the object exists already, or if the namespace is terminating or gone.
    """
    return is_terminating(error) or error.code == 404 or error.reason == "AlreadyExists"


def is_terminating(error: ApiError) -> bool:
    """Report whether a server refused to create an object because its namespace is terminating."""
    causes = (error.details or {}).get("causes") or ()
    return any(cause.get("reason") == "NamespaceTerminating" for cause in causes)


def account(namespace: str) -> Object:
    """Build the ServiceAccount `default`, which pods use by default."""
    metadata = {"name": _ACCOUNT, "namespace": namespace}
    return {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata}


def published(found: Object | None, namespace: str, ca: str) -> Object:
    """Return the ConfigMap with the CA certificates, as it should be.

    Annotations and labels of the existing ConfigMap `found` are kept.
    """
    made: Object = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": _CA, "namespace": namespace},
    }
    current = found or made
    metadata = current["metadata"]
    annotations = metadata.get("annotations") or {}
    described = annotations if annotations.get(_DESCRIPTION) else {_DESCRIPTION: _ABOUT}
    metadata = metadata | {"annotations": annotations | described}
    return current | {"metadata": metadata, "data": {"ca.crt": ca}}
