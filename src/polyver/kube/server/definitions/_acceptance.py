"""Acceptance of a CustomResourceDefinition (CRD): its names, its approval, and its conditions.

Within a group, each name belongs to the CRD that got this name first. A CRD for a group of the
Kubernetes project, such as *.k8s.io, needs an annotation that states its approval.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from polyver.core.plain import Object
from polyver.kube.objects.conditions import set_condition
from polyver.kube.objects.status import Cause, invalid_field, required
from polyver.languages.values.names import dns_1035_label_problems

__all__ = [
    "NamesInUse",
    "accepted",
    "check_approval",
    "check_names",
    "is_established",
    "made",
    "required_names",
    "set_condition",
    "with_condition",
]


def made(kind: str, status: str, reason: str, message: str) -> Object:
    """Build a condition of the type `kind`, without lastTransitionTime."""
    return {"type": kind, "status": status, "reason": reason, "message": message}


def is_established(definition: Mapping[str, Any]) -> bool:
    """Report whether a CRD is established: its names have been accepted, so its kind is served."""
    conditions = (definition.get("status") or {}).get("conditions") or ()
    return any(each["type"] == "Established" and each["status"] == "True" for each in conditions)


def with_condition(definition: Object, condition: Object, now: str) -> Object:
    """Return a CRD in which one condition in the status has been added or replaced."""
    status = definition.get("status") or {}
    conditions = set_condition(status.get("conditions") or [], condition, now)
    return definition | {"status": status | {"conditions": conditions}}


_ANNOTATION = "api-approved.kubernetes.io"
_FIELD = f"metadata.annotations[{_ANNOTATION}]"
_NEEDED = f'protected groups must have approval annotation "{_ANNOTATION}"'
_SEE = "see https://github.com/kubernetes/enhancements/pull/1111"


@dataclass(frozen=True, slots=True)
class _Approval:
    """The reason and the message of the condition that reports a CRD's approval annotation."""

    reason: str
    text: str

    @property
    def condition(self) -> Object:
        status = "True" if self.reason == "ApprovedAnnotation" else "False"
        return made("KubernetesAPIApprovalPolicyConformant", status, self.reason, self.text)


def _approval(group: str, annotations: Mapping[str, str]) -> _Approval | None:
    """Read the approval annotation of a CRD; return None if its group needs no approval.

    >>> _approval("ex.io", {}) is None
    True
    >>> _approval("x.k8s.io", {"api-approved.kubernetes.io": "unapproved, a test"}).reason
    'UnapprovedAnnotation'
    """
    if not f".{group}".endswith((".k8s.io", ".kubernetes.io")):
        return None
    annotation = annotations.get(_ANNOTATION, "")
    if not annotation:
        return _Approval("MissingAnnotation", f"{_NEEDED}, {_SEE}")
    if annotation.startswith("unapproved"):
        return _Approval("UnapprovedAnnotation", f'not approved: "{annotation}"')
    if _is_url(annotation):
        return _Approval("ApprovedAnnotation", f"approved in {annotation}")
    how = 'with either a URL or a reason starting with "unapproved"'
    return _Approval("InvalidAnnotation", f"{_NEEDED} {how}, {_SEE}")


def _is_url(text: str) -> bool:
    try:
        parts = urlsplit(text)
    except ValueError:
        return False
    return bool(parts.scheme and parts.netloc)


def check_approval(new: Object, old: Object | None) -> Iterable[Cause]:
    """Yield the problem of the approval annotation, unless the CRD had the same problem before."""
    group, annotations = new["spec"]["group"], new["metadata"].get("annotations") or {}
    found = _approval(group, annotations)
    before = _approval(group, old["metadata"].get("annotations") or {}) if old else None
    if found is None or (before and before.reason == found.reason):
        return
    if found.reason == "MissingAnnotation":
        yield required(_FIELD, found.text)
    elif found.reason == "InvalidAnnotation":
        yield invalid_field(_FIELD, annotations[_ANNOTATION], found.text)


_REQUIRED = ("plural", "singular", "kind", "listKind")


class NamesInUse:
    """The accepted names of all CRDs, by group."""

    def __init__(self) -> None:
        self._by_group: dict[str, dict[str, Mapping[str, Any]]] = {}

    def note(self, key: str, group: str, names: Mapping[str, Any]) -> bool:
        """Record the accepted names of a CRD, by its store key; return True if they changed."""
        known = self._by_group.setdefault(group, {})
        changed = known.get(key) != names
        known[key] = names
        return changed

    def forget(self, key: str) -> list[str]:
        """Free the names of a deleted CRD; return the store keys of the other CRDs in its group."""
        for group, known in list(self._by_group.items()):
            if known.pop(key, None) is not None:
                if not known:
                    del self._by_group[group]
                return list(known)
        return []

    def group(self, group: str) -> list[str]:
        """Return the store keys of the CRDs of a group."""
        return list(self._by_group.get(group, ()))

    def keys(self) -> list[str]:
        """Return the store keys of all CRDs."""
        return [key for known in self._by_group.values() for key in known]

    def resources(self, group: str) -> set[str]:
        """Return all accepted resource names in a group: plural, singular and short names."""
        return {
            name
            for names in self._by_group.get(group, {}).values()
            for name in (names["plural"], names.get("singular"), *(names.get("shortNames") or ()))
            if name
        }

    def kinds(self, group: str) -> set[str]:
        """Return all accepted kind names in a group: kinds and list kinds."""
        known = self._by_group.get(group, {}).values()
        return {names[field] for names in known for field in ("kind", "listKind") if field in names}


