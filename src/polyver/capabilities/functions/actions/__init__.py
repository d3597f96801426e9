"""Running actions, decided: how far each is, what comes next, and what its templates see."""

from polyver.capabilities.functions.actions._machine import (
    Await,
    Call,
    Conclude,
    Effect,
    Over,
    Recover,
    Stop,
    called,
    concluded,
    decide,
    failed,
    interrupted,
    returned,
)
from polyver.capabilities.functions.actions._params import (
    Objects,
    params_of,
    render_arguments,
    render_artifacts,
    workload_params,
)
from polyver.capabilities.functions.actions._run import (
    ActionRun,
    PhaseRun,
    Run,
    State,
    read_run,
    status_of,
)
from polyver.capabilities.functions.actions._starting import Wanted, refused, start, wanted_of

__all__ = [
    "ActionRun",
    "Await",
    "Call",
    "Conclude",
    "Effect",
    "Objects",
    "Over",
    "PhaseRun",
    "Recover",
    "Run",
    "State",
    "Stop",
    "Wanted",
    "called",
    "concluded",
    "decide",
    "failed",
    "interrupted",
    "params_of",
    "read_run",
    "refused",
    "render_arguments",
    "render_artifacts",
    "returned",
    "start",
    "status_of",
    "wanted_of",
    "workload_params",
]
