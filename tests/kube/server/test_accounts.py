"""Tokens of service accounts: they prove what they say, for as long as it is true."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from polyver.kube.http.tls import key_pem, new_key
from polyver.kube.server.api import ApiServer
from polyver.kube.server.credentials import Credentials
from polyver.kube.server.http import HttpRequest, User
from polyver.kube.server.identity import (
    ADMIN,
    VIEWER,
    AuthenticationResult,
    AuthorizationAttributes,
    may,
)
from polyver.kube.server.tokens import BadToken, ClaimReference, Claims, PrivateClaims, TokenSigner
from polyver.kube.store import MemoryStore
from polyver.testing import EmbeddedServer

ACCOUNTS = "/api/v1/namespaces/default/serviceaccounts"
BEGIN = datetime(2026, 1, 1, tzinfo=UTC)


class Cluster:
    """A pipeline whose clock is set by hand."""

    def __init__(self) -> None:
        self.now = BEGIN
        self.api = ApiServer(MemoryStore(), now=lambda: self.now)

    async def ask(self, method: str, path: str, body: object = None, user: User = ADMIN) -> Any:
        content = b"" if body is None else json.dumps(body).encode()
        headers = {"content-type": "application/json"}
        answer = await self.api.handle(HttpRequest(method, path, "", headers, content, user))
        assert isinstance(answer.body, bytes)
        return answer.status, json.loads(answer.body)

    async def account(self, name: str) -> None:
        await self.ask("POST", "/api/v1/namespaces", {"metadata": {"name": "default"}})
        await self.ask("POST", ACCOUNTS, {"metadata": {"name": name}})

    async def token(self, name: str, **spec: Any) -> str:
        status, answer = await self.ask("POST", f"{ACCOUNTS}/{name}/token", {"spec": spec})
        assert status == 201, answer
        return str(answer["status"]["token"])

    def verify(self, token: str) -> AuthenticationResult:
        return self.api.accounts.verify(token, ())


def run(test: Callable[[Cluster], Awaitable[None]]) -> None:
    asyncio.run(_run(test))


async def _run(test: Callable[[Cluster], Awaitable[None]]) -> None:
    await test(Cluster())


def test_a_token_is_good_until_it_expires() -> None:
    async def test(cluster: Cluster) -> None:
        await cluster.account("robot")
        token = await cluster.token("robot", expirationSeconds=600)
        user = cluster.verify(token).user
        assert user is not None
        assert user.name == "system:serviceaccount:default:robot"
        assert user.groups == (
            "system:serviceaccounts",
            "system:serviceaccounts:default",
            "system:authenticated",
        )
        cluster.now = BEGIN + timedelta(seconds=600)
        assert cluster.verify(token).user == user
        cluster.now = BEGIN + timedelta(seconds=601)
        assert cluster.verify(token) == AuthenticationResult(
            problem="service account token has expired"
        )
        cluster.now = BEGIN - timedelta(seconds=1)
        assert cluster.verify(token) == AuthenticationResult(
            problem="service account token is not valid yet"
        )

    run(test)


def test_an_account_that_is_being_deleted_counts_for_a_minute() -> None:
    async def test(cluster: Cluster) -> None:
        await cluster.account("robot")
        kept = {"metadata": {"name": "held", "finalizers": ["ex.io/hold"]}}
        await cluster.ask("POST", ACCOUNTS, kept)
        token = await cluster.token("held")
        await cluster.ask("DELETE", f"{ACCOUNTS}/held")
        cluster.now = BEGIN + timedelta(seconds=60)
        assert cluster.verify(token).user
        cluster.now = BEGIN + timedelta(seconds=61)
        assert cluster.verify(token).problem == "service account default/held has been deleted"

    run(test)


@pytest.mark.parametrize(
    ("kind", "path", "message"),
    [
        ("Secret", "/api/v1/namespaces/default/secrets", "secret UID"),
        ("Node", "/api/v1/nodes", "node UID"),
    ],
)
def test_an_object_of_the_same_name_does_not_make_a_token_good_again(
    kind: str, path: str, message: str
) -> None:
    async def test(cluster: Cluster) -> None:
        await cluster.account("robot")
        await cluster.ask("POST", path, {"metadata": {"name": "a"}})
        reference = {"apiVersion": "v1", "kind": kind, "name": "a"}
        token = await cluster.token("robot", boundObjectRef=reference)
        assert cluster.verify(token).user
        await cluster.ask("DELETE", f"{path}/a")
        assert cluster.verify(token).problem == "service account token has been invalidated"
        await cluster.ask("POST", path, {"metadata": {"name": "a"}})
        assert cluster.verify(token).problem.startswith(message)

    run(test)


def test_only_administrators_get_tokens() -> None:
    async def test(cluster: Cluster) -> None:
        await cluster.account("robot")
        robot = cluster.verify(await cluster.token("robot")).user
        assert robot is not None
        for user in (VIEWER, robot):
            status, _ = await cluster.ask("POST", f"{ACCOUNTS}/robot/token", {}, user)
            assert status == 403
        assert not may(
            robot, AuthorizationAttributes("get", resource="secrets", namespace="default")
        )
        assert not may(robot, AuthorizationAttributes("list", resource="pods", namespace="default"))
        assert may(robot, AuthorizationAttributes("get", path="/apis"))

    run(test)


# The text of a token.

KEY = key_pem(new_key())
words = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=20)
named = st.builds(ClaimReference, name=words, uid=st.uuids().map(str))
claims = st.builds(
    Claims,
    aud=st.lists(words, min_size=1, max_size=3).map(tuple),
    exp=st.integers(0, 1 << 40),
    iat=st.integers(0, 1 << 40),
    jti=words,
    about=st.builds(
        PrivateClaims,
        namespace=words,
        serviceaccount=named,
        pod=st.none() | named,
        node=st.none() | named,
        secret=st.none() | named,
    ),
    nbf=st.integers(0, 1 << 40),
    sub=words,
)


@given(claims)
def test_what_is_signed_is_read_back(found: Claims) -> None:
    signer = TokenSigner(lambda: KEY)
    assert signer.read(signer.sign(found)) == found


@given(claims, st.data())
def test_a_token_that_was_changed_anywhere_proves_nothing(
    found: Claims, data: st.DataObject
) -> None:
    signer = TokenSigner(lambda: KEY)
    token = signer.sign(found)
    place = data.draw(st.integers(0, len(token) - 1))
    other = data.draw(st.sampled_from("AZaz09-_."))
    changed = token[:place] + other + token[place + 1 :]
    try:
        read = signer.read(changed)
    except BadToken:
        return
    # The last sign of a part has bits that no byte needs.
    assert read == found
    assert bytes_of(changed) == bytes_of(token)


def bytes_of(token: str) -> list[bytes]:
    return [base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)) for part in token.split(".")]


@given(claims)
def test_a_token_of_another_key_proves_nothing(found: Claims) -> None:
    with pytest.raises(BadToken):
        TokenSigner(lambda: KEY).read(TokenSigner(lambda: OTHER).sign(found))


OTHER = key_pem(new_key())


@given(st.text() | st.text("ey.J_-AB=", max_size=30))
def test_any_text_is_refused_without_a_fuss(text: str) -> None:
    with pytest.raises(BadToken):
        TokenSigner(lambda: KEY).read(text)


def test_a_token_that_says_that_it_is_not_signed_is_not_believed() -> None:
    signer = TokenSigner(lambda: KEY)
    named = PrivateClaims(namespace="a", serviceaccount=ClaimReference("b", "c"))
    own = Claims(aud=("x",), exp=9, iat=1, jti="j", about=named, nbf=1, sub="s")
    _, content, _ = signer.sign(own).split(".")
    head = base64.urlsafe_b64encode(b'{"alg":"none"}').rstrip(b"=").decode()
    with pytest.raises(BadToken):
        signer.read(f"{head}.{content}.")


def test_the_key_stays_with_the_other_credentials(tmp_path: Path) -> None:
    kept = Credentials.open(tmp_path / "c", ["localhost"], now=datetime.now(UTC))
    assert not (tmp_path / "c" / "accounts.key").exists()
    assert kept.account_key() == kept.account_key()
    assert (tmp_path / "c" / "accounts.key").stat().st_mode & 0o777 == 0o600


def test_a_token_is_still_good_when_the_server_comes_back(tmp_path: Path) -> None:
    review = "/apis/authentication.k8s.io/v1/tokenreviews"
    with EmbeddedServer(data=tmp_path) as server:
        server.request("POST", ACCOUNTS, {"metadata": {"name": "robot"}})
        made = server.request("POST", f"{ACCOUNTS}/robot/token", {})
    with EmbeddedServer(data=tmp_path) as server:
        asked = {"spec": {"token": made["status"]["token"]}}
        assert server.request("POST", review, asked)["status"]["authenticated"] is True
