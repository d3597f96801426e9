"""Validation of the volumes of pods, and of references to fields of a pod."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping

from polyver.core.plain import Object
from polyver.kube.objects.status import (
    Cause,
    duplicate,
    forbidden_field,
    invalid_field,
    required,
    unsupported,
)
from polyver.kube.server.kinds._checks import amount, check_name, check_one_of
from polyver.languages.values.names import dns_label_problems

__all__ = [
    "IN_FILES",
    "IN_VARIABLES",
    "check_field",
    "check_no_step_back",
    "check_resource_field",
    "check_volumes",
]

IN_VARIABLES = frozenset(
    """metadata.name metadata.namespace metadata.uid spec.nodeName spec.serviceAccountName
    status.hostIP status.hostIPs status.podIP status.podIPs""".split()
)
IN_FILES = frozenset(
    """metadata.annotations metadata.labels metadata.name metadata.namespace metadata.uid""".split()
)
_RESOURCES = [
    f"{side}.{name}"
    for side in ("limits", "requests")
    for name in ("cpu", "ephemeral-storage", "memory")
]
_ONE_OF_MAP = re.compile(r"metadata\.(annotations|labels)\['.*'\]")


def check_field(path: str, field: str, known: frozenset[str]) -> Iterator[Cause]:
    field_path = f"{path}.fieldPath"
    if not field:
        yield required(field_path)
    elif field not in IN_VARIABLES | IN_FILES and not _ONE_OF_MAP.fullmatch(field):
        text = f"error converting fieldPath: field label not supported: {field}"
        yield invalid_field(field_path, field, text)
    elif field not in known and not _ONE_OF_MAP.fullmatch(field):
        yield unsupported(field_path, field, sorted(known))


def check_resource_field(path: str, resource: str) -> Iterator[Cause]:
    if not resource:
        yield required(f"{path}.resource")
    elif resource not in _RESOURCES and ".hugepages-" not in resource:
        yield unsupported(f"{path}.resource", resource, _RESOURCES)


# The order of volume sources in kube-apiserver: if two sources are set, the error names the second.
_SOURCES = """
    emptyDir hostPath gitRepo gcePersistentDisk awsElasticBlockStore secret nfs iscsi glusterfs
    flocker persistentVolumeClaim rbd cinder cephfs quobyte downwardAPI fc flexVolume configMap
    azureFile vsphereVolume photonPersistentDisk portworxVolume azureDisk storageos projected
    scaleIO csi ephemeral image""".split()
_NEEDED: Mapping[str, str] = {
    "configMap": "name",
    "csi": "driver",
    "persistentVolumeClaim": "claimName",
    "secret": "secretName",
}


def check_volumes(path: str, volumes: list[Object]) -> tuple[set[str], list[Cause]]:
    """Check volumes; return the names of the valid volumes, and all problems."""
    names: set[str] = set()
    causes: list[Cause] = []
    for number, volume in enumerate(volumes):
        found = list(_check_volume(f"{path}[{number}]", volume, names))
        if not found:
            names.add(volume["name"])
        causes += found
    return names, causes


def _check_volume(path: str, volume: Object, names: set[str]) -> Iterator[Cause]:
    yield from check_source(path, volume, _SOURCES, "must specify a volume type")
    name = volume.get("name") or ""
    if not name:
        yield required(f"{path}.name")
    else:
        yield from check_name(f"{path}.name", name, dns_label_problems)
    if name in names:
        yield duplicate(f"{path}.name", name)


def check_source(path: str, holder: Object, known: list[str], none: str) -> Iterator[Cause]:
    """Yield the problems of a volume source: `holder` must set exactly one source.

    `known` has the names of all sources, and `none` is the message if no source is set.
    """
    given = [name for name in known if holder.get(name) is not None]
    if not given:
        yield required(path, none)
    for number, name in enumerate(given):
        if number:
            text = "may not specify more than 1 volume type"
            yield forbidden_field(f"{path}.{name}", text)
        else:
            yield from _check_kind(f"{path}.{name}", name, holder[name])


def _check_kind(path: str, kind: str, source: Object) -> Iterator[Cause]:
    needed = _NEEDED.get(kind)
    if needed and not source.get(needed):
        yield required(f"{path}.{needed}")
    mode = source.get("defaultMode")
    if mode is not None and not 0 <= mode <= 0o777:
        text = "must be a number between 0 and 0777 (octal), both inclusive"
        yield invalid_field(f"{path}.defaultMode", mode, text)
    if check := _KINDS.get(kind):
        yield from check(path, source)


def _check_host_path(path: str, source: Object) -> Iterator[Cause]:
    if not source.get("path"):
        yield required(f"{path}.path")
    else:
        yield from check_no_step_back(f"{path}.path", source["path"])
    yield from check_one_of(f"{path}.type", source.get("type"), _HOST_PATHS)


_HOST_PATHS = (
    "",
    "BlockDevice",
    "CharDevice",
    "Directory",
    "DirectoryOrCreate",
    "File",
    "FileOrCreate",
    "Socket",
)


def check_no_step_back(field: str, path: str) -> Iterator[Cause]:
    if ".." in path.split("/"):
        yield invalid_field(field, path, "must not contain '..'")


def _check_nfs(path: str, source: Object) -> Iterator[Cause]:
    for name in ("server", "path"):
        if not source.get(name):
            yield required(f"{path}.{name}")
    if source.get("path") and not source["path"].startswith("/"):
        yield invalid_field(f"{path}.path", source["path"], "must be an absolute path")


def _check_items(path: str, source: Object) -> Iterator[Cause]:
    for number, item in enumerate(source.get("items") or ()):
        item_path = f"{path}.items[{number}]"
        if not item.get("key"):
            yield required(f"{item_path}.key")
        if not item.get("path"):
            yield required(f"{item_path}.path")
        else:
            yield from check_no_step_back(f"{item_path}.path", item["path"])


def _check_empty(path: str, source: Object) -> Iterator[Cause]:
    if (size := source.get("sizeLimit")) is not None and amount(size) < 0:
        text = "SizeLimit field must be a valid resource quantity"
        yield forbidden_field(f"{path}.sizeLimit", text)


def _check_downward_api(path: str, source: Object) -> Iterator[Cause]:
    """Yield the problems of a volume source of the type downward API.

    As in kube-apiserver, the field paths in errors do not name the item that has the problem.
    """
    for item in source.get("items") or ():
        if not item.get("path"):
            yield required(f"{path}.path")
        else:
            yield from check_no_step_back(f"{path}.path", item["path"])
        field, resource = item.get("fieldRef"), item.get("resourceFieldRef")
        if field is not None:
            yield from check_field(f"{path}.fieldRef", field.get("fieldPath") or "", IN_FILES)
        elif resource is not None:
            name = resource.get("resource") or ""
            yield from check_resource_field(f"{path}.resourceFieldRef", name)
        else:
            yield required(path, "one of fieldRef and resourceFieldRef is required")


def _check_projected(path: str, source: Object) -> Iterator[Cause]:
    for number, one in enumerate(source.get("sources") or ()):
        item_path = f"{path}.sources[{number}]"
        for kind in ("secret", "configMap"):
            if one.get(kind) is not None:
                if not one[kind].get("name"):
                    yield required(f"{item_path}.{kind}.name")
                yield from _check_items(f"{item_path}.{kind}", one[kind])
        if one.get("downwardAPI") is not None:
            yield from _check_downward_api(f"{item_path}.downwardAPI", one["downwardAPI"])
        if one.get("serviceAccountToken") is not None:
            yield from _check_token(path, item_path, one["serviceAccountToken"])


def _check_token(path: str, item_path: str, token: Object) -> Iterator[Cause]:
    seconds = token.get("expirationSeconds", 3600)
    if seconds < 600:
        text = "may not specify a duration less than 10 minutes"
        yield invalid_field(f"{item_path}.serviceAccountToken.expirationSeconds", seconds, text)
    if not token.get("path"):
        yield required(f"{path}.path")


def _check_ephemeral(path: str, source: Object) -> Iterator[Cause]:
    if source.get("volumeClaimTemplate") is None:
        yield required(f"{path}.volumeClaimTemplate")


_KINDS: Mapping[str, Callable[[str, Object], Iterator[Cause]]] = {
    "configMap": _check_items,
    "downwardAPI": _check_downward_api,
    "emptyDir": _check_empty,
    "ephemeral": _check_ephemeral,
    "hostPath": _check_host_path,
    "nfs": _check_nfs,
    "projected": _check_projected,
    "secret": _check_items,
}
