"""Parsing and validation of a package by itself."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from polyver.capability import Refusal
from polyver.compositions.kinds import FUNCTIONS
from polyver.compositions.names import ENDPOINT, LONGEST_NAME
from polyver.compositions.packages._references import check_reference
from polyver.core.plain import ReadOnlyObject
from polyver.languages.values.names import dns_1035_label_problems

__all__ = ["DesiredFunction", "PullPolicy", "check_package", "ignored_fields", "read_function"]

PullPolicy = Literal["IfNotPresent", "Always", "Never"]
_LIMIT = "spec.activeRevisionLimit"
_IGNORED = {
    "runtimeConfigRef": "the runtime decides how it is run",
    "controllerConfigRef": "the runtime decides how it is run",
    "packagePullSecrets": "packages are fetched with the credentials of the runtime",
    "commonLabels": "objects of a package get no additional labels",
}


@dataclass(frozen=True, slots=True)
class DesiredFunction:
    """The desired state of a function."""

    name: str
    package: str
    labels: Mapping[str, str]
    automatic: bool = True
    """True if the highest-numbered revisions are active; else those that users activate."""
    history_limit: int = 1
    active_limit: int = 1
    strict: bool = True
    """True if a revision in use is neither deactivated nor collected."""
    address: str = ""
    """Address of an external server."""
    pull: PullPolicy = "IfNotPresent"


def read_function(obj: ReadOnlyObject) -> DesiredFunction:
    """Parse a Function, with defaults."""
    metadata: ReadOnlyObject = obj["metadata"]
    spec: ReadOnlyObject = obj.get("spec") or {}
    return DesiredFunction(
        metadata["name"],
        spec.get("package", ""),
        metadata.get("labels") or {},
        spec.get("revisionActivationPolicy", "Automatic") == "Automatic",
        spec.get("revisionHistoryLimit", 1),
        spec.get("activeRevisionLimit", 1),
        spec.get("strictReferences", True),
        (metadata.get("annotations") or {}).get(ENDPOINT, ""),
        spec.get("packagePullPolicy", "IfNotPresent"),
    )


def check_package(obj: ReadOnlyObject, *, several: bool) -> list[Refusal]:
    """Return all problems of a package; `several` enables the feature FunctionRevisions."""
    spec: ReadOnlyObject = obj.get("spec") or {}
    found = check_reference(spec.get("package", ""))
    is_function = obj.get("kind") == FUNCTIONS.kind
    if is_function:
        found += _check_name(obj["metadata"].get("name", ""))
    limits = spec.get("activeRevisionLimit", 1), spec.get("revisionHistoryLimit", 1)
    return [*found, *_check_limits(obj.get("kind", ""), *limits, several=several)]


def _check_name(name: str) -> Iterator[Refusal]:
    at = "metadata.name"
    if len(name) > LONGEST_NAME:
        fact = f"its name has {len(name)} characters, more than {LONGEST_NAME}"
        yield Refusal("InvalidName", fact, at=at, hint="Services are named after its revisions")
    elif problems := dns_1035_label_problems(name):
        fact = f"Services cannot be named after its revisions: {problems[0]}"
        yield Refusal("InvalidName", fact, at=at)


def _check_limits(kind: str, active: int, history: int, *, several: bool) -> Iterator[Refusal]:
    if active == 1:
        return
    if kind != FUNCTIONS.kind:
        fact = f"a {kind} has one active revision, not {active}"
        yield Refusal("InvalidLimit", fact, at=_LIMIT, hint="only functions may have several")
    elif not several:
        fact = f"{active} active revisions need the feature FunctionRevisions, which is disabled"
        yield Refusal("FeatureOff", fact, at=_LIMIT, hint="keep 1, or enable the feature")
    elif history and active > history:
        fact = f"{active} active revisions are more than revisionHistoryLimit keeps, {history}"
        hint = f"raise revisionHistoryLimit to {active}, or to 0 to keep all"
        yield Refusal("InvalidLimit", fact, at=_LIMIT, hint=hint)


def ignored_fields(obj: ReadOnlyObject) -> list[str]:
    """Return warnings about fields without effect."""
    spec: ReadOnlyObject = obj.get("spec") or {}
    found = [
        f"spec.{name} has no effect: {why}" for name, why in _IGNORED.items() if spec.get(name)
    ]
    if spec.get("packagePullPolicy") == "Never":
        found.append("spec.packagePullPolicy: Never is treated as IfNotPresent")
    return found
