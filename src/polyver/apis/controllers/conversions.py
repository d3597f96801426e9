"""Controller of Conversions: serves each Conversion, and sets the webhook of its CRD.

The controller builds a converter for each Conversion. It gives the converter to the server in its
own process that converts objects: the embedded server, or a webhook server. All replicas convert;
only the leader writes objects.

A Conversion must not be removed while several versions of its kind are in use. Without the webhook,
a CRD has the conversion strategy None: an API server then changes only the apiVersion of an object,
and prunes the fields that the other version does not have. The next write stores the pruned object.
So a finalizer keeps a Conversion as long as several versions are in use. If the Conversion is
removed nevertheless, for example because a user removes the finalizer, the controller does not
change the CRD: requests in other versions than the stored version then fail, and no data is lost.
"""

from __future__ import annotations

import base64
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from polyver.apis.conversion import Converter
from polyver.apis.conversion_kind import (
    CONVERSIONS,
    converter_left,
    converter_of,
    needed_versions,
    place_of,
    versions_in_use,
)
from polyver.client import (
    CRDS,
    Change,
    Client,
    Clock,
    GroupVersionResource,
    SystemClock,
    find,
    timestamp,
)
from polyver.client.field_managers import POLYVER
from polyver.controllers.controller import Controller, Requeue, Watch, exactly
from polyver.controllers.finalizers import add_finalizer, remove_finalizer
from polyver.core import PolyverError, listed
from polyver.core.plain import Object
from polyver.kube.http.logs import Log
from polyver.kube.objects.conditions import ConditionStatus, DesiredCondition, set_conditions
from polyver.kube.objects.kinds import ResourceKind
from polyver.kube.objects.status import ApiError

__all__ = ["FINALIZER", "ConversionController"]

FINALIZER = "polyver.dev/conversion"
_LOOK_AGAIN = 5.0
"""Seconds until a Conversion that is being deleted is checked again.

The controller reacts only to changes of a CRD's generation. A change of `status.storedVersions`
does not change the generation, so the controller must check it regularly.
"""
_HTTPS = 443
_CONVERSIONS = GroupVersionResource(
    CONVERSIONS.group, "v1alpha1", CONVERSIONS.names.plural, namespaced=False
)
Publish = Callable[[str, Converter | None], None]


