"""Who asks changes while a program runs: tokens, certificates, and programs that tell."""

from __future__ import annotations

import asyncio
import datetime
import json
import os
import ssl
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from lightkube.config.models import NameValue
from tests.client.scripted import Reply, Scripted, Seen, refused, reply, scripted
from tests.client.virtual import VirtualClock
from tests.deadlines import HANG

from polyver.client import GroupVersionResource
from polyver.client.cluster import ClientLimits, ClusterClient, NoAccess, Unauthorized, find_access
from polyver.client.cluster._access import KubeconfigExec, KubeconfigUser
from polyver.kube.http.tls import Authority, Pair
from polyver.testing import EmbeddedServer

MAPS = GroupVersionResource("", "v1", "configmaps")
NOW = datetime.datetime.now(datetime.UTC)
V1 = "client.authentication.k8s.io/v1"
Scenario = Callable[[ClusterClient, Scripted], Awaitable[None]]


def asked(
    scenario: Scenario,
    *,
    user: KubeconfigUser,
    valid: Callable[[], str] = lambda: "",
    clock: VirtualClock | None = None,
    limits: ClientLimits | None = None,
) -> None:
    """Run a scenario with a server that takes one token, or any."""

    def answer(seen: Seen) -> Reply:
        if valid() and seen.headers.get("authorization") != f"Bearer {valid()}":
            return refused(401, "Unauthorized", "Unauthorized")
        return reply({"metadata": {"name": "m"}})

    async def run() -> None:
        async with scripted(answer) as server:
            access = server.access(user)
            async with ClusterClient(access, clock=clock, limits=limits) as client:
                await asyncio.wait_for(scenario(client, server), HANG)

    asyncio.run(run())


def shown(server: Scripted) -> list[str]:
    return [seen.headers.get("authorization", "").removeprefix("Bearer ") for seen in server.seen]


# Files


def test_a_token_that_is_replaced_is_used_after_a_while(tmp_path: Path) -> None:
    file, clock = tmp_path / "token", VirtualClock()
    file.write_text("one\n")

    async def scenario(client: ClusterClient, server: Scripted) -> None:
        await client.get(MAPS, "m", "a")
        file.write_text("two\n")
        await client.get(MAPS, "m", "a")
        await clock.advance(11)
        await client.get(MAPS, "m", "a")
        assert shown(server) == ["one", "one", "two"]

    asked(scenario, user=KubeconfigUser(token="old", token_file=str(file)), clock=clock)


def test_a_token_that_is_projected_anew_is_used_as_soon_as_the_old_one_is_refused(
    tmp_path: Path,
) -> None:
    """As a kubelet does it: the folder that a link leads to is another one."""
    for token in ("one", "two"):
        (tmp_path / token).mkdir()
        (tmp_path / token / "token").write_text(token)
    (tmp_path / "data").symlink_to("one")
    (tmp_path / "token").symlink_to("data/token")
    valid = "one"

    async def scenario(client: ClusterClient, server: Scripted) -> None:
        nonlocal valid
        await client.get(MAPS, "m", "a")
        (tmp_path / "next").symlink_to("two")
        (tmp_path / "next").replace(tmp_path / "data")
        valid = "two"
        await client.create(MAPS, {"metadata": {"name": "m"}}, "a")
        watch = client.watch(MAPS, "a", resource_version="1")
        with pytest.raises(Exception, match="no object"):
            await anext(watch)
        assert shown(server) == ["one", "one", "two", "two"]

    asked(scenario, user=KubeconfigUser(token_file=str(tmp_path / "token")), valid=lambda: valid)


