"""The action as a state machine: whatever crashes, each phase is done once, in order."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.functions.samples import blueprint as written
from tests.functions.samples import known

from polyver.core import PolyverError
from polyver.functions.actions import (
    ActionEnded,
    ActionRun,
    ActionSetRun,
    AwaitCall,
    ConcludeAction,
    Objects,
    PhaseRun,
    RecoverCall,
    RunState,
    StartCall,
    StopCall,
    called,
    concluded,
    decide,
    failed,
    interrupted,
    params_of,
    read_run,
    render_arguments,
    render_artifacts,
    returned,
    start,
    status_of,
    wanted_of,
    workload_params,
)

NOW = "2026-01-02T03:04:05Z"


@dataclass
class World:
    """A store that survives, and processes that do not."""

    idempotent: list[bool]
    outcomes: list[bool]
    crashes: Iterator[bool]
    cancels: Iterator[bool]
    stored: ActionRun
    calls: list[int] = field(default_factory=list)
    alive: int | None = None
    cancelled: str = ""

    def store(self, action: ActionRun) -> None:
        """As a server keeps it: the status, and nothing else."""
        found = read_run({"status": status_of(ActionSetRun((action,)), now=NOW)})
        assert found is not None
        [self.stored] = found.actions

    def crashed(self) -> bool:
        if not next(self.crashes, False):
            return False
        self.alive = None
        return True

    def begin(self, place: int) -> None:
        if self.crashed():
            return
        self.store(called(self.stored, place))
        if self.crashed():
            return
        assert self.stored.calls[place].state is RunState.RUNNING
        self.calls.append(place)
        self.alive = place

    def finish(self, place: int) -> None:
        ended = (
            returned(self.stored, place, {"n": place})
            if self.outcomes[place]
            else failed(self.stored, place, "it failed")
        )
        if not self.crashed():
            self.store(ended)
            self.alive = None

    def recover(self, place: int) -> None:
        if self.idempotent[place]:
            self.begin(place)
        elif not self.crashed():
            self.store(interrupted(self.stored, place, "F v0.0.0"))

    def step(self) -> bool:
        match decide(self.stored, alive=self.alive, cancelled=self.cancelled):
            case StartCall(place=place):
                self.begin(place)
            case AwaitCall(place=place):
                assert self.alive == place
                if not self.crashed():
                    self.finish(place)
            case StopCall(place=place, reason=reason):
                if not self.crashed():
                    self.store(failed(self.stored, place, reason))
                    self.alive = None
            case RecoverCall(place=place):
                self.recover(place)
            case ConcludeAction():
                if not self.crashed():
                    self.store(concluded(self.stored, {}, cancelled=self.cancelled))
            case ActionEnded():
                return False
        return True


@st.composite
def worlds(draw: st.DrawFn) -> World:
    count = draw(st.integers(0, 5))
    has_deferred = draw(st.booleans())
    flags = st.lists(st.booleans(), min_size=count + 1, max_size=count + 1)
    action = ActionRun(
        "go",
        "bp",
        tuple(PhaseRun(f"p{number}", "v0.0.0") for number in range(count)),
        PhaseRun("last", "v0.0.0") if has_deferred else None,
    )
    chance = st.lists(st.booleans(), max_size=30)
    return World(draw(flags), draw(flags), iter(draw(chance)), iter(draw(chance)), action)


@given(worlds())
def test_any_crashes_leave_phases_in_order_done_once_and_the_deferred_one_last(
    world: World,
) -> None:
    first_calls: list[int] = []
    for _ in range(200):
        complete = {n for n, c in enumerate(world.stored.calls) if c.state is RunState.COMPLETE}
        before = len(world.calls)
        if next(world.cancels, False):
            world.cancelled = "" if world.cancelled else "somebody cancelled it"
        goes_on = world.step()
        for place in world.calls[before:]:
            assert place not in complete
            assert world.stored.is_deferred(place) or complete >= set(range(place))
            first_calls += [] if place in first_calls else [place]
        if not goes_on:
            break
    end = world.stored
    assert end.state.is_over
    assert first_calls == sorted(first_calls)
    for place in range(len(end.calls)):
        assert world.calls.count(place) <= 1 or world.idempotent[place]
    if end.deferred is not None:
        assert end.deferred.state.is_over
        assert end.last not in world.calls or world.calls[-1] == end.last
    assert (end.state is RunState.COMPLETE) == all(c.state is RunState.COMPLETE for c in end.calls)
    assert bool(end.error) == (end.state is RunState.FAILED)
    for place in range(len(end.calls)):
        assert returned(end, place, {}) == end
        assert failed(end, place, "too late") == end


# The start.

BLUEPRINT = """\
actions:
  go:
    inputArtifactNames: [dump]
    outputArtifacts:
      made: {keyValue: {path: "{{ .Phases.one.Output.path }}"}}
      known: {keyValue: {day: "{{ .Options.day }}"}}
    phases:
    - {func: Report, funcVersion: v0.0.0, name: one, args: {text: "{{ .Options.day }}"}}
    - {func: Report, name: two, args: {text: "{{ .ArtifactsOut.known.KeyValue.day }}"}}
    deferPhase: {func: Plain, args: {text: "{{ .Time }}"}}
