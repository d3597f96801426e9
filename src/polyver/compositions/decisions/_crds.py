"""Decides about the CustomResourceDefinition (CRD) of a CompositeResourceDefinition.

A CompositeResourceDefinition defines a kind of composite resources, and polyver applies a CRD for
this kind. In this module, a definition is a CompositeResourceDefinition. Admission and the
controller share these functions, which work on plain data.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

from polyver.apis.conversion_kind import versions_in_use
from polyver.capability import Refusal
from polyver.compositions._function_references import mapping
from polyver.compositions.decisions._definitions import definition_crd
from polyver.compositions.names import DELETED_BY_FORCE
from polyver.core import listed
from polyver.core.plain import ReadOnlyObject
from polyver.kube.objects.conditions import DesiredCondition, find_condition, set_conditions
from polyver.kube.objects.owners import controller_of

__all__ = [
    "APPLIER",
    "check_conversion",
    "check_crd",
    "check_stored",
    "conversion_change",
    "crd_content",
    "definition_status",
    "is_by_force",
    "is_going",
    "is_ours",
    "is_owned",
    "lost_fields",
    "no_longer_defined",
]

APPLIER: Final = "polyver-compositions"
"""Field manager of the CRDs that polyver applies for kinds of composite resources."""
_NOTHING: Final = {"strategy": "None"}
_OURS: Final = ("Applied", "Established", "Offered", "Postponed")
_HTTPS: Final = 443


def is_going(obj: ReadOnlyObject) -> bool:
    """Report whether an object is being deleted, and still has finalizers."""
    return "deletionTimestamp" in obj["metadata"]


def is_by_force(obj: ReadOnlyObject) -> bool:
    """Report whether an annotation allows the deletion of an object although it is in use."""
    said = mapping(obj["metadata"].get("annotations")).get(DELETED_BY_FORCE)
    return said == "true"


def is_ours(crd: ReadOnlyObject, obj: ReadOnlyObject) -> bool:
    """Report whether a CRD belongs to a CompositeResourceDefinition.

    A CRD without a controller belongs to it if polyver applied the CRD before. A CRD without a
    controller was restored from a backup, or was orphaned.
    """
    if controller_of(crd):
        return is_owned(crd, obj)
    entries = crd["metadata"].get("managedFields") or ()
    return any((e.get("manager"), e.get("operation")) == (APPLIER, "Apply") for e in entries)


def is_owned(crd: ReadOnlyObject, obj: ReadOnlyObject) -> bool:
    """Report whether a CompositeResourceDefinition is the controller of a CRD."""
    uid: str = obj["metadata"]["uid"]
    return controller_of(crd) == uid


def check_crd(obj: ReadOnlyObject, crd: ReadOnlyObject | None) -> list[Refusal]:
    """Return a refusal if the existing CRD has another owner."""
    if crd is None or is_ours(crd, obj):
        return []
    fact = f"there is a CustomResourceDefinition {crd['metadata']['name']} with another owner"
    hint = "delete it, or give the kind another name"
    return [Refusal("NotOurs", fact, at="metadata.name", hint=hint)]


def no_longer_defined(obj: ReadOnlyObject, crd: ReadOnlyObject | None) -> list[str]:
    """Return the versions in the CRD's `storedVersions` that the definition no longer has."""
    stored = mapping(mapping(crd).get("status")).get("storedVersions") or ()
    names = {each["name"] for each in obj["spec"]["versions"]}
    return [each for each in stored if each not in names]


def check_stored(
    obj: ReadOnlyObject, crd: ReadOnlyObject | None, composites: Sequence[str]
) -> list[Refusal]:
    """Return a refusal if existing objects may be stored in a version that was removed.

    `composites` names some of the existing objects.
    """
    dropped = no_longer_defined(obj, crd)
    if not dropped or not composites:
        return []
    fact = f"objects may be stored as {listed(dropped)}: {listed(composites, most=3)}"
    hint = "keep it with served: false until all objects are rewritten"
    return [Refusal("VersionStored", fact, at="spec.versions", hint=hint)]


