"""Find a cluster: by the kubeconfigs that kubectl reads, or by the pod's service account.

This module also declares the errors of requests to a cluster; each error names what the user should
check. And it declares the limits of a client, which prevent that a server blocks the client or
fills its memory.
"""

from __future__ import annotations

import base64
import binascii
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

import httpx2
import msgspec
from lightkube.config import models
from lightkube.config.kubeconfig import SERVICE_ACCOUNT
from msgspec import Struct
from msgspec.structs import replace

from polyver.core import PolyverError, listed
from polyver.kube.objects import load_manifests
from polyver.kube.objects.codec import prepare
from polyver.kube.objects.status import ApiError

__all__ = [
    "ClientLimits",
    "ClusterAccess",
    "KubeconfigCluster",
    "KubeconfigExec",
    "KubeconfigUser",
    "NoAccess",
    "Unauthorized",
    "Unreachable",
    "Untrusted",
    "find_access",
    "read_access",
]

_LARGEST = 16 * 1024 * 1024
T = TypeVar("T", bound="_Entry")


class NoAccess(PolyverError):
    """No cluster is configured, or its configuration cannot be used."""


class Unreachable(PolyverError):
    """A server does not respond, or sends an incomplete response."""


class Untrusted(Unreachable):
    """A server whose certificate is not trusted."""


class Unauthorized(ApiError):
    """The server responded with 401; the error names the source of the refused credentials."""

    def __init__(self, refused: ApiError, *, place: str, hint: str) -> None:
        super().__init__(
            refused.code,
            refused.reason,
            refused.message,
            details=refused.details,
            headers=refused.headers,
            metadata=refused.metadata,
        )
        self._fact = f"the server does not accept the credentials: {refused.message}"
        self._at = place
        self._hint = hint


@dataclass(frozen=True, slots=True)
class ClientLimits:
    """The limits of a client: timeouts in seconds, a number of connections, and sizes in bytes."""

    connect: float = 10.0
    """The maximum number of seconds for opening a connection."""
    request: float = 30.0
    """The maximum number of seconds for a request; for a watch, until the response begins."""
    silence: float = 300.0
    """Seconds without data after which a client assumes that the connection of a watch is dead.

    Each watch request states a shorter timeout, at which a live server ends the watch.
    """
    connections: int = 16
    watches: int = 256
    """The maximum number of watches at the same time; each has its own connection."""
    answer: int = 512 * 1024 * 1024
    """The maximum size of a response in bytes, after decompression."""
    line: int = 16 * 1024 * 1024
    """The maximum size of an event of a watch in bytes."""
    look: float = 10.0
    """Seconds after which a token file or certificate file is read again."""
    plugin: float = 60.0
    """The maximum number of seconds for which a credential plugin runs; it may prompt a person."""


# lightkube's models lack fields that change the user or the server. polyver must not ignore these
# fields.


class KubeconfigExec(models.UserExec):
    """A credential plugin of a kubeconfig: a command that prints credentials."""

    interactive: str = msgspec.field(name="interactiveMode", default="")
    wants_cluster: bool = msgspec.field(name="provideClusterInfo", default=False)


class KubeconfigUser(models.User):
    """The user that a context of a kubeconfig names."""

    exec: KubeconfigExec | None = None
    acts_as: str | None = msgspec.field(name="as", default=None)
    acts_as_uid: str | None = msgspec.field(name="as-uid", default=None)
    acts_as_groups: list[str] | None = msgspec.field(name="as-groups", default=None)
    acts_as_extra: dict[str, list[str]] | None = msgspec.field(name="as-user-extra", default=None)


class KubeconfigCluster(models.Cluster):
    """The server that a context of a kubeconfig names."""

    server: str = ""
    tls_server_name: str | None = msgspec.field(name="tls-server-name", default=None)
    proxy_url: str | None = msgspec.field(name="proxy-url", default=None)


@dataclass(frozen=True, slots=True)
class ClusterAccess:
    """The address of a cluster, and the credentials of one user."""

    cluster: KubeconfigCluster = field(repr=False)
    user: KubeconfigUser = field(repr=False)
    place: str
    """The file and context, or the service account, from which this access was read; for errors."""
    context: str = ""
    namespace: str = "default"

    @property
    def server(self) -> str:
        return self.cluster.server.rstrip("/")

    @property
    def encoded(self) -> tuple[bytes, bytes]:
        """Encode this access as JSON for a child process, which decodes it with `read_access`."""
        return msgspec.json.encode(self.cluster), msgspec.json.encode(self.user)


