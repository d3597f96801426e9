"""What server and users prove themselves with, and the kubeconfig that tells how."""

from __future__ import annotations

import datetime
import json
import stat
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from polyver.kube.http.files import FolderFailed
from polyver.kube.objects import dump_yaml, load_manifests
from polyver.kube.server.credentials import Credentials
from polyver.kube.server.kubeconfig import CannotWriteKubeconfig, merged, write_kubeconfig

NOW = datetime.datetime(2026, 11, 15, tzinfo=datetime.UTC)
NAMES = ["127.0.0.1", "localhost"]


def contents(folder: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in folder.iterdir()}


def test_credentials_are_made_once_and_for_their_owner_alone(tmp_path: Path) -> None:
    folder = tmp_path / "a" / "b"
    kept = Credentials.open(folder, NAMES, now=NOW)
    first = contents(folder)
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert {stat.S_IMODE(file.stat().st_mode) for file in folder.iterdir()} == {0o600}
    Credentials.open(folder, NAMES, now=NOW + datetime.timedelta(days=300))
    assert contents(folder) == first
    assert kept.token != kept.viewer_token


@pytest.mark.parametrize(
    ("names", "days"), [(NAMES, 336), (NAMES, 4000), ([*NAMES, "new.host"], 0)], ids=str
)
def test_certificates_are_renewed_in_time_and_for_new_names(
    tmp_path: Path, names: list[str], days: int
) -> None:
    kept = Credentials.open(tmp_path, NAMES, now=NOW)
    before = contents(tmp_path)
    Credentials.open(tmp_path, names, now=NOW + datetime.timedelta(days=days))
    after = contents(tmp_path)
    assert before["server.crt"] != after["server.crt"]
    assert before["admin.token"] == after["admin.token"]
    # Whoever trusts the authority goes on trusting, until it ends itself.
    assert (before["ca.crt"] == after["ca.crt"]) == (days < 3000)
    kept.tls()


@pytest.mark.parametrize("name", ["ca.crt", "ca.key", "server.key", "certificates.json"])
@pytest.mark.parametrize("content", [None, b"", b"\xff nonsense"])
def test_what_is_spoilt_is_made_anew(tmp_path: Path, name: str, content: bytes | None) -> None:
    Credentials.open(tmp_path, NAMES, now=NOW)
    (tmp_path / "certificates.json").unlink()
    if content is not None:
        (tmp_path / name).write_bytes(content)
    elif (tmp_path / name).exists():
        (tmp_path / name).unlink()
    Credentials.open(tmp_path, NAMES, now=NOW).tls()


def test_a_folder_that_is_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(FolderFailed, match="cannot be used"):
        Credentials.open(tmp_path / "file", NAMES, now=NOW)


# The kubeconfig.

URL = "https://127.0.0.1:6450"


@pytest.fixture(scope="module")
def credentials(tmp_path_factory: pytest.TempPathFactory) -> Credentials:
    return Credentials.open(tmp_path_factory.mktemp("credentials"), NAMES, now=NOW)


def read(path: Path) -> Any:
    return load_manifests(path.read_text(), str(path))[0].value


def test_a_new_kubeconfig_is_whole(tmp_path: Path, credentials: Credentials) -> None:
    path = tmp_path / "new" / "config"
    assert write_kubeconfig(path, URL, credentials) == "polyver"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    config = read(path)
    assert config["clusters"][0]["cluster"]["server"] == URL
    assert config["current-context"] == "polyver"
    users = {entry["name"]: entry["user"] for entry in config["users"]}
    assert set(users["polyver"]) == {"client-certificate-data", "client-key-data"}
    assert users["polyver-token"] == {"token": credentials.token}
    assert list(path.parent.iterdir()) == [path]


OTHERS: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Config",
    "preferences": {"colors": True},
    "clusters": [{"name": "prod", "cluster": {"server": "https://prod"}}],
    "users": [{"name": "me", "user": {"exec": {"command": "login", "args": ["0644", "on"]}}}],
    "contexts": [{"name": "prod", "context": {"cluster": "prod", "user": "me"}}],
    "current-context": "prod",
}


@pytest.mark.parametrize("write", [dump_yaml, json.dumps])
def test_others_entries_are_kept(
    tmp_path: Path, credentials: Credentials, write: Callable[[object], str]
) -> None:
    path = tmp_path / "config"
    path.write_text(write(OTHERS))
    for _ in range(2):
        assert write_kubeconfig(path, URL, credentials) == "prod"
    config = read(path)
    assert [entry["name"] for entry in config["clusters"]] == ["prod", "polyver"]
    assert config["users"][0] == OTHERS["users"][0]
    assert config["preferences"] == OTHERS["preferences"]
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_new_address_replaces_the_old_one(tmp_path: Path, credentials: Credentials) -> None:
    path = tmp_path / "config"
    write_kubeconfig(path, URL, credentials)
    write_kubeconfig(path, "https://127.0.0.1:1", credentials)
    assert [entry["cluster"]["server"] for entry in read(path)["clusters"]] == [
        "https://127.0.0.1:1"
    ]


def test_a_link_stays_a_link(tmp_path: Path, credentials: Credentials) -> None:
    link = tmp_path / "link"
    link.symlink_to(tmp_path / "real")
    write_kubeconfig(link, URL, credentials)
    assert link.is_symlink()
    assert read(tmp_path / "real")["current-context"] == "polyver"


@pytest.mark.parametrize(
    "content", ["hello", "a: [", "[1]", "kind: Pod", "clusters: no", "a: 1\n---\nb: 2", "# only"]
)
def test_what_is_no_kubeconfig_is_left_alone(
    tmp_path: Path, credentials: Credentials, content: str
) -> None:
    path = tmp_path / "config"
    path.write_text(content)
    with pytest.raises(CannotWriteKubeconfig, match="is not a kubeconfig"):
        write_kubeconfig(path, URL, credentials)
    assert path.read_text() == content
    assert list(tmp_path.iterdir()) == [path]


def test_a_kubeconfig_that_kubectl_holds_is_waited_for(
    tmp_path: Path, credentials: Credentials
) -> None:
    lock = tmp_path / "config.lock"
    lock.touch()
    threading.Timer(0.1, lock.unlink).start()
    assert write_kubeconfig(tmp_path / "config", URL, credentials) == "polyver"


def test_a_place_that_cannot_be_written_is_named(tmp_path: Path, credentials: Credentials) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(CannotWriteKubeconfig, match="config cannot be written: "):
        write_kubeconfig(tmp_path / "file" / "config", URL, credentials)


entries = st.lists(
    st.fixed_dictionaries({"name": st.sampled_from(["a", "b", "polyver"]), "x": st.integers()}),
    unique_by=lambda entry: entry["name"],
)
configs = st.fixed_dictionaries(
    {},
    optional={
        "clusters": st.none() | entries,
        "users": entries,
        "contexts": entries,
        "current-context": st.sampled_from(["", "a"]),
        "extensions": st.integers(),
    },
)
ours = {"clusters": [{"name": "polyver", "cluster": {}}], "current-context": "polyver"}


@given(configs)
def test_merging_loses_nothing_and_twice_is_once(config: dict[str, Any]) -> None:
    once = merged(config, ours)
    assert merged(once, ours) == once
    for part in ("clusters", "users", "contexts"):
        others = [entry for entry in config.get(part) or [] if entry["name"] != "polyver"]
        assert all(entry in once[part] for entry in others)
    assert once["current-context"] == (config.get("current-context") or "polyver")
    assert once.get("extensions") == config.get("extensions")
