"""Rules for Deployments, ReplicaSets, StatefulSets, DaemonSets and ControllerRevisions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from polyver.core.plain import Object
from polyver.kube.objects.selection import selects
from polyver.kube.objects.status import Cause, forbidden_field, invalid_field, required, unsupported
from polyver.kube.server.kinds._builtin import BuiltinRules
from polyver.kube.server.kinds._checks import (
    IMMUTABLE,
    check_labels,
    check_name,
    check_one_of,
    check_selector,
    check_share,
    frozen,
    in_structure,
    not_negative,
    selector_shown,
)
from polyver.kube.server.kinds._pods import check_pod_spec, template_warnings
from polyver.languages.values.names import dns_label_problems, label_key_problems

__all__ = [
    "DaemonSetRules",
    "DeploymentRules",
    "ReplicaSetRules",
    "RevisionRules",
    "StatefulSetRules",
]


class _Workload(BuiltinRules):
    """Rules for writes that all kinds of workloads share.

    A workload has a pod template, and a selector that must match the labels of the template. The
    selector is immutable.
    """

    _word = ""
    """The name of the kind in the error message about an empty selector."""

    def check_create(self, obj: Object) -> list[Cause]:
        return [*self._check(obj["spec"])]

    def check_update(self, obj: Object, old: Object) -> list[Cause]:
        return [*self._check(obj["spec"]), *self._check_selector_change(obj, old)]

    def warnings(self, obj: Object, old: Object | None) -> Iterable[str]:
        return (
            () if old else template_warnings("spec.template.spec", obj["spec"]["template"]["spec"])
        )

    def _check(self, spec: Object) -> Iterator[Cause]:
        yield from not_negative(spec, "spec", "replicas", "minReadySeconds")
        yield from self._check_selector(spec)
        yield from self._check_template(spec)

    def _check_selector(self, spec: Object) -> Iterator[Cause]:
        selector = spec.get("selector")
        if selector is None:
            yield required("spec.selector")
            return
        wrong = list(check_selector("spec.selector", selector))
        yield from wrong
        if not selector:
            text = f"empty selector is invalid for {self._word}"
            yield invalid_field("spec.selector", selector, text)
        if wrong:
            shown = selector_shown(selector)
            refusal = invalid_field("spec.selector", None, "invalid label selector")
            yield in_structure(refusal, shown)

    def _check_template(self, spec: Object) -> Iterator[Cause]:
        # If the selector is invalid, the template is not checked.
        selector, template = spec.get("selector"), spec["template"]
        if list(check_selector("", selector)):
            return
        yield from check_template_labels(selector, template)
        mounted = [
            each["metadata"].get("name", "") for each in spec.get("volumeClaimTemplates") or ()
        ]
        pod = template["spec"]
        yield from check_template_metadata("spec.template", template["metadata"])
        yield from check_pod_spec("spec.template.spec", pod, mounted=mounted)
        yield from check_always("spec.template.spec", pod, self.kind.kind)

    def _check_selector_change(self, obj: Object, old: Object) -> Iterator[Cause]:
        new, before = obj["spec"].get("selector"), old["spec"].get("selector")
        yield from frozen("spec.selector", new, before, value=selector_shown(new))


def check_template_labels(selector: Object | None, template: Object) -> Iterator[Cause]:
    labels = template["metadata"].get("labels")
    if not selects(selector, labels):
        value = dict(sorted(labels.items())) if labels else None
        text = "`selector` does not match template `labels`"
        yield invalid_field("spec.template.metadata.labels", value, text)


def check_template_metadata(path: str, metadata: Object) -> Iterator[Cause]:
    """Yield the problems of the metadata of a pod template.

    As in kube-apiserver, the field paths in these problems do not contain `metadata`.
    """
    yield from check_labels(f"{path}.labels", metadata.get("labels"))
    for key in sorted(metadata.get("annotations") or {}):
        for problem in label_key_problems(key.lower()):
            yield invalid_field(f"{path}.annotations", key, problem)


def check_always(path: str, pod: Object, kind: str) -> Iterator[Cause]:
    """Yield a cause for each field of a pod template that would make its pods end.

    Such fields are not allowed, because a workload replaces each pod that ends.
    """
    policy = pod.get("restartPolicy")
    if policy in ("OnFailure", "Never"):
        yield unsupported(f"{path}.restartPolicy", policy, ["Always"])
    if pod.get("activeDeadlineSeconds") is not None:
        # In kube-apiserver, the error for a Deployment names ReplicaSet.
        word = "ReplicaSet" if kind == "Deployment" else kind
        text = f"activeDeadlineSeconds in {word} is not Supported"
        yield forbidden_field(f"{path}.activeDeadlineSeconds", text)


def check_counts(status: Object, *names: str) -> Iterator[Cause]:
    """Yield the problems of the replica counts `names` in a status.

    No count may be negative or greater than `status.replicas`.
    """
    yield from not_negative(status, "status", "replicas", *names, "observedGeneration")
    most = status.get("replicas") or 0
    for name in names:
        found = status.get(name) or 0
        if found > most:
            text = "cannot be greater than status.replicas"
            yield invalid_field(f"status.{name}", found, text)


class DeploymentRules(_Workload):
    """Defaults and checks for writes of Deployments."""

    status_keeps: tuple[str, ...] | None = ("labels",)
    _word = "deployment"

    def _check(self, spec: Object) -> Iterator[Cause]:
        yield from not_negative(spec, "spec", "replicas")
        yield from self._check_selector(spec)
        yield from self._check_template(spec)
        yield from _check_deployment_strategy("spec.strategy", spec.get("strategy") or {})
        yield from not_negative(spec, "spec", "minReadySeconds", "revisionHistoryLimit")
        deadline, ready = spec.get("progressDeadlineSeconds"), spec.get("minReadySeconds") or 0
        if deadline is not None:
            yield from not_negative(spec, "spec", "progressDeadlineSeconds")
            if deadline <= ready:
                text = "must be greater than minReadySeconds"
                yield invalid_field("spec.progressDeadlineSeconds", deadline, text)

    def check_status(self, obj: Object, old: Object) -> list[Cause]:
        del old
        names = ("updatedReplicas", "readyReplicas", "availableReplicas")
        return [*check_counts(obj["status"], *names)]


def _check_deployment_strategy(path: str, strategy: Object) -> Iterator[Cause]:
    kind, rolling = strategy.get("type"), strategy.get("rollingUpdate")
    if kind == "Recreate":
        if rolling is not None:
            text = "may not be specified when strategy `type` is 'Recreate'"
            yield forbidden_field(f"{path}.rollingUpdate", text)
    elif kind != "RollingUpdate":
        inner = rolling and {
            "MaxUnavailable": rolling.get("maxUnavailable", 0),
            "MaxSurge": rolling.get("maxSurge", 0),
        }
        value = {"Type": kind, "RollingUpdate": inner}
        yield in_structure(unsupported(path, None, ["Recreate", "RollingUpdate"]), value)
    else:
        yield from _check_rolling(f"{path}.rollingUpdate", rolling or {})


def _check_rolling(path: str, rolling: Object) -> Iterator[Cause]:
    surge, down = rolling.get("maxSurge"), rolling.get("maxUnavailable")
    yield from check_share(f"{path}.maxSurge", surge, most=False)
    yield from check_share(f"{path}.maxUnavailable", down)
    if surge in (0, "0%") and down in (0, "0%"):
        text = "may not be 0 when `maxSurge` is 0"
        yield invalid_field(f"{path}.maxUnavailable", down, text)


class ReplicaSetRules(_Workload):
    """Defaults and checks for writes of ReplicaSets."""

    _word = "deployment"

    def check_status(self, obj: Object, old: Object) -> list[Cause]:
        del old
        names = ("fullyLabeledReplicas", "readyReplicas", "availableReplicas")
        return [*check_counts(obj["status"], *names)]


class StatefulSetRules(_Workload):
    """Defaults and checks for writes of StatefulSets.

    As well as the selector, `serviceName`, `podManagementPolicy` and `volumeClaimTemplates` are
    immutable.
    """

    name_problems = staticmethod(dns_label_problems)
    _word = "statefulset"

    def _check(self, spec: Object) -> Iterator[Cause]:
        policy, strategy = spec.get("podManagementPolicy"), spec.get("updateStrategy") or {}
        if policy not in ("OrderedReady", "Parallel"):
            text = "must be 'OrderedReady' or 'Parallel'"
            yield invalid_field("spec.podManagementPolicy", policy, text)
        yield from _check_stateful_strategy("spec.updateStrategy", strategy)
        policies = spec.get("persistentVolumeClaimRetentionPolicy") or {}
        for name in ("whenDeleted", "whenScaled"):
            field = f"spec.persistentVolumeClaimRetentionPolicy.{name}"
            yield from check_one_of(field, policies.get(name), ("Retain", "Delete"))
        yield from not_negative(spec, "spec", "replicas", "minReadySeconds")
        yield from not_negative(spec.get("ordinals") or {}, "spec.ordinals", "start")
        if spec.get("serviceName"):
            yield from check_name("spec.serviceName", spec["serviceName"], dns_label_problems)
        yield from self._check_selector(spec)
        yield from self._check_template(spec)

    def check_update(self, obj: Object, old: Object) -> list[Cause]:
        new, before = obj["spec"], old["spec"]
        causes = [*self._check(new)]
        for name in ("serviceName", "podManagementPolicy"):
            causes += frozen(f"spec.{name}", new.get(name), before.get(name))
        causes += self._check_selector_change(obj, old)
        claims = new.get("volumeClaimTemplates") or []
        if claims != (before.get("volumeClaimTemplates") or []):
            causes.append(invalid_field("spec.volumeClaimTemplates", claims, IMMUTABLE))
        return causes


def _check_stateful_strategy(path: str, strategy: Object) -> Iterator[Cause]:
    kind, rolling = strategy.get("type"), strategy.get("rollingUpdate")
    match kind:
        case "OnDelete":
            if rolling is not None:
                text = "only allowed for updateStrategy 'RollingUpdate'"
                names = ("partition", "maxUnavailable")
                value = {name[:1].upper() + name[1:]: rolling.get(name) for name in names}
                yield in_structure(invalid_field(f"{path}.rollingUpdate", None, text), value)
        case "RollingUpdate":
            yield from not_negative(rolling or {}, f"{path}.rollingUpdate", "partition")
        case _:
            value = {"Type": kind, "RollingUpdate": rolling}
            text = "must be 'RollingUpdate' or 'OnDelete'"
            yield in_structure(invalid_field(path, None, text), value)


class DaemonSetRules(_Workload):
    """Rules for writes of DaemonSets.

    The server counts the changes of the pod template, in a deprecated annotation.
    """

    _annotation = "deprecated.daemonset.template.generation"
    _word = "daemonset"

    def default(self, obj: Object) -> None:
        super().default(obj)
        # Set the annotation here, so that in managedFields the sender of the request owns it.
        if self._annotation not in (obj["metadata"].get("annotations") or {}):
            obj["metadata"] = dict(obj["metadata"])
            self._annotate(obj, 0)

    def begin(self, obj: Object) -> None:
        self._annotate(obj, 1)

    def keep(self, obj: Object, old: Object) -> None:
        before = int((old["metadata"].get("annotations") or {}).get(self._annotation) or 0)
        changed = obj["spec"]["template"] != old["spec"]["template"]
        self._annotate(obj, before + changed)

    def _annotate(self, obj: Object, number: int) -> None:
        metadata = obj["metadata"]
        annotations = metadata.get("annotations") or {}
        metadata["annotations"] = annotations | {self._annotation: str(number)}

    def _check(self, spec: Object) -> Iterator[Cause]:
        selector = spec.get("selector")
        yield from check_selector("spec.selector", selector)
        if selector is not None and not selector:
            text = "empty selector is invalid for daemonset"
            yield invalid_field("spec.selector", selector, text)
        yield from self._check_template(spec)
        yield from not_negative(spec, "spec", "minReadySeconds")
        strategy = spec.get("updateStrategy") or {}
        yield from _check_daemon_strategy("spec.updateStrategy", strategy)
        yield from not_negative(spec, "spec", "revisionHistoryLimit")

    def check_update(self, obj: Object, old: Object) -> list[Cause]:
        return [*self._check_selector_change(obj, old), *self._check(obj["spec"])]


def _check_daemon_strategy(path: str, strategy: Object) -> Iterator[Cause]:
    kind, rolling = strategy.get("type"), strategy.get("rollingUpdate")
    if kind == "OnDelete":
        return
    if kind != "RollingUpdate":
        value = {"Type": kind, "RollingUpdate": rolling}
        yield in_structure(unsupported(path, None, ["RollingUpdate", "OnDelete"]), value)
        return
    if rolling is None:
        yield required(f"{path}.rollingUpdate")
        return
    path = f"{path}.rollingUpdate"
    surge, down = rolling.get("maxSurge"), rolling.get("maxUnavailable")
    yield from check_share(f"{path}.maxUnavailable", down)
    yield from check_share(f"{path}.maxSurge", surge)
    none = (0, "0%")
    if surge in none and down in none:
        yield required(f"{path}.maxUnavailable", "cannot be 0 when maxSurge is 0")
    elif surge not in none and down not in none:
        text = "may not be set when maxUnavailable is non-zero"
        yield invalid_field(f"{path}.maxSurge", surge, text)


class RevisionRules(BuiltinRules):
    """Defaults and checks for writes of ControllerRevisions, whose data is immutable."""

    def check_create(self, obj: Object) -> list[Cause]:
        causes = [] if obj.get("data") is not None else [required("data", "data is mandatory")]
        if (number := obj.get("revision", 0)) < 0:
            text = "must be greater than or equal to 0"
            causes.append(invalid_field("revision", number, text))
        return causes

    def check_update(self, obj: Object, old: Object) -> list[Cause]:
        return [*self.check_create(obj), *frozen("data", obj.get("data"), old.get("data"))]
