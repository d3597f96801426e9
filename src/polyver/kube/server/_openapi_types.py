"""Descriptions for OpenAPI documents, and the schemas that many documents need.

`kubectl explain` prints the descriptions, so they address people who write manifests.
"""

from __future__ import annotations

from collections.abc import Mapping

__all__ = ["FIELDS", "KINDS", "META", "PARAMETERS", "REF", "STANDARD", "machinery", "referring"]

REF = "#/components/schemas/"
Schema = dict[str, object]


def machinery(name: str) -> str:
    """Return the component name of a type that all API groups use: `apis.meta.v1.Time`."""
    return f"io.k8s.apimachinery.pkg.{name}"


META = machinery("apis.meta.v1.")


def referring(component: str, description: str = "") -> Schema:
    """Build a schema that refers to a component and adds a description.

    The $ref is put into `allOf`, because OpenAPI 3.0 allows no other key beside a $ref.
    """
    reference: Schema = {"$ref": f"{REF}{component}"}
    return {"description": description, "allOf": [reference]} if description else reference


FIELDS = {
    "apiVersion": "The group and version in which this object is written, such as apps/v1.",
    "kind": "The kind of this object, such as Deployment.",
    "metadata": "Name, labels and other data about the object itself.",
    "spec": "The desired state of the object.",
    "status": "The last observed state of the object, written by its controller.",
    "items": "The objects in this list.",
    "action": "The action that the controller took or tried to take.",
    "addressType": "The type of the addresses: IPv4, IPv6 or FQDN.",
    "aggregationRule": "Selects, by label, the roles whose rules this role includes.",
    "allowVolumeExpansion": "Whether a claim may request a larger size after its creation.",
    "allowedTopologies": "The nodes for which storage of this class can be provisioned.",
    "automountServiceAccountToken": "Whether pods of this account get its token as a mounted file.",
    "binaryData": "Binary values by key, in base64; a key must not be in data as well.",
    "count": "The number of times that this event occurred.",
    "data": "The stored values, by key.",
    "deprecatedCount": "The number of occurrences, for clients of core/v1 events.",
    "deprecatedFirstTimestamp": "The time of the first occurrence, for clients of core/v1 events.",
    "deprecatedLastTimestamp": "The time of the last occurrence, for clients of core/v1 events.",
    "deprecatedSource": "The component that reported the event, for clients of core/v1 events.",
    "endpoints": "The addresses, each with its conditions.",
    "eventTime": "The time of the first occurrence, with microseconds.",
    "firstTimestamp": "The time of the first occurrence.",
    "imagePullSecrets": "The secrets with which pods of this account pull their images.",
    "immutable": "If true, the data cannot be changed; the object can still be deleted.",
    "involvedObject": "The object that the event is about.",
    "lastTimestamp": "The time of the last occurrence.",
    "message": "A description of the event, for people to read.",
    "mountOptions": "Mount options for volumes of this class.",
    "note": "A description of the event, for people to read.",
    "parameters": "Parameters for the provisioner, by name.",
    "ports": "The ports, which all of the addresses have.",
    "provisioner": "The provisioner that creates volumes of this class.",
    "reason": "The reason for the event, as one word that programs can compare.",
    "reclaimPolicy": "The action on a volume that is released by its claim: Delete or Retain.",
    "regarding": "The object that the event is about.",
    "related": "A second object that is involved in the event.",
    "reportingComponent": "The name of the controller that reported the event.",
    "reportingController": "The name of the controller that reported the event.",
    "reportingInstance": "The instance of the controller that reported the event.",
    "revision": "The revision number; a later revision has a higher number.",
    "roleRef": "The role that is granted; it cannot be changed.",
    "rules": "The permissions of this role; they add up.",
    "secrets": "The secrets that pods of this account may use.",
    "series": "The count and the last time of an event that occurred repeatedly.",
    "source": "The component that reported the event.",
    "stringData": "String values by key; write-only: the server stores them in data.",
    "subjects": "The users, groups and service accounts that are granted the role.",
    "subsets": "The addresses, together with their ports.",
    "type": "The type of this object; its values depend on the kind.",
    "volumeBindingMode": "Whether volumes are bound immediately or when a pod first uses them.",
    "webhooks": "The webhooks, their matching requests and their failure policies.",
}
"""The description of each top-level field of a kind, by the name of the field."""

