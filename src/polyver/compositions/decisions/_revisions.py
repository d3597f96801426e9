"""Validation of Compositions, and the CompositionRevisions that their content requires.

The content of a revision is the spec and the labels of its Composition. The functions decide which
revision is created, renumbered, relabelled or adopted (gets the Composition as its owner). Old
revisions are kept until their Composition is deleted.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from polyver.capability import Refusal
from polyver.capability.gates import STATE, gate_annotations, gate_in
from polyver.compositions._function_references import (
    REVISION_FIELDS,
    labels_in,
    mapping,
    named,
    switched_off,
)
from polyver.compositions._revision_rules import (
    Numbered,
    check_number,
    distinct,
    next_number,
    number_of_now,
    renumbered,
    republished,
    undecided,
)
from polyver.compositions.kinds import (
    COMPOSITION_GROUP,
    COMPOSITION_REVISIONS,
    COMPOSITION_STORED,
    COMPOSITIONS,
)
from polyver.compositions.names import (
    COMPOSITION,
    CONTENT,
    LONGEST_LABEL,
    PACKAGE,
    composition_revision_name,
)
from polyver.core import Lineage, Release, Serial
from polyver.core.plain import ReadOnlyObject
from polyver.kube.objects import digest
from polyver.kube.objects.converted_metadata import fresh
from polyver.kube.objects.owners import controller_of
from polyver.languages.values.names import label_key_problems, label_value_problems

__all__ = [
    "Changes",
    "KnownCompositionRevision",
    "check_composition",
    "check_composition_revision",
    "check_pipeline",
    "check_step",
    "composition_changes",
    "composition_lineage",
    "composition_of",
    "composition_revision_object",
    "composition_revision_patch",
    "composition_warnings",
    "known_composition_revision",
    "revisions_after",
]

_OURS = (COMPOSITION, CONTENT)


def check_composition(obj: ReadOnlyObject, *, several: bool) -> list[Refusal]:
    """Return all problems of a Composition.

    `several` is true if the feature FunctionRevisions is enabled: Functions may then have several
    active revisions, and steps may select one of them.
    """
    found = [*_check_name(obj["metadata"].get("name", ""))]
    names: set[str] = set()
    for place, step in enumerate(obj["spec"].get("pipeline") or ()):
        at = f"spec.pipeline[{place}]"
        if step["step"] in names:
            fact = f'there are two steps "{step["step"]}"'
            found.append(Refusal("InvalidPipeline", fact, at=f"{at}.step"))
        names.add(step["step"])
        found += check_step(step, at, several=several)
    if not names:
        fact, hint = "it has no steps", "name at least one function"
        found.append(Refusal("InvalidPipeline", fact, at="spec.pipeline", hint=hint))
    return found


def _check_name(name: str) -> Iterator[Refusal]:
    if len(name) > LONGEST_LABEL:
        fact = f"its name has {len(name)} characters, more than {LONGEST_LABEL}"
        hint = f"it is the value of the label {COMPOSITION}"
        yield Refusal("InvalidName", fact, at="metadata.name", hint=hint)


def check_pipeline(obj: ReadOnlyObject) -> list[Refusal]:
    """Return a refusal for each field of the steps that needs the feature FunctionRevisions."""
    return [
        refusal
        for place, step in enumerate(obj["spec"].get("pipeline") or ())
        for refusal in switched_off(step, f"spec.pipeline[{place}]")
    ]


def check_step(step: ReadOnlyObject, at: str, *, several: bool) -> Iterator[Refusal]:
    """Yield the problems of a pipeline step. `at` is the path of the step."""
    if not several:
        yield from switched_off(step, at)
    wanted, function = (
        labels_in(step.get("functionRevisionSelector")),
        named(step.get("functionRef")),
    )
    place_of = f"{at}.functionRevisionSelector.matchLabels"
    for key, value in wanted.items():
        for problem in (*label_key_problems(key), *label_value_problems(value)):
            fact = f"{key}={value} is not a label: {problem}"
            yield Refusal("InvalidSelector", fact, at=place_of)
    if wanted.get(PACKAGE, function) != function:
        fact = f"{PACKAGE}={wanted[PACKAGE]} selects revisions of another function"
        yield Refusal("InvalidSelector", fact, at=place_of, hint=f"the step calls {function}")
    for place, each in enumerate(step.get("credentials") or ()):
        if each["source"] == "Secret" and not each.get("secretRef"):
            fact = f'the secret of the credentials "{each["name"]}" is missing'
            place_of = f"{at}.credentials[{place}].secretRef"
            yield Refusal("InvalidPipeline", fact, at=place_of)
    required = mapping(step.get("requirements")).get("requiredResources") or ()
    for place, each in enumerate(required):
        if bool(each.get("name")) == bool(each.get("matchLabels")):
            fact = f'"{each["requirementName"]}" needs either a name or labels'
            place_of = f"{at}.requirements.requiredResources[{place}]"
            yield Refusal("InvalidPipeline", fact, at=place_of)


def composition_warnings(obj: ReadOnlyObject) -> list[str]:
    """Return warnings about valid values in a Composition that are probably not intended."""
    return [
        f"spec.pipeline[{place}]: functionRevisionRef and functionRevisionSelector are both "
        "set; functionRevisionRef is used"
        for place, step in enumerate(obj["spec"].get("pipeline") or ())
        if all(step.get(name) is not None for name in REVISION_FIELDS)
    ]


@dataclass(frozen=True, slots=True)
class KnownCompositionRevision(Numbered):
    """A CompositionRevision, in its actual or its desired state."""

    content: str
    """Digest of its content, in hexadecimal digits."""
    labels: Mapping[str, str] = field(default_factory=dict)
    owner: str = ""
    """The uid of its Composition. Empty if the revision has no owner, for example after a restore
    from a backup.
    """
    deleting: bool = False

    @property
    def release(self) -> Release:
        version, labels = Serial(self.number), self.labels
        return Release(version, self.content, labels=labels, gate=self.gate, name=self.name)


@dataclass(frozen=True, slots=True)
class Changes:
    """The changes that the controller makes for a Composition.

    The controller first creates `create`, and then makes `changes`. If `refusals` is not empty,
    there are no changes.
    """

    create: KnownCompositionRevision | None = None
    changes: tuple[KnownCompositionRevision, ...] = ()
    """The revisions to change, in their desired state."""
    current: str = ""
    """The name of the revision that has the current content of the Composition."""
    refusals: tuple[Refusal, ...] = ()

    @property
    def is_empty(self) -> bool:
        return not (self.create or self.changes)


def content_of(composition: ReadOnlyObject) -> str:
    """Return the digest of the spec and the labels of a Composition.

    The digest is short enough for a label value. Annotations are not part of the content.
    """
    labels = {k: v for k, v in _labels(composition).items() if k not in _OURS}
    content = {"labels": labels, "spec": {**composition["spec"], "revision": None}}
    return digest(content).removeprefix("sha256:")[:LONGEST_LABEL]


def _labels(obj: ReadOnlyObject) -> dict[str, str]:
    return dict(obj["metadata"].get("labels") or {})


def known_composition_revision(obj: ReadOnlyObject) -> KnownCompositionRevision:
    """Parse a CompositionRevision."""
    metadata: ReadOnlyObject = obj["metadata"]
    annotations: ReadOnlyObject = metadata.get("annotations") or {}
    labels = _labels(obj)
    return KnownCompositionRevision(
        metadata["name"],
        obj["spec"]["revision"],
        labels.get(CONTENT) or content_of(obj),
        labels,
        controller_of(obj),
        "deletionTimestamp" in metadata,
        gate=gate_in(annotations),
        is_marked=STATE in annotations,
    )


def composition_of(obj: ReadOnlyObject) -> str:
    """Return the name of the Composition of a revision, from the revision's labels."""
    return _labels(obj).get(COMPOSITION, "")


