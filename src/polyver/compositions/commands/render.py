"""`polyver render`: renders a composite resource from files."""

from __future__ import annotations

import asyncio
import contextlib
import signal
from dataclasses import dataclass, replace
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import App, Parameter

from polyver.cli.exit_codes import Misused, RunFailed
from polyver.cli.files import data_folder
from polyver.cli.options import read_seconds
from polyver.cli.output import ManifestFormat, manifests_text, print_lines, warn
from polyver.compositions.settings import PackageSettings, read_memory_limit
from polyver.core.plain import Object

if TYPE_CHECKING:
    from collections.abc import Sequence

    from polyver.compositions.commands.rendering.function_calls import FunctionServer
    from polyver.compositions.commands.rendering.input_files import LocatedObject
    from polyver.compositions.commands.rendering.output import Included
    from polyver.compositions.decisions import Composite, Secret
    from polyver.compositions.messages import Requirements
    from polyver.compositions.pipeline import FoundRequirements, PipelineOutcome, PipelineRun

app = App(name="render")

Several = Annotated[list[str] | None, Parameter(negative=())]
Switch = Annotated[bool, Parameter(negative=())]


@app.default
def render(
    xr: str,
    composition: str,
    functions: str,
    /,
    *,
    revision: Several = None,
    xrd: str | None = None,
    observed_resources: str | None = None,
    required_resources: Annotated[
        list[str] | None, Parameter(name=["--required-resources", "-e"], negative=())
    ] = None,
    extra_resources: Several = None,
    function_credentials: str | None = None,
    context_files: Several = None,
    context_values: Several = None,
    function_annotations: Annotated[
        list[str] | None, Parameter(name=["--function-annotations", "-a"], negative=())
    ] = None,
    include_function_results: Annotated[
        bool, Parameter(name=["--include-function-results", "-r"], negative=())
    ] = False,
    include_full_xr: Annotated[
        bool, Parameter(name=["--include-full-xr", "-x"], negative=())
    ] = False,
    include_context: Annotated[
        bool, Parameter(name=["--include-context", "-c"], negative=())
    ] = False,
    packages: Path | None = None,
    allow_packages: Switch = False,
    package_memory: str | None = None,
    data: Path | None = None,
    timeout: str = "1m",
    output: Annotated[ManifestFormat, Parameter(name=["--output", "-o"])] = ManifestFormat.YAML,
) -> None:
    """Render a composite resource from files: print it and its composed resources.

    The command runs the pipeline of the Composition on this machine, in the same way as the
    controller does. It needs no cluster. polyver starts a process for each function whose package
    is allowed (see --packages). You can also start a function yourself. For polyver to call it
    instead of starting a process, its Function must have the annotation `polyver.dev/endpoint` with
    the address of the function, or the annotation `render.crossplane.io/runtime: Development`.

    Example: polyver render xr.yaml composition.yaml functions.yaml --packages packages.yaml

    Parameters
    ----------
    xr
        A file with the composite resource. '-' means standard input, here and for all other input
        files; only one of them can be '-'.
    composition
        A file or folder with the Composition or the CompositionRevision. If there are several,
        polyver uses the one that the composite resource selects.
    functions
        A file or folder with the Functions that the pipeline calls. It may also contain
        FunctionRevisions. If it contains a Function several times, with different packages, the
        function gets one revision for each package.
    revision
        FUNCTION=REVISION: call this revision of the function, even if the steps select another
        revision; repeatable. REVISION is the number of the revision, its whole name, or the part of
        its name after `FUNCTION-`.
    xrd
        A file with the CompositeResourceDefinition. polyver validates the composite resource by its
        schema, and sets the defaults that the schema defines.
    observed_resources
        A file or folder with composed resources that exist already. polyver passes them to the
        functions as the observed state. Each must have the annotation
        `crossplane.io/composition-resource-name`, with the name that the resource has in the
        pipeline; otherwise, the command warns.
    required_resources
        A file or folder with objects that functions may require; repeatable. If a function requires
        an object, polyver passes it to the function in another call.
    extra_resources
        The former name of the option --required-resources, with the same effect.
    function_credentials
        A file or folder with the Secrets that steps of the pipeline reference as credentials.
    context_files
        KEY=FILE: set KEY in the context of the pipeline, before the first step, to the content of a
        file in JSON or YAML; repeatable.
    context_values
        KEY=JSON: set KEY in the context of the pipeline, before the first step, to this value;
        repeatable.
    function_annotations
        KEY=VALUE: set this annotation on all Functions and FunctionRevisions; repeatable.
    include_function_results
        Also print the results (messages) of functions, as objects of kind Result.
    include_full_xr
        Also print the metadata and the spec of the composite resource.
    include_context
        Also print the context of the pipeline after the last step, as an object of kind Context.
    packages
        A file with the packages that polyver may run as processes. The file maps each package
        reference to a folder, a wheel, or a requirement such as NAME==1.2.3.
    allow_packages
        Also run a package that the file of --packages does not list, if its reference begins with
        'file:' or 'pypi:'.
    package_memory
        The memory limit for the process of each function revision, together with its child
        processes, such as 512Mi or 2Gi; 0 means no limit. Default: half of the memory of the
        machine, but at least 1Gi.
    data
        The folder in which polyver keeps the Python environments that it builds for functions, so
        that later runs start faster. Default: the data folder of `polyver up`:
        `$XDG_DATA_HOME/polyver`, or `~/.local/share/polyver` if the variable is not set.
    timeout
        The maximum time for all calls of functions together, such as 90s or 1m30s. The time in
        which the functions start does not count.
    output
        The output format.
    """
    from polyver.compositions.commands.rendering.output import Included

    settings = PackageSettings(packages, allow_packages, memory=read_memory_limit(package_memory))
    files = _Files(
        xr,
        composition,
        functions,
        xrd,
        observed_resources,
        (*(required_resources or ()), *(extra_resources or ())),
        function_credentials,
        tuple(context_files or ()),
        tuple(context_values or ()),
        tuple(function_annotations or ()),
    )
    wanted = _Wanted(
        tuple(revision or ()), data or data_folder(), settings, read_seconds(timeout, "--timeout")
    )
    included = Included(include_function_results, include_full_xr, include_context)
    found = _interruptible(files, wanted, included)
    text = manifests_text(found, output)
    print_lines((f"---\n{text}" if output is ManifestFormat.YAML else text).rstrip("\n"))


