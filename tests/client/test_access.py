"""How a cluster is found: as kubectl would, and what is wrong has a place."""

from __future__ import annotations

import base64
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from polyver.client.cluster import ClusterAccess, NoAccess, find_access
from polyver.core import PolyverError
from polyver.kube.objects import dump_yaml

Finds = Callable[..., ClusterAccess]


def config(
    name: str,
    *,
    cluster: dict[str, Any] | None = None,
    user: dict[str, Any] | None = None,
    namespace: str = "",
    current: str = "",
) -> dict[str, Any]:
    """A kubeconfig in which everything has the same name."""
    inside = {"namespace": namespace} if namespace else {}
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "preferences": {},
        "clusters": [
            {"name": name, "cluster": {"server": f"https://{name}.example.org"} | (cluster or {})}
        ],
        "users": [{"name": name, "user": user or {}}],
        "contexts": [{"name": name, "context": {"cluster": name, "user": name} | inside}],
        "current-context": current or name,
    }


@pytest.fixture
def write(tmp_path: Path) -> Callable[[str, Any], Path]:
    def written(name: str, content: Any) -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content if isinstance(content, str) else dump_yaml(content))
        return path

    return written


Write = Callable[[str, Any], Path]


@pytest.fixture
def find(tmp_path: Path) -> Finds:
    """Looks in the folder of the test only."""

    def found(
        context: str = "", *files: Path, inside: bool = False, **options: Any
    ) -> ClusterAccess:
        environ = {"KUBECONFIG": ":".join(map(str, files))} if files else {}
        if inside:
            environ |= {"KUBERNETES_SERVICE_HOST": "fd00::1", "KUBERNETES_SERVICE_PORT": "443"}
        account = tmp_path / "account"
        return find_access(context, environ=environ, home=tmp_path, account=account, **options)

    return found


def test_the_kubeconfig_at_home_is_found(find: Finds, write: Write) -> None:
    write(".kube/config", config("home", namespace="mine"))
    found = find()
    assert (found.server, found.context, found.namespace) == (
        "https://home.example.org",
        "home",
        "mine",
    )


def test_kubeconfig_names_others_instead(find: Finds, write: Write) -> None:
    write(".kube/config", config("home"))
    assert find("", write("other", config("other"))).context == "other"
    assert find(kubeconfig=write("given", config("given"))).context == "given"


def test_several_files_are_one_in_which_the_first_counts(find: Finds, write: Write) -> None:
    first = write("first", config("a", user={"token": "1"}, current="b"))
    more = config("a", user={"token": "2"}) | {"users": [{"name": "a", "user": {"token": "2"}}]}
    second = write("second", more)
    third = write("third", config("b", namespace="x"))
    missing = first.parent / "missing"
    found = find("", first, missing, second, third)
    assert (found.context, found.namespace) == ("b", "x")
    assert found.place == f"context b of {third}"
    assert find("a", second, first).user.token == "2"
    assert find("a", first, second).user.token == "1"


def test_paths_are_relative_to_the_file_that_names_them(find: Finds, write: Write) -> None:
    user = {
        "client-certificate": "pki/me.crt",
        "client-key": "/etc/me.key",
        "tokenFile": "token",
    }
    cluster = {"certificate-authority": "ca.crt"}
    one = write("one/config", config("a", cluster=cluster, user=user, current="b"))
    two = write("two/config", config("b", user={"exec": _exec("./bin/login")}))
    found = find("a", one, two)
    assert found.cluster.certificate_auth == str(one.parent / "ca.crt")
    assert found.user.client_cert == str(one.parent / "pki/me.crt")
    assert found.user.client_key == "/etc/me.key"
    assert found.user.token_file == str(one.parent / "token")
    program = find("b", one, two).user.exec
    assert program is not None
    assert Path(program.command) == two.parent / "bin/login"


def _exec(command: str) -> dict[str, Any]:
    return {"apiVersion": "client.authentication.k8s.io/v1", "command": command}


def test_what_is_written_in_the_file_counts_before_a_path(find: Finds, write: Write) -> None:
    cluster = {"certificate-authority": "gone", "certificate-authority-data": "QQ=="}
    found = find("", write("c", config("a", cluster=cluster)))
    assert found.cluster.certificate_auth is None


def test_nulls_are_as_good_as_nothing(find: Finds, write: Write) -> None:
    content = config("a") | {"users": None, "extensions": None}
    content["contexts"][0]["context"]["user"] = None
    assert find("", write("c", content)).user.token is None