def accepted(definition: Object, in_use: NamesInUse, now: str) -> Object:
    """Decide which names of a CRD are accepted, and return the new status of the CRD."""
    names, conflict = _given(definition, in_use)
    conditions = list(definition["status"].get("conditions") or [])
    group, annotations = definition["spec"]["group"], definition["metadata"].get("annotations")
    if approved := _approval(group, annotations or {}):
        conditions = set_condition(conditions, approved.condition, now)
    for condition in _outcome(conflict, established=is_established(definition)):
        conditions = set_condition(conditions, condition, now)
    status: Object = definition["status"]
    return status | {"acceptedNames": names, "conditions": conditions}


def _outcome(conflict: tuple[str, str] | None, *, established: bool) -> list[Object]:
    """Build the conditions NamesAccepted and Established.

    `conflict` has the reason and the message of a name conflict; None means that there is none. A
    CRD that is already established stays established after a conflict.
    """
    if conflict:
        first = made("NamesAccepted", "False", *conflict)
        second = made("Established", "False", "NotAccepted", "not all names are accepted")
    else:
        first = made("NamesAccepted", "True", "NoConflicts", "no conflicts found")
        text = "the initial names have been accepted"
        second = made("Established", "True", "InitialNamesAccepted", text)
    return [first] if established else [first, second]


def _given(definition: Object, in_use: NamesInUse) -> tuple[Object, tuple[str, str] | None]:
    """Return the accepted names of a CRD, and the last name conflict as a reason and a message.

    The conflict is None if no other CRD of the group has any of the names.
    """
    spec, had = definition["spec"], definition["status"]["acceptedNames"]
    wanted, got = spec["names"], dict(had)
    resources, kinds = in_use.resources(spec["group"]), in_use.kinds(spec["group"])
    conflict: tuple[str, str] | None = None
    for field, known in (
        ("plural", resources),
        ("singular", resources),
        ("shortNames", resources),
        ("kind", kinds),
        ("listKind", kinds),
    ):
        taken = [name for name in _texts(wanted.get(field)) if name in known]
        if lost := [name for name in taken if name not in _texts(had.get(field))]:
            conflict = f"{field[:1].upper()}{field[1:]}Conflict", _conflict_message(lost)
        else:
            _set(got, field, wanted.get(field))
    _set(got, "categories", wanted.get("categories"))
    return got, conflict


def _texts(value: Any) -> list[str]:
    return value if isinstance(value, list) else [value] if value else []


def _conflict_message(names: list[str]) -> str:
    texts = [f'"{name}" is already in use' for name in dict.fromkeys(names)]
    return texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"


def _set(names: Object, field: str, value: object) -> None:
    if value:
        names[field] = value
    else:
        names.pop(field, None)


def required_names(names: Mapping[str, Any]) -> Iterable[Cause]:
    """Return a cause for each required name that is missing."""
    return [required(f"spec.names.{field}") for field in _REQUIRED if not names.get(field)]


def check_names(names: Mapping[str, Any], path: str) -> Iterable[Cause]:
    """Yield the problems of the names of a CRD, in its spec or in its status (`path`)."""
    for field in ("plural", "singular"):
        yield from _check_label(names.get(field) or "", f"{path}.{field}")
    for field in ("kind", "listKind"):
        name = names.get(field) or ""
        if name and (problems := dns_1035_label_problems(name.lower())):
            text = f"may have mixed case, but should otherwise match: {','.join(problems)}"
            yield invalid_field(f"{path}.{field}", name, text)
    yield from _check_labels(names.get("shortNames") or (), f"{path}.shortNames")
    if names.get("kind") and names["kind"] == names.get("listKind"):
        text = "kind and listKind may not be the same"
        yield invalid_field(f"{path}.listKind", names["kind"], text)
    yield from _check_labels(names.get("categories") or (), f"{path}.categories")


def _check_label(name: str, path: str) -> Iterable[Cause]:
    if name and (problems := dns_1035_label_problems(name)):
        yield invalid_field(path, name, ",".join(problems))


def _check_labels(names: Iterable[str], path: str) -> Iterable[Cause]:
    for number, name in enumerate(names):
        if problems := dns_1035_label_problems(name):
            yield invalid_field(f"{path}[{number}]", name, ",".join(problems))
