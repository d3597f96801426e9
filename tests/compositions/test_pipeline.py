"""What a pipeline calls, looks for and tells, in which order, whatever functions answer."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.compositions.composing import bucket
from tests.compositions.running import (
    NODES,
    ONE,
    adding,
    applied,
    config,
    look,
    outcome_of,
    passing,
    play,
    resources,
    step,
    wanting,
)

from polyver.capability import Refusal
from polyver.compositions.calls.protocol import decode_request, encode_request
from polyver.compositions.decisions import Secret
from polyver.compositions.messages import (
    Condition,
    Request,
    Requirements,
    Resource,
    Response,
    ResponseMeta,
    Result,
    Severity,
    State,
    Status,
)
from polyver.compositions.pipeline import (
    MOST_ROUNDS,
    CallStep,
    Done,
    Fetch,
    FoundRequirements,
    PipelineRun,
    answered,
    conclude,
    decide,
    failed,
    fetched,
    secrets_of,
    start,
)

Object = dict[str, Any]

# Calls.


def test_each_step_gets_what_the_steps_before_it_want_and_its_own_input() -> None:
    seen: list[Request] = []

    def first(request: Request) -> Response:
        seen.append(request)
        return passing(request, desired=wanting(a=config("a")), context={"k": 1})

    def second(request: Request) -> Response:
        seen.append(request)
        return adding("b", config("b"))(request)

    steps = step("first", input={"kind": "Input", "n": 1}), step("second")
    observed = State(Resource(bucket(size=3), {"password": b"x"}))
    run, effects = play(start(observed, steps), {"first": first, "second": second})
    assert [each.step.revision for each in effects] == [each.revision for each in steps]
    assert [each.observed for each in seen] == [observed, observed]
    assert (seen[0].input, seen[1].input) == ({"kind": "Input", "n": 1}, None)
    assert (seen[0].desired, seen[0].context) == (State(), {})
    assert (seen[1].desired, seen[1].context) == (wanting(a=config("a")), {"k": 1})
    assert applied(conclude(run)) == [("a", "a"), ("b", "b")]
    assert conclude(run).context == {"k": 1}


def test_the_same_request_has_the_same_tag_and_goes_over_the_wire() -> None:
    run = start(State(Resource(bucket(size=3), {"password": b"x"})), (step(),))
    first, again = decide(run), decide(run)
    other = decide(start(State(Resource(bucket(size=4))), (step(),)))
    assert isinstance(first, CallStep)
    assert isinstance(other, CallStep)
    assert first == again
    assert first.request.meta.tag not in ("", other.request.meta.tag)
    assert decode_request(encode_request(first.request)) == first.request


def test_a_fatal_result_ends_the_pipeline_and_what_was_told_before_is_kept() -> None:
    def fatal(request: Request) -> Response:
        results = (
            Result(Severity.NORMAL, "looked", reason="Looked"),
            Result(Severity.FATAL, "no region"),
            Result(Severity.WARNING, "never told"),
        )
        told = (Condition("DatabaseReady", Status.FALSE, "NoRegion"),)
        return passing(request, results=results, conditions=told)

    found = outcome_of(adding("a", config("a")), fatal, _never)
    assert found.failure is not None
    assert found.failure.reason == "FatalResult"
    assert found.failure.message.endswith("fatal: no region")
    assert (found.apply, found.remove, found.references) == ((), (), ())
    assert [(each.type, each.reason) for each in found.events] == [
        ("Normal", "Looked"),
        ("Warning", "FatalResult"),
    ]
    assert [each.type for each in found.conditions] == ["DatabaseReady"]


def _never(_: Request) -> Response:
    raise AssertionError("it is called")


def test_results_become_events_and_conditions_of_the_system_are_refused() -> None:
    def tells(request: Request) -> Response:
        results = (
            Result(Severity.WARNING, "small", reason="Small"),
            Result(Severity.NORMAL, "fine"),
            Result(Severity.UNSPECIFIED, "odd"),
        )
        conditions = (
            Condition("Ready", Status.TRUE, "Mine"),
            Condition("Queued", Status.UNSPECIFIED, "Waiting", "soon"),
        )
        return passing(request, results=results, conditions=conditions)

    found = outcome_of(tells)
    assert [(each.type, each.reason, each.message) for each in found.events] == [
        ("Warning", "Small", 'pipeline step "s0": small'),
        ("Normal", "ComposeResources", 'pipeline step "s0": fine'),
        ("Warning", "ComposeResources", 'pipeline step "s0" (a result of unknown severity): odd'),
        (
            "Warning",
            "ComposeResources",
            'pipeline step "s0": functions cannot set the condition Ready',
        ),
    ]
    [told] = found.conditions
    assert (told.type, told.status, told.message) == ("Queued", "Unknown", "soon")


def test_the_shortest_time_that_a_function_names_holds() -> None:
    functions = [
        lambda request, ttl=ttl: passing(request, meta=ResponseMeta(ttl=ttl))
        for ttl in (60.0, None, 15.0, 0.0)
    ]
    assert outcome_of(*functions).ttl == 15.0


def test_a_call_that_fails_ends_the_pipeline() -> None:
    run = start(State(Resource(bucket())), (step(), step("next")))
    run = failed(run, 0, "DeadlineExceeded", "there was no answer in 10 s")
    assert decide(run) == Done()
    found = conclude(run).failure
    assert found is not None
    assert found.reason == "DeadlineExceeded"
    assert found.message == (
        'pipeline step "run" (function-run-0123456789ab): there was no answer in 10 s'
    )


def test_credentials_are_read_before_and_a_missing_secret_is_an_error() -> None:
    secret = Secret("vault", "token")
    steps = (step(credentials={"api": secret}), step("next"))
    assert secrets_of(steps) == {secret}
    run = start(State(Resource(bucket())), steps, {secret: {"token": b"x"}})
    effect = decide(run)
    assert isinstance(effect, CallStep)
    assert effect.request.credentials == {"api": {"token": b"x"}}
    run = answered(run, 0, Response())
    effect = decide(run)
    assert isinstance(effect, CallStep)
    assert effect.request.credentials == {}
    with pytest.raises(Refusal, match="there is no secret vault/token"):
        start(State(Resource(bucket())), steps)


# Requirements.


def test_a_function_is_called_again_with_what_it_asked_for() -> None:
    def asks(request: Request) -> Response:
        wanted = Requirements(resources={"nodes": NODES}, extra_resources={"old": ONE})
        there = request.required_resources.get("nodes", ())
        desired = wanting(a=config("a", nodes=str(len(there))))
        return passing(request, requirements=wanted, desired=desired, context={"seen": True})

    run, effects = play(
        start(State(Resource(bucket())), (step(), step("next"))),
        {"run": asks, "next": passing},
        look,
    )
    assert [type(each).__name__ for each in effects] == [
        "CallStep",
        "Fetch",
        "CallStep",
        "CallStep",
    ]
    second, last = effects[2], effects[3]
    assert isinstance(second, CallStep)
    assert isinstance(last, CallStep)
    assert second.request.extra_resources == {"old": (Resource({"kind": "ConfigMap"}),)}
    assert second.request.context == {"seen": True}
    assert (last.request.required_resources, last.request.extra_resources) == ({}, {})
    assert conclude(run).apply[0].obj["data"] == {"nodes": "1"}


def test_what_a_step_requires_is_there_from_the_first_call() -> None:
    def asks(request: Request) -> Response:
        assert "given" in request.required_resources
        return passing(request, requirements=Requirements(resources={"nodes": NODES}))

    run = start(State(Resource(bucket())), (step(requirements={"given": ONE}),))
    run, effects = play(run, {"run": asks}, look)
    assert [type(each).__name__ for each in effects] == ["Fetch", "CallStep", "Fetch", "CallStep"]
    last = effects[-1]
    assert isinstance(last, CallStep)
    assert last.request.required_resources.keys() == {"given", "nodes"}
    assert conclude(run).failure is None


def test_requirements_that_are_others_each_time_end_the_pipeline() -> None:
    calls: list[int] = []

    def restless(request: Request) -> Response:
        calls.append(len(calls))
        wanted = Requirements(resources={f"r{len(calls)}": NODES})
        return passing(request, requirements=wanted)

    run, _ = play(start(State(Resource(bucket())), (step(),)), {"run": restless}, look)
    assert len(calls) == MOST_ROUNDS + 1
    found = conclude(run).failure
    assert found is not None
    assert found.reason == "UnstableRequirements"


# Whatever functions answer.

requirements = st.sampled_from(
    [Requirements(), Requirements(resources={"n": NODES}), Requirements(extra_resources={"o": ONE})]
)
answers = st.builds(
    lambda desired, wanted, severity: Response(
        desired=State(resources=desired),
        requirements=wanted,
        results=(Result(severity, "told"),),
    ),
    resources,
    requirements,
    st.sampled_from([Severity.NORMAL, Severity.WARNING, Severity.FATAL]),
)
Scripts = list[list[Response]]
Given = Callable[[PipelineRun], PipelineRun]
scripts = st.lists(st.lists(answers, min_size=1, max_size=4), max_size=3)


def _answer(number: int, answer: Response, run: PipelineRun) -> PipelineRun:
    return answered(run, number, answer)


def _find(number: int, found: FoundRequirements, run: PipelineRun) -> PipelineRun:
    return fetched(run, number, found)


def recorded(script: Scripts) -> tuple[list[PipelineRun], list[Given], list[CallStep | Fetch]]:
    """A run in which functions answer one thing after the other: states, results, effects."""
    steps = tuple(step(f"s{number}") for number in range(len(script)))
    left = {
        each.name: iter([*answers_, *[answers_[-1]] * 9])
        for each, answers_ in zip(steps, script, strict=True)
    }
    states = [start(State(Resource(bucket())), steps)]
    results: list[Given] = []
    effects: list[CallStep | Fetch] = []
    while not isinstance(effect := decide(states[-1]), Done):
        effects.append(effect)
        if isinstance(effect, CallStep):
            results.append(partial(_answer, effect.number, next(left[effect.step.name])))
        else:
            results.append(partial(_find, effect.number, look(effect)))
        states.append(results[-1](states[-1]))
    return states, results, effects


@given(scripts)
@settings(max_examples=80, deadline=None)
def test_the_same_results_give_the_same_effects_and_no_step_changes_its_revision(
    script: Scripts,
) -> None:
    states, results, effects = recorded(script)
    run = states[0]
    for result, effect in zip(results, effects, strict=True):
        assert decide(run) == effect
        run = result(run)
    assert run == states[-1]
    assert conclude(run) == conclude(states[-1])
    assert all(each.steps is states[0].steps for each in states)


@given(scripts, st.data())
@settings(max_examples=80, deadline=None)
def test_a_result_that_is_given_twice_changes_nothing(script: Scripts, data: st.DataObject) -> None:
    states, results, _ = recorded(script)
    for place, state in enumerate(states[1:]):
        again = data.draw(st.integers(0, place))
        assert results[again](state) == state
        assert failed(state, again, "Failed", "late") == state
