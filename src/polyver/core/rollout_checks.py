"""The checks of rollouts on calls, on values of Prometheus, and on HTTP answers.

Each function gets one observation and returns the result of the check. An observation that is
missing, such as the value of a Prometheus that does not answer, never fails a check: the check
waits, and its message is the reason.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from polyver.core.rollout import CheckResult

__all__ = [
    "CONFIRMED",
    "ErrorsCheck",
    "HttpCheck",
    "LatencyCheck",
    "NotObserved",
    "ObservedCalls",
    "PrometheusCheck",
    "check_errors",
    "check_http",
    "check_latency",
    "check_values",
    "confirmed_result",
    "failures_after",
    "lasting_result",
    "prometheus_values",
]

CONFIRMED = 3
"""The number of failed observations in a row after which a check on another server fails."""


# Calls with a release.


@dataclass(frozen=True, slots=True)
class ObservedCalls:
    """The calls or actions with some releases of a lineage, counted since a time."""

    count: int = 0
    errors: int = 0
    p99: float = 0.0
    """The 99th percentile of the durations of the calls, in seconds; 0 without calls."""


@dataclass(frozen=True, slots=True)
class ErrorsCheck:
    """The check that at most the share `most` (0 to 1) of the calls with the release fail.

    It waits for `minimum` calls.
    """

    most: float
    minimum: int = 1


@dataclass(frozen=True, slots=True)
class LatencyCheck:
    """The check that calls with the release take at most `factor` times as long as other calls.

    It compares the 99th percentiles of the durations. It waits for `minimum` calls with the
    release, and for `minimum` calls with other releases.
    """

    factor: float
    minimum: int = 1


def check_errors(check: ErrorsCheck, calls: ObservedCalls, *, cohort: int) -> CheckResult:
    """Return the result of the check; it passes if `cohort`, the size of the cohort, is 0.

    >>> check_errors(ErrorsCheck(0.01, 20), ObservedCalls(20, 1), cohort=4).message
    '1 of 20 calls failed (5%), at most 1% may fail'
    """
    if not cohort:
        return CheckResult("errors", "Passed", _EMPTY)
    if calls.count < check.minimum:
        return CheckResult("errors", "Waiting", f"{calls.count} of {check.minimum} calls observed")
    share = calls.errors / calls.count
    found = f"{calls.errors} of {calls.count} calls failed ({100 * share:.3g}%)"
    if share > check.most:
        found = f"{found}, at most {100 * check.most:.3g}% may fail"
        return CheckResult("errors", "Failed", found)
    return CheckResult("errors", "Passed", found)


def check_latency(
    check: LatencyCheck,
    calls: ObservedCalls,
    before: ObservedCalls,
    *,
    cohort: int,
    is_for_all: bool,
) -> CheckResult:
    """Return the result of the check.

    `calls` are the calls with the release, and `before` are the calls with other releases.

    `is_for_all` is True if all dependents may use the release. Then there may never be calls with
    other releases, so the check does not wait for them.

    >>> slow, fast = ObservedCalls(50, p99=0.3), ObservedCalls(50, p99=0.1)
    >>> check_latency(LatencyCheck(2.0, 50), slow, fast, cohort=4, is_for_all=False).message
    'p99 is 0.3 s, and 0.1 s without the release; at most 0.2 s is allowed'
    """
    if not cohort:
        return CheckResult("latency", "Passed", _EMPTY)
    if calls.count < check.minimum:
        return CheckResult("latency", "Waiting", f"{calls.count} of {check.minimum} calls observed")
    if before.count < check.minimum:
        found = f"{before.count} of {check.minimum} calls without the release observed"
        if is_for_all:
            return CheckResult("latency", "Passed", f"nothing to compare with: {found}")
        return CheckResult("latency", "Waiting", found)
    most = check.factor * before.p99
    found = f"p99 is {calls.p99:.3g} s, and {before.p99:.3g} s without the release"
    if calls.p99 > most:
        return CheckResult("latency", "Failed", f"{found}; at most {most:.3g} s is allowed")
    return CheckResult("latency", "Passed", found)


_EMPTY = "no dependent is in the cohort"


def lasting_result(
    result: CheckResult, shown: CheckResult | None, *, has_passed: bool
) -> CheckResult:
    """Return the result to use for a check that may wait again after its step has passed.

    If the step has passed and `result` waits, this is `shown`, the last result, if that is
    `Passed`; otherwise it is `result`. A check can wait again, for example, because the process
    that counts the calls was restarted.
    """
    is_known = shown is not None and shown.verdict == "Passed"
    if has_passed and result.verdict == "Waiting" and is_known:
        assert shown is not None
        return shown
    return result


# Answers of other servers.


@dataclass(frozen=True, slots=True)
class NotObserved:
    """Stands for a missing observation; `reason` states why it is missing."""

    reason: str


@dataclass(frozen=True, slots=True)
class PrometheusCheck:
    """The check that all values in the result of a query are within limits."""

    address: str
    query: str
    below: float = math.inf
    above: float = -math.inf

    @property
    def limits(self) -> str:
        """The limits in words: `below 0.01`, `above 0.99`, or both."""
        below = f"below {self.below:.6g}" if self.below != math.inf else ""
        above = f"above {self.above:.6g}" if self.above != -math.inf else ""
        return " and ".join(filter(None, (above, below)))

    def includes(self, value: float) -> bool:
        """Report whether a value is within the limits; a NaN is not."""
        is_below = self.below == math.inf or value < self.below
        return is_below and (self.above == -math.inf or value > self.above)


@dataclass(frozen=True, slots=True)
class HttpCheck:
    """The check that an HTTP request to `url` is answered with the status code `status`."""

    url: str
    status: int = 200


def check_values(check: PrometheusCheck, found: Sequence[float] | NotObserved) -> CheckResult:
    """Return the result of the check for the values of its query.

    >>> check_values(PrometheusCheck("", "up", below=0.01), [0.2]).message
    '0.2, must be below 0.01'
    >>> check_values(PrometheusCheck("", "up", below=0.01), [math.nan]).verdict
    'Waiting'
    """
    if isinstance(found, NotObserved):
        return CheckResult("prometheus", "Waiting", found.reason)
    numbers = [each for each in found if not math.isnan(each)]
    outside = [each for each in numbers if not check.includes(each)]
    many = f" ({len(outside)} of {len(found)} values are not)" if len(found) > 1 else ""
    if outside:
        message = f"{outside[0]:.6g}, must be {check.limits}{many}"
        return CheckResult("prometheus", "Failed", message)
    if len(numbers) < len(found) or not found:
        unknown = f"{len(found) - len(numbers)} of {len(found)} values are NaN"
        message = unknown if len(found) > 1 else "the value is NaN" if found else "there is none"
        return CheckResult("prometheus", "Waiting", message)
    shown = f"{numbers[0]:.6g}" if len(numbers) == 1 else f"all {len(numbers)} values"
    return CheckResult("prometheus", "Passed", f"{shown}, must be {check.limits}")


def check_http(check: HttpCheck, found: int | NotObserved) -> CheckResult:
    """Return the result of the check for the status of its URL.

    >>> check_http(HttpCheck("http://shop.example"), 503).message
    'status 503, expected 200'
    """
    if isinstance(found, NotObserved):
        return CheckResult("http", "Waiting", found.reason)
    if found != check.status:
        return CheckResult("http", "Failed", f"status {found}, expected {check.status}")
    return CheckResult("http", "Passed", f"status {found}")


def prometheus_values(answer: object) -> tuple[float, ...] | NotObserved:
    """Return the values in an answer of Prometheus; `NotObserved` if it has none.

    `answer` is the body of the answer, decoded from JSON.

    >>> prometheus_values({"status": "success", "data": {"resultType": "vector", "result": []}})
    NotObserved(reason='the result of the query is empty')
    """
    if not isinstance(answer, Mapping):
        return _NO_ANSWER
    if answer.get("status") == "error":
        return NotObserved(f"Prometheus reports {answer.get('errorType')}: {answer.get('error')}")
    data = answer.get("data")
    if answer.get("status") != "success" or not isinstance(data, Mapping):
        return _NO_ANSWER
    kind, result = data.get("resultType"), data.get("result")
    if kind == "vector":
        return _numbers_in_vector(result)
    if kind == "scalar":
        number = _number(result)
        return number if isinstance(number, NotObserved) else (number,)
    return NotObserved(f"the result is of the type {kind}, expected a scalar or a vector")


_NO_ANSWER = NotObserved("the answer is not one of the API of Prometheus")


def _numbers_in_vector(samples: object) -> tuple[float, ...] | NotObserved:
    """Return the numbers of all samples in a vector."""
    if not isinstance(samples, list):
        return _NO_ANSWER
    if not samples:
        return NotObserved("the result of the query is empty")
    found = []
    for each in samples:
        number = _number_in_sample(each)
        if isinstance(number, NotObserved):
            return number
        found.append(number)
    return tuple(found)


def _number_in_sample(sample: object) -> float | NotObserved:
    if not isinstance(sample, Mapping):
        return _NO_ANSWER
    if "histogram" in sample:
        return NotObserved("the result is a histogram, expected a number")
    return _number(sample.get("value"))


def _number(pair: object) -> float | NotObserved:
    """Return the number in a pair of a time and a number; the number is a string."""
    if not isinstance(pair, Sequence) or len(pair) != 2 or not isinstance(pair[1], str):
        return _NO_ANSWER
    try:
        return float(pair[1])
    except ValueError:
        return NotObserved(f"{pair[1]!r} is not a number")


def failures_after(failures: int, result: CheckResult) -> int:
    """Return the number of failures in a row after one more result.

    A result without an observation changes nothing.
    """
    if result.verdict == "Failed":
        return failures + 1
    return 0 if result.verdict == "Passed" else failures


def confirmed_result(result: CheckResult, failures: int) -> CheckResult:
    """Return `result`; with fewer than `CONFIRMED` failures in a row, `Waiting` replaces `Failed`.

    >>> confirmed_result(CheckResult("http", "Failed", "status 503"), 1)
    CheckResult(name='http', verdict='Waiting', message='status 503 (failure 1 of 3 in a row)')
    """
    if result.verdict != "Failed" or failures >= CONFIRMED:
        return result
    message = f"{result.message} (failure {failures} of {CONFIRMED} in a row)"
    return replace(result, verdict="Waiting", message=message)