def composition_lineage(composition: str, known: Iterable[KnownCompositionRevision]) -> Lineage:
    """Build the lineage of a Composition from its revisions, with distinct numbers."""
    in_order = sorted(known, key=lambda each: each.name)
    return Lineage(composition, [each.release for each in distinct(in_order).values()])


def composition_changes(
    composition: ReadOnlyObject, known: Sequence[KnownCompositionRevision], *, policy: str = ""
) -> Changes:
    """Decide the changes of a Composition's revisions.

    After the changes, the revision with the current content has the highest number.

    `known` are the revisions that have the Composition's name as a label. `policy` is the name of
    the Ready RolloutPolicy of the Composition, or empty; the policy closes a revision that becomes
    the newest.
    """
    metadata: ReadOnlyObject = composition["metadata"]
    uid, content = metadata["uid"], content_of(composition)
    name = composition_revision_name(metadata["name"], content)
    before = {each.name: each for each in known}
    refusals = tuple(_check_taken(before, name, content, uid))
    if refusals:
        return Changes(refusals=refusals)
    there = distinct(sorted(known, key=lambda each: (not each.deleting, each.name)))
    for each in undecided(there.values()) if policy else ():
        there[each] = republished(there[each], policy)
    number = number_of_now(there, name)
    found = there.get(name)
    if found is None:
        made = _made(composition, content, number)
        there[name] = republished(made, policy) if there else made
    elif not found.deleting:  # one that is being deleted is created again afterwards
        labels = {**found.labels, **_copied(composition, content)}
        again = renumbered(found, number, there.values(), policy)
        there[name] = replace(again, labels=labels)
    after = [each if each.deleting else replace(each, owner=uid) for each in there.values()]
    changed = (each for each in after if before.get(each.name, each) != each)
    return Changes(
        next((each for each in after if each.name not in before), None),
        tuple(sorted(changed, key=lambda each: each.name)),
        name,
    )


