"""Pipelines run by hand: functions are plain Python, everything else is the real thing."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from hypothesis import strategies as st
from tests.compositions.composing import bucket

from polyver.compositions.decisions import ResolvedStep
from polyver.compositions.messages import (
    Ready,
    Request,
    Resource,
    ResourceSelector,
    Response,
    State,
)
from polyver.compositions.pipeline import (
    CallStep,
    Done,
    Fetch,
    FoundRequirements,
    PipelineOutcome,
    PipelineRun,
    answered,
    conclude,
    decide,
    fetched,
    observe,
    start,
)

Object = dict[str, Any]
Function = Callable[[Request], Response]


def step(name: str = "run", **more: Any) -> ResolvedStep:
    return ResolvedStep(
        name, f"function-{name}", f"function-{name}-0123456789ab", "sha256:0", **more
    )


def config(
    name: str = "", *, namespace: str = "shop", kind: str = "ConfigMap", **data: str
) -> Object:
    metadata = {"namespace": namespace} | ({"name": name} if name else {})
    return {"apiVersion": "v1", "kind": kind, "metadata": metadata, "data": data}


def wanting(**resources: Object) -> State:
    return State(resources={name: Resource(obj) for name, obj in resources.items()})


def adding(name: str, obj: Object, *, ready: Ready = Ready.UNSPECIFIED) -> Function:
    """A function that wants one more resource."""

    def run(request: Request) -> Response:
        resources = {**request.desired.resources, name: Resource(obj, ready=ready)}
        return passing(request, desired=replace(request.desired, resources=resources))

    return run


def passing(request: Request, **more: Any) -> Response:
    """What a function that has nothing to add answers."""
    return Response(**{"desired": request.desired, "context": request.context, **more})


def play(
    run: PipelineRun,
    functions: Mapping[str, Function],
    found: Callable[[Fetch], FoundRequirements] | None = None,
) -> tuple[PipelineRun, list[CallStep | Fetch]]:
    """Do what is to be done until nothing is left."""
    effects: list[CallStep | Fetch] = []
    while not isinstance(effect := decide(run), Done):
        effects.append(effect)
        assert len(effects) < 50
        if isinstance(effect, CallStep):
            run = answered(run, effect.number, functions[effect.step.name](effect.request))
        else:
            assert found is not None
            run = fetched(run, effect.number, found(effect))
    return run, effects


def outcome_of(
    *functions: Function, observed: Mapping[str, Resource] | None = None, obj: Object | None = None
) -> PipelineOutcome:
    steps = tuple(step(f"s{number}") for number in range(len(functions)))
    there = State(Resource(obj or bucket(size=3)), observed or {})
    run, _ = play(start(there, steps), dict(zip([s.name for s in steps], functions, strict=True)))
    return conclude(run)


def applied(outcome: PipelineOutcome) -> list[tuple[str, str]]:
    return [(each.name, each.obj["metadata"]["name"]) for each in outcome.apply]


def as_observed(outcome: PipelineOutcome) -> dict[str, Resource]:
    """What a server has once an outcome was applied."""
    found: list[tuple[Object, Mapping[str, bytes]]] = []
    for number, each in enumerate(outcome.apply):
        obj = copy.deepcopy(each.obj)
        obj["metadata"] |= {"uid": f"uid-{number}", "resourceVersion": "7", "generation": 1}
        found.append((obj, {}))
    return observe(bucket(), found)


NODES = ResourceSelector("v1", "Node", match_labels={"zone": "a"})
ONE = ResourceSelector("v1", "ConfigMap", match_name="settings", namespace="shop")


def look(fetch: Fetch) -> FoundRequirements:
    def named(selectors: Mapping[str, ResourceSelector]) -> dict[str, tuple[Resource, ...]]:
        return {name: (Resource({"kind": each.kind}),) for name, each in selectors.items()}

    wanted = fetch.requirements
    schemas = {name: {"type": "object"} for name in wanted.schemas}
    return FoundRequirements(named(wanted.resources), named(wanted.extra_resources), schemas)


resources = st.dictionaries(
    st.sampled_from(["a", "b", "c"]),
    st.builds(
        lambda kind, size, ready: Resource(config(kind=kind, size=size), ready=ready),
        st.sampled_from(["ConfigMap", "Secret"]),
        st.sampled_from(["1", "2"]),
        st.sampled_from(Ready),
    ),
)