"""


def action_set(**action: Any) -> dict[str, Any]:
    spec = {"name": "go", "blueprint": "times", "artifacts": {"dump": {"keyValue": {"a": "b"}}}}
    return {"spec": {"actions": [{**spec, "options": {"day": "monday"}, **action}]}}


def started(text: str = BLUEPRINT, /, **action: Any) -> ActionSetRun:
    found = {"times": written(text)}
    return start(wanted_of(action_set(**action)), found.get, known(), time=NOW)


def test_versions_and_reasons_are_recorded_and_deprecation_is_warned_of() -> None:
    run = started()
    [action] = run.actions
    assert [(each.name, each.version, each.reason) for each in action.calls] == [
        ("one", "v0.0.0", "exact version"),
        ("two", "v0.1.0", "stable version"),
        ("", "v0.0.0", "stable version"),
    ]
    assert run.state is RunState.PENDING
    assert run.warnings == (
        "blueprint kanister/times, action go, phase one: Report v0.0.0 is deprecated since 0.2.0 "
        "and will be removed in 0.4.0; use v0.1.0",
    )
    assert read_run({"status": status_of(run, now=NOW)}) == run


@pytest.mark.parametrize(
    ("action", "told"),
    [
        ({"blueprint": "tims"}, "there is no blueprint tims (spec.actions[0].blueprint)"),
        ({"name": "stop"}, "blueprint kanister/times has no action stop (spec.actions[0].name)"),
        ({"artifacts": {}}, "action go of blueprint times needs dump (spec.actions[0].artifacts)"),
        ({"preferredVersion": "new"}, "spec.actions[0].preferredVersion"),
    ],
)
def test_what_cannot_start_fails_at_once_and_says_why(action: Any, told: str) -> None:
    run = started(**action)
    assert run.state is RunState.FAILED
    assert told in run.error
    assert status_of(run, now=NOW)["error"]["message"] == run.error
    assert read_run({"status": status_of(run, now=NOW)}) == run


def test_a_removed_version_and_an_unknown_one_are_told_together() -> None:
    text = BLUEPRINT.replace("funcVersion: v0.0.0", "funcVersion: v0.0.9")
    run = started(text.replace("name: two", "name: two, funcVersion: v7"))
    assert "phase one: Report v0.0.9 was removed in 0.3.0" in run.error
    assert "use v0.1.0" in run.error
    assert "phase two: Report has no 7.0.0" in run.error


def test_a_profile_is_said_to_be_of_no_use() -> None:
    run = started(profile={"name": "s3"})
    assert run.warnings[-1] == "spec.actions[0].profile is ignored: Profiles are not supported"


# What templates see.


def rendered(action: ActionRun, place: int, objects: Objects | None = None) -> Any:
    function = known().get("Report").code
    params = params_of(action, objects or Objects())
    return render_arguments(action, place, next(iter(function.values())), params)


def test_outputs_options_time_and_artifacts_are_there_for_templates() -> None:
    [action] = started().actions
    assert rendered(action, 0) == {"text": "monday"}
    assert rendered(action, 1) == {"text": "monday"}
    assert rendered(action, 2) == {"text": NOW}
    action = returned(called(action, 0), 0, {"path": "/x"})
    artifacts = render_artifacts(action, params_of(action, Objects()))
    makers = [{"name": "Report", "version": version} for version in ("v0.0.0", "v0.1.0")]
    assert artifacts == {
        "made": {"keyValue": {"path": "/x"}, "functions": makers},
        "known": {"keyValue": {"day": "monday"}, "functions": makers},
    }


def text_of(template: str, objects: Objects | None = None, **workload: Any) -> Any:
    blueprint = (
        f"actions: {{go: {{phases: [{{func: Report, name: one, args: {{text: '{template}'}}}}]}}}}"
    )
    [action] = started(blueprint).actions
    snapshot = {**action.snapshot, "workload": workload}
    action = ActionRun(action.name, action.blueprint, action.phases, snapshot=snapshot)
    return rendered(action, 0, objects)["text"]


def test_objects_are_called_what_kanister_calls_them() -> None:
    secret = {"kind": "Secret", "metadata": {"name": "s"}, "data": {"user": "YW5u", "raw": "/w=="}}
    settings = {"kind": "ConfigMap", "metadata": {"name": "c"}, "data": {"path": "/a"}}
    objects = Objects({"kind": "X", "spec": {"n": 3}}, {"c": settings}, {"s": secret})
    assert text_of("{{ .Secrets.s.Data.user | toString }}", objects) == "ann"
    assert text_of("{{ .ConfigMaps.c.Data.path }}{{ .ConfigMaps.c.Name }}", objects) == "/ac"
    assert text_of("{{ .Object.spec.n }}", objects) == "3"
    held = Objects(of_phases={"one": {"db": secret}})
    assert text_of('{{ index .Phases.one.Secrets.db.Data "user" }}', held) == "ann"
    with pytest.raises(PolyverError, match='no entry for key "raw"'):
        text_of("{{ .Secrets.s.Data.raw }}", objects)


def test_a_workload_tells_its_pods_containers_and_claims() -> None:
    pod = {
        "metadata": {"name": "db-0"},
        "spec": {
            "containers": [{"name": "c", "volumeMounts": [{"name": "v", "mountPath": "/data"}]}],
            "volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "claim"}}],
        },
    }
    obj = {"metadata": {"name": "db", "namespace": "shop"}}
    found = workload_params("StatefulSet", obj, [pod])
    text = "{{ index .StatefulSet.Pods 0 }} {{ index .StatefulSet.Containers 0 0 }} "
    text += '{{ index .StatefulSet.PersistentVolumeClaims "db-0" "claim" }}'
    assert text_of(text, **found) == "db-0 c /data"
    assert workload_params("PersistentVolumeClaim", obj, []) == {
        "PVC": {"Name": "db", "Namespace": "shop"}
    }


def test_a_field_that_is_not_there_is_an_error_with_its_place() -> None:
    with pytest.raises(PolyverError) as raised:
        text_of("{{ .Options.dya }}")
    assert "actions.go.phases[0].args.text:1:" in str(raised.value)
    assert "did you mean day?" in str(raised.value)
    with pytest.raises(PolyverError, match="Profiles are not supported"):
        text_of("{{ .Profile.Location.Bucket }}")


def test_a_template_that_cannot_be_read_stops_the_action_before_its_first_phase() -> None:
    run = started(BLUEPRINT.replace(".Options.day }}", ".Options.day | uper }}"))
    assert 'function "uper" not defined (actions.go.phases[0].args.text)' in run.error
    assert run.state is RunState.FAILED
