"""Validation of containers: names, images, ports, variables, mounts, probes."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from polyver.core.plain import Object
from polyver.kube.objects.status import Cause, duplicate, forbidden_field, invalid_field, required
from polyver.kube.server.kinds._checks import (
    PROTOCOLS,
    check_name,
    check_one_of,
    check_port,
    check_port_name,
    check_port_or_name,
    check_resources,
    missing_field,
    not_negative,
)
from polyver.kube.server.kinds._volumes import (
    IN_VARIABLES,
    check_field,
    check_no_step_back,
    check_resource_field,
)
from polyver.languages.values.names import dns_label_problems, dns_subdomain_problems

__all__ = ["check_containers", "check_images", "check_init_containers"]

_PROBES = ("livenessProbe", "readinessProbe", "startupProbe")
_NOT_FIRST = "may not be set for init containers without restartPolicy=Always"


def check_containers(path: str, containers: list[Object], volumes: set[str]) -> Iterator[Cause]:
    if not containers:
        yield required(path)
    names: set[str] = set()
    for number, container in enumerate(containers):
        item_path = f"{path}[{number}]"
        yield from _check_container(item_path, container, volumes)
        yield from _check_unique(item_path, container, names)
        yield from _check_handlers(item_path, container)
    yield from _check_host_ports(path, containers)


def _check_host_ports(path: str, containers: list[Object]) -> Iterator[Cause]:
    """Yield an error for each host port that an earlier container already uses."""
    seen: set[str] = set()
    for number, container in enumerate(containers):
        for index, port in enumerate(container.get("ports") or ()):
            if not port.get("hostPort"):
                continue
            key = f"{port.get('protocol', '')}/{port.get('hostIP', '')}/{port['hostPort']}"
            if key in seen:
                yield duplicate(f"{path}[{number}].ports[{index}].hostPort", key)
            seen.add(key)


def check_init_containers(
    path: str, containers: list[Object], others: list[Object], volumes: set[str]
) -> Iterator[Cause]:
    """Yield the problems of init containers.

    An init container ends before the other containers start, unless its restartPolicy is Always.
    """
    names = {other.get("name", "") for other in others}
    for number, container in enumerate(containers):
        item_path = f"{path}[{number}]"
        yield from _check_container(item_path, container, volumes)
        yield from _check_unique(item_path, container, names)
        if container.get("restartPolicy") == "Always":
            yield from _check_handlers(item_path, container)
            continue
        for name in ("lifecycle", *_PROBES):
            if name in container:
                yield forbidden_field(f"{item_path}.{name}", _NOT_FIRST)


def _check_unique(path: str, container: Object, names: set[str]) -> Iterator[Cause]:
    name = container.get("name") or ""
    if name in names:
        yield duplicate(f"{path}.name", name)
    names.add(name)


def _check_container(path: str, container: Object, volumes: set[str]) -> Iterator[Cause]:
    name = container.get("name") or ""
    if name:
        yield from check_name(f"{path}.name", name, dns_label_problems)
    else:
        yield required(f"{path}.name")
    if not container.get("image"):
        yield required(f"{path}.image")
    policy = container.get("terminationMessagePolicy")
    known = ("File", "FallbackToLogsOnError")
    yield from check_one_of(f"{path}.terminationMessagePolicy", policy, known)
    yield from _check_ports(f"{path}.ports", container.get("ports") or [])
    for number, variable in enumerate(container.get("env") or ()):
        yield from _check_variable(f"{path}.env[{number}]", variable)
    yield from _check_all_from(f"{path}.envFrom", container.get("envFrom") or [])
    yield from _check_mounts(f"{path}.volumeMounts", container.get("volumeMounts") or [], volumes)
    policies = ("Always", "IfNotPresent", "Never")
    pull = container.get("imagePullPolicy")
    yield from check_one_of(f"{path}.imagePullPolicy", pull, policies)
    yield from check_resources(f"{path}.resources", container.get("resources"))
    yield from _check_security(f"{path}.securityContext", container.get("securityContext") or {})


def _check_security(path: str, context: Object) -> Iterator[Cause]:
    for name in ("runAsUser", "runAsGroup"):
        number = context.get(name)
        if number is not None and not 0 <= number < 2**31:
            text = f"must be between 0 and {2**31 - 1}, inclusive"
            yield invalid_field(f"{path}.{name}", number, text)
    if context.get("privileged") and context.get("allowPrivilegeEscalation") is False:
        text = "cannot set `allowPrivilegeEscalation` to false and `privileged` to true"
        yield invalid_field(path, context, text)


def check_images(path: str, containers: list[Object]) -> Iterator[Cause]:
    """Yield an error for each image with white space at its beginning or end.

    As in kube-apiserver, this is the last check of a pod, and pod templates are not checked.
    """
    for number, container in enumerate(containers):
        image = container.get("image") or ""
        if image != image.strip():
            text = "must not have leading or trailing whitespace"
            yield invalid_field(f"{path}[{number}].image", image, text)


def _check_ports(path: str, ports: list[Object]) -> Iterator[Cause]:
    names: set[str] = set()
    for number, port in enumerate(ports):
        item_path, name = f"{path}[{number}]", port.get("name") or ""
        wrong = list(check_port_name(f"{item_path}.name", name)) if name else []
        yield from wrong
        if name and not wrong:
            if name in names:
                yield duplicate(f"{item_path}.name", name)
            names.add(name)
        if not port.get("containerPort"):
            yield required(f"{item_path}.containerPort")
        else:
            yield from check_port(f"{item_path}.containerPort", port["containerPort"])
        if port.get("hostPort"):
            yield from check_port(f"{item_path}.hostPort", port["hostPort"])
        yield from check_one_of(f"{item_path}.protocol", port.get("protocol"), PROTOCOLS)


_VARIABLE = re.compile("[ -<>-~]+")
_SOURCES = ("fieldRef", "resourceFieldRef", "configMapKeyRef", "secretKeyRef", "fileKeyRef")


def _check_variable(path: str, variable: Object) -> Iterator[Cause]:
    name, source = variable.get("name") or "", variable.get("valueFrom")
    if not name:
        yield required(f"{path}.name")
    else:
        yield from check_name(f"{path}.name", name, _variable_problems)
    if source is None:
        return
    given = [each for each in _SOURCES if source.get(each) is not None]
    for each in given:
        yield from _check_variable_source(f"{path}.valueFrom.{each}", each, source[each])
    if problem := _source_problem(variable, len(given)):
        yield invalid_field(f"{path}.valueFrom", "", problem)


def _variable_problems(name: str) -> list[str]:
    if _VARIABLE.fullmatch(name):
        return []
    text = "a valid environment variable name must consist only of printable ASCII characters "
    return [f"{text}other than '='"]


def _source_problem(variable: Object, sources: int) -> str:
    if not sources:
        *most, last = (f"`{each}`" for each in _SOURCES)
        return f"must specify one of: {', '.join(most)} or {last}"
    if variable.get("value"):
        return "may not be specified when `value` is not empty"
    return "may not have more than one field specified at a time" if sources > 1 else ""


def _check_variable_source(path: str, kind: str, source: Object) -> Iterator[Cause]:
    match kind:
        case "fieldRef":
            yield from check_field(path, source.get("fieldPath") or "", IN_VARIABLES)
        case "resourceFieldRef":
            yield from check_resource_field(path, source.get("resource") or "")
        case "configMapKeyRef" | "secretKeyRef":
            name = source.get("name") or ""
            yield from check_name(f"{path}.name", name, dns_subdomain_problems)
            if not source.get("key"):
                yield required(f"{path}.key")


def _check_all_from(path: str, sources: list[Object]) -> Iterator[Cause]:
    for number, source in enumerate(sources):
        given = [each for each in ("configMapRef", "secretRef") if source.get(each) is not None]
        if source.get("prefix"):
            prefix = source["prefix"]
            yield from check_name(f"{path}[{number}].prefix", prefix, _variable_problems)
        for each in given:
            name = source[each].get("name") or ""
            item_path = f"{path}[{number}].{each}.name"
            if name:
                yield from check_name(item_path, name, dns_subdomain_problems)
            else:
                yield required(item_path)
        if len(given) != 1:
            text = "may not have more than one field specified at a time"
            text = text if given else "must specify one of: `configMapRef` or `secretRef`"
            # As in kube-apiserver, the error names the list, not the item.
            yield invalid_field(path, "", text)


def _check_mounts(path: str, mounts: list[Object], volumes: set[str]) -> Iterator[Cause]:
    places: set[str] = set()
    for number, mount in enumerate(mounts):
        item_path, name = f"{path}[{number}]", mount.get("name") or ""
        where, inside = mount.get("mountPath") or "", mount.get("subPath") or ""
        if not name:
            yield required(f"{item_path}.name")
        if name not in volumes:
            yield missing_field(f"{item_path}.name", name)
        if not where:
            yield required(f"{item_path}.mountPath")
        if where in places:
            yield invalid_field(f"{item_path}.mountPath", where, "must be unique")
        places.add(where)
        if inside.startswith("/"):
            yield invalid_field(f"{path}.subPath", inside, "must be a relative path")
        yield from check_no_step_back(f"{path}.subPath", inside)


_HANDLERS = ("exec", "httpGet", "tcpSocket", "grpc", "sleep")
_SECONDS = (
    "initialDelaySeconds",
    "timeoutSeconds",
    "periodSeconds",
    "successThreshold",
    "failureThreshold",
)


def _check_handlers(path: str, container: Object) -> Iterator[Cause]:
    lifecycle = container.get("lifecycle") or {}
    for name in ("postStart", "preStop"):
        if (handler := lifecycle.get(name)) is not None:
            yield from _check_handler(f"{path}.lifecycle.{name}", handler)
    for name in _PROBES:
        if (probe := container.get(name)) is not None:
            yield from _check_probe(f"{path}.{name}", name, probe)


def _check_probe(path: str, name: str, probe: Object) -> Iterator[Cause]:
    yield from _check_handler(path, probe)
    yield from not_negative(probe, path, *_SECONDS)
    if name != "readinessProbe" and probe.get("successThreshold") != 1:
        yield invalid_field(f"{path}.successThreshold", probe.get("successThreshold"), "must be 1")


def _check_handler(path: str, handler: Object) -> Iterator[Cause]:
    given = [each for each in _HANDLERS if handler.get(each) is not None]
    if not given:
        yield required(path, "must specify a handler type")
    for number, each in enumerate(given):
        if number:
            text = "may not specify more than 1 handler type"
            yield forbidden_field(f"{path}.{each}", text)
        else:
            yield from _check_action(f"{path}.{each}", each, handler[each])


def _check_action(path: str, kind: str, action: Mapping[str, object]) -> Iterator[Cause]:
    match kind:
        case "exec" if not action.get("command"):
            yield required(f"{path}.command")
        case "httpGet" | "tcpSocket" | "grpc":
            yield from check_port_or_name(f"{path}.port", action.get("port", 0))
