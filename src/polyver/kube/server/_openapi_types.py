"""Descriptions in OpenAPI documents, and the types that every document needs.

`kubectl explain` prints these descriptions, so they address people who write manifests.
"""

from __future__ import annotations

from collections.abc import Mapping

__all__ = ["FIELDS", "KINDS", "META", "PARAMETERS", "REF", "STANDARD", "machinery", "referring"]

REF = "#/components/schemas/"
Schema = dict[str, object]


def machinery(name: str) -> str:
    """Return the component name of a type that all groups share: `apis.meta.v1.Time`."""
    return f"io.k8s.apimachinery.pkg.{name}"


META = machinery("apis.meta.v1.")


def referring(component: str, description: str = "") -> Schema:
    """Return a reference to a component; OpenAPI 3.0 allows no other keys beside a $ref."""
    reference: Schema = {"$ref": f"{REF}{component}"}
    return {"description": description, "allOf": [reference]} if description else reference


FIELDS = {
    "apiVersion": "The group and version in which this object is written, such as apps/v1.",
    "kind": "What this object is, such as Deployment.",
    "metadata": "Which object this is, and what is noted about it.",
    "spec": "What is wanted.",
    "status": "What was last seen; written by whoever brings about what is wanted.",
    "items": "The objects in this list.",
    "action": "What was being done when this happened.",
    "addressType": "Whether the addresses are IPv4, IPv6 or names.",
    "aggregationRule": "Which other roles this one is put together from, by their labels.",
    "allowVolumeExpansion": "Whether a claim may ask for more later on.",
    "allowedTopologies": "Where storage of this sort can be.",
    "automountServiceAccountToken": "Whether pods of this account find its token in a file.",
    "binaryData": "Bytes by name, in base64; no name may be in data as well.",
    "count": "How often this happened.",
    "data": "What is kept.",
    "deprecatedCount": "How often this happened, for readers of the older form.",
    "deprecatedFirstTimestamp": "When this first happened, for readers of the older form.",
    "deprecatedLastTimestamp": "When this last happened, for readers of the older form.",
    "deprecatedSource": "Who told of this, for readers of the older form.",
    "endpoints": "The addresses, each with how it fares.",
    "eventTime": "When this first happened, to the microsecond.",
    "firstTimestamp": "When this first happened.",
    "imagePullSecrets": "The secrets with which pods of this account fetch their images.",
    "immutable": "Whether what is kept can no longer be changed, until the object is deleted.",
    "involvedObject": "The object to which this happened.",
    "lastTimestamp": "When this last happened.",
    "message": "What happened, for people to read.",
    "mountOptions": "Options with which storage of this sort is mounted.",
    "note": "What happened, for people to read.",
    "parameters": "What the provider is told, by name.",
    "ports": "The ports, which all of the addresses have.",
    "provisioner": "Who provides storage of this sort.",
    "reason": "Why this happened, in one word that programs can compare.",
    "reclaimPolicy": "What becomes of storage that is no longer claimed.",
    "regarding": "The object to which this happened.",
    "related": "Another object that has to do with it.",
    "reportingComponent": "Which controller told of this.",
    "reportingController": "Which controller told of this.",
    "reportingInstance": "Which instance of that controller it was.",
    "revision": "The number of this state; a later one has a higher number.",
    "roleRef": "The role that is granted; it cannot be changed.",
    "rules": "What may be done, rule by rule; each one adds to the others.",
    "secrets": "The secrets that pods of this account may use.",
    "series": "How this went on, if it happened again and again.",
    "source": "Who told of this.",
    "stringData": "Texts by name; they are written into data, and never shown.",
    "subjects": "Who is granted the role.",
    "subsets": "The addresses, together with the ports that they have.",
    "type": "Of which sort this is.",
    "volumeBindingMode": "Whether storage is provided at once, or when a pod needs it.",
    "webhooks": "Who is asked, about what, and what happens if there is no answer.",
}
"""Descriptions of the top-level fields of kinds, by name."""

