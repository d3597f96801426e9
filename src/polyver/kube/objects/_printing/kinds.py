"""Tables of the built-in kinds: the columns that `kubectl get` shows."""

from __future__ import annotations

from dataclasses import replace

from polyver.kube.objects._printing import summaries as say
from polyver.kube.objects._printing.autoscalers import targets
from polyver.kube.objects._printing.cells import (
    at,
    column,
    count,
    flag,
    integer,
    labels,
    maker,
    number,
    selector,
    since,
    subjects,
    text,
    wide,
)
from polyver.kube.objects._printing.columns import CellOf, Printer, TableColumn, printer
from polyver.kube.objects._printing.events import CORE, NEW, event_printer
from polyver.kube.objects._printing.pods import PODS

__all__ = ["builtin_printer"]

Shown = tuple[TableColumn, CellOf]
_NAME = TableColumn("Name", format="name", description="The name of the object.")
NAME: Shown = _NAME, text("metadata.name")
AGE = column("Age", since("metadata.creationTimestamp"), "The time since its creation.")
CREATED = column(
    "Created At",
    text("metadata.creationTimestamp", "0001-01-01T00:00:00Z"),
    "The time of its creation.",
    holds="date",
)
AGED = printer(NAME, AGE)
DATED = replace(printer(NAME, CREATED), null_rows=True)


def builtin_printer(group: str, kind: str) -> Printer:
    """Return the printer of a built-in kind; the default has a name and an age.

    >>> [column.name for column in builtin_printer("", "ConfigMap").columns]
    ['Name', 'Data', 'Age']
    """
    return _PRINTERS.get((group, kind), AGED)


def _ready_of(wanted: str) -> Shown:
    ready = maker(lambda obj: f"{at(obj, 'status.readyReplicas') or 0}/{at(obj, wanted) or 0}")
    return column("Ready", ready, "How many replicas are ready, of how many.")


def _reference(path: str) -> CellOf:
    return maker(lambda obj: f"{at(obj, f'{path}.kind') or ''}/{at(obj, f'{path}.name') or ''}")


def _each_container(template: str, field: str) -> CellOf:
    path = f"{template}.spec.containers"
    return maker(lambda obj: ",".join(each.get(field, "") for each in at(obj, path) or ()))


def _containers(template: str) -> tuple[Shown, Shown]:
    """Return the columns for the containers of a pod template."""
    return (
        wide("Containers", _each_container(template, "name"), "The names of the containers."),
        wide("Images", _each_container(template, "image"), "The images of the containers."),
    )


def _selector(cell: CellOf) -> Shown:
    return wide("Selector", cell, "Which pods belong to it.")


_REPLICAS = (
    integer("Desired", number("spec.replicas"), "How many pods there should be."),
    integer("Current", number("status.replicas"), "How many pods there are."),
    integer("Ready", number("status.readyReplicas"), "How many pods are ready."),
)
_BINDING = printer(
    NAME,
    column("Role", _reference("roleRef"), "The role that is given."),
    AGE,
    wide("Users", subjects("User"), "The users who get it."),
    wide("Groups", subjects("Group"), "The groups that get it."),
    wide("ServiceAccounts", subjects("ServiceAccount"), "The service accounts that get it."),
)
_WEBHOOKS = printer(NAME, integer("Webhooks", count("webhooks"), "How many webhooks it has."), AGE)
_ATTRIBUTES_CLASS = column(
    "VolumeAttributesClass",
    text("spec.volumeAttributesClassName", "<unset>"),
    "Its class of attributes.",
)
_STORAGE_CLASS = column("StorageClass", maker(say.storage_class), "Its class of storage.")
_VOLUME_MODE = wide("VolumeMode", text("spec.volumeMode", "<unset>"), "Files or blocks.")

