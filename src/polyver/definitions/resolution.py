"""Resolves the references of an application to versions, and records the result.

An application is resolved completely or not at all: if one reference cannot be resolved, no
reference of the application moves.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, Final

from polyver.capability import Refusal, condition_reason
from polyver.capability.gates import gate_from_data
from polyver.core import (
    InvalidVersion,
    Lineage,
    NoMatch,
    Notes,
    Pin,
    PolyverError,
    Release,
    Resolution,
    SemVer,
    Serial,
    Stage,
    Version,
    resolve,
)
from polyver.core.plain import ReadOnlyObject
from polyver.definitions.kinds import GROUP, STORED
from polyver.definitions.names import (
    ALLOW_DELETION,
    APP_NAME,
    PUBLISH_VERSION,
    SYSTEM_NAMESPACE,
    TYPES,
    revision_name,
)
from polyver.definitions.uses import (
    DefinitionUse,
    check_application,
    home_of,
    question_of,
    settled,
    uses_of,
)
from polyver.kube.objects import digest
from polyver.kube.objects.conditions import DesiredCondition, set_conditions

__all__ = [
    "KEPT",
    "ChosenVersion",
    "Homes",
    "application_status",
    "choose",
    "choose_all",
    "lineage_in",
    "newest_revision",
    "numbered_revisions",
    "recorded",
    "recorded_revision",
    "resolution_data",
    "revision_hash",
    "revision_of",
    "surplus_revisions",
    "used_of",
]

KEPT: Final = 10
"""Maximum number of ApplicationRevisions that polyver keeps for an application."""
Homes = Mapping[str, Lineage]
"""The lineages of the definitions of one kind and name, by namespace."""


@dataclass(frozen=True, slots=True)
class ChosenVersion:
    """The version to which one reference of an application resolves."""

    use: DefinitionUse
    home: str
    """Namespace of the definition."""
    resolution: Resolution

    @property
    def revision(self) -> str:
        """Name of the DefinitionRevision of the version."""
        release = self.resolution.release
        if isinstance(release.version, Serial):
            return release.name
        return revision_name(self.use.definition, release.version)


def choose(use: DefinitionUse, homes: Homes) -> ChosenVersion:
    """Resolve a reference to a definition.

    The definition in the namespace of the application has precedence over the definition in the
    system namespace.
    """
    home = home_of(use, homes)
    if home is None:
        places = dict.fromkeys((use.namespace, SYSTEM_NAMESPACE))
        fact = f"there is no {use.kind} {use.definition}"
        hint = f"searched in {' and '.join(places)}"
        raise Refusal("DefinitionNotFound", fact, at=use.dependent.at, hint=hint)
    asking, lineage = settled(use, home), homes[home]
    if asking.is_failing and _is_gone(asking, lineage):
        # The application was never applied with the pinned release, so its pin is ignored.
        asking = replace(asking, dependent=replace(asking.dependent, pin=None), since="")
    try:
        asked, policy = question_of(asking, lineage)
        return ChosenVersion(asking, home, resolve(lineage, asked, policy, asking.dependent))
    except NoMatch:
        raise
    except PolyverError as error:
        reason = condition_reason(error, default="InvalidSelector")
        raise Refusal(reason, error.fact, at=use.dependent.at, hint=error.hint) from None


def _is_gone(use: DefinitionUse, lineage: Lineage) -> bool:
    """Report whether a reference has no pin, or its pinned release was removed or never existed."""
    pin = use.dependent.pin
    release = lineage.get(pin.release) if pin is not None else None
    return release is None or release.stage.is_gone


def choose_all(
    application: ReadOnlyObject, homes: Callable[[str, str], Homes]
) -> tuple[list[ChosenVersion], list[PolyverError]]:
    """Resolve all references of an application. Return the versions and the errors.

    `homes(kind, name)` returns the lineages of the definitions with this kind and name, by
    namespace.
    """
    try:
        check_application(application)
    except PolyverError as error:
        return [], [error]
    chosen: list[ChosenVersion] = []
    errors: list[PolyverError] = []
    for use in uses_of(application):
        try:
            chosen.append(choose(use, homes(use.kind, use.definition)))
        except PolyverError as error:
            errors.append(error)
    return chosen, errors


def lineage_in(definition: ReadOnlyObject) -> Lineage | None:
    """Read the lineage from a definition's status. Return None if no version is published yet."""
    status: ReadOnlyObject = definition.get("status") or {}
    name = definition["metadata"]["name"]
    try:
        releases = [_release(each) for each in status.get("versions") or ()]
        return Lineage(name, releases) if releases else None
    except PolyverError:
        return None  # another program wrote the status; the controller will correct it