def _check_taken(
    before: Mapping[str, KnownCompositionRevision], name: str, content: str, uid: str
) -> Iterator[Refusal]:
    there = before.get(name)
    if there is not None and there.content != content:
        fact = f"{name} is the revision of other content ({there.content}, not {content})"
        hint = "add or change a label, so that the content gets another name"
        yield Refusal("NameTaken", fact, at="spec", hint=hint)
    for each in before.values():
        if each.owner not in ("", uid) and not each.deleting:
            fact = f"{each.name} belongs to another object, with the uid {each.owner}"
            yield Refusal("NotOwned", fact, at=f"metadata.labels[{COMPOSITION}]")


def _made(composition: ReadOnlyObject, content: str, number: int) -> KnownCompositionRevision:
    name = composition_revision_name(composition["metadata"]["name"], content)
    return KnownCompositionRevision(name, number, content, _copied(composition, content))


def _copied(composition: ReadOnlyObject, content: str) -> dict[str, str]:
    ours = {COMPOSITION: composition["metadata"]["name"], CONTENT: content}
    return {**_labels(composition), **ours}


def revisions_after(
    changes: Changes, known: Iterable[KnownCompositionRevision]
) -> list[KnownCompositionRevision]:
    """Return the revisions of a Composition as they are after all changes."""
    found = {each.name: each for each in known}
    made = (changes.create,) if changes.create else ()
    found |= {each.name: each for each in (*made, *changes.changes)}
    return [*found.values()]


def composition_revision_object(
    made: KnownCompositionRevision, composition: ReadOnlyObject
) -> dict[str, Any]:
    """Build the CompositionRevision to create from the current content of a Composition."""
    found: dict[str, Any] = {
        "apiVersion": f"{COMPOSITION_GROUP}/{COMPOSITION_STORED}",
        "kind": COMPOSITION_REVISIONS.kind,
        "metadata": {
            "name": made.name,
            "labels": dict(made.labels),
            "ownerReferences": [_owner(composition)],
        },
        "spec": {**fresh(composition["spec"]), "revision": made.number},
    }
    if made.gate is not None:
        # Create the revision with its gate, so that it is closed from the beginning.
        found["metadata"]["annotations"] = gate_annotations(made.gate)
    return found


def _owner(composition: ReadOnlyObject) -> dict[str, Any]:
    return {
        "apiVersion": f"{COMPOSITION_GROUP}/{COMPOSITION_STORED}",
        "kind": COMPOSITIONS.kind,
        "name": composition["metadata"]["name"],
        "uid": composition["metadata"]["uid"],
        "controller": True,
        "blockOwnerDeletion": True,
    }


def composition_revision_patch(
    before: KnownCompositionRevision, after: KnownCompositionRevision, composition: ReadOnlyObject
) -> dict[str, Any]:
    """Build a merge patch that changes a revision from the state `before` to the state `after`."""
    metadata: dict[str, Any] = {}
    labels = {k: v for k, v in after.labels.items() if before.labels.get(k) != v}
    if labels:
        metadata["labels"] = labels
    if before.owner != after.owner:
        metadata["ownerReferences"] = [_owner(composition)]
    if (before.gate, before.is_marked) != (after.gate, after.is_marked):
        metadata["annotations"] = gate_annotations(after.gate)
    change: dict[str, Any] = {"metadata": metadata} if metadata else {}
    return change | ({"spec": {"revision": after.number}} if before.number != after.number else {})


def check_composition_revision(
    obj: ReadOnlyObject,
    old: ReadOnlyObject | None,
    others: Sequence[KnownCompositionRevision],
    *,
    several: bool,
) -> list[Refusal]:
    """Return the problems of a CompositionRevision that a client creates or changes.

    `old` is the stored revision, and `others` are the other revisions of its Composition. `several`
    is true if the feature FunctionRevisions is enabled.
    """
    if old is not None:
        return [*_check_change(obj, old, others)]
    if not composition_of(obj):
        fact = "it has no label that names its composition"
        return [Refusal("NoComposition", fact, at=f"metadata.labels[{COMPOSITION}]")]
    found = [] if several else check_pipeline(obj)
    return [*found, *check_number(obj["spec"]["revision"], others)]


def _check_change(
    obj: ReadOnlyObject, old: ReadOnlyObject, others: Sequence[KnownCompositionRevision]
) -> Iterator[Refusal]:
    before, after = old["spec"], obj["spec"]
    for name in sorted({*before, *after} - {"revision"}):
        if before.get(name) != after.get(name):
            fact, hint = "a revision never changes", "change its composition"
            yield Refusal("Immutable", fact, at=f"spec.{name}", hint=hint)
    for label in _OURS:
        was = _labels(old).get(label)
        if was and _labels(obj).get(label) != was:
            fact = "a revision stays with its composition and its content"
            yield Refusal("Immutable", fact, at=f"metadata.labels[{label}]")
    number, following = after["revision"], next_number([*others, known_composition_revision(old)])
    if number != before["revision"] and Serial(number) < Serial(following):
        fact = f"{number} is neither its number nor higher than all others"
        hint = f"the next one is {following}"
        yield Refusal("Immutable", fact, at="spec.revision", hint=hint)