_CORE: dict[str, Printer] = {
    "ConfigMap": printer(
        NAME, column("Data", count("data", "binaryData"), "How many keys it has."), AGE
    ),
    "Endpoints": printer(
        NAME, column("Endpoints", maker(say.endpoints), "Addresses and ports."), AGE
    ),
    "Event": event_printer(CORE),
    "LimitRange": DATED,
    "Namespace": printer(NAME, column("Status", text("status.phase"), "Its phase."), AGE),
    "Node": printer(
        NAME,
        column("Status", maker(say.node_status), "Whether it is ready and takes pods."),
        column("Roles", maker(say.roles), "What it is for."),
        AGE,
        column("Version", text("status.nodeInfo.kubeletVersion"), "The version of its kubelet."),
        wide("Internal-IP", say.node_address("InternalIP"), "Its address in the cluster."),
        wide("External-IP", say.node_address("ExternalIP"), "Its address outside the cluster."),
        wide("OS-Image", say.node_info("osImage"), "Its operating system."),
        wide("Kernel-Version", maker(say.kernel), "Its kernel and architecture."),
        wide("Container-Runtime", say.node_info("containerRuntimeVersion"), "What runs its pods."),
    ),
    "PersistentVolume": printer(
        NAME,
        column("Capacity", text("spec.capacity.storage", "0"), "How much it holds."),
        column("Access Modes", maker(say.volume_modes), "How it can be mounted."),
        column(
            "Reclaim Policy",
            text("spec.persistentVolumeReclaimPolicy"),
            "What follows its release.",
        ),
        column("Status", maker(say.phase), "Its phase."),
        column("Claim", maker(say.claim), "The claim that has it."),
        _STORAGE_CLASS,
        _ATTRIBUTES_CLASS,
        column("Reason", text("status.reason"), "Why it is in its phase."),
        AGE,
        _VOLUME_MODE,
    ),
    "PersistentVolumeClaim": printer(
        NAME,
        column("Status", maker(say.phase), "Its phase."),
        column("Volume", text("spec.volumeName"), "The volume that it has."),
        column("Capacity", maker(say.claimed_capacity), "How much that volume holds."),
        column("Access Modes", maker(say.claimed_modes), "How that volume can be mounted."),
        _STORAGE_CLASS,
        _ATTRIBUTES_CLASS,
        AGE,
        _VOLUME_MODE,
    ),
    "Pod": PODS,
    "PodTemplate": printer(
        NAME,
        column("Containers", _each_container("template", "name"), "The names of the containers."),
        column("Images", _each_container("template", "image"), "The images of the containers."),
        column("Pod Labels", labels("template.metadata.labels"), "The labels of its pods."),
    ),
    "ReplicationController": printer(
        NAME, *_REPLICAS, AGE, *_containers("spec.template"), _selector(labels("spec.selector"))
    ),
    "ResourceQuota": printer(
        NAME,
        column("Request", say.quotas(limits=False), "What is used of what may be requested."),
        column("Limit", say.quotas(limits=True), "What is used of what limits may add up to."),
        AGE,
    ),
    "Secret": printer(
        NAME,
        column("Type", text("type"), "What it is for."),
        column("Data", count("data"), "How many keys it has."),
        AGE,
    ),
    "Service": printer(
        NAME,
        column("Type", text("spec.type"), "How it is made available."),
        column("Cluster-IP", maker(say.cluster_ip), "Its address in the cluster."),
        column("External-IP", maker(say.external_ip), "Where it is found from outside."),
        column("Port(s)", maker(say.service_ports), "Its ports, those on nodes after a colon."),
        AGE,
        _selector(labels("spec.selector")),
    ),
    "ServiceAccount": AGED,
}

_APPS: dict[str, Printer] = {
    "ControllerRevision": printer(
        NAME,
        column("Controller", maker(say.controller), "Whose revision it is."),
        column("Revision", number("revision"), "Its number."),
        AGE,
    ),
    "DaemonSet": printer(
        NAME,
        integer("Desired", number("status.desiredNumberScheduled"), "How many nodes need a pod."),
        integer("Current", number("status.currentNumberScheduled"), "How many of them have one."),
        integer("Ready", number("status.numberReady"), "How many have one that is ready."),
        integer("Up-to-date", number("status.updatedNumberScheduled"), "How many have a new one."),
        integer("Available", number("status.numberAvailable"), "How many have one that lasts."),
        column("Node Selector", labels("spec.template.spec.nodeSelector"), "Which nodes need one."),
        AGE,
        *_containers("spec.template"),
        _selector(selector("spec.selector")),
    ),
    "Deployment": printer(
        NAME,
        _ready_of("spec.replicas"),
        column("Up-to-date", number("status.updatedReplicas"), "How many pods are new."),
        column("Available", number("status.availableReplicas"), "How many pods last."),
        AGE,
        *_containers("spec.template"),
        _selector(selector("spec.selector", empty="")),
    ),
    "ReplicaSet": printer(
        NAME, *_REPLICAS, AGE, *_containers("spec.template"), _selector(selector("spec.selector"))
    ),
    "StatefulSet": printer(NAME, _ready_of("spec.replicas"), AGE, *_containers("spec.template")),
}

_BATCH: dict[str, Printer] = {
    "CronJob": printer(
        NAME,
        column("Schedule", text("spec.schedule"), "When it starts jobs."),
        column("Timezone", text("spec.timeZone", "<none>"), "Whose clock that follows."),
        column("Suspend", maker(say.suspended), "Whether it rests.", holds="boolean"),
        integer("Active", count("status.active"), "How many jobs run."),
        column(
            "Last Schedule", since("status.lastScheduleTime", "<none>"), "The time since the last."
        ),
        AGE,
        *_containers("spec.jobTemplate.spec.template"),
        _selector(selector("spec.jobTemplate.spec.selector")),
    ),
    "Job": printer(
        NAME,
        column("Status", maker(say.job_status), "How it fares, in a word."),
        column("Completions", maker(say.completions), "How many pods are done, of how many."),
        column("Duration", say.job_duration, "How long it took, or takes so far."),
        AGE,
        *_containers("spec.template"),
        _selector(selector("spec.selector")),
    ),
}

