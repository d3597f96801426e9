"""Functions that compute cells of built-in kinds from several fields of an object."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

from polyver.core.plain import Object
from polyver.kube.objects._printing.cells import (
    CellOf,
    age_of,
    at,
    counted,
    human_duration,
    maker,
    seconds_between,
)

__all__ = ["targets"]


def _holds(obj: Object, condition: str) -> bool:
    """Report whether the object's first condition of the type `condition` has the status True."""
    found = at(obj, "status.conditions") or ()
    states = [each.get("status") for each in found if each.get("type") == condition]
    return states[:1] == ["True"]


def _addresses(obj: Object) -> list[str]:
    """Return the sorted addresses of a load balancer: IP addresses or host names."""
    found = at(obj, "status.loadBalancer.ingress") or ()
    return sorted({each.get("ip") or each.get("hostname") or "" for each in found} - {""})


# API services


def registered_service(registration: Object) -> str:
    service = at(registration, "spec.service")
    return f"{service.get('namespace', '')}/{service.get('name', '')}" if service else "Local"


def availability(registration: Object) -> str:
    """Return the status of the condition Available, and the reason if the status is not True.

    An example is `False (MissingEndpoints)`.
    """
    known = at(registration, "status.conditions") or ()
    found = next((each for each in known if each.get("type") == "Available"), None)
    if found is None:
        return "Unknown"
    status = str(found.get("status", ""))
    return status if status == "True" else f"{status} ({found.get('reason', '')})"


def migrated_resource(migration: Object) -> str:
    """Return the resource that a StorageVersionMigration names, with its group."""
    resource = at(migration, "spec.resource") or {}
    return ".".join(filter(None, (resource.get("resource"), resource.get("group"))))


def migration_status(migration: Object) -> str:
    """Return the type of the last condition that is true, such as Succeeded."""
    known = at(migration, "status.conditions") or ()
    types = [each["type"] for each in known if each.get("status") == "True"]
    return next((each for each in reversed(types) if each in _MIGRATION), "Unknown")


_MIGRATION = ("Running", "Succeeded", "Failed")


# Services and endpoints


def cluster_ip(service: Object) -> str:
    return next(iter(at(service, "spec.clusterIPs") or ()), "<none>")


def external_ip(service: Object) -> str:
    own = at(service, "spec.externalIPs") or []
    match at(service, "spec.type"):
        case "ClusterIP" | "NodePort":
            return ",".join(own) or "<none>"
        case "LoadBalancer":
            return ",".join([*_addresses(service), *own]) or "<pending>"
        case "ExternalName":
            return str(at(service, "spec.externalName") or "")
        case _:
            return "<unknown>"


def service_ports(service: Object) -> str:
    return ",".join(_service_port(port) for port in at(service, "spec.ports") or ()) or "<none>"


def _service_port(port: Object) -> str:
    node = f":{port['nodePort']}" if port.get("nodePort") else ""
    return f"{port.get('port')}{node}/{port.get('protocol', 'TCP')}"


def endpoints(obj: Object) -> str:
    subsets = obj.get("subsets") or ()
    shown = [
        _endpoint(address.get("ip", ""), port)
        for subset in subsets
        for port in subset.get("ports") or (None,)
        for address in subset.get("addresses") or ()
    ]
    return counted(shown, most=3) if subsets else "<none>"


def _endpoint(address: str, port: Object | None) -> str:
    if port is None:
        return address
    return f"[{address}]:{port['port']}" if ":" in address else f"{address}:{port['port']}"


def slice_ports(obj: Object) -> str:
    return counted([_slice_port(port) for port in obj.get("ports") or ()], most=3) or "<unset>"


def _slice_port(port: Object) -> str:
    if port.get("port") is not None:
        return str(port["port"])
    return "*" if port.get("name") is None else str(port["name"])


def slice_addresses(obj: Object) -> str:
    found = [one for each in obj.get("endpoints") or () for one in each.get("addresses") or ()]
    return counted(found, most=3) or "<unset>"


def hosts(ingress: Object) -> str:
    rules = at(ingress, "spec.rules") or ()
    hosts = [rule["host"] for rule in rules if rule.get("host")]
    if not hosts:
        return "*"
    # As in kubectl, if a rule follows the third rule with a host, the number of further rules is
    # the number of all rules minus three. So rules without a host also count.
    third = [number for number, rule in enumerate(rules) if rule.get("host")][2:3]
    cut = bool(third) and len(rules) > third[0] + 1
    return counted(hosts, most=3, total=len(rules) if cut else len(hosts[:3]))


