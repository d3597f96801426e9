"""Choosing: from what an application asks for to the versions that it uses, and the record of it.

An application gets all that it asks for or nothing: when one place cannot be answered, no place
moves.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, Final

from polyver.capability import Refusal, condition_reason
from polyver.core import (
    InvalidVersion,
    Lineage,
    NoMatch,
    Notes,
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
"""How many ApplicationRevisions an application has at most."""
Homes = Mapping[str, Lineage]
"""The lineages of one kind and name, by their namespaces."""


@dataclass(frozen=True, slots=True)
class ChosenVersion:
    """The version that one place of an application uses."""

    use: DefinitionUse
    home: str
    """The namespace of the definition."""
    resolution: Resolution

    @property
    def revision(self) -> str:
        """The name of its DefinitionRevision."""
        release = self.resolution.release
        if isinstance(release.version, Serial):
            return release.name
        return revision_name(self.use.definition, release.version)


def choose(use: DefinitionUse, homes: Homes) -> ChosenVersion:
    """The version that a place gets: from its own namespace, else from the one for all."""
    home = home_of(use, homes)
    if home is None:
        places = dict.fromkeys((use.namespace, SYSTEM_NAMESPACE))
        fact = f"there is no {use.kind} {use.definition}"
        hint = f"searched in {' and '.join(places)}"
        raise Refusal("DefinitionNotFound", fact, at=use.dependent.at, hint=hint)
    asking, lineage = settled(use, home), homes[home]
    if asking.is_failing and _is_gone(asking, lineage):
        # Nothing was ever applied with it, so nothing is kept.
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
    """Return True if the pinned release was removed, or if there is no such release."""
    pin = use.dependent.pin
    release = lineage.get(pin.release) if pin is not None else None
    return release is None or release.stage.is_gone


def choose_all(
    application: ReadOnlyObject, homes: Callable[[str, str], Homes]
) -> tuple[list[ChosenVersion], list[PolyverError]]:
    """What all places of an application get, and why some get nothing.

    `homes` finds the lineages of a kind and a name.
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
    """The lineage that a definition's status tells; None as long as nothing is published."""
    status: ReadOnlyObject = definition.get("status") or {}
    name = definition["metadata"]["name"]
    try:
        releases = [_release(each) for each in status.get("versions") or ()]
        return Lineage(name, releases) if releases else None
    except PolyverError:
        return None  # somebody else wrote it, and the controller will write it anew


def _release(said: ReadOnlyObject) -> Release:
    since = SemVer.complete(said["since"]) if said.get("since") else None
    stage, notes = Stage(said["stage"]), Notes(since=since, use=said.get("use") or "")
    try:
        version: Version = SemVer.parse(said["version"])
    except InvalidVersion:
        version = Serial.parse(said["version"])
    name = said["revision"] if isinstance(version, Serial) else ""
    labels = {ALLOW_DELETION: "true"} if said.get("allowDeletion") else {}
    return Release(version, said["digest"], stage, labels, notes=notes, name=name)


# The record of it.


def resolution_data(chosen: ChosenVersion, *, now: str) -> dict[str, Any]:
    """A resolution as the status has it; since when does not change while the version does not."""
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
    return data | ({"warnings": [*found.warnings]} if found.warnings else {})


def newest_revision(revisions: Iterable[ReadOnlyObject]) -> ReadOnlyObject | None:
    """Of the ApplicationRevisions of an application, the one that was made last."""
    ordered = _ordered(revisions)
    return ordered[-1] if ordered else None


def surplus_revisions(revisions: Iterable[ReadOnlyObject], keep: int = KEPT) -> list[str]:
    """The names of the ApplicationRevisions that are too many: all but those made last."""
    return [each["metadata"]["name"] for each in _ordered(revisions)[:-keep]]


def numbered_revisions(revisions: Iterable[ReadOnlyObject]) -> list[tuple[int, ReadOnlyObject]]:
    """The ApplicationRevisions of an application in the order of their numbers, with these."""
    return [(_number(each).number, each) for each in _ordered(revisions)]