class ConversionController(Controller[str]):
    """Reconciles Conversions.

    The key of a Conversion in the work queue is its name, which is also the name of its CRD.
    """

    name = "conversions"

    def __init__(
        self,
        client: Client,
        publish: Publish = lambda *_: None,
        *,
        told: Mapping[str, Any] | None = None,
        annotations: Mapping[str, str] | None = None,
        bundle: Callable[[], Awaitable[bytes]] | None = None,
        kinds: Collection[str] = (),
        settle: float = 0.0,
        clock: Clock | None = None,
    ) -> None:
        """Create the controller. `told` is the value that it writes to `spec.conversion` of CRDs.

        If `told` is None, the controller changes no CRD. It writes `annotations` to the CRD
        together with `spec.conversion`; they are for controllers such as cert-manager. `bundle`
        returns the CA bundle of the webhook, if `told` does not contain it. `kinds` are the names
        of CRDs that polyver converts without a Conversion.

        The controller writes the webhook to the CRD only `settle` seconds after it first saw the
        Conversion. By then all replicas can convert, and kube-apiserver may call any of them.
        """
        self._client = client
        self._publish = publish
        self._told = dict(told) if told is not None else None
        self._annotations = dict(annotations or {})
        self._bundle = bundle
        self._kinds = kinds
        self._settle = settle
        self._clock: Clock = clock or SystemClock()
        self._published: dict[str, _Published] = {}

    @property
    def watches(self) -> Sequence[Watch[Any, str]]:
        return [
            Watch(kinds=exactly(resource), observe=_observe, keep=_state, metadata=True)
            for resource in (_CONVERSIONS, CRDS)
        ]

    async def load(self) -> None:
        """Reconcile all existing Conversions once, before the server accepts requests."""
        try:
            found = await self._client.list(_CONVERSIONS)
        except ApiError as error:
            if error.code == 404:
                return
            raise
        for each in found.items:
            await self.reconcile(each["metadata"]["name"])

    async def reconcile(self, key: str) -> Requeue | None:
        conversion = await find(self._client, _CONVERSIONS, key)
        crd = await find(self._client, CRDS, key)
        if conversion is None:
            await self._lost(key, crd)
            if crd is not None and key in self._kinds:
                await self._point(crd)
            return None
        if "deletionTimestamp" in conversion["metadata"]:
            return await self._deleted(key, conversion, crd)
        return await self._served(key, conversion, crd)

    async def _served(self, key: str, conversion: Object, crd: Object | None) -> Requeue | None:
        try:
            known = self._serve(key, conversion, crd)
        except PolyverError as error:
            if crd is not None and not self._is_ours(crd):
                self._withdraw(key)
            await self._tell(conversion, "False", "Refused", _told(error) + self._rest(key))
            return None
        left = known.since + self._settle - self._clock.time()
        if left > 0:
            return Requeue(left)
        if self._told is not None and "deletionTimestamp" not in conversion["metadata"]:
            conversion = await add_finalizer(self._client, _CONVERSIONS, conversion, FINALIZER)
        await self._write_down(key, conversion, crd, known.problem)
        return None

    async def _deleted(self, key: str, conversion: Object, crd: Object | None) -> Requeue | None:
        """Remove the finalizer of a deleted Conversion if its kind does not need the Conversion.

        If the kind still needs the Conversion, return a request to reconcile it again later.
        """
        if needed := needed_versions(conversion, crd):
            await self._served(key, conversion, crd)
            now = await find(self._client, _CONVERSIONS, key)
            text = f"{key} serves or stores {listed(needed)}, which this Conversion converts"
            if now is not None:
                await self._tell(now, "True", "StillNeeded", text, kind="Terminating")
            return Requeue(_LOOK_AGAIN)
        if self._told is not None:
            if crd is not None and key not in self._kinds:
                await self._unpoint(crd)
            await remove_finalizer(self._client, _CONVERSIONS, conversion, FINALIZER)
        self._withdraw(key)
        return None

    async def _lost(self, key: str, crd: Object | None) -> None:
        """Stop converting by a Conversion that no longer exists, unless its kind still needs it."""
        known = self._published.get(key)
        if known is None:
            return
        used = versions_in_use(crd) if crd is not None and self._is_ours(crd) else []
        if len(used) > 1 and key not in self._kinds:
            if not known.orphaned:
                self._published[key] = replace(known, orphaned=True)
                _log_orphan(key, used)
            return
        self._withdraw(key)
        if crd is not None and key not in self._kinds:
            await self._unpoint(crd)

    def _is_ours(self, crd: Object) -> bool:
        """Report whether a CRD names our webhook; always True in a replica that writes no CRDs."""
        return self._told is None or _is_told(crd, self._told)

    async def _write_down(
        self, key: str, conversion: Object, crd: Object | None, problem: str
    ) -> None:
        """Set our webhook in the CRD, and the condition `Serving` of the Conversion."""
        if crd is None:
            text = f"there is no CustomResourceDefinition {key}"
            await self._tell(conversion, "False", "NoDefinition", text)
            return
        try:
            await self._point(crd)
        except ApiError as error:
            await self._tell(conversion, "False", "DefinitionNotChanged", error.message)
            raise
        if problem:
            await self._tell(conversion, "False", "DoesNotFit", problem)
        else:
            await self._tell(
                conversion, "True", "Served", "objects are converted by this Conversion"
            )

    def _serve(self, key: str, conversion: Object, crd: Object | None) -> _Published:
        """Build and publish the converter of a Conversion if the Conversion or its CRD changed."""
        made_from = _made_from(conversion, crd)
        known = self._published.get(key)
        if known is None or known.made_from != made_from:
            since = self._clock.time() if known is None else known.since
            converter, problem = _made(conversion, crd)
            if known is not None and (less := _missing(known.converter, converter, crd)):
                # The Conversion was written without a check by admission. Keep the earlier
                # converter: otherwise, objects could not be read in the versions that the new
                # converter lacks.
                problem = f"{problem}; {listed(less)} converted as before until polyver restarts"
                converter = known.converter
            self._publish(key, converter)
            known = self._published[key] = _Published(made_from, problem, since, converter)
        return known

    def _rest(self, key: str) -> str:
        """Return the end of the condition message of an invalid Conversion.

        It states that objects are still converted as before, if an earlier state of the Conversion
        was valid; otherwise it is empty.
        """
        return "; objects are still converted as before" if key in self._published else ""

    def _withdraw(self, key: str) -> None:
        if self._published.pop(key, None) is not None:
            self._publish(key, None)

    async def _unpoint(self, crd: Object) -> None:
        """Replace our webhook in a CRD by the strategy None, if only one version is in use."""
        if self._told is not None and _is_told(crd, self._told) and len(versions_in_use(crd)) < 2:
            await self._write(crd, {"strategy": "None"})

    async def _point(self, crd: Object) -> None:
        """Write our webhook to a CRD, unless the CRD already names it."""
        if self._told is not None and not _is_told(crd, self._told):
            await self._write(crd, self._told)

    async def _write(self, crd: Object, conversion: Mapping[str, Any]) -> None:
        said = {"webhook": None, **conversion}
        if said["webhook"]:
            # A CRD names either a Service or a URL. If the CRD named the respective other field
            # before, this merge patch removes that field.
            client = {"service": None, "url": None, **_client(said)}
            if self._bundle is not None:
                client["caBundle"] = base64.b64encode(await self._bundle()).decode()
            said["webhook"] = {**said["webhook"], "clientConfig": client}
        metadata: Object = {"resourceVersion": crd["metadata"]["resourceVersion"]}
        if said["webhook"] and self._annotations:
            metadata["annotations"] = self._annotations
        change = {"metadata": metadata, "spec": {"conversion": said}}
        name = crd["metadata"]["name"]
        await self._client.patch(CRDS, name, change=change, manager=POLYVER)

    async def _tell(
        self,
        conversion: Object,
        status: ConditionStatus,
        reason: str,
        message: str,
        *,
        kind: str = "Serving",
    ) -> None:
        """Set a condition of a Conversion, unless the condition is already the same."""
        if self._told is None:
            return
        condition = DesiredCondition(kind, status, reason, message)
        conditions = set_conditions(conversion, [condition], now=timestamp(self._clock))
        if conditions == (conversion.get("status") or {}).get("conditions"):
            return
        await self._client.patch(
            _CONVERSIONS,
            conversion["metadata"]["name"],
            change={"status": {"conditions": conditions}},
            subresource="status",
            manager=POLYVER,
        )


