"""Approval of kinds in groups that belong to Kubernetes: an annotation states the approval."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

from polyver.core.plain import Object
from polyver.kube.objects.status import Cause, invalid_field, required
from polyver.kube.server.definitions._conditions import made

__all__ = ["Approval", "approval", "check_approval"]

_ANNOTATION = "api-approved.kubernetes.io"
_FIELD = f"metadata.annotations[{_ANNOTATION}]"
_NEEDED = f'protected groups must have approval annotation "{_ANNOTATION}"'
_SEE = "see https://github.com/kubernetes/enhancements/pull/1111"


@dataclass(frozen=True, slots=True)
class Approval:
    """The outcome of reading the approval annotation."""

    reason: str
    text: str

    @property
    def condition(self) -> Object:
        status = "True" if self.reason == "ApprovedAnnotation" else "False"
        return made("KubernetesAPIApprovalPolicyConformant", status, self.reason, self.text)


def approval(group: str, annotations: Mapping[str, str]) -> Approval | None:
    """Return the approval of a definition; None in groups that need none.

    >>> approval("ex.io", {}) is None
    True
    >>> approval("x.k8s.io", {"api-approved.kubernetes.io": "unapproved, a test"}).reason
    'UnapprovedAnnotation'
    """
    if not f".{group}".endswith((".k8s.io", ".kubernetes.io")):
        return None
    said = annotations.get(_ANNOTATION, "")
    if not said:
        return Approval("MissingAnnotation", f"{_NEEDED}, {_SEE}")
    if said.startswith("unapproved"):
        return Approval("UnapprovedAnnotation", f'not approved: "{said}"')
    if _is_url(said):
        return Approval("ApprovedAnnotation", f"approved in {said}")
    how = 'with either a URL or a reason starting with "unapproved"'
    return Approval("InvalidAnnotation", f"{_NEEDED} {how}, {_SEE}")


def _is_url(text: str) -> bool:
    try:
        parts = urlsplit(text)
    except ValueError:
        return False
    return bool(parts.scheme and parts.netloc)


def check_approval(new: Object, old: Object | None) -> Iterable[Cause]:
    """Yield the problem of the annotation, unless the old definition had the same one."""
    group, annotations = new["spec"]["group"], new["metadata"].get("annotations") or {}
    found = approval(group, annotations)
    before = approval(group, old["metadata"].get("annotations") or {}) if old else None
    if found is None or (before and before.reason == found.reason):
        return
    if found.reason == "MissingAnnotation":
        yield required(_FIELD, found.text)
    elif found.reason == "InvalidAnnotation":
        yield invalid_field(_FIELD, annotations[_ANNOTATION], found.text)