def _release(said: ReadOnlyObject) -> Release:
    since = SemVer.complete(said["since"]) if said.get("since") else None
    stage, notes = Stage(said["stage"]), Notes(since=since, use=said.get("use") or "")
    try:
        version: Version = SemVer.parse(said["version"])
    except InvalidVersion:
        version = Serial.parse(said["version"])
    name = said["revision"] if isinstance(version, Serial) else ""
    labels = {ALLOW_DELETION: "true"} if said.get("allowDeletion") else {}
    gate = gate_from_data(said["gate"]) if said.get("gate") else None
    return Release(version, said["digest"], stage, labels, gate, notes, name)


# Records.


def resolution_data(chosen: ChosenVersion, *, now: str) -> dict[str, Any]:
    """Build the entry of `status.resolutions` for a reference.

    The time `since` changes only if the version changes.
    """
    use, found = chosen.use, chosen.resolution
    kept = use.dependent.pin == found.release.pin
    data: dict[str, Any] = {
        "kind": TYPES[use.kind],
        "component": use.place,
        "at": use.dependent.at,
        "definition": f"{chosen.home}/{use.definition}",
        "requested": use.requested,
        "version": str(found.release.version),
        "revision": chosen.revision,
        "digest": found.release.digest,
        "reason": found.reason,
        "since": use.since if kept and use.since else now,
    }
    if (previous := use.dependent.previous if kept else use.dependent.pin) is not None:
        data["previous"] = _previous_data(use, previous)
    return data | ({"warnings": [*found.warnings]} if found.warnings else {})


def _previous_data(use: DefinitionUse, pin: Pin) -> dict[str, str]:
    """Build the entry `previous` of a resolution, for the release in `pin`."""
    try:
        revision = revision_name(use.definition, SemVer.parse(pin.release))
    except InvalidVersion:
        revision = pin.release  # a numbered revision is pinned by its name
    return {"version": pin.release, "revision": revision, "digest": pin.digest}


def newest_revision(revisions: Iterable[ReadOnlyObject]) -> ReadOnlyObject | None:
    """Return the ApplicationRevision with the highest number, or None."""
    ordered = _ordered(revisions)
    return ordered[-1] if ordered else None


def surplus_revisions(revisions: Iterable[ReadOnlyObject], keep: int = KEPT) -> list[str]:
    """Return the names of the ApplicationRevisions to delete: all except the `keep` newest ones."""
    return [each["metadata"]["name"] for each in _ordered(revisions)[:-keep]]


def numbered_revisions(revisions: Iterable[ReadOnlyObject]) -> list[tuple[int, ReadOnlyObject]]:
    """Return the ApplicationRevisions of an application with their numbers, oldest first."""
    return [(_number(each).number, each) for each in _ordered(revisions)]


def _ordered(revisions: Iterable[ReadOnlyObject]) -> list[ReadOnlyObject]:
    """Sort revisions; the oldest is first. Revisions without a valid number are left out."""
    numbered: dict[Version, ReadOnlyObject] = {}
    for each in revisions:
        with suppress(InvalidVersion):
            numbered[_number(each)] = each
    return [numbered[release.version] for release in Lineage("", map(Release, numbered))]


def _number(revision: ReadOnlyObject) -> Serial:
    return Serial.parse(revision["metadata"]["name"].rpartition("-v")[2])


def recorded(application: ReadOnlyObject, revision: ReadOnlyObject | None) -> dict[str, Any]:
    """Return an application with pins in its status.

    If its status has no pins, they are taken from `revision`, its newest ApplicationRevision.
    """
    status: ReadOnlyObject = application.get("status") or {}
    if revision is None or status.get("resolutions"):
        return dict(application)
    annotations: ReadOnlyObject = revision["metadata"].get("annotations") or {}
    said = {"resolutions": revision["spec"].get("resolutions") or []}
    if PUBLISH_VERSION in annotations:
        said["publishVersion"] = annotations[PUBLISH_VERSION]
    return {**application, "status": {**status, **said}}


