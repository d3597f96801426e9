"""Authentication and authorization: finds the user of a request, and checks what the user may do.

Some groups of users have fixed rules. These rules have the form of RBAC rules, but nobody can edit
them. The rules decide about requests, and about the reviews by which users ask for their own
permissions.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

from polyver.kube.objects.kinds import ResourceKind
from polyver.kube.objects.status import ApiError, bad_request, invalid, invalid_field
from polyver.kube.server.http import User
from polyver.kube.server.tokens import ISSUER

__all__ = [
    "ADMIN",
    "ANONYMOUS",
    "AUDIENCE",
    "CONTROLLERS",
    "FUNCTIONS",
    "SERVER",
    "VIEWER",
    "Authenticate",
    "AuthenticationResult",
    "AuthorizationAttributes",
    "Identities",
    "access_review",
    "account_user",
    "certificate_user",
    "impersonated",
    "may",
    "refusal",
    "rules_review",
    "self_review",
    "shared_audiences",
]

MASTERS = "system:masters"
VIEWERS = "polyver:viewers"
AUTHENTICATED = "system:authenticated"
UNAUTHENTICATED = "system:unauthenticated"

ADMIN = User("kubernetes-admin", (MASTERS, AUTHENTICATED), "kubernetes-admin")
VIEWER = User("polyver:viewer", (VIEWERS, AUTHENTICATED), "polyver:viewer")
CONTROLLERS = User("system:kube-controller-manager", (MASTERS, AUTHENTICATED))
FUNCTIONS = User("polyver:functions", (MASTERS, AUTHENTICATED))
"""The user as whom blueprint functions send requests; all requests are allowed.

So a user who may run the actions of a blueprint has all permissions indirectly.
"""
SERVER = User("system:apiserver", (MASTERS,))
ANONYMOUS = User("system:anonymous", (UNAUTHENTICATED,))

AUDIENCE = ISSUER
"""This server accepts a token only if it was issued for this audience."""
_ABOUT = "authentication.kubernetes.io/"
_ACCOUNT = "system:serviceaccount:"


# Authentication.


@dataclass(frozen=True, slots=True)
class AuthenticationResult:
    """The result of checking a token: the user and the audiences, or why the token is not valid."""

    user: User | None = None
    audiences: tuple[str, ...] = ()
    problem: str = ""


Authenticate = Callable[[str, Sequence[str]], AuthenticationResult]
"""A function that checks a token. The token must be meant for at least one of the audiences.