def balancer(ingress: Object) -> str:
    return ",".join(_addresses(ingress))


def ingress_ports(ingress: Object) -> str:
    return "80, 443" if at(ingress, "spec.tls") else "80"


def parameters(ingress_class: Object) -> str:
    found = at(ingress_class, "spec.parameters")
    if found is None:
        return "<none>"
    group = f".{found['apiGroup']}" if found.get("apiGroup") is not None else ""
    return f"{found.get('kind', '')}{group}/{found.get('name', '')}"


# Workloads


def completions(job: Object) -> str:
    done, wanted = at(job, "status.succeeded") or 0, at(job, "spec.completions")
    if wanted is not None:
        return f"{done}/{wanted}"
    parallel = at(job, "spec.parallelism") or 0
    return f"{done}/1 of {parallel}" if parallel > 1 else f"{done}/1"


def job_duration(job: Object, now: datetime) -> str:
    start, end = at(job, "status.startTime"), at(job, "status.completionTime")
    if not start:
        return ""
    return human_duration(seconds_between(start, end)) if end else age_of(start, now)


def job_status(job: Object) -> str:
    for condition in ("Complete", "Failed"):
        if _holds(job, condition):
            return condition
    if at(job, "metadata.deletionTimestamp"):
        return "Terminating"
    pending = ("Suspended", "FailureTarget", "SuccessCriteriaMet")
    return next((condition for condition in pending if _holds(job, condition)), "Running")


def suspended(cron_job: Object) -> str:
    found = at(cron_job, "spec.suspend")
    return "<unset>" if found is None else str(bool(found))


def controller(obj: Object) -> str:
    for owner in at(obj, "metadata.ownerReferences") or ():
        if owner.get("controller"):
            group, slash, _ = owner["apiVersion"].rpartition("/")
            kind = f"{owner['kind']}.{group}" if slash else owner["kind"]
            return f"{kind.lower()}/{owner['name']}"
    return "<none>"


# Storage

_MODES = {
    "ReadWriteOnce": "RWO",
    "ReadOnlyMany": "ROX",
    "ReadWriteMany": "RWX",
    "ReadWriteOncePod": "RWOP",
}
_BETA_CLASS = "volume.beta.kubernetes.io/storage-class"
_DEFAULT_CLASS = (
    "storageclass.kubernetes.io/is-default-class",
    "storageclass.beta.kubernetes.io/is-default-class",
)


def _modes(found: Iterable[str]) -> str:
    return ",".join(short for mode, short in _MODES.items() if mode in found)


def volume_modes(volume: Object) -> str:
    return _modes(at(volume, "spec.accessModes") or ())


def claimed_modes(claim: Object) -> str:
    return _modes(at(claim, "status.accessModes") or ()) if at(claim, "spec.volumeName") else ""


def claimed_capacity(claim: Object) -> str:
    if not at(claim, "spec.volumeName"):
        return ""
    return str(at(claim, "status.capacity.storage") or "0")


def storage_class(obj: Object) -> str:
    beta = (at(obj, "metadata.annotations") or {}).get(_BETA_CLASS)
    return str(at(obj, "spec.storageClassName") or "") if beta is None else str(beta)


def phase(obj: Object) -> str:
    deleted = at(obj, "metadata.deletionTimestamp")
    return "Terminating" if deleted else at(obj, "status.phase") or ""


def claim(volume: Object) -> str:
    found = at(volume, "spec.claimRef")
    return f"{found.get('namespace', '')}/{found.get('name', '')}" if found else ""


def default_class(classes: Sequence[Object]) -> str | None:
    """Return the name of the class that is marked as default; None if there is none.

    If several classes are marked, return the newest; of equally new classes, the first by name.
    """
    marked = [each["metadata"] for each in classes if _says_default(each, *_DEFAULT_CLASS)]
    marked.sort(key=lambda metadata: metadata["name"])
    newest = max(marked, key=lambda each: each.get("creationTimestamp") or "", default=None)
    return None if newest is None else newest["name"]


def _says_default(obj: Object, *annotations: str) -> bool:
    found = at(obj, "metadata.annotations") or {}
    return any(found.get(annotation) == "true" for annotation in annotations)


def ingress_class_name(obj: Object) -> str:
    default = _says_default(obj, "ingressclass.kubernetes.io/is-default-class")
    return (at(obj, "metadata.name") or "") + (" (default)" if default else "")


