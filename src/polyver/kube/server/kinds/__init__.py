"""The built-in kinds, and the rules that each of these kinds has for writes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace

from polyver.core.plain import Object
from polyver.kube.objects.builtin import builtin_kinds, shape_of
from polyver.kube.objects.kinds import ResourceKind
from polyver.kube.objects.tables import builtin_printer
from polyver.kube.objects.type_shapes import Shape
from polyver.kube.server.admission import Admission
from polyver.kube.server.call import ServerContext
from polyver.kube.server.definitions import DefinitionRules
from polyver.kube.server.kinds._addresses import ServiceAddresses
from polyver.kube.server.kinds._autoscalers import AutoscalerRules
from polyver.kube.server.kinds._builtin import BuiltinRules
from polyver.kube.server.kinds._data import ConfigMapRules, SecretRules
from polyver.kube.server.kinds._events import (
    EVENTS,
    EventConversion,
    EventRules,
    LeaseRules,
    event_fields,
)
from polyver.kube.server.kinds._jobs import CronJobRules, JobRules
from polyver.kube.server.kinds._limits import (
    AccountRules,
    BudgetRules,
    LimitRangeRules,
    NodeRules,
    QuotaRules,
)
from polyver.kube.server.kinds._migrations import MigrationRules
from polyver.kube.server.kinds._namespaces import NamespaceLifecycle, NamespaceRules
from polyver.kube.server.kinds._networking import (
    EndpointSliceRules,
    EndpointsRules,
    IngressClassRules,
    IngressRules,
    NetworkPolicyRules,
)
from polyver.kube.server.kinds._pods import PodRules
from polyver.kube.server.kinds._rbac import BindingRules, RoleRules
from polyver.kube.server.kinds._registrations import RegistrationRules, availability
from polyver.kube.server.kinds._scaling import AUTOSCALERS, AutoscalerConversion
from polyver.kube.server.kinds._services import ServiceRules
from polyver.kube.server.kinds._storage import ClaimRules, StorageClassRules, VolumeRules
from polyver.kube.server.kinds._webhooks import WebhookRules
from polyver.kube.server.kinds._workloads import (
    DaemonSetRules,
    DeploymentRules,
    ReplicaSetRules,
    RevisionRules,
    StatefulSetRules,
)
from polyver.kube.server.resource import ServedResource, StorageConversion
from polyver.kube.server.rules import FinalizeView, KindRules, ObjectView, ScaleView

__all__ = ["addresses", "availability", "builtin_resources", "lifecycle"]

_RULE_CLASSES: Mapping[str, type[BuiltinRules]] = {
    "apiservices.apiregistration.k8s.io": RegistrationRules,
    "clusterrolebindings.rbac.authorization.k8s.io": BindingRules,
    "clusterroles.rbac.authorization.k8s.io": RoleRules,
    "controllerrevisions.apps": RevisionRules,
    "cronjobs.batch": CronJobRules,
    "daemonsets.apps": DaemonSetRules,
    "deployments.apps": DeploymentRules,
    "endpoints": EndpointsRules,
    "endpointslices.discovery.k8s.io": EndpointSliceRules,
    "horizontalpodautoscalers.autoscaling": AutoscalerRules,
    "ingressclasses.networking.k8s.io": IngressClassRules,
    "ingresses.networking.k8s.io": IngressRules,
    "jobs.batch": JobRules,
    "limitranges": LimitRangeRules,
    "mutatingwebhookconfigurations.admissionregistration.k8s.io": WebhookRules,
    "networkpolicies.networking.k8s.io": NetworkPolicyRules,
    "nodes": NodeRules,
    "persistentvolumeclaims": ClaimRules,
    "persistentvolumes": VolumeRules,
    "poddisruptionbudgets.policy": BudgetRules,
    "pods": PodRules,
    "replicasets.apps": ReplicaSetRules,
    "resourcequotas": QuotaRules,
    "rolebindings.rbac.authorization.k8s.io": BindingRules,
    "roles.rbac.authorization.k8s.io": RoleRules,
    "serviceaccounts": AccountRules,
    "services": ServiceRules,
    "statefulsets.apps": StatefulSetRules,
    "storageclasses.storage.k8s.io": StorageClassRules,
    "storageversionmigrations.storagemigration.k8s.io": MigrationRules,
    "validatingwebhookconfigurations.admissionregistration.k8s.io": WebhookRules,
}
"""The class of rules for each resource, by plural name and group.

