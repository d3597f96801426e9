"""Checks of rollouts: the same observations give the same result, and a reason with each."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from polyver.core.rollout import CheckResult, Verdict
from polyver.core.rollout_checks import (
    CONFIRMED,
    ErrorsCheck,
    HttpCheck,
    LatencyCheck,
    NotObserved,
    ObservedCalls,
    PrometheusCheck,
    check_errors,
    check_http,
    check_latency,
    check_values,
    confirmed_result,
    failures_after,
    lasting_result,
    prometheus_values,
)

PASSED = CheckResult("errors", "Passed", "0 of 20 calls failed (0%)")
WAITING = CheckResult("errors", "Waiting", "3 of 20 calls observed")
FAILED = CheckResult("errors", "Failed", "20 of 20 calls failed")


# Errors and latency.


@pytest.mark.parametrize(
    ("calls", "cohort", "expected", "message"),
    [
        (ObservedCalls(), 4, "Waiting", "0 of 20 calls observed"),
        (ObservedCalls(19, 19), 4, "Waiting", "19 of 20 calls observed"),
        (ObservedCalls(20, 0), 4, "Passed", "0 of 20 calls failed (0%)"),
        (ObservedCalls(100, 1), 4, "Passed", "1 of 100 calls failed (1%)"),
        (ObservedCalls(100, 2), 4, "Failed", "2 of 100 calls failed (2%), at most 1% may fail"),
        (ObservedCalls(), 0, "Passed", "no dependent is in the cohort"),
    ],
)
def test_errors(calls: ObservedCalls, cohort: int, expected: Verdict, message: str) -> None:
    result = check_errors(ErrorsCheck(0.01, 20), calls, cohort=cohort)
    assert result == CheckResult("errors", expected, message)


FAST, SLOW = ObservedCalls(50, p99=0.1), ObservedCalls(50, p99=0.21)
FEW = ObservedCalls(49, p99=9.0)


@pytest.mark.parametrize(
    ("calls", "before", "is_for_all", "expected", "part"),
    [
        (FEW, FAST, False, "Waiting", "49 of 50 calls observed"),
        (FAST, FEW, False, "Waiting", "49 of 50 calls without the release observed"),
        (FAST, FEW, True, "Passed", "nothing to compare with: 49 of 50"),
        (FAST, FAST, False, "Passed", "p99 is 0.1 s, and 0.1 s without the release"),
        (SLOW, FAST, False, "Failed", "0.2 s is allowed"),
        (SLOW, FAST, True, "Failed", "0.2 s is allowed"),
        (FAST, SLOW, False, "Passed", "p99 is 0.1 s"),
    ],
)
def test_latency(
    calls: ObservedCalls, before: ObservedCalls, is_for_all: bool, expected: Verdict, part: str
) -> None:
    result = check_latency(LatencyCheck(2.0, 50), calls, before, cohort=4, is_for_all=is_for_all)
    assert result.verdict == expected
    assert part in result.message


def test_latency_of_an_empty_cohort_passes() -> None:
    nothing = ObservedCalls()
    result = check_latency(LatencyCheck(2.0), nothing, nothing, cohort=0, is_for_all=False)
    assert result.verdict == "Passed"


calls = st.integers(0, 1000).flatmap(
    lambda count: st.builds(
        ObservedCalls, st.just(count), st.integers(0, count), st.floats(0.001, 60.0)
    )
)


@given(calls, st.floats(0.0, 1.0), st.integers(1, 1000), st.integers(0, 100))
def test_more_errors_never_help(
    found: ObservedCalls, most: float, minimum: int, further: int
) -> None:
    check = ErrorsCheck(most, minimum)
    worse = ObservedCalls(found.count, min(found.count, found.errors + further), found.p99)
    order: list[Verdict] = ["Passed", "Waiting", "Failed"]
    results = [check_errors(check, each, cohort=1).verdict for each in (found, worse)]
    assert order.index(results[0]) <= order.index(results[1])


@given(calls, calls, st.floats(1.0, 10.0), st.integers(1, 1000), st.booleans())
def test_no_check_of_calls_fails_before_its_minimum(
    found: ObservedCalls, before: ObservedCalls, factor: float, minimum: int, is_for_all: bool
) -> None:
    assume(found.count < minimum)
    latency = LatencyCheck(factor, minimum)
    results = [
        check_errors(ErrorsCheck(0.0, minimum), found, cohort=1),
        check_latency(latency, found, before, cohort=1, is_for_all=is_for_all),
    ]
    assert [each.verdict for each in results] == ["Waiting", "Waiting"]


@pytest.mark.parametrize(
    ("result", "shown", "has_passed", "expected"),
    [
        (WAITING, PASSED, True, PASSED),
        (WAITING, PASSED, False, WAITING),
        (WAITING, FAILED, True, WAITING),
        (WAITING, None, True, WAITING),
        (FAILED, PASSED, True, FAILED),
    ],
)
def test_after_a_step_its_last_result_counts(
    result: CheckResult, shown: CheckResult | None, has_passed: bool, expected: CheckResult
) -> None:
    assert lasting_result(result, shown, has_passed=has_passed) == expected


# Values of Prometheus.


def answer(kind: str, result: Any) -> dict[str, Any]:
    return {"status": "success", "data": {"resultType": kind, "result": result}}


def sample(value: str) -> dict[str, Any]:
    return {"metric": {}, "value": [1750000000.1, value]}


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (answer("scalar", [1.5, "0.25"]), (0.25,)),
        (answer("vector", [sample("1e3")]), (1000.0,)),
        (answer("vector", [sample("+Inf")]), (math.inf,)),
        (answer("vector", []), NotObserved("the result of the query is empty")),
        (
            answer("vector", [sample("1"), sample("2")]),
            (1.0, 2.0),
        ),
        (
            answer("matrix", []),
            NotObserved("the result is of the type matrix, expected a scalar or a vector"),
        ),
        (
            answer("vector", [{"metric": {}, "histogram": [1.5, {}]}]),
            NotObserved("the result is a histogram, expected a number"),
        ),
        (answer("scalar", [1.5, "much"]), NotObserved("'much' is not a number")),
        (
            {"status": "error", "errorType": "bad_data", "error": "parse error"},
            NotObserved("Prometheus reports bad_data: parse error"),
        ),
    ],
)
def test_the_values_in_an_answer(found: Any, expected: tuple[float, ...] | NotObserved) -> None:
    assert prometheus_values(found) == expected


STRANGE: list[Any] = [
    None,
    [],
    {},
    {"status": "success"},
    answer("vector", None),
    answer("vector", [3]),
    answer("scalar", [1.5]),
    answer("scalar", [1.5, 2.5]),
]


@pytest.mark.parametrize("found", STRANGE)
def test_an_answer_of_another_server_has_no_value(found: Any) -> None:
    expected = NotObserved("the answer is not one of the API of Prometheus")
    assert prometheus_values(found) == expected


def test_nan_is_read_and_checks_nothing() -> None:
    value = prometheus_values(answer("vector", [sample("NaN")]))
    result = check_values(PrometheusCheck("", "a/b", below=1.0), value)
    assert result == CheckResult("prometheus", "Waiting", "the value is NaN")


json = st.recursive(
    st.none() | st.booleans() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
)
almost = st.builds(answer, st.sampled_from(["scalar", "vector", "matrix"]), json)


@given(json | almost)
def test_every_answer_is_read(found: Any) -> None:
    assert isinstance(prometheus_values(found), tuple | NotObserved)


limits = st.none() | st.floats(-10, 10)


@given(st.floats(-20, 20), limits, limits)
def test_a_value_passes_exactly_within_its_limits(
    value: float, below: float | None, above: float | None
) -> None:
    given_limits = {
        name: limit for name, limit in (("below", below), ("above", above)) if limit is not None
    }
    result = check_values(PrometheusCheck("", "q", **given_limits), [value])
    is_within = (below is None or value < below) and (above is None or value > above)
    assert result.verdict == ("Passed" if is_within else "Failed")


@pytest.mark.parametrize(
    ("values", "verdict", "message"),
    [
        ((0.1, 0.2), "Passed", "all 2 values, must be above 0 and below 1"),
        ((0.5,), "Passed", "0.5, must be above 0 and below 1"),
        ((0.1, 3.0, 4.0), "Failed", "3, must be above 0 and below 1 (2 of 3 values are not)"),
        ((math.nan, -1.0), "Failed", "-1, must be above 0 and below 1 (1 of 2 values are not)"),
        ((math.nan, 0.5), "Waiting", "1 of 2 values are NaN"),
        ((), "Waiting", "there is none"),
    ],
)
def test_all_values_must_be_within_the_limits(
    values: tuple[float, ...], verdict: str, message: str
) -> None:
    result = check_values(PrometheusCheck("", "q", below=1.0, above=0.0), values)
    assert (result.verdict, result.message) == (verdict, message)


@pytest.mark.parametrize("value", [math.inf, -math.inf])
def test_infinity_is_a_value(value: float) -> None:
    assert check_values(PrometheusCheck("", "q", below=0.0), [value]).verdict == (
        "Failed" if value > 0 else "Passed"
    )
    assert check_values(PrometheusCheck("", "q", above=0.0), [value]).verdict == (
        "Passed" if value > 0 else "Failed"
    )


def test_a_status_must_be_the_expected_one() -> None:
    check = HttpCheck("http://shop.example", 204)
    assert check_http(check, 204).verdict == "Passed"
    assert check_http(check, 200) == CheckResult("http", "Failed", "status 200, expected 204")
    refused = NotObserved("connection refused")
    assert check_http(check, refused) == CheckResult("http", "Waiting", "connection refused")


# Failures in a row.


verdicts = st.lists(st.sampled_from(["Passed", "Waiting", "Failed"]))


@given(verdicts)
def test_a_check_fails_after_failures_in_a_row(seen: list[Verdict]) -> None:
    failures = 0
    for number, verdict in enumerate(seen, start=1):
        result = CheckResult("http", verdict, "status 503")
        failures = failures_after(failures, result)
        observed = [each for each in seen[:number] if each != "Waiting"]
        last = observed[-CONFIRMED:]
        shown = confirmed_result(result, failures)
        fails = verdict == "Failed" and last == ["Failed"] * CONFIRMED
        assert (shown.verdict == "Failed") is fails
        assert (shown.verdict == "Passed") is (verdict == "Passed")
