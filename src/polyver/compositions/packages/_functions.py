"""Functions and FunctionRevisions as values: parsed, validated and created.

The revisions of a Function form its lineage. The reference of a package names an OCI image. In the
runtime that starts processes, a reference can also name a path (`file:`) or a Python distribution
(`pypi:`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from polyver.capability import Refusal
from polyver.capability.gates import STATE, gate_annotations, gate_in
from polyver.compositions._revision_rules import Numbered, check_number, next_number
from polyver.compositions.kinds import FUNCTION_REVISIONS, FUNCTIONS, GROUP, STORED
from polyver.compositions.lineages import content_digest
from polyver.compositions.names import COPIED, ENDPOINT, LONGEST_NAME, PACKAGE, revision_name
from polyver.core import Lineage, Release, Serial, Stage
from polyver.core.plain import ReadOnlyObject
from polyver.languages.values.names import dns_1035_label_problems

__all__ = [
    "DesiredFunction",
    "KnownFunctionRevision",
    "check_package",
    "check_reference",
    "check_revision",
    "function_of",
    "ignored_fields",
    "known_revision",
    "lineage_of",
    "new_revision",
    "read_function",
    "recorded_digest",
    "relabelled",
    "revision_object",
    "revision_patch",
]

_AT = "spec.package"
_WORD = r"[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*"
_HOST = r"[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?"
_REGISTRY = rf"(?:{_HOST}(?:\.{_HOST})*(?::[0-9]{{1,5}})?/)?"
_TAG = r"(?::[A-Za-z0-9_][A-Za-z0-9_.-]{0,127})?"
_DIGEST = r"(?:@[a-z0-9]+(?:[+._-][a-z0-9]+)*:[0-9a-f]{32,})?"
_IMAGE = re.compile(rf"{_REGISTRY}{_WORD}(?:/{_WORD})*{_TAG}{_DIGEST}")
_NAME = r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?"
_REQUIREMENT = re.compile(rf"{_NAME}\s*==\s*[A-Za-z0-9][A-Za-z0-9.!+_-]*")
_LONGEST = 4096
_LIMIT = "spec.activeRevisionLimit"
_IGNORED = {
    "runtimeConfigRef": "the runtime decides how it is run",
    "controllerConfigRef": "the runtime decides how it is run",
    "packagePullSecrets": "packages are fetched with the credentials of the runtime",
    "commonLabels": "objects of a package get no additional labels",
}
_STATES = {True: "Active", False: "Inactive"}
_COPIED_FIELDS = (
    "packagePullPolicy",
    "packagePullSecrets",
    "ignoreCrossplaneConstraints",
    "skipDependencyResolution",
    "commonLabels",
    "runtimeConfigRef",
    "controllerConfigRef",
)


def check_reference(text: str, *, at: str = _AT) -> list[Refusal]:
    """Return the problems of a package reference.

    >>> check_reference("xpkg.example.org/functions/resize:v0.2.0")
    []
    >>> print(check_reference("pypi:resize")[0])
    "resize" has no version (spec.package); pin it: pypi:NAME==VERSION
    """
    if len(text) > _LONGEST:
        return [Refusal("InvalidPackage", f"the reference has {len(text)} characters", at=at)]
    scheme, colon, rest = text.partition(":")
    if colon and scheme == "file":
        return [] if rest.strip() else [_refusal(text, at, "write file:PATH")]
    if colon and scheme == "pypi":
        if _REQUIREMENT.fullmatch(rest):
            return []
        fact = f'"{rest}" has no version'
        return [Refusal("InvalidPackage", fact, at=at, hint="pin it: pypi:NAME==VERSION")]
    if _IMAGE.fullmatch(text):
        return []
    return [_refusal(text, at, "write HOST/PATH:TAG, file:PATH or pypi:NAME==VERSION")]


def _refusal(text: str, at: str, hint: str) -> Refusal:
    return Refusal("InvalidPackage", f'"{text}" is not a package reference', at=at, hint=hint)


PullPolicy = Literal["IfNotPresent", "Always", "Never"]


@dataclass(frozen=True, slots=True)
class DesiredFunction:
    """The desired state of a Function."""

    name: str
    package: str
    labels: Mapping[str, str]
    automatic: bool = True
    """True if polyver activates the revisions with the highest numbers. False if users activate
    revisions.
    """
    history_limit: int = 1
    active_limit: int = 1
    strict: bool = True
    """True if polyver neither deactivates nor deletes a revision that a step selects."""
    address: str = ""
    """Address of an external server that serves the function; empty if there is none."""
    pull: PullPolicy = "IfNotPresent"


def read_function(obj: ReadOnlyObject) -> DesiredFunction:
    """Parse a Function, and set the defaults of missing fields."""
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
    """Return all problems of a package object.

    `several` is true if the feature FunctionRevisions is enabled: Functions may then have several
    active revisions, and steps may select one of them.
    """
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
    """Return warnings about fields of a Function that have no effect."""
    spec: ReadOnlyObject = obj.get("spec") or {}
    found = [
        f"spec.{name} has no effect: {why}" for name, why in _IGNORED.items() if spec.get(name)
    ]
    if spec.get("packagePullPolicy") == "Never":
        found.append("spec.packagePullPolicy: Never is treated as IfNotPresent")
    return found


@dataclass(frozen=True, slots=True)
class KnownFunctionRevision(Numbered):
    """A FunctionRevision, in its actual or its desired state."""

    digest: str
    """Digest of the package content; the package reference if no digest was recorded."""
    active: bool
    labels: Mapping[str, str] = field(default_factory=dict)
    copied: frozenset[str] = frozenset()
    """Names of the labels that were copied from the Function, and ENDPOINT if the address was
    copied.
    """
    address: str = ""
    deleting: bool = False

    @property
    def is_copied_address(self) -> bool:
        """True if the address was copied from the Function."""
        return ENDPOINT in self.copied

    @property
    def release(self) -> Release:
        stage = Stage.ACTIVE if self.active else Stage.INACTIVE
        version, labels = Serial(self.number), self.labels
        return Release(version, self.digest, stage, labels, self.gate, name=self.name)


def known_revision(obj: ReadOnlyObject) -> KnownFunctionRevision:
    """Parse a FunctionRevision."""
    metadata: ReadOnlyObject = obj["metadata"]
    spec: ReadOnlyObject = obj["spec"]
    annotations: ReadOnlyObject = metadata.get("annotations") or {}
    return KnownFunctionRevision(
        metadata["name"],
        spec["revision"],
        spec.get("digest") or content_digest(spec["image"]),
        spec["desiredState"] == _STATES[True],
        metadata.get("labels") or {},
        frozenset(filter(None, annotations.get(COPIED, "").split(","))),
        annotations.get(ENDPOINT, ""),
        "deletionTimestamp" in metadata,
        gate=gate_in(annotations),
        is_marked=STATE in annotations,
    )


def function_of(obj: ReadOnlyObject) -> str:
    """Return the name of the Function of a revision, from the revision's labels."""
    labels: ReadOnlyObject = obj["metadata"].get("labels") or {}
    return str(labels.get(PACKAGE, ""))


