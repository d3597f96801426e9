"""A pipeline run by hand: functions here are plain Python, everything else is the real thing."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.capabilities.revisions.composing import bucket, composite, definition

from polyver.calling.protocol import decode_request, encode_request
from polyver.capabilities import Refusal
from polyver.capabilities.revisions.compositions import Secret, Step, read_definition
from polyver.capabilities.revisions.messages import (
    Condition,
    Ready,
    Request,
    Requirements,
    Resource,
    ResourceSelector,
    Response,
    ResponseMeta,
    Result,
    Severity,
    State,
    Status,
)
from polyver.capabilities.revisions.names import COMPOSITE, RESOURCE, composed_name
from polyver.capabilities.revisions.pipeline import (
    MOST_ROUNDS,
    Call,
    Done,
    Fetch,
    Found,
    Outcome,
    Run,
    answered,
    composite_conditions,
    conclude,
    connection_secret,
    decide,
    failed,
    fetched,
    observe,
    published_details,
    published_to,
    refused,
    secrets_of,
    start,
)

Object = dict[str, Any]
Function = Callable[[Request], Response]
NOW = "2026-01-01T00:00:00Z"


def step(name: str = "run", **more: Any) -> Step:
    return Step(name, f"function-{name}", f"function-{name}-0123456789ab", "sha256:0", **more)


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
    run: Run, functions: Mapping[str, Function], found: Callable[[Fetch], Found] | None = None
) -> tuple[Run, list[Call | Fetch]]:
    """Do what is to be done until nothing is left."""
    effects: list[Call | Fetch] = []
    while not isinstance(effect := decide(run), Done):
        effects.append(effect)
        assert len(effects) < 50
        if isinstance(effect, Call):
            run = answered(run, effect.number, functions[effect.step.name](effect.request))
        else:
            assert found is not None
            run = fetched(run, effect.number, found(effect))
    return run, effects


def outcome_of(
    *functions: Function, observed: Mapping[str, Resource] | None = None, obj: Object | None = None
) -> Outcome:
    steps = tuple(step(f"s{number}") for number in range(len(functions)))
    there = State(Resource(obj or bucket(size=3)), observed or {})
    run, _ = play(start(there, steps), dict(zip([s.name for s in steps], functions, strict=True)))
    return conclude(run)


def applied(outcome: Outcome) -> list[tuple[str, str]]:
    return [(each.name, each.obj["metadata"]["name"]) for each in outcome.apply]


def as_observed(outcome: Outcome) -> dict[str, Resource]:
    """What a server has once an outcome was applied."""
    found: list[tuple[Object, Mapping[str, bytes]]] = []
    for number, each in enumerate(outcome.apply):
        obj = copy.deepcopy(each.obj)
        obj["metadata"] |= {"uid": f"uid-{number}", "resourceVersion": "7", "generation": 1}
        found.append((obj, {}))
    return observe(bucket(), found)


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
    assert isinstance(first, Call)
    assert isinstance(other, Call)
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
            'pipeline step "s0": the condition Ready is not for functions',
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
    assert isinstance(effect, Call)
    assert effect.request.credentials == {"api": {"token": b"x"}}
    run = answered(run, 0, Response())
    effect = decide(run)
    assert isinstance(effect, Call)
    assert effect.request.credentials == {}
    with pytest.raises(Refusal, match="there is no secret vault/token"):
        start(State(Resource(bucket())), steps)


# Requirements.

NODES = ResourceSelector("v1", "Node", match_labels={"zone": "a"})
ONE = ResourceSelector("v1", "ConfigMap", match_name="settings", namespace="shop")


def look(fetch: Fetch) -> Found:
    def named(selectors: Mapping[str, ResourceSelector]) -> dict[str, tuple[Resource, ...]]:
        return {name: (Resource({"kind": each.kind}),) for name, each in selectors.items()}

    wanted = fetch.requirements
    schemas = {name: {"type": "object"} for name in wanted.schemas}
    return Found(named(wanted.resources), named(wanted.extra_resources), schemas)


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
    assert [type(each).__name__ for each in effects] == ["Call", "Fetch", "Call", "Call"]
    second, last = effects[2], effects[3]
    assert isinstance(second, Call)
    assert isinstance(last, Call)
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
    assert [type(each).__name__ for each in effects] == ["Fetch", "Call", "Fetch", "Call"]
    last = effects[-1]
    assert isinstance(last, Call)
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


# What is composed.


def test_a_composed_resource_is_named_labelled_and_owned() -> None:
    [made] = outcome_of(adding("settings", config(size="3"))).apply
    metadata = made.obj["metadata"]
    assert metadata["name"] == composed_name("my-bucket", "7d3a", "settings")
    assert metadata["labels"] == {COMPOSITE: "my-bucket"}
    assert metadata["annotations"] == {RESOURCE: "settings"}
    assert metadata["ownerReferences"] == [
        {
            "apiVersion": "custom-api.example.org/v1alpha1",
            "kind": "AcmeBucket",
            "name": "my-bucket",
            "uid": "7d3a",
            "controller": True,
            "blockOwnerDeletion": True,
        }
    ]
    assert not made.exists


def test_what_a_composite_resource_is_composed_of_is_named_after_the_outermost() -> None:
    inner = bucket(labels={COMPOSITE: "whole-shop"})
    [made] = outcome_of(adding("a", config()), obj=inner).apply
    assert made.obj["metadata"]["name"].startswith("whole-shop-")
    assert made.obj["metadata"]["labels"] == {COMPOSITE: "whole-shop"}


def test_names_fit_where_names_and_labels_must() -> None:
    name = composed_name("x" * 49 + "-" * 5 + "y" * 200, "u", "r")
    assert len(name) <= 63
    assert "--" not in name


def test_what_exists_keeps_its_name_and_what_the_server_owns_is_left_out() -> None:
    there = config("older-name", size="3")
    there["metadata"] |= {"annotations": {RESOURCE: "a"}, "uid": "u1", "managedFields": [{}]}
    observed = observe(bucket(), [(there, {})])
    [made] = outcome_of(
        adding("a", {**there, "metadata": {**there["metadata"], "name": "new"}}), observed=observed
    ).apply
    assert (made.obj["metadata"]["name"], made.exists) == ("older-name", True)
    assert not made.obj["metadata"].keys() & {"uid", "managedFields"}


def test_what_is_wanted_no_longer_is_removed_and_what_is_wanted_is_referred_to() -> None:
    before = outcome_of(adding("a", config()), adding("b", config()))
    found = outcome_of(adding("b", config()), adding("c", config()), observed=as_observed(before))
    assert [each.name for each in found.remove] == ["a"]
    assert [name for name, _ in applied(found)] == ["b", "c"]
    assert dict(applied(before))["b"] == dict(applied(found))["b"]
    assert found.references == tuple(
        sorted(
            (
                {"apiVersion": "v1", "kind": "ConfigMap", "namespace": "shop", "name": name}
                for _, name in applied(found)
            ),
            key=lambda each: each["name"],
        )
    )


def test_a_resource_of_another_kind_takes_the_place_of_the_old_one() -> None:
    before = outcome_of(adding("a", config("x")))
    found = outcome_of(adding("a", config("x", kind="Secret")), observed=as_observed(before))
    assert [each.obj["kind"] for each in found.apply] == ["Secret"]
    assert [each.obj["kind"] for each in found.remove] == ["ConfigMap"]


def test_what_somebody_else_controls_is_not_observed() -> None:
    obj = config("x")
    obj["metadata"] |= {
        "annotations": {RESOURCE: "a"},
        "ownerReferences": [{"uid": "other", "controller": True}],
    }
    assert observe(bucket(), [(obj, {})]) == {}
    del obj["metadata"]["ownerReferences"]
    assert observe(bucket(), [(obj, {"k": b"v"})])["a"].connection_details == {"k": b"v"}
    del obj["metadata"]["annotations"]
    with pytest.raises(Refusal, match="ConfigMap shop/x does not say"):
        observe(bucket(), [(obj, {})])


CONTROLLED = {**config("x"), "metadata": {"ownerReferences": [{"uid": "o", "controller": True}]}}


@pytest.mark.parametrize(
    ("resources", "told"),
    [
        ({"": config("x")}, "a desired resource has no name in the pipeline"),
        ({"a": {}}, 'the desired resource "a" is no object: it has no apiVersion'),
        ({"a": {"apiVersion": "v1", "kind": 3}}, "it has no kind (kind)"),
        ({"a": {**config(), "metadata": "x"}}, "it is no mapping (metadata)"),
        ({"a": {**config(), "metadata": {"labels": []}, "x": 1}}, None),
        ({"a": {**config(), "metadata": {"labels": ["x"]}}}, "no mapping (metadata.labels)"),
        ({"a": {**config(), "metadata": {"name": 3}}}, "it is no text (metadata.name)"),
        ({"a": {**config(), "metadata": {"ownerReferences": ["x"]}}}, "no list of mappings"),
        ({"a": CONTROLLED}, '"a" has another controller'),
        ({"a": config("x"), "b": config("x")}, '"b" is the same object as "a": ConfigMap shop/x'),
        ({"a": bucket()}, '"a" is the same object as the composite resource itself'),
    ],
)
def test_what_cannot_be_applied_is_an_error_and_nothing_is_done(
    resources: Object, told: str | None
) -> None:
    found = outcome_of(lambda request: passing(request, desired=wanting(**resources)))
    if told is None:
        assert found.failure is None
        return
    assert found.failure is not None
    assert found.failure.reason == "InvalidDesired"
    assert told in found.failure.message
    assert found.apply == ()


def test_what_a_composite_resource_in_a_namespace_is_composed_of_is_there_too() -> None:
    here = bucket(namespace="shop")
    plain: Object = {"apiVersion": "v1", "kind": "ConfigMap"}
    [made] = outcome_of(adding("a", plain), obj=here).apply
    assert made.obj["metadata"]["namespace"] == "shop"
    found = outcome_of(adding("a", config(namespace="other")), obj=here)
    assert found.failure is not None
    assert "in the namespace other" in found.failure.message


# What the composite resource says.


def test_it_is_ready_when_all_that_it_is_composed_of_is() -> None:
    assert outcome_of(passing).ready
    both = adding("a", config(), ready=Ready.TRUE), adding("b", config(), ready=Ready.UNSPECIFIED)
    found = outcome_of(*both)
    assert (found.ready, found.unready) == (False, ("b",))
    assert outcome_of(both[0]).ready


@pytest.mark.parametrize(("said", "ready"), [(Ready.TRUE, True), (Ready.FALSE, False)])
def test_what_a_function_says_of_the_whole_counts(said: Ready, ready: bool) -> None:
    other = Ready.FALSE if ready else Ready.TRUE

    def says(request: Request) -> Response:
        composite_ = replace(request.desired.composite, ready=said)
        return passing(request, desired=replace(request.desired, composite=composite_))

    assert outcome_of(adding("a", config(), ready=other), says).ready is ready


def test_the_status_has_what_functions_want_and_which_revisions_they_were() -> None:
    def says(request: Request) -> Response:
        status = {"url": "s3://x", "pipeline": "mine", "conditions": [{"type": "Ready"}]}
        whole = Resource({"spec": {"size": 9}, "status": status}, {"password": b"x", "user": b"y"})
        return passing(request, desired=State(whole))

    found = outcome_of(says, passing)
    assert found.status == {
        "url": "s3://x",
        "pipeline": [step("s0").record, step("s1").record],
    }
    assert found.status["pipeline"][0]["revision"] == "function-s0-0123456789ab"
    keys = read_definition(definition(connectionSecretKeys=["user"]))
    assert published_details(found, keys) == {"user": b"y"}
    assert published_details(found, read_definition(definition())).keys() == {"password", "user"}


def test_connection_details_are_published_where_somebody_says() -> None:
    revision: Object = {"spec": {"writeConnectionSecretsToNamespace": "secrets"}}
    reference = {"name": "mine", "namespace": "shop"}
    asked = composite(bucket(writeConnectionSecretToRef=reference))
    assert published_to(asked, revision) == Secret("shop", "mine")
    assert published_to(composite(), revision) == Secret("secrets", "7d3a")
    assert published_to(composite(), {"spec": {}}) is None
    assert connection_secret(bucket()) is None


def conditions(found: Outcome, before: Object | None = None, **more: Any) -> Object:
    obj = {**bucket(), "status": {"conditions": [*(before or {}).values()]}}
    return {each["type"]: each for each in composite_conditions(obj, found, now=NOW, **more)}


def test_conditions_say_whether_it_is_composed_and_ready() -> None:
    found = conditions(outcome_of(adding("b", config()), adding("a", config())))
    assert (found["Synced"]["status"], found["Synced"]["reason"]) == ("True", "ReconcileSuccess")
    assert (found["Ready"]["status"], found["Ready"]["message"]) == ("False", "not ready: a, b")
    again = conditions(outcome_of(adding("a", config(), ready=Ready.TRUE)), found)
    assert (again["Ready"]["status"], again["Ready"]["reason"]) == ("True", "Available")
    wrong = conditions(outcome_of(passing), unsynced=["b", "a"])
    assert (wrong["Synced"]["status"], wrong["Synced"]["message"]) == (
        "False",
        "not accepted: a, b",
    )


def test_a_failure_says_why_and_leaves_alone_whether_it_is_ready() -> None:
    def tells(request: Request) -> Response:
        return passing(request, conditions=(Condition("Queued", Status.TRUE, "Yes"),))

    before = conditions(outcome_of(tells))
    refusal = Refusal(
        "NoActiveRevision", "function a has no active revision", at="spec.pipeline[0]"
    )
    found = refused(refusal)
    after = conditions(found, before)
    assert (after["Synced"]["status"], after["Synced"]["reason"]) == ("False", "NoActiveRevision")
    assert after["Synced"]["message"] == "function a has no active revision (spec.pipeline[0])"
    assert after["Ready"] == before["Ready"]
    assert (after["Queued"]["status"], after["Queued"]["reason"]) == ("Unknown", "FatalError")
    assert [(each.type, each.reason) for each in found.events] == [("Warning", "NoActiveRevision")]


# Whatever functions answer.

resources = st.dictionaries(
    st.sampled_from(["a", "b", "c"]),
    st.builds(
        lambda kind, size, ready: Resource(config(kind=kind, size=size), ready=ready),
        st.sampled_from(["ConfigMap", "Secret"]),
        st.sampled_from(["1", "2"]),
        st.sampled_from(Ready),
    ),
)
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
Given = Callable[[Run], Run]
scripts = st.lists(st.lists(answers, min_size=1, max_size=4), max_size=3)


def _answer(number: int, answer: Response, run: Run) -> Run:
    return answered(run, number, answer)


def _find(number: int, found: Found, run: Run) -> Run:
    return fetched(run, number, found)


def recorded(script: Scripts) -> tuple[list[Run], list[Given], list[Call | Fetch]]:
    """A run in which functions answer one thing after the other: states, results, effects."""
    steps = tuple(step(f"s{number}") for number in range(len(script)))
    left = {
        each.name: iter([*answers_, *[answers_[-1]] * 9])
        for each, answers_ in zip(steps, script, strict=True)
    }
    states = [start(State(Resource(bucket())), steps)]
    results: list[Given] = []
    effects: list[Call | Fetch] = []
    while not isinstance(effect := decide(states[-1]), Done):
        effects.append(effect)
        if isinstance(effect, Call):
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


@given(resources, st.integers(1, 4))
@settings(max_examples=60, deadline=None)
def test_steps_that_pass_on_what_they_get_want_nothing_to_change(
    wanted: dict[str, Resource], length: int
) -> None:
    first = outcome_of(lambda request: passing(request, desired=State(resources=wanted)))
    observed = as_observed(first)
    same = {name: replace(each, ready=wanted[name].ready) for name, each in observed.items()}
    nothing = outcome_of(*[passing] * length)
    assert (nothing.apply, nothing.remove) == ((), ())
    found = outcome_of(
        lambda request: passing(request, desired=State(resources=same)),
        *[passing] * length,
        observed=observed,
    )
    assert found.remove == ()
    assert found.references == first.references
    assert [replace(each, exists=False) for each in found.apply] == [*first.apply]


scalars = st.sampled_from([None, True, 0, 1.5, "", "x", [], {}, ["x"], {"x": "y"}, [{}]])
metadata = st.dictionaries(
    st.sampled_from(
        ["name", "namespace", "labels", "annotations", "ownerReferences", "uid", "generateName"]
    ),
    scalars,
)
objects = st.fixed_dictionaries(
    {},
    optional={
        "apiVersion": st.one_of(st.just("v1"), scalars),
        "kind": st.one_of(st.just("ConfigMap"), scalars),
        "metadata": st.one_of(metadata, scalars),
        "status": scalars,
    },
)


@given(st.dictionaries(st.sampled_from(["", "a", "b"]), objects), objects)
@settings(max_examples=200, deadline=None)
def test_whatever_a_function_wants_is_done_or_refused_as_a_whole(
    wanted: dict[str, Object], whole: Object
) -> None:
    desired = State(Resource(whole), {name: Resource(obj) for name, obj in wanted.items()})
    found = outcome_of(lambda request: passing(request, desired=desired))
    if found.failure is not None:
        assert (found.apply, found.references, found.status) == ((), (), {})
        return
    assert {each.name for each in found.apply} == wanted.keys()
    for each in found.apply:
        about = each.obj["metadata"]
        assert about["name"]
        assert about["annotations"][RESOURCE] == each.name
        assert [own["uid"] for own in about["ownerReferences"] if own.get("controller")] == ["7d3a"]
