"""The CEL variable `authorizer`, with which an expression checks the permissions of a user.

Match conditions of webhooks have this variable; rules of custom resources do not.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from polyver.languages.cel._declarations import read_type
from polyver.languages.cel._values import Opaque

__all__ = [
    "AUTHORIZATION",
    "AUTHORIZER",
    "RESOURCE",
    "AuthorizationQuery",
    "Authorizer",
    "ResourceCheck",
]

_NAMES = "kubernetes.authorization."
AUTHORIZER = read_type(f"{_NAMES}Authorizer")
RESOURCE = read_type(f"{_NAMES}ResourceCheck")


@dataclass(frozen=True, slots=True)
class AuthorizationQuery:
    """An authorization request: a verb on a resource, or on a URL path such as `/healthz`."""

    verb: str = ""
    group: str = ""
    resource: str = ""
    subresource: str = ""
    namespace: str = ""
    name: str = ""
    path: str = ""
    account: tuple[str, str] | None = None
    """The namespace and name of a service account; None means the user who sent the request."""


Answers = Callable[[AuthorizationQuery], bool]


@dataclass(frozen=True, slots=True)
class _AuthorizationValue(Opaque):
    """A CEL value for an authorization request that has no verb yet.

    Each call in `authorizer.group("apps").resource("deployments").check("get")` adds one part to
    the request; `check` adds the verb.
    """

    answers: Answers
    question: AuthorizationQuery = AuthorizationQuery()

    def about(self, kind: type[_AuthorizationValue], **more: Any) -> _AuthorizationValue:
        return kind(self.answers, replace(self.question, **more))

    def equals(self, other: Opaque) -> bool:
        return isinstance(other, _AuthorizationValue) and self.question == other.question


class Authorizer(_AuthorizationValue):
    """The CEL variable `authorizer`: the permissions of the user who sent the request.

    The call `authorizer.serviceAccount(...)` returns such a value for a service account.
    """

    __slots__ = ()
    type_name = AUTHORIZER.name


class _GroupCheck(_AuthorizationValue):
    __slots__ = ()
    type_name = f"{_NAMES}GroupCheck"


class _PathCheck(_AuthorizationValue):
    __slots__ = ()
    type_name = f"{_NAMES}PathCheck"


class ResourceCheck(_AuthorizationValue):
    """A CEL value for the permissions of a user on a resource."""

    __slots__ = ()
    type_name = RESOURCE.name


@dataclass(frozen=True, slots=True)
class _Decision(Opaque):
    type_name = f"{_NAMES}Decision"
    allowed: bool


def _checked(check: _AuthorizationValue, verb: str) -> _Decision:
    return _Decision(check.answers(replace(check.question, verb=verb)))


AUTHORIZATION: dict[str, Callable[..., Any]] = {
    "decision_allowed": lambda decision: decision.allowed,
    "decision_error": lambda _: "",
    "decision_errored": lambda _: False,
    "decision_reason": lambda _: "",
    "pathcheck_check": _checked,
    "resourcecheck_check": _checked,
    "authorizer_group": lambda check, group: check.about(_GroupCheck, group=group),
    "authorizer_path": lambda check, path: check.about(_PathCheck, path=path),
    "authorizer_serviceaccount": lambda check, namespace, name: check.about(
        Authorizer, account=(namespace, name)
    ),
    "groupcheck_resource": lambda check, name: check.about(ResourceCheck, resource=name),
    # Permissions never depend on field or label selectors here, so selectors have no effect.
    "authorizer_fieldselector": lambda check, _: check,
    "authorizer_labelselector": lambda check, _: check,
    "resourcecheck_name": lambda check, name: check.about(ResourceCheck, name=name),
    "resourcecheck_namespace": lambda check, name: check.about(ResourceCheck, namespace=name),
    "resourcecheck_subresource": lambda check, name: check.about(ResourceCheck, subresource=name),
}
