"""Who asks and what they may do, against what the real server was heard to say."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from polyver.kube.objects.status import ApiError
from polyver.kube.server.http import User
from polyver.kube.server.identity import (
    ADMIN,
    ANONYMOUS,
    VIEWER,
    AuthorizationAttributes,
    Identities,
    access_review,
    certificate_user,
    impersonated,
    may,
    refusal,
    rules_review,
    self_review,
)

RECORDED = Path(__file__).parents[2] / "kube" / "recorded"
JANE = User("jane", ("devs", "system:authenticated"))
identities = Identities({"secret": ADMIN, "page": VIEWER})


def recorded(case: str, step: int) -> Any:
    return json.loads((RECORDED / f"{case}.json").read_text())[step]["body"]


def test_a_token_names_its_user() -> None:
    assert identities.who(None, "Bearer secret") == ADMIN
    assert identities.who(None, "bearer page") == VIEWER


@pytest.mark.parametrize("header", ["", "Bearer", "Bearer ", "Basic c2VjcmV0", "secret"])
def test_without_a_token_one_is_anonymous(header: str) -> None:
    assert identities.who(None, header) == ANONYMOUS


@given(st.text(min_size=1).filter(lambda text: text.strip() not in ("", "secret", "page")))
def test_any_other_token_is_refused(token: str) -> None:
    with pytest.raises(ApiError) as refused:
        identities.who(None, f"Bearer {token}")
    assert refused.value.status == recorded("requests-without-permission", 5)


def test_an_empty_token_is_nobodys() -> None:
    assert Identities({"": ADMIN}).who(None, "Bearer ") == ANONYMOUS


def test_a_certificate_goes_before_a_token() -> None:
    assert identities.who(JANE, "Bearer wrong") == JANE


def test_a_certificate_tells_name_and_groups() -> None:
    subject = [[("organizationName", "a")], [("organizationName", "b")], [("commonName", "jane")]]
    user = certificate_user(subject, b"der")
    assert user
    assert (user.name, user.groups) == ("jane", ("a", "b", "system:authenticated"))
    assert user.extra["authentication.kubernetes.io/credential-id"][0].startswith("X509SHA256=")


def test_a_certificate_without_a_name_is_nobodys() -> None:
    assert certificate_user([[("organizationName", "system:masters")]], b"") is None


# Being taken for someone else.


def test_an_administrator_may_be_taken_for_anyone() -> None:
    asked = [
        ("impersonate-user", "jane"),
        ("impersonate-group", "devs"),
        ("impersonate-group", "ops"),
        ("impersonate-extra-team%2fname", "blue"),
    ]
    user = impersonated(ADMIN, asked)
    assert user == User(
        "jane", ("devs", "ops", "system:authenticated"), "", {"team/name": ("blue",)}
    )


@pytest.mark.parametrize(
    ("name", "groups"),
    [
        ("system:anonymous", ("system:unauthenticated",)),
        (
            "system:serviceaccount:a:b",
            ("system:serviceaccounts", "system:serviceaccounts:a", "system:authenticated"),
        ),
    ],
)
def test_some_groups_come_with_the_name(name: str, groups: tuple[str, ...]) -> None:
    assert impersonated(ADMIN, [("impersonate-user", name)]).groups == groups


@pytest.mark.parametrize("user", [JANE, VIEWER, ANONYMOUS])
def test_nobody_else_may(user: User) -> None:
    with pytest.raises(ApiError) as refused:
        impersonated(user, [("impersonate-user", "root")])
    assert refused.value.code == 403
    assert 'cannot impersonate resource "users"' in refused.value.message


def test_groups_alone_make_no_user() -> None:
    with pytest.raises(ApiError) as refused:
        impersonated(ADMIN, [("impersonate-group", "system:masters")])
    assert refused.value.code == 400


# What they may do.

NAMES = st.sampled_from(["", "*", "a", "pods", "secrets", "widgets"])
WANTED = st.builds(
    AuthorizationAttributes,
    st.sampled_from(["get", "list", "watch", "create", "update", "patch", "delete", "*"]),
    group=st.sampled_from(["", "*", "apps", "ex.io"]),
    resource=NAMES,
    subresource=st.sampled_from(["", "status"]),
    namespace=NAMES,
    name=NAMES,
)


@given(WANTED)
def test_an_administrator_may_everything_and_a_stranger_nothing(
    wanted: AuthorizationAttributes,
) -> None:
    assert may(ADMIN, wanted)
    assert not may(ANONYMOUS, wanted)
    assert not may(JANE, wanted)


@given(WANTED)
def test_a_viewer_reads_everything_but_secrets(wanted: AuthorizationAttributes) -> None:
    secret = wanted.resource in ("secrets", "*") and wanted.group in ("", "*")
    reads = wanted.verb in ("get", "list", "watch")
    assert may(VIEWER, wanted) == (reads and not secret)


@pytest.mark.parametrize("path", ["/healthz", "/livez", "/readyz", "/version", "/version/"])
def test_health_and_version_are_for_everyone(path: str) -> None:
    assert may(ANONYMOUS, AuthorizationAttributes("get", path=path))
    assert not may(ANONYMOUS, AuthorizationAttributes("post", path=path))


@pytest.mark.parametrize(
    "path", ["/livez/ping", "/healthz/", "/metrics", "/api", "/apis", "/openapi/v2", "/"]
)
def test_other_paths_are_not(path: str) -> None:
    assert not may(ANONYMOUS, AuthorizationAttributes("get", path=path))


@pytest.mark.parametrize("path", ["/api", "/api/v1", "/apis", "/apis/apps", "/openapi/v3"])
def test_who_is_known_may_discover(path: str) -> None:
    assert may(JANE, AuthorizationAttributes("get", path=path))
    assert not may(JANE, AuthorizationAttributes("get", path="/metrics"))


NS = "requests-without-permission"


@pytest.mark.parametrize(
    ("step", "wanted"),
    [
        (0, AuthorizationAttributes("list", resource="configmaps", namespace=NS)),
        (
            1,
            AuthorizationAttributes(
                "create", group=f"{NS}.ex.io", resource="widgets", namespace=NS
            ),
        ),
        (
            2,
            AuthorizationAttributes(
                "patch",
                group=f"{NS}.ex.io",
                resource="widgets",
                subresource="status",
                namespace=NS,
                name="a",
            ),
        ),
        (3, AuthorizationAttributes("delete", resource="namespaces", namespace=NS, name=NS)),
        (4, AuthorizationAttributes("get", path="/nothing")),
    ],
)
def test_a_refusal_reads_as_the_real_servers(step: int, wanted: AuthorizationAttributes) -> None:
    assert refusal(ANONYMOUS, wanted).status == recorded(NS, step)


# What they ask about themselves.


def test_who_am_i() -> None:
    assert self_review(ADMIN) == recorded("who-am-i", 0)["status"]


@pytest.mark.parametrize("step", [0, 1])
def test_may_i(step: int) -> None:
    asked = recorded("may-i-access", step)
    assert access_review(ADMIN, asked["spec"]) == asked["status"]
    assert access_review(JANE, asked["spec"]) == {"allowed": False}


def test_a_review_is_about_one_thing() -> None:
    with pytest.raises(ApiError) as refused:
        access_review(ADMIN, {})
    assert refused.value.status == recorded("may-i-access", 2)
    with pytest.raises(ApiError, match="exactly one"):
        access_review(ADMIN, {"resourceAttributes": {}, "nonResourceAttributes": {}})


def test_the_rules_of_an_administrator_are_complete() -> None:
    status = rules_review(ADMIN, "default")
    assert status["incomplete"] is False
    assert {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]} in status["resourceRules"]
    assert {"verbs": ["*"], "nonResourceURLs": ["*"]} in status["nonResourceRules"]


def test_the_rules_of_a_viewer_say_what_they_leave_out() -> None:
    status = rules_review(VIEWER, "default")
    assert status["incomplete"] is True
    assert "secrets" in status["evaluationError"]


def test_rules_are_asked_for_in_a_namespace() -> None:
    with pytest.raises(ApiError) as refused:
        rules_review(ADMIN, "")
    assert refused.value.status == recorded("which-rules-have-i", 1)
