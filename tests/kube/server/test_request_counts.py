"""Counts of requests per version and client, and their limits."""

from __future__ import annotations

from polyver.kube.server.request_counts import MOST_AGENTS, RequestCounts, VersionCounts

LAMPS = "lamps.ex.io"


def only(counts: RequestCounts) -> VersionCounts:
    [versions] = counts.take().values()
    [found] = versions.values()
    return found


def test_each_client_is_counted_with_its_last_request() -> None:
    times = iter([1.0, 2.0, 3.0])
    counts = RequestCounts(lambda: next(times))
    for version, agent in (("v1", "a/1"), ("v1", "a/1"), ("v2", "b/1")):
        counts.count(LAMPS, version, "ann", agent)
    found = counts.take()[LAMPS]
    one, other = found["v1"].clients["ann", "a/1"], found["v2"].clients["ann", "b/1"]
    assert [(one.requests, one.last), (other.requests, other.last)] == [(2, 2.0), (1, 3.0)]
    assert counts.take() == {}


def test_a_user_with_many_user_agents_has_few_of_them() -> None:
    counts = RequestCounts()
    for number in range(1000):
        counts.count(LAMPS, "v1", "mallory", f"agent/{number}")
    counts.count(LAMPS, "v1", "ann", "kubectl/1")
    found = only(counts)
    assert len(found.clients) == MOST_AGENTS + 2
    assert found.clients["mallory", ""].requests == 1000 - MOST_AGENTS
    assert found.clients["ann", "kubectl/1"].requests == 1


def test_many_users_are_counted_together() -> None:
    counts = RequestCounts()
    for number in range(1000):
        counts.count(LAMPS, "v1", f"user-{number}", "x" * 100_000)
    found = only(counts)
    listed = sum(each.requests for each in found.clients.values())
    assert listed + found.others.requests == 1000
    assert sum(len(user) + len(agent) for user, agent in found.clients) < 100_000


def test_characters_that_terminals_interpret_are_replaced() -> None:
    counts = RequestCounts()
    for _ in range(2):
        counts.count(LAMPS, "v1", "ann\n", "a\x1b[31m\u2028é")
    assert only(counts).clients.keys() == {("ann?", "a?[31m??")}


def test_conversions_are_no_requests() -> None:
    counts = RequestCounts(lambda: 5.0)
    counts.converted(LAMPS, "v1", 3)
    found = only(counts)
    assert (found.conversions.requests, found.conversions.last, found.clients) == (3, 5.0, {})