def lineage_of(function: str, known: Iterable[KnownFunctionRevision]) -> Lineage:
    """Build the lineage of a function. The numbers of its revisions must be distinct."""
    return Lineage(function, [each.release for each in known])


def recorded_digest(
    function: DesiredFunction, obj: ReadOnlyObject, known: Iterable[KnownFunctionRevision]
) -> str | None:
    """Return the digest of the package that the status of a Function records.

    Return None if the status is about another package reference, or if the package must be read
    again.
    """
    status: ReadOnlyObject = obj.get("status") or {}
    if function.pull == "Always" or status.get("currentIdentifier") != function.package:
        return None
    for each in known:
        is_current = each.name == status.get("currentRevision") and not each.deleting
        if is_current and each.is_copied_address is bool(function.address):
            return each.digest
    return None


def new_revision(function: DesiredFunction, digest: str, number: int) -> KnownFunctionRevision:
    """Build a revision with this content. It is active, unless users activate revisions."""
    made = KnownFunctionRevision(
        revision_name(function.name, digest), number, digest, active=function.automatic
    )
    return relabelled(made, function)


def relabelled(known: KnownFunctionRevision, function: DesiredFunction) -> KnownFunctionRevision:
    """Return a revision with the current labels and address of its Function.

    Labels that other clients set on the revision stay.
    """
    own = {name: text for name, text in function.labels.items() if name != PACKAGE}
    others = {name: text for name, text in known.labels.items() if name not in known.copied}
    there = "" if known.is_copied_address else known.address
    return replace(
        known,
        labels={**others, **own, PACKAGE: function.name},
        copied=frozenset({*own, *((ENDPOINT,) if function.address else ())}),
        address=function.address or there,
    )


