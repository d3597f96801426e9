"""The table of rules of built-in kinds."""

from __future__ import annotations

from collections.abc import Mapping

from polyver.kube.server.kinds._autoscalers import AutoscalerRules
from polyver.kube.server.kinds._builtin import BuiltinRules
from polyver.kube.server.kinds._jobs import CronJobRules, JobRules
from polyver.kube.server.kinds._limits import (
    AccountRules,
    BudgetRules,
    LimitRangeRules,
    NodeRules,
    QuotaRules,
)
from polyver.kube.server.kinds._networking import (
    EndpointSliceRules,
    EndpointsRules,
    IngressClassRules,
    IngressRules,
    NetworkPolicyRules,
)
from polyver.kube.server.kinds._pods import PodRules
from polyver.kube.server.kinds._rbac import BindingRules, RoleRules
from polyver.kube.server.kinds._registrations import RegistrationRules
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

__all__ = ["RULES"]

RULES: Mapping[str, type[BuiltinRules]] = {
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
    "validatingwebhookconfigurations.admissionregistration.k8s.io": WebhookRules,
}
"""The rules of kinds that are checked; other kinds have only defaults."""