KINDS: Mapping[str, str] = {
    "APIService": "Who serves a version of an API group, and its place among the others.",
    "ClusterRole": "What may be done in all namespaces and with objects outside of them.",
    "ClusterRoleBinding": "Who has a cluster role everywhere.",
    "ConfigMap": "Settings by name, for programs to read.",
    "ControllerRevision": "A state that a controller keeps to be able to return to it.",
    "CronJob": "A job that is started again and again, at given times.",
    "CustomResourceDefinition": "A kind of objects that is served as if it were built in.",
    "DaemonSet": "A pod on every node, or on those that are selected.",
    "Deployment": "A number of equal pods that are replaced step by step when they change.",
    "EndpointSlice": "Some of the addresses behind a service.",
    "Endpoints": "The addresses behind a service, in one object.",
    "Event": "Something that happened to an object and that people may want to know.",
    "HorizontalPodAutoscaler": "How many pods something has, depending on what is measured.",
    "Ingress": "How requests from outside find their services.",
    "IngressClass": "Which controller serves an ingress.",
    "Job": "Work that is done once, and tried again until it is.",
    "Lease": "Who holds something at the moment, and until when.",
    "LimitRange": "How much a pod, a container or a claim in a namespace may ask for.",
    "LocalSubjectAccessReview": "Asks whether somebody may do something in one namespace.",
    "MutatingWebhookConfiguration": "Who is asked to change objects before they are stored.",
    "Namespace": "A room for objects, in which names are unique.",
    "NetworkPolicy": "Who may talk with the pods of a namespace.",
    "Node": "A machine on which pods run.",
    "PersistentVolume": "A piece of storage that outlives the pods that use it.",
    "PersistentVolumeClaim": "Somebody's wish for storage, and what it was granted.",
    "Pod": "Containers that run together on one node.",
    "PodDisruptionBudget": "How many pods of a set may be missing at a time.",
    "PodTemplate": "Pods to be made, kept as an object.",
    "ReplicaSet": "A number of equal pods.",
    "ReplicationController": "A number of equal pods, as it was written before replica sets.",
    "ResourceQuota": "How much a namespace may use in all.",
    "Role": "What may be done in one namespace.",
    "RoleBinding": "Who has a role in one namespace.",
    "Scale": "How many instances something has, and how many it shall have.",
    "Secret": "Settings that not everybody may read.",
    "SelfSubjectAccessReview": "Asks whether the asker may do something.",
    "SelfSubjectReview": "Asks who the asker is.",
    "SelfSubjectRulesReview": "Asks for everything that the asker may do in a namespace.",
    "Service": "One address for several pods.",
    "ServiceAccount": "Who a program is, when it talks to this server.",
    "StatefulSet": "Pods with lasting names and storage of their own.",
    "StorageClass": "A sort of storage, and who provides it.",
    "SubjectAccessReview": "Asks whether somebody may do something.",
    "TokenRequest": "Asks for a token of a service account.",
    "TokenReview": "Asks whose token this is.",
    "ValidatingWebhookConfiguration": "Who is asked to refuse objects before they are stored.",
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
    "The part that all objects have.",
    annotations=_texts("Notes of any form about this object, by key; nothing is selected by them."),
    creationTimestamp=referring(f"{META}Time", "When this object was created; set by the server."),
    deletionGracePeriodSeconds=_number("How long this object has to end in good order."),
    deletionTimestamp=referring(f"{META}Time", "When deletion was asked for; set by the server."),
    finalizers=_list(
        "Who still has something to do before this object may go: it stays until this is empty.",
        {"type": "string"},
        list_type="set",
        patch_strategy="merge",
    ),
    generateName=_text("The beginning of the name, if the server is to choose the rest."),
    generation=_number("Counts the changes of what is wanted; set by the server."),
    labels=_texts("Short values by key, by which objects are selected."),
    managedFields=_list(
        "Who set which field.",
        referring(f"{META}ManagedFieldsEntry"),
        list_type="atomic",
    ),
    name=_text("The name, unique among the objects of this kind in a namespace."),
    namespace=_text("The namespace in which this object is; empty for those outside of any."),
    ownerReferences=_list(
        "The objects to which this one belongs: it is deleted when all of them are gone.",
        referring(f"{META}OwnerReference"),
        list_map_keys=["uid"],
        list_type="map",
        patch_merge_key="uid",
        patch_strategy="merge",
    ),
    resourceVersion=_text("Changes with every write; compare it for equality only."),
    selfLink=_text("Not used any more."),
    uid=_text("Tells this object from others that had the same name; set by the server."),
)

_OWNER: Schema = {
    **_object(
        "An object to which another one belongs.",
        ("apiVersion", "kind", "name", "uid"),
        apiVersion=_text("The owner's group and version."),
        blockOwnerDeletion=_flag(
            "Whether the owner waits for this object in a foreground deletion."
        ),
        controller=_flag("Whether the owner looks after this object; only one of them may."),
        kind=_text("The owner's kind."),
        name=_text("The owner's name."),
        uid=_text("The owner's uid."),
    ),
    "x-kubernetes-map-type": "atomic",
}

_MANAGED = _object(
    "What one manager set, in one way, in one version.",
    apiVersion=_text("The version in which the fields were set."),
    fieldsType=_text("How the fields are written: FieldsV1."),
    fieldsV1=referring(f"{META}FieldsV1", "The fields."),
    manager=_text("Who set them."),
    operation=_text("Whether they were set with Apply or with Update."),
    subresource=_text(
        "The part of the object through which they were set, if it was not all of it."
    ),
    time=referring(f"{META}Time", "When one of them was last set."),
)

