"""The interface between rollouts and the capabilities whose releases they move."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, Protocol

from polyver.capability.gates import LineageName, ReleaseObject, is_target
from polyver.client import Client, GroupVersionResource
from polyver.core.rollout_checks import ObservedCalls
from polyver.kube.objects.conditions import find_condition
from polyver.kube.objects.status import ApiError

if TYPE_CHECKING:
    from polyver.controllers import Watch
    from polyver.core import Gate
    from polyver.core.cohorts import Cohorts
    from polyver.core.preflight import PreflightReport

__all__ = ["POLICIES", "LineagesChanged", "ObservedCalls", "RolloutTargets", "holding_policy"]

POLICIES: Final = GroupVersionResource("polyver.dev", "v1alpha1", "rolloutpolicies")


async def holding_policy(client: Client, lineage: LineageName, labels: Mapping[str, str]) -> str:
    """Return the name of the Ready policy for a lineage, or an empty string.

    The policies are read with a consistent list, which contains every policy that was Ready before
    the call.
    """
    try:
        found = await client.list(POLICIES, lineage.policy_namespace)
    except ApiError as error:
        if error.code != 404:  # without the kind there are no policies
            raise
        return ""
    names = [
        (each["metadata"].get("creationTimestamp", ""), each["metadata"]["name"])
        for each in found.items
        if (find_condition(each, "Ready") or {}).get("status") == "True"
        and is_target(each, lineage, labels)
    ]
    return min(names)[1] if names else ""


LineagesChanged = Callable[[Iterable[LineageName]], Iterable[Any]]
"""Returns the keys to reconcile after a change of these lineages."""


class RolloutTargets(Protocol):
    """The interface with which rollouts read lineages of some kinds, and write their gates."""

    @property
    def kinds(self) -> Sequence[tuple[str, str]]:
        """The groups and kinds of the objects that publish releases."""

    @property
    def noun(self) -> str:
        """The name of the followers in the plural, such as `applications`."""

    @property
    def has_calls(self) -> bool:
        """True if the releases are called, so that their errors and latency can be checked."""

    def watches(
        self, released: LineagesChanged, moved: LineagesChanged
    ) -> Sequence[Watch[Any, Any]]:
        """Return the watches that keep lineages and followers up to date.

        `released` gets the lineages whose releases or labels have changed, and `moved` those whose
        followers have changed. Both return the keys to reconcile.
        """

    def lineages(self, namespace: str) -> Mapping[LineageName, Mapping[str, str]]:
        """Return the lineages for policies of a namespace, with the labels of their objects."""

    async def releases(self, lineage: LineageName) -> Sequence[ReleaseObject]:
        """Return the releases of a lineage, the oldest first."""

    async def write_gate(self, lineage: LineageName, release: str, gate: Gate | None) -> None:
        """Write the gate of a release to the object that stores it; None opens the release."""

    async def followers(self, lineage: LineageName, release: str) -> Cohorts:
        """Return the followers of a lineage by their state towards a release."""

    async def preflight(
        self, lineage: LineageName, release: str, sample: int | None
    ) -> PreflightReport:
        """Report the effects of a release on `sample` followers (None: on all). Change nothing."""

    def calls(
        self, lineage: LineageName, release: str, *, since: float
    ) -> tuple[ObservedCalls, ObservedCalls]:
        """Return statistics about calls since a Unix time: their count, errors and latency.

        The first value is about calls that used the release, the second about calls that used other
        releases of the lineage.
        """
