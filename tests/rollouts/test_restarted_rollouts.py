"""A release that had a rollout gets another one: only the last rollout sets its gate."""

from __future__ import annotations

from pathlib import Path

from tests.rollouts.releasing import ROLLOUTS, TARGET, Releasing, version
from tests.walks.support import eventually

from polyver.testing import EmbeddedServer

APPROVED = {"share": "50%", "pause": {"until": "Approved"}}


def start_again(cluster: Releasing, name: str = "web-1.0.1-2") -> None:
    spec = {"target": TARGET, "to": "1.0.1", "policyRef": {"name": "careful"}}
    made = {"apiVersion": "polyver.dev/v1alpha1", "kind": "Rollout", "metadata": {"name": name}}
    cluster.request("POST", ROLLOUTS, {**made, "spec": spec})


def test_a_rollout_that_is_started_right_after_an_abort_moves_its_followers(
    tmp_path: Path,
) -> None:
    with EmbeddedServer(data=tmp_path, capabilities=("apis", "definitions")) as server:
        cluster = Releasing(server)
        cluster.publish(version("1.0.0"))
        cluster.applications(6)
        cluster.policy(APPROVED, {"share": "100%"})
        cluster.publish(version("1.0.1"))
        cluster.reaches("Paused", "1/2")
        cluster.ask(aborted=True)
        cluster.reaches("Aborted", "1/2")
        start_again(cluster)
        cluster.ask("web-1.0.1-2", approvedStep=1)
        cluster.reaches("Completed", "2/2", "web-1.0.1-2")
        eventually(lambda: {*cluster.versions().values()} == {"1.0.1"})
    with EmbeddedServer(data=tmp_path, capabilities=("apis", "definitions")) as server:
        cluster = Releasing(server)
        # polyver publishes this version only after it has read all rollouts again.
        cluster.publish(version("1.0.2"))
        cluster.reaches("Paused", "1/2", "web-1.0.2")
        cluster.ask("web-1.0.2", aborted=True)
        cluster.reaches("Aborted", "1/2", "web-1.0.2")
        eventually(lambda: "1.0.2" not in cluster.versions().values())
        assert {*cluster.versions().values()} == {"1.0.1"}