def test_a_token_that_is_refused_and_stays_the_same_is_tried_once(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("one")

    async def scenario(client: ClusterClient, server: Scripted) -> None:
        with pytest.raises(Unauthorized):
            await client.get(MAPS, "m", "a")
        assert shown(server) == ["one"]

    asked(scenario, user=KubeconfigUser(token_file=str(tmp_path / "token")), valid=lambda: "two")


def test_a_token_file_that_is_away_for_a_moment_does_no_harm(tmp_path: Path) -> None:
    file, clock = tmp_path / "token", VirtualClock()
    file.write_text("one")

    async def scenario(client: ClusterClient, server: Scripted) -> None:
        await client.get(MAPS, "m", "a")
        file.unlink()
        await clock.advance(11)
        await client.get(MAPS, "m", "a")
        file.write_text("")
        await clock.advance(11)
        await client.get(MAPS, "m", "a")
        assert shown(server) == ["one"] * 3

    asked(scenario, user=KubeconfigUser(token_file=str(file)), clock=clock)


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (None, "cannot be read: No such file or directory (a test)"),
        (b"", "is empty (a test)"),
        (b"a\nb", "/token contains characters that are not allowed in a token (a test)"),
        (b"\xff", "/token contains characters that are not allowed in a token (a test)"),
        (b"x" * 2_000_000, "is too large (a test)"),
    ],
)
def test_a_token_file_that_cannot_be_used_is_named(
    content: bytes | None, problem: str, tmp_path: Path
) -> None:
    file = tmp_path / "token"
    if content is not None:
        file.write_bytes(content)

    async def scenario(client: ClusterClient, server: Scripted) -> None:
        with pytest.raises(NoAccess) as caught:
            await client.get(MAPS, "m", "a")
        assert problem in str(caught.value)
        assert server.seen == []

    asked(scenario, user=KubeconfigUser(token_file=str(file)))


def test_a_name_and_a_password_will_do() -> None:
    async def scenario(client: ClusterClient, server: Scripted) -> None:
        await client.get(MAPS, "m", "a")
        assert shown(server) == ["Basic bWU6c2VjcmV0"]

    asked(scenario, user=KubeconfigUser(username="me", password="secret"))


# Certificates


class Certificates:
    """Files of a client, and a server that wants to see them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.authority = Authority.create("ca", now=NOW)
        self.write("ca.crt", self.authority.pem)
        server = self.authority.server("127.0.0.1", now=NOW)
        self.write("server.crt", server.certificate)
        self.write("server.key", server.key)
        self.tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=folder / "ca.crt")
        self.tls.load_cert_chain(folder / "server.crt", folder / "server.key")
        self.tls.verify_mode = ssl.CERT_REQUIRED

    def write(self, name: str, content: bytes) -> str:
        path = self.folder / name
        path.write_bytes(content)
        return str(path)

    def client(self, name: str) -> Pair:
        return self.authority.client(name, now=NOW)


def test_certificates_that_are_replaced_are_used_when_both_are_there(tmp_path: Path) -> None:
    files, clock = Certificates(tmp_path), VirtualClock()
    one, two = files.client("one"), files.client("two")
    user = KubeconfigUser(
        client_cert=files.write("me.crt", one.certificate),
        client_key=files.write("me.key", one.key),
    )

    async def run() -> None:
        async with scripted(lambda _: reply({}), tls=files.tls) as server:
            access = server.access(user, certificate_auth=str(tmp_path / "ca.crt"))
            async with ClusterClient(access, clock=clock) as client:
                await client.get(MAPS, "m", "a")
                files.write("me.crt", two.certificate)
                await clock.advance(11)
                await client.get(MAPS, "m", "a")
                files.write("me.key", two.key)
                await clock.advance(11)
                await client.get(MAPS, "m", "a")
                await client.get(MAPS, "m", "a")
            assert [seen.peer for seen in server.seen] == ["one", "one", "two", "two"]

    asyncio.run(run())


@pytest.mark.parametrize("wrong", ["ca.crt", "me.crt"])
def test_certificates_that_are_none_are_told_with_their_place(wrong: str, tmp_path: Path) -> None:
    files = Certificates(tmp_path)
    pair = files.client("me")
    user = KubeconfigUser(
        client_cert=files.write("me.crt", pair.certificate),
        client_key=files.write("me.key", pair.key),
    )
    files.write(wrong, b"no certificate")

    async def run() -> None:
        async with scripted(lambda _: reply({}), tls=files.tls) as server:
            access = server.access(user, certificate_auth=str(tmp_path / "ca.crt"))
            async with ClusterClient(access) as client:
                with pytest.raises(NoAccess, match=rf"/{wrong} is not PEM \(a test\)"):
                    await client.get(MAPS, "m", "a")

    asyncio.run(run())


# Programs

PLUGIN = """
import json, os, pathlib, sys
folder = pathlib.Path(sys.argv[1])
runs = folder / "runs"
count = int(runs.read_text()) + 1 if runs.exists() else 1
runs.write_text(str(count))
(folder / "info").write_text(os.environ["KUBERNETES_EXEC_INFO"])
(folder / "env").write_text(os.environ.get("LOGIN", ""))
print((folder / "says").read_text().replace("COUNT", str(count)))
"""


class Plugin:
    """A program that prints what a test wrote for it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "plugin.py").write_text(PLUGIN)

    def says(self, status: object, version: str = V1, kind: str = "ExecCredential") -> None:
        told = {"apiVersion": version, "kind": kind, "status": status}
        (self.folder / "says").write_text(json.dumps(told))

    @property
    def runs(self) -> int:
        return int((self.folder / "runs").read_text())

    def user(self, version: str = V1, **options: object) -> KubeconfigUser:
        arguments = ["-S", "-E", str(self.folder / "plugin.py"), str(self.folder)]
        command = os.path.realpath(sys.executable)
        program = KubeconfigExec(version, command, args=arguments, **options)  # type: ignore[arg-type]
        return KubeconfigUser(exec=program)