def lost_fields(obj: ReadOnlyObject, crd: ReadOnlyObject | None) -> list[str]:
    """Return the fields that stored objects would lose if the definition were applied.

    If the storage version changes and there is no conversion webhook, the API server reads an
    object that was stored in the former version with the schema of the new version. It then prunes
    the fields that the new schema does not have.
    """
    if crd is None or "Webhook" in {_conversion(each["spec"])["strategy"] for each in (obj, crd)}:
        return []
    before, after = _storage(crd), _storage(definition_crd(obj))
    if before["name"] == after["name"]:
        return []
    return [*_pruned(_schema(before), _schema(after), "")]


def _storage(crd: ReadOnlyObject) -> ReadOnlyObject:
    found: ReadOnlyObject = next(each for each in crd["spec"]["versions"] if each["storage"])
    return found


def _schema(version: ReadOnlyObject) -> ReadOnlyObject:
    return mapping(mapping(version.get("schema")).get("openAPIV3Schema"))


def _pruned(before: ReadOnlyObject, after: ReadOnlyObject, path: str) -> Iterator[str]:
    """Yield the paths of fields in the schema `before` that the schema `after` would prune."""
    if after.get("x-kubernetes-preserve-unknown-fields"):
        return
    others = mapping(after.get("additionalProperties")) or None
    fields = mapping(after.get("properties"))
    for name, schema in mapping(before.get("properties")).items():
        there = fields.get(name, others)
        at = f"{path}.{name}" if path else name
        if there is None:
            yield at
        else:
            yield from _pruned(schema, there, at)
    for inside, sign in (("items", "[]"), ("additionalProperties", ".*")):
        if schema := mapping(before.get(inside)):
            yield from _pruned(schema, mapping(after.get(inside)), path + sign)


def check_conversion(
    obj: ReadOnlyObject, crd: ReadOnlyObject | None, composites: Sequence[str]
) -> list[Refusal]:
    """Return a refusal if existing objects would lose fields.

    `composites` names some of these objects.
    """
    lost = lost_fields(obj, crd) if composites else []
    if crd is None or not lost:
        return []
    before, after = (_storage(each)["name"] for each in (crd, definition_crd(obj)))
    fact = f"objects are stored as {before}, and would lose {listed(lost, most=3)} in {after}"
    hint = (
        f"leave {before} referenceable until a Conversion for the kind is served, "
        f"or give spec.conversion a webhook"
    )
    return [Refusal("ConversionMissing", fact, at="spec.versions", hint=hint)]


def crd_content(obj: ReadOnlyObject, crd: ReadOnlyObject | None = None) -> dict[str, Any]:
    """Build the CRD to apply. `crd` is the existing CRD.

    The CRD has no `spec.conversion`, because a Conversion for the kind may set it. If objects may
    be stored in a version that the definition no longer has, this version is kept, but it is not
    served.
    """
    made = definition_crd(obj)
    made["spec"].pop("conversion", None)
    if crd is not None:
        made["metadata"]["uid"] = crd["metadata"]["uid"]
        kept = no_longer_defined(obj, crd)
        made["spec"]["versions"] += [
            {**each, "served": False, "storage": False}
            for each in crd["spec"]["versions"]
            if each["name"] in kept
        ]
    return made


def conversion_change(obj: ReadOnlyObject, crd: ReadOnlyObject) -> dict[str, Any] | None:
    """Build a merge patch that sets `spec.conversion` of the CRD as the definition requests it.

    Return None if nothing needs to change. Fields that other clients add, such as a CA bundle, are
    ignored. If a kind has several versions in use, its webhook is never removed, because its
    objects would lose fields.
    """
    wanted, there = _conversion(obj["spec"]), _conversion(crd["spec"])
    if wanted["strategy"] == "None" != there["strategy"] and len(versions_in_use(crd)) > 1:
        return None
    if wanted["strategy"] == there["strategy"] and _is_part(_client(wanted), _client(there)):
        return None
    said: dict[str, Any] = {"webhook": None, **wanted}
    if said["webhook"]:
        # The merge patch sets the unused field (`service` or `url`) to null, because the CRD may
        # contain it.
        client = {"service": None, "url": None, **_client(wanted)}
        said["webhook"] = {**said["webhook"], "clientConfig": client}
    return {"spec": {"conversion": said}}