def test_a_pod_is_its_service_account(find: Finds, write: Write) -> None:
    write("account/token", "t")
    write("account/namespace", "inner\n")
    found = find(inside=True)
    assert (found.server, found.namespace) == ("https://[fd00::1]:443", "inner")
    assert found.user.token_file
    assert found.cluster.certificate_auth
    write(".kube/config", config("home"))
    assert find(inside=True).context == "home"


@pytest.mark.parametrize(("token", "inside"), [(True, False), (False, True), (False, False)])
def test_nowhere_is_said_with_where_it_was_looked_for(
    find: Finds, write: Write, tmp_path: Path, token: bool, inside: bool
) -> None:
    if token:
        write("account/token", "t")
    with pytest.raises(NoAccess) as caught:
        find(inside=inside)
    assert str(caught.value) == (
        f"no cluster is configured ({tmp_path}/.kube/config, the service account in "
        f"{tmp_path}/account); set KUBECONFIG; `polyver up` writes a kubeconfig"
    )


def test_a_file_that_was_asked_for_has_to_be_there(find: Finds, tmp_path: Path) -> None:
    with pytest.raises(NoAccess, match="does not exist"):
        find(kubeconfig=tmp_path / "gone")


def test_an_unknown_context_is_told_with_those_that_are_known(find: Finds, write: Write) -> None:
    files = write("one", config("b")), write("two", config("a"))
    with pytest.raises(NoAccess) as caught:
        find("c", *files)
    assert str(caught.value) == f"there is no context c ({files[0]}, {files[1]}); known: a, b"
    with pytest.raises(NoAccess, match="there is no context c"):
        find("c", inside=True)


def _without(content: dict[str, Any], name: str) -> dict[str, Any]:
    return {key: value for key, value in content.items() if key != name}


TEXT = base64.b64encode(b"x").decode()


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (_without(config("a"), "clusters"), "there is no cluster a (context a of "),
        (_without(config("a"), "users"), "there is no user a (context a of "),
        (_without(config("a"), "current-context"), "no context is chosen ("),
        (config("a", current="b"), "there is no context b ("),
        (config("a", cluster={"server": ""}), "the server '' is not a URL (context a of "),
        (config("a", cluster={"server": "1.2.3.4:6443"}), "the server '1.2.3.4:6443' is not a URL"),
        (config("a", cluster={"server": "https://[::1"}), "the server 'https://[::1' is not a URL"),
        (config("a", cluster={"server": 7}), "expected a string, got an integer ("),
        (
            config(
                "a",
                cluster={"insecure-skip-tls-verify": True, "certificate-authority-data": TEXT},
            ),
            "a certificate authority and insecure-skip-tls-verify are both set (",
        ),
        (
            config("a", cluster={"certificate-authority-data": "!!"}),
            "certificate-authority-data is not base64 (context a of ",
        ),
        (
            config("a", user={"client-certificate-data": TEXT}),
            "only one of client certificate and key is set (context a of ",
        ),
        (config("a", user={"auth-provider": {"name": "gcp"}}), "auth-provider is not supported"),
        (config("a", user={"exec": {"command": "x"}}), '"apiVersion" is missing ('),
        ("clusters: {", "not YAML: "),
        ("[]", "expected a mapping"),
        ("a: 1\n---\nb: 2\n", "is not a kubeconfig: it has 2 documents"),
        ("clusters: [{name: a, cluster: 7}]", "expected a mapping"),
    ],
)
def test_what_is_wrong_with_a_kubeconfig_has_a_place(
    find: Finds, write: Write, content: Any, problem: str
) -> None:
    path = write("config", content)
    with pytest.raises(PolyverError) as caught:
        find("", path)
    assert problem in str(caught.value)
    assert str(path) in str(caught.value)


def test_a_kubeconfig_that_is_no_text_or_a_folder_is_told(
    find: Finds, tmp_path: Path, write: Write
) -> None:
    (tmp_path / "bytes").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(NoAccess, match="cannot be read: it is not UTF-8 text"):
        find("", tmp_path / "bytes")
    with pytest.raises(NoAccess, match="cannot be read: Is a directory"):
        find("", tmp_path)


def test_secrets_are_not_shown(find: Finds, write: Write) -> None:
    found = find("", write("c", config("a", user={"token": "s3cr3t"})))
    assert "s3cr3t" not in repr(found)


def test_a_user_without_a_home_may_be_a_pod(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, write: Write
) -> None:
    def nobody() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(Path, "home", nobody)
    write("token", "t")
    environ = {"KUBERNETES_SERVICE_HOST": "10.0.0.1", "KUBERNETES_SERVICE_PORT": "443"}
    assert find_access(environ=environ, account=tmp_path).server == "https://10.0.0.1:443"
