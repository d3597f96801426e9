"""Rules for writes of ConfigMaps and Secrets: keys, sizes and immutability."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator, Mapping

from polyver.core.plain import Object
from polyver.kube.objects.status import Cause, forbidden_field, invalid_field, required
from polyver.kube.server.rules import KindRules

__all__ = ["ConfigMapRules", "SecretRules"]

_KEY = re.compile(r"[-._a-zA-Z0-9]+")
_MOST_BYTES = 1024 * 1024
_IMMUTABLE = "field is immutable when `immutable` is set"


class ConfigMapRules(KindRules):
    """Checks for writes of ConfigMaps: keys, total size, and changes of an immutable ConfigMap.

    A key must not be in both `data` and `binaryData`.
    """

    def check_create(self, obj: Object) -> list[Cause]:
        data, binary = obj.get("data") or {}, obj.get("binaryData") or {}
        causes: list[Cause] = []
        for key in sorted(data):
            causes += _key_problems("data", key)
            if key in binary:
                text = "duplicate of key present in binaryData"
                causes.append(invalid_field(f"data[{key}]", key, text))
        for key in sorted(binary):
            causes += _key_problems("binaryData", key)
        size = sum(len(text.encode()) for text in data.values()) + _decoded_size(binary)
        if size > _MOST_BYTES:
            causes.append(_too_long(""))
        return causes

    def check_update(self, obj: Object, old: Object) -> list[Cause]:
        causes = list(_frozen(obj, old, ("data", "binaryData")))
        return [*causes, *self.check_create(obj)]


class SecretRules(KindRules):
    """Rules for writes of Secrets: the type, keys, total size and changes of an immutable Secret.

    For some types, such as `kubernetes.io/tls`, certain keys are required.
    """

    _needed: Mapping[str, tuple[str, ...]] = {
        "kubernetes.io/dockercfg": (".dockercfg",),
        "kubernetes.io/dockerconfigjson": (".dockerconfigjson",),
        "kubernetes.io/ssh-auth": ("ssh-privatekey",),
        "kubernetes.io/tls": ("tls.crt", "tls.key"),
    }

    def default(self, obj: Object) -> None:
        obj.setdefault("type", "Opaque")
        texts = obj.pop("stringData", None)
        if texts:
            encoded = {key: _encoded(text) for key, text in texts.items()}
            obj["data"] = (obj.get("data") or {}) | encoded

    def check_create(self, obj: Object) -> list[Cause]:
        data = obj.get("data") or {}
        causes = [cause for key in sorted(data) for cause in _key_problems("data", key)]
        if _decoded_size(data) > _MOST_BYTES:
            causes.append(_too_long("data"))
        needed = self._needed.get(obj.get("type", ""), ())
        return causes + [required(f"data[{key}]") for key in needed if key not in data]

    def check_update(self, obj: Object, old: Object) -> list[Cause]:
        causes: list[Cause] = []
        if obj.get("type") != old.get("type"):
            causes.append(invalid_field("type", obj.get("type"), "field is immutable"))
        causes += _frozen(obj, old, ("data",))
        return [*causes, *self.check_create(obj)]


def _encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def _decoded_size(data: Mapping[str, str]) -> int:
    return sum(len(text) * 3 // 4 - text[-2:].count("=") for text in data.values())


def _too_long(field: str) -> Cause:
    text = f"Too long: may not be more than {_MOST_BYTES} bytes"
    return Cause(field, text, "FieldValueTooLong")


def _key_problems(field: str, key: str) -> Iterator[Cause]:
    where = f"{field}[{key}]"
    if len(key) > 253:
        yield invalid_field(where, key, "must be no more than 253 characters")
    if not _KEY.fullmatch(key):
        yield invalid_field(
            where,
            key,
            "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. "
            "'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is "
            f"'{_KEY.pattern}')",
        )
    elif key in (".", ".."):
        yield invalid_field(where, key, f"must not be '{key}'")
    elif key.startswith(".."):
        yield invalid_field(where, key, "must not start with '..'")


def _frozen(obj: Object, old: Object, fields: tuple[str, ...]) -> Iterator[Cause]:
    if not old.get("immutable"):
        return
    if not obj.get("immutable"):
        yield forbidden_field("immutable", _IMMUTABLE)
    for field in fields:
        if (obj.get(field) or {}) != (old.get(field) or {}):
            yield forbidden_field(field, _IMMUTABLE)
