"""What a definition means for its CustomResourceDefinition: whose that is, what it says, what goes.

Admission and the controller ask the same; objects are plain data as the server has them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

from polyver.apis.conversion_kind import versions_in_use
from polyver.capability import Refusal
from polyver.compositions._conditions import DesiredCondition, condition_of, conditions_with
from polyver.compositions._function_references import mapping
from polyver.compositions.decisions._definitions import definition_crd
from polyver.compositions.names import DELETED_BY_FORCE
from polyver.core import listed
from polyver.core.plain import ReadOnlyObject
from polyver.kube.objects.owners import controller_of

__all__ = [
    "APPLIER",
    "check_crd",
    "check_stored",
    "conversion_change",
    "crd_content",
    "definition_status",
    "is_by_force",
    "is_going",
    "is_ours",
    "is_owned",
    "no_longer_defined",
]

APPLIER: Final = "polyver-compositions"
"""Who applies the definitions of composite resources, as `managedFields` have it."""
_NOTHING: Final = {"strategy": "None"}
_OURS: Final = ("Applied", "Established", "Offered", "Postponed")
_HTTPS: Final = 443


def is_going(obj: ReadOnlyObject) -> bool:
    """Whether an object has been deleted, and is there until somebody lets it go."""
    return "deletionTimestamp" in obj["metadata"]


def is_by_force(obj: ReadOnlyObject) -> bool:
    """Whether somebody wants it deleted whoever uses it."""
    said = mapping(obj["metadata"].get("annotations")).get(DELETED_BY_FORCE)
    return said == "true"


def is_ours(crd: ReadOnlyObject, obj: ReadOnlyObject) -> bool:
    """Whether a CustomResourceDefinition is that of a definition.

    One without a controller is, if it was once: after a restore, or when it was left behind.
    """
    if controller_of(crd):
        return is_owned(crd, obj)
    entries = crd["metadata"].get("managedFields") or ()
    return any((e.get("manager"), e.get("operation")) == (APPLIER, "Apply") for e in entries)


def is_owned(crd: ReadOnlyObject, obj: ReadOnlyObject) -> bool:
    """Whether a CustomResourceDefinition goes with a definition."""
    uid: str = obj["metadata"]["uid"]
    return controller_of(crd) == uid


def check_crd(obj: ReadOnlyObject, crd: ReadOnlyObject | None) -> list[Refusal]:
    """Why a CustomResourceDefinition that is there is left alone."""
    if crd is None or is_ours(crd, obj):
        return []
    fact = f"there is a CustomResourceDefinition {crd['metadata']['name']} with another owner"
    hint = "delete it, or give the kind another name"
    return [Refusal("NotOurs", fact, at="metadata.name", hint=hint)]


def no_longer_defined(obj: ReadOnlyObject, crd: ReadOnlyObject | None) -> list[str]:
    """Versions that a definition has no longer, and in which objects may be stored."""
    stored = mapping(mapping(crd).get("status")).get("storedVersions") or ()
    names = {each["name"] for each in obj["spec"]["versions"]}
    return [each for each in stored if each not in names]


def check_stored(
    obj: ReadOnlyObject, crd: ReadOnlyObject | None, composites: Sequence[str]
) -> list[Refusal]:
    """Why a version cannot be dropped; `composites` are those that there are, of any version."""
    dropped = no_longer_defined(obj, crd)
    if not dropped or not composites:
        return []
    fact = f"objects may be stored as {listed(dropped)}: {listed(composites, most=3)}"
    hint = "keep it with served: false until all objects are rewritten"
    return [Refusal("VersionStored", fact, at="spec.versions", hint=hint)]


def crd_content(obj: ReadOnlyObject, crd: ReadOnlyObject | None = None) -> dict[str, Any]:
    """The CustomResourceDefinition as it is to be applied; `crd` is the one that is there.

    Who converts is not part of it: a Conversion for the kind has a say in that. A version that
    may still be stored is kept, unserved.
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
    """Return a merge patch that sets `spec.conversion` of the CRD as defined; None if it is set.

    Fields that other clients filled in, such as a CA bundle, are ignored. The conversion of a kind
    with several versions in use is never removed: its objects would lose fields.
    """
    wanted, there = _conversion(obj["spec"]), _conversion(crd["spec"])
    if wanted["strategy"] == "None" != there["strategy"] and len(versions_in_use(crd)) > 1:
        return None
    if wanted["strategy"] == there["strategy"] and _is_part(_client(wanted), _client(there)):
        return None
    said: dict[str, Any] = {"webhook": None, **wanted}
    if said["webhook"]:
        # A service or a URL is named, and it may have been the other one before.
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


# What it says of itself.


def definition_status(
    obj: ReadOnlyObject,
    crd: ReadOnlyObject | None,
    refusals: Sequence[Refusal] = (),
    *,
    waits_for: Sequence[str] = (),
    now: str,
) -> dict[str, Any]:
    """The status that a definition should have; times of what has not changed stay.

    `waits_for` are the composite resources that are there although it was deleted.
    """
    mine = crd if crd is not None and is_ours(crd, obj) else None
    facts = [_established(mine), *_applied(obj, refusals), *_offered(obj), *_postponed(waits_for)]
    stale = {*_OURS} - {fact.type for fact in facts}
    before: ReadOnlyObject = obj.get("status") or {}
    made = [e for e in conditions_with(obj, facts, now=now) if e["type"] not in stale]
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
    names = condition_of(crd, "NamesAccepted")
    if names is not None and names["status"] == "False":
        message = names.get("message") or ""
        return DesiredCondition(
            "Established", "False", "NamesNotAccepted", f"its names are in use: {message}"
        )
    said = condition_of(crd, "Established")
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
    """The version that is stored, also while the definition asks for another one in vain."""
    spec = crd["spec"]
    stored = next(each["name"] for each in spec["versions"] if each["storage"])
    return {"apiVersion": f"{spec['group']}/{stored}", "kind": spec["names"]["kind"]}
