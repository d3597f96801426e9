"""Good and bad revisions for many composite resources in four steps: who moves, who ends where.

`make test` runs these with a few composite resources, `make e2e-long` with a thousand. All tests of
one control plane use the same composite resources, one after the other.
"""

from __future__ import annotations

import http.client
import itertools
import os
import ssl
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import pytest
from tests.editing import edited
from tests.rollouts.composing import (
    COMPOSITION,
    COMPOSITION_REVISIONS,
    FUNCTION,
    FUNCTION_REVISIONS,
    MAPS,
    POLICIES,
    STACKS,
    Composing,
    Object,
    packages,
    uses,
)
from tests.rollouts.releasing import replicated
from tests.rollouts.witness import witnessed
from tests.walks.support import Server, eventually

from polyver.core import Dependent
from polyver.core.rollout import RolloutState
from polyver.testing import EmbeddedServer, LocalCluster

NUMBER = int(os.environ.get("POLYVER_FOLLOWERS", "12"))
IS_SMALL = NUMBER < 100
EVERY = 0.1 if IS_SMALL else 1.0
FIRST = 33
NUMBERS = range(FIRST, FIRST + NUMBER)
WEAK = sum(each % 33 == 0 for each in NUMBERS)
"""The 3 % of the composite resources for which some versions fail."""
SHARES = (0.1, 0.25, 0.5, 1.0)
STEPS: tuple[Object, ...] = tuple({"share": f"{each:.0%}"} for each in SHARES)
APPROVED: tuple[Object, ...] = (STEPS[0], {**STEPS[1], "pause": {"until": "Approved"}}, *STEPS[2:])
EDITED = 33_000_000
"""Added to the number of a composite resource that its user edits."""
COUNTERS = {
    "calls": "polyver_function_calls_total",
    "runs": 'polyver_controller_done_total{controller="composites",what="runs"}',
    "applied": 'polyver_controller_done_total{controller="composites",what="applied"}',
}
"""The counters of the work for composite resources, by the names that are printed."""
CHOSEN = ("--capabilities", "apis,compositions")
TARGETS = pytest.mark.parametrize(
    "target", [COMPOSITION, FUNCTION], ids=["composition", "function"]
)


