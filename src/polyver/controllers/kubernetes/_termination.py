"""The conditions of a namespace that is being deleted, decided from what remains in it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from polyver.core.plain import Object
from polyver.kube.objects.conditions import set_condition
from polyver.kube.objects.kinds import ResourceKind

__all__ = ["Remains", "conditions"]

_FINE = {
    "NamespaceDeletionDiscoveryFailure": (
        "ResourcesDiscovered",
        "All resources successfully discovered",
    ),
    "NamespaceDeletionGroupVersionParsingFailure": (
        "ParsedGroupVersions",
        "All legacy kube types successfully parsed",
    ),
    "NamespaceDeletionContentFailure": (
        "ContentDeleted",
        "All content successfully deleted, may be waiting on finalization",
    ),
    "NamespaceContentRemaining": ("ContentRemoved", "All content successfully removed"),
    "NamespaceFinalizersRemaining": (
        "ContentHasNoFinalizers",
        "All content-preserving finalizers finished",
    ),
}


@dataclass(slots=True)
class Remains:
    """The objects that remain after everything was deleted that could be."""

    undiscovered: Mapping[str, str] = field(default_factory=dict)
    """Group versions whose discovery failed, with the errors."""
    failures: list[str] = field(default_factory=list)
    objects: Counter[str] = field(default_factory=Counter)
    """The number of objects of each resource, by its name and group."""
    finalizers: Counter[str] = field(default_factory=Counter)
    """The number of objects that have each finalizer."""
    pods: int = 0
    """The number of pods. Pods are deleted first; while there are some, nothing else is reported.
    """

    @property
    def nothing(self) -> bool:
        return not (self.undiscovered or self.failures or self.objects or self.pods)

    def count(self, kind: ResourceKind, held: Iterable[Sequence[str]]) -> None:
        """Add the remaining objects of a kind; `held` has the finalizers of each."""
        for finalizers in held:
            self.objects[f"{kind.plural}.{kind.group}"] += 1
            self.finalizers.update(finalizers)


def conditions(before: Sequence[Object], remains: Remains, *, now: str) -> list[Object]:
    """Return the conditions of a namespace after an attempt to delete its content."""
    after = [*before]
    for kind in _FINE:
        after = set_condition(after, _condition(kind, remains), now)
    return after


def _condition(type: str, remains: Remains) -> Object:  # noqa: A002
    problem = _problem(type, remains)
    reason, message = problem or _FINE[type]
    return {
        "type": type,
        "status": "True" if problem else "False",
        "reason": reason,
        "message": message,
    }


def _problem(type: str, remains: Remains) -> tuple[str, str] | None:  # noqa: A002
    match type:
        case "NamespaceDeletionDiscoveryFailure" if remains.undiscovered:
            return "DiscoveryFailed", _undiscovered(remains.undiscovered)
        case "NamespaceDeletionContentFailure" if remains.failures:
            texts = ", ".join(sorted(remains.failures))
            count = len(remains.failures)
            failed = f"Failed to delete all resource types, {count} remaining: {texts}"
            return "ContentDeletionFailed", failed
        case "NamespaceContentRemaining" if remains.objects:
            texts = _counted("{} has {} resource instances", remains.objects)
            return "SomeResourcesRemain", f"Some resources are remaining: {texts}"
        case "NamespaceFinalizersRemaining" if remains.finalizers:
            texts = _counted("{} in {} resource instances", remains.finalizers)
            told = f"Some content in the namespace has finalizers remaining: {texts}"
            return "SomeFinalizersRemain", told
        case _:
            return None


def _counted(text: str, counts: Mapping[str, int]) -> str:
    return ", ".join(sorted(text.format(name, count) for name, count in counts.items()))


def _undiscovered(problems: Mapping[str, str]) -> str:
    texts = ", ".join(sorted(f"{version}: {problem}" for version, problem in problems.items()))
    unable = f"unable to retrieve the complete list of server APIs: {texts}"
    return f"Discovery failed for some groups, {len(problems)} failing: {unable}"
