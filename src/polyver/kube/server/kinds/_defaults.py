"""Default values of fields, by the type that contains the field.

This module lists the defaults by type and not by kind, because several kinds contain values of the
same type. For example, Pods and CronJobs contain containers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from polyver.core.plain import Object

__all__ = ["COMPUTED", "FIXED", "Change"]

Change = Callable[[Object], Object]
_CONTAINER = {"terminationMessagePath": "/dev/termination-log", "terminationMessagePolicy": "File"}
_MODE: Object = {"defaultMode": 0o644}
_HOOK: Object = {
    "failurePolicy": "Fail",
    "matchPolicy": "Equivalent",
    "namespaceSelector": {},
    "objectSelector": {},
    "timeoutSeconds": 10,
}
_RBAC: Object = {"apiGroup": "rbac.authorization.k8s.io"}
_ROLLING: Object = {"type": "RollingUpdate"}

# Values for missing fields, by type. All objects share these values, so they must not be changed.
FIXED: Mapping[str, Object] = {
    "admissionregistration/v1.MutatingWebhook": _HOOK | {"reinvocationPolicy": "Never"},
    "admissionregistration/v1.RuleWithOperations": {"scope": "*"},
    "admissionregistration/v1.ServiceReference": {"port": 443},
    "admissionregistration/v1.ValidatingWebhook": _HOOK,
    "apiregistration/v1.ServiceReference": {"port": 443},
    "apps/v1.DaemonSetSpec": {"revisionHistoryLimit": 10},
    "apps/v1.DaemonSetUpdateStrategy": _ROLLING,
    "apps/v1.DeploymentSpec": {
        "progressDeadlineSeconds": 600,
        "replicas": 1,
        "revisionHistoryLimit": 10,
    },
    "apps/v1.DeploymentStrategy": _ROLLING,
    "apps/v1.ReplicaSetSpec": {"replicas": 1},
    "apps/v1.StatefulSetPersistentVolumeClaimRetentionPolicy": {
        "whenDeleted": "Retain",
        "whenScaled": "Retain",
    },
    "apps/v1.StatefulSetSpec": {
        "persistentVolumeClaimRetentionPolicy": {},
        "podManagementPolicy": "OrderedReady",
        "replicas": 1,
        "revisionHistoryLimit": 10,
    },
    "autoscaling/v1.HorizontalPodAutoscalerSpec": {"minReplicas": 1},
    "autoscaling/v2.HorizontalPodAutoscalerSpec": {"minReplicas": 1},
    "batch/v1.CronJobSpec": {
        "concurrencyPolicy": "Allow",
        "failedJobsHistoryLimit": 1,
        "successfulJobsHistoryLimit": 3,
        "suspend": False,
    },
    "core/v1.ConfigMapVolumeSource": _MODE,
    "core/v1.Container": _CONTAINER,
    "core/v1.ContainerPort": {"protocol": "TCP"},
    "core/v1.DownwardAPIVolumeSource": _MODE,
    "core/v1.EndpointPort": {"protocol": "TCP"},
    "core/v1.EphemeralContainer": _CONTAINER,
    "core/v1.GRPCAction": {"service": ""},
    "core/v1.HTTPGetAction": {"path": "/", "scheme": "HTTP"},
    "core/v1.HostPathVolumeSource": {"type": ""},
    "core/v1.ISCSIPersistentVolumeSource": {"iscsiInterface": "default"},
    "core/v1.ISCSIVolumeSource": {"iscsiInterface": "default"},
    "core/v1.ObjectFieldSelector": {"apiVersion": "v1"},
    "core/v1.PersistentVolumeClaimSpec": {"volumeMode": "Filesystem"},
    "core/v1.PersistentVolumeClaimStatus": {"phase": "Pending"},
    "core/v1.PersistentVolumeSpec": {
        "persistentVolumeReclaimPolicy": "Retain",
        "volumeMode": "Filesystem",
    },
    "core/v1.PersistentVolumeStatus": {"phase": "Pending"},
    "core/v1.PodSpec": {
        "dnsPolicy": "ClusterFirst",
        "restartPolicy": "Always",
        "schedulerName": "default-scheduler",
        "securityContext": {},
        "terminationGracePeriodSeconds": 30,
    },
    "core/v1.Probe": {
        "failureThreshold": 3,
        "periodSeconds": 10,
        "successThreshold": 1,
        "timeoutSeconds": 1,
    },
    "core/v1.ProjectedVolumeSource": _MODE,
    "core/v1.RBDPersistentVolumeSource": {
        "keyring": "/etc/ceph/keyring",
        "pool": "rbd",
        "user": "admin",
    },
    "core/v1.RBDVolumeSource": {"keyring": "/etc/ceph/keyring", "pool": "rbd", "user": "admin"},
    "core/v1.SecretVolumeSource": _MODE,
    "core/v1.ServiceAccountTokenProjection": {"expirationSeconds": 3600},
    "core/v1.ServicePort": {"protocol": "TCP"},
    "core/v1.ServiceSpec": {"sessionAffinity": "None", "type": "ClusterIP"},
    "discovery/v1.EndpointPort": {"name": "", "protocol": "TCP"},
    "networking/v1.IngressClassParametersReference": {"scope": "Cluster"},
    "networking/v1.NetworkPolicyPort": {"protocol": "TCP"},
    "storage/v1.StorageClass": {"reclaimPolicy": "Delete", "volumeBindingMode": "Immediate"},
}


def _pull_policy(container: Object) -> Object:
    """Return the default pull policy, or {} if the container has a pull policy already.

    It is Always for an image with the tag `latest` or with neither tag nor digest, otherwise
    IfNotPresent.
    """
    return _pulled(container, "imagePullPolicy", container.get("image") or "")


def _image_volume(volume: Object) -> Object:
    return _pulled(volume, "pullPolicy", volume.get("reference") or "")


def _pulled(holder: Object, name: str, image: str) -> Object:
    if holder.get(name):
        return {}
    _, digest, _ = image.partition("@")
    last = image.rpartition("/")[2]
    tag = "" if digest else last.partition(":")[2] or "latest"
    return {name: "Always" if tag == "latest" else "IfNotPresent"}


def _volume(volume: Object) -> Object:
    return {} if volume.keys() - {"name"} else {"emptyDir": {}}


def _accounts(spec: Object) -> Object:
    """If serviceAccountName or serviceAccount is set, set both to the same value.

    If they differ, serviceAccountName has priority.
    """
    name = spec.get("serviceAccountName") or spec.get("serviceAccount")
    return {"serviceAccountName": name, "serviceAccount": name} if name else {}


def _pod(pod: Object) -> Object:
    spec = {"enableServiceLinks": True, **pod["spec"]}
    if spec.get("terminationGracePeriodSeconds", 0) < 0:
        spec["terminationGracePeriodSeconds"] = 1
    for name in ("initContainers", "containers"):
        if spec.get(name):
            spec[name] = [_of_pod(each, spec) for each in spec[name]]
    return {"spec": spec}


def _of_pod(container: Object, spec: Object) -> Object:
    """Return the defaults of a container in a Pod.

    A missing request becomes equal to the limit. With `hostNetwork`, a missing host port becomes
    equal to the container port.
    """
    changed = dict(container)
    resources = container.get("resources") or {}
    if limits := resources.get("limits"):
        requests = limits | (resources.get("requests") or {})
        changed["resources"] = resources | {"requests": requests}
    if spec.get("hostNetwork") and container.get("ports"):
        changed["ports"] = [
            port if port.get("hostPort") else port | {"hostPort": port["containerPort"]}
            for port in container["ports"]
        ]
    return changed


def _pod_status(status: Object) -> Object:
    one, many = status.get("podIP"), status.get("podIPs")
    if one and (not many or many[0].get("ip") != one):
        return {"podIPs": [{"ip": one}]}
    return {"podIP": many[0].get("ip", "")} if many and not one else {}


def _node_status(status: Object) -> Object:
    if status.get("capacity") and "allocatable" not in status:
        return {"allocatable": status["capacity"]}
    return {}


def _node_networks(spec: Object) -> Object:
    """Make podCIDR the first item of podCIDRs.

    If one of the two is missing, derive it from the other.
    """
    one, many = spec.get("podCIDR"), spec.get("podCIDRs")
    if one and (not many or many[0] != one):
        return {"podCIDRs": [one]}
    return {"podCIDR": many[0]} if many and not one else {}


def _service(service: Object) -> Object:
    spec = dict(service["spec"])
    kind = spec.get("type") or "ClusterIP"
    _affinity(spec)
    outside = kind in ("NodePort", "LoadBalancer") or spec.get("externalIPs")
    if outside and kind != "ExternalName":
        spec.setdefault("externalTrafficPolicy", "Cluster")
    if kind in ("ClusterIP", "NodePort", "LoadBalancer"):
        spec.setdefault("internalTrafficPolicy", "Cluster")
    if kind == "LoadBalancer":
        spec.setdefault("allocateLoadBalancerNodePorts", True)
    return {"spec": spec} | _balanced(service, kind)


def _affinity(spec: Object) -> None:
    kind = spec.get("sessionAffinity") or "None"
    if kind == "None":
        spec.pop("sessionAffinityConfig", None)
    elif kind == "ClientIP":
        client = (spec.get("sessionAffinityConfig") or {}).get("clientIP") or {}
        if "timeoutSeconds" not in client:
            spec["sessionAffinityConfig"] = {"clientIP": {"timeoutSeconds": 10800}}


def _balanced(service: Object, kind: str) -> Object:
    status = service.get("status") or {}
    ingress = (status.get("loadBalancer") or {}).get("ingress")
    if kind != "LoadBalancer" or not ingress:
        return {}
    found = [{"ipMode": "VIP", **each} if each.get("ip") else each for each in ingress]
    balancer = status["loadBalancer"] | {"ingress": found}
    return {"status": status | {"loadBalancer": balancer}}


def _target_port(port: Object) -> Object:
    return {} if port.get("targetPort") else {"targetPort": port.get("port", 0)}


def _limits(item: Object) -> Object:
    if item.get("type") != "Container":
        return {}
    default = (item.get("max") or {}) | (item.get("default") or {})
    request = (item.get("min") or {}) | default | (item.get("defaultRequest") or {})
    found = {"default": default, "defaultRequest": request}
    return {name: value for name, value in found.items() if value}


def _deployment_strategy(strategy: Object) -> Object:
    if strategy.get("type") != "RollingUpdate":
        return {}
    given = strategy.get("rollingUpdate") or {}
    return {"rollingUpdate": {"maxSurge": "25%", "maxUnavailable": "25%"} | given}


def _daemon_strategy(strategy: Object) -> Object:
    if strategy.get("type") != "RollingUpdate":
        return {}
    given = strategy.get("rollingUpdate") or {}
    return {"rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1} | given}


def _stateful_strategy(strategy: Object) -> Object:
    """Return the defaults of a StatefulSet's update strategy.

    If the object sets `type` but not `rollingUpdate`, there are none.
    """
    kind, given = strategy.get("type"), strategy.get("rollingUpdate")
    if kind is None or (kind == "RollingUpdate" and given is not None):
        rolling = {"maxUnavailable": 1, "partition": 0} | (given or {})
        return {"type": "RollingUpdate", "rollingUpdate": rolling}
    return {}


def _claims(spec: Object) -> Object:
    templates = spec.get("volumeClaimTemplates")
    if not templates:
        return {}
    named = {"apiVersion": "v1", "kind": "PersistentVolumeClaim"}
    return {"volumeClaimTemplates": [named | template for template in templates]}


def _job(job: Object) -> Object:
    spec = job["spec"]
    alone = {} if "parallelism" in spec or "completions" in spec else {"completions": 1}
    by_index, policy = "backoffLimitPerIndex" in spec, "podFailurePolicy" in spec
    filled = alone | {
        "backoffLimit": 2**31 - 1 if by_index else 6,
        "completionMode": "NonIndexed",
        "manualSelector": False,
        "parallelism": 1,
        "podReplacementPolicy": "Failed" if policy else "TerminatingOrFailed",
        "suspend": False,
    }
    changed: Object = {"spec": filled | spec}
    labels = spec["template"]["metadata"].get("labels")
    if labels and not job["metadata"].get("labels"):
        changed["metadata"] = job["metadata"] | {"labels": labels}
    return changed


def _pattern(pattern: Object) -> Object:
    return {} if pattern.get("status") else {"status": "True"}


_CPU: Object = {
    "type": "Resource",
    "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 80}},
}
_FASTEST: Object = {"type": "Percent", "value": 100, "periodSeconds": 15}
_SCALE_UP: Object = {
    "stabilizationWindowSeconds": 0,
    "selectPolicy": "Max",
    "policies": [{"type": "Pods", "value": 4, "periodSeconds": 15}, _FASTEST],
}
_SCALE_DOWN: Object = {"selectPolicy": "Max", "policies": [_FASTEST]}


def _autoscaler(spec: Object) -> Object:
    changed: Object = {} if spec.get("metrics") else {"metrics": [_CPU]}
    behaviour = spec.get("behavior")
    if behaviour is not None:
        up, down = behaviour.get("scaleUp") or {}, behaviour.get("scaleDown") or {}
        filled = {"scaleUp": _SCALE_UP | up, "scaleDown": _SCALE_DOWN | down}
        changed["behavior"] = behaviour | filled
    return changed


def _policy_types(spec: Object) -> Object:
    if spec.get("policyTypes"):
        return {}
    return {"policyTypes": ["Ingress", "Egress"] if spec.get("egress") else ["Ingress"]}


def _binding(binding: Object) -> Object:
    role = binding["roleRef"]
    return {} if role.get("apiGroup") else {"roleRef": role | _RBAC}


def _subject(subject: Object) -> Object:
    named = subject.get("apiGroup") or subject.get("kind") not in ("User", "Group")
    return {} if named else _RBAC


# Python functions that compute default values from other fields, by type.
COMPUTED: Mapping[str, Change] = {
    "apps/v1.DaemonSetUpdateStrategy": _daemon_strategy,
    "apps/v1.DeploymentStrategy": _deployment_strategy,
    "apps/v1.StatefulSetSpec": _claims,
    "apps/v1.StatefulSetUpdateStrategy": _stateful_strategy,
    "autoscaling/v2.HorizontalPodAutoscalerSpec": _autoscaler,
    "batch/v1.Job": _job,
    "batch/v1.PodFailurePolicyOnPodConditionsPattern": _pattern,
    "core/v1.Container": _pull_policy,
    "core/v1.EphemeralContainer": _pull_policy,
    "core/v1.ImageVolumeSource": _image_volume,
    "core/v1.LimitRangeItem": _limits,
    "core/v1.NodeSpec": _node_networks,
    "core/v1.NodeStatus": _node_status,
    "core/v1.Pod": _pod,
    "core/v1.PodSpec": _accounts,
    "core/v1.PodStatus": _pod_status,
    "core/v1.Service": _service,
    "core/v1.ServicePort": _target_port,
    "core/v1.Volume": _volume,
    "networking/v1.NetworkPolicySpec": _policy_types,
    "rbac/v1.ClusterRoleBinding": _binding,
    "rbac/v1.RoleBinding": _binding,
    "rbac/v1.Subject": _subject,
}
