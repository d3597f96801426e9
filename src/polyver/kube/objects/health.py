"""The health of an object, determined from its status.

For some built-in kinds, this module knows which fields of the status matter. An object of any other
kind is healthy if its condition `Ready` is True, or if it has no such condition.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Final

from msgspec import Struct

from polyver.core.plain import ReadOnlyObject

__all__ = ["HEALTHY", "Health", "health_of"]


class Health(Struct, frozen=True, gc=False):
    """The health of an object.

    If it is not healthy, `message` states why, such as `is Pending, not Bound`.
    """

    healthy: bool
    message: str = ""


HEALTHY: Final = Health(True)


def health_of(obj: ReadOnlyObject) -> Health:
    """Determine from the status of an object whether the object is healthy.

    >>> health_of({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}})
    Health(healthy=True, message='')
    >>> pending = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {}}
    >>> health_of({**pending, "status": {"phase": "Pending"}}).message
    'is Pending, not Bound'
    """
    if _part(obj, "metadata").get("deletionTimestamp"):
        return Health(False, "is being deleted")
    group = str(obj.get("apiVersion", "")).rpartition("/")[0]
    look = _BY_KIND.get((group, str(obj.get("kind", ""))), _by_condition)
    message = next(look(obj), "")
    return Health(False, message) if message else HEALTHY


# Each function yields the reasons why an object is not healthy, the most important first.


def _deployment(obj: ReadOnlyObject) -> Iterator[str]:
    yield from _unseen(obj)
    late = _condition(obj, "Progressing")
    if late.get("reason") == "ProgressDeadlineExceeded":
        yield _condition_message(late, "makes no progress")
    wanted, status = _wanted(obj), _part(obj, "status")
    yield from _too_few(_number(status, "updatedReplicas"), wanted, "replicas are up to date")
    yield from _too_few(_number(status, "availableReplicas"), wanted, "replicas are available")
    if _number(status, "replicas") > wanted:
        yield f"{_number(status, 'replicas') - wanted} old replicas still exist"


def _stateful_set(obj: ReadOnlyObject) -> Iterator[str]:
    yield from _unseen(obj)
    wanted, status = _wanted(obj), _part(obj, "status")
    yield from _too_few(_number(status, "readyReplicas"), wanted, "replicas are ready")
    strategy = _part(_part(obj, "spec"), "updateStrategy")
    if strategy.get("type", "RollingUpdate") == "RollingUpdate":
        kept = _number(_part(strategy, "rollingUpdate"), "partition")
        updated = _number(status, "updatedReplicas")
        yield from _too_few(updated, max(wanted - kept, 0), "replicas are up to date")


def _replica_set(obj: ReadOnlyObject) -> Iterator[str]:
    yield from _unseen(obj)
    ready = _number(_part(obj, "status"), "readyReplicas")
    yield from _too_few(ready, _wanted(obj), "replicas are ready")


def _daemon_set(obj: ReadOnlyObject) -> Iterator[str]:
    yield from _unseen(obj)
    status = _part(obj, "status")
    if "desiredNumberScheduled" not in status:
        yield "has no status yet"
    wanted = _number(status, "desiredNumberScheduled")
    updated = _number(status, "updatedNumberScheduled")
    if _part(_part(obj, "spec"), "updateStrategy").get("type") != "OnDelete":
        yield from _too_few(updated, wanted, "pods are up to date")
    yield from _too_few(_number(status, "numberReady"), wanted, "pods are ready")


def _job(obj: ReadOnlyObject) -> Iterator[str]:
    failed = _condition(obj, "Failed")
    if failed.get("status") == "True":
        yield _condition_message(failed, "has failed")
    spec, status = _part(obj, "spec"), _part(obj, "status")
    if _condition(obj, "Complete").get("status") == "True" or spec.get("suspend") is True:
        return
    yield f"{_number(status, 'succeeded')} of {_number(spec, 'completions', 1)} pods have succeeded"


def _pod(obj: ReadOnlyObject) -> Iterator[str]:
    status = _part(obj, "status")
    phase = status.get("phase") or "Pending"
    if phase == "Succeeded" or _condition(obj, "Ready").get("status") == "True":
        return
    waits = [*_waits(status)]
    message = str(status.get("message") or "")
    more = waits[0] if waits else _condition_message(_condition(obj, "Ready"), message)
    yield f"is {phase}, not ready" + (f": {more}" if more else "")


def _waits(status: ReadOnlyObject) -> Iterator[str]:
    for each in _items(status, "containerStatuses"):
        if why := _part(_part(each, "state"), "waiting"):
            yield f"container {each.get('name')}: {why.get('message') or why.get('reason')}"


def _phase(wanted: str) -> Callable[[ReadOnlyObject], Iterator[str]]:
    def look(obj: ReadOnlyObject) -> Iterator[str]:
        phase = _part(obj, "status").get("phase") or "Pending"
        if phase != wanted:
            yield f"is {phase}, not {wanted}"

    return look


def _service(obj: ReadOnlyObject) -> Iterator[str]:
    if _part(obj, "spec").get("type") == "LoadBalancer":
        balancer = _part(_part(obj, "status"), "loadBalancer")
        if not balancer.get("ingress"):
            yield "has no address yet"


def _has(name: str) -> Callable[[ReadOnlyObject], Iterator[str]]:
    """Build the check for kinds whose objects are healthy if the condition `name` is True."""

    def look(obj: ReadOnlyObject) -> Iterator[str]:
        found = _condition(obj, name)
        if found.get("status") != "True":
            yield _condition_message(found, f"is not {name} yet")

    return look


def _by_condition(obj: ReadOnlyObject) -> Iterator[str]:
    found = _condition(obj, "Ready")
    if not found:
        return
    yield from _unseen(obj)
    seen, generation = found.get("observedGeneration"), _part(obj, "metadata").get("generation")
    if isinstance(seen, int) and isinstance(generation, int) and seen < generation:
        yield "its controller has not observed the last change"
    if found.get("status") != "True":
        yield _condition_message(found, "is not Ready")


_BY_KIND: Final[Mapping[tuple[str, str], Callable[[ReadOnlyObject], Iterator[str]]]] = {
    ("apps", "Deployment"): _deployment,
    ("apps", "StatefulSet"): _stateful_set,
    ("apps", "DaemonSet"): _daemon_set,
    ("apps", "ReplicaSet"): _replica_set,
    ("batch", "Job"): _job,
    ("", "Pod"): _pod,
    ("", "PersistentVolumeClaim"): _phase("Bound"),
    ("", "Namespace"): _phase("Active"),
    ("", "Service"): _service,
    ("apiextensions.k8s.io", "CustomResourceDefinition"): _has("Established"),
    ("apiregistration.k8s.io", "APIService"): _has("Available"),
}


# The functions below accept any data, because a custom resource may have any status.


def _unseen(obj: ReadOnlyObject) -> Iterator[str]:
    seen = _part(obj, "status").get("observedGeneration")
    generation = _part(obj, "metadata").get("generation")
    if isinstance(generation, int) and isinstance(seen, int) and seen < generation:
        yield "its controller has not observed the last change"


def _too_few(found: int, wanted: int, what: str) -> Iterator[str]:
    if found < wanted:
        yield f"{found} of {wanted} {what}"


def _wanted(obj: ReadOnlyObject) -> int:
    return _number(_part(obj, "spec"), "replicas", 1)


def _condition(obj: ReadOnlyObject, name: str) -> ReadOnlyObject:
    for each in _items(_part(obj, "status"), "conditions"):
        if each.get("type") == name:
            return each
    return {}


def _condition_message(condition: ReadOnlyObject, otherwise: str) -> str:
    return str(condition.get("message") or condition.get("reason") or otherwise)


def _part(obj: ReadOnlyObject, name: str) -> ReadOnlyObject:
    found = obj.get(name)
    return found if isinstance(found, Mapping) else {}


def _items(obj: ReadOnlyObject, name: str) -> list[ReadOnlyObject]:
    found = obj.get(name)
    items = found if isinstance(found, list) else []
    return [each for each in items if isinstance(each, Mapping)]


def _number(obj: ReadOnlyObject, name: str, otherwise: int = 0) -> int:
    found = obj.get(name)
    return found if isinstance(found, int) else otherwise