def recorded_revision(application: ReadOnlyObject) -> dict[str, Any] | None:
    """Build the metadata of the newest ApplicationRevision from the application's status.

    Return None if the status names no revision.
    """
    status: ReadOnlyObject = application.get("status") or {}
    latest: ReadOnlyObject = status.get("latestRevision") or {}
    if not latest.get("name") or not latest.get("revisionHash"):
        return None
    annotations = {_HASH: latest["revisionHash"]}
    if status.get("publishVersion") is not None:
        annotations[PUBLISH_VERSION] = status["publishVersion"]
    return {"metadata": {"name": latest["name"], "annotations": annotations}}


def revision_of(
    application: ReadOnlyObject,
    resolutions: Sequence[ReadOnlyObject],
    newest: ReadOnlyObject | None,
) -> tuple[dict[str, Any], bool]:
    """Return the ApplicationRevision that records these resolutions, and whether it is new.

    If `newest`, the newest revision, records the same state, return that revision and False.
    """
    metadata: ReadOnlyObject = application["metadata"]
    spec = application.get("spec") or {}
    pins = [{name: each[name] for name in _PINNED} for each in resolutions]
    hashed = digest({"spec": spec, "pins": pins})
    annotations: ReadOnlyObject = metadata.get("annotations") or {}
    said = {n: annotations[n] for n in (PUBLISH_VERSION,) if n in annotations}
    if newest is not None and revision_hash(newest) == (hashed, said.get(PUBLISH_VERSION)):
        return dict(newest), False
    number = _number(newest).number + 1 if newest is not None else 1
    about = {name: metadata[name] for name in ("name", "namespace")}
    whole = {"apiVersion": f"{GROUP}/{STORED}", "kind": "Application", "metadata": about}
    made = {
        "apiVersion": f"{GROUP}/{STORED}",
        "kind": "ApplicationRevision",
        "metadata": {
            "name": f"{metadata['name']}-v{number}",
            "namespace": metadata["namespace"],
            "labels": {APP_NAME: metadata["name"]},
            # The revision has no owner reference. If it were restored from a backup, the owner
            # reference would name the uid of the old application, and garbage collection would
            # delete the revision.
            "annotations": {_HASH: hashed, **said},
        },
        "spec": {
            "application": {**whole, "spec": spec},
            "resolutions": [*map(used_of, resolutions)],
        },
    }
    return made, True


def used_of(resolution: ReadOnlyObject) -> dict[str, Any]:
    """Return a copy of a resolution without its failed move and its previous version."""
    others = ("failedMove", "previous")
    return {name: said for name, said in resolution.items() if name not in others}


_PINNED = ("kind", "at", "definition", "version", "digest")
_HASH = "app.oam.dev/app-revision-hash"


def revision_hash(revision: ReadOnlyObject) -> tuple[str | None, str | None]:
    """Return the recorded hash of an ApplicationRevision's content, and its publishVersion.

    If both values of two revisions are equal, the revisions have equal content.
    """
    annotations: ReadOnlyObject = revision["metadata"].get("annotations") or {}
    return annotations.get(_HASH), annotations.get(PUBLISH_VERSION)


def application_status(
    application: ReadOnlyObject,
    resolutions: Sequence[ReadOnlyObject],
    revision: ReadOnlyObject | None,
    errors: Sequence[PolyverError],
    *,
    now: str,
) -> dict[str, Any]:
    """Build the status of an application after the resolution of its references."""
    before: ReadOnlyObject = application.get("status") or {}
    if errors:
        reason = condition_reason(errors[0], default="Unresolved")
        resolved = DesiredCondition("Resolved", "False", reason, "; ".join(map(str, errors)))
    else:
        number = len(resolutions)
        message = "1 definition" if number == 1 else f"{number} definitions"
        resolved = DesiredCondition("Resolved", "True", "Resolved", message)
    conditions = set_conditions(application, [resolved], now=now)
    status: dict[str, Any] = {**before, "conditions": conditions}
    status["observedGeneration"] = application["metadata"].get("generation", 1)
    status["status"] = "failed" if errors else "rendering"
    if revision is not None and not errors:
        status["resolutions"] = [*resolutions]
        status["latestRevision"] = {
            "name": revision["metadata"]["name"],
            "revision": _number(revision).number,
            "revisionHash": revision["metadata"]["annotations"][_HASH],
        }
        status.pop("publishVersion", None)
        annotations: ReadOnlyObject = application["metadata"].get("annotations") or {}
        if PUBLISH_VERSION in annotations:
            status["publishVersion"] = annotations[PUBLISH_VERSION]
    return status
