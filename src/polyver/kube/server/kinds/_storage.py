"""Rules for writes of PersistentVolumeClaims, PersistentVolumes and StorageClasses."""

from __future__ import annotations

from collections.abc import Iterator

from polyver.core.plain import Object
from polyver.kube.objects.status import Cause, forbidden_field, invalid_field, required, unsupported
from polyver.kube.server.kinds._builtin import BuiltinRules
from polyver.kube.server.kinds._checks import (
    amount,
    check_name,
    check_one_of,
    check_selector,
    frozen,
)
from polyver.kube.server.kinds._volumes import check_source
from polyver.languages.values.names import dns_subdomain_problems, label_key_problems

__all__ = ["ClaimRules", "StorageClassRules", "VolumeRules"]

_MODES = ("ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod")
_KEPT = (
    "spec is immutable after creation except resources.requests and volumeAttributesClassName "
    "for bound claims"
)


class ClaimRules(BuiltinRules):
    """Rules for writes of PersistentVolumeClaims. The embedded server provides no volumes for them.

    kube-apiserver adds a finalizer to a claim, which a controller removes later. The embedded
    server has no such controller, so it does not add this finalizer.
    """

    def begin(self, obj: Object) -> None:
        obj["spec"] = _paired(obj["spec"])

    def keep(self, obj: Object, old: Object) -> None:
        del old
        obj["spec"] = _paired(obj["spec"])

    def check_create(self, obj: Object) -> list[Cause]:
        return [*_check_claim("spec", obj["spec"])]

    def check_update(self, obj: Object, old: Object) -> list[Cause]:
        causes = self.check_create(obj)
        if _fixed_claim(obj, old) != _fixed_claim(old, old):
            causes.append(forbidden_field("spec", _KEPT))
        return causes


def _paired(spec: Object) -> Object:
    """If only dataSource or only dataSourceRef is set, set the other field to the same value.

    A dataSourceRef with a namespace is not copied, because dataSource cannot express it.
    """
    source, same = spec.get("dataSource"), spec.get("dataSourceRef")
    if source and same is None:
        return spec | {"dataSourceRef": source}
    if same and source is None and not same.get("namespace"):
        return spec | {"dataSource": same}
    return spec


def _fixed_claim(obj: Object, old: Object) -> Object:
    """Return the fields of a claim that an update must not change.

    `old` is the claim before the update: a bound claim has fewer such fields.
    """
    spec = obj["spec"]
    # Controllers set the volume of a claim, and set the storage class if it is missing.
    free = [name for name in ("volumeName", "storageClassName") if not old["spec"].get(name)]
    if (old.get("status") or {}).get("phase") == "Bound":
        free += ["resources", "volumeAttributesClassName"]
    return {key: value for key, value in spec.items() if key not in free}


def _check_claim(path: str, spec: Object) -> Iterator[Cause]:
    modes = spec.get("accessModes") or []
    if not modes:
        yield required(f"{path}.accessModes", "at least 1 access mode is required")
    yield from check_selector(f"{path}.selector", spec.get("selector"))
    yield from _check_modes(f"{path}.accessModes", modes)
    wanted = ((spec.get("resources") or {}).get("requests") or {}).get("storage")
    if wanted is None:
        yield required(f"{path}.resources[storage]")
    elif amount(wanted) <= 0:
        yield invalid_field(f"{path}.resources[storage]", wanted, "must be greater than zero")
    if spec.get("storageClassName"):
        name = spec["storageClassName"]
        yield from check_name(f"{path}.storageClassName", name, dns_subdomain_problems)
    yield from check_one_of(f"{path}.volumeMode", spec.get("volumeMode"), ("Block", "Filesystem"))


def _check_modes(field: str, modes: list[str]) -> Iterator[Cause]:
    for mode in modes:
        yield from check_one_of(field, mode, _MODES)
    if "ReadWriteOncePod" in modes and len(modes) > 1:
        text = "may not use ReadWriteOncePod with other access modes"
        yield forbidden_field(field, text)


