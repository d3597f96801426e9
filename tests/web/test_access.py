"""Who may see the page, decided."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from polyver.web._access import LASTS, PageAuthenticator, host_is_local

TOKEN = "correct-horse"
NOW = 1_700_000_000.0


def cookie_of(access: PageAuthenticator, now: float = NOW) -> str:
    entered = access.entered("/", f"token={TOKEN}", now)
    assert entered is not None
    return entered.cookie.partition(";")[0]


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "127.0.0.1:6451", "localhost:1", "LOCALHOST", "[::1]", "[::1]:80"]
)
def test_a_name_of_this_machine_is_local(host: str) -> None:
    assert host_is_local(host)


@pytest.mark.parametrize(
    "host",
    [
        *("", ":", ":80", "evil.example", "evil.example:6451", "127.0.0.1.evil.example:6451"),
        *("localhost.evil.example", "127.0.0.1:6451:1", "127.0.0.1:port", "127.0.0.2:6451"),
        *("127.0.0.1@evil.example", "localhost:", "127.0.0.1:٣"),
    ],
)
def test_a_name_that_others_can_take_is_not(host: str) -> None:
    assert not host_is_local(host)


def test_a_token_is_worth_a_cookie_that_lasts() -> None:
    access = PageAuthenticator(TOKEN)
    headers = {"cookie": f'other={{"a": [1;2]}}; b; =; {cookie_of(access)}'}
    assert access.allows(headers, NOW)
    assert access.allows(headers, NOW + LASTS)
    assert not access.allows(headers, NOW + LASTS + 1)


def test_a_cookie_counts_for_its_own_token_alone() -> None:
    assert not PageAuthenticator("another").allows(
        {"cookie": cookie_of(PageAuthenticator(TOKEN))}, NOW
    )


def test_a_cookie_is_not_to_be_read_by_scripts_nor_sent_by_other_sites() -> None:
    entered = PageAuthenticator(TOKEN).entered("/", f"token={TOKEN}", NOW)
    assert entered is not None
    assert {"HttpOnly", "SameSite=Strict", "Path=/"} <= set(entered.cookie.split("; "))
    assert TOKEN not in entered.cookie


@pytest.mark.parametrize(
    ("path", "query", "address"),
    [
        ("/", f"token={TOKEN}", "/"),
        ("/lineages/a/b", f"q=1&token={TOKEN}&page=2", "/lineages/a/b?q=1&page=2"),
        ("//evil.example/x", f"token={TOKEN}", "/evil.example/x"),
        ("/\\evil.example", f"token={TOKEN}", "/evil.example"),
    ],
)
def test_the_address_goes_on_without_its_token(path: str, query: str, address: str) -> None:
    entered = PageAuthenticator(TOKEN).entered(path, query, NOW)
    assert entered is not None
    assert entered.address == address


@given(st.text(), st.text())
def test_no_other_text_is_the_token(text: str, more: str) -> None:
    access = PageAuthenticator(TOKEN)
    name = cookie_of(access).partition("=")[0]
    wrong = text if text != TOKEN else "wrong"
    assert access.entered("/", f"token={wrong}&{more}", NOW) is None
    assert not access.allows({"authorization": f"Bearer {wrong}"}, NOW)
    assert not access.allows({"authorization": wrong, "cookie": f"{name}={text}.{more}"}, NOW)


@given(st.integers(min_value=0, max_value=10**18))
def test_a_cookie_cannot_be_made_to_last_longer(until: int) -> None:
    access = PageAuthenticator(TOKEN)
    name, _, value = cookie_of(access).partition("=")
    given_until, _, signature = value.partition(".")
    longer = until + int(given_until) + 1
    assert not access.allows({"cookie": f"{name}={longer}.{signature}"}, NOW)
