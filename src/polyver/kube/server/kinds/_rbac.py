"""Rules for writes of Roles and RoleBindings.

The embedded server stores these objects, but does not use them for authorization.
"""

from __future__ import annotations

from collections.abc import Iterator

from polyver.core.plain import Object
from polyver.kube.objects.rules import path_segment_problems
from polyver.kube.objects.status import Cause, invalid_field, required, unsupported
from polyver.kube.server.kinds._builtin import BuiltinRules
from polyver.kube.server.kinds._checks import check_name, check_selector, frozen
from polyver.languages.values.names import dns_subdomain_problems

__all__ = ["BindingRules", "RoleRules"]

_GROUP = "rbac.authorization.k8s.io"


class _Rbac(BuiltinRules):
    name_problems = staticmethod(path_segment_problems)

    @property
    def _namespaced(self) -> bool:
        return self.kind.namespaced


class RoleRules(_Rbac):
    """Defaults and checks for writes of Roles and ClusterRoles."""

    def check_create(self, obj: Object) -> list[Cause]:
        rules = obj.get("rules") or []
        causes: list[Cause] = []
        for number, rule in enumerate(rules):
            causes += _check_rule(f"rules[{number}]", rule, namespaced=self._namespaced)
        causes += _check_aggregation(obj.get("aggregationRule"))
        causes += [
            required(f"rules[{number}].verbs")
            for number, rule in enumerate(rules)
            if not rule.get("verbs")
        ]
        return causes


def _check_rule(path: str, rule: Object, *, namespaced: bool) -> Iterator[Cause]:
    urls = rule.get("nonResourceURLs") or []
    mixed = any(rule.get(name) for name in ("apiGroups", "resources", "resourceNames"))
    if urls and namespaced:
        text = "namespaced rules cannot apply to non-resource URLs"
        yield invalid_field(f"{path}.nonResourceURLs", urls, text)
    if urls and not namespaced and mixed:
        text = "rules cannot apply to both regular resources and non-resource URLs"
        yield invalid_field(f"{path}.nonResourceURLs", urls, text)
    if urls:
        return
    if not rule.get("apiGroups"):
        text = "resource rules must supply at least one api group"
        yield required(f"{path}.apiGroups", text)
    if not rule.get("resources"):
        text = "resource rules must supply at least one resource"
        yield required(f"{path}.resources", text)


def _check_aggregation(rule: Object | None) -> Iterator[Cause]:
    if rule is None:
        return
    selectors = rule.get("clusterRoleSelectors") or []
    field = "aggregationRule.clusterRoleSelectors"
    if not selectors:
        text = "at least one clusterRoleSelector required if aggregationRule is non-nil"
        yield required(field, text)
    for number, selector in enumerate(selectors):
        yield from check_selector(f"{field}[{number}]", selector)


class BindingRules(_Rbac):
    """Defaults and checks for writes of RoleBindings and ClusterRoleBindings.

    The roleRef is immutable.
    """

    def check_create(self, obj: Object) -> list[Cause]:
        causes = [*_check_role(obj["roleRef"], namespaced=self._namespaced)]
        for number, subject in enumerate(obj.get("subjects") or ()):
            path = f"subjects[{number}]"
            causes += _check_subject(path, subject, namespaced=self._namespaced)
        return causes

    def check_update(self, obj: Object, old: Object) -> list[Cause]:
        new = obj["roleRef"]
        shown = {"APIGroup": new.get("apiGroup"), "Kind": new.get("kind"), "Name": new.get("name")}
        return [*self.check_create(obj), *frozen("roleRef", new, old["roleRef"], value=shown)]


def _check_role(role: Object, *, namespaced: bool) -> Iterator[Cause]:
    kinds = ["Role", "ClusterRole"] if namespaced else ["ClusterRole"]
    group, kind, name = (role.get(key) or "" for key in ("apiGroup", "kind", "name"))
    if group != _GROUP:
        yield unsupported("roleRef.apiGroup", group, [_GROUP])
    if kind not in kinds:
        yield unsupported("roleRef.kind", kind, kinds)
    if name:
        yield from check_name("roleRef.name", name, path_segment_problems)
    else:
        yield required("roleRef.name")


def _check_subject(path: str, subject: Object, *, namespaced: bool) -> Iterator[Cause]:
    kind, name = subject.get("kind") or "", subject.get("name") or ""
    group = subject.get("apiGroup") or ""
    match kind:
        case "ServiceAccount":
            if name:
                yield from check_name(f"{path}.name", name, dns_subdomain_problems)
            if group:
                yield unsupported(f"{path}.apiGroup", group, [""])
            if not namespaced and not subject.get("namespace"):
                yield required(f"{path}.namespace")
        case "User" | "Group":
            if group != _GROUP:
                yield unsupported(f"{path}.apiGroup", group, [_GROUP])
        case _:
            yield unsupported(f"{path}.kind", kind, ["ServiceAccount", "User", "Group"])
    if not name:
        yield required(f"{path}.name")
