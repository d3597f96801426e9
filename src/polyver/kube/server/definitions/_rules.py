"""Rules for writes of a CRD: defaults, fields that the server sets, checks and warnings.

The checks of `spec.conversion` are at the beginning of this module. The module `_versions` checks
the versions and their schemas.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable, Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

from polyver.core.plain import Object
from polyver.kube.objects.schema import coerce_defaults
from polyver.kube.objects.status import Cause, forbidden_field, invalid_field, required, unsupported
from polyver.kube.server.custom import compiled
from polyver.kube.server.definitions._acceptance import (
    check_approval,
    check_names,
    is_established,
    made,
    required_names,
    set_condition,
)
from polyver.kube.server.definitions._versions import (
    DefinitionVersions,
    has_defaults,
    schemas_of,
    warnings_of,
)
from polyver.kube.server.delete import FOREGROUND, ORPHAN
from polyver.kube.server.rules import KindRules
from polyver.languages.values.names import dns_1035_label_problems, dns_subdomain_problems
from polyver.languages.values.strings import quoted

__all__ = ["CLEANUP", "DefinitionRules"]

_PATH = "spec.conversion"
_CLIENT, _REVIEWS = f"{_PATH}.webhookClientConfig", f"{_PATH}.conversionReviewVersions"
_KNOWN = ("v1", "v1beta1")
_FORM = "; desired format: https://host[/path]"


def _check_conversion(conversion: Mapping[str, Any], *, any_ca: bool) -> Iterable[Cause]:
    """Yield the problems of `spec.conversion`. With `any_ca`, any CA bundle is accepted."""
    strategy = conversion.get("strategy") or ""
    webhook = conversion.get("webhook") or {}
    client, reviews = webhook.get("clientConfig"), webhook.get("conversionReviewVersions") or []
    if not strategy:
        yield required(f"{_PATH}.strategy")
    elif strategy not in ("None", "Webhook"):
        yield unsupported(f"{_PATH}.strategy", strategy, ("None", "Webhook"))
    if strategy == "Webhook":
        yield from _check_client(client, any_ca=any_ca)
        yield from _check_reviews(reviews)
        return
    text = "should not be set when strategy is not set to Webhook"
    if client is not None:
        yield forbidden_field(_CLIENT, text)
    if reviews:
        yield forbidden_field(_REVIEWS, text)


def _check_client(client: Mapping[str, Any] | None, *, any_ca: bool) -> Iterable[Cause]:
    if client is None:
        yield required(_CLIENT, "required when strategy is set to Webhook")
        return
    url, service, bundle = client.get("url"), client.get("service"), client.get("caBundle")
    if (url is None) == (service is None):
        yield required(_CLIENT, "exactly one of url or service is required")
    elif url is not None:
        yield from _check_url(url, f"{_CLIENT}.url")
    elif service is not None:
        yield from _check_service(service, f"{_CLIENT}.service")
    if bundle and not any_ca and not _is_ca_bundle(bundle):
        text = "unable to parse bytes as PEM block"
        if b"-----BEGIN" in base64.b64decode(bundle):
            text = "failed to parse certificate: x509: malformed certificate"
        text = f"unable to load root certificates: {text}"
        yield invalid_field(f"{_CLIENT}.caBundle", bundle, text)


def _check_url(url: str, path: str) -> Iterable[Cause]:
    if problem := _unreadable(url):
        parse_error = f"parse {quoted(url)}: {problem}"
        yield required(path, f"url must be a valid URL: {parse_error}{_FORM}")
        return
    parts = urlsplit(url)
    user, _, host = parts.netloc.rpartition("@")
    if parts.scheme != "https":
        text = f"'https' is the only allowed URL scheme{_FORM}"
        yield invalid_field(path, parts.scheme, text)
    if not host:
        yield invalid_field(path, host, f"host must be specified{_FORM}")
    if "@" in parts.netloc:
        yield invalid_field(path, user, "user information is not permitted in the URL")
    if parts.fragment:
        yield invalid_field(path, parts.fragment, "fragments are not permitted in the URL")
    if parts.query:
        yield invalid_field(path, parts.query, "query parameters are not permitted in the URL")


def _unreadable(url: str) -> str:
    """Return the reason why a string is not a URL, or an empty string if it is a URL."""
    if url.startswith(":"):
        return "missing protocol scheme"
    try:
        urlsplit(url)
    except ValueError:
        return "missing ']' in host"
    return ""


def _check_service(service: Mapping[str, Any], path: str) -> Iterable[Cause]:
    # kube-apiserver confuses these two fields in its messages; the messages here are the same.
    if not service.get("namespace"):
        yield required(f"{path}.name")
    if not service.get("name"):
        yield required(f"{path}.namespace")
    port = service.get("port", 443)
    if not 1 <= port <= 65535:
        text = "port is not valid: must be between 1 and 65535, inclusive"
        yield invalid_field(f"{path}.port", port, text)
    if service.get("path") not in (None, "", "/"):
        yield from _check_path(service["path"], f"{path}.path")


def _check_path(found: str, path: str) -> Iterable[Cause]:
    if found == "//":
        yield invalid_field(path, found, "segment[0] may not be empty")
        return
    if not found.startswith("/"):
        yield invalid_field(path, found, "must start with a '/'")
    for number, segment in enumerate(found[1:].removesuffix("/").split("/")):
        if not segment:
            yield invalid_field(path, found, f"segment[{number}] may not be empty")
            continue
        for problem in dns_subdomain_problems(segment):
            yield invalid_field(path, found, f"segment[{number}]: {problem}")


def _check_reviews(versions: list[str]) -> Iterable[Cause]:
    if not versions:
        yield required(_REVIEWS)
        return
    for number, version in enumerate(versions):
        path = f"{_REVIEWS}[{number}]"
        if version in versions[:number]:
            yield invalid_field(path, version, "duplicate version")
            continue
        for problem in dns_1035_label_problems(version):
            yield invalid_field(path, version, problem)
    if not set(versions) & set(_KNOWN):
        yield invalid_field(_REVIEWS, versions, f"must include at least one of {', '.join(_KNOWN)}")


def _is_ca_bundle(encoded: str) -> bool:
    """Report whether a base64 string contains certificates in PEM format."""
    from cryptography import x509

    try:
        return bool(x509.load_pem_x509_certificates(base64.b64decode(encoded)))
    except (ValueError, binascii.Error):
        return False


CLEANUP = "customresourcecleanup.apiextensions.k8s.io"
_PRESERVED = "spec.preserveUnknownFields"


class DefinitionRules(KindRules):
    """Rules for writes and deletions of CRDs: defaults, server fields, checks and warnings."""

    unconditional = False
    counts = True
    has_status = True
    status_keeps = ()
    costly = True

    def default(self, obj: Object) -> None:
        spec, status = obj.get("spec") or {}, obj.get("status") or {}
        obj["spec"] = spec | {
            "names": _named(spec.get("names") or {}),
            "conversion": _converted(spec.get("conversion")),
        }
        if not status.get("storedVersions"):
            obj["status"] = status | {"storedVersions": _stored(spec) or None}

    def settle(self, obj: Object, *, applied: bool) -> None:
        del applied
        for schema in schemas_of(obj["spec"]):
            coerce_defaults(schema)

    def prepare_create(self, obj: Object) -> None:
        obj["status"] = {
            "conditions": None,
            "acceptedNames": {"plural": "", "kind": ""},
            "storedVersions": _stored(obj["spec"]) or None,
        }

    def prepare_update(self, obj: Object, old: Object) -> None:
        known = old["status"].get("storedVersions") or []
        new = [name for name in _stored(obj["spec"]) if name not in known]
        obj["status"] = old["status"] | {"storedVersions": [*known, *new] or None}

    def check_create(self, obj: Object) -> list[Cause]:
        causes = [*_check_name(obj), *_check_spec(obj["spec"], any_ca=True)]
        return _servable(obj, [*causes, *_check_rest(obj, None)])

    def check_update(self, obj: Object, old: Object) -> list[Cause]:
        causes = [*_check_spec(obj["spec"], any_ca=_may_have_any_ca(old))]
        return _servable(obj, [*causes, *_check_fixed(obj, old), *_check_rest(obj, old)])

    def check_status(self, obj: Object, old: Object) -> list[Cause]:
        del old
        return [*check_names(obj["status"].get("acceptedNames") or {}, "status.acceptedNames")]

    def warnings(self, obj: Object, old: Object | None) -> Iterable[str]:
        return warnings_of(obj["spec"], old["spec"] if old else None)

    def held(self, obj: Object) -> bool:
        """Report whether a CRD must stay after a DELETE, because its objects must be deleted first.

        The DELETE then only marks the CRD for deletion.
        """
        return super().held(obj) or "deletionTimestamp" not in obj["metadata"]

    def begin_deletion(self, obj: Object, now: str) -> None:
        metadata, status = obj["metadata"], obj["status"]
        # As in kube-apiserver, the first DELETE ignores the propagation policy.
        replaced = (CLEANUP, ORPHAN, FOREGROUND)
        kept = [each for each in metadata.get("finalizers") or [] if each not in replaced]
        metadata |= {"deletionTimestamp": now, "finalizers": [*kept, CLEANUP]}
        text = "CustomResourceDefinition marked for deletion; CustomResource deletion will begin"
        going = made("Terminating", "True", "InstanceDeletionPending", f"{text} soon")
        conditions = set_condition(status.get("conditions") or [], going, now)
        obj["status"] = status | {"conditions": conditions}


def _named(names: Mapping[str, Any]) -> Object:
    """Return the names of a CRD, with `singular` and `listKind` derived from `kind` if missing."""
    kind = names.get("kind") or ""
    implied = {"singular": kind.lower(), "listKind": f"{kind}List"} if kind else {}
    return {**names} | {field: names.get(field) or name for field, name in implied.items()}


def _converted(conversion: Mapping[str, Any] | None) -> Object:
    if conversion is None:
        return {"strategy": "None"}
    webhook = conversion.get("webhook") or {}
    client = webhook.get("clientConfig") or {}
    service = client.get("service")
    if service is None or service.get("port") is not None:
        return {**conversion}
    client = client | {"service": service | {"port": 443}}
    return {**conversion} | {"webhook": webhook | {"clientConfig": client}}


def _stored(spec: Mapping[str, Any]) -> list[str]:
    """Return the name of the storage version as a list, for `status.storedVersions`.

    If several versions are marked as the storage version, the list has only the first of them.
    """
    return [each["name"] for each in spec.get("versions") or () if each["storage"]][:1]


def _check_name(obj: Object) -> Iterable[Cause]:
    metadata, spec = obj["metadata"], obj["spec"]
    wanted = f"{spec['names'].get('plural', '')}.{spec.get('group', '')}"
    for field in ("generateName", "name"):
        name = metadata.get(field)
        if name and name != wanted:
            text = 'must be spec.names.plural+"."+spec.group'
            yield invalid_field(f"metadata.{field}", name, text)


def _check_spec(spec: Object, *, any_ca: bool) -> Iterable[Cause]:
    """Yield the problems of the spec of a CRD, in the order of kube-apiserver."""
    versions, preserves = DefinitionVersions.of(spec), bool(spec.get("preserveUnknownFields"))
    yield from _check_group(spec.get("group") or "")
    yield from _check_scope(spec.get("scope") or "")
    yield from versions.check_schemas_given()
    if preserves and has_defaults(spec):
        text = "must be false in order to use defaults in the schema"
        yield invalid_field(_PRESERVED, True, text)
    yield from versions.check_each()
    yield from versions.check_set()
    yield from required_names(spec["names"])
    yield from check_names(spec["names"], "spec.names")
    yield from versions.check_shared()
    strategy = spec["conversion"].get("strategy")
    if preserves and strategy != "None":
        text = "must be None if spec.preserveUnknownFields is true"
        yield invalid_field("spec.conversion.strategy", strategy, text)
    yield from _check_conversion(spec["conversion"], any_ca=any_ca)


def _check_group(group: str) -> Iterable[Cause]:
    problems = dns_subdomain_problems(group)
    if not group:
        yield required("spec.group")
    elif problems:
        yield invalid_field("spec.group", group, ",".join(problems))
    elif "." not in group:
        yield invalid_field("spec.group", group, "should be a domain with at least one dot")


def _check_scope(scope: str) -> Iterable[Cause]:
    if not scope:
        yield required("spec.scope")
    elif scope not in ("Cluster", "Namespaced"):
        yield unsupported("spec.scope", scope, ("Cluster", "Namespaced"))


def _check_fixed(obj: Object, old: Object) -> Iterable[Cause]:
    """Yield a cause for each immutable field that changed.

    The scope and the kind become immutable when the CRD is established.
    """
    new, before = obj["spec"], old["spec"]
    fields = [("scope",), ("names", "kind")] if is_established(old) else []
    for path in (*fields, ("group",), ("names", "plural")):
        found, was = new, before
        for name in path:
            found, was = found[name], was[name]
        if found != was:
            yield invalid_field(f"spec.{'.'.join(path)}", found, "field is immutable")


def _check_rest(obj: Object, old: Object | None) -> Iterable[Cause]:
    status, spec = obj["status"], obj["spec"]
    yield from check_names(status.get("acceptedNames") or {}, "status.acceptedNames")
    yield from _check_stored(status.get("storedVersions"), spec.get("versions") or ())
    yield from check_approval(obj, old)
    before = bool(old and old["spec"].get("preserveUnknownFields"))
    if spec.get("preserveUnknownFields") and not before:
        text = "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in"
        yield invalid_field(_PRESERVED, True, f"{text} spec.versions[*].schema instead")


def _check_stored(stored: list[str] | None, versions: Sequence[Object]) -> Iterable[Cause]:
    path = "status.storedVersions"
    if not stored:
        yield invalid_field(path, stored, "must have at least one stored version")
        return
    for version in versions:
        if version["storage"] and version["name"] not in stored:
            yield invalid_field(path, stored, f"must have the storage version {version['name']}")
    names = {version["name"] for version in versions}
    for number, name in enumerate(stored):
        if name not in names:
            text = (
                f"missing from spec.versions; {name} was previously a storage version, and must "
                "remain in spec.versions until a storage migration ensures no data remains "
                f"persisted in {name} and removes {name} from status.storedVersions"
            )
            yield invalid_field(f"{path}[{number}]", name, text)


def _may_have_any_ca(old: Object) -> bool:
    """Report whether an update of a CRD may contain an invalid CA bundle.

    It may if the CRD is not established yet, or if the old CA bundle is already invalid.
    """
    if not is_established(old):
        return True
    webhook = old["spec"]["conversion"].get("webhook") or {}
    bundle: str = (webhook.get("clientConfig") or {}).get("caBundle") or ""
    return bool(bundle) and not _is_ca_bundle(bundle)


def _servable(obj: Object, causes: list[Cause]) -> list[Cause]:
    """Compile the schemas of a CRD if it has no errors (`causes`) so far; return `causes`.

    If a schema cannot be compiled, raise an error: the kind could not be served, so the CRD must
    not be stored.
    """
    if not causes:
        for schema in schemas_of(obj["spec"]):
            compiled(schema)
    return causes