_SOURCES = """
    gcePersistentDisk awsElasticBlockStore hostPath glusterfs nfs rbd quobyte cephfs iscsi cinder
    fc flocker flexVolume azureFile vsphereVolume photonPersistentDisk portworxVolume azureDisk
    scaleIO local storageos csi""".split()


class VolumeRules(BuiltinRules):
    """Defaults and checks for writes of PersistentVolumes.

    The volume source and the volume mode are immutable.
    """

    def check_create(self, obj: Object) -> list[Cause]:
        return [*_check_volume(obj["spec"])]

    def check_update(self, obj: Object, old: Object) -> list[Cause]:
        causes = self.check_create(obj)
        new, before = obj["spec"], old["spec"]
        if [new.get(name) for name in _SOURCES] != [before.get(name) for name in _SOURCES]:
            text = "spec.persistentvolumesource is immutable after creation"
            causes.append(forbidden_field("spec.persistentvolumesource", text))
        causes += frozen("spec.volumeMode", new.get("volumeMode"), before.get("volumeMode"))
        return causes


def _check_volume(spec: Object) -> Iterator[Cause]:
    modes, capacity = spec.get("accessModes") or [], spec.get("capacity") or {}
    if not modes:
        yield required("spec.accessModes")
    yield from _check_modes("spec.accessModes", modes)
    if not capacity:
        yield required("spec.capacity")
    if capacity.keys() != {"storage"}:
        yield unsupported("spec.capacity", dict(capacity) or None, ["storage"])
    for name in sorted(capacity):
        yield from _check_capacity(f"spec.capacity[{name}]", capacity[name])
    policies = ("Delete", "Recycle", "Retain")
    policy = spec.get("persistentVolumeReclaimPolicy")
    yield from check_one_of("spec.persistentVolumeReclaimPolicy", policy, policies)
    yield from check_source("spec", spec, _SOURCES, "must specify a volume type")
    if spec.get("csi") is not None and not spec["csi"].get("volumeHandle"):
        yield required("spec.csi.volumeHandle")
    if spec.get("local") is not None and spec.get("nodeAffinity") is None:
        yield required("spec.nodeAffinity", "Local volume requires node affinity")
    if spec.get("storageClassName"):
        name = spec["storageClassName"]
        yield from check_name("spec.storageClassName", name, dns_subdomain_problems)
    mode = spec.get("volumeMode")
    yield from check_one_of("spec.volumeMode", mode, ("Block", "Filesystem"))


def _check_capacity(field: str, quantity: str) -> Iterator[Cause]:
    if amount(quantity) < 0:
        yield invalid_field(field, int(amount(quantity)), "must be a valid resource quantity")
    if amount(quantity) <= 0:
        yield invalid_field(field, quantity, "must be greater than zero")


class StorageClassRules(BuiltinRules):
    """Defaults and checks for writes of StorageClasses, of which four fields are immutable.

    These are `parameters`, `provisioner`, `reclaimPolicy` and `volumeBindingMode`.
    """

    def check_create(self, obj: Object) -> list[Cause]:
        return [*_check_class(obj)]

    def check_update(self, obj: Object, old: Object) -> list[Cause]:
        names = ("parameters", "provisioner", "reclaimPolicy", "volumeBindingMode")
        return [
            cause
            for name in names
            for cause in frozen(name, obj.get(name), old.get(name), value=None)
        ]


def _check_class(obj: Object) -> Iterator[Cause]:
    provisioner = obj.get("provisioner") or ""
    if provisioner:
        yield from check_name("provisioner", provisioner.lower(), label_key_problems)
    else:
        yield required("provisioner")
    for key in sorted(obj.get("parameters") or {}):
        if not key:
            yield invalid_field("parameters", key, "field can not be empty.")
    yield from check_one_of("reclaimPolicy", obj.get("reclaimPolicy"), ("Delete", "Retain"))
    bindings = ("Immediate", "WaitForFirstConsumer")
    yield from check_one_of("volumeBindingMode", obj.get("volumeBindingMode"), bindings)
