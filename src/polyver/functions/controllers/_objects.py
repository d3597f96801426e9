"""Reads the objects that an action needs, and writes the Secrets with its sensitive outputs.

polyver stores sensitive outputs and artifacts in Secrets instead of the status. The ActionSet owns
these Secrets, so garbage collection deletes them after the ActionSet.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any, Final

import msgspec

from polyver.client import Client, Discovery, GroupVersionResource, find, preferred
from polyver.controllers.owned_objects.ownership import AlreadyOwned, apply_owned
from polyver.core import PolyverError
from polyver.core.plain import Object
from polyver.functions.actions import (
    ActionRun,
    ActionSetRun,
    Objects,
    checked,
    refused,
    start,
    wanted_of,
    workload_params,
)
from polyver.functions.blueprints import Blueprint, blueprint_of
from polyver.functions.blueprints.templates import WORKLOADS
from polyver.functions.controllers.gates import FunctionGates
from polyver.functions.kinds import BLUEPRINTS, GROUP
from polyver.kube.objects import encode_json
from polyver.kube.objects.kinds import ResourceKind
from polyver.kube.objects.masking import Masks
from polyver.kube.objects.owners import controller_of, controlling
from polyver.kube.objects.status import ApiError
from polyver.languages.gotemplate import render_value
from polyver.languages.values.names import dns_label_problems, dns_subdomain_problems
from polyver.languages.values.strings import quoted

__all__ = [
    "NotKept",
    "NotThere",
    "OutputSecrets",
    "begun",
    "gather",
    "is_final",
    "kind_of",
    "read_workload",
]

_PODS = GroupVersionResource("", "v1", "pods")
_SHORT = {"pvc": "persistentvolumeclaim", "pvcs": "persistentvolumeclaims"}
_DATA = {
    "ConfigMap": GroupVersionResource("", "v1", "configmaps"),
    "Secret": GroupVersionResource("", "v1", "secrets"),
}
_MOST_PODS = 500
_BLUEPRINTS = GroupVersionResource(GROUP, "v1alpha1", BLUEPRINTS.definition().names.plural)
_PASSING = (401, 408, 409, 429)
_SECRETS: Final = GroupVersionResource("", "v1", "secrets")
_TYPE: Final = "polyver.dev/action-output"
_KEY: Final = "output"
_MANAGER: Final = "polyver-actions"


class NotThere(PolyverError):
    """An object, its kind or a function version that an action needs does not exist."""


def kind_of(reference: Mapping[str, Any], discovery: Discovery) -> ResourceKind | None:
    """Find the served kind that a reference names, by its kind or by its resource.

    Upper and lower case make no difference. If the reference has a group, the group must match. If
    it has a version, a kind with this version has precedence over kinds with other versions.
    """
    wanted = str(reference.get("kind") or reference.get("resource") or "").lower()
    wanted = _SHORT.get(wanted, wanted)
    group, version = reference.get("group"), reference.get("apiVersion") or ""
    if "/" in version:
        group, _, version = version.partition("/")
    found = [
        kind
        for kind in preferred(discovery.kinds, verbs=("get",)) + list(discovery.kinds)
        if wanted in (kind.kind.lower(), kind.plural, kind.singular)
        and (not group or kind.group == group)
    ]
    exact = [kind for kind in found if not version or kind.version == version]
    return next(iter(exact or found), None)


async def read_workload(
    client: Client, reference: Mapping[str, Any], namespace: str, *, at: str
) -> tuple[Object, dict[str, Any]]:
    """Read the object on which an action runs. Return the object, and its data for templates."""
    kind = kind_of(reference, await client.discover())
    name = reference.get("name") or ""
    if kind is None:
        shown = reference.get("kind") or reference.get("resource") or "without kind or resource"
        raise NotThere(f"the object is a {shown}, which is not served", at=at)
    inside = (reference.get("namespace") or namespace) if kind.namespaced else ""
    obj = await _get(client, GroupVersionResource.of(kind), name, inside, at=at)
    obj = {"apiVersion": kind.api_version, "kind": kind.kind, **obj}
    pods = await _pods(client, obj, inside)
    return obj, workload_params(kind.kind, obj, pods)


async def _get(
    client: Client, resource: GroupVersionResource, name: str, namespace: str, *, at: str
) -> Object:
    if not name:
        raise NotThere(f"the name of the {resource.plural} object is missing", at=at)
    try:
        return await client.get(resource, name, namespace)
    except ApiError as error:
        if error.code != 404:
            raise
        full = f"{namespace}/{name}" if namespace else name
        # Quote an invalid name. It may contain any characters, such as line ends.
        odd = dns_subdomain_problems(name) or (namespace and dns_label_problems(namespace))
        shown = quoted(full) if odd else full
        raise NotThere(f"there is no {resource.plural} {shown}", at=at) from None


async def _pods(client: Client, obj: Object, namespace: str) -> list[Object]:
    selector = (obj.get("spec") or {}).get("selector")
    if obj["kind"] not in WORKLOADS:
        return []
    labels = _labels(selector or {})
    if not labels:
        return []
    listing = await client.list(_PODS, namespace, labels=labels, limit=_MOST_PODS)
    return [pod for pod in listing.items if "deletionTimestamp" not in pod["metadata"]]


def _labels(selector: Mapping[str, Any]) -> str:
    """Convert a label selector to the syntax of the query parameter `labelSelector`: `app=web`."""
    exact = selector.get("matchLabels") if "matchLabels" in selector else None
    if exact is None and "matchExpressions" not in selector:
        exact = selector  # a plain mapping of labels, as in a DeploymentConfig
    found = [f"{name}={value}" for name, value in (exact or {}).items()]
    for each in selector.get("matchExpressions") or ():
        values = f"({','.join(each.get('values') or ())})"
        words = {
            "In": f"{each['key']} in {values}",
            "NotIn": f"{each['key']} notin {values}",
            "Exists": f"{each['key']}",
            "DoesNotExist": f"!{each['key']}",
        }
        found.append(words[each["operator"]])
    return ",".join(found)


async def gather(
    client: Client, action: ActionRun, namespace: str, *, at: str, masks: Masks
) -> Objects:
    """Read all objects that an action names, and add the values of the Secrets to `masks`."""
    spec: Mapping[str, Any] = action.snapshot["spec"]
    obj: Object | None = None
    if spec.get("object"):
        obj, _ = await read_workload(client, spec["object"], namespace, at=f"{at}.object")
        _hide(obj, masks)
    named = partial(_named, client, namespace=namespace, masks=masks)
    maps = await named(spec.get("configMaps"), "ConfigMap", at=f"{at}.configMaps")
    secrets = await named(spec.get("secrets"), "Secret", at=f"{at}.secrets")
    # The `objects` of phases are Secrets, as in Kanister, and ConfigMaps.
    of_phases: dict[str, dict[str, Object]] = {}
    workload = action.snapshot.get("workload") or {}
    params = {"Object": obj or {}, "Options": spec.get("options") or {}, **workload}
    for number, phase in enumerate(action.snapshot["action"].get("phases") or ()):
        path = f"actions.{action.name}.phases[{number}].objects"
        for kind in _DATA:
            wanted = {
                name: render_value(each, params, name=f"{path}.{name}")
                for name, each in (phase.get("objects") or {}).items()
                if str(each.get("kind") or "").lower() == kind.lower()
            }
            held = await named(wanted, kind, at=path)
            of_phases.setdefault(phase.get("name") or "", {}).update(held)
    return Objects(obj, maps, secrets, of_phases)


def _hide(obj: Object, masks: Masks) -> None:
    if obj["kind"] == "Secret":
        masks.add_secret(obj)


async def _named(
    client: Client,
    references: Mapping[str, Any] | None,
    kind: str,
    *,
    namespace: str,
    masks: Masks,
    at: str,
) -> dict[str, Object]:
    found = {}
    for name, each in (references or {}).items():
        inside = each.get("namespace") or namespace
        place = f"{at}.{name}"
        found[name] = {
            "kind": kind,
            **await _get(client, _DATA[kind], each.get("name") or "", inside, at=place),
        }
        _hide(found[name], masks)
    return found


# The start of an ActionSet.


def is_final(error: PolyverError) -> bool:
    """Report whether an error would occur again in a retry.

    This is the case for all errors except transient errors of the API server.
    """
    return not isinstance(error, ApiError) or (
        400 <= error.code < 500 and error.code not in _PASSING
    )


async def begun(
    client: Client, action_set: Object, gates: FunctionGates, *, time: str
) -> ActionSetRun:
    """Read the blueprints and objects of an ActionSet, and return its new run.

    If the ActionSet must not start, the run has a `refusal`.
    """
    namespace = action_set["metadata"].get("namespace", "")
    wanted = wanted_of(action_set)
    try:
        functions = await gates.functions()
        blueprints: dict[str, Blueprint] = {}
        for name in sorted({each.blueprint for each in wanted if each.blueprint}):
            found = await find(client, _BLUEPRINTS, name, namespace)
            if found is None:
                continue  # `start` reports the missing blueprint
            # In a thread: a large blueprint takes time, and must not block the event loop.
            blueprint, problems = await asyncio.to_thread(blueprint_of, found)
            if blueprint is None:
                raise NotThere(f"blueprint {name} cannot be read: {problems[-1].fact}")
            blueprints[name] = blueprint
        run = await asyncio.to_thread(start, wanted, blueprints.get, functions, time=time)
        if run.refusal:
            return run
        # Add the data of the actions' objects. Templates read these data until the run ends.
        for number, action in enumerate(run.actions):
            if reference := action.snapshot["spec"].get("object"):
                at = f"spec.actions[{number}].object"
                _, params = await read_workload(client, reference, namespace, at=at)
                snapshot = {**action.snapshot, "workload": params}
                run = run.with_action(number, replace(action, snapshot=snapshot))
        return await asyncio.to_thread(checked, run, functions)
    except PolyverError as error:
        if not is_final(error):
            raise
        return refused(str(error))


# Secrets with sensitive outputs and artifacts.


class NotKept(PolyverError):
    """A Secret with sensitive outputs cannot be written, or does not exist any more."""


class OutputSecrets:
    """Writes and reads the Secrets with sensitive outputs and artifacts."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def write(self, action_set: Object, part: str, content: dict[str, Any]) -> str:
        """Write a Secret for a part of an ActionSet, such as a phase. Return the Secret's name."""
        namespace, name = action_set["metadata"].get("namespace", ""), _name(action_set, part)
        try:
            await self._apply(action_set, name, namespace, content)
        except ApiError as error:
            if not is_final(error):
                raise
            fact = f"its sensitive outputs cannot be kept in secret {namespace}/{name}"
            raise NotKept(f"{fact}: {error.message}") from None
        return name

    async def _apply(
        self, action_set: Object, name: str, namespace: str, content: dict[str, Any]
    ) -> None:
        there = await find(self._client, _SECRETS, name, namespace)
        if there is not None and controller_of(there) != action_set["metadata"]["uid"]:
            raise _belongs_to_another(name, namespace)
        secret = {
            "apiVersion": "v1",
            "kind": "Secret",
            "type": _TYPE,
            "metadata": {
                "name": name,
                "namespace": namespace,
                "ownerReferences": [controlling(action_set)],
            },
            "data": {_KEY: base64.b64encode(encode_json(content)).decode()},
        }
        try:
            await apply_owned(self._client, _SECRETS, secret, family=_MANAGER, manager=_MANAGER)
        except AlreadyOwned:
            raise _belongs_to_another(name, namespace) from None

    async def read(self, name: str, namespace: str) -> dict[str, Any]:
        """Read the content of a Secret; raise NotKept if it does not exist."""
        found = await find(self._client, _SECRETS, name, namespace)
        encoded = ((found or {}).get("data") or {}).get(_KEY)
        if encoded is None:
            fact = f"the sensitive output of a phase was in secret {namespace}/{name}"
            raise NotKept(f"{fact}, which was deleted", hint="run the ActionSet again")
        content: dict[str, Any] = msgspec.json.decode(base64.b64decode(encoded))
        return content


def _belongs_to_another(name: str, namespace: str) -> NotKept:
    fact = f"secret {namespace}/{name} already exists and has another owner"
    return NotKept(fact, hint="delete it, and run the ActionSet again")


def _name(action_set: Object, part: str) -> str:
    metadata = action_set["metadata"]
    own = hashlib.sha256(metadata["uid"].encode()).hexdigest()[:8]
    return f"{metadata['name'][:200]}-{own}-{part}"
