"""Preflight: a report of the effects that a release would have, before anything changes.

A dependent is an object that uses a release, such as an application.

A caller renders or composes each dependent twice: with the release that it uses, and with the new
release. The caller gives the two sets of objects to `Preflight.compare`. `Preflight.report` then
counts the dependents and groups the changes by their shape, so that a reviewer reads one line for
"412 Deployments: spec.template.spec.containers[0].image nginx:1.27 → nginx:1.28" instead of 412
diffs.

Two changes have the same shape if they change the same fields of objects of one kind. Changes of
one shape with the same values form a group. Values often contain the name of the dependent; each
dependent would then have its own group. So if a shape has more than `MOST_VARIANTS` groups, they
are merged into one group, which states for each field if the values differ. Messages of failures
are grouped in the same way.

The report does not depend on the order in which dependents are compared. Memory grows with the
groups and with the names of dependents, not with their objects.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from polyver.core.plain import ReadOnlyObject
from polyver.core.replacement import Role, without_replacement

__all__ = [
    "MOST_FIELDS",
    "MOST_VARIANTS",
    "ChangeExample",
    "ChangeGroup",
    "FailureGroup",
    "FieldChange",
    "HiddenText",
    "Identity",
    "Outcome",
    "OutcomeCounts",
    "Preflight",
    "PreflightReport",
    "identity_of",
    "lost_objects",
]

Identity = tuple[str, str, str, str]
"""The API group, kind, namespace and name of an object, without the API version."""
Outcome = Literal["unchanged", "changed", "loses", "fails"]
Change = Literal["added", "changed", "removed", "lost"]

MOST_VARIANTS: Final = 10
"""The maximum number of groups of changes to the same fields; more groups are merged into one."""
MOST_FIELDS: Final = 50
"""The maximum number of changed fields of an object that the report names."""
_LONGEST: Final = 60
"""The maximum number of characters of a value that the report shows."""
_HIDDEN, _CHANGED = "(secret)", "(changed)"


class HiddenText(str):
    """A string that the report must not show, such as the copy of a password in a ConfigMap.

    The report treats it as the data of a Secret.
    """

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class FieldChange:
    """One field that changes, with its values before and after the change.

    A value is a short string; None means that the field is absent.
    """

    path: str
    before: str | None
    after: str | None
    is_secret: bool = False
    """True for data of a Secret: the report shows that the field changes, but not its values."""
    is_varied: bool = False
    """True if the objects of the group have different values.

    `before` and `after` are then the values of one of these objects.
    """

    def __str__(self) -> str:
        if self.is_secret:
            verb = (
                "added" if self.before is None else "removed" if self.after is None else "changed"
            )
            return f"{self.path} {verb}"
        if self.is_varied:
            return f"{self.path} with different values"
        if self.before is None:
            return f"{self.path} added: {self.after}"
        if self.after is None:
            return f"{self.path} removed: {self.before}"
        return f"{self.path} {self.before} → {self.after}"


@dataclass(frozen=True, slots=True)
class ChangeExample:
    """One object of a group, before and after the change; the data of Secrets is hidden."""

    dependent: str
    identity: Identity
    before: ReadOnlyObject | None
    after: ReadOnlyObject | None


@dataclass(frozen=True, slots=True)
class ChangeGroup:
    """Objects of one kind that change in the same way, and the dependents to which they belong."""

    kind: str
    change: Change
    """The kind of change. A deleted object is `removed` if it has a replacement; if not, `lost`."""
    fields: tuple[FieldChange, ...]
    more_fields: int
    """The number of changed fields that are not in `fields`, because there are too many."""
    objects: int
    dependents: tuple[str, ...]
    example: ChangeExample

    def __str__(self) -> str:
        head = f"{self.objects} {_plural(self.kind, self.objects)}"
        if self.change != "changed":
            return f"{head} {self.change}"
        more = [f"and {self.more_fields} more fields"] if self.more_fields else []
        return f"{head}: {', '.join([*map(str, self.fields), *more])}"


@dataclass(frozen=True, slots=True)
class FailureGroup:
    """Dependents for which the release fails for the same reason."""

    message: str
    dependents: tuple[str, ...]
    is_varied: bool = False
    """True if the messages of the dependents differ in quoted strings or numbers.

    `message` is then the message of one dependent.
    """


@dataclass(frozen=True, slots=True)
class OutcomeCounts:
    """The number of dependents with each outcome: unchanged, changed, loses objects, or fails."""

    unchanged: int = 0
    changed: int = 0
    loses: int = 0
    fails: int = 0

    @property
    def total(self) -> int:
        return self.unchanged + self.changed + self.loses + self.fails

    def __str__(self) -> str:
        return (
            f"{self.unchanged} unchanged, {self.changed} changed, "
            f"{self.loses} would lose objects, {self.fails} would fail"
        )


@dataclass(frozen=True, slots=True)
class PreflightReport:
    """The result of a preflight.

    Groups of lost objects come first. Other groups are sorted by the number of dependents.
    """

    counts: OutcomeCounts
    groups: tuple[ChangeGroup, ...]
    failures: tuple[FailureGroup, ...]


class Preflight:
    """Collects the effects of a release on its dependents, one dependent after the other."""

    def __init__(self) -> None:
        self._counts: Counter[Outcome] = Counter()
        self._changes: dict[tuple[Any, ...], _Variants] = {}
        self._failures: dict[str, _Variants] = {}

    def compare(
        self,
        dependent: str,
        before: Iterable[ReadOnlyObject],
        after: Iterable[ReadOnlyObject],
        sources: Mapping[Identity, str] | None = None,
    ) -> Outcome:
        """Compare the objects of a dependent before and after the move; record the differences.

        `sources` has, for each object, the part of the dependent that creates it, as in
        `lost_objects`.
        """
        was, will_be = ({identity_of(each): each for each in side} for side in (before, after))
        lost = lost_objects(was, will_be, sources)
        outcome: Outcome = "loses" if lost else "unchanged"
        for identity in sorted({*was, *will_be}):
            made = _compared(identity, was.get(identity), will_be.get(identity), identity in lost)
            if made is not None:
                outcome = "loses" if lost else "changed"
                example = ChangeExample(dependent, identity, *_hidden(was, will_be, identity))
                self._variants(made).add(made.variant, made.fields, example)
        self._counts[outcome] += 1
        return outcome

    def _variants(self, made: _Made) -> _Variants:
        return self._changes.setdefault((made.shape, made.more_fields), _Variants())

    def fail(self, dependent: str, messages: Iterable[str]) -> Outcome:
        """Record a dependent for which the release fails; `messages` has all reasons."""
        for message in dict.fromkeys(messages):
            kept = self._failures.setdefault(_PARTICULARS.sub("…", message), _Variants())
            kept.add(message, (), ChangeExample(dependent, ("", "", "", message), None, None))
        self._counts["fails"] += 1
        return "fails"

    def report(self) -> PreflightReport:
        groups = [
            _group(shape, more, each)
            for (shape, more), variants in self._changes.items()
            for each in variants.found()
        ]
        failures = [
            FailureGroup(each.example.identity[3], _names(each), variants.is_merged)
            for variants in self._failures.values()
            for each in variants.found()
        ]
        return PreflightReport(
            OutcomeCounts(**{str(name): number for name, number in self._counts.items()}),
            tuple(sorted(groups, key=_importance)),
            tuple(sorted(failures, key=lambda each: (-len(each.dependents), each.message))),
        )


def _importance(group: ChangeGroup) -> tuple[Any, ...]:
    order = _order(group.example)
    return group.change != "lost", -len(group.dependents), group.change, str(group), order


_PARTICULARS: Final = re.compile(r'"[^"]*"|\d+')
"""Matches quoted strings and numbers, in which messages with the same cause often differ."""


def _names(found: _Collected) -> tuple[str, ...]:
    return tuple(sorted(found.dependents))


def _group(shape: tuple[Any, ...], more_fields: int, found: _Collected) -> ChangeGroup:
    _, kind, change, _ = shape
    return ChangeGroup(
        kind, change, found.fields, more_fields, found.objects, _names(found), found.example
    )


# Collecting the groups.


@dataclass(slots=True)
class _Collected:
    """The data of one group, to which further changes may still be added."""

    fields: tuple[FieldChange, ...]
    variant: Any
    example: ChangeExample
    objects: int = 0
    dependents: set[str] = field(default_factory=set)

    def add(self, fields: tuple[FieldChange, ...], variant: Any, example: ChangeExample) -> None:
        self.objects += 1
        self.dependents.add(example.dependent)
        self._take(fields, variant, example)

    def join(self, other: _Collected) -> None:
        self.objects += other.objects
        self.dependents |= other.dependents
        self._take(other.fields, other.variant, other.example)

    def _take(self, fields: tuple[FieldChange, ...], variant: Any, example: ChangeExample) -> None:
        varied = [each.is_varied for each in self.fields]
        if varied and variant != self.variant:
            pairs = zip(self.variant, variant, varied, strict=True)
            varied = [is_varied or mine != other for mine, other, is_varied in pairs]
        if _order(example) < _order(self.example):
            # Do not replace the variant of the group: it only serves to compare values, and the
            # variant of any object of the group can do this.
            self.fields, self.example = fields, example
        self.fields = tuple(
            FieldChange(each.path, each.before, each.after, each.is_secret, is_varied)
            for each, is_varied in zip(self.fields, varied, strict=True)
        )


def _order(example: ChangeExample) -> tuple[str, Identity]:
    return example.dependent, example.identity


class _Variants:
    """All groups of one shape, which is: changes to the same fields of objects of one kind.

    More than `MOST_VARIANTS` groups are merged into one group.
    """

    def __init__(self) -> None:
        self._apart: dict[Any, _Collected] = {}
        self._merged: _Collected | None = None

    @property
    def is_merged(self) -> bool:
        return self._merged is not None

    def add(self, variant: Any, fields: tuple[FieldChange, ...], example: ChangeExample) -> None:
        found = self._merged or self._apart.get(variant)
        if found is None:
            found = self._apart[variant] = _Collected(fields, variant, example)
        found.add(fields, variant, example)
        if len(self._apart) > MOST_VARIANTS:
            first, *rest = self._apart.values()
            for each in rest:
                first.join(each)
            self._merged, self._apart = first, {}

    def found(self) -> Iterable[_Collected]:
        return [self._merged] if self._merged is not None else self._apart.values()


# Identity of objects, and lost objects.


def identity_of(obj: ReadOnlyObject) -> Identity:
    """Return the group, kind, namespace and name of an object."""
    metadata: ReadOnlyObject = obj.get("metadata") or {}
    group, slash, _ = str(obj.get("apiVersion") or "").partition("/")
    named = (str(metadata.get(each) or "") for each in ("namespace", "name"))
    return (group if slash else "", str(obj.get("kind") or ""), *named)  # type: ignore[return-value]


def lost_objects(
    before: Iterable[Identity],
    after: Iterable[Identity],
    sources: Mapping[Identity, str] | None = None,
) -> set[Identity]:
    """Return the objects that are deleted without a replacement.

    `sources` has, for each object, the part of the dependent that creates it, such as a component.
    A new object replaces a deleted object if the same part creates the two objects, and if their
    kinds or their names are the same. A new object replaces at most one deleted object.
    """
    was, will_be, made_by = {*before}, {*after}, sources or {}

    def role(each: Identity) -> Role:
        return Role(made_by.get(each, ""), each[1], each[3])

    return {*without_replacement(sorted(was - will_be), sorted(will_be - was), role)}


# The changes of one object.


@dataclass(frozen=True, slots=True)
class _Made:
    """The change of one object, with the two keys by which changes are grouped."""

    shape: tuple[Any, ...]
    """The shape, which is the first key of the change.

    It has the API group and kind of the object, the kind of change, and the paths of the changed
    fields.
    """
    variant: Any
    """The second key: the old and the new value of each field whose path is in `shape`."""
    fields: tuple[FieldChange, ...] = ()
    more_fields: int = 0


def _compared(
    identity: Identity, before: ReadOnlyObject | None, after: ReadOnlyObject | None, is_lost: bool
) -> _Made | None:
    group, kind = identity[:2]
    if before is None or after is None:
        change: Change = "added" if before is None else "lost" if is_lost else "removed"
        return _Made((group, kind, change, ()), ())
    found = [*_differences(before, after, "", is_secret=False)]
    if not found:
        return None
    named = found[:MOST_FIELDS]
    fields = tuple(_field(*each) for each in named)
    variant = tuple((_key(old), _key(new), hidden) for _, old, new, hidden in named)
    shape = group, kind, "changed", tuple(each.path for each in fields)
    return _Made(shape, variant, fields, len(found) - len(named))


class _Absent:
    """Stands for an absent field. A field with null is not absent."""


_ABSENT: Final = _Absent()
_Found = tuple[str, Any, Any, bool]
"""A changed value: its path, its old and new value, and True if the values are secret."""


def _differences(before: Any, after: Any, path: str, *, is_secret: bool) -> Iterator[_Found]:
    """Yield each value that differs between two objects.

    If a field exists only in one of them, its whole value is one difference.
    """
    if isinstance(before, Mapping) and isinstance(after, Mapping):
        hides = _is_secret(before) or _is_secret(after)
        for key in sorted({*before, *after}, key=str):
            inside = is_secret or (hides and key in _SECRET_FIELDS)
            pair = before.get(key, _ABSENT), after.get(key, _ABSENT)
            yield from _differences(*pair, _joined(path, str(key)), is_secret=inside)
    elif isinstance(before, list) and isinstance(after, list):
        for index, old, new in _items(before, after):
            yield from _differences(old, new, f"{path}[{index}]", is_secret=is_secret)
    elif before == after and type(before) is type(after):  # 1, 1.0 and true differ
        return
    elif is_secret or isinstance(before, HiddenText) or isinstance(after, HiddenText):
        old, new = (_ABSENT if each is _ABSENT else _HIDDEN for each in (before, after))
        yield path, old, new, True
    else:
        yield path, before, after, False


_SECRET_FIELDS: Final = ("data", "stringData")
_PLAIN: Final = re.compile(r"[A-Za-z0-9_-]+")


def _is_secret(obj: ReadOnlyObject) -> bool:
    return obj.get("kind") == "Secret" and obj.get("apiVersion") == "v1"


def _joined(path: str, key: str) -> str:
    if not _PLAIN.fullmatch(key):
        return f"{path}[{key}]"
    return f"{path}.{key}" if path else key


def _items(before: Sequence[Any], after: Sequence[Any]) -> Iterator[tuple[str, Any, Any]]:
    """Yield triples: an index or a name for the path, the old list item, and the new list item.

    If all items have a name and the order of the names differs, items with the same name are
    paired. Otherwise, items with the same index are paired.
    """
    names = _named(before), _named(after)
    if names[0] is None or names[1] is None or [*names[0]] == [*names[1]]:
        for index in range(max(len(before), len(after))):
            old, new = (each[index] if index < len(each) else _ABSENT for each in (before, after))
            yield str(index), old, new
        return
    for name in dict.fromkeys((*names[0], *names[1])):
        yield f"name={name}", names[0].get(name, _ABSENT), names[1].get(name, _ABSENT)


def _named(items: Sequence[Any]) -> dict[str, Any] | None:
    found = {
        each["name"]: each
        for each in items
        if isinstance(each, Mapping) and isinstance(each.get("name"), str)
        if not isinstance(each["name"], HiddenText)
    }
    return found if len(found) == len(items) else None


def _field(path: str, before: Any, after: Any, is_secret: bool) -> FieldChange:
    return FieldChange(path, _shown(before), _shown(after), is_secret)


def _shown(value: Any) -> str | None:
    if value is _ABSENT:
        return None
    text = value if isinstance(value, str) and value.isprintable() and value else _json(value)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"


def _key(value: Any) -> str | None:
    """Return a key that is equal for equal values; None for an absent field.

    The key is the value as JSON, or a digest of long JSON.
    """
    if value is _ABSENT:
        return None
    text = _json(value)
    if len(text) <= 2 * _LONGEST:
        return text
    return hashlib.sha256(text.encode()).hexdigest()


def _json(value: Any) -> str:
    hidden = _without_secrets(value, value)
    return json.dumps(hidden, ensure_ascii=False, sort_keys=True, default=str)


# A report must not show the data of Secrets, only that the data changed.


def _hidden(
    before: Mapping[Identity, ReadOnlyObject],
    after: Mapping[Identity, ReadOnlyObject],
    identity: Identity,
) -> tuple[ReadOnlyObject | None, ReadOnlyObject | None]:
    old, new = before.get(identity), after.get(identity)
    return (
        _without_secrets(old, old) if old is not None else None,
        _without_secrets(new, old) if new is not None else None,
    )


def _without_secrets(value: Any, other: Any, *, is_secret: bool = False) -> Any:
    """Return a value for the report, with the data of Secrets hidden.

    `other` is the old value of the same field: hidden data that differs from it is marked as
    changed.
    """
    if isinstance(value, Mapping):
        hides, known = _is_secret(value), other if isinstance(other, Mapping) else {}
        return {
            key: _without_secrets(
                each,
                known.get(key, _ABSENT),
                is_secret=is_secret or (hides and key in _SECRET_FIELDS),
            )
            for key, each in value.items()
        }
    if isinstance(value, list):
        beside = other if isinstance(other, list) else []
        return [
            _without_secrets(
                each, beside[index] if index < len(beside) else _ABSENT, is_secret=is_secret
            )
            for index, each in enumerate(value)
        ]
    if not is_secret and not isinstance(value, HiddenText):
        return value
    return _HIDDEN if other is _ABSENT or value == other else _CHANGED


def _plural(kind: str, number: int) -> str:
    if number == 1:
        return kind
    if kind.endswith("y") and kind[-2:-1] not in "aeiou":
        return f"{kind[:-1]}ies"
    return f"{kind}es" if kind.endswith(("s", "x", "ch", "sh")) else f"{kind}s"
