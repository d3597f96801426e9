"""Validation of MutatingWebhookConfigurations and ValidatingWebhookConfigurations."""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import urlsplit

from polyver.core.plain import Object
from polyver.kube.objects.status import (
    Cause,
    duplicate,
    invalid_field,
    required,
    too_many,
    unsupported,
)
from polyver.kube.server.kinds._builtin import BuiltinRules
from polyver.kube.server.kinds._checks import check_name, check_one_of, check_selector
from polyver.languages import cel
from polyver.languages.values.names import (
    dns_1035_label_problems,
    dns_subdomain_problems,
    label_key_problems,
)

__all__ = ["WebhookRules"]

_OPERATIONS = ("*", "CONNECT", "CREATE", "DELETE", "UPDATE")
_VERSIONS = ("v1", "v1beta1")
_EFFECTS = ("None", "NoneOnDryRun")
_MOST_CONDITIONS = 64
_URL = "desired format: https://host[/path]"


class WebhookRules(BuiltinRules):
    """Defaults and checks for writes of mutating and validating webhook configurations."""

    unconditional = False

    def check_create(self, obj: Object) -> list[Cause]:
        names: set[str] = set()
        causes: list[Cause] = []
        for number, hook in enumerate(obj.get("webhooks") or ()):
            path, name = f"webhooks[{number}]", hook.get("name") or ""
            causes += _check_hook(path, hook)
            causes += _check_versions(
                f"{path}.admissionReviewVersions", hook.get("admissionReviewVersions") or []
            )
            if name and name in names:
                causes.append(duplicate(f"{path}.name", name))
            names.add(name)
        return causes


def _check_hook(path: str, hook: Object) -> Iterator[Cause]:
    yield from _check_hook_name(f"{path}.name", hook.get("name") or "")
    for number, rule in enumerate(hook.get("rules") or ()):
        yield from _check_rule(f"{path}.rules[{number}]", rule)
    policy = hook.get("failurePolicy")
    yield from check_one_of(f"{path}.failurePolicy", policy, ("Fail", "Ignore"))
    match = hook.get("matchPolicy")
    yield from check_one_of(f"{path}.matchPolicy", match, ("Equivalent", "Exact"))
    effects = hook.get("sideEffects")
    if effects is None:
        yield required(f"{path}.sideEffects", f"must specify one of {', '.join(_EFFECTS)}")
    yield from check_one_of(f"{path}.sideEffects", effects, _EFFECTS)
    seconds = hook.get("timeoutSeconds")
    if seconds is not None and not 1 <= seconds <= 30:
        text = "the timeout value must be between 1 and 30 seconds"
        yield invalid_field(f"{path}.timeoutSeconds", seconds, text)
    for name in ("namespaceSelector", "objectSelector"):
        yield from check_selector(f"{path}.{name}", hook.get(name))
    again = hook.get("reinvocationPolicy")
    yield from check_one_of(f"{path}.reinvocationPolicy", again, ("IfNeeded", "Never"))
    yield from _check_client(f"{path}.clientConfig", hook.get("clientConfig") or {})
    yield from _check_conditions(f"{path}.matchConditions", hook.get("matchConditions") or [])


def _check_conditions(path: str, conditions: list[Object]) -> Iterator[Cause]:
    if len(conditions) > _MOST_CONDITIONS:
        yield too_many(path, len(conditions), _MOST_CONDITIONS)
        return
    names: set[str] = set()
    for number, condition in enumerate(conditions):
        item_path, name = f"{path}[{number}]", condition.get("name") or ""
        yield from _check_expression(f"{item_path}.expression", condition.get("expression") or "")
        if not name:
            yield required(f"{item_path}.name")
            continue
        yield from check_name(f"{item_path}.name", name, label_key_problems)
        if name in names:
            yield duplicate(f"{item_path}.name", name)
        names.add(name)


def _check_expression(field: str, given: str) -> Iterator[Cause]:
    text = given.strip()
    if not text:
        yield required(field)
        return
    try:
        cel.MatchCondition.compile(text)
    except cel.Uncompilable as error:
        yield invalid_field(field, text, str(error))