@pytest.mark.parametrize("version", ["v1", "v1beta1"])
def test_a_program_tells_a_token_once(version: str, tmp_path: Path) -> None:
    api = f"client.authentication.k8s.io/{version}"
    plugin = Plugin(tmp_path)
    plugin.says({"token": "tCOUNT"}, api)
    user = plugin.user(api, env=[NameValue("LOGIN", "me")], wants_cluster=True)

    async def scenario(client: ClusterClient, server: Scripted) -> None:
        await asyncio.gather(*(client.get(MAPS, "m", "a") for _ in range(3)))
        assert shown(server) == ["t1"] * 3
        assert plugin.runs == 1
        assert (tmp_path / "env").read_text() == "me"
        info = json.loads((tmp_path / "info").read_text())
        assert (info["apiVersion"], info["kind"]) == (api, "ExecCredential")
        assert info["spec"]["cluster"]["server"] == server.url

    asked(scenario, user=user)


def test_a_program_is_run_again_when_what_it_told_ends_or_is_refused(tmp_path: Path) -> None:
    plugin, clock = Plugin(tmp_path), VirtualClock()
    ends = clock.now() + datetime.timedelta(minutes=5)
    plugin.says({"token": "tCOUNT", "expirationTimestamp": ends.isoformat()})
    valid = ""

    async def scenario(client: ClusterClient, server: Scripted) -> None:
        nonlocal valid
        await client.get(MAPS, "m", "a")
        await clock.advance(60)
        await client.get(MAPS, "m", "a")
        valid = "t2"
        await client.get(MAPS, "m", "a")
        valid = ""
        plugin.says({"token": "tCOUNT"})
        await clock.advance(240)
        await client.get(MAPS, "m", "a")
        assert shown(server) == ["t1", "t1", "t1", "t2", "t3"]

    asked(scenario, user=plugin.user(), valid=lambda: valid, clock=clock)


def test_a_program_may_tell_a_certificate(tmp_path: Path) -> None:
    files, plugin = Certificates(tmp_path), Plugin(tmp_path)
    pair = files.client("told")
    plugin.says(
        {
            "clientCertificateData": pair.certificate.decode(),
            "clientKeyData": pair.key.decode(),
        }
    )

    async def run() -> None:
        async with scripted(lambda _: reply({}), tls=files.tls) as server:
            access = server.access(plugin.user(), certificate_auth=str(tmp_path / "ca.crt"))
            async with ClusterClient(access) as client:
                await client.get(MAPS, "m", "a")
            assert [seen.peer for seen in server.seen] == ["told"]

    asyncio.run(run())


