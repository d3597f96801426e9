"""Admission checks of RolloutPolicies and Rollouts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from polyver.capability.gates import SYSTEM_NAMESPACE, is_target
from polyver.capability.rollouts import POLICIES
from polyver.client import Client
from polyver.controllers.egress import AllowedHttp
from polyver.core import PolyverError, listed
from polyver.core.rollout_checks import HttpCheck, PrometheusCheck
from polyver.kube.objects.kinds import ResourceKind
from polyver.kube.objects.status import Cause, invalid
from polyver.rollouts.kinds import POLICIES as POLICY_KIND
from polyver.rollouts.kinds import ROLLOUTS
from polyver.rollouts.names import BLUEPRINT_FUNCTION, CLUSTER_SCOPED, TARGET_KINDS, lineage_of
from polyver.rollouts.rules import (
    RULES,
    InvalidRolloutRules,
    RolloutRules,
    call_problems,
    read_rules,
)
from polyver.webhook.configurations import AdmissionRegistration

if TYPE_CHECKING:
    from polyver.kube.server.admission import AdmissionRequest

__all__ = ["ROLLOUTS_WANTED", "RolloutChecks"]

_WRITES = ("CREATE", "UPDATE")
_KINDS = (POLICY_KIND, ROLLOUTS)
ROLLOUTS_WANTED: Final = tuple(
    AdmissionRegistration(
        "checks",
        group=kind.group,
        plural=kind.names.plural,
        versions=tuple(kind.versions),
        operations=_WRITES,
        mutates=False,
    )
    for kind in _KINDS
)
"""The resources and operations for which API servers must call the webhook of these checks."""


class RolloutChecks:
    """Refuses rules that polyver cannot execute, and a second policy for the same lineage."""

    def __init__(
        self, client: Client, enabled: Mapping[tuple[str, str], bool], http: AllowedHttp
    ) -> None:
        self._client = client
        self._http = http
        self._enabled = enabled
        """The groups and kinds of the objects whose releases rollouts can move in this control
        plane.

        The value is True if releases of this kind are called, as functions are, so that their
        errors and latency can be checked.
        """

    def handles(self, kind: ResourceKind, operation: str) -> bool:
        known = [(each.group, each.names.plural) for each in _KINDS]
        return (kind.group, kind.plural) in known and operation in _WRITES

    async def mutate(self, review: AdmissionRequest) -> None:
        pass

    async def validate(self, review: AdmissionRequest) -> None:
        if review.object is None or review.subresource:
            return
        spec: dict[str, Any] = review.object.get("spec") or {}
        if review.old is not None and (review.old.get("spec") or {}) == spec:
            return
        if review.kind.kind == POLICY_KIND.kind:
            problems = self._policy_problems(review.object, spec)
            problems = problems or await self._overlaps(review.object)
        else:
            problems = self._rollout_problems(review, spec)
        if problems:
            raise invalid(review.kind, review.name, problems)

    def _policy_problems(self, obj: dict[str, Any], spec: dict[str, Any]) -> list[Cause]:
        found = _rules_problems(spec, self._http)
        namespace = obj["metadata"].get("namespace", "")
        targets = spec.get("targets") or []
        if not targets:
            found.append(Cause("spec.targets", "Required value: a policy needs a target"))
        for number, target in enumerate(targets):
            at = f"spec.targets[{number}]"
            found += self._target_problems(target, namespace, at)
            if (target.get("name") is None) is (target.get("selector") is None):
                found.append(Cause(at, "Invalid value: write either name or selector"))
        return [*found, *self._call_problems(spec, targets), *_run_problems(spec, targets)]

    def _call_problems(self, spec: dict[str, Any], targets: list[dict[str, Any]]) -> list[Cause]:
        """Return an error for each check `errors` or `latency`, if a target has no calls."""
        kinds = [(each.get("group", ""), each.get("kind", "")) for each in targets]
        uncalled = next((kind for kind in kinds if self._enabled.get(kind) is False), None)
        rules, _ = read_rules(spec)
        if rules is None or uncalled is None:
            return []
        return [_cause(each) for each in call_problems(rules, uncalled[1])]

    def _target_problems(self, target: dict[str, Any], namespace: str, at: str) -> list[Cause]:
        kind = (target.get("group", ""), target.get("kind", ""))
        if kind not in TARGET_KINDS:
            known = listed([f"{group}/{name}" for group, name in TARGET_KINDS])
            told = f"Unsupported value: {kind[0]}/{kind[1]}: supported values: {known}"
            return [Cause(f"{at}.kind", told)]
        if kind not in self._enabled:
            told = f"Invalid value: rollouts of {kind[1]} are not enabled on this control plane"
            return [Cause(f"{at}.kind", told)]
        if kind == BLUEPRINT_FUNCTION and (target.get("selector") or {}).get("matchLabels"):
            told = "Invalid value: a BlueprintFunction has no labels; write its name, or {}"
            return [Cause(f"{at}.selector.matchLabels", told)]
        if kind in CLUSTER_SCOPED and namespace != SYSTEM_NAMESPACE:
            told = f"Invalid value: {kind[1]} is targeted from the namespace {SYSTEM_NAMESPACE}"
            return [Cause(at, told)]
        return []

    async def _overlaps(self, obj: dict[str, Any]) -> list[Cause]:
        """Return an error for each target whose name another policy targets already."""
        metadata = obj["metadata"]
        namespace, name = metadata.get("namespace", ""), metadata.get("name", "")
        others = (await self._client.list(POLICIES, namespace)).items
        found = []
        for number, target in enumerate(obj["spec"]["targets"]):
            if not target.get("name"):
                continue  # labels may select anything: the controller finds what overlaps
            lineage = lineage_of(target, namespace)
            holders = [
                each["metadata"]["name"]
                for each in others
                if each["metadata"]["name"] != name and is_target(each, lineage, {})
            ]
            if holders:
                told = f"Invalid value: {lineage} has the policy {holders[0]}"
                found.append(Cause(f"spec.targets[{number}].name", told))
        return found

    def _rollout_problems(self, review: AdmissionRequest, spec: dict[str, Any]) -> list[Cause]:
        obj = review.object
        assert obj is not None
        old = ((review.old or {}).get("spec") or {}) if review.old else None
        found = []
        if old is not None:
            fixed = ("target", "to", "policyRef", *RULES)
            found += [
                Cause(f"spec.{name}", "Forbidden: it is immutable; create another Rollout")
                for name in fixed
                if old.get(name) != spec.get(name)
            ]
            return found
        namespace = obj["metadata"].get("namespace", "")
        found += self._target_problems(spec.get("target") or {}, namespace, "spec.target")
        named = [name for name in RULES if name in spec]
        if spec.get("policyRef") and named:
            told = "Invalid value: the rules are those of the policy; remove it or policyRef"
            return [*found, *(Cause(f"spec.{name}", told) for name in named)]
        if spec.get("policyRef"):
            return found
        targets = [spec["target"]]
        found += [*_rules_problems(spec, self._http), *self._call_problems(spec, targets)]
        return [*found, *_run_problems(spec, targets)]


def _run_problems(spec: dict[str, Any], targets: list[dict[str, Any]]) -> list[Cause]:
    """Return an error for each `ready.within`, if blueprint functions are among the targets.

    Blueprints run only when somebody starts them, so a time limit has no meaning for them.
    """
    if all((each.get("group"), each.get("kind")) != BLUEPRINT_FUNCTION for each in targets):
        return []
    told = "Invalid value: nobody has to run a blueprint in time; the limit of a call is "
    return [
        Cause(f"spec.checks[{number}].ready.within", f"{told}--function-timeout")
        for number, each in enumerate(spec.get("checks") or ())
        if (each.get("ready") or {}).get("within") is not None
    ]


def _rules_problems(spec: dict[str, Any], http: AllowedHttp) -> list[Cause]:
    """Return the errors in the steps, checks and other rules."""
    rules, problems = read_rules(spec)
    found = [_cause(each) for each in problems]
    for at, url in _urls(rules) if rules is not None else ():
        try:
            http.server(url)
        except PolyverError as error:
            found.append(_cause(InvalidRolloutRules(error.fact, at=at, hint=error.hint)))
    return found


def _urls(rules: RolloutRules) -> Iterator[tuple[str, str]]:
    """Yield the path of each field that has a URL for requests, and the URL."""
    for number, check in enumerate(rules.checks):
        if isinstance(check, PrometheusCheck):
            yield f"spec.checks[{number}].prometheus.address", check.address
        if isinstance(check, HttpCheck):
            yield f"spec.checks[{number}].http.url", check.url
    for number, each in enumerate(rules.notify):
        yield f"spec.notify[{number}].url", each.url


def _cause(error: PolyverError) -> Cause:
    hint = f"; {error.hint}" if error.hint else ""
    return Cause(error.at, f"Invalid value: {error.fact}{hint}")
