"""The permissions of `polyver run` on a cluster: only those that it uses, by name where possible.

A test exercises all features, and removes the permissions one after the other.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from polyver.apis.conversion_kind import CONVERSIONS
from polyver.app.installing.options import CERTIFICATES, NAME, Installation, manifest
from polyver.capability.contributions import READ, Right
from polyver.core.plain import Object

__all__ = ["access", "rights", "rights_inside"]

_ACCOUNT = "ServiceAccount"
_GROUP = "rbac.authorization.k8s.io"


def rights(installation: Installation) -> list[Right]:
    """Return the permissions that are needed cluster-wide."""
    hooks = "admissionregistration.k8s.io"
    conversions, plural = CONVERSIONS.group, CONVERSIONS.names.plural
    found = [
        # A Conversion may be for any CRD.
        Right("apiextensions.k8s.io", "customresourcedefinitions", (*READ, "patch")),
        Right(conversions, plural, (*READ, "patch")),
        Right(conversions, f"{plural}/status", ("patch",)),
    ]
    for each in ("mutatingwebhookconfigurations", "validatingwebhookconfigurations"):
        found.append(Right(hooks, each, ("list", "watch")))
        # An apply that creates needs both, and has the name; a POST could not be limited to it.
        found.append(Right(hooks, each, ("get", "create", "patch"), name=NAME))
    own = [right for each in installation.contributions for right in each.rights]
    return [*found, *own, *_of_controllers(installation)]


def _of_controllers(installation: Installation) -> Iterator[Right]:
    """Yield the permissions of users' controllers, which write annotations and the status."""
    for kind in installation.kinds:
        if kind.controller is not None:
            definition = kind.definition()
            group, plural = definition.group, definition.names.plural
            yield Right(group, plural, (*READ, "patch"))
            if any(each.status for each in definition.versions):
                yield Right(group, f"{plural}/status", ("update",))


def rights_inside(installation: Installation) -> list[Right]:
    """Return the permissions that are needed in the namespace of the installation."""
    leases = "coordination.k8s.io", "leases"
    found = [Right(*leases, ("create",)), Right(*leases, ("get", "update"), name=NAME)]
    if not installation.tls_secret:
        found.append(Right("", "secrets", ("create",)))
        found.append(Right("", "secrets", (*READ, "update", "patch"), name=CERTIFICATES))
    return [*found, *(right for each in installation.contributions for right in each.rights_inside)]


def access(installation: Installation) -> Iterator[Object]:
    """Yield the account of polyver, its roles, and the bindings to existing roles."""
    namespace = installation.namespace
    yield manifest(_ACCOUNT, NAME, namespace)
    yield manifest("ClusterRole", NAME, rules=_rules(rights(installation)))
    yield _bound("ClusterRoleBinding", NAME, "ClusterRole", NAME, installation)
    yield manifest("Role", NAME, namespace, rules=_rules(rights_inside(installation)))
    yield _bound("RoleBinding", NAME, "Role", NAME, installation)
    for role in sorted(set(installation.roles)):
        yield _bound("ClusterRoleBinding", f"{NAME}-{role}", "ClusterRole", role, installation)


def _rules(found: Iterable[Right]) -> list[Object]:
    return [each.rule for each in found]


def _bound(kind: str, name: str, role: str, to: str, installation: Installation) -> Object:
    inside = installation.namespace if kind == "RoleBinding" else ""
    subject = {"kind": _ACCOUNT, "name": NAME, "namespace": installation.namespace}
    reference = {"apiGroup": _GROUP, "kind": role, "name": to}
    return manifest(kind, name, inside, roleRef=reference, subjects=[subject])
