"""Tables of the built-in kinds: the columns that `kubectl get` shows."""

from __future__ import annotations

from dataclasses import replace

from polyver.kube.objects._printing import summaries
from polyver.kube.objects._printing.cells import (
    CellOf,
    Printer,
    TableColumn,
    at,
    column,
    count,
    flag,
    integer,
    labels,
    maker,
    number,
    printer,
    selector,
    since,
    subjects,
    text,
    wide,
)
from polyver.kube.objects._printing.events import CORE, NEW, event_printer
from polyver.kube.objects._printing.pods import PODS
from polyver.kube.objects._printing.summaries import targets

__all__ = ["builtin_printer"]

Shown = tuple[TableColumn, CellOf]
_NAME = TableColumn("Name", format="name", description="The name of the object.")
NAME: Shown = _NAME, text("metadata.name")
AGE = column("Age", since("metadata.creationTimestamp"), "The time since the object was created.")
CREATED = column(
    "Created At",
    text("metadata.creationTimestamp", "0001-01-01T00:00:00Z"),
    "The time at which the object was created.",
    holds="date",
)
AGED = printer(NAME, AGE)
DATED = replace(printer(NAME, CREATED), null_rows=True)


def builtin_printer(group: str, kind: str) -> Printer:
    """Return the printer of a built-in kind; for a kind without its own, one with name and age.

    >>> [column.name for column in builtin_printer("", "ConfigMap").columns]
    ['Name', 'Data', 'Age']
    """
    return _PRINTERS.get((group, kind), AGED)


def _ready_of(wanted: str) -> Shown:
    ready = maker(lambda obj: f"{at(obj, 'status.readyReplicas') or 0}/{at(obj, wanted) or 0}")
    return column("Ready", ready, "The number of ready replicas, and of desired replicas.")


def _reference(path: str) -> CellOf:
    return maker(lambda obj: f"{at(obj, f'{path}.kind') or ''}/{at(obj, f'{path}.name') or ''}")


def _each_container(template: str, field: str) -> CellOf:
    path = f"{template}.spec.containers"
    return maker(lambda obj: ",".join(each.get(field, "") for each in at(obj, path) or ()))


def _containers(template: str) -> tuple[Shown, Shown]:
    """Build the two columns for a pod template: the names of its containers, and their images."""
    return (
        wide("Containers", _each_container(template, "name"), "The names of the containers."),
        wide("Images", _each_container(template, "image"), "The images of the containers."),
    )


def _selector(cell: CellOf) -> Shown:
    return wide("Selector", cell, "The selector for its pods.")


_REPLICAS = (
    integer("Desired", number("spec.replicas"), "The desired number of pods."),
    integer("Current", number("status.replicas"), "The current number of pods."),
    integer("Ready", number("status.readyReplicas"), "The number of ready pods."),
)
_BINDING = printer(
    NAME,
    column("Role", _reference("roleRef"), "The role that is granted."),
    AGE,
    wide("Users", subjects("User"), "The users who are granted the role."),
    wide("Groups", subjects("Group"), "The groups that are granted the role."),
    wide(
        "ServiceAccounts",
        subjects("ServiceAccount"),
        "The service accounts that are granted the role.",
    ),
)
_WEBHOOKS = printer(NAME, integer("Webhooks", count("webhooks"), "The number of webhooks."), AGE)
_ATTRIBUTES_CLASS = column(
    "VolumeAttributesClass",
    text("spec.volumeAttributesClassName", "<unset>"),
    "The name of its VolumeAttributesClass.",
)
_STORAGE_CLASS = column(
    "StorageClass", maker(summaries.storage_class), "The name of its StorageClass."
)
_VOLUME_MODE = wide(
    "VolumeMode", text("spec.volumeMode", "<unset>"), "The volume mode: Filesystem or Block."
)