_NETWORKING: dict[str, Printer] = {
    "Ingress": printer(
        NAME,
        column("Class", text("spec.ingressClassName", "<none>"), "Who takes care of it."),
        column("Hosts", maker(say.hosts), "The names that it answers to."),
        column("Address", maker(say.balancer), "Where it is found."),
        column("Ports", maker(say.ingress_ports), "The ports that it listens on."),
        AGE,
    ),
    "IngressClass": printer(
        (_NAME, maker(say.ingress_class_name)),
        column("Controller", text("spec.controller"), "Who takes care of its ingresses."),
        column("Parameters", maker(say.parameters), "What that one has to know."),
        AGE,
    ),
    "NetworkPolicy": printer(
        NAME, column("Pod-Selector", selector("spec.podSelector"), "Which pods it is for."), AGE
    ),
}

_OTHERS: dict[tuple[str, str], Printer] = {
    ("apiextensions.k8s.io", "CustomResourceDefinition"): replace(
        printer(
            NAME,
            column("Scope", text("spec.scope"), "Whether its objects are in namespaces."),
            column("Versions", maker(say.versions), "The versions that are served."),
            CREATED,
            wide("Group", text("spec.group"), "Its API group."),
            wide("Kind", text("spec.names.kind"), "The kind that it defines."),
            wide("ShortNames", maker(say.short_names), "The short names of that kind."),
            column(
                "Established",
                maker(say.established),
                "Whether it is served.",
                holds="boolean",
                priority=1,
            ),
        ),
        null_rows=True,
    ),
    ("apiregistration.k8s.io", "APIService"): printer(
        NAME,
        column("Service", maker(say.registered_service), "Who serves it."),
        column("Available", maker(say.availability), "Whether it can be asked."),
        AGE,
    ),
    ("autoscaling", "HorizontalPodAutoscaler"): printer(
        NAME,
        column("Reference", _reference("spec.scaleTargetRef"), "What it scales."),
        column("Targets", maker(targets), "Each metric, as it is and as it should be."),
        column("MinPods", text("spec.minReplicas", "<unset>"), "The fewest replicas."),
        column("MaxPods", number("spec.maxReplicas"), "The most replicas."),
        column("Replicas", number("status.currentReplicas"), "How many there are."),
        AGE,
    ),
    ("autoscaling", "Scale"): printer(
        (replace(_NAME, format=""), text("metadata.name")),
        integer("Desired", number("spec.replicas"), "How many replicas there should be."),
        integer("Available", number("status.replicas"), "How many replicas there are."),
        AGE,
    ),
    ("coordination.k8s.io", "Lease"): printer(
        NAME, column("Holder", text("spec.holderIdentity"), "Who has it."), AGE
    ),
    ("discovery.k8s.io", "EndpointSlice"): printer(
        NAME,
        column("AddressType", text("addressType"), "What kind of addresses it has."),
        column("Ports", maker(say.slice_ports), "The ports of each address."),
        column("Endpoints", maker(say.slice_addresses), "The addresses."),
        AGE,
    ),
    ("events.k8s.io", "Event"): event_printer(NEW),
    ("node.k8s.io", "RuntimeClass"): printer(
        NAME, column("Handler", text("handler"), "What runs its pods."), AGE
    ),
    ("policy", "PodDisruptionBudget"): printer(
        NAME,
        column("Min Available", text("spec.minAvailable", "N/A"), "The fewest pods, if limited."),
        column("Max Unavailable", text("spec.maxUnavailable", "N/A"), "The most pods missing."),
        integer("Allowed Disruptions", number("status.disruptionsAllowed"), "How many may go now."),
        AGE,
    ),
    ("scheduling.k8s.io", "PriorityClass"): printer(
        NAME,
        integer("Value", number("value"), "Its priority."),
        column("Global-Default", flag("globalDefault"), "Whether others have it.", holds="boolean"),
        AGE,
        column("PreemptionPolicy", text("preemptionPolicy"), "Whether its pods push others out."),
    ),
    ("storage.k8s.io", "StorageClass"): replace(
        printer(
            NAME,
            column("Provisioner", text("provisioner"), "Who makes its volumes."),
            column("ReclaimPolicy", text("reclaimPolicy", "Delete"), "What follows their release."),
            column("VolumeBindingMode", text("volumeBindingMode", "Immediate"), "When it binds."),
            column("AllowVolumeExpansion", flag("allowVolumeExpansion"), "Whether they may grow."),
            AGE,
        ),
        default_of=say.default_class,
    ),
    ("admissionregistration.k8s.io", "MutatingWebhookConfiguration"): _WEBHOOKS,
    ("admissionregistration.k8s.io", "ValidatingWebhookConfiguration"): _WEBHOOKS,
    ("rbac.authorization.k8s.io", "ClusterRole"): DATED,
    ("rbac.authorization.k8s.io", "ClusterRoleBinding"): _BINDING,
    ("rbac.authorization.k8s.io", "Role"): DATED,
    ("rbac.authorization.k8s.io", "RoleBinding"): _BINDING,
}

_PRINTERS: dict[tuple[str, str], Printer] = {
    **{("", kind): found for kind, found in _CORE.items()},
    **{("apps", kind): found for kind, found in _APPS.items()},
    **{("batch", kind): found for kind, found in _BATCH.items()},
    **{("networking.k8s.io", kind): found for kind, found in _NETWORKING.items()},
    **_OTHERS,
}