KINDS: Mapping[str, str] = {
    "APIService": "Registers the server of one version of an API group, and its priority.",
    "ClusterRole": "Permissions for all namespaces and for cluster-scoped objects.",
    "ClusterRoleBinding": "Grants a cluster role in the whole cluster.",
    "ConfigMap": "Configuration values that programs read, by key.",
    "ControllerRevision": "A saved state to which a controller can roll back.",
    "CronJob": "Creates jobs on a schedule.",
    "CustomResourceDefinition": "Defines a custom kind, which is served like a built-in one.",
    "DaemonSet": "Runs one pod on each node, or on each selected node.",
    "Deployment": "Runs identical pods; replaces them step by step when the template changes.",
    "EndpointSlice": "Some of the addresses behind a service.",
    "Endpoints": "All addresses behind a service, in one object.",
    "Event": "A report of something that happened to an object.",
    "HorizontalPodAutoscaler": "Sets the number of pods of a workload from measured metrics.",
    "Ingress": "Rules that route HTTP requests from outside the cluster to services.",
    "IngressClass": "Names the controller that implements an ingress.",
    "Job": "Runs pods until a given number of them succeeds.",
    "Lease": "Records the current holder of a lock, and how long its hold is valid.",
    "LimitRange": "Limits and defaults for pods, containers and claims of a namespace.",
    "LocalSubjectAccessReview": "Checks whether a user may perform an action in one namespace.",
    "MutatingWebhookConfiguration": "Webhooks that may change objects before they are stored.",
    "Namespace": "A scope for names: a name is unique for its kind in a namespace.",
    "NetworkPolicy": "The connections that pods of a namespace may accept and open.",
    "Node": "A machine on which pods run.",
    "PersistentVolume": "A piece of storage that outlives the pods that use it.",
    "PersistentVolumeClaim": "A request for storage, and the volume that was bound to it.",
    "Pod": "Containers that run together on one node.",
    "PodDisruptionBudget": "Limits how many pods of a set may be evicted at a time.",
    "PodTemplate": "A template from which pods are created.",
    "ReplicaSet": "Runs a given number of identical pods.",
    "ReplicationController": "Runs a given number of identical pods; ReplicaSet is its successor.",
    "ResourceQuota": "Limits the total amount of resources that a namespace uses.",
    "Role": "Permissions in one namespace.",
    "RoleBinding": "Grants a role in one namespace.",
    "Scale": "The desired and the current number of replicas of an object.",
    "Secret": "Confidential values, by key.",
    "SelfSubjectAccessReview": "Checks whether the current user may perform an action.",
    "SelfSubjectReview": "Returns the name and groups of the current user.",
    "SelfSubjectRulesReview": "Lists the actions that the current user may perform in a namespace.",
    "Service": "One stable address for a set of pods.",
    "ServiceAccount": "An identity for programs that call this server.",
    "StatefulSet": "Runs pods with stable names, each with storage of its own.",
    "StorageClass": "A class of storage, and the provisioner of its volumes.",
    "StorageVersionMigration": "Stores all objects of a resource in its storage version.",
    "SubjectAccessReview": "Checks whether a user may perform an action.",
    "TokenRequest": "Requests a token for a service account.",
    "TokenReview": "Checks a token and returns the user that it belongs to.",
    "ValidatingWebhookConfiguration": "Webhooks that may reject objects before they are stored.",
}


def _text(description: str) -> Schema:
    return {"description": description, "type": "string"}


def _number(description: str, size: str = "int64") -> Schema:
    return {"description": description, "type": "integer", "format": size}


def _flag(description: str) -> Schema:
    return {"description": description, "type": "boolean"}


def _texts(description: str) -> Schema:
    return {
        "description": description,
        "type": "object",
        "additionalProperties": {"type": "string"},
    }


def _list(description: str, items: Schema, **extensions: object) -> Schema:
    named = {f"x-kubernetes-{key.replace('_', '-')}": value for key, value in extensions.items()}
    return {"description": description, "type": "array", "items": items, **named}


def _object(description: str, required: tuple[str, ...] = (), /, **fields: Schema) -> Schema:
    needed = {"required": list(required)} if required else {}
    return {"description": description, "type": "object", **needed, "properties": fields}


