"""A run of a pipeline as a state machine.

`decide` returns the next effect for a state. An effect is one thing that the caller has to do, such
as a call of a function. The caller performs the effect. It then passes the result and the number of
the effect to a function of this module, which returns the next state. If the caller passes the same
result again, the state does not change.

`found_among` finds the resources that a function requires in a list of objects.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal

from polyver.capability import Refusal
from polyver.compositions._function_references import mapping
from polyver.compositions.decisions import ResolvedStep, Secret
from polyver.compositions.messages import (
    Condition,
    ProtocolCapability,
    Request,
    RequestMeta,
    Requirements,
    Resource,
    ResourceSelector,
    Response,
    Result,
    SchemaSelector,
    Severity,
    State,
    Status,
)
from polyver.core.plain import ReadOnlyObject
from polyver.kube.objects import digest
from polyver.kube.objects.conditions import ConditionStatus, DesiredCondition

__all__ = [
    "MOST_ROUNDS",
    "SYSTEM",
    "CallStep",
    "Done",
    "Effect",
    "Fetch",
    "FoundRequirements",
    "PipelineEvent",
    "PipelineFailure",
    "PipelineRun",
    "answered",
    "decide",
    "failed",
    "fetched",
    "found_among",
    "secrets_of",
    "start",
]

REASON: Final = "ComposeResources"
"""The reason of an event, if the function does not set a reason."""
MOST_ROUNDS: Final = 5
"""Number of times that a function may change its requirements. After that, the run fails."""
SYSTEM: Final = frozenset({"Ready", "Synced", "Healthy", "Updated"})
"""Types of conditions that polyver sets itself, so functions must not set them."""
_CAPABILITIES = tuple(each for each in ProtocolCapability if each.value)
_TRUTH: dict[Status, ConditionStatus] = {Status.TRUE: "True", Status.FALSE: "False"}
_DEFINITION = "CustomResourceDefinition"


Data = Mapping[str, bytes]


@dataclass(frozen=True, slots=True)
class PipelineEvent:
    """An event to emit about the composite resource."""

    type: Literal["Normal", "Warning"]
    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class PipelineFailure:
    """The reason why a run failed: `reason` is one word, for conditions."""

    reason: str
    message: str

    @classmethod
    def of(cls, refusal: Refusal) -> PipelineFailure:
        return cls(refusal.reason, str(refusal))


@dataclass(frozen=True, slots=True)
class FoundRequirements:
    """The resources and schemas that were found for the requirements of a function, by name."""

    resources: Mapping[str, tuple[Resource, ...]] = field(default_factory=dict)
    extra_resources: Mapping[str, tuple[Resource, ...]] = field(default_factory=dict)
    schemas: Mapping[str, dict[str, Any]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class PipelineRun:
    """The state of a run.

    The function revision of each step is chosen before the run starts, and does not change.
    """

    observed: State
    steps: tuple[ResolvedStep, ...]
    credentials: Mapping[str, Mapping[str, Data]] = field(default_factory=dict)
    """Credentials by the name of the step, and then by their name in this step."""
    place: int = 0
    """Index of the current step. After the last step, the number of steps."""
    number: int = 0
    """Number of results of effects that the caller has passed so far. It is also the number of the
    next effect.
    """
    rounds: int = 0
    """Number of times that the current function has changed its requirements."""
    asked: Requirements = field(default_factory=Requirements)
    """The requirements in the last response of the current function."""
    awaited: Requirements | None = None
    """Requirements to look up before the current function is called; None if there are none."""
    given: FoundRequirements = field(default_factory=FoundRequirements)
    """Resources that the Composition itself requires for the current step."""
    found: FoundRequirements = field(default_factory=FoundRequirements)
    """Resources and schemas that the current function required in its last response."""
    desired: State = field(default_factory=State)
    context: dict[str, Any] | None = field(default_factory=dict)
    events: tuple[PipelineEvent, ...] = ()
    conditions: tuple[DesiredCondition, ...] = ()
    ttl: float | None = None
    """Seconds for which the result of the run is valid; None if no function limits this time."""
    failure: PipelineFailure | None = None

    @property
    def is_over(self) -> bool:
        return self.failure is not None or self.place == len(self.steps)


def secrets_of(steps: Iterable[ResolvedStep]) -> set[Secret]:
    """Return the Secrets that must be read before a pipeline starts."""
    return {secret for step in steps for secret in step.credentials.values()}


def start(
    observed: State, steps: tuple[ResolvedStep, ...], secrets: Mapping[Secret, Data] | None = None
) -> PipelineRun:
    """Build the initial state of a run.

    Raise Refusal if a Secret that a step references is not in `secrets`.
    """
    known = secrets or {}
    credentials = {step.name: _credentials(step, known) for step in steps if step.credentials}
    told = [PipelineEvent("Warning", REASON, each) for step in steps for each in step.warnings]
    return PipelineRun(
        observed, steps, credentials, awaited=awaited_by(steps, 0), events=tuple(told)
    )


def _credentials(step: ResolvedStep, known: Mapping[Secret, Data]) -> dict[str, Data]:
    for name, secret in step.credentials.items():
        if secret not in known:
            fact = f'there is no secret {secret}, the credentials "{name}" of step "{step.name}"'
            raise Refusal("CredentialsNotFound", fact)
    return {name: known[secret] for name, secret in step.credentials.items()}


def awaited_by(steps: tuple[ResolvedStep, ...], place: int) -> Requirements | None:
    """Return the requirements that the Composition sets for a step; None if it sets none."""
    if place == len(steps) or not steps[place].requirements:
        return None
    return Requirements(resources=steps[place].requirements)


@dataclass(frozen=True, slots=True)
class CallStep:
    """Effect: call the function revision of a step."""

    number: int
    step: ResolvedStep
    request: Request


@dataclass(frozen=True, slots=True)
class Fetch:
    """Effect: look up required resources. A requirement without a match gets an empty result."""

    number: int
    step: ResolvedStep
    requirements: Requirements


@dataclass(frozen=True, slots=True)
class Done:
    """Effect: do nothing, because the run has ended. It was successful, or it has failed."""


Effect = CallStep | Fetch | Done


def decide(run: PipelineRun) -> Effect:
    """Return the next effect for a run."""
    if run.is_over:
        return Done()
    step = run.steps[run.place]
    if run.awaited is not None:
        return Fetch(run.number, step, run.awaited)
    request = Request(
        observed=run.observed,
        desired=run.desired,
        input=None if step.input is None else dict(step.input),
        context=run.context,
        extra_resources=run.found.extra_resources,
        credentials=run.credentials.get(step.name, {}),
        required_resources={**run.given.resources, **run.found.resources},
        required_schemas=run.found.schemas,
    )
    tag = digest(request).removeprefix("sha256:")
    return CallStep(run.number, step, replace(request, meta=RequestMeta(tag, _CAPABILITIES)))


def fetched(run: PipelineRun, number: int, found: FoundRequirements) -> PipelineRun:
    """Return the state after the caller has looked up required resources."""
    if run.is_over or number != run.number or run.awaited is None:
        return run
    first = run.rounds == 0
    return replace(
        run,
        number=run.number + 1,
        awaited=None,
        given=found if first else run.given,
        found=run.found if first else found,
    )


def failed(run: PipelineRun, number: int, reason: str, message: str) -> PipelineRun:
    """Return the state after a failed call or lookup. `reason` is one word, for conditions."""
    if run.is_over or number != run.number:
        return run
    step = run.steps[run.place]
    told = f'pipeline step "{step.name}" ({step.revision}): {message}'
    return replace(run, number=run.number + 1, failure=PipelineFailure(reason, told))


def answered(run: PipelineRun, number: int, response: Response) -> PipelineRun:
    """Return the state after the function of the current step has responded."""
    if run.is_over or number != run.number or run.awaited is not None:
        return run
    fatal = next((each for each in response.results if each.severity is Severity.FATAL), None)
    if fatal is not None:
        told = failed(run, number, "FatalResult", f"fatal: {fatal.message}")
        before = response.results[: response.results.index(fatal)]
        return _telling(told, response, before)
    if response.requirements != run.asked:
        return _asking(run, response)
    # The step is done: add its result, and begin the next step.
    ttls = [ttl for ttl in (run.ttl, response.meta.ttl) if ttl]
    following = run.place + 1
    return replace(
        _telling(run, response, response.results),
        number=run.number + 1,
        place=following,
        rounds=0,
        asked=Requirements(),
        awaited=awaited_by(run.steps, following),
        given=FoundRequirements(),
        found=FoundRequirements(),
        desired=response.desired,
        context=response.context,
        ttl=min(ttls) if ttls else None,
    )


def _asking(run: PipelineRun, response: Response) -> PipelineRun:
    """Return the state after the current function has changed its requirements."""
    if run.rounds == MOST_ROUNDS:
        message = f"its requirements did not stabilize after {MOST_ROUNDS + 1} calls"
        return failed(run, run.number, "UnstableRequirements", message)
    return replace(
        run,
        number=run.number + 1,
        rounds=run.rounds + 1,
        asked=response.requirements,
        awaited=response.requirements,
        context=response.context,
    )


def _telling(run: PipelineRun, response: Response, results: tuple[Result, ...]) -> PipelineRun:
    """Return the state with the events and conditions from a response added."""
    step = run.steps[run.place]
    ours = [each for each in response.conditions if each.type not in SYSTEM]
    others = [each.type for each in response.conditions if each.type in SYSTEM]
    events = [_event(step, result) for result in results]
    about = f'pipeline step "{step.name}": functions cannot set the condition'
    events += [PipelineEvent("Warning", REASON, f"{about} {kind}") for kind in others]
    return replace(
        run,
        events=(*run.events, *events),
        conditions=(*run.conditions, *(_fact(each) for each in ours)),
    )


def _event(step: ResolvedStep, result: Result) -> PipelineEvent:
    about, reason = f'pipeline step "{step.name}"', result.reason or REASON
    if result.severity is Severity.NORMAL:
        return PipelineEvent("Normal", reason, f"{about}: {result.message}")
    if result.severity is Severity.WARNING:
        return PipelineEvent("Warning", reason, f"{about}: {result.message}")
    message = f"{about} (a result of unknown severity): {result.message}"
    return PipelineEvent("Warning", reason, message)


def _fact(condition: Condition) -> DesiredCondition:
    truth = _TRUTH.get(condition.status, "Unknown")
    return DesiredCondition(condition.type, truth, condition.reason, condition.message or "")


def found_among(wanted: Requirements, objects: Iterable[ReadOnlyObject]) -> FoundRequirements:
    """Find the objects that match each requirement, sorted by namespace and name.

    The schemas come from the CustomResourceDefinitions among the objects. Raise Refusal if a
    requirement has neither a name nor labels.
    """
    there = sorted(objects, key=_name)
    return FoundRequirements(
        {name: _fitting(name, each, there) for name, each in wanted.resources.items()},
        {name: _fitting(name, each, there) for name, each in wanted.extra_resources.items()},
        {name: _schema(each, there) for name, each in wanted.schemas.items()},
    )


def _fitting(
    name: str, selector: ResourceSelector, there: Sequence[ReadOnlyObject]
) -> tuple[Resource, ...]:
    if not selector.match_name and selector.match_labels is None:
        fact = f'the requirement "{name}" has neither a name nor labels'
        raise Refusal("InvalidRequirement", fact)
    return tuple(Resource(dict(each)) for each in there if _fits(selector, each))


def _schema(selector: SchemaSelector, there: Sequence[ReadOnlyObject]) -> dict[str, Any]:
    group, _, version = selector.api_version.rpartition("/")
    for each in there:
        spec = mapping(each.get("spec"))
        names = mapping(spec.get("names"))
        if each["kind"] != _DEFINITION or spec.get("group") != group:
            continue
        for known in spec.get("versions") or () if names.get("kind") == selector.kind else ():
            if mapping(known).get("name") == version:
                return {**mapping(mapping(known.get("schema")).get("openAPIV3Schema"))}
    return {}


def _fits(selector: ResourceSelector, obj: ReadOnlyObject) -> bool:
    if (obj["apiVersion"], obj["kind"]) != (selector.api_version, selector.kind):
        return False
    metadata = mapping(obj.get("metadata"))
    namespace = metadata.get("namespace")
    if selector.namespace and namespace not in (None, "", selector.namespace):
        return False
    if selector.match_name:
        return bool(metadata.get("name") == selector.match_name)
    labels = mapping(metadata.get("labels"))
    return {*(selector.match_labels or {}).items()} <= {*labels.items()}


def _name(obj: ReadOnlyObject) -> tuple[str, str]:
    metadata = mapping(obj.get("metadata"))
    return str(metadata.get("namespace") or ""), str(metadata.get("name") or "")