_DELETE_OPTIONS = _object(
    "How an object is to be deleted.",
    **_TYPED,
    dryRun=_list(
        "All, if nothing is to be deleted really.", {"type": "string"}, list_type="atomic"
    ),
    gracePeriodSeconds=_number("How long the object has to end in good order."),
    ignoreStoreReadErrorWithClusterBreakingPotential=_flag(
        "Whether to delete an object that cannot be read any more."
    ),
    orphanDependents=_flag("Use propagationPolicy instead."),
    preconditions=referring(f"{META}Preconditions", "What has to hold, or nothing is deleted."),
    propagationPolicy=_text(
        "What happens to objects that belong to this one: Orphan, Background or Foreground."
    ),
)

_STATUS = _object(
    "The outcome of a request that has no object to show.",
    **_TYPED,
    code=_number("The HTTP status.", "int32"),
    details=referring(f"{META}StatusDetails", "What the message is about, for programs."),
    message=_text("What happened, for people."),
    metadata=referring(f"{META}ListMeta", "As in a list."),
    reason=_text("Why the request failed, in one word."),
    status=_text("Success or Failure."),
)

_STATUS_DETAILS = _object(
    "What a status is about.",
    causes=_list("All that was wrong.", referring(f"{META}StatusCause"), list_type="atomic"),
    group=_text("The group of the object."),
    kind=_text("The kind of the object, or its resource."),
    name=_text("The name of the object."),
    retryAfterSeconds=_number("When to try again.", "int32"),
    uid=_text("The uid of the object."),
)

STANDARD: Mapping[str, Schema] = {
    machinery("api.resource.Quantity"): {
        "description": "An amount, such as 2, 500m or 1.5Gi.",
        "oneOf": [{"type": "string"}, {"type": "number"}],
    },
    machinery("util.intstr.IntOrString"): {
        "description": "A number or a text.",
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
    f"{META}FieldsV1": {"description": "A set of fields, as a tree.", "type": "object"},
    f"{META}Patch": {"description": "A change, in one of several forms.", "type": "object"},
    f"{META}ObjectMeta": _OBJECT_META,
    f"{META}OwnerReference": _OWNER,
    f"{META}ManagedFieldsEntry": _MANAGED,
    f"{META}ListMeta": _object(
        "The part that all lists have.",
        **{"continue": _text("Where the rest of the list begins, for the next request.")},
        remainingItemCount=_number("How many objects the rest of the list has, if that is known."),
        resourceVersion=_text("The state of the server that this list shows; watch from here."),
        selfLink=_text("Not used any more."),
    ),
    f"{META}DeleteOptions": _DELETE_OPTIONS,
    f"{META}Preconditions": _object(
        "What has to hold before an object is deleted.",
        resourceVersion=_text("The resourceVersion that the object has to have."),
        uid=_text("The uid that the object has to have."),
    ),
    f"{META}Status": _STATUS,
    f"{META}StatusDetails": _STATUS_DETAILS,
    f"{META}StatusCause": _object(
        "One of the things that were wrong.",
        field=_text("Where, such as spec.ports[0].name."),
        message=_text("What was wrong, for people."),
        reason=_text("What was wrong, in one word."),
    ),
}
"""The types that documents share, by component name."""

PARAMETERS: Mapping[str, tuple[str, str]] = {
    "allowWatchBookmarks": ("boolean", "Whether a watch also tells how far it has come."),
    "continue": ("string", "Where to go on, from the metadata of the list before."),
    "dryRun": ("string", "All, if everything is to be done but not stored."),
    "fieldManager": ("string", "Who is making this change; needed to apply."),
    "fieldSelector": ("string", "Only objects with these fields, such as metadata.name=a."),
    "fieldValidation": (
        "string",
        "What to do about unknown and repeated fields: Ignore them, Warn of them (if nothing"
        " else is said), or be Strict and refuse the request.",
    ),
    "force": ("boolean", "Whether to take over fields that others own; for apply alone."),
    "gracePeriodSeconds": ("integer", "How long the object has to end in good order."),
    "labelSelector": ("string", "Only objects with these labels, such as app=web."),
    "limit": ("integer", "How many objects to answer with at most."),
    "orphanDependents": ("boolean", "Use propagationPolicy instead."),
    "pretty": ("string", "Whether to indent the answer."),
    "propagationPolicy": (
        "string",
        "What happens to objects that belong to this one: Orphan, Background or Foreground.",
    ),
    "resourceVersion": ("string", "The state of the server to answer from, or to watch from."),
    "resourceVersionMatch": ("string", "Whether that state is meant Exact or NotOlderThan."),
    "sendInitialEvents": ("boolean", "Whether a watch begins with all that is there."),
    "timeoutSeconds": ("integer", "When to end a list or a watch."),
    "watch": ("boolean", "Whether to go on with all changes, as they happen."),
}
"""The query parameters: type and description."""
