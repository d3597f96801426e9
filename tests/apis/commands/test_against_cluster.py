"""`polyver check --against cluster:`, as someone types it, beside a server that runs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from tests.apis.commands.test_check import BACKUPS, MOVE
from tests.app.test_cli import Ran
from tests.editing import edited
from tests.walks.support import eventually

from polyver.kube.objects import Document, dump_yaml, load_manifests
from polyver.kube.objects.status import ApiError
from polyver.testing import EmbeddedServer

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
CONVERSIONS = "/apis/polyver.dev/v1alpha1/conversions"
NAME = "backups.shop.example.com"


def definition(text: str = BACKUPS) -> Any:
    documents = [each.value for each in load_manifests(text, "backups.yaml")]
    return next(
        each
        for each in documents
        if isinstance(each, dict) and each["kind"] == "CustomResourceDefinition"
    )


@pytest.fixture
def server(
    kube_server: EmbeddedServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[EmbeddedServer]:
    """The shared server, named in KUBECONFIG, with a folder for files beside it."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("KUBECONFIG", str(kube_server.kubeconfig))
    (tmp_path / "backups.yaml").write_text(BACKUPS)
    yield kube_server
    with suppress(ApiError):  # most tests make none
        kube_server.request("DELETE", f"{DEFINITIONS}/{NAME}")


def check(capsys: pytest.CaptureFixture[str], against: str, *more: str) -> Ran:
    arguments = ("--conversions", "backups.yaml", "--examples", "0", "--against", against)
    return Ran(capsys, "check", *arguments, *more)


def test_what_users_of_a_cluster_would_lose_is_found(
    server: EmbeddedServer, capsys: pytest.CaptureFixture[str]
) -> None:
    server.request("POST", DEFINITIONS, definition())
    ran = check(capsys, "cluster:")
    assert (ran.code, ran.err) == (0, "")
    assert "no findings" in ran.out
    edited = BACKUPS.replace("schedule: {type: string}", "when: {type: string}")
    Path("backups.yaml").write_text(edited)
    ran = check(capsys, "cluster:polyver-token")
    assert ran.code == 1
    assert f"breaking field-renamed: {NAME} v1 spec.schedule" in ran.out


def test_what_the_conversion_on_a_cluster_showed_otherwise_is_found(
    server: EmbeddedServer, capsys: pytest.CaptureFixture[str]
) -> None:
    server.request("POST", DEFINITIONS, definition())
    [rules] = [e.value for e in load_manifests(BACKUPS, "b.yaml") if kind_of(e) == "Conversion"]
    server.request("POST", CONVERSIONS, rules)
    drop = "    - drop: {at: spec.cron}\n    - add: {at: spec.schedule}\n"
    arguments = ("--conversions", "backups.yaml", "--examples", "40", "--against", "cluster:")
    assert Ran(capsys, "check", *arguments).code == 0
    Path("backups.yaml").write_text(BACKUPS.replace(MOVE, drop))
    ran = Ran(capsys, "check", *arguments)
    assert ran.code == 1
    assert f"breaking view-changed: {NAME} v1alpha1 → v1beta1 spec.schedule" in ran.out
    server.request("DELETE", f"{DEFINITIONS}/{NAME}")
    server.request("DELETE", f"{CONVERSIONS}/{NAME}")
    eventually(lambda: is_gone(server, f"{CONVERSIONS}/{NAME}"))


def kind_of(document: Document) -> Any:
    return document.value["kind"] if isinstance(document.value, dict) else ""


def is_gone(server: EmbeddedServer, path: str) -> bool:
    try:
        server.request("GET", path)
    except ApiError as error:
        return error.code == 404
    return False


def test_a_version_that_objects_are_stored_in_is_missed(
    server: EmbeddedServer, capsys: pytest.CaptureFixture[str]
) -> None:
    """The status of a definition says so, which no file does."""
    before = definition()
    names = [each["name"] for each in before["spec"]["versions"] if not each["storage"]]
    server.request("POST", DEFINITIONS, before)

    def store_another(crd: Any) -> None:
        for each in crd["spec"]["versions"]:
            each["storage"] = each["name"] == names[0]

    edited(server.request, f"{DEFINITIONS}/{NAME}", store_another)
    after = definition()
    kept = [each for each in after["spec"]["versions"] if each["name"] == names[0]]
    after["spec"]["versions"] = [{**kept[0], "storage": True}]
    Path("after.yaml").write_text(dump_yaml(after))
    ran = Ran(capsys, "check", "after.yaml", "--examples", "0", "--against", "cluster:")
    assert ran.code == 1
    assert "stored" in ran.out


def test_kinds_that_a_cluster_does_not_have_are_new_and_it_is_said(
    server: EmbeddedServer, capsys: pytest.CaptureFixture[str]
) -> None:
    ran = check(capsys, "cluster:")
    assert ran.code == 0
    assert f"warning: {server.url} has none of {NAME}: nothing is compared" in ran.err


def test_an_unknown_context_is_told_with_those_there_are(
    server: EmbeddedServer, capsys: pytest.CaptureFixture[str]
) -> None:
    ran = check(capsys, "cluster:production")
    assert ran.code == 3
    assert ran.err == (
        f"error: there is no context production ({server.kubeconfig}); "
        "known: polyver, polyver-token\n"
    )


def test_nowhere_to_look_is_told(
    server: EmbeddedServer,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("KUBECONFIG")
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    ran = check(capsys, "cluster:")
    assert ran.code == 3
    assert ran.err.startswith(f"error: no cluster is configured ({tmp_path}/.kube/config, ")
    assert ran.err.count("\n") == 1


def _changed(server: EmbeddedServer, old: str, new: str) -> None:
    text = server.kubeconfig.read_text()
    assert old in text
    Path("kubeconfig").write_text(text.replace(old, new))


@pytest.mark.parametrize("case", ["away", "stranger", "nobody", "forbidden"])
def test_a_cluster_that_does_not_let_us_in_is_told_with_its_place(
    server: EmbeddedServer,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    case: str,
) -> None:
    if case == "away":
        _changed(server, server.url, "https://127.0.0.1:1")
    elif case == "stranger":
        _changed(server, '"certificate-authority-data"', '"ignored"')
    elif case == "nobody":
        _changed(server, server.token, "wrong")
    else:
        _changed(server, '"token"', '"ignored"')
    monkeypatch.setenv("KUBECONFIG", "kubeconfig")
    ran = check(capsys, "cluster:polyver-token")
    problem = {
        "away": "error: the server cannot be reached: Connection refused (https://127.0.0.1:1, ",
        "stranger": "error: the certificate of the server is not trusted: ",
        "nobody": "error: the server does not accept the credentials: Unauthorized (",
        "forbidden": f"error: {NAME} cannot be read: customresourcedefinitions.apiextensions.",
    }[case]
    assert ran.err.startswith(problem)
    assert ran.err.count("\n") == 1
    assert ran.code == 3
    assert "context polyver-token of kubeconfig" in ran.err


def test_who_may_only_read_may_compare(
    server: EmbeddedServer,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    server.request("POST", DEFINITIONS, definition())
    _changed(server, server.token, server.viewer_token)
    monkeypatch.setenv("KUBECONFIG", "kubeconfig")
    ran = check(capsys, "cluster:polyver-token")
    assert (ran.code, ran.err) == (0, "")
