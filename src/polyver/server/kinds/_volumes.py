"""The volumes of pods: one source each, with what it needs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from polyver.objects.rules import dns_label_problems
from polyver.objects.status import Cause, duplicate, forbidden_field, invalid_field, required
from polyver.server.kinds._checks import check_name
from polyver.server.rules import Object

__all__ = ["check_no_step_back", "check_volumes"]

# The sources in the real server's order: of two, the second is the one that is too many.
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
    """The names of the volumes that are right, and what is wrong with the others."""
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
    """Exactly one of many."""
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
    if check := _KINDS.get(kind):
        yield from check(path, source)
    mode = source.get("defaultMode")
    if mode is not None and not 0 <= mode <= 0o777:
        text = "must be a number between 0 and 0777 (octal), both inclusive"
        yield invalid_field(f"{path}.defaultMode", mode, text)


def _check_host_path(path: str, source: Object) -> Iterator[Cause]:
    if not source.get("path"):
        yield required(f"{path}.path")
    else:
        yield from check_no_step_back(f"{path}.path", source["path"])


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
        place = f"{path}.items[{number}]"
        if not item.get("key"):
            yield required(f"{place}.key")
        if not item.get("path"):
            yield required(f"{place}.path")
        else:
            yield from check_no_step_back(f"{place}.path", item["path"])


_KINDS: Mapping[str, Callable[[str, Object], Iterator[Cause]]] = {
    "configMap": _check_items,
    "hostPath": _check_host_path,
    "nfs": _check_nfs,
    "secret": _check_items,
}
