"""Rules for writes of APIServices.

The embedded server stores APIServices, but does not forward requests to other servers.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from polyver.core.plain import Object
from polyver.kube.objects.conditions import set_condition
from polyver.kube.objects.rules import path_segment_problems
from polyver.kube.objects.status import Cause, invalid_field, required
from polyver.kube.server.kinds._builtin import BuiltinRules
from polyver.kube.server.kinds._checks import check_name
from polyver.languages.values.names import dns_1035_label_problems, dns_subdomain_problems
from polyver.languages.values.strings import quoted

__all__ = ["RegistrationRules", "availability"]

_MOST_OF_GROUPS, _MOST_OF_VERSIONS = 20000, 1000
_HIGHEST_PORT = 65535


class RegistrationRules(BuiltinRules):
    """Rules for writes of APIServices.

    An APIService registers a version of a group: its priorities, and the Service that serves it if
    this server does not.
    """

    name_problems = staticmethod(path_segment_problems)
    unconditional = False

    def begin(self, obj: Object) -> None:
        if obj["spec"].get("service") is None:
            created = obj["metadata"]["creationTimestamp"]
            obj["status"] = {"conditions": set_condition([], availability(obj["spec"]), created)}

    def warnings(self, obj: Object, old: Object | None) -> Iterable[str]:
        service = obj["spec"].get("service")
        if service is not None and (old is None or old["spec"].get("service") != service):
            yield "API services are stored, but this server does not forward requests"

    def check_create(self, obj: Object) -> list[Cause]:
        spec, name = obj["spec"], obj["metadata"].get("name", "")
        return [*_check_names(spec, name), *_check_priorities(spec), *_check_service(spec)]


def availability(spec: Object) -> Object:
    """Build the condition Available of an APIService.

    It is True if this server itself serves the version. It is False if the spec names a Service.
    """
    condition = {"type": "Available"}
    if spec.get("service") is None:
        text = "Local APIServices are always available"
        return condition | {"status": "True", "reason": "Local", "message": text}
    text = "this server does not forward requests to other servers"
    return condition | {"status": "False", "reason": "NotAggregated", "message": text}


def _check_names(spec: Object, name: str) -> Iterator[Cause]:
    group, version = spec.get("group", ""), spec.get("version", "")
    if name and not path_segment_problems(name) and name != (wanted := f"{version}.{group}"):
        text = f'must be `spec.version+"."+spec.group`: {quoted(wanted)}'
        yield invalid_field("metadata.name", name, text)
    if group:
        yield from check_name("spec.group", group, dns_subdomain_problems)
    elif version != "v1":
        text = "only v1 may have an empty group and it better be legacy kube"
        yield required("spec.group", text)
    yield from check_name("spec.version", version, dns_1035_label_problems)


def _check_priorities(spec: Object) -> Iterator[Cause]:
    most = {"groupPriorityMinimum": _MOST_OF_GROUPS, "versionPriority": _MOST_OF_VERSIONS}
    for field, limit in most.items():
        if not 0 < spec[field] <= limit:
            text = f"must be positive and less than {limit}"
            yield invalid_field(f"spec.{field}", spec[field], text)


def _check_service(spec: Object) -> Iterator[Cause]:
    service, blind = spec.get("service"), spec.get("insecureSkipTLSVerify", False)
    bundle = spec.get("caBundle", "")
    if service is None:
        yield from _check_local(bundle, blind=blind)
        return
    for field in ("namespace", "name"):
        if not service.get(field):
            yield required(f"spec.service.{field}")
    port = service.get("port")
    if port is not None and not 0 < port <= _HIGHEST_PORT:
        text = f"port is not valid: must be between 1 and {_HIGHEST_PORT}, inclusive"
        yield invalid_field("spec.service.port", port, text)
    if blind and bundle:
        text = "may not be true if caBundle is present"
        yield invalid_field("spec.insecureSkipTLSVerify", True, text)


def _check_local(bundle: str, *, blind: bool) -> Iterator[Cause]:
    if bundle:
        size = len(bundle) * 3 // 4 - bundle.count("=")
        text = "local APIServices may not have a caBundle"
        yield invalid_field("spec.caBundle", f"{size} bytes", text)
    if blind:
        text = "local APIServices may not have insecureSkipTLSVerify"
        yield invalid_field("spec.insecureSkipTLSVerify", True, text)
