"""Errors for API clients: Status objects with a code, a reason, a message and causes.

A cause is one error in a field of the object. The functions here build errors and causes with the
messages of kube-apiserver.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from polyver.core import PolyverError
from polyver.kube.objects.kinds import ResourceKind
from polyver.languages.values.strings import quoted, shown

__all__ = [
    "ApiError",
    "Cause",
    "already_exists",
    "bad_request",
    "conflict",
    "duplicate",
    "expired",
    "forbidden",
    "forbidden_field",
    "internal",
    "invalid",
    "invalid_field",
    "not_allowed",
    "not_found",
    "required",
    "too_many",
    "unsupported",
]


class ApiError(PolyverError):
    """An error that the API server sends as a Status object."""

    def __init__(
        self,
        code: int,
        reason: str,
        message: str,
        *,
        details: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
        metadata: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.reason = reason
        self.message = message
        self.details = details
        self.headers = headers or {}
        self.metadata = metadata or {}

    @property
    def status(self) -> dict[str, Any]:
        """The Status object by which clients learn about the error."""
        status: dict[str, Any] = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": dict(self.metadata),
            "status": "Failure",
            "message": self.message,
        }
        if self.reason:
            status["reason"] = self.reason
        if self.details is not None:
            status["details"] = dict(self.details)
        return status | {"code": self.code}

    @classmethod
    def from_status(cls, status: Mapping[str, Any]) -> ApiError:
        """Build the ApiError with the data of a Status object that an API server has sent."""
        code, reason, message = status.get("code"), status.get("reason"), status.get("message")
        return cls(
            code if isinstance(code, int) and code else 500,
            reason or "",
            message or "",
            details=status.get("details"),
            metadata=status.get("metadata"),
        )


@dataclass(frozen=True, slots=True)
class Cause:
    """One error in a field of an object: the path of the field, and the message."""

    field: str
    message: str
    reason: str = "FieldValueInvalid"

    @property
    def as_detail(self) -> dict[str, str]:
        return {"reason": self.reason, "message": self.message, "field": self.field}


def invalid_field(field: str, value: object, problem: str) -> Cause:
    """Build the cause for a value that is not valid; `problem` states why.

    >>> invalid_field("spec.size", 7, "must be less than 5").message
    'Invalid value: 7: must be less than 5'
    """
    return Cause(field, f"Invalid value: {shown(value)}: {problem}")


def required(field: str, problem: str = "") -> Cause:
    """Build the cause for a missing value; `problem` may add an explanation."""
    return Cause(
        field, "Required value" + (f": {problem}" if problem else ""), "FieldValueRequired"
    )


def forbidden_field(field: str, problem: str) -> Cause:
    """Build the cause for a field that must not be set; `problem` states why."""
    return Cause(field, f"Forbidden: {problem}", "FieldValueForbidden")


def duplicate(field: str, value: object) -> Cause:
    """Build the cause for a value that occurs twice but must be unique."""
    return Cause(field, f"Duplicate value: {shown(value)}", "FieldValueDuplicate")


def unsupported(field: str, value: object, known: Sequence[object]) -> Cause:
    """Build the cause for a value that is not one of the values in `known`."""
    values = ", ".join(shown(each) for each in known)
    supported = f": supported values: {values}" if values else ""
    return Cause(field, f"Unsupported value: {shown(value)}{supported}", "FieldValueNotSupported")


def too_many(field: str, found: int, most: int) -> Cause:
    """Build the cause for a list that has `found` items, more than `most`."""
    items = "item" if most == 1 else "items"
    return Cause(field, f"Too many: {found}: must have at most {most} {items}", "FieldValueTooMany")


def _about(kind: ResourceKind, name: str = "") -> dict[str, Any]:
    """Build the `details` of an error about an object.

    As in kube-apiserver, their field `kind` has the plural resource name.
    """
    named = {"name": name} if name else {}
    return named | ({"group": kind.group} if kind.group else {}) | {"kind": kind.plural}


def not_found(kind: ResourceKind, name: str) -> ApiError:
    """Build the error for an object that does not exist.

    >>> from polyver.kube.objects.kinds import ResourceKind
    >>> widgets = ResourceKind("ex.io", "v1", "Widget", "widgets", "widget", namespaced=True)
    >>> print(not_found(widgets, "a"))
    widgets.ex.io "a" not found
    """
    message = f"{kind.resource} {quoted(name)} not found"
    return ApiError(404, "NotFound", message, details=_about(kind, name))


def already_exists(kind: ResourceKind, name: str, *, deleting: bool = False) -> ApiError:
    """Build the error for a name that is already in use.

    With `deleting`, the message adds that the existing object is being deleted.
    """
    message = f"{kind.resource} {quoted(name)} already exists"
    message = f"object is being deleted: {message}" if deleting else message
    return ApiError(409, "AlreadyExists", message, details=_about(kind, name))


def conflict(kind: ResourceKind, name: str, problem: str) -> ApiError:
    """Build the error (409) for a request that the state of the object does not allow.

    An example is an update with an old resourceVersion. `problem` states why.
    """
    message = f"Operation cannot be fulfilled on {kind.resource} {quoted(name)}: {problem}"
    return ApiError(409, "Conflict", message, details=_about(kind, name))


MODIFIED = (
    "the object has been modified; please apply your changes to the latest version and try again"
)


def forbidden(
    kind: ResourceKind, name: str, problem: str, causes: Iterable[Cause] = ()
) -> ApiError:
    """Build the error (403) for a request that is not allowed; `problem` states why."""
    named = f" {quoted(name)}" if name else ""
    details = _about(kind, name)
    found = [cause.as_detail for cause in causes]
    return ApiError(
        403,
        "Forbidden",
        f"{kind.resource}{named} is forbidden: {problem}",
        details=details | ({"causes": found} if found else {}),
    )


def invalid(kind: ResourceKind, name: str, causes: Sequence[Cause]) -> ApiError:
    """Build the error (422) for an invalid object; the message lists all causes."""
    texts = list(dict.fromkeys(f"{cause.field}: {cause.message}" for cause in causes))
    problem = texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"
    details: dict[str, Any] = {"name": name} if name else {}
    details |= {"group": kind.group} if kind.group else {}
    details |= {"kind": kind.kind, "causes": [cause.as_detail for cause in causes]}
    message = f"{kind.qualified} {quoted(name)} is invalid: {problem}"
    return ApiError(422, "Invalid", message, details=details)


def bad_request(message: str) -> ApiError:
    """Build the error for a malformed request."""
    return ApiError(400, "BadRequest", message)


def not_allowed() -> ApiError:
    """Build the error for an HTTP method that the URL path does not support."""
    message = "the server does not allow this method on the requested resource"
    return ApiError(405, "MethodNotAllowed", message, details={})


def expired(message: str, *, metadata: Mapping[str, Any] | None = None) -> ApiError:
    """Build the error (410) for a resourceVersion or continue token that is too old."""
    return ApiError(410, "Expired", message, metadata=metadata)


def internal(message: str) -> ApiError:
    """Build the error (500) for an unexpected failure. Its message must not contain a traceback."""
    details = {"causes": [{"message": message}]}
    return ApiError(500, "InternalError", f"Internal error occurred: {message}", details=details)