@pytest.mark.parametrize(
    ("says", "problem"),
    [
        ("hello", "its output is not an ExecCredential"),
        ('{"kind": "Pod", "apiVersion": "v1"}', "it printed v1 Pod, not an ExecCredential of"),
        (
            json.dumps({"kind": "ExecCredential", "apiVersion": V1}),
            "it returned neither a token nor a certificate with its key",
        ),
        (
            json.dumps(
                {
                    "kind": "ExecCredential",
                    "apiVersion": V1,
                    "status": {"token": "t", "expirationTimestamp": "2020-01-01T00:00:00Z"},
                }
            ),
            "its credential expired at 2020-01-01T00:00:00Z",
        ),
    ],
)
def test_a_program_that_tells_nothing_of_use_is_named(
    says: str, problem: str, tmp_path: Path
) -> None:
    plugin = Plugin(tmp_path)
    (tmp_path / "says").write_text(says)

    async def scenario(client: ClusterClient, server: Scripted) -> None:
        with pytest.raises(NoAccess) as caught:
            await client.get(MAPS, "m", "a")
        assert problem in str(caught.value)
        assert "in a test" in str(caught.value)

    asked(scenario, user=plugin.user())


@pytest.mark.parametrize(
    ("program", "problem"),
    [
        (
            KubeconfigExec(V1, "/no/such/login", installHint="get it"),
            "it cannot be run: No such file",
        ),
        (KubeconfigExec("example.org/v1", "true"), "the exec API example.org/v1 is not supported"),
        (
            KubeconfigExec(V1, "sh", args=["-c", "echo no login >&2; exit 7"]),
            "it exited with code 7: no login",
        ),
        (KubeconfigExec(V1, "sleep", args=["60"]), "it did not finish within 0.3 s"),
    ],
)
def test_a_program_that_cannot_be_run_is_named(program: KubeconfigExec, problem: str) -> None:
    async def scenario(client: ClusterClient, server: Scripted) -> None:
        with pytest.raises(NoAccess) as caught:
            await client.get(MAPS, "m", "a")
        assert problem in str(caught.value)
        assert f"exec {program.command} in a test" in str(caught.value)
        assert str(caught.value).endswith(program.installHint or ")")

    limits = ClientLimits(plugin=0.3) if program.command == "sleep" else None
    asked(scenario, user=KubeconfigUser(exec=program), limits=limits)


def test_a_program_that_fails_or_is_not_believed_is_not_run_for_every_request(
    tmp_path: Path,
) -> None:
    plugin, clock = Plugin(tmp_path), VirtualClock()
    (tmp_path / "says").write_text("hello")

    async def scenario(client: ClusterClient, server: Scripted) -> None:
        for _ in range(3):
            with pytest.raises(NoAccess, match="not an ExecCredential"):
                await client.get(MAPS, "m", "a")
        assert plugin.runs == 1
        plugin.says({"token": "tCOUNT"})
        await clock.advance(11)
        for _ in range(3):
            with pytest.raises(Unauthorized):
                await client.get(MAPS, "m", "a")
        assert plugin.runs == 2
        assert shown(server) == ["t2"] * 3

    asked(scenario, user=plugin.user(), valid=lambda: "other", clock=clock)


# All of it, on a server that knows its service accounts


def test_a_pod_talks_as_its_service_account(kube_server: EmbeddedServer, tmp_path: Path) -> None:
    path = "/api/v1/namespaces/default/serviceaccounts"
    body = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "poddy"}}
    kube_server.request("POST", path, body)
    wanted = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
    token = kube_server.request("POST", f"{path}/poddy/token", wanted)["status"]["token"]
    (tmp_path / "token").write_text(token)
    (tmp_path / "ca.crt").write_bytes(kube_server.ca_file.read_bytes())
    port = kube_server.url.rpartition(":")[2]
    environ = {"KUBERNETES_SERVICE_HOST": "127.0.0.1", "KUBERNETES_SERVICE_PORT": port}
    review = GroupVersionResource(
        "authentication.k8s.io", "v1", "selfsubjectreviews", namespaced=False
    )

    async def scenario() -> None:
        access = find_access(environ=environ, home=tmp_path, account=tmp_path)
        async with ClusterClient(access) as client:
            about = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
            found = await client.create(review, about)
        assert found["status"]["userInfo"]["username"] == "system:serviceaccount:default:poddy"

    asyncio.run(scenario())