def _ordered(revisions: Iterable[ReadOnlyObject]) -> list[ReadOnlyObject]:
    """In the order in which they were made; what somebody else made is left out."""
    numbered: dict[Version, ReadOnlyObject] = {}
    for each in revisions:
        with suppress(InvalidVersion):
            numbered[_number(each)] = each
    return [numbered[release.version] for release in Lineage("", map(Release, numbered))]


def _number(revision: ReadOnlyObject) -> Serial:
    return Serial.parse(revision["metadata"]["name"].rpartition("-v")[2])


def recorded(application: ReadOnlyObject, revision: ReadOnlyObject | None) -> dict[str, Any]:
    """An application with the pins of its newest revision, if its status has been lost."""
    status: ReadOnlyObject = application.get("status") or {}
    if revision is None or status.get("resolutions"):
        return dict(application)
    annotations: ReadOnlyObject = revision["metadata"].get("annotations") or {}
    said = {"resolutions": revision["spec"].get("resolutions") or []}
    if PUBLISH_VERSION in annotations:
        said["publishVersion"] = annotations[PUBLISH_VERSION]
    return {**application, "status": {**status, **said}}


def recorded_revision(application: ReadOnlyObject) -> dict[str, Any] | None:
    """The newest ApplicationRevision as far as the status tells it; None if it does not."""
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
    """The ApplicationRevision that records a state, and whether it has to be made."""
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
            # No owner: with one, what a backup brings back would be collected as garbage.
            "annotations": {_HASH: hashed, **said},
        },
        "spec": {
            "application": {**whole, "spec": spec},
            "resolutions": [*map(used_of, resolutions)],
        },
    }
    return made, True


def used_of(resolution: ReadOnlyObject) -> dict[str, Any]:
    """A resolution without the release that could not be taken."""
    return {name: said for name, said in resolution.items() if name != "failedMove"}


_PINNED = ("kind", "at", "definition", "version", "digest")
_HASH = "app.oam.dev/app-revision-hash"


def revision_hash(revision: ReadOnlyObject) -> tuple[str | None, str | None]:
    """What is the same for two ApplicationRevisions that recorded the same."""
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
    """The status that an application should have."""
    before: ReadOnlyObject = application.get("status") or {}
    known = {each["type"]: each for each in before.get("conditions") or ()}
    if errors:
        said = {"status": "False", "reason": condition_reason(errors[0], default="Unresolved")}
        said["message"] = "; ".join(map(str, errors))
    else:
        said = {"status": "True", "reason": "Resolved", "message": _count(len(resolutions))}
    same = known.get("Resolved", {}).get("status") == said["status"]
    since = known["Resolved"]["lastTransitionTime"] if same else now
    generation = application["metadata"].get("generation", 1)
    known["Resolved"] = {
        "type": "Resolved",
        **said,
        "observedGeneration": generation,
        "lastTransitionTime": since,
    }
    status: dict[str, Any] = {**before, "conditions": [*known.values()]}
    status["observedGeneration"] = generation
    status["status"] = "failed" if errors else "rendering"
    if revision is not None and not errors:
        status["resolutions"] = [*resolutions]
        status["latestRevision"] = _latest(revision)
        status.pop("publishVersion", None)
        annotations: ReadOnlyObject = application["metadata"].get("annotations") or {}
        if PUBLISH_VERSION in annotations:
            status["publishVersion"] = annotations[PUBLISH_VERSION]
    return status


def _count(resolutions: int) -> str:
    return "1 definition" if resolutions == 1 else f"{resolutions} definitions"


def _latest(revision: ReadOnlyObject) -> dict[str, Any]:
    hashed = revision["metadata"]["annotations"][_HASH]
    number = _number(revision).number
    return {"name": revision["metadata"]["name"], "revision": number, "revisionHash": hashed}
