"""What a pipeline and a function say to each other, in the words of Crossplane's protocol.

Objects are plain data here. How all of it is written on the wire is the business of whoever calls.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum

from polyver.core.plain import Object

__all__ = [
    "Capability",
    "Condition",
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
    """Whether a function takes a resource for ready; unspecified if it has no opinion."""

    UNSPECIFIED = 0
    TRUE = 1
    FALSE = 2


class Severity(IntEnum):
    """How bad a result is: a fatal one fails the pipeline."""

    UNSPECIFIED = 0
    FATAL = 1
    WARNING = 2
    NORMAL = 3


class Target(IntEnum):
    """Whom a result or a condition concerns: the composite resource, if nothing is said."""

    UNSPECIFIED = 0
    COMPOSITE = 1
    COMPOSITE_AND_CLAIM = 2


class Status(IntEnum):
    """The status of a condition."""

    UNSPECIFIED = 0
    UNKNOWN = 1
    TRUE = 2
    FALSE = 3


class Capability(IntEnum):
    """What the caller heeds, so that a function need not guess."""

    UNSPECIFIED = 0
    CAPABILITIES = 1
    REQUIRED_RESOURCES = 2
    CREDENTIALS = 3
    CONDITIONS = 4
    REQUIRED_SCHEMAS = 5


@dataclass(frozen=True, slots=True)
class Resource:
    """One object, as it is or as it should be."""

    resource: Object = field(default_factory=dict)
    connection_details: Mapping[str, bytes] = field(default_factory=dict)
    ready: Ready = Ready.UNSPECIFIED


@dataclass(frozen=True, slots=True)
class State:
    """A composite resource and those that it is composed of, by their names in the pipeline."""

    composite: Resource = field(default_factory=Resource)
    resources: Mapping[str, Resource] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RequestMeta:
    """About a request: the same tag means the same request."""

    tag: str = ""
    capabilities: tuple[Capability, ...] = ()


@dataclass(frozen=True, slots=True)
class Request:
    """What a function is asked."""

    meta: RequestMeta = field(default_factory=RequestMeta)
    observed: State = field(default_factory=State)
    desired: State = field(default_factory=State)
    input: Object | None = None
    context: Object | None = None
    extra_resources: Mapping[str, tuple[Resource, ...]] = field(default_factory=dict)
    """What was found for `requirements.extra_resources`: the older name."""
    credentials: Mapping[str, Mapping[str, bytes]] = field(default_factory=dict)
    required_resources: Mapping[str, tuple[Resource, ...]] = field(default_factory=dict)
    """What was found for `requirements.resources`; an empty list if nothing was."""
    required_schemas: Mapping[str, Object] = field(default_factory=dict)
    """The OpenAPI schemas for `requirements.schemas`; an empty one if there is none."""


@dataclass(frozen=True, slots=True)
class ResponseMeta:
    """About an answer: for how many seconds it holds, if the function says so."""

    tag: str = ""
    ttl: float | None = None


@dataclass(frozen=True, slots=True)
class Result:
    """Something that a function has to tell about its run."""

    severity: Severity = Severity.UNSPECIFIED
    message: str = ""
    reason: str | None = None
    target: Target = Target.UNSPECIFIED


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition that the composite resource is to have."""

    type: str = ""
    status: Status = Status.UNSPECIFIED
    reason: str = ""
    message: str | None = None
    target: Target = Target.UNSPECIFIED


@dataclass(frozen=True, slots=True)
class ResourceSelector:
    """Resources that a function needs to see: one by its name, or all with some labels."""

    api_version: str = ""
    kind: str = ""
    match_name: str | None = None
    match_labels: Mapping[str, str] | None = None
    namespace: str | None = None


@dataclass(frozen=True, slots=True)
class SchemaSelector:
    """A kind of which a function needs to see the schema."""

    api_version: str = ""
    kind: str = ""


@dataclass(frozen=True, slots=True)
class Requirements:
    """What a function needs to see before it can say more, by names of its own."""

    extra_resources: Mapping[str, ResourceSelector] = field(default_factory=dict)
    resources: Mapping[str, ResourceSelector] = field(default_factory=dict)
    schemas: Mapping[str, SchemaSelector] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Response:
    """What a function answers."""

    meta: ResponseMeta = field(default_factory=ResponseMeta)
    desired: State = field(default_factory=State)
    results: tuple[Result, ...] = ()
    context: Object | None = None
    requirements: Requirements = field(default_factory=Requirements)
    conditions: tuple[Condition, ...] = ()
    output: Object | None = None
    """Not for compositions; kept for whoever looks at it."""