def read_access(cluster: bytes, user: bytes, *, place: str) -> ClusterAccess:
    """Decode an access that another process encoded with `ClusterAccess.encoded`."""
    return ClusterAccess(_decode_cluster(cluster), _decode_user(user), place)


_decode_cluster = msgspec.json.Decoder(KubeconfigCluster).decode
_decode_user = msgspec.json.Decoder(KubeconfigUser).decode


def find_access(
    context: str = "",
    *,
    kubeconfig: Path | None = None,
    environ: Mapping[str, str] | None = None,
    home: Path | None = None,
    account: Path = Path(SERVICE_ACCOUNT),
) -> ClusterAccess:
    """Find the access that kubectl would use.

    The access is in the files that KUBECONFIG names, in `~/.kube/config`, or in the service account
    of the pod.
    """
    environ = os.environ if environ is None else environ
    named = _named(kubeconfig, environ)
    looked = named or _default(home)
    files = [path for path in looked if _is_there(path)]
    if kubeconfig is not None and not files:
        raise NoAccess(f"{kubeconfig} does not exist", hint="pass an existing kubeconfig")
    merged = _merged(map(_read, files))
    if merged.contexts or context:
        return merged.access(context)
    inside = _of_pod(account, environ)
    if inside is None:
        places = listed([*map(str, looked), f"the service account in {account}"])
        hint = "set KUBECONFIG; `polyver up` writes a kubeconfig"
        raise NoAccess("no cluster is configured", at=places, hint=hint)
    return inside


def _named(kubeconfig: Path | None, environ: Mapping[str, str]) -> list[Path]:
    if kubeconfig is not None:
        return [kubeconfig]
    # Empty entries and missing files are skipped, as kubectl does.
    return [Path(each) for each in environ.get("KUBECONFIG", "").split(os.pathsep) if each]


def _default(home: Path | None) -> list[Path]:
    try:
        return [(home or Path.home()) / ".kube" / "config"]
    except RuntimeError:
        return []  # the system may have no entry for the user, as in some pods


def _is_there(path: Path) -> bool:
    try:
        path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError:
        return True  # reading it raises the error
    return True


# Kubeconfigs


class _Entry(Struct):
    name: str


class _ClusterEntry(_Entry):
    cluster: KubeconfigCluster | None = None


class _UserEntry(_Entry):
    user: KubeconfigUser | None = None


class _ContextEntry(_Entry):
    context: models.Context | None = None


class _Config(Struct):
    clusters: list[_ClusterEntry] | None = None
    users: list[_UserEntry] | None = None
    contexts: list[_ContextEntry] | None = None
    current: str | None = msgspec.field(name="current-context", default=None)


prepare(_Config)


@dataclass(slots=True)
class _Merged:
    """All kubeconfigs merged to one.

    If several kubeconfigs have an entry with the same name, the entry of the first file is used.
    """

    files: list[str] = field(default_factory=list)
    clusters: dict[str, KubeconfigCluster] = field(default_factory=dict)
    users: dict[str, KubeconfigUser] = field(default_factory=dict)
    contexts: dict[str, tuple[models.Context, str]] = field(default_factory=dict)
    current: str = ""

    def access(self, wanted: str) -> ClusterAccess:
        name = wanted or self.current
        if not name:
            hint = f"name one of {listed(sorted(self.contexts))}"
            raise self._problem("no context is chosen", hint=hint)
        if name not in self.contexts:
            hint = f"known: {listed(sorted(self.contexts))}" if self.contexts else "there is none"
            raise self._problem(f"there is no context {name}", hint=hint)
        context, file = self.contexts[name]
        place = f"context {name} of {file}"
        if context.cluster not in self.clusters:
            raise NoAccess(f"there is no cluster {context.cluster}", at=place)
        if context.user and context.user not in self.users:
            raise NoAccess(f"there is no user {context.user}", at=place)
        user = self.users[context.user] if context.user else KubeconfigUser()
        access = ClusterAccess(self.clusters[context.cluster], user, place, name)
        _check(access)
        return access if not context.namespace else _with_namespace(access, context.namespace)

    def _problem(self, fact: str, *, hint: str) -> NoAccess:
        return NoAccess(fact, at=listed(self.files) or "no kubeconfig", hint=hint)


def _with_namespace(access: ClusterAccess, namespace: str) -> ClusterAccess:
    return ClusterAccess(access.cluster, access.user, access.place, access.context, namespace)