If no audience is given, the token must be meant for this server.
"""


def shared_audiences(requested: Sequence[str], meant: Sequence[str]) -> tuple[str, ...]:
    """Return those of the requested audiences for which a token is meant (`meant`).

    If no audience is requested, use the audience of this server.
    """
    return tuple(each for each in requested or (AUDIENCE,) if each in meant)


class Identities:
    """Finds the user who sent a request, by client certificate or token."""

    def __init__(self, tokens: Mapping[str, User]) -> None:
        self._tokens = [(token.encode(), user) for token, user in tokens.items() if token]
        self._lent: dict[bytes, User] = {}
        self.accounts: Authenticate = lambda token, audiences: AuthenticationResult()  # noqa: ARG005
        """The function that checks tokens of service accounts; at first, it accepts no token."""

    @contextmanager
    def lend(self, user: User) -> Iterator[str]:
        """Yield a token for a user. The token is valid until the end of the `with` statement.

        The token is not written to any file.
        """
        token = secrets.token_urlsafe(32)
        self._lent[token.encode()] = user
        try:
            yield token
        finally:
            del self._lent[token.encode()]

    def who(self, certificate: User | None, authorization: str) -> User:
        """Return the user who sent a request; raise an error 401 for an unknown token.

        `certificate` is the user in the client certificate, and `authorization` is the header.

        >>> Identities({}).who(None, "").name
        'system:anonymous'
        """
        if certificate:
            return certificate
        scheme, _, token = authorization.partition(" ")
        token = token.strip()
        if scheme.lower() != "bearer" or not token:
            return ANONYMOUS
        owner = self.verify(token).user
        if owner is None:
            raise ApiError(401, "Unauthorized", "Unauthorized")
        return owner

    def verify(self, token: str, audiences: Sequence[str] = ()) -> AuthenticationResult:
        """Find the user of a token. The token must be meant for at least one of the audiences."""
        encoded, owner = token.encode("utf-8", "surrogateescape"), None
        # Compare with every known token completely: the time needed must reveal nothing about them.
        for known, user in (*self._tokens, *self._lent.items()):
            if hmac.compare_digest(known, encoded):
                owner = user
        if owner is None:
            return self.accounts(token, audiences)
        shared = shared_audiences(audiences, (AUDIENCE,))
        return AuthenticationResult(owner, shared) if shared else AuthenticationResult()


def certificate_user(subject: Iterable[Iterable[tuple[str, str]]], der: bytes) -> User | None:
    """Build the user of a verified client certificate; `subject` has the form that `ssl` returns.

    >>> subject = [[("organizationName", "devs")], [("commonName", "jane")]]
    >>> certificate_user(subject, b"").groups
    ('devs', 'system:authenticated')
    """
    parts = [part for each in subject for part in each]
    names = [value for key, value in parts if key == "commonName"]
    if not names:
        return None
    groups = tuple(value for key, value in parts if key == "organizationName")
    credential = f"X509SHA256={hashlib.sha256(der).hexdigest()}"
    return User(
        names[-1], (*groups, AUTHENTICATED), extra={f"{_ABOUT}credential-id": (credential,)}
    )


def account_user(namespace: str, name: str, uid: str, about: Mapping[str, str]) -> User:
    """Build the user for a service account.

    `about` has more fields of its token, such as the pod.
    """
    full = f"{_ACCOUNT}{namespace}:{name}"
    extra = {f"{_ABOUT}{key}": (value,) for key, value in about.items()}
    return User(full, _completed(full, ()), uid, extra)


def impersonated(user: User, headers: Iterable[tuple[str, str]]) -> User:
    """Return the user that a request impersonates by its headers; without such headers, `user`.

    Raise an error if `user` may not impersonate the other user.
    """
    impersonation = [(k[12:], value) for k, value in headers if k.startswith("impersonate-")]
    if not impersonation:
        return user
    name = next((value for key, value in impersonation if key == "user"), "")
    if not name:
        raise bad_request("requested an impersonation without impersonating a user")
    wanted = AuthorizationAttributes("impersonate", resource="users", name=name)
    if not may(user, wanted):
        raise refusal(user, wanted)
    extra: dict[str, tuple[str, ...]] = {}
    for key, value in impersonation:
        if key.startswith("extra-"):
            extra[unquote(key[6:])] = (*extra.get(unquote(key[6:]), ()), value)
    uid = next((value for key, value in impersonation if key == "uid"), "")
    groups = tuple(value for key, value in impersonation if key == "group")
    return User(name, _completed(name, groups), uid, extra)


def _completed(name: str, groups: tuple[str, ...]) -> tuple[str, ...]:
    """Return `groups` and the groups that follow from the name, such as system:authenticated."""
    if AUTHENTICATED in groups or UNAUTHENTICATED in groups:
        return groups
    if name == ANONYMOUS.name:
        return (*groups, UNAUTHENTICATED)
    namespace, _, account = name.removeprefix(_ACCOUNT).partition(":")
    if name.startswith(_ACCOUNT) and account and not groups:
        groups = ("system:serviceaccounts", f"system:serviceaccounts:{namespace}")
    return (*groups, AUTHENTICATED)


# Authorization.


@dataclass(frozen=True, slots=True)
class AuthorizationAttributes:
    """The properties of a request on which its authorization depends."""

    verb: str
    group: str = ""
    resource: str = ""
    subresource: str = ""
    namespace: str = ""
    """The namespace of the object. As in kube-apiserver, a Namespace has its own name here."""
    name: str = ""
    path: str = ""
    """The path of a request without a resource; "" for all others.

    The verb of such a request is the HTTP method in lower case.
    """

    @property
    def part(self) -> str:
        """The resource with its subresource, as RBAC rules name them, such as `pods/status`."""
        return f"{self.resource}/{self.subresource}" if self.subresource else self.resource


@dataclass(frozen=True, slots=True)
class _Rule:
    """A fixed authorization rule: it allows certain requests to the members of one user group."""

    verbs: tuple[str, ...]
    groups: tuple[str, ...] = ()
    resources: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()
    excepted: tuple[tuple[str, str], ...] = ()
    """Pairs of API group and resource that the rule excludes. RBAC rules have no such field."""

    def allows(self, wanted: AuthorizationAttributes) -> bool:
        if not _among(wanted.verb, self.verbs):
            return False
        if wanted.path:
            return any(_path_matches(wanted.path, path) for path in self.paths)
        reached = _among(wanted.group, self.groups) and _among(wanted.part, self.resources)
        return reached and not any(
            wanted.group in (group, "*") and wanted.resource in (resource, "*")
            for group, resource in self.excepted
        )


def _among(value: str, known: tuple[str, ...]) -> bool:
    return "*" in known or value in known


def _path_matches(path: str, pattern: str) -> bool:
    return path == pattern or (pattern.endswith("*") and path.startswith(pattern[:-1]))


_PUBLIC = ("/healthz", "/livez", "/readyz", "/version", "/version/")
_DISCOVERY = ("/api", "/api/*", "/apis", "/apis/*", "/openapi", "/openapi/*")
_REVIEWS = ("selfsubjectaccessreviews", "selfsubjectrulesreviews")
_RULES: Mapping[str, tuple[_Rule, ...]] = {
    MASTERS: (_Rule(("*",), groups=("*",), resources=("*",)), _Rule(("*",), paths=("*",))),
    VIEWERS: (
        _Rule(
            ("get", "list", "watch"),
            groups=("*",),
            resources=("*",),
            excepted=(("", "secrets"),),
        ),
        _Rule(("get",), paths=("*",)),
    ),
    AUTHENTICATED: (
        _Rule(("create",), groups=("authorization.k8s.io",), resources=_REVIEWS),
        _Rule(("create",), groups=("authentication.k8s.io",), resources=("selfsubjectreviews",)),
        _Rule(("get",), paths=(*_DISCOVERY, *_PUBLIC)),
    ),
    UNAUTHENTICATED: (_Rule(("get",), paths=_PUBLIC),),
}


def _rules_of(user: User) -> Iterator[_Rule]:
    for group in user.groups:
        yield from _RULES.get(group, ())


def may(user: User, wanted: AuthorizationAttributes) -> bool:
    """Report whether a user is authorized for a request.

    >>> may(VIEWER, AuthorizationAttributes("list", resource="pods"))
    True
    >>> may(VIEWER, AuthorizationAttributes("get", resource="secrets"))
    False
    """
    return MASTERS in user.groups or any(rule.allows(wanted) for rule in _rules_of(user))


def refusal(user: User, wanted: AuthorizationAttributes) -> ApiError:
    """Build the error for a user who is not authorized for a request.

    >>> print(refusal(ANONYMOUS, AuthorizationAttributes("get", path="/metrics")))
    forbidden: User "system:anonymous" cannot get path "/metrics"
    """
    who = f'User "{user.name}" cannot {wanted.verb}'
    # The message contains names that clients choose. So a browser must not show it as HTML.
    headers = {"X-Content-Type-Options": "nosniff"}
    if wanted.path:
        message = f'forbidden: {who} path "{wanted.path}"'
        return ApiError(403, "Forbidden", message, details={}, headers=headers)
    scope = f'in the namespace "{wanted.namespace}"' if wanted.namespace else "at the cluster scope"
    full = f"{wanted.resource}.{wanted.group}" if wanted.group else wanted.resource
    full = f'{full} "{wanted.name}"' if wanted.name else full
    where = f'resource "{wanted.part}" in API group "{wanted.group}" {scope}'
    details = {"name": wanted.name, "group": wanted.group, "kind": wanted.resource}
    return ApiError(
        403,
        "Forbidden",
        f"{full} is forbidden: {who} {where}",
        details={key: value for key, value in details.items() if value},
        headers=headers,
    )


# Reviews in which users query their own identity and permissions. Each Python function builds the
# status of one kind of review.


def access_review(user: User, spec: Mapping[str, Any]) -> dict[str, Any]:
    """Build the status of a SelfSubjectAccessReview: may the user send the request in `spec`?"""
    resource, path = spec.get("resourceAttributes"), spec.get("nonResourceAttributes")
    if (resource is None) == (path is None):
        problem = "exactly one of nonResourceAttributes or resourceAttributes must be specified"
        # In kube-apiserver, this error has no kind in its details.
        nameless = ResourceKind("authorization.k8s.io", "v1", "", "", "", namespaced=False)
        error = invalid(nameless, "", [invalid_field("spec", path, problem)])
        error.details = {k: v for k, v in (error.details or {}).items() if v}
        raise error
    attributes: Mapping[str, Any] = resource if resource is not None else path or {}
    names = ("verb", "group", "resource", "subresource", "namespace", "name", "path")
    wanted = AuthorizationAttributes(**{name: str(attributes.get(name) or "") for name in names})
    return {"allowed": may(user, wanted)}


def rules_review(user: User, namespace: str) -> dict[str, Any]:
    """Build the status of a SelfSubjectRulesReview: the rules of the user's groups.

    The rules are the same in all namespaces.
    """
    if not namespace:
        raise bad_request("no namespace on request")
    rules = list(_rules_of(user))
    excepted = [f"{resource} are excluded" for rule in rules for _, resource in rule.excepted]
    status: dict[str, Any] = {
        "resourceRules": [
            {
                "verbs": list(rule.verbs),
                "apiGroups": list(rule.groups),
                "resources": list(rule.resources),
            }
            for rule in rules
            if rule.resources
        ],
        "nonResourceRules": [
            {"verbs": list(rule.verbs), "nonResourceURLs": list(rule.paths)}
            for rule in rules
            if rule.paths
        ],
        "incomplete": bool(excepted),
    }
    return status | ({"evaluationError": ", ".join(excepted)} if excepted else {})


def self_review(user: User) -> dict[str, Any]:
    """Build the status of a SelfSubjectReview: the user's own name, uid and groups."""
    about = {
        "username": user.name,
        "uid": user.uid,
        "groups": list(user.groups),
        "extra": {key: list(values) for key, values in user.extra.items()},
    }
    return {"userInfo": {key: value for key, value in about.items() if value}}
