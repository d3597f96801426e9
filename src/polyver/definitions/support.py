"""The fields of applications and definitions that polyver does not execute.

If an application uses such a field, polyver applies none of its objects. Its condition `Supported`
is then false, and the message has the path of the field. docs/reference/definitions.md lists all
these fields.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from polyver.core import PolyverError
from polyver.core.plain import ReadOnlyObject
from polyver.definitions.publishing import Decision, known_revision

__all__ = ["Unsupported", "definition_warnings", "unsupported", "unsupported_fields"]

Revisions = Mapping[tuple[str, str], ReadOnlyObject]

_COMPONENT_FIELDS: Final = ("externalRevision", "dependsOn", "inputs", "outputs", "scopes")
_ANNOTATIONS: Final = (
    # The objects would be applied with the rights of polyver, and not with the rights of this
    # account.
    "app.oam.dev/service-account-name",
    "app.oam.dev/username",
    "app.oam.dev/group",
    # The field limits the versions of KubeVela's controller that may process the application.
    "app.oam.dev/controller-version-require",
    "app.oam.dev/workflowName",
    "app.oam.dev/restart-workflow",
    "policy.oam.dev/auto-revision",
)
_HEALTH: Final = ("healthPolicy", "customStatus", "details")
_DEFAULT_STAGE: Final = "DefaultDispatch"
_REFUSED: Final = "applications that use it are refused (Supported=False)"


class Unsupported(PolyverError):
    """An application uses a field or an annotation that polyver does not execute."""

    reason = "Unsupported"


def unsupported(
    application: ReadOnlyObject, resolutions: Iterable[ReadOnlyObject], revisions: Revisions
) -> list[Unsupported]:
    """Return the unsupported fields of an application and of the definitions that it uses.

    `resolutions` are entries of `status.resolutions`. If a revision is missing, its fields are not
    checked, because rendering reports the missing revision.
    """
    found = unsupported_fields(application)
    for each in resolutions:
        namespace, _, name = each["definition"].rpartition("/")
        revision = revisions.get((namespace, each["revision"]))
        known = known_revision(revision) if revision is not None else None
        for field in _definition_fields(known.content) if known is not None else ():
            fact = f"{name} {each['version']} has {field}, which is not executed"
            found.append(Unsupported(fact, at=each["at"]))
    return found


def unsupported_fields(application: ReadOnlyObject) -> list[Unsupported]:
    """Return the unsupported fields and annotations of an application.

    The definitions that it uses are not checked.
    """
    spec: ReadOnlyObject = application.get("spec") or {}
    annotations: ReadOnlyObject = application["metadata"].get("annotations") or {}
    found = [
        _unexecuted(name, f"spec.components[{number}].{name}")
        for number, component in enumerate(spec.get("components") or ())
        for name in _COMPONENT_FIELDS
        if component.get(name)
    ]
    for number, policy in enumerate(spec.get("policies") or ()):
        fact = f"policy {policy.get('type')} is not executed"
        found.append(Unsupported(fact, at=f"spec.policies[{number}]"))
    workflow: ReadOnlyObject = spec.get("workflow") or {}
    found += [
        _unexecuted(f"the workflow's {name}", f"spec.workflow.{name}")
        for name in ("ref", "mode")
        if workflow.get(name)
    ]
    for number, step in enumerate(workflow.get("steps") or ()):
        fact = f"workflow step {step.get('type')} is not executed"
        found.append(Unsupported(fact, at=f"spec.workflow.steps[{number}]"))
    found += [
        _unexecuted(name, f"metadata.annotations[{name}]")
        for name in _ANNOTATIONS
        if annotations.get(name)
    ]
    return found


def _unexecuted(name: str, at: str) -> Unsupported:
    return Unsupported(f"{name} is not executed", at=at)


def _definition_fields(content: ReadOnlyObject) -> Iterator[str]:
    """Yield the paths of the unsupported fields in one version of a definition."""
    status: ReadOnlyObject = content.get("status") or {}
    yield from (f"status.{name}" for name in _HEALTH if status.get(name))
    yield from (name for name in ("workloadRefPath", "manageWorkload") if content.get(name))
    if content.get("stage") not in (None, "", _DEFAULT_STAGE):
        yield "stage"


def definition_warnings(kind: str, decision: Decision) -> list[str]:
    """Return a warning for each unsupported field in the new versions of a definition."""
    if not decision.create:
        return []
    if kind == "PolicyDefinition":
        everywhere = [new.entry.at for new in decision.create if new.entry.content.get("global")]
        reason = "policies apply only to applications that name them"
        found = [f"{at}.global has no effect: {reason}" for at in everywhere]
        return [f"policies are not executed: {_REFUSED}", *found]
    if kind == "WorkflowStepDefinition":
        return [f"workflow steps are not executed: {_REFUSED}"]
    return [
        f"{new.entry.at}.{field} is not executed: {_REFUSED}"
        for new in decision.create
        for field in _definition_fields(new.entry.content)
    ]
