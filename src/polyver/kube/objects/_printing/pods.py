"""The table of pods, with the number of ready containers and a status such as `Running`."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from polyver.core.plain import Object
from polyver.kube.objects._printing.cells import Cell, Printer, TableColumn, age_of, at

__all__ = ["PODS"]


@dataclass(slots=True)
class _Tally:
    """Values in the row of a pod: its status, and counts of ready containers and of restarts."""

    reason: str
    ready: int = 0
    restarts: int = 0
    last_restart: str = ""

    def restarted(self, container: Object) -> None:
        self.restarts += container.get("restartCount") or 0
        # Times of one format and zone sort as strings.
        self.last_restart = max(
            self.last_restart, at(container, "lastState.terminated.finishedAt") or ""
        )

    def shown_restarts(self, now: datetime) -> str:
        if not self.restarts or not self.last_restart:
            return str(self.restarts)
        return f"{self.restarts} ({age_of(self.last_restart, now)} ago)"


def _cells(pod: Object, now: datetime) -> list[Cell]:
    tally, total = _tally(pod)
    return [
        at(pod, "metadata.name") or "",
        f"{tally.ready}/{total}",
        _deleted(pod) or tally.reason,
        tally.shown_restarts(now),
        age_of(at(pod, "metadata.creationTimestamp"), now),
        next((each.get("ip") for each in at(pod, "status.podIPs") or ()), None) or "<none>",
        at(pod, "spec.nodeName") or "<none>",
        at(pod, "status.nominatedNodeName") or "<none>",
        _gates(pod),
    ]


def _tally(pod: Object) -> tuple[_Tally, int]:
    initial = at(pod, "spec.initContainers") or ()
    sidecars = {each["name"] for each in initial if each.get("restartPolicy") == "Always"}
    total = len(at(pod, "spec.containers") or ()) + len(sidecars)
    tally = _Tally(_reason(pod))
    initializing = _count_initial(pod, sidecars, len(initial), tally)
    if not initializing or _holds(pod, "Initialized"):
        tally.restarts, tally.last_restart = 0, ""
        for each in at(pod, "status.initContainerStatuses") or ():
            if each.get("name") in sidecars:
                tally.restarted(each)
            if _stops(each, sidecars):
                break
        _count_running(pod, tally)
    return tally, total


def _reason(pod: Object) -> str:
    gated = any(
        each.get("type") == "PodScheduled" and each.get("reason") == "SchedulingGated"
        for each in _conditions(pod)
    )
    if gated:
        return "SchedulingGated"
    return at(pod, "status.reason") or at(pod, "status.phase") or ""


def _conditions(pod: Object) -> Iterable[dict[str, Any]]:
    return at(pod, "status.conditions") or ()


def _holds(pod: Object, condition: str) -> bool:
    return any(
        each.get("type") == condition and each.get("status") == "True" for each in _conditions(pod)
    )


def _stops(container: Object, sidecars: set[str]) -> bool:
    """Report whether the next init container must wait for `container`.

    It must wait until a sidecar (an init container with restartPolicy Always) has started, and
    until any other init container has succeeded.
    """
    return not _done(container) and not (
        container.get("name") in sidecars and container.get("started")
    )


def _done(container: Object) -> bool:
    terminated = at(container, "state.terminated")
    return terminated is not None and not terminated.get("exitCode")


def _count_initial(pod: Object, sidecars: set[str], total: int, tally: _Tally) -> bool:
    """Count the restarts and the ready sidecars of a pod's init containers.

    At the first init container for which the next one must wait, the function sets a status that
    begins with `Init:`, and returns True. Without such a container, it returns False.
    """
    for number, container in enumerate(at(pod, "status.initContainerStatuses") or ()):
        tally.restarted(container)
        if _stops(container, sidecars):
            tally.reason = f"Init:{_waits_for(container) or f'{number}/{total}'}"
            return True
        if not _done(container) and container.get("ready"):
            tally.ready += 1
    return False


def _waits_for(container: Object) -> str:
    terminated = at(container, "state.terminated")
    if terminated is not None:
        return _ended(terminated)
    waiting = at(container, "state.waiting.reason") or ""
    return "" if waiting == "PodInitializing" else waiting


def _ended(terminated: Object) -> str:
    if terminated.get("reason"):
        return str(terminated["reason"])
    if terminated.get("signal"):
        return f"Signal:{terminated['signal']}"
    return f"ExitCode:{terminated.get('exitCode') or 0}"


def _count_running(pod: Object, tally: _Tally) -> None:
    """Count restarts and ready containers of a pod, and set the pod's status.

    If several containers have a problem, the first of them in the pod determines the status.
    """
    running, failed = False, ""
    for container in reversed(at(pod, "status.containerStatuses") or ()):
        tally.restarted(container)
        state = container.get("state") or {}
        terminated = state.get("terminated")
        if at(state, "waiting.reason"):
            tally.reason = state["waiting"]["reason"]
        elif terminated is not None:
            tally.reason = _ended(terminated)
            failed = tally.reason if terminated.get("exitCode") else failed
        elif container.get("ready") and state.get("running") is not None:
            running = True
            tally.ready += 1
    if tally.reason == "Completed":
        tally.reason = _completed(pod, running=running, failed=failed)


def _completed(pod: Object, *, running: bool, failed: str) -> str:
    """Return the status to show for a pod whose status would otherwise be `Completed`.

    `running` is True if a container runs. `failed` is the reason of a failed container, or "".
    """
    if running and _holds(pod, "Ready"):
        return "Running"
    return failed or ("NotReady" if running else "Completed")


def _deleted(pod: Object) -> str:
    if not at(pod, "metadata.deletionTimestamp"):
        return ""
    if at(pod, "status.reason") == "NodeLost":
        return "Unknown"
    return "" if at(pod, "status.phase") in ("Succeeded", "Failed") else "Terminating"


def _gates(pod: Object) -> str:
    gates = at(pod, "spec.readinessGates") or ()
    if not gates:
        return "<none>"
    states = {each.get("type"): each.get("status") for each in reversed([*_conditions(pod)])}
    passed = sum(states.get(gate.get("conditionType")) == "True" for gate in gates)
    return f"{passed}/{len(gates)}"


_ENDS = {"Succeeded": "All containers completed successfully.", "Failed": "A container failed."}


def _row_conditions(pod: Object) -> list[dict[str, str]]:
    phase = at(pod, "status.phase")
    if phase not in _ENDS:
        return []
    return [{"type": "Completed", "status": "True", "reason": phase, "message": _ENDS[phase]}]


PODS = Printer(
    columns=(
        TableColumn("Name", format="name", description="The name, unique in its namespace."),
        TableColumn("Ready", description="The number of ready containers, and of all containers."),
        TableColumn("Status", description="The state of the pod, in one word."),
        TableColumn(
            "Restarts",
            description="The number of container restarts, and the time since the last one.",
        ),
        TableColumn("Age", description="The time since the object was created."),
        TableColumn("IP", description="The first address of the pod.", priority=1),
        TableColumn("Node", description="The node to which the pod is assigned.", priority=1),
        TableColumn(
            "Nominated Node",
            description="The node on which pods are preempted for this pod.",
            priority=1,
        ),
        TableColumn(
            "Readiness Gates",
            description="The number of passed readiness gates, and of all.",
            priority=1,
        ),
    ),
    cells=_cells,
    conditions=_row_conditions,
)
