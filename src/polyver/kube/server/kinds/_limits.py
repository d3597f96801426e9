"""Rules for PodDisruptionBudgets, LimitRanges, ResourceQuotas, ServiceAccounts and Nodes."""

from __future__ import annotations

from collections.abc import Iterator

from polyver.core.plain import Object
from polyver.kube.objects.status import Cause, duplicate, forbidden_field, invalid_field, required
from polyver.kube.server.kinds._builtin import BuiltinRules
from polyver.kube.server.kinds._checks import (
    IMMUTABLE,
    STANDARD,
    amount,
    check_amount,
    check_name,
    check_network,
    check_one_of,
    check_resource_name,
    check_selector,
    check_share,
    in_structure,
    not_negative,
    selector_shown,
)
from polyver.languages.values.names import label_key_problems, label_value_problems

__all__ = ["AccountRules", "BudgetRules", "LimitRangeRules", "NodeRules", "QuotaRules"]


class BudgetRules(BuiltinRules):
    """Defaults and checks for writes of PodDisruptionBudgets.

    For example, `minAvailable` and `maxUnavailable` must not both be set.
    """

    unconditional = False

    def check_create(self, obj: Object) -> list[Cause]:
        return [*_check_budget(obj["spec"])]

    def check_status(self, obj: Object, old: Object) -> list[Cause]:
        del old
        names = ("disruptionsAllowed", "currentHealthy", "desiredHealthy", "expectedPods")
        return [*not_negative(obj["status"], "status", *names)]


def _check_budget(spec: Object) -> Iterator[Cause]:
    least, most = spec.get("minAvailable"), spec.get("maxUnavailable")
    if least is not None and most is not None:
        shown = {"MinAvailable": least, "Selector": selector_shown(spec.get("selector"))}
        policy = spec.get("unhealthyPodEvictionPolicy")
        shown |= {"MaxUnavailable": most, "UnhealthyPodEvictionPolicy": policy}
        text = "minAvailable and maxUnavailable cannot be both set"
        yield in_structure(invalid_field("spec", None, text), shown)
    yield from check_share("spec.minAvailable", least)
    yield from check_share("spec.maxUnavailable", most)
    yield from check_selector("spec.selector", spec.get("selector"))
    policies = ("AlwaysAllow", "IfHealthyBudget")
    policy = spec.get("unhealthyPodEvictionPolicy")
    yield from check_one_of("spec.unhealthyPodEvictionPolicy", policy, policies)


class LimitRangeRules(BuiltinRules):
    """Defaults and checks for writes of LimitRanges.

    The embedded server does not apply LimitRanges to pods.
    """

    def check_create(self, obj: Object) -> list[Cause]:
        kinds: set[str] = set()
        causes: list[Cause] = []
        for number, item in enumerate(obj["spec"].get("limits") or ()):
            causes += _check_limit(f"spec.limits[{number}]", item, kinds)
        return causes


_LIMITED = ("Pod", "Container", "PersistentVolumeClaim")


def _check_limit(path: str, item: Object, kinds: set[str]) -> Iterator[Cause]:
    kind = item.get("type") or ""
    if kind not in _LIMITED and "/" not in kind:
        text = "must be a standard limit type or fully qualified"
        yield invalid_field(f"{path}.type", kind, text)
    if kind in kinds:
        yield duplicate(f"{path}.type", kind)
    kinds.add(kind)
    if kind == "Pod":
        for name in ("default", "defaultRequest"):
            if item.get(name):
                text = "may not be specified when `type` is 'Pod'"
                yield forbidden_field(f"{path}.{name}", text)
    sides = [item.get(side) or {} for side in ("min", "max")]
    if kind == "PersistentVolumeClaim" and not any("storage" in side for side in sides):
        text = "either minimum or maximum storage value is required, but neither was provided"
        yield required(f"{path}.limits", text)
    names = sorted({name for side in _SIDES for name in item.get(side) or ()})
    for name in names:
        yield from _check_order(path, name, item)


_SIDES = ("min", "max", "default", "defaultRequest")
_WORDS = {"min": "min", "max": "max", "default": "default", "defaultRequest": "default request"}
# Each row: the smaller field, the larger field, the field that the error names, and the field whose
# value the error shows.
_ORDER = (
    ("min", "max", "min", "min"),
    ("min", "defaultRequest", "defaultRequest", "defaultRequest"),
    ("defaultRequest", "max", "defaultRequest", "defaultRequest"),
    ("defaultRequest", "default", "defaultRequest", "defaultRequest"),
    ("min", "default", "default", "min"),
    ("default", "max", "default", "max"),
)


def _check_order(path: str, name: str, item: Object) -> Iterator[Cause]:
    given = {side: (item.get(side) or {}).get(name) for side in _SIDES}
    for less, more, place, value in _ORDER:
        one, other = given[less], given[more]
        if one is None or other is None or amount(one) <= amount(other):
            continue
        word = "default limit" if (less, more) == ("defaultRequest", "default") else _WORDS[more]
        text = f"{_WORDS[less]} value {one} is greater than {word} value {other}"
        yield invalid_field(f"{path}.{place}[{name}]", given[value], text)