def _conversion(spec: ReadOnlyObject) -> ReadOnlyObject:
    return mapping(spec.get("conversion")) or _NOTHING


def _client(conversion: ReadOnlyObject) -> ReadOnlyObject:
    client = mapping(mapping(conversion.get("webhook")).get("clientConfig"))
    if not client.get("service"):
        return client
    return {**client, "service": {"port": _HTTPS, **client["service"]}}


def _is_part(wanted: ReadOnlyObject, there: ReadOnlyObject) -> bool:
    return all(there.get(name) == value for name, value in wanted.items())


# Status.


def definition_status(
    obj: ReadOnlyObject,
    crd: ReadOnlyObject | None,
    refusals: Sequence[Refusal] = (),
    *,
    waits_for: Sequence[str] = (),
    now: str,
) -> dict[str, Any]:
    """Build the status that a definition should have.

    Unchanged conditions keep their transition times. `waits_for` names composite resources that
    still exist, although the definition is being deleted.
    """
    mine = crd if crd is not None and is_ours(crd, obj) else None
    facts = [_established(mine), *_applied(obj, refusals), *_offered(obj), *_postponed(waits_for)]
    stale = {*_OURS} - {fact.type for fact in facts}
    before: ReadOnlyObject = obj.get("status") or {}
    made = [e for e in set_conditions(obj, facts, now=now) if e["type"] not in stale]
    status = {**before, "conditions": made}
    status.pop("controllers", None)
    if mine is None or facts[0].status != "True":
        return status
    return {**status, "controllers": {"compositeResourceType": _composed_type(mine)}}


def _established(crd: ReadOnlyObject | None) -> DesiredCondition:
    if crd is None:
        return DesiredCondition(
            "Established", "False", "NotDefined", "there is no CustomResourceDefinition"
        )
    name = crd["metadata"]["name"]
    if is_going(crd):
        told = f"the CustomResourceDefinition {name} is being deleted"
        return DesiredCondition("Established", "False", "TerminatingCompositeResource", told)
    names = find_condition(crd, "NamesAccepted")
    if names is not None and names["status"] == "False":
        message = names.get("message") or ""
        return DesiredCondition(
            "Established", "False", "NamesNotAccepted", f"its names are in use: {message}"
        )
    said = find_condition(crd, "Established")
    if said is None or said["status"] != "True":
        return DesiredCondition(
            "Established", "False", "NotYetServed", "the API server does not serve it yet"
        )
    return DesiredCondition("Established", "True", "WatchingCompositeResource")


def _applied(obj: ReadOnlyObject, refusals: Sequence[Refusal]) -> Iterable[DesiredCondition]:
    if refusals:
        message = "; ".join(map(str, refusals))
        yield DesiredCondition("Applied", "False", refusals[0].reason, message)
    elif not is_going(obj):
        yield DesiredCondition("Applied", "True", "Applied")


def _offered(obj: ReadOnlyObject) -> Iterable[DesiredCondition]:
    if obj["spec"].get("claimNames"):
        told = "claims are not supported: use composite resources"
        yield DesiredCondition("Offered", "False", "ClaimsUnsupported", told)


def _postponed(waits_for: Sequence[str]) -> Iterable[DesiredCondition]:
    if waits_for:
        told = f"it is deleted after these: {listed(waits_for, most=3)}"
        yield DesiredCondition("Postponed", "True", "InUse", told)


def _composed_type(crd: ReadOnlyObject) -> dict[str, str]:
    """Return the API version and kind of the CRD's storage version.

    The definition may no longer have this version.
    """
    spec = crd["spec"]
    stored = next(each["name"] for each in spec["versions"] if each["storage"])
    return {"apiVersion": f"{spec['group']}/{stored}", "kind": spec["names"]["kind"]}