def _read(path: Path) -> tuple[Path, _Config]:
    try:
        with path.open("rb") as file:
            content = file.read(_LARGEST + 1)
        text = content.decode()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise NoAccess(f"{path} cannot be read: {reason}") from None
    if len(content) > _LARGEST:
        raise NoAccess(f"{path} is not a kubeconfig: it has more than {_LARGEST >> 20} MiB")
    documents = load_manifests(text, str(path))
    if len(documents) > 1:
        raise NoAccess(f"{path} is not a kubeconfig: it has {len(documents)} documents")
    return path, documents[0].without_nulls().read(_Config) if documents else _Config()


def _merged(configs: Iterable[tuple[Path, _Config]]) -> _Merged:
    merged = _Merged()
    for path, config in configs:
        folder = path.absolute().parent
        merged.files.append(str(path))
        merged.current = merged.current or config.current or ""
        for each in config.clusters or ():
            merged.clusters.setdefault(
                each.name, _cluster_in(each.cluster or KubeconfigCluster(), folder)
            )
        for one in config.users or ():
            merged.users.setdefault(one.name, _user_in(one.user or KubeconfigUser(), folder))
        for entry in config.contexts or ():
            if entry.context is not None:
                merged.contexts.setdefault(entry.name, (entry.context, str(path)))
    return merged


def _cluster_in(cluster: KubeconfigCluster, folder: Path) -> KubeconfigCluster:
    """Return a cluster with the absolute path of its CA file.

    If the cluster also contains CA data, as text, leave out the CA file.
    """
    file = None if cluster.certificate_auth_data else _absolute(cluster.certificate_auth, folder)
    return replace(cluster, certificate_auth=file)


def _user_in(user: KubeconfigUser, folder: Path) -> KubeconfigUser:
    program = user.exec
    if program is not None and os.sep in program.command:
        program = replace(program, command=str(folder / program.command))
    return replace(
        user,
        exec=program,
        token_file=_absolute(user.token_file, folder),
        client_cert=None if user.client_cert_data else _absolute(user.client_cert, folder),
        client_key=None if user.client_key_data else _absolute(user.client_key, folder),
    )


def _absolute(file: str | None, folder: Path) -> str | None:
    return str(folder / file) if file else None


def _check(access: ClusterAccess) -> None:
    """Raise an error for settings that work with no server, such as an invalid URL."""
    cluster, user = access.cluster, access.user
    if not _is_url(cluster.server):
        fact = f"the server {cluster.server!r} is not a URL"
        raise NoAccess(fact, at=access.place, hint="write https://HOST:PORT")
    if cluster.insecure and (cluster.certificate_auth or cluster.certificate_auth_data):
        fact = "a certificate authority and insecure-skip-tls-verify are both set"
        raise NoAccess(fact, at=access.place, hint="remove one of them")
    if user.auth_provider and not (user.token or user.token_file or user.exec):
        fact = "auth-provider is not supported, as in kubectl since 1.26"
        raise NoAccess(fact, at=access.place, hint="use an exec plugin")
    if bool(user.client_cert or user.client_cert_data) != bool(
        user.client_key or user.client_key_data
    ):
        fact = "only one of client certificate and key is set"
        raise NoAccess(fact, at=access.place, hint="set both, or none")
    _check_encoded(access)


def _is_url(server: str) -> bool:
    try:
        url = httpx2.URL(server)
    except (httpx2.InvalidURL, ValueError):
        return False
    return url.scheme in ("https", "http") and bool(url.host) and not url.query


def _check_encoded(access: ClusterAccess) -> None:
    fields: Sequence[tuple[str, str | None]] = [
        ("certificate-authority-data", access.cluster.certificate_auth_data),
        ("client-certificate-data", access.user.client_cert_data),
        ("client-key-data", access.user.client_key_data),
    ]
    for name, value in fields:
        try:
            base64.b64decode("".join((value or "").split()), validate=True)
        except (binascii.Error, ValueError):
            raise NoAccess(f"{name} is not base64", at=access.place) from None


# The service account of a pod


def _of_pod(account: Path, environ: Mapping[str, str]) -> ClusterAccess | None:
    host, port = environ.get("KUBERNETES_SERVICE_HOST"), environ.get("KUBERNETES_SERVICE_PORT")
    if not host or not port or not (account / "token").exists():
        return None
    server = f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}"
    return ClusterAccess(
        KubeconfigCluster(server=server, certificate_auth=str(account / "ca.crt")),
        KubeconfigUser(token_file=str(account / "token")),
        f"the service account in {account}",
        namespace=_namespace(account / "namespace"),
    )


def _namespace(file: Path) -> str:
    try:
        return file.read_text().strip() or "default"
    except (OSError, UnicodeDecodeError):
        return "default"