_SCOPES = (
    "Terminating",
    "NotTerminating",
    "BestEffort",
    "NotBestEffort",
    "PriorityClass",
    "CrossNamespacePodAffinity",
    "VolumeAttributesClass",
)


class QuotaRules(BuiltinRules):
    """Defaults and checks for writes of ResourceQuotas.

    The embedded server does not count the used resources.
    """

    def check_create(self, obj: Object) -> list[Cause]:
        return [*_check_quota(obj["spec"])]

    def check_update(self, obj: Object, old: Object) -> list[Cause]:
        causes = self.check_create(obj)
        new, before = obj["spec"].get("scopes") or [], old["spec"].get("scopes") or []
        if sorted(new) != sorted(before):
            causes.append(invalid_field("spec.scopes", new, IMMUTABLE))
        return causes


def _check_quota(spec: Object) -> Iterator[Cause]:
    hard, scopes = spec.get("hard") or {}, spec.get("scopes") or []
    for name in sorted(hard):
        field = f"spec.hard[{name}]"
        yield from check_resource_name(field, name)
        if "/" not in name and name not in STANDARD:
            yield invalid_field(field, name, "must be a standard resource for quota")
        yield from check_amount(field, name, hard[name])
    for scope in scopes:
        if scope not in _SCOPES:
            yield invalid_field("spec.scopes", scopes, "unsupported scope")
    opposites = (("Terminating", "NotTerminating"), ("BestEffort", "NotBestEffort"))
    if any(one in scopes and other in scopes for one, other in opposites):
        yield invalid_field("spec.scopes", scopes, "conflicting scopes")


class AccountRules(BuiltinRules):
    """Rules for writes of ServiceAccounts.

    Of each reference to a Secret in `secrets`, only the name is stored.
    """

    def begin(self, obj: Object) -> None:
        _keep_names(obj)

    def keep(self, obj: Object, old: Object) -> None:
        del old
        _keep_names(obj)


def _keep_names(account: Object) -> None:
    if account.get("secrets"):
        kept = [{key: each[key] for key in each if key == "name"} for each in account["secrets"]]
        account["secrets"] = kept


_NOT_READY: Object = {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}


class NodeRules(BuiltinRules):
    """Rules for writes of Nodes.

    A client may create a Node together with its status. The server adds the taint
    `node.kubernetes.io/not-ready` to a new Node.
    """

    brings_status = True

    def prepare_create(self, obj: Object) -> None:
        self.default(obj)
        spec = obj["spec"]
        taints = spec.get("taints") or []
        if not any(_key(each) == _key(_NOT_READY) for each in taints):
            obj["spec"] = spec | {"taints": [*taints, _NOT_READY]}

    def check_create(self, obj: Object) -> list[Cause]:
        spec = obj["spec"]
        causes = [*_check_taints(spec.get("taints") or [])]
        for number, network in enumerate(spec.get("podCIDRs") or ()):
            causes += check_network(f"spec.podCIDRs[{number}]", network)
        return causes

    def check_update(self, obj: Object, old: Object) -> list[Cause]:
        causes = self.check_create(obj)
        new, before = obj["spec"].get("podCIDRs"), old["spec"].get("podCIDRs")
        if before and new != before:
            text = 'node updates may not change podCIDR except from "" to valid'
            causes.append(forbidden_field("spec.podCIDRs", text))
        before_id, new_id = old["spec"].get("providerID"), obj["spec"].get("providerID")
        if before_id and new_id != before_id:
            text = "field cannot be modified once set"
            causes.append(invalid_field("spec.providerID", None, text))
        return causes


def _key(taint: Object) -> tuple[object, object]:
    return taint.get("key"), taint.get("effect")


def _check_taints(taints: list[Object]) -> Iterator[Cause]:
    seen: set[tuple[object, object]] = set()
    for number, taint in enumerate(taints):
        path = f"metadata.taints[{number}]"  # kube-apiserver reports this path
        yield from check_name(f"{path}.key", taint.get("key", ""), label_key_problems)
        yield from check_name(f"{path}.value", taint.get("value", ""), label_value_problems)
        effects = ("NoSchedule", "PreferNoSchedule", "NoExecute")
        if not taint.get("effect"):
            yield required(f"{path}.effect")
        else:
            yield from check_one_of(f"{path}.effect", taint["effect"], effects)
        if _key(taint) in seen:
            shown = {"Key": taint.get("key"), "Value": taint.get("value", "")}
            shown |= {"Effect": taint.get("effect"), "TimeAdded": taint.get("timeAdded")}
            cause = in_structure(duplicate(path, None), shown)
            text = f"{cause.message}: taints must be unique by key and effect pair"
            yield Cause(path, text, cause.reason)
        seen.add(_key(taint))
