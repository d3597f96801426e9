"""The attributes of a write for webhooks, and its objects in the version for each webhook."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from polyver.core.plain import Object
from polyver.kube.objects.kinds import ResourceKind
from polyver.kube.objects.status import ApiError
from polyver.kube.server.http import User
from polyver.kube.server.resource import ServedResource

__all__ = ["AdmissionAttributes", "VersionedAttributes", "VersionedObjects"]

_EXEMPT = frozenset(
    f"{change}{what}"
    for change in ("Mutating", "Validating")
    for what in ("WebhookConfiguration", "AdmissionPolicy", "AdmissionPolicyBinding")
)


@dataclass(slots=True)
class AdmissionAttributes:
    """A write for which webhooks may be called: its objects, its user and its options."""

    resource: ServedResource
    """The resource in the path of the request."""
    operation: str
    namespace: str
    name: str
    object: Object | None
    """The new object as the request path shows it. Webhooks replace it by the changed object."""
    old: Object | None
    user: User
    options: Mapping[str, Any]
    dry_run: bool
    warn: Callable[[str], None]
    subresource: str = ""
    other_kind: ResourceKind | None = None
    """The kind of the objects that the request path shows, if it is not the resource's kind.

    An example is Scale.
    """

    @property
    def kind(self) -> ResourceKind:
        return self.other_kind or self.resource.kind

    @property
    def exempt(self) -> bool:
        """True if no webhook is called for the write, because it changes a webhook configuration.

        Otherwise a broken webhook could prevent its own repair.
        """
        kind = self.resource.kind
        return kind.group == "admissionregistration.k8s.io" and kind.kind in _EXEMPT

    @property
    def is_namespace(self) -> bool:
        return self.resource.kind.resource == "namespaces"


@dataclass(frozen=True, slots=True)
class VersionedObjects:
    """The new and the old object of a write, both in the version that a webhook gets."""

    object: Object | None
    old: Object | None


class VersionedAttributes:
    """The objects of a write in each version that a webhook must get.

    Each version is converted only once.
    """

    def __init__(
        self, subject: AdmissionAttributes, failed: Callable[[ApiError], ApiError]
    ) -> None:
        """`failed` builds the error of the request from the error of a conversion."""
        self._subject = subject
        self._failed = failed
        self._resource = subject.resource
        self._shown = {subject.kind.api_version: VersionedObjects(subject.object, subject.old)}
        self._changed_in: ResourceKind | None = None

    async def show(self, kind: ResourceKind) -> VersionedObjects:
        """Return the new and the old object in the version of `kind`."""
        if kind.api_version not in self._shown:
            await self.settle()
            subject = self._subject
            try:
                new = await self._convert(subject.object, kind)
                old = await self._convert(subject.old, kind)
            except ApiError as error:
                raise self._failed(error) from None
            self._shown[kind.api_version] = VersionedObjects(new, old)
        return self._shown[kind.api_version]

    @property
    def current(self) -> Object | None:
        """The new object, in the version in which a webhook changed it last.

        If no webhook has changed it, it is in the version of the request.
        """
        kind = self._changed_in or self._subject.kind
        return self._shown[kind.api_version].object

    def change(self, kind: ResourceKind, obj: Object) -> None:
        """Replace the new object by `obj`, which a webhook returned in the version of `kind`."""
        self._shown = {kind.api_version: VersionedObjects(obj, self._shown[kind.api_version].old)}
        self._changed_in = kind

    async def settle(self) -> None:
        """Convert the new object to the version of the request if it has another version."""
        kind, subject = self._changed_in, self._subject
        if kind is None:
            return
        changed = self._shown[kind.api_version].object
        same = kind.api_version == subject.kind.api_version
        subject.object = changed if same else await self._convert(changed, subject.kind)
        self._shown[subject.kind.api_version] = VersionedObjects(subject.object, subject.old)
        self._changed_in = None

    async def _convert(self, obj: Object | None, kind: ResourceKind) -> Object | None:
        conversion = self._resource.conversion
        if obj is None or conversion is None or obj["apiVersion"] == kind.api_version:
            return obj
        return await conversion.convert(obj, kind.api_version)