_CORE: dict[str, Printer] = {
    "ConfigMap": printer(
        NAME, column("Data", count("data", "binaryData"), "The number of keys."), AGE
    ),
    "Endpoints": printer(
        NAME, column("Endpoints", maker(summaries.endpoints), "The addresses and ports."), AGE
    ),
    "Event": event_printer(CORE),
    "LimitRange": DATED,
    "Namespace": printer(NAME, column("Status", text("status.phase"), "Its phase."), AGE),
    "Node": printer(
        NAME,
        column(
            "Status", maker(summaries.node_status), "Whether the node is ready and schedulable."
        ),
        column("Roles", maker(summaries.roles), "The roles of the node."),
        AGE,
        column("Version", text("status.nodeInfo.kubeletVersion"), "The version of its kubelet."),
        wide("Internal-IP", summaries.node_address("InternalIP"), "Its address in the cluster."),
        wide(
            "External-IP", summaries.node_address("ExternalIP"), "Its address outside the cluster."
        ),
        wide("OS-Image", summaries.node_info("osImage"), "Its operating system."),
        wide("Kernel-Version", maker(summaries.kernel), "Its kernel version and architecture."),
        wide(
            "Container-Runtime",
            summaries.node_info("containerRuntimeVersion"),
            "Its container runtime.",
        ),
    ),
    "PersistentVolume": printer(
        NAME,
        column("Capacity", text("spec.capacity.storage", "0"), "The capacity of the volume."),
        column("Access Modes", maker(summaries.volume_modes), "The access modes of the volume."),
        column(
            "Reclaim Policy",
            text("spec.persistentVolumeReclaimPolicy"),
            "The reclaim policy of the volume.",
        ),
        column("Status", maker(summaries.phase), "Its phase."),
        column("Claim", maker(summaries.claim), "The claim that is bound to the volume."),
        _STORAGE_CLASS,
        _ATTRIBUTES_CLASS,
        column("Reason", text("status.reason"), "The reason for its phase."),
        AGE,
        _VOLUME_MODE,
    ),
    "PersistentVolumeClaim": printer(
        NAME,
        column("Status", maker(summaries.phase), "Its phase."),
        column("Volume", text("spec.volumeName"), "The volume that is bound to the claim."),
        column("Capacity", maker(summaries.claimed_capacity), "The capacity of that volume."),
        column("Access Modes", maker(summaries.claimed_modes), "The access modes of that volume."),
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
        column(
            "Request", summaries.quotas(limits=False), "The used and the allowed sum of requests."
        ),
        column("Limit", summaries.quotas(limits=True), "The used and the allowed sum of limits."),
        AGE,
    ),
    "Secret": printer(
        NAME,
        column("Type", text("type"), "The type of the secret."),
        column("Data", count("data"), "The number of keys."),
        AGE,
    ),
    "Service": printer(
        NAME,
        column("Type", text("spec.type"), "The type of the service."),
        column("Cluster-IP", maker(summaries.cluster_ip), "Its address in the cluster."),
        column("External-IP", maker(summaries.external_ip), "Its addresses outside the cluster."),
        column(
            "Port(s)",
            maker(summaries.service_ports),
            "Its ports, each with its node port after a colon.",
        ),
        AGE,
        _selector(labels("spec.selector")),
    ),
    "ServiceAccount": AGED,
}

_APPS: dict[str, Printer] = {
    "ControllerRevision": printer(
        NAME,
        column("Controller", maker(summaries.controller), "The controller that owns the revision."),
        column("Revision", number("revision"), "The revision number."),
        AGE,
    ),
    "DaemonSet": printer(
        NAME,
        integer(
            "Desired",
            number("status.desiredNumberScheduled"),
            "The number of nodes that need a pod.",
        ),
        integer(
            "Current",
            number("status.currentNumberScheduled"),
            "The number of them that have a pod.",
        ),
        integer("Ready", number("status.numberReady"), "The number with a ready pod."),
        integer(
            "Up-to-date", number("status.updatedNumberScheduled"), "The number with an updated pod."
        ),
        integer("Available", number("status.numberAvailable"), "The number with an available pod."),
        column(
            "Node Selector",
            labels("spec.template.spec.nodeSelector"),
            "The selector for the nodes.",
        ),
        AGE,
        *_containers("spec.template"),
        _selector(selector("spec.selector")),
    ),
    "Deployment": printer(
        NAME,
        _ready_of("spec.replicas"),
        column("Up-to-date", number("status.updatedReplicas"), "The number of updated pods."),
        column("Available", number("status.availableReplicas"), "The number of available pods."),
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
        column("Schedule", text("spec.schedule"), "The schedule, in cron format."),
        column("Timezone", text("spec.timeZone", "<none>"), "The time zone of the schedule."),
        column(
            "Suspend",
            maker(summaries.suspended),
            "Whether the schedule is suspended.",
            holds="boolean",
        ),
        integer("Active", count("status.active"), "The number of running jobs."),
        column(
            "Last Schedule",
            since("status.lastScheduleTime", "<none>"),
            "The time since it last started a job.",
        ),
        AGE,
        *_containers("spec.jobTemplate.spec.template"),
        _selector(selector("spec.jobTemplate.spec.selector")),
    ),
    "Job": printer(
        NAME,
        column("Status", maker(summaries.job_status), "The state of the job, in one word."),
        column(
            "Completions",
            maker(summaries.completions),
            "The number of completed pods, and of required ones.",
        ),
        column(
            "Duration", summaries.job_duration, "The time that the job took or has taken so far."
        ),
        AGE,
        *_containers("spec.template"),
        _selector(selector("spec.selector")),
    ),
}

