"""Counts of requests are merged: nothing is lost, in any order, within limits."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from polyver.apis.usage_merge import MOST_CLIENTS, MOST_ENTRIES, merge_versions

Object = dict[str, Any]
KNOWN = ["v1", "v2"]


def time(second: int) -> str:
    return f"2026-01-31T12:00:{second:02}Z"


def client(user: str, agent: str, requests: int, second: int) -> Object:
    named = {"user": user} | ({"userAgent": agent} if agent else {})
    return named | {"requests": requests, "lastRequest": time(second)}


def counted(version: str, *clients: Object, others: int = 0) -> Object:
    found: Object = {"version": version, "clients": list(clients)}
    if others:
        found["otherClients"] = others
    found["requests"] = sum(each["requests"] for each in clients) + others
    found["lastRequest"] = max((each["lastRequest"] for each in clients), default=time(0))
    return found


def merge(*lists: list[Object], oldest: str = "") -> list[Object]:
    found: list[Object] = []
    for each in lists:
        found = merge_versions(found, each, known=KNOWN, oldest=oldest)
    return found


clients = st.builds(
    client,
    st.sampled_from("abcde"),
    st.sampled_from(["", "x", "y"]),
    st.integers(1, 9),
    st.integers(0, 59),
)
versions = st.lists(
    st.builds(
        lambda name, found, others: counted(name, *found, others=others),
        st.sampled_from(KNOWN),
        st.lists(clients, max_size=5),
        st.integers(0, 3),
    ),
    max_size=3,
)


@given(versions, versions)
def test_the_order_of_writers_does_not_matter(one: list[Object], other: list[Object]) -> None:
    assert merge(one, other) == merge(other, one)


@given(versions, versions, versions)
def test_what_is_pending_may_be_merged_first(
    one: list[Object], two: list[Object], three: list[Object]
) -> None:
    assert merge(merge(one, two), three) == merge(one, merge(two, three))


many = st.lists(
    st.builds(
        client,
        st.integers(0, 60).map(str),
        st.integers(0, 20).map(str),
        st.integers(1, 9),
        st.integers(0, 59),
    ),
    max_size=120,
)


@given(many)
def test_no_request_is_lost_when_clients_are_merged(found: list[Object]) -> None:
    [version] = merge([counted("v1", *found)]) or [counted("v1")]
    listed = version.get("clients") or []
    total = sum(each["requests"] for each in listed) + version.get("otherClients", 0)
    assert total == version["requests"] == sum(each["requests"] for each in found)
    assert len(listed) <= MOST_CLIENTS
    users = [each["user"] for each in listed]
    assert all(users.count(user) <= MOST_ENTRIES for user in users)
    assert [each["lastRequest"] for each in listed] == sorted(
        (each["lastRequest"] for each in listed), reverse=True
    )


def test_many_user_agents_of_one_user_hide_nobody() -> None:
    users = [client(f"user-{number}", "kubectl/1", 1, 0) for number in range(MOST_CLIENTS - 1)]
    found = merge([counted("v1", *users)])
    for number in range(100):
        found = merge(found, [counted("v1", client("mallory", f"agent/{number}", 1, 30))])
    names = [each["user"] for each in found[0]["clients"]]
    assert {f"user-{number}" for number in range(MOST_CLIENTS - 1)} < {*names}
    [mallory] = [each for each in found[0]["clients"] if each["user"] == "mallory"]
    assert mallory["requests"] == 100


def test_clients_without_requests_for_long_are_removed() -> None:
    found = merge([counted("v1", client("old", "", 1, 1), client("new", "", 1, 3))])
    [left] = merge(found, oldest=time(2))
    assert [each["user"] for each in left["clients"]] == ["new"]
    assert left["requests"] == 2


def test_versions_that_the_kind_has_no_more_are_removed() -> None:
    assert merge([counted("v0", client("a", "", 1, 1))]) == []
