"""The contribution of the capability rollouts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from polyver.capability.capability import Capability, Surroundings
from polyver.capability.contributions import READ, Contribution, Right

if TYPE_CHECKING:
    from polyver.capability.rollouts import RolloutTargets
    from polyver.client import Client
    from polyver.web.sources import PageSource

__all__ = ["CAPABILITY"]


def _contribution(settings: None, around: Surroundings) -> Contribution:
    """Return the kinds, checks and controllers for rollouts of releases of other capabilities."""
    from polyver.capability.gates import SYSTEM_NAMESPACE
    from polyver.controllers.egress import AllowedHttp
    from polyver.rollouts.admission import ROLLOUTS_WANTED, RolloutChecks
    from polyver.rollouts.controller import RolloutController
    from polyver.rollouts.kinds import GROUP, POLICIES, REPORTS, ROLLOUTS
    from polyver.rollouts.names import FREEZE

    del settings
    http = around.http or AllowedHttp()

    def targets(client: Client) -> list[RolloutTargets]:
        makers = [each.rollout_targets for each in around.others if each.rollout_targets]
        return [made for make in makers for made in make(client)]

    def enabled(client: Client) -> Mapping[tuple[str, str], bool]:
        return {kind: each.has_calls for each in targets(client) for kind in each.kinds}

    policies, rollouts = POLICIES.names.plural, ROLLOUTS.names.plural
    return Contribution(
        kinds=(POLICIES, ROLLOUTS, REPORTS),
        links=lambda client: [RolloutChecks(client, enabled(client), http)],
        wanted=ROLLOUTS_WANTED,
        controllers=lambda client: [RolloutController(client, targets(client), http)],
        rights=(
            Right(GROUP, policies, READ),
            Right(GROUP, f"{policies}/status", ("update",)),
            Right(GROUP, rollouts, (*READ, "create", "delete")),
            Right(GROUP, f"{rollouts}/status", ("update",)),
            # A server-side apply that creates an object needs `create` and `patch`.
            Right(GROUP, REPORTS.names.plural, ("get", "create", "patch")),
            Right("", "configmaps", ("get",), FREEZE),
            Right("", "events", ("create",)),
        ),
        namespaces=(SYSTEM_NAMESPACE,),
        source=_source,
    )


def _source() -> PageSource:
    from polyver.rollouts.page import RolloutsSource

    return RolloutsSource()


def _joins(others: Sequence[Contribution]) -> bool:
    return any(each.rollout_targets is not None for each in others)


CAPABILITY = Capability(
    name="rollouts",
    contribution=_contribution,
    joins=_joins,
    commands={"rollout": "polyver.rollouts.commands.rollout:app"},
)
