"""Rules for writes of StorageVersionMigrations.

A StorageVersionMigration requests that all objects of a resource are stored in its storage version.
Its spec cannot change, and a finished migration stays finished.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from polyver.core.plain import Object
from polyver.kube.objects.conditions import find_condition
from polyver.kube.objects.status import Cause, duplicate, invalid_field, required, unsupported
from polyver.kube.server.kinds._builtin import BuiltinRules
from polyver.kube.server.kinds._checks import check_name, frozen, in_order, in_structure
from polyver.languages.values.names import (
    dns_1035_label_problems,
    dns_subdomain_problems,
    label_key_problems,
)

__all__ = ["MigrationRules"]

_REVISION = re.compile(r"[1-9][0-9]*")
_STATUSES = ("False", "True", "Unknown")
_REASON = "[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?"
_REASON_TEXT = (
    "a condition reason must start with alphabetic character, optionally followed by a string of "
    "alphanumeric characters or '_,:', and must end with an alphanumeric character or '_' (e.g. "
    "'my_name',  or 'MY_NAME',  or 'MyName',  or 'ReasonA,ReasonB',  or 'ReasonA:ReasonB', regex "
    f"used for validation is '{_REASON}')"
)
_FIELDS = ("type", "status", "observedGeneration", "lastTransitionTime", "reason", "message")
_NEVER_FALSE = "condition cannot be set to false once it is true"


class MigrationRules(BuiltinRules):
    """Rules for writes of StorageVersionMigrations."""

    unconditional = False

    def check_create(self, obj: Object) -> list[Cause]:
        return [*_check_resource(obj["spec"]["resource"])]

    def check_update(self, obj: Object, old: Object) -> list[Cause]:
        shown = {"Resource": in_order(obj["spec"]["resource"], "group", "resource")}
        changed = frozen("spec", obj["spec"], old["spec"], value=shown)
        return [*self.check_create(obj), *changed]

    def check_status(self, obj: Object, old: Object) -> list[Cause]:
        status, before = obj.get("status") or {}, old.get("status") or {}
        revision, known = status.get("resourceVersion"), before.get("resourceVersion")
        causes: list[Cause] = []
        if revision and not _REVISION.fullmatch(revision):
            text = f"resource version is not well formed: {revision}"
            causes.append(invalid_field("status.resourceVersion", revision, text))
        conditions = status.get("conditions") or []
        causes += _check_conditions("status.conditions", conditions)
        if known and revision != known:
            text = "field is immutable"
            causes.append(invalid_field("status.resourceVersion", revision or "", text))
        return [*causes, *_check_end(obj, old, conditions)]


def _check_resource(resource: Object) -> Iterator[Cause]:
    name, group = resource.get("resource"), resource.get("group")
    if not name:
        yield required("spec.resource.resource", "resource is required to be set")
    elif problems := dns_1035_label_problems(name):
        yield invalid_field("spec.resource.resource", name, ",".join(problems))
    if group and (problems := dns_subdomain_problems(group)):
        yield invalid_field("spec.resource.group", group, ",".join(problems))


def _check_conditions(path: str, conditions: Sequence[Object]) -> Iterator[Cause]:
    types: set[str] = set()
    for number, condition in enumerate(conditions):
        kind, field = condition.get("type") or "", f"{path}[{number}]"
        if kind in types:
            yield duplicate(field, kind)
        types.add(kind)
        if not kind:
            yield required(f"{field}.type", "is required")
        else:
            yield from check_name(f"{field}.type", kind, label_key_problems)
        yield from _check_condition(field, condition)


def _check_condition(field: str, condition: Object) -> Iterator[Cause]:
    status, reason = condition.get("status"), condition.get("reason") or ""
    if not status:
        yield required(f"{field}.status")
    elif status not in _STATUSES:
        yield unsupported(f"{field}.status", status, _STATUSES)
    if (generation := condition.get("observedGeneration") or 0) < 0:
        text = "must be greater than or equal to zero"
        yield invalid_field(f"{field}.observedGeneration", generation, text)
    if not condition.get("lastTransitionTime"):
        yield required(f"{field}.lastTransitionTime")
    if not reason:
        yield required(f"{field}.reason")
    elif not re.fullmatch(_REASON, reason):
        yield invalid_field(f"{field}.reason", reason, _REASON_TEXT)
    for name, most in (("reason", 1024), ("message", 32768)):
        if len((condition.get(name) or "").encode()) > most:
            problem = f"Too long: may not be more than {most} bytes"
            yield Cause(f"{field}.{name}", problem, "FieldValueTooLong")


def _check_end(obj: Object, old: Object, conditions: Sequence[Object]) -> Iterator[Cause]:
    """Yield the problems of a migration that has both ends, or whose end is taken back."""
    shown = [in_order(each, *_FIELDS) for each in conditions]
    problems = []
    if _is_true(obj, "Succeeded") and _is_true(obj, "Failed"):
        problems.append("Both success and failed conditions cannot be true at the same time")
    for kind, word in (("Succeeded", "Success"), ("Failed", "Failed")):
        if _is_true(old, kind) and not _is_true(obj, kind):
            problems.append(f"{word} {_NEVER_FALSE}")
    for problem in problems:
        yield in_structure(invalid_field("status.conditions", None, problem), shown)


def _is_true(obj: Object, kind: str) -> bool:
    condition = find_condition(obj, kind)
    return condition is not None and condition.get("status") == "True"
