"""A start with a store, keys and certificates that are not as they were left."""

from __future__ import annotations

import datetime
import os
import resource
import shutil
import ssl
import stat
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path

import apsw
import pytest
from tests.deadlines import HANG

from polyver.core import PolyverError
from polyver.kube.objects.status import ApiError
from polyver.kube.server.credentials import Credentials, server_names
from polyver.testing import EmbeddedServer

NAMES = server_names("127.0.0.1")
POLYVER = [sys.executable, "-m", "polyver"]
Spoil = Callable[[Path], object]


@pytest.fixture(scope="module")
def used(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The data folder of a server that was used and ended."""
    data = tmp_path_factory.mktemp("used") / "data"
    with EmbeddedServer(data=data, capabilities=()) as server:
        for number in range(40):
            write(server, f"kept-{number}", "x" * 20_000)
        account = "/api/v1/namespaces/default/serviceaccounts/default/token"
        server.request("POST", account, {"apiVersion": "authentication.k8s.io/v1"})
    return data


@pytest.fixture
def data(used: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(used, tmp_path / "data"))


def write(server: EmbeddedServer, name: str, text: str) -> None:
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}}
    where = "/api/v1/namespaces/default/configmaps"
    server.request("POST", where, {**body, "data": {"text": text}})


def starts(data: Path) -> None:
    with EmbeddedServer(data=data, capabilities=()) as server:
        found = server.request("GET", "/api/v1/namespaces/default/configmaps/kept-7")
        assert len(found["data"]["text"]) == 20_000


def refusal(data: Path) -> str:
    """Why a server does not start."""
    with pytest.raises(PolyverError) as found, EmbeddedServer(data=data, capabilities=()):
        pass
    assert "\n" not in str(found.value)
    return str(found.value)


def up(data: Path, *options: str) -> tuple[int, str]:
    """How `polyver up` ends that does not start, and what it says."""
    command = [*POLYVER, "up", "--port", "0", "--data", str(data), "--no-page", *options]
    found = subprocess.run(command, capture_output=True, text=True, check=False, timeout=HANG)
    assert found.stdout == ""
    return found.returncode, found.stderr


# The store.


def spoil_middle(data: Path) -> None:
    file = data / "store" / "store.db"
    with file.open("r+b") as opened:
        opened.seek(file.stat().st_size // 8192 * 4096)
        opened.write(os.urandom(3 * 4096))


def spoil_header(data: Path) -> None:
    with (data / "store" / "store.db").open("r+b") as opened:
        opened.write(b"garbage garbage garbage")


def cut_off(data: Path) -> None:
    os.truncate(data / "store" / "store.db", (data / "store" / "store.db").stat().st_size // 2)


def lose_content(data: Path) -> None:
    change(data, "delete from log where key like '%kept-7'")


def lose_table(data: Path) -> None:
    change(data, "drop table current")


def change(data: Path, statement: str) -> None:
    database = apsw.Connection(str(data / "store" / "store.db"))
    database.execute(statement)
    database.close()


@pytest.mark.parametrize(
    "spoil",
    [spoil_middle, spoil_header, cut_off, lose_content, lose_table],
    ids=lambda f: f.__name__,
)
def test_a_damaged_store_is_not_served(data: Path, spoil: Spoil) -> None:
    spoil(data)
    file = data / "store" / "store.db"
    before = file.read_bytes()
    told = refusal(data)
    assert told.startswith(f"{file} is damaged: ")
    assert "restore the folder from a backup" in told
    assert file.read_bytes() == before


def test_a_damaged_store_is_an_error_of_one_line(data: Path) -> None:
    spoil_middle(data)
    code, said = up(data)
    assert (code, said.count("\n")) == (3, 1)
    assert f"error: {data / 'store' / 'store.db'} is damaged: " in said


def test_with_verify_every_object_is_read(data: Path) -> None:
    change(data, "update log set value = cast('{\"kind\": ' as blob) where key like '%/kept-7'")
    code, said = up(data, "--verify")
    assert (code, said.count("\n")) == (3, 1)
    assert "/kept-7 is not JSON" in said


def test_with_verify_indexes_are_compared_with_tables(data: Path) -> None:
    change(
        data,
        "pragma writable_schema = on; update sqlite_schema set sql = "
        "'create unique index log_by_key on log (value, revision)' where name = 'log_by_key'",
    )
    code, said = up(data, "--verify")
    assert (code, said.count("\n")) == (3, 1)
    assert "store.db is damaged: " in said


@pytest.mark.parametrize("left", ["nothing", "an empty file"])
def test_an_empty_store_beside_credentials_is_refused_unless_confirmed(
    data: Path, left: str
) -> None:
    shutil.rmtree(data / "store")
    (data / "store").mkdir()
    if left != "nothing":
        (data / "store" / "store.db").touch()
    told = refusal(data)
    assert f"{data / 'store' / 'store.db'} is missing or empty" in told
    assert f"{data / 'credentials'} belongs to one" in told
    assert "--new-store" in told
    assert (data / "store" / "store.db").exists() == (left != "nothing")
    command = [*POLYVER, "up", "--port", "0", "--data", str(data), "--no-page", "--new-store"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline().startswith("polyver is ready at ")
        process.terminate()
    server = EmbeddedServer(data=data, capabilities=())
    with server, pytest.raises(ApiError, match="not found"):
        server.request("GET", "/api/v1/namespaces/default/configmaps/kept-7")


def test_a_store_of_a_newer_release_is_refused(data: Path) -> None:
    change(data, "pragma user_version = 2")
    told = refusal(data)
    assert f"{data / 'store' / 'store.db'} has format 2, and this polyver supports 1" in told


def test_a_database_of_somebody_else_is_refused(data: Path) -> None:
    shutil.rmtree(data / "store")
    (data / "store").mkdir()
    change(data, "create table photos (name text)")
    assert f"{data / 'store' / 'store.db'} is not a polyver store" in refusal(data)


def test_a_folder_in_the_place_of_the_store_is_named(data: Path) -> None:
    (data / "store" / "store.db").unlink()
    (data / "store" / "store.db").mkdir()
    told = refusal(data)
    assert told.startswith(f"{data / 'store' / 'store.db'} cannot be opened: Is a directory")


def test_only_its_owner_reads_a_store(data: Path) -> None:
    file = data / "store" / "store.db"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    file.chmod(0o644)
    with EmbeddedServer(data=data, capabilities=()):
        found = [each for each in file.parent.iterdir() if each.name.startswith("store.db")]
        assert len(found) == 3
        assert {stat.S_IMODE(each.stat().st_mode) for each in found} == {0o600}


# Keys and certificates.


def garbage(file: Path) -> None:
    file.write_bytes(b"\xff nonsense")


def empty(file: Path) -> None:
    file.write_bytes(b"")


def gone(file: Path) -> None:
    file.unlink()


def of_another(file: Path) -> None:
    """A file of the same sort that does not go with the others."""
    other = Credentials.open(file.parent.parent / "other", NAMES, now=now())
    file.write_bytes((other.folder / file.name).read_bytes())


def folder(file: Path) -> None:
    file.unlink()
    file.mkdir()


def now() -> datetime.datetime:
    return datetime.datetime.now(datetime.UTC)


FILES = ["ca.crt", "ca.key", "server.crt", "server.key", "admin.crt", "admin.key"]


@pytest.mark.parametrize("spoil", [garbage, empty, gone, of_another], ids=lambda f: f.__name__)
@pytest.mark.parametrize("name", FILES)
def test_a_damaged_certificate_is_made_again_and_named(
    tmp_path: Path, name: str, spoil: Spoil
) -> None:
    kept = Credentials.open(tmp_path / "kept", NAMES, now=now())
    before = kept.token
    spoil(kept.folder / name)
    reasons: list[str] = []
    again = Credentials.open(kept.folder, NAMES, now=now(), report=reasons.append)
    assert reasons[0] == f"{kept.folder / name} is missing or damaged"
    for certificate, key in (
        (again.server_cert_file, again.server_key_file),
        (again.client_cert_file, again.client_key_file),
    ):
        ssl.create_default_context(cafile=again.ca_file).load_cert_chain(certificate, key)
    assert again.token == before
    reasons.clear()
    Credentials.open(kept.folder, NAMES, now=now(), report=reasons.append)
    assert reasons == []


@pytest.mark.parametrize("days", [3, 4000])
def test_certificates_of_a_clock_that_was_ahead_lock_nobody_out(
    data: Path, days: int, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.rmtree(data / "credentials")
    ahead = now() + datetime.timedelta(days=days)
    Credentials.open(data / "credentials", NAMES, now=ahead)
    starts(data)
    said = capsys.readouterr().err
    assert "certificates recreated" in said
    assert f"{data / 'credentials' / 'server.crt'} is not valid before" in said
    assert f"{data / 'credentials' / 'ca.crt'} is valid from" in said
    starts(data)
    assert capsys.readouterr().err == ""


def test_certificates_that_have_ended_are_made_again(
    data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.rmtree(data / "credentials")
    Credentials.open(data / "credentials", NAMES, now=now() - datetime.timedelta(days=5000))
    starts(data)
    assert f"{data / 'credentials' / 'server.crt'} expires at" in capsys.readouterr().err


def test_a_key_that_is_garbage_is_made_again_by_the_command(data: Path) -> None:
    garbage(data / "credentials" / "server.key")
    command = [*POLYVER, "up", "--port", "0", "--data", str(data), "--no-page"]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline().startswith("polyver is ready at ")
        process.terminate()
        _, said = process.communicate(timeout=HANG)
    assert f"{data / 'credentials' / 'server.key'} is missing or damaged" in said


@pytest.mark.parametrize(
    ("name", "spoil", "told"),
    [
        ("server.key", folder, "cannot be used: Is a directory"),
        ("ca.crt", folder, "cannot be used: Is a directory"),
        ("certificates.json", folder, "cannot be used: Is a directory"),
        ("admin.token", folder, "cannot be used: Is a directory"),
        ("admin.token", garbage, "holds no token; delete the file"),
        ("viewer.token", garbage, "holds no token; delete the file"),
        ("page.token", garbage, "holds no token; delete the file"),
        ("accounts.key", garbage, "is not a private key; restore the file from a backup"),
        ("accounts.key", empty, "is not a private key; restore the file from a backup"),
        ("accounts.key", folder, "cannot be used: Is a directory"),
    ],
)
def test_a_file_that_cannot_be_used_is_named(
    data: Path, name: str, spoil: Spoil, told: str
) -> None:
    spoil(data / "credentials" / name)
    assert f"{data / 'credentials' / name} {told}" in refusal(data)


@pytest.mark.parametrize("spoil", [garbage, folder], ids=lambda f: f.__name__)
def test_a_kubeconfig_that_cannot_be_used_is_named(data: Path, spoil: Spoil) -> None:
    spoil(data / "kubeconfig")
    assert str(data / "kubeconfig") in refusal(data)


# A disk that fails while the server runs.


def ready(server: EmbeddedServer | str, ca: Path) -> int:
    context = ssl.create_default_context(cafile=ca)
    url = server if isinstance(server, str) else server.url
    try:
        with urllib.request.urlopen(f"{url}/readyz", context=context) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        return error.code


def test_a_full_disk_ends_readiness_until_a_write_succeeds(data: Path) -> None:
    command = [*POLYVER, "up", "--port", "0", "--data", str(data), "--no-page"]
    command += ["--capabilities", "apis"]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stdout is not None
            url = process.stdout.readline().split()[4]
            ca = data / "credentials" / "ca.crt"
            assert ready(url, ca) == 200
            limit = resource.prlimit(process.pid, resource.RLIMIT_FSIZE)
            resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (0, limit[1]))
            assert refused_write(url, ca, data) == 500
            assert ready(url, ca) == 500
            resource.prlimit(process.pid, resource.RLIMIT_FSIZE, limit)
            until = time.monotonic() + HANG
            while ready(url, ca) != 200:
                assert time.monotonic() < until
                time.sleep(0.1)
        finally:
            process.terminate()
        _, said = process.communicate(timeout=HANG)
    assert "the server is not ready" in said
    assert "the server is ready again" in said


def refused_write(url: str, ca: Path, data: Path) -> int:
    token = (data / "credentials" / "admin.token").read_text()
    request = urllib.request.Request(
        f"{url}/api/v1/namespaces/default/configmaps",
        b'{"apiVersion":"v1","kind":"ConfigMap","metadata":{"generateName":"a"}}',
        {"authorization": f"Bearer {token}", "content-type": "application/json"},
    )
    try:
        with urllib.request.urlopen(request, context=ssl.create_default_context(cafile=ca)) as it:
            return int(it.status)
    except urllib.error.HTTPError as error:
        return error.code