@dataclass(frozen=True, slots=True)
class _Files:
    """The arguments and options that name input files or contain input values."""

    xr: str
    composition: str
    functions: str
    xrd: str | None
    observed: str | None
    required: tuple[str, ...]
    credentials: str | None
    context_files: tuple[str, ...]
    context_values: tuple[str, ...]
    annotations: tuple[str, ...]

    def check(self) -> None:
        """Raise Misused if more than one of the files is standard input."""
        several = (self.xr, self.composition, self.functions, self.xrd, self.observed)
        if (*several, *self.required, self.credentials).count("-") > 1:
            raise Misused("standard input is used twice", hint="pass files instead")


@dataclass(frozen=True, slots=True)
class _Wanted:
    """The options that decide how the pipeline runs."""

    revisions: tuple[str, ...]
    folder: Path
    settings: PackageSettings
    seconds: float


@dataclass(frozen=True, slots=True)
class _Read:
    """The content of the input files, parsed."""

    composite: LocatedObject
    asking: Composite
    revision: LocatedObject
    functions: Sequence[LocatedObject]
    observed: dict[str, Object]
    required: Sequence[Object]
    secrets: dict[Secret, dict[str, bytes]]
    context: Object


def _interruptible(files: _Files, wanted: _Wanted, included: Included) -> list[Object]:
    """Read the input files and render. If the command is interrupted, end all processes first."""

    async def whole() -> list[Object]:
        loop, task = asyncio.get_running_loop(), asyncio.current_task()
        assert task is not None
        with contextlib.suppress(NotImplementedError, ValueError, RuntimeError):  # other thread
            loop.add_signal_handler(signal.SIGTERM, task.cancel)
        return await _render(read, wanted, included)

    read = _read(files)
    try:
        return asyncio.run(whole())
    except asyncio.CancelledError:
        raise KeyboardInterrupt from None