class Many(Composing):
    """Many composite resources that follow a Composition and its function."""

    def __init__(self, server: Any, where: Server, metrics: str) -> None:
        super().__init__(server)
        self._where = where
        self._metrics = metrics
        self._used = {"Composition": "1", "Function": "good"}
        self._numbers = itertools.count(FIRST * 1000 + 1, FIRST)
        """Numbers of further composite resources, for which all versions work."""

    def first(self) -> None:
        self.prepare(revisionHistoryLimit=4)
        began = time.monotonic()
        self.stacks(NUMBER, first=FIRST, every=EVERY)
        print(f"\ncreated: {time.monotonic() - began:.1f} s, {self.work()}")

    def good(self, target: Object) -> str:
        """Publish a revision that works; return its rollout. Remember that all should use it."""
        kind = target["kind"]
        if kind == "Function":
            found = "better" if self._used[kind] == "good" else "good"
            name = self.starts(target, lambda: self.publish_function(found))
        else:
            found = str(int(self._used[kind]) + 1)
            name = self.starts(target, lambda: self.publish_composition(found))
        self._used[kind] = found
        return name

    def bad(self, target: Object, mode: str) -> str:
        """Publish a revision that does not work for all; return its rollout."""
        return self.starts(target, lambda: self.publish(target, mode, stamp=mode))

    def is_settled(self) -> bool:
        """Report whether all composite resources are healthy with the revisions that work."""
        number = len(self.live())
        wanted = {kind.lower(): {stamp: number} for kind, stamp in self._used.items()}
        found = {by: dict(self.count(by)) for by in wanted}
        return found == wanted and self.healthy() == self.extras() == number

    def live(self) -> list[Object]:
        found: list[Object] = self.request("GET", STACKS)["items"]
        return found

    def newest(self, revisions: str) -> str:
        """The name of the revision with the highest number."""
        found = self.request("GET", revisions)["items"]
        name: str = max(found, key=lambda each: each["spec"]["revision"])["metadata"]["name"]
        return name

    def further(self) -> None:
        """Create another composite resource."""
        self.stack(next(self._numbers))

    @contextmanager
    def careful(self, target: Object, *steps: Object, **rules: Any) -> Iterator[Object]:
        """Apply a policy; at the end, check who was touched, and take everything back.

        The yielded object has to get the name of the rollout.
        """
        self.policy(target, *steps, **rules)
        asked: Object = {}
        stacks = self.positions()
        with witnessed(self._where, self.request, MAPS) as touched:
            yield asked
            eventually(self.is_settled, every=EVERY)
        reached = max(step for _, step in self.history(asked["rollout"]))
        share = SHARES[reached - 1] if reached else 0.0
        outside = {name for name, position in stacks.items() if position >= share}
        names = {each.rpartition("-")[0] for each in touched}
        assert not names & outside, f"touched, and not in the cohort of step {reached}"

    def positions(self) -> Mapping[str, float]:
        """The position of each composite resource in the cohorts."""
        metadata = [each["metadata"] for each in self.live()]
        return {each["name"]: Dependent(uid=each["uid"]).position for each in metadata}

    def end_rollouts(self) -> None:
        """Abort all rollouts, delete the policies, and publish the revisions that work again."""
        for each in self.request("GET", POLICIES)["items"]:
            self.request("DELETE", f"{POLICIES}/{each['metadata']['name']}")
        active = [name for name in self.rollouts() if not self.has_ended(name)]
        for name in active:
            self.ask(name, aborted=True)
        eventually(lambda: all(map(self.has_ended, active)), every=EVERY)
        wanted = {
            self.publish_function(self._used["Function"]),
            self.publish_composition(self._used["Composition"]),
        }
        eventually(
            lambda: {self.newest(FUNCTION_REVISIONS), self.newest(COMPOSITION_REVISIONS)} == wanted
        )

    def work(self) -> str:
        """The reconciles of composite resources and the calls of the function until now."""
        context = ssl.create_default_context()
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        host, headers = self._metrics, {"Authorization": f"Bearer {self._where.token}"}
        connection = http.client.HTTPSConnection(host, context=context)
        connection.request("GET", "/metrics", None, headers)
        lines = connection.getresponse().read().decode().splitlines()
        connection.close()
        found = Counter[str]()
        for line in lines:
            for name, prefix in COUNTERS.items():
                if line.startswith(prefix):
                    found[name] += int(float(line.rpartition(" ")[2]))
        return ", ".join(f"{found[name]} {name}" for name in COUNTERS)

    def has_ended(self, name: str) -> bool:
        return RolloutState(self.status(name).get("state", "Preflight")).is_final

    def follow(self, name: str, *, until: str) -> Object:
        """Wait until the rollout is in a state; check each time who uses the revision."""
        to = self.rollouts()[name]["spec"]["to"]
        began, seen = time.monotonic(), [("", "")]

        def there() -> Object | None:
            moved = [each["metadata"] for each in self.live() if uses(each, to)]
            status = self.status(name)
            state, step = status.get("state", "Preflight"), status.get("step", "0/4")
            if (state, step) != seen[-1]:
                seen.append((state, step))
                counts = status.get("dependents") or {}
                some = {each: counts[each] for each in ("moved", "healthy") if each in counts}
                seconds = f"{time.monotonic() - began:7.1f} s"
                print(f"{seconds}  {name}  {state} {step}  {some}, {self.work()}")
            if not RolloutState(state).is_closed:
                # The exposure is read after the composite resources: it may only have grown.
                share = (status.get("exposure") or {}).get("share", 0.0)
                for each in moved:
                    position = Dependent(uid=each["uid"]).position
                    assert position < share, f"{each['name']} is not in the cohort"
            return status if state == until else None

        status = eventually(there, every=EVERY)
        eventually(lambda: until in self.events(name))
        assert self.history(name)[-1][0] == until
        return status


@pytest.fixture(scope="module", params=["embedded", pytest.param("kube", marks=pytest.mark.kube)])
def shared(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Many]:
    folder = tmp_path_factory.mktemp("many")
    file = packages(folder / "functions")
    if request.param == "embedded":
        with EmbeddedServer(capabilities=("apis", "compositions"), packages=file) as server:
            platform = Many(server, server, server.url.removeprefix("https://"))
            platform.first()
            yield platform
        return
    with pytest.MonkeyPatch.context() as patch, LocalCluster() as cluster:
        patch.setenv("XDG_DATA_HOME", str(folder))
        with replicated(cluster, 1, CHOSEN, "--packages", str(file)) as installed:
            platform = Many(installed, cluster, f"127.0.0.1:{installed.running[0].port}")
            platform.first()
            yield platform


@pytest.fixture
def platform(shared: Many) -> Iterator[Many]:
    yield shared
    shared.end_rollouts()
    eventually(shared.is_settled, every=EVERY)


