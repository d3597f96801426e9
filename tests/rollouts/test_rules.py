"""The rules of policies and rollouts: what is read, and what is refused with its path."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from polyver.core.rollout import ReadyCheck, RolloutStep, StepPause
from polyver.core.rollout_checks import ErrorsCheck, HttpCheck, LatencyCheck, PrometheusCheck
from polyver.rollouts.rules import read_rules
from polyver.rollouts.windows import Window, is_open, next_opening

LAST = {"share": "100%"}
PROMETHEUS = "http://prometheus:9090"


def test_the_policy_of_the_specification_is_read() -> None:
    spec = {
        "preflight": {"failures": 0, "deletions": 2, "sample": "all"},
        "steps": [
            {"labels": {"tier": "dev"}},
            {"share": "5%", "pause": {"for": "10m"}},
            {"count": 40, "pause": {"until": "Approved"}},
            LAST,
        ],
        "checks": [
            {"ready": {"within": "5m", "failing": 1}},
            {"errors": {"max": "1%", "minimum": 20}},
            {"latency": {"p99": "2x", "minimum": 50}},
            {"prometheus": {"address": PROMETHEUS, "query": "up", "below": 0.01}},
            {"http": {"url": "https://shop.example/health", "status": 204}},
        ],
        "onFailure": "Pause",
        "windows": [{"days": ["Mon"], "from": "09:00", "to": "16:00", "timezone": "UTC"}],
        "notify": [{"url": "http://chat.example", "on": ["Paused"]}],
    }
    rules, problems = read_rules(spec)
    assert problems == []
    assert rules is not None
    assert rules.steps == (
        RolloutStep(labels={"tier": "dev"}),
        RolloutStep(share=0.05, pause=StepPause(600.0)),
        RolloutStep(count=40, pause=StepPause(until_approved=True)),
        RolloutStep(share=1.0),
    )
    assert rules.checks == (
        ReadyCheck(300.0, 1),
        ErrorsCheck(0.01, 20),
        LatencyCheck(2.0, 50),
        PrometheusCheck(PROMETHEUS, "up", below=0.01),
        HttpCheck("https://shop.example/health", 204),
    )
    assert (rules.sample, rules.limits.deletions, rules.on_failure) == (None, 2, "Pause")
    assert rules.windows == (Window(frozenset({0}), 540, 960, "UTC"),)


def test_without_checks_followers_must_become_healthy() -> None:
    rules, _ = read_rules({"steps": [LAST]})
    assert rules is not None
    assert rules.checks == (ReadyCheck(600.0, 0),)
    assert rules.sample == 1000


@pytest.mark.parametrize(
    ("spec", "at"),
    [
        ({"steps": []}, "spec.steps"),
        ({"steps": [{"share": "5"}, LAST]}, "spec.steps[0].share"),
        ({"steps": [{"share": "200%"}, LAST]}, "spec.steps[0].share"),
        ({"steps": [{"share": "50%"}, {"share": "40%"}, LAST]}, "spec.steps[1].share"),
        ({"steps": [{"share": "50%"}]}, "spec.steps[0]"),
        ({"steps": [{"share": "5%", "count": 3}, LAST]}, "spec.steps[0]"),
        ({"steps": [{**LAST, "pause": {"for": "soon"}}]}, "spec.steps[0].pause.for"),
        ({"steps": [{**LAST, "pause": {}}]}, "spec.steps[0].pause"),
        ({"steps": [LAST], "checks": [{}]}, "spec.checks[0]"),
        (
            {"steps": [LAST], "checks": [{"ready": {"within": "-1s"}}]},
            "spec.checks[0].ready.within",
        ),
        ({"steps": [LAST], "checks": [{"errors": {"max": "1"}}]}, "spec.checks[0].errors.max"),
        ({"steps": [LAST], "checks": [{"latency": {"p99": "2"}}]}, "spec.checks[0].latency.p99"),
        (
            {"steps": [LAST], "checks": [{"prometheus": {"address": PROMETHEUS, "query": "up"}}]},
            "spec.checks[0].prometheus",
        ),
        (
            {
                "steps": [LAST],
                "checks": [
                    {"prometheus": {"address": PROMETHEUS, "query": "up", "above": 2, "below": 1}}
                ],
            },
            "spec.checks[0].prometheus",
        ),
        (
            {
                "steps": [LAST],
                "checks": [
                    {"prometheus": {"address": f"{PROMETHEUS}?a", "query": "up", "below": 1}}
                ],
            },
            "spec.checks[0].prometheus.address",
        ),
        ({"steps": [LAST], "checks": [{"http": {"url": "shop"}}]}, "spec.checks[0].http.url"),
        ({"steps": [LAST], "preflight": {"sample": "many"}}, "spec.preflight.sample"),
        ({"steps": [LAST], "windows": [{"from": "25:00", "to": "09:00"}]}, "spec.windows[0].from"),
        ({"steps": [LAST], "windows": [{"from": "09:00", "to": "09:00"}]}, "spec.windows[0]"),
        (
            {"steps": [LAST], "windows": [{"from": "09:00", "to": "10:00", "timezone": "Mars"}]},
            "spec.windows[0].timezone",
        ),
    ],
)
def test_what_cannot_be_executed_is_refused_with_its_path(spec: dict[str, Any], at: str) -> None:
    rules, [problem] = read_rules(spec)
    assert rules is None
    assert problem.at == at


def test_all_problems_are_found_at_once() -> None:
    bad = {
        "steps": [{"share": "x"}, {"share": "y"}],
        "checks": [{}],
        "windows": [{"from": "1", "to": "2"}],
    }
    _, problems = read_rules(bad)
    assert len(problems) == 4


# Windows.


BERLIN = Window(frozenset(range(4)), 9 * 60, 16 * 60, "Europe/Berlin")
NIGHT = Window(frozenset({4}), 22 * 60, 2 * 60, "UTC")


@pytest.mark.parametrize(
    ("window", "moment", "is_so"),
    [
        (BERLIN, datetime(2026, 11, 16, 8, 0, tzinfo=UTC), True),
        (BERLIN, datetime(2026, 11, 16, 7, 59, tzinfo=UTC), False),
        (BERLIN, datetime(2026, 11, 16, 15, 0, tzinfo=UTC), False),
        (BERLIN, datetime(2026, 7, 13, 7, 0, tzinfo=UTC), True),
        (BERLIN, datetime(2026, 11, 20, 10, 0, tzinfo=UTC), False),
        (NIGHT, datetime(2026, 11, 20, 23, 0, tzinfo=UTC), True),
        (NIGHT, datetime(2026, 11, 21, 1, 59, tzinfo=UTC), True),
        (NIGHT, datetime(2026, 11, 21, 2, 0, tzinfo=UTC), False),
        (NIGHT, datetime(2026, 11, 20, 1, 0, tzinfo=UTC), False),
    ],
)
def test_a_window_is_open_in_its_time_zone(window: Window, moment: datetime, is_so: bool) -> None:
    assert is_open([window], moment) is is_so


windows = st.builds(
    Window,
    st.frozensets(st.integers(0, 6), min_size=1),
    st.integers(0, 1439),
    st.integers(0, 1439),
    st.sampled_from(["UTC", "Europe/Berlin", "America/New_York", "Asia/Kolkata"]),
).filter(lambda window: window.start != window.end)


@given(windows, st.datetimes(datetime(2026, 1, 1), datetime(2027, 1, 1)))
def test_the_next_opening_is_the_first_open_minute(window: Window, moment: datetime) -> None:
    start = moment.replace(tzinfo=UTC, second=0, microsecond=0)
    opening = next_opening([window], start)
    assert opening is not None
    assert is_open([window], opening)
    assert opening == start or not is_open([window], opening - timedelta(minutes=1))
