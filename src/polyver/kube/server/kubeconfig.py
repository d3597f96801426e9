"""Writes polyver's cluster, users and contexts into a kubeconfig; other entries stay unchanged."""

from __future__ import annotations

import base64
import os
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec

from polyver.core import PolyverError
from polyver.kube.http.files import write_file
from polyver.kube.objects.codec import encode_json
from polyver.kube.server.credentials import Credentials

__all__ = ["CannotWriteKubeconfig", "merged", "write_kubeconfig"]

NAME = "polyver"
_WITH_TOKEN = "polyver-token"  # noqa: S105 - the name of a context
_LARGEST = 16 * 1024 * 1024
_LOCK_TIMEOUT = 2.0

Config = Mapping[str, Any]


class CannotWriteKubeconfig(PolyverError):
    """Raised if a kubeconfig cannot be read or written; the file was not changed."""


def write_kubeconfig(path: Path, url: str, credentials: Credentials) -> str:
    """Write polyver's entries into a kubeconfig; return the name of the new current context."""
    try:
        # If the path is a symbolic link, write the target of the link and keep the link.
        path = path.resolve()
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with _locked(path):
            before = _content(path)
            config = merged(_read(before, path), _ours(url, credentials))
            write_file(path, _encoded_like(before, config))
    except OSError as error:
        reason = error.strerror or str(error)
        raise CannotWriteKubeconfig(f"{path} cannot be written: {reason}") from None
    return str(config["current-context"])


def merged(config: Config, ours: Config) -> dict[str, Any]:
    """Add the entries of `ours` to a kubeconfig, and replace entries with the same names.

    >>> merged({"clusters": [{"name": "a"}]}, {"clusters": [{"name": "b"}]})["clusters"]
    [{'name': 'a'}, {'name': 'b'}]
    """
    result = {"apiVersion": "v1", "kind": "Config", **config}
    for part in ("clusters", "users", "contexts"):
        added = list(ours.get(part, ()))
        names = {entry["name"] for entry in added}
        others = [entry for entry in config.get(part) or () if entry.get("name") not in names]
        result[part] = [*others, *added]
    result["current-context"] = config.get("current-context") or ours.get("current-context", "")
    return result


def _ours(url: str, credentials: Credentials) -> Config:
    cluster = {"server": url, "certificate-authority-data": _encoded(credentials.ca_file)}
    certificate = {
        "client-certificate-data": _encoded(credentials.client_cert_file),
        "client-key-data": _encoded(credentials.client_key_file),
    }
    users = {NAME: certificate, _WITH_TOKEN: {"token": credentials.token}}
    return {
        "clusters": [{"name": NAME, "cluster": cluster}],
        "users": [{"name": name, "user": user} for name, user in users.items()],
        "contexts": [{"name": n, "context": {"cluster": NAME, "user": n}} for n in users],
        "current-context": NAME,
    }


def _content(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return b""


def _encoded_like(before: bytes, config: Config) -> bytes:
    """Encode a kubeconfig in the format of the old file, `before`: YAML or JSON.

    A new file is written as JSON, which kubectl reads as well.
    """
    if before.lstrip()[:1] in (b"", b"{"):
        return encode_json(config, indent=2) + b"\n"
    from polyver.kube.objects import dump_yaml

    return dump_yaml(config).encode()


def _encoded(file: Path) -> str:
    return base64.b64encode(file.read_bytes()).decode()


def _read(content: bytes, path: Path) -> Config:
    """Decode a kubeconfig.

    If the file is not a kubeconfig, raise an error, so that polyver does not overwrite the file.
    """
    if not content.strip():
        return {}
    config = _decoded(content, path) if len(content) <= _LARGEST else None
    if not _is_kubeconfig(config):
        hint = "choose another file with --kubeconfig"
        raise CannotWriteKubeconfig(f"{path} is not a kubeconfig; it was not changed", hint=hint)
    assert isinstance(config, dict)
    return config


def _decoded(content: bytes, path: Path) -> object:
    try:
        # polyver writes JSON, which is faster to read than YAML.
        return msgspec.json.decode(content)
    except (msgspec.DecodeError, UnicodeDecodeError):
        pass
    from polyver.kube.objects import load_manifests

    try:
        documents = load_manifests(content.decode(), str(path))
    except (UnicodeDecodeError, PolyverError):
        return None
    return documents[0].value if len(documents) == 1 else None


def _is_kubeconfig(config: object) -> bool:
    if not isinstance(config, dict) or config.get("kind", "Config") != "Config":
        return False
    parts = [config.get(part) for part in ("clusters", "users", "contexts")]
    return all(
        part is None or (isinstance(part, list) and all(isinstance(entry, dict) for entry in part))
        for part in parts
    )


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Hold the lock file of a kubeconfig while the body of the `with` statement runs.

    kubectl uses the same lock file, so that polyver and kubectl do not overwrite each other's
    changes.
    """
    lock = path.with_name(f"{path.name}.lock")
    deadline = time.monotonic() + _LOCK_TIMEOUT
    while True:
        try:
            os.close(os.open(lock, os.O_CREAT | os.O_EXCL, 0o600))
            break
        except FileExistsError:
            if time.monotonic() > deadline:
                hint = "delete the file if no kubectl is running"
                raise CannotWriteKubeconfig(
                    f"{lock} is held by another process", hint=hint
                ) from None
            time.sleep(0.02)
    try:
        yield
    finally:
        lock.unlink(missing_ok=True)