_TYPED = {"apiVersion": _text(FIELDS["apiVersion"]), "kind": _text(FIELDS["kind"])}

_OBJECT_META = _object(
    "Metadata that every object has.",
    annotations=_texts("Values of any form by key; selectors do not use them."),
    creationTimestamp=referring(f"{META}Time", "The time of creation; set by the server."),
    deletionGracePeriodSeconds=_number("The time for a graceful shutdown, in seconds."),
    deletionTimestamp=referring(
        f"{META}Time", "The time of the delete request; set by the server."
    ),
    finalizers=_list(
        "Names of pending clean-up tasks; the object is removed when this list is empty.",
        {"type": "string"},
        list_type="set",
        patch_strategy="merge",
    ),
    generateName=_text("A prefix, to which the server adds a random suffix to make the name."),
    generation=_number("A number that grows when the desired state changes; set by the server."),
    labels=_texts("Short values by key; selectors match objects by them."),
    managedFields=_list(
        "The fields that each manager set.",
        referring(f"{META}ManagedFieldsEntry"),
        list_type="atomic",
    ),
    name=_text("The name, unique among the objects of this kind in a namespace."),
    namespace=_text("The namespace of this object; empty for a cluster-scoped object."),
    ownerReferences=_list(
        "The owners of this object; it is deleted when all of them are deleted.",
        referring(f"{META}OwnerReference"),
        list_map_keys=["uid"],
        list_type="map",
        patch_merge_key="uid",
        patch_strategy="merge",
    ),
    resourceVersion=_text("Changes with every write; compare it for equality only."),
    selfLink=_text("No longer used."),
    uid=_text(
        "Unique for each object, also among objects that had the same name; set by the server."
    ),
)

_OWNER: Schema = {
    **_object(
        "A reference to an owner of the object.",
        ("apiVersion", "kind", "name", "uid"),
        apiVersion=_text("The owner's group and version."),
        blockOwnerDeletion=_flag(
            "Whether a foreground deletion of the owner waits for this object."
        ),
        controller=_flag("Whether this owner is the controller; at most one owner is."),
        kind=_text("The owner's kind."),
        name=_text("The owner's name."),
        uid=_text("The owner's uid."),
    ),
    "x-kubernetes-map-type": "atomic",
}

_MANAGED = _object(
    "The fields that one manager set with one operation in one version.",
    apiVersion=_text("The version in which the fields were set."),
    fieldsType=_text("The format of the fields: FieldsV1."),
    fieldsV1=referring(f"{META}FieldsV1", "The fields."),
    manager=_text("The name of the field manager."),
    operation=_text("The operation that set the fields: Apply or Update."),
    subresource=_text(
        "The subresource through which the fields were set; empty for the object itself."
    ),
    time=referring(f"{META}Time", "The time of the last change to these fields."),
)

_DELETE_OPTIONS = _object(
    "Options of a delete request.",
    **_TYPED,
    dryRun=_list(
        "All: process the request, but delete nothing.", {"type": "string"}, list_type="atomic"
    ),
    gracePeriodSeconds=_number("The time for a graceful shutdown, in seconds."),
    ignoreStoreReadErrorWithClusterBreakingPotential=_flag(
        "Whether to delete an object that cannot be decoded."
    ),
    orphanDependents=_flag("Use propagationPolicy instead."),
    preconditions=referring(
        f"{META}Preconditions", "Conditions that must hold, or the request fails."
    ),
    propagationPolicy=_text("The deletion of dependents: Orphan, Background or Foreground."),
)

_STATUS = _object(
    "The result of a request that returns no object.",
    **_TYPED,
    code=_number("The HTTP status code.", "int32"),
    details=referring(
        f"{META}StatusDetails",
        "The object and the causes that the message refers to, for programs.",
    ),
    message=_text("A description of the result, for people to read."),
    metadata=referring(f"{META}ListMeta", "Metadata of a list."),
    reason=_text("The reason for the failure, in one word."),
    status=_text("Success or Failure."),
)

