"""Lock files: they record the versions that all applications use, for comparisons of clusters.

For each reference to a definition, a lock has the version and the digest of the version's content.
If the applications of two clusters have equal locks, they use the same content. `differences`
compares two locks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec

from polyver.core import PolyverError
from polyver.core.plain import ReadOnlyObject
from polyver.definitions._locks import LOCK_PLACE, Locked, carried_lock, check_places, lock_text
from polyver.definitions.names import LOCK, TYPES
from polyver.definitions.resolution import ChosenVersion, Homes, choose_all
from polyver.kube.objects import Document
from polyver.kube.objects.codec import prepare

__all__ = [
    "LOCK_PLACE",
    "Difference",
    "Lock",
    "LockOf",
    "Locked",
    "Named",
    "carried_lock",
    "differences",
    "lock_data",
    "lock_of",
    "lock_text",
    "locked",
    "places_of",
    "read_lock",
    "with_lock",
]

Named = tuple[str, str]
"""Namespace and name of an application."""
API_VERSION = "polyver.dev/v1alpha1"


@dataclass(frozen=True, slots=True)
class Lock:
    """The locked versions of applications, by the namespace and name of the application."""

    applications: Mapping[Named, tuple[Locked, ...]]
    namespace: str = ""
    """The namespace to which the lock is limited; empty if the lock covers all namespaces."""

    def inside(self, namespace: str) -> Lock:
        """Return the part of the lock for one namespace.

        If `namespace` is empty, return the whole lock.
        """
        if not namespace or namespace == self.namespace:
            return self
        kept = {name: places for name, places in self.applications.items() if name[0] == namespace}
        return Lock(kept, namespace)


@dataclass(frozen=True, slots=True)
class LockOf:
    """The lock of the applications that can be resolved, and the errors of the others."""

    lock: Lock
    failures: Mapping[Named, Sequence[PolyverError]] = field(default_factory=dict)


def lock_of(
    applications: Iterable[ReadOnlyObject],
    homes: Callable[[str, str], Homes],
    *,
    namespace: str = "",
) -> LockOf:
    """Resolve applications with the pins in their status. Return a lock of the resolved versions.

    `homes(kind, name)` returns the lineages of the definitions with this kind and name, by
    namespace.
    """
    found: dict[Named, tuple[Locked, ...]] = {}
    failures: dict[Named, Sequence[PolyverError]] = {}
    for each in sorted(applications, key=_name):
        chosen, errors = choose_all(each, homes)
        if errors:
            failures[_name(each)] = errors
        else:
            found[_name(each)] = places_of(chosen)
    return LockOf(Lock(found, namespace), failures)


def _name(application: ReadOnlyObject) -> Named:
    metadata: ReadOnlyObject = application["metadata"]
    return metadata.get("namespace", ""), metadata["name"]


def places_of(chosen: Iterable[ChosenVersion]) -> tuple[Locked, ...]:
    """Convert resolved references to lock entries."""
    return tuple(
        Locked(
            kind=TYPES[each.use.kind],  # type: ignore[arg-type]
            component=each.use.place,
            definition=f"{each.home}/{each.use.definition}",
            requested=each.use.requested,
            version=str(each.resolution.release.version),
            revision=each.revision,
            digest=each.resolution.release.digest,
        )
        for each in chosen
    )


def locked(resolution: ReadOnlyObject) -> Locked:
    """Convert an entry of `status.resolutions` to a lock entry."""
    said = {name: resolution.get(name, "") for name in Locked.__struct_fields__}
    return msgspec.convert(said, Locked)


def with_lock(application: ReadOnlyObject, places: Iterable[Locked]) -> dict[str, Any]:
    """Return a copy of an application whose lock annotation has these lock entries."""
    metadata: ReadOnlyObject = application["metadata"]
    annotations = {**(metadata.get("annotations") or {}), LOCK: lock_text(places)}
    return {**application, "metadata": {**metadata, "annotations": annotations}}


# The lock file.


class _Application(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    namespace: str
    name: str
    resolutions: list[Locked]


class _File(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    api_version: str
    kind: str
    applications: list[_Application]
    namespace: str = ""


prepare(_File)


def lock_data(lock: Lock) -> dict[str, Any]:
    """Convert a lock to the content of a lock file. Equal locks always give equal data."""
    about = {"apiVersion": API_VERSION, "kind": "Lock"}
    scope = {"namespace": lock.namespace} if lock.namespace else {}
    applications = [
        {"namespace": home, "name": name, "resolutions": [each.data for each in places]}
        for (home, name), places in sorted(lock.applications.items())
    ]
    return {**about, **scope, "applications": applications}


def read_lock(document: Document) -> Lock:
    """Parse a lock file."""
    found = document.read(_File)
    if (found.api_version, found.kind) != (API_VERSION, "Lock"):
        fact = f"{found.kind} of {found.api_version} is not a lock"
        raise document.error(fact, "kind", hint=f"expected kind Lock of {API_VERSION}")
    applications: dict[Named, tuple[Locked, ...]] = {}
    for number, each in enumerate(found.applications):
        named = each.namespace, each.name
        if named in applications:
            fact = f"{'/'.join(named)} is listed twice"
            raise document.error(fact, "applications", number, "name")
        check_places(document, each.resolutions, "applications", number, "resolutions")
        applications[named] = tuple(each.resolutions)
    return Lock(applications, found.namespace)


# Comparison.


@dataclass(frozen=True, slots=True)
class Difference:
    """A difference between a lock and the versions that applications use."""

    application: str
    what: str
    """The field whose value differs: `definition`, `requested`, `version`, `revision` or `digest`.

    It is `application` or `place` if only one of the two sides has the application or the
    reference, and `unresolved` if the application cannot be resolved.
    """
    locked: str
    found: str
    place: str = ""
    definition: str = ""
    fact: str = ""
    """A message about the difference: `the version is 1.2.1, locked as 1.2.0`."""

    def __str__(self) -> str:
        where = ", ".join(filter(None, (self.application, self.place, self.definition)))
        return f"{where}: {self.fact}"


def differences(
    lock: Lock,
    found: Lock,
    failures: Mapping[Named, Sequence[PolyverError]] | None = None,
) -> list[Difference]:
    """Compare the lock `lock` with the lock `found`, which has the versions that applications use.

    Return all differences, sorted by application. `failures` are the errors of existing
    applications that cannot be resolved.
    """
    failed = failures or {}
    made: list[Difference] = []
    for named in sorted({*lock.applications, *found.applications, *failed}):
        name = "/".join(named)
        wanted = lock.applications.get(named)
        if wanted is None:
            fact = "not in the lock"
            made.append(Difference(name, "application", "", name, fact=fact))
        elif named in failed:
            made += (Difference(name, "unresolved", "", "", fact=str(e)) for e in failed[named])
        elif named not in found.applications:
            fact = "in the lock, but not found"
            made.append(Difference(name, "application", name, "", fact=fact))
        else:
            made += _in_application(name, wanted, found.applications[named])
    return made


def _in_application(
    name: str, wanted: Sequence[Locked], found: Sequence[Locked]
) -> Iterable[Difference]:
    left: dict[tuple[str, str, str], list[Locked]] = {}
    for each in found:
        left.setdefault(each.key, []).append(each)
    for each in wanted:
        there = left.get(each.key)
        if there:
            yield from _in_place(name, each, there.pop(0))
        else:
            fact = "in the lock, but not found"
            yield Difference(name, "place", each.version, "", *_place(each), fact=fact)
    for rest in left.values():
        for each in rest:
            fact = "not in the lock"
            yield Difference(name, "place", "", each.version, *_place(each), fact=fact)


_COMPARED = ("definition", "requested", "version", "revision", "digest")


def _in_place(name: str, wanted: Locked, found: Locked) -> Iterable[Difference]:
    other = [each for each in _COMPARED if getattr(wanted, each) != getattr(found, each)]
    if "version" in other:
        # If the versions differ, the revision and the digest differ too. Report only the version.
        other = [each for each in other if each not in ("revision", "digest")]
    for each in other:
        sides = getattr(wanted, each), getattr(found, each)
        label = f"{each} of {found.version}" if each == "digest" else each
        yield Difference(name, each, *sides, *_place(found), fact=_fact(label, *sides))


def _fact(label: str, wanted: str, found: str) -> str:
    return f"the {label} is {found or 'nothing'}, locked as {wanted or 'nothing'}"


def _place(each: Locked) -> tuple[str, str]:
    return f"{each.kind} {each.component}".strip(), each.definition
