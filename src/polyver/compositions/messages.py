"""The messages between a pipeline and a function, with the names of Crossplane's protocol.

The messages contain Kubernetes objects as plain data. `polyver.compositions.calls` encodes them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum

from polyver.core.plain import Object

__all__ = [
    "Condition",
    "ProtocolCapability",
    "Ready",
    "Request",
    "RequestMeta",
    "Requirements",
    "Resource",
    "ResourceSelector",
    "Response",
    "ResponseMeta",
    "Result",
    "SchemaSelector",
    "Severity",
    "State",
    "Status",
    "Target",
]


class Ready(IntEnum):
    """Whether a resource is ready, as a function reports it. UNSPECIFIED means no report."""

    UNSPECIFIED = 0
    TRUE = 1
    FALSE = 2


class Severity(IntEnum):
    """Severity of a result. A result with the severity FATAL makes the pipeline fail."""

    UNSPECIFIED = 0
    FATAL = 1
    WARNING = 2
    NORMAL = 3


class Target(IntEnum):
    """The object that a result or a condition is for. UNSPECIFIED means the composite resource."""

    UNSPECIFIED = 0
    COMPOSITE = 1
    COMPOSITE_AND_CLAIM = 2


class Status(IntEnum):
    """The status of a condition that a function sets."""

    UNSPECIFIED = 0
    UNKNOWN = 1
    TRUE = 2
    FALSE = 3


class ProtocolCapability(IntEnum):
    """A feature of the protocol that the caller of a function supports."""

    UNSPECIFIED = 0
    CAPABILITIES = 1
    REQUIRED_RESOURCES = 2
    CREDENTIALS = 3
    CONDITIONS = 4
    REQUIRED_SCHEMAS = 5


@dataclass(frozen=True, slots=True)
class Resource:
    """An observed or desired object, with its connection details."""

    resource: Object = field(default_factory=dict)
    connection_details: Mapping[str, bytes] = field(default_factory=dict)
    ready: Ready = Ready.UNSPECIFIED


@dataclass(frozen=True, slots=True)
class State:
    """A composite resource, and its composed resources by their names in the pipeline."""

    composite: Resource = field(default_factory=Resource)
    resources: Mapping[str, Resource] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RequestMeta:
    """Metadata of a request. If two requests have equal content, their tags are equal."""

    tag: str = ""
    capabilities: tuple[ProtocolCapability, ...] = ()


@dataclass(frozen=True, slots=True)
class Request:
    """A request to a function."""

    meta: RequestMeta = field(default_factory=RequestMeta)
    observed: State = field(default_factory=State)
    desired: State = field(default_factory=State)
    input: Object | None = None
    context: Object | None = None
    extra_resources: Mapping[str, tuple[Resource, ...]] = field(default_factory=dict)
    """The resources found for `requirements.extra_resources`, the former name of
    `requirements.resources`.
    """
    credentials: Mapping[str, Mapping[str, bytes]] = field(default_factory=dict)
    required_resources: Mapping[str, tuple[Resource, ...]] = field(default_factory=dict)
    """The resources found for `requirements.resources`. If no object matches a requirement, its
    value is empty.
    """
    required_schemas: Mapping[str, Object] = field(default_factory=dict)
    """The OpenAPI schemas found for `requirements.schemas`. If a schema does not exist, its value
    is empty.
    """


@dataclass(frozen=True, slots=True)
class ResponseMeta:
    """Metadata of a response. `ttl` is the number of seconds for which the response is valid."""

    tag: str = ""
    ttl: float | None = None


@dataclass(frozen=True, slots=True)
class Result:
    """A message of a function to users. polyver emits it as an event."""

    severity: Severity = Severity.UNSPECIFIED
    message: str = ""
    reason: str | None = None
    target: Target = Target.UNSPECIFIED


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition that a function sets on the composite resource."""

    type: str = ""
    status: Status = Status.UNSPECIFIED
    reason: str = ""
    message: str | None = None
    target: Target = Target.UNSPECIFIED


@dataclass(frozen=True, slots=True)
class ResourceSelector:
    """The resources that a function requires: one with a name, or all that have certain labels."""

    api_version: str = ""
    kind: str = ""
    match_name: str | None = None
    match_labels: Mapping[str, str] | None = None
    namespace: str | None = None


@dataclass(frozen=True, slots=True)
class SchemaSelector:
    """A kind whose schema a function requires."""

    api_version: str = ""
    kind: str = ""


@dataclass(frozen=True, slots=True)
class Requirements:
    """The resources and schemas that a function requires, by names that the function chooses."""

    extra_resources: Mapping[str, ResourceSelector] = field(default_factory=dict)
    resources: Mapping[str, ResourceSelector] = field(default_factory=dict)
    schemas: Mapping[str, SchemaSelector] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Response:
    """The response of a function."""

    meta: ResponseMeta = field(default_factory=ResponseMeta)
    desired: State = field(default_factory=State)
    results: tuple[Result, ...] = ()
    context: Object | None = None
    requirements: Requirements = field(default_factory=Requirements)
    conditions: tuple[Condition, ...] = ()
    output: Object | None = None
    """An object that a function returns to its caller. polyver ignores it, because compositions
    have no use for it.
    """
