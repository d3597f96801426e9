"""FunctionRevisions: parsed, created, and combined into the lineage of a function."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from polyver.capability import Refusal
from polyver.compositions._manifests import content_digest
from polyver.compositions._revision_numbers import Numbered, check_number, next_number
from polyver.compositions.kinds import FUNCTION_REVISIONS, FUNCTIONS, GROUP, STORED
from polyver.compositions.names import COPIED, ENDPOINT, PACKAGE, revision_name
from polyver.compositions.packages._references import check_reference
from polyver.compositions.packages._spec import DesiredFunction
from polyver.core import Lineage, Release, Serial, Stage
from polyver.core.plain import ReadOnlyObject

__all__ = [
    "KnownFunctionRevision",
    "check_revision",
    "function_of",
    "known_revision",
    "lineage_of",
    "new_revision",
    "relabelled",
    "revision_object",
    "revision_patch",
]

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


@dataclass(frozen=True, slots=True)
class KnownFunctionRevision(Numbered):
    """The actual or desired state of a FunctionRevision."""

    digest: str
    """Digest of its content, or the reference if no digest was recorded."""
    active: bool
    labels: Mapping[str, str] = field(default_factory=dict)
    copied: frozenset[str] = frozenset()
    """Labels copied from its function, and ENDPOINT if the address was copied."""
    address: str = ""
    deleting: bool = False

    @property
    def is_copied_address(self) -> bool:
        """True if its address is its function's."""
        return ENDPOINT in self.copied

    @property
    def release(self) -> Release:
        stage = Stage.ACTIVE if self.active else Stage.INACTIVE
        return Release(Serial(self.number), self.digest, stage, self.labels, name=self.name)


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
    )


def function_of(obj: ReadOnlyObject) -> str:
    """Return the function that a revision belongs to; the revision's metadata is enough."""
    labels: ReadOnlyObject = obj["metadata"].get("labels") or {}
    return str(labels.get(PACKAGE, ""))


def lineage_of(function: str, known: Iterable[KnownFunctionRevision]) -> Lineage:
    """Return the lineage of a function; the numbers of its revisions must be distinct."""
    return Lineage(function, [each.release for each in known])


def new_revision(function: DesiredFunction, digest: str, number: int) -> KnownFunctionRevision:
    """Return the revision of some content; it is active unless the policy is Manual."""
    made = KnownFunctionRevision(
        revision_name(function.name, digest), number, digest, active=function.automatic
    )
    return relabelled(made, function)


def relabelled(known: KnownFunctionRevision, function: DesiredFunction) -> KnownFunctionRevision:
    """Return a revision with its function's current labels and address, and labels of others."""
    own = {name: text for name, text in function.labels.items() if name != PACKAGE}
    others = {name: text for name, text in known.labels.items() if name not in known.copied}
    there = "" if known.is_copied_address else known.address
    return KnownFunctionRevision(
        known.name,
        known.number,
        known.digest,
        known.active,
        {**others, **own, PACKAGE: function.name},
        frozenset({*own, *((ENDPOINT,) if function.address else ())}),
        function.address or there,
        known.deleting,
    )


def revision_object(known: KnownFunctionRevision, owner: ReadOnlyObject) -> dict[str, Any]:
    """Return the FunctionRevision to create, with its Function's current fields."""
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
    """Return a merge patch that brings a revision to its desired state."""
    labels: dict[str, str | None] = {
        name: after.labels.get(name)
        for name in {**before.labels, **after.labels}
        if before.labels.get(name) != after.labels.get(name)
    }
    said = _annotations(before)
    annotations = {k: v for k, v in _annotations(after).items() if v != said[k]}
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
    """Return the problems of a FunctionRevision that a client writes.

    `others` are the other revisions of its function.
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