@dataclass(frozen=True, slots=True)
class _Published:
    """A published converter, and the state of its Conversion."""

    made_from: str
    problem: str
    """The reason why the Conversion, or a part of it, is not used; empty if all of it is used."""
    since: float
    """The time at which this process first saw the Conversion."""
    converter: Converter
    orphaned: bool = False
    """True if the Conversion was removed although its kind still needs it."""


def _made(conversion: Object, crd: Object | None) -> tuple[Converter, str]:
    """Build the converter of a Conversion. Also return a problem; "" if there is none.

    The problem is that the Conversion does not fit its CRD. The converter then uses the versions
    that both have. Without any converter, clients could neither read objects in other versions nor
    delete objects.
    """
    try:
        return converter_of(conversion, crd), ""
    except PolyverError as error:
        if crd is None:
            raise
        rest = (
            "versions that both have are converted, and fields that a version lacks are preserved"
        )
        return converter_left(conversion, crd), f"{_told(error)}; {rest}"


def _log_orphan(key: str, used: Sequence[str]) -> None:
    Log().warning(
        "a Conversion that its kind needs was deleted; this process uses it until it ends",
        definition=key,
        versions=listed(used),
    )


def _missing(before: Converter, after: Converter, crd: Object | None) -> list[str]:
    """Return the versions in use that the old converter converts, and the new one does not."""
    used = versions_in_use(crd) if crd is not None else []
    return [each for each in used if each in before.versions and each not in after.versions]


def _told(error: PolyverError) -> str:
    """Format an error for a condition: its fact, the field that it names, and its hint.

    The file and line are left out.
    """
    at = place_of(error)
    where, hint = f" ({at})" if at else "", f"; {error.hint}" if error.hint else ""
    return f"{error.fact}{where}{hint}"


def _state(kind: ResourceKind, obj: Object) -> tuple[str, Any, bool, str]:
    del kind
    metadata = obj["metadata"]
    parts = (metadata.get("annotations"), metadata.get("finalizers"))
    going = "deletionTimestamp" in metadata
    return metadata["uid"], metadata.get("generation"), going, str(parts)


def _observe(kind: ResourceKind, change: Change[Any]) -> Sequence[str]:
    del kind
    return (change.key.name,) if change.before != change.after else ()


def _made_from(conversion: Object, crd: Object | None) -> str:
    versions = crd["spec"]["versions"] if crd else None
    return repr((conversion["spec"], versions))


def _is_told(crd: Object, told: Mapping[str, Any]) -> bool:
    """Report whether the `spec.conversion` of a CRD already has all values in `told`."""
    said = crd["spec"].get("conversion") or {}
    client, wanted = _client(said), _client(told)
    return said.get("strategy") == told.get("strategy") and all(
        client.get(name) == value for name, value in wanted.items()
    )


def _client(conversion: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the `clientConfig` of a CRD's conversion; the port of its Service defaults to 443."""
    client: Mapping[str, Any] = (conversion.get("webhook") or {}).get("clientConfig") or {}
    if not client.get("service"):
        return client
    return {**client, "service": {"port": _HTTPS, **client["service"]}}