def _check_hook_name(field: str, name: str) -> Iterator[Cause]:
    if not name:
        yield required(field)
        return
    problems = dns_subdomain_problems(name)
    for problem in problems:
        yield invalid_field(field, name, problem)
    if not problems and name.count(".") < 2:
        text = "should be a domain with at least three segments separated by dots"
        yield invalid_field(field, name, text)


def _check_rule(path: str, rule: Object) -> Iterator[Cause]:
    operations = rule.get("operations") or []
    yield from _check_words(f"{path}.operations", operations, "operations")
    for number, operation in enumerate(operations):
        if operation not in _OPERATIONS:
            yield unsupported(f"{path}.operations[{number}]", operation, _OPERATIONS)
    yield from _check_words(f"{path}.apiGroups", rule.get("apiGroups") or [], "API groups")
    versions = rule.get("apiVersions") or []
    yield from _check_words(f"{path}.apiVersions", versions, "API versions")
    yield from _check_filled(f"{path}.apiVersions", versions)
    resources = rule.get("resources") or []
    if not resources:
        yield required(f"{path}.resources")
    yield from _check_filled(f"{path}.resources", resources)
    if len(resources) > 1 and "*/*" in resources:
        text = "if '*/*' is present, must not specify other resources"
        yield invalid_field(f"{path}.resources", resources, text)
    scopes = ("*", "Cluster", "Namespaced")
    yield from check_one_of(f"{path}.scope", rule.get("scope"), scopes)


def _check_words(field: str, words: list[str], what: str) -> Iterator[Cause]:
    """Yield an error if a list is empty, or if it has `*` and other values."""
    if not words:
        yield required(field)
    if len(words) > 1 and "*" in words:
        yield invalid_field(field, words, f"if '*' is present, must not specify other {what}")


def _check_filled(field: str, words: list[str]) -> Iterator[Cause]:
    for number, word in enumerate(words):
        if not word:
            yield required(f"{field}[{number}]")


def _check_client(path: str, client: Object) -> Iterator[Cause]:
    url, service = client.get("url"), client.get("service")
    if (url is None) == (service is None):
        yield required(path, "exactly one of url or service is required")
    elif url is not None:
        yield from _check_url(f"{path}.url", url)
    elif service is not None:
        yield from _check_service(f"{path}.service", service)


def _check_url(field: str, url: str) -> Iterator[Cause]:
    try:
        parts = urlsplit(url)
    except ValueError as error:
        yield required(field, f"url must be a valid URL: {error}; {_URL}")
        return
    if parts.scheme != "https":
        text = f"'https' is the only allowed URL scheme; {_URL}"
        yield invalid_field(field, parts.scheme, text)
    if not parts.netloc:
        yield invalid_field(field, parts.netloc, f"host must be specified; {_URL}")
    if parts.username is not None:
        text = "user information is not permitted in the URL"
        yield invalid_field(field, parts.username, text)
    if parts.fragment:
        yield invalid_field(field, parts.fragment, "fragments are not permitted in the URL")
    if parts.query:
        text = "query parameters are not permitted in the URL"
        yield invalid_field(field, parts.query, text)


def _check_service(path: str, service: Object) -> Iterator[Cause]:
    for name in ("name", "namespace"):
        if not service.get(name):
            yield required(f"{path}.{name}", f"service {name} is required")
    port = service.get("port", 443)
    if not 1 <= port <= 65535:
        text = "port is not valid: must be between 1 and 65535, inclusive"
        yield invalid_field(f"{path}.port", port, text)
    where = service.get("path")
    if where and not where.startswith("/"):
        yield invalid_field(f"{path}.path", where, "must start with a '/'")


def _check_versions(field: str, versions: list[str]) -> Iterator[Cause]:
    if not versions:
        yield required(field, f"must specify one of {', '.join(_VERSIONS)}")
        return
    seen: set[str] = set()
    for number, version in enumerate(versions):
        if version in seen:
            yield invalid_field(f"{field}[{number}]", version, "duplicate version")
            continue
        seen.add(version)
        yield from check_name(f"{field}[{number}]", version, dns_1035_label_problems)
    if not seen.intersection(_VERSIONS):
        text = f"must include at least one of {', '.join(_VERSIONS)}"
        yield invalid_field(field, versions, text)