@TARGETS
def test_a_good_revision_reaches_everyone_in_four_steps(platform: Many, target: Object) -> None:
    with platform.careful(target, *STEPS) as asked:
        name = asked["rollout"] = platform.good(target)
        status = platform.follow(name, until="Completed")
    assert status["dependents"]["healthy"] == NUMBER
    reached = [step for state, step in platform.history(name) if state == "Progressing"]
    assert reached == [1, 2, 3, 4]


@TARGETS
def test_a_revision_that_fails_for_some_is_held_by_the_preflight(
    platform: Many, target: Object
) -> None:
    with platform.careful(target, *STEPS) as asked:
        name = asked["rollout"] = platform.bad(target, "fails")
        status = platform.follow(name, until="Held")
    assert status["preflight"]["fails"] == WEAK


@TARGETS
def test_a_revision_that_fails_for_some_in_a_step_is_taken_back(
    platform: Many, target: Object
) -> None:
    with platform.careful(target, *STEPS, preflight={"failures": NUMBER}) as asked:
        name = asked["rollout"] = platform.bad(target, "fails")
        status = platform.follow(name, until="RolledBack")
    assert status["reason"].startswith("the check ready failed")


@TARGETS
def test_a_revision_with_which_nobody_is_healthy_is_taken_back(
    platform: Many, target: Object
) -> None:
    checks = [{"ready": {"within": "2s", "failing": 0}}]
    with platform.careful(target, *STEPS, checks=checks) as asked:
        name = asked["rollout"] = platform.bad(target, "unready")
        status = platform.follow(name, until="RolledBack")
    assert "not healthy after 2 s" in status["reason"]


@TARGETS
@pytest.mark.parametrize(("limits", "state"), [({}, "Held"), ({"deletions": NUMBER}, "RolledBack")])
def test_a_revision_that_deletes_objects_deletes_none(
    platform: Many, target: Object, limits: Object, state: str
) -> None:
    with platform.careful(target, *STEPS, preflight=limits) as asked:
        name = asked["rollout"] = platform.bad(target, "deletes")
        status = platform.follow(name, until=state)
        assert platform.extras() == NUMBER
    assert status["preflight"]["loses"] == NUMBER


@pytest.mark.skipif(IS_SMALL, reason="test_compositions.py has this test for a few")
def test_a_slow_function_is_taken_back(platform: Many) -> None:
    checks = [{"latency": {"p99": "3x", "minimum": 20}}]
    with platform.careful(FUNCTION, *STEPS, checks=checks, preflight={"sample": 50}) as asked:
        name = asked["rollout"] = platform.bad(FUNCTION, "slow")
        status = platform.follow(name, until="RolledBack")
    assert status["reason"].startswith("the check latency failed")


@pytest.mark.parametrize(("limits", "state"), [({}, "Held"), ({"failures": NUMBER}, "RolledBack")])
def test_a_function_that_crashes_is_held_or_taken_back(
    platform: Many, limits: Object, state: str
) -> None:
    checks = [{"ready": {"within": "5s" if IS_SMALL else "60s", "failing": 0}}]
    with platform.careful(FUNCTION, *STEPS, checks=checks, preflight=limits) as asked:
        name = asked["rollout"] = platform.bad(FUNCTION, "crashes")
        platform.follow(name, until=state)


@TARGETS
def test_composite_resources_that_change_meanwhile_do_not_stop_it(
    platform: Many, target: Object
) -> None:
    platform.policy(target, *APPROVED)
    name = platform.good(target)
    platform.follow(name, until="Paused")
    numbers = {each["metadata"]["name"]: each["spec"]["number"] for each in platform.live()}
    names = sorted(name for name, number in numbers.items() if number % 33)
    deleted, changed = names[::10], names[1::10]
    for each in deleted:
        platform.request("DELETE", f"{STACKS}/{each}")
    for each in changed:
        edited(platform.request, f"{STACKS}/{each}", _edit)
    for _ in deleted:
        platform.further()
    # Edits and new composite resources do not wait for the rollout.
    wanted = {name: str(numbers[name] + EDITED) for name in changed}
    eventually(lambda: wanted.items() <= platform.written("number").items(), every=EVERY)
    eventually(lambda: platform.healthy() == NUMBER, every=EVERY)
    platform.follow(name, until="Paused")
    platform.ask(name, approvedStep=2)
    platform.follow(name, until="Completed")
    eventually(platform.is_settled, every=EVERY)
    assert platform.status(name)["dependents"]["total"] == NUMBER


def _edit(stack: Object) -> None:
    stack["spec"]["number"] += EDITED