# Nodes, quotas, CustomResourceDefinitions


def node_status(node: Object) -> str:
    found = [each for each in at(node, "status.conditions") or () if each.get("type") == "Ready"]
    ready = bool(found) and found[-1].get("status") == "True"
    status = ("Ready" if ready else "NotReady") if found else "Unknown"
    return f"{status},SchedulingDisabled" if at(node, "spec.unschedulable") else status


def roles(node: Object) -> str:
    prefix, found = "node-role.kubernetes.io/", at(node, "metadata.labels") or {}
    roles = {key.removeprefix(prefix) for key in found if key.startswith(prefix)}
    return ",".join(sorted((roles | {found.get("kubernetes.io/role", "")}) - {""})) or "<none>"


def node_address(kind: str) -> CellOf:
    def cell(node: Object) -> str:
        found = at(node, "status.addresses") or ()
        return next((each["address"] for each in found if each.get("type") == kind), "<none>")

    return maker(cell)


def node_info(name: str) -> CellOf:
    return maker(lambda node: at(node, f"status.nodeInfo.{name}") or "<unknown>")


def kernel(node: Object) -> str:
    architecture = at(node, "status.nodeInfo.architecture")
    kernel = at(node, "status.nodeInfo.kernelVersion") or "<unknown>"
    return f"{kernel} ({architecture})" if architecture else kernel


def quotas(*, limits: bool) -> CellOf:
    def cell(obj: Object) -> str:
        hard, used = at(obj, "status.hard") or {}, at(obj, "status.used") or {}
        chosen = [name for name in sorted(hard) if name.startswith("limits.") is limits]
        return ", ".join(f"{name}: {used.get(name, 0)}/{hard[name]}" for name in chosen)

    return maker(cell)


def versions(definition: Object) -> str:
    found = at(definition, "spec.versions") or ()
    served = [each for each in found if each.get("served")]
    names = (each["name"] + ("(storage)" if each.get("storage") else "") for each in served)
    return ",".join(sorted(names))


def short_names(definition: Object) -> str:
    return ",".join(at(definition, "spec.names.shortNames") or ())


def established(definition: Object) -> bool:
    return _holds(definition, "Established")


_PARTS = {
    "ContainerResource": "containerResource",
    "External": "external",
    "Object": "object",
    "Pods": "pods",
    "Resource": "resource",
}


def targets(autoscaler: Object) -> str:
    """Format the first two metrics of an autoscaler: the current and the target value.

    An example is `cpu: 33%/80%`.
    """
    specs = _metrics(autoscaler)
    if not specs:
        return "<none>"
    statuses = at(autoscaler, "status.currentMetrics") or []
    statuses = [*statuses, *[{}] * len(specs)]
    shown = [_metric(spec, status) for spec, status in zip(specs, statuses, strict=False)]
    return counted(shown, most=2, between=", ")


def _metrics(autoscaler: Object) -> list[Any]:
    """Return the metrics of an autoscaler in the format of autoscaling/v2.

    For an autoscaler in v1, this is one metric, built from its target CPU utilization.
    """
    target = at(autoscaler, "spec.targetCPUUtilizationPercentage")
    if target is None:
        return at(autoscaler, "spec.metrics") or []
    cpu = {"name": "cpu", "target": {"averageUtilization": target}}
    return [{"type": "Resource", "resource": cpu}]


def _metric(spec: Object, status: Object) -> str:
    kind = spec.get("type", "")
    part = _PARTS.get(kind)
    if part is None:
        return "<unknown type>"
    target = at(spec, f"{part}.target") or {}
    current = at(status, f"{part}.current") or {}
    if kind.endswith("Resource"):
        return f"{at(spec, f'{part}.name')}: {_resource(current, target)}"
    averaged = target.get("averageValue")
    if averaged is None:
        return f"{current.get('value') or '<unknown>'}/{target.get('value') or 0}"
    average = " (avg)" if kind != "Pods" else ""
    return f"{current.get('averageValue') or '<unknown>'}/{averaged}{average}"


def _resource(current: Object, target: Object) -> str:
    if target.get("averageValue") is not None:
        return f"{current.get('averageValue') or '<unknown>'}/{target['averageValue']}"
    now, wanted = current.get("averageUtilization"), target.get("averageUtilization")
    shown = "<unknown>" if now is None else f"{now}%"
    return f"{shown}/{'<auto>' if wanted is None else f'{wanted}%'}"