_NETWORKING: dict[str, Printer] = {
    "Ingress": printer(
        NAME,
        column("Class", text("spec.ingressClassName", "<none>"), "The name of its IngressClass."),
        column("Hosts", maker(summaries.hosts), "The host names of its rules."),
        column("Address", maker(summaries.balancer), "The addresses of its load balancer."),
        column("Ports", maker(summaries.ingress_ports), "The ports that it listens on."),
        AGE,
    ),
    "IngressClass": printer(
        (_NAME, maker(summaries.ingress_class_name)),
        column("Controller", text("spec.controller"), "The controller of its ingresses."),
        column("Parameters", maker(summaries.parameters), "The parameters of that controller."),
        AGE,
    ),
    "NetworkPolicy": printer(
        NAME,
        column(
            "Pod-Selector",
            selector("spec.podSelector"),
            "The selector for the pods that it applies to.",
        ),
        AGE,
    ),
}

_OTHERS: dict[tuple[str, str], Printer] = {
    ("apiextensions.k8s.io", "CustomResourceDefinition"): replace(
        printer(
            NAME,
            column("Scope", text("spec.scope"), "The scope of its objects: Namespaced or Cluster."),
            column("Versions", maker(summaries.versions), "The versions that are served."),
            CREATED,
            wide("Group", text("spec.group"), "Its API group."),
            wide("Kind", text("spec.names.kind"), "The kind that it defines."),
            wide("ShortNames", maker(summaries.short_names), "The short names of that kind."),
            column(
                "Established",
                maker(summaries.established),
                "Whether the kind is served.",
                holds="boolean",
                priority=1,
            ),
        ),
        null_rows=True,
    ),
    ("apiregistration.k8s.io", "APIService"): printer(
        NAME,
        column(
            "Service",
            maker(summaries.registered_service),
            "The service that serves the API, or Local.",
        ),
        column("Available", maker(summaries.availability), "Whether the API is available."),
        AGE,
    ),
    ("autoscaling", "HorizontalPodAutoscaler"): printer(
        NAME,
        column("Reference", _reference("spec.scaleTargetRef"), "The object that it scales."),
        column("Targets", maker(targets), "The current and the target value of each metric."),
        column("MinPods", text("spec.minReplicas", "<unset>"), "The minimum number of replicas."),
        column("MaxPods", number("spec.maxReplicas"), "The maximum number of replicas."),
        column("Replicas", number("status.currentReplicas"), "The current number of replicas."),
        AGE,
    ),
    ("autoscaling", "Scale"): printer(
        (replace(_NAME, format=""), text("metadata.name")),
        integer("Desired", number("spec.replicas"), "The desired number of replicas."),
        integer("Available", number("status.replicas"), "The current number of replicas."),
        AGE,
    ),
    ("coordination.k8s.io", "Lease"): printer(
        NAME, column("Holder", text("spec.holderIdentity"), "The holder of the lease."), AGE
    ),
    ("discovery.k8s.io", "EndpointSlice"): printer(
        NAME,
        column("AddressType", text("addressType"), "The type of the addresses."),
        column("Ports", maker(summaries.slice_ports), "The ports of each address."),
        column("Endpoints", maker(summaries.slice_addresses), "The addresses."),
        AGE,
    ),
    ("events.k8s.io", "Event"): event_printer(NEW),
    ("node.k8s.io", "RuntimeClass"): printer(
        NAME, column("Handler", text("handler"), "The runtime handler of its pods."), AGE
    ),
    ("policy", "PodDisruptionBudget"): printer(
        NAME,
        column(
            "Min Available", text("spec.minAvailable", "N/A"), "The minimum number of pods, if set."
        ),
        column(
            "Max Unavailable",
            text("spec.maxUnavailable", "N/A"),
            "The maximum number of unavailable pods, if set.",
        ),
        integer(
            "Allowed Disruptions",
            number("status.disruptionsAllowed"),
            "The number of pods that may be evicted now.",
        ),
        AGE,
    ),
    ("scheduling.k8s.io", "PriorityClass"): printer(
        NAME,
        integer("Value", number("value"), "Its priority."),
        column(
            "Global-Default",
            flag("globalDefault"),
            "Whether it is the default for pods without a class.",
            holds="boolean",
        ),
        AGE,
        column("PreemptionPolicy", text("preemptionPolicy"), "The preemption policy of its pods."),
    ),
    ("storagemigration.k8s.io", "StorageVersionMigration"): printer(
        (replace(_NAME, format=""), text("metadata.name")),
        column("Resource", maker(summaries.migrated_resource), "The resource to migrate."),
        column("Status", maker(summaries.migration_status), "The status of the migration."),
    ),
    ("storage.k8s.io", "StorageClass"): replace(
        printer(
            NAME,
            column("Provisioner", text("provisioner"), "The provisioner of its volumes."),
            column(
                "ReclaimPolicy",
                text("reclaimPolicy", "Delete"),
                "The reclaim policy of its volumes.",
            ),
            column(
                "VolumeBindingMode",
                text("volumeBindingMode", "Immediate"),
                "The time at which its volumes are bound.",
            ),
            column(
                "AllowVolumeExpansion",
                flag("allowVolumeExpansion"),
                "Whether its volumes may be expanded.",
            ),
            AGE,
        ),
        default_of=summaries.default_class,
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
