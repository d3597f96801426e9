"""Good and bad releases for many applications in four steps: who moves, and who ends where.

`make test` runs these with a few applications, `make e2e-long` with a thousand.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator

import pytest
from tests.editing import edited
from tests.rollouts.releasing import (
    APPLICATIONS,
    MAPS,
    Object,
    Releasing,
    releasing,
    replicated,
    version,
)
from tests.walks.support import eventually

from polyver.core import Dependent
from polyver.core.rollout import Exposure, RolloutState
from polyver.testing import LocalCluster

NUMBER = int(os.environ.get("POLYVER_FOLLOWERS", "30"))
EVERY = 0.02 if NUMBER < 100 else 1.0
STEPS: tuple[Object, ...] = (
    {"share": "10%"},
    {"share": "25%"},
    {"share": "50%"},
    {"share": "100%"},
)
APPROVED: tuple[Object, ...] = tuple(
    {**each, "pause": {"until": "Approved"}} if number == 1 else each
    for number, each in enumerate(STEPS)
)
WEAK = {number for number in range(NUMBER) if number % 33 == 3}
"""The 3 % of the applications for which the failing release fails."""
FAILS_FOR_SOME = '{{ if .parameter.weak }}{{ fail "weak" }}{{ end }}data: {from: "1.0.1"}'
NEVER_BOUND = """data: {from: "1.0.1"}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: "{{ .context.name }}"}
spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}"""
SECOND = """data: {from: "1.0.0"}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: "second-{{ .context.name }}"}"""


class Many(Releasing):
    """Many applications that follow a definition; 3 % of them have the property `weak`."""

    def prepare(self, data: str = "") -> None:
        self.publish(version("1.0.0", data))
        for number in range(NUMBER):
            properties = {"weak": True} if number in WEAK else {}
            self.application(f"app-{number}", properties=properties)
        eventually(lambda: self.all_use("1.0.0"), every=EVERY)

    def all_use(self, wanted: str) -> bool:
        """Report whether every application uses a version, and its objects are applied."""
        found = self.versions(), self.written()
        return all(Counter(each.values()) == {wanted: len(self.live())} for each in found)

    def live(self) -> list[Object]:
        found: list[Object] = self.request("GET", APPLICATIONS)["items"]
        return found

    def follow(self, *, until: str) -> Object:
        """Wait until the rollout has ended or waits for approval; check each time who has moved."""

        def there() -> Object | None:
            moved = [
                each["metadata"]
                for each in self.live()
                if each["status"]["resolutions"][0]["version"] == "1.0.1"
            ]
            status: Object = self.rollout()["status"]
            state = RolloutState(status["state"])
            if not state.is_closed:
                labels = tuple(status["exposure"].get("labels") or ())
                exposure = Exposure(status["exposure"]["share"], labels)
                for each in moved:
                    position = Dependent(uid=each["uid"]).position
                    assert exposure.includes(position), f"{each['name']} is not in the cohort"
            return status if state.value == until else None

        eventually(self.rollout_exists, every=EVERY)
        return eventually(there, every=EVERY)

    def rollout_exists(self) -> bool:
        listed = self.request("GET", "/apis/polyver.dev/v1alpha1/rollouts")["items"]
        return any(each.get("status", {}).get("exposure") for each in listed)


@pytest.fixture(params=["embedded", pytest.param("kubernetes", marks=pytest.mark.kube)])
def platform(request: pytest.FixtureRequest) -> Iterator[Many]:
    if request.param == "embedded":
        with releasing() as made:
            yield Many(made)
    else:
        with LocalCluster() as cluster, replicated(cluster, 1) as installed:
            yield Many(installed)


def test_a_good_release_reaches_everyone_in_four_steps(platform: Many) -> None:
    platform.prepare()
    platform.policy(*STEPS)
    platform.publish(version("1.0.1"))
    status = platform.follow(until="Completed")
    assert platform.all_use("1.0.1")
    assert status["dependents"]["healthy"] == NUMBER
    reached = [step for state, step in platform.history() if state == "Progressing"]
    assert reached == [1, 2, 3, 4]


def test_a_release_that_fails_for_some_is_held_by_the_preflight(platform: Many) -> None:
    platform.prepare()
    platform.policy(*STEPS)
    platform.publish(version("1.0.1", FAILS_FOR_SOME))
    status = platform.follow(until="Held")
    assert status["preflight"]["fails"] == len(WEAK)
    assert platform.all_use("1.0.0")


def test_a_release_that_fails_for_some_in_a_step_is_taken_back(platform: Many) -> None:
    platform.prepare()
    platform.policy(*STEPS, preflight={"failures": NUMBER})
    platform.publish(version("1.0.1", FAILS_FOR_SOME))
    status = platform.follow(until="RolledBack")
    assert status["reason"].startswith("the check ready failed")
    eventually(lambda: platform.all_use("1.0.0"), every=EVERY)


def test_a_release_with_which_applications_are_not_healthy_is_taken_back(platform: Many) -> None:
    platform.prepare()
    platform.policy(*STEPS, checks=[{"ready": {"within": "1s", "failing": 0}}])
    platform.publish(version("1.0.1", NEVER_BOUND))
    status = platform.follow(until="RolledBack")
    assert "not healthy after 1 s" in status["reason"]
    # With few applications, the first step may be empty.
    assert status["step"] in ("1/4", "2/4")
    eventually(lambda: platform.all_use("1.0.0"), every=EVERY)
    claims = "/api/v1/namespaces/default/persistentvolumeclaims"
    # On Kubernetes, a claim has a finalizer that only kube-controller-manager removes.
    eventually(
        lambda: all(
            "deletionTimestamp" in each["metadata"]
            for each in platform.request("GET", claims)["items"]
        ),
        every=EVERY,
    )


@pytest.mark.parametrize(("limits", "state"), [({}, "Held"), ({"deletions": NUMBER}, "RolledBack")])
def test_a_release_that_deletes_objects_deletes_none(
    platform: Many, limits: Object, state: str
) -> None:
    platform.prepare(SECOND)
    platform.policy(*STEPS, preflight=limits)
    platform.publish(version("1.0.1"))
    status = platform.follow(until=state)
    assert status["preflight"]["loses"] == NUMBER
    eventually(lambda: platform.all_use("1.0.0"), every=EVERY)
    maps = platform.request("GET", MAPS)["items"]
    second = [each for each in maps if each["metadata"]["name"].startswith("second-")]
    assert len(second) == NUMBER


def test_applications_that_are_deleted_or_edited_meanwhile_do_not_stop_it(platform: Many) -> None:
    platform.prepare()
    platform.policy(*APPROVED)
    platform.publish(version("1.0.1"))
    platform.follow(until="Paused")
    names = sorted(each["metadata"]["name"] for each in platform.live())
    for name in names[::5]:
        platform.request("DELETE", f"{APPLICATIONS}/{name}")
    edits = set(names[1::5])
    for name in edits:
        edited(platform.request, f"{APPLICATIONS}/{name}", _edit)
    platform.ask(approvedStep=2)
    platform.follow(until="Completed")
    eventually(lambda: len(platform.live()) == NUMBER - len(names[::5]), every=EVERY)
    eventually(lambda: platform.all_use("1.0.1"), every=EVERY)
    assert platform.rollout()["status"]["dependents"]["total"] == len(platform.live())


def _edit(application: Object) -> None:
    application["spec"]["components"][0]["properties"] = {"text": "edited by its user"}