def revision_object(known: KnownFunctionRevision, owner: ReadOnlyObject) -> dict[str, Any]:
    """Build the FunctionRevision to create, with the current fields of its Function."""
    metadata, spec = owner["metadata"], owner["spec"]
    reference = {
        "apiVersion": f"{GROUP}/{STORED}",
        "kind": FUNCTIONS.kind,
        "name": metadata["name"],
        "uid": metadata["uid"],
        "controller": True,
        "blockOwnerDeletion": True,
    }
    annotations = {name: text for name, text in _annotations(known).items() if text is not None}
    if known.gate is not None:
        # Create the revision with its gate, so that it is closed from the beginning.
        annotations |= {k: v for k, v in gate_annotations(known.gate).items() if v is not None}
    return {
        "apiVersion": f"{GROUP}/{STORED}",
        "kind": FUNCTION_REVISIONS.kind,
        "metadata": {
            "name": known.name,
            "labels": dict(known.labels),
            **({"annotations": annotations} if annotations else {}),
            "ownerReferences": [reference],
        },
        "spec": {
            "desiredState": _STATES[known.active],
            "image": spec["package"],
            "revision": known.number,
            "digest": known.digest,
            **{name: spec[name] for name in _COPIED_FIELDS if name in spec},
        },
    }


def revision_patch(before: KnownFunctionRevision, after: KnownFunctionRevision) -> dict[str, Any]:
    """Build a merge patch that changes a revision from the state `before` to the state `after`."""
    labels: dict[str, str | None] = {
        name: after.labels.get(name)
        for name in {**before.labels, **after.labels}
        if before.labels.get(name) != after.labels.get(name)
    }
    said = _annotations(before)
    annotations = {k: v for k, v in _annotations(after).items() if v != said[k]}
    if (before.gate, before.is_marked) != (after.gate, after.is_marked):
        annotations |= gate_annotations(after.gate)
    spec: dict[str, Any] = {}
    if before.number != after.number:
        spec["revision"] = after.number
    if before.active is not after.active:
        spec["desiredState"] = _STATES[after.active]
    metadata = {"labels": labels, "annotations": annotations}
    change = {"metadata": {k: v for k, v in metadata.items() if v}, "spec": spec}
    return {name: part for name, part in change.items() if part}


def _annotations(known: KnownFunctionRevision) -> dict[str, str | None]:
    return {COPIED: ",".join(sorted(known.copied)) or None, ENDPOINT: known.address or None}


def check_revision(
    obj: ReadOnlyObject, old: ReadOnlyObject | None, others: Sequence[KnownFunctionRevision]
) -> list[Refusal]:
    """Return the problems of a FunctionRevision that a client creates or changes.

    `old` is the stored revision, and `others` are the other revisions of its Function.
    """
    if old is not None:
        return [*_check_change(obj, old, others)]
    function, name = function_of(obj), obj["metadata"].get("name", "")
    if not function:
        fact = "it has no label that names its function"
        return [Refusal("NoPackage", fact, at=f"metadata.labels[{PACKAGE}]")]
    digits = name.removeprefix(f"{function}-")
    found = check_reference(obj["spec"]["image"], at="spec.image")
    if name != revision_name(function, digits):
        fact = f"the name of a revision of {function} is {function}- and 12 digits of its digest"
        found.append(Refusal("InvalidName", fact, at="metadata.name"))
    return [*found, *check_number(obj["spec"]["revision"], others)]


def _check_change(
    obj: ReadOnlyObject, old: ReadOnlyObject, others: Sequence[KnownFunctionRevision]
) -> Iterable[Refusal]:
    before, after = old["spec"], obj["spec"]
    for name in sorted({*before, *after} - {"desiredState", "revision"}):
        if before.get(name) != after.get(name):
            fact, hint = "a revision never changes", "change the package of its function"
            yield Refusal("Immutable", fact, at=f"spec.{name}", hint=hint)
    if function_of(obj) != function_of(old):
        fact = "a revision stays with its function"
        yield Refusal("Immutable", fact, at=f"metadata.labels[{PACKAGE}]")
    following = next_number([*others, known_revision(old)])
    if after["revision"] not in (before["revision"], following):
        fact = f"{after['revision']} is neither its number nor the next one, {following}"
        yield Refusal("Immutable", fact, at="spec.revision")