_STATUS_DETAILS = _object(
    "The object that a status refers to, and the causes of a failure.",
    causes=_list("All causes of the failure.", referring(f"{META}StatusCause"), list_type="atomic"),
    group=_text("The group of the object."),
    kind=_text("The kind of the object, or its resource."),
    name=_text("The name of the object."),
    retryAfterSeconds=_number("The number of seconds after which to retry.", "int32"),
    uid=_text("The uid of the object."),
)

STANDARD: Mapping[str, Schema] = {
    machinery("api.resource.Quantity"): {
        "description": "An amount, such as 2, 500m or 1.5Gi.",
        "oneOf": [{"type": "string"}, {"type": "number"}],
    },
    machinery("util.intstr.IntOrString"): {
        "description": "An integer or a string.",
        "format": "int-or-string",
        "oneOf": [{"type": "integer"}, {"type": "string"}],
    },
    machinery("runtime.RawExtension"): {"description": "Any object.", "type": "object"},
    f"{META}Time": {
        "description": "A time to the second, as 2006-01-02T15:04:05Z.",
        "type": "string",
        "format": "date-time",
    },
    f"{META}MicroTime": {
        "description": "A time to the microsecond, as 2006-01-02T15:04:05.000000Z.",
        "type": "string",
        "format": "date-time",
    },
    f"{META}FieldsV1": {"description": "A set of field paths, as a tree.", "type": "object"},
    f"{META}Patch": {"description": "A patch, in one of several formats.", "type": "object"},
    f"{META}ObjectMeta": _OBJECT_META,
    f"{META}OwnerReference": _OWNER,
    f"{META}ManagedFieldsEntry": _MANAGED,
    f"{META}ListMeta": _object(
        "Metadata that every list has.",
        **{"continue": _text("A token that requests the next page of the list.")},
        remainingItemCount=_number("The number of objects on the remaining pages, if known."),
        resourceVersion=_text("The revision that this list shows; a watch can start from it."),
        selfLink=_text("No longer used."),
    ),
    f"{META}DeleteOptions": _DELETE_OPTIONS,
    f"{META}Preconditions": _object(
        "Conditions that must hold for a deletion.",
        resourceVersion=_text("The resourceVersion that the object must have."),
        uid=_text("The uid that the object must have."),
    ),
    f"{META}Status": _STATUS,
    f"{META}StatusDetails": _STATUS_DETAILS,
    f"{META}StatusCause": _object(
        "One cause of a failure.",
        field=_text("The field, such as spec.ports[0].name."),
        message=_text("A description of the cause, for people to read."),
        reason=_text("The cause, in one word."),
    ),
}
"""The schemas of types that many OpenAPI documents use, by component name."""

PARAMETERS: Mapping[str, tuple[str, str]] = {
    "allowWatchBookmarks": (
        "boolean",
        "Whether a watch sends bookmark events with its current revision.",
    ),
    "continue": ("string", "The continue token of the previous page."),
    "dryRun": ("string", "All: process the request, but store nothing."),
    "fieldManager": ("string", "The name of the field manager; required for apply."),
    "fieldSelector": ("string", "Select objects by field, such as metadata.name=a."),
    "fieldValidation": (
        "string",
        "The handling of unknown and duplicate fields: Ignore them, Warn (the default), or"
        " Strict: reject the request.",
    ),
    "force": ("boolean", "Whether to take over fields of other managers; for apply only."),
    "gracePeriodSeconds": ("integer", "The time for a graceful shutdown, in seconds."),
    "labelSelector": ("string", "Select objects by label, such as app=web."),
    "limit": ("integer", "The maximum number of objects to return."),
    "orphanDependents": ("boolean", "Use propagationPolicy instead."),
    "pretty": ("string", "Whether to indent the response."),
    "propagationPolicy": (
        "string",
        "The deletion of dependents: Orphan, Background or Foreground.",
    ),
    "resourceVersion": ("string", "The revision to read, or to start a watch from."),
    "resourceVersionMatch": ("string", "The meaning of resourceVersion: Exact or NotOlderThan."),
    "sendInitialEvents": (
        "boolean",
        "Whether a watch starts with events for all existing objects.",
    ),
    "timeoutSeconds": ("integer", "The number of seconds after which a list or a watch ends."),
    "watch": ("boolean", "Whether to stream changes instead of returning a list."),
}
"""The query parameters by name, each with its type and its description."""