A built-in kind that is not here has defaults, but no checks.
"""


_REVIEWS = frozenset({"authentication.k8s.io", "authorization.k8s.io"})
_COUNTED = frozenset(
    """customresourcedefinitions.apiextensions.k8s.io cronjobs.batch daemonsets.apps
    deployments.apps endpointslices.discovery.k8s.io ingresses.networking.k8s.io
    horizontalpodautoscalers.autoscaling ingressclasses.networking.k8s.io jobs.batch
    mutatingwebhookconfigurations.admissionregistration.k8s.io
    networkpolicies.networking.k8s.io poddisruptionbudgets.policy pods replicasets.apps
    statefulsets.apps validatingwebhookconfigurations.admissionregistration.k8s.io""".split()
)
_ANSWERS = frozenset(
    """persistentvolumeclaims persistentvolumes pods resourcequotas serviceaccounts services
    storageclasses.storage.k8s.io""".split()
)
_CREATES = frozenset(
    """clusterrolebindings.rbac.authorization.k8s.io clusterroles.rbac.authorization.k8s.io
    endpoints limitranges rolebindings.rbac.authorization.k8s.io roles.rbac.authorization.k8s.io
    services""".split()
)
_RULES: Mapping[str, KindRules] = {
    "customresourcedefinitions.apiextensions.k8s.io": DefinitionRules(),
    "configmaps": ConfigMapRules(),
    "events": EventRules(core=True),
    "events.events.k8s.io": EventRules(core=False),
    "leases.coordination.k8s.io": LeaseRules(),
    "namespaces": NamespaceRules(),
    "secrets": SecretRules(),
}
_SELECTORS = {
    "deployments.apps": ("spec", "selector"),
    "replicasets.apps": ("spec", "selector"),
    "statefulsets.apps": ("spec", "selector"),
}


def builtin_resources() -> Iterable[ServedResource]:
    """Build the resources of all built-in kinds."""
    return [_resource(kind) for kind in builtin_kinds()]


def lifecycle(server: ServerContext) -> NamespaceLifecycle:
    """Create the admission link that refuses new objects in missing or terminating namespaces."""
    namespaces = server.catalogue.get("", "v1", "namespaces")
    assert namespaces is not None
    return NamespaceLifecycle(server, namespaces.kind)


def addresses(server: ServerContext) -> Admission:
    """Create the admission link that allocates cluster IPs and node ports to Services."""
    services = server.catalogue.get("", "v1", "services")
    assert services is not None
    return ServiceAddresses(server, services.kind)


def _resource(kind: ResourceKind) -> ServedResource:
    rules = _RULES.get(kind.resource) or _plain_rules(kind)
    return ServedResource(
        kind=kind,
        rules=rules,
        printer=builtin_printer(kind.group, kind.kind),
        shape=shape_of(kind.group, kind.version, kind.kind),
        stored=_stored(kind),
        shapes=_shapes(kind),
        selectable=_selectable(kind),
        parts=_parts(kind, rules),
        review=kind.group in _REVIEWS,
        conversion=_conversion(kind),
    )


def _conversion(kind: ResourceKind) -> StorageConversion | None:
    if kind.api_version in EVENTS and kind.kind == "Event":
        return EventConversion(kind.api_version)
    if kind.api_version in AUTOSCALERS:
        return AutoscalerConversion(kind.api_version)
    return None


def _shapes(kind: ResourceKind) -> Mapping[str, Shape]:
    """Return the shapes of all versions of a kind, by API version.

    All are needed, because an entry in managedFields may name any version in which a client wrote.
    """
    versions = [kind.api_version]
    if kind.kind == "Event":
        versions = list(EVENTS)
    elif kind.api_version in AUTOSCALERS:
        versions = list(AUTOSCALERS)
    return {version: _shape_in(version, kind.kind) for version in versions}


def _shape_in(api_version: str, kind: str) -> Shape:
    group, _, version = api_version.rpartition("/")
    return shape_of(group, version, kind)


def _stored(kind: ResourceKind) -> ResourceKind:
    """Return the kind in the version in which its objects are stored.

    Events are stored in the core group, and autoscalers in v2.
    """
    if kind.resource == "events.events.k8s.io":
        return replace(kind, group="", version="v1")
    if kind.plural == "horizontalpodautoscalers":
        return replace(kind, version="v2")
    return kind


def _plain_rules(kind: ResourceKind) -> KindRules:
    rules = _RULE_CLASSES.get(kind.resource, BuiltinRules)(kind)
    rules.counts = kind.resource in _COUNTED
    rules.answers_deletion = kind.resource in _ANSWERS
    rules.creates_on_update = kind.resource in _CREATES
    return rules


def _parts(kind: ResourceKind, rules: KindRules) -> Mapping[str, ObjectView]:
    parts: dict[str, ObjectView] = {}
    if kind.subresource("finalize"):
        parts["finalize"] = FinalizeView(rules)
    if kind.subresource("scale"):
        selector = _SELECTORS.get(kind.resource, ())
        parts["scale"] = ScaleView(rules, selector=selector, strict=False)
    return parts


def _selectable(kind: ResourceKind) -> Mapping[str, Callable[[Object], str]]:
    if kind.plural == "events":
        return event_fields(core=not kind.group)
    return {field: _text_at(field) for field in _FIELDS.get(kind.resource, ())}


_FIELDS: Mapping[str, tuple[str, ...]] = {
    "jobs.batch": ("status.successful",),
    "namespaces": ("status.phase",),
    "nodes": ("spec.unschedulable",),
    "pods": (
        "spec.hostNetwork",
        "spec.nodeName",
        "spec.restartPolicy",
        "spec.schedulerName",
        "spec.serviceAccountName",
        "status.nominatedNodeName",
        "status.phase",
        "status.podIP",
    ),
    "replicasets.apps": ("status.replicas",),
    "secrets": ("type",),
    "services": ("spec.clusterIP", "spec.type"),
}


def _text_at(field: str) -> Callable[[Object], str]:
    names = field.split(".")

    def text(obj: Object) -> str:
        value: object = obj
        for name in names:
            value = value.get(name) if isinstance(value, dict) else None
        if isinstance(value, bool):
            return "true" if value else "false"
        return "" if value is None else str(value)

    return text