def _read(files: _Files) -> _Read:
    from polyver.compositions.commands.rendering import (
        input_files as reading,
    )
    from polyver.compositions.commands.rendering import (
        resolution as choosing,
    )

    files.check()
    composite = reading.read_composite_resource(files.xr)
    written = reading.read_compositions(files.composition)
    defined = None
    if files.xrd is not None:
        defined, obj = reading.read_xrd(files.xrd, composite)
        composite = replace(composite, obj=obj)
    given = reading.read_annotations(files.annotations)
    functions = [
        choosing.with_annotations(each, given) for each in reading.read_functions(files.functions)
    ]
    asking, revision = choosing.composition_revision(composite, written, defined)
    _check_called(revision, functions, files.functions)
    return _Read(
        composite,
        asking,
        revision,
        functions,
        reading.read_observed(files.observed, composite) if files.observed else {},
        reading.read_required(files.required),
        reading.read_credentials(files.credentials) if files.credentials else {},
        reading.read_context(files.context_files, files.context_values),
    )


def _check_called(revision: LocatedObject, functions: Sequence[LocatedObject], path: str) -> None:
    """Raise an error if a step calls a function that the input files do not contain."""
    from polyver.compositions.commands.rendering.resolution import function_named

    known = sorted({function_named(each) for each in functions})
    for place, step in enumerate(revision.obj["spec"].get("pipeline") or ()):
        name = step["functionRef"]["name"]
        if name not in known:
            near = get_close_matches(name, known, 1)
            hint = f"did you mean {near[0]}?" if near else f"known: {', '.join(known) or 'none'}"
            at = ("spec", "pipeline", place, "functionRef", "name")
            raise revision.document.error(f"{path} has no function {name}", *at, hint=hint)


async def _render(read: _Read, wanted: _Wanted, included: Included) -> list[Object]:
    from polyver.capability import Refusal
    from polyver.compositions.commands.rendering import resolution as choosing
    from polyver.compositions.commands.rendering.function_calls import functions
    from polyver.compositions.commands.rendering.input_files import located
    from polyver.compositions.commands.rendering.output import rendered
    from polyver.compositions.messages import Resource, State
    from polyver.compositions.pipeline import conclude, start

    choices = choosing.read_choices(wanted.revisions)
    there = {name: Resource(each) for name, each in read.observed.items()}
    async with functions(wanted.folder, wanted.settings) as served:
        packages = await choosing.packages_of(read.functions, read.revision, served.digest)
        steps = choosing.steps_of(read.revision, read.asking, packages, choices)
        try:
            run = start(State(Resource(read.composite.obj), there), steps, read.secrets)
        except Refusal as refusal:
            raise located(refusal, read.revision) from None
        await served.serve(packages[name].served for name in {step.revision for step in steps})
        run = await _driven(replace(run, context=read.context), read, served, wanted.seconds)
    # `distinct=False`: if two steps compose the same object, print it twice, like Crossplane's
    # command. The controller would refuse such an object.
    outcome = conclude(run, distinct=False)
    _tell(read, run, outcome, included)
    return rendered(run, outcome, served.answers, included)


async def _driven(
    run: PipelineRun, read: _Read, served: FunctionServer, seconds: float
) -> PipelineRun:
    from polyver.compositions.controllers.composites import drive
    from polyver.compositions.pipeline import found_among

    async def look(wanted: Requirements) -> FoundRequirements:
        return found_among(wanted, read.required)

    return await drive(run, served.asking(seconds), look)


def _tell(read: _Read, run: PipelineRun, outcome: PipelineOutcome, included: Included) -> None:
    """Print warnings about a run. If the run failed, raise RunFailed.

    After a successful run, these are warnings about steps, about existing resources that the
    controller would delete, and about a resource that is composed twice. Before RunFailed is
    raised, the messages of functions are printed.
    """
    from polyver.capability import Refusal
    from polyver.compositions.pipeline import check_distinct, shown

    failure = outcome.failure
    if failure is None:
        for warning in (each for step in run.steps for each in step.warnings):
            warn(warning)
        for each in outcome.remove:
            warn(f'"{each.name}" is no longer desired: {shown(each.obj)} would be deleted')
        try:
            check_distinct(read.composite.obj, outcome.apply)
        except Refusal as refusal:
            warn(f"{refusal.fact}; the controller would refuse this")
        return
    for event in run.events:
        if included.results or event.type == "Warning":
            warn(event.message)
    place = min(run.place, len(run.steps) - 1)
    at = read.revision.document.place("spec", "pipeline", place)
    hint = "start it with --insecure, or check its address"
    raise RunFailed(failure.message, at=at, hint=hint if failure.reason == "Unreachable" else "")
