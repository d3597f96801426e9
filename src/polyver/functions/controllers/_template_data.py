"""Reads the data for the templates of an action: its object with pods, and references."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Any

from polyver.client import Client, Discovery, GroupVersionResource, preferred
from polyver.core import PolyverError
from polyver.core.plain import Object
from polyver.functions.actions import ActionRun, Objects, workload_params
from polyver.kube.objects.kinds import ResourceKind
from polyver.kube.objects.masking import Masks
from polyver.kube.objects.status import ApiError
from polyver.languages.gotemplate import render_value
from polyver.languages.values.names import dns_label_problems, dns_subdomain_problems
from polyver.languages.values.strings import quoted

__all__ = ["NotThere", "gather", "kind_of", "read_workload"]

_PODS = GroupVersionResource("", "v1", "pods")
_SHORT = {"pvc": "persistentvolumeclaim", "pvcs": "persistentvolumeclaims"}
_DATA = {
    "ConfigMap": GroupVersionResource("", "v1", "configmaps"),
    "Secret": GroupVersionResource("", "v1", "secrets"),
}
_MOST_PODS = 500


class NotThere(PolyverError):
    """An object that an action needs does not exist."""


def kind_of(reference: Mapping[str, Any], discovery: Discovery) -> ResourceKind | None:
    """Return the kind of a reference: by kind in any case, or by resource.

    Group and version only count if they are given.
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
    """Return the object of an action, and its data for templates."""
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
        # An invalid name may contain anything, even line ends.
        odd = dns_subdomain_problems(name) or (namespace and dns_label_problems(namespace))
        shown = quoted(full) if odd else full
        raise NotThere(f"there is no {resource.plural} {shown}", at=at) from None


async def _pods(client: Client, obj: Object, namespace: str) -> list[Object]:
    selector = (obj.get("spec") or {}).get("selector")
    if obj["kind"] not in ("Deployment", "StatefulSet", "DaemonSet", "DeploymentConfig"):
        return []
    labels = _labels(selector or {})
    if not labels:
        return []
    listing = await client.list(_PODS, namespace, labels=labels, limit=_MOST_PODS)
    return [pod for pod in listing.items if "deletionTimestamp" not in pod["metadata"]]


def _labels(selector: Mapping[str, Any]) -> str:
    """Return a selector in the syntax of a query."""
    exact = selector.get("matchLabels") if "matchLabels" in selector else None
    if exact is None and "matchExpressions" not in selector:
        exact = selector  # the syntax of old kinds
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
    """Read all objects that an action names; values of Secrets are masked from then on."""
    spec: Mapping[str, Any] = action.snapshot["spec"]
    obj: Object | None = None
    if spec.get("object"):
        obj, _ = await read_workload(client, spec["object"], namespace, at=f"{at}.object")
        _hide(obj, masks)
    named = partial(_named, client, namespace=namespace, masks=masks)
    maps = await named(spec.get("configMaps"), "ConfigMap", at=f"{at}.configMaps")
    secrets = await named(spec.get("secrets"), "Secret", at=f"{at}.secrets")
    return Objects(obj, maps, secrets, await _of_phases(named, action, obj))


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


async def _of_phases(
    named: Callable[..., Awaitable[dict[str, Object]]], action: ActionRun, obj: Object | None
) -> dict[str, dict[str, Object]]:
    """Read the `objects` of phases: Secrets, as in Kanister, and ConfigMaps."""
    found: dict[str, dict[str, Object]] = {}
    spec = action.snapshot["spec"]
    params = {
        "Object": obj or {},
        "Options": spec.get("options") or {},
        **(action.snapshot.get("workload") or {}),
    }
    for number, phase in enumerate(action.snapshot["action"].get("phases") or ()):
        at = f"actions.{action.name}.phases[{number}].objects"
        for kind in _DATA:
            wanted = {
                name: render_value(each, params, name=f"{at}.{name}")
                for name, each in (phase.get("objects") or {}).items()
                if str(each.get("kind") or "").lower() == kind.lower()
            }
            held = await named(wanted, kind, at=at)
            found.setdefault(phase.get("name") or "", {}).update(held)
    return found
