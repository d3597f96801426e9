"""Chooses the CompositionRevision and the function revisions for `polyver render`.

The objects come from input files instead of an API server. The functions that choose among them are
the same as in the controllers.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from polyver.capability import Refusal
from polyver.cli.exit_codes import Misused
from polyver.cli.output import warn
from polyver.compositions.commands.functions_on_cluster import revision_called
from polyver.compositions.commands.rendering.function_calls import ServedRevision
from polyver.compositions.commands.rendering.input_files import LocatedObject, located
from polyver.compositions.decisions import (
    Candidate,
    Composite,
    CompositeKind,
    FunctionLineages,
    KnownCompositionRevision,
    ResolvedStep,
    choose_composition,
    choose_revision,
    composition_changes,
    composition_of,
    composition_revision_object,
    known_composition_revision,
    presumed_definition,
    read_composite,
    resolve_steps,
    revisions_after,
)
from polyver.compositions.kinds import COMPOSITION_REVISIONS, FUNCTION_REVISIONS
from polyver.compositions.lineages import content_digest
from polyver.compositions.names import COMPOSITION, CONTENT, ENDPOINT
from polyver.compositions.packages import (
    DesiredFunction,
    KnownFunctionRevision,
    StepFunctionUse,
    decide,
    function_of,
    known_revision,
    lineage_of,
    pipeline_of,
    read_function,
    results_of,
    uses_in,
)
from polyver.compositions.runtimes import DesiredRevision
from polyver.core import PolyverError, listed
from polyver.core.plain import Object
from polyver.kube.objects.converted_metadata import fresh

__all__ = [
    "Package",
    "Packages",
    "composition_revision",
    "function_named",
    "packages_of",
    "read_choices",
    "steps_of",
    "with_annotations",
]

Digest = Callable[[str, str], Awaitable[str]]
"""Returns the digest of a package, from two arguments.

They are the package reference, and the address of the external server that serves the function; the
address is empty if there is no such server.
"""
_RUNTIME = "render.crossplane.io/runtime"
_TARGET = "render.crossplane.io/runtime-development-target"
_USUAL = "localhost:9443"
_SERVERS_OWN = (COMPOSITION, CONTENT)


# Compositions.


def composition_revision(
    composite: LocatedObject, written: Sequence[LocatedObject], defined: CompositeKind | None
) -> tuple[Composite, LocatedObject]:
    """Parse the composite resource, and choose the CompositionRevision for it.

    If the input files contain only one composition, it is chosen even if the composite resource
    names another composition.
    """
    about = defined or presumed_definition(composite.obj)
    asking = read_composite(composite.obj, about)
    revisions = _revisions(written)
    if len(written) == 1:
        asking = _content_with(asking, revisions[0], written[0])
    try:
        chosen = choose_composition(asking, about, _candidates(revisions))
        found = choose_revision(asking, chosen.composition, [each.obj for each in revisions])
    except Refusal as refusal:
        raise located(refusal, composite) from None
    for warning in (*chosen.warnings, *found.warnings):
        warn(warning)
    return asking, next(each for each in revisions if each.name == found.release.name)


def _content_with(asking: Composite, revision: LocatedObject, written: LocatedObject) -> Composite:
    """Return the composite resource as if it referenced the only composition in the input files.

    Raise an error if that composition is for another kind.
    """
    target = revision.obj["spec"]["compositeTypeRef"]
    is_for = target["apiVersion"], target["kind"]
    if is_for != (asking.obj["apiVersion"], asking.obj["kind"]):
        fact = f"{written} is for {' '.join(is_for)}"
        hint = f"the composite resource is a {asking.obj['apiVersion']} {asking.obj['kind']}"
        raise written.document.error(fact, "spec", "compositeTypeRef", hint=hint)
    name = composition_of(revision.obj)
    if asking.composition not in ("", name):
        warn(f"{asking.shown} names the composition {asking.composition}; {name} is rendered")
    asks = "" if asking.composition_labels else name
    return replace(asking, composition=asks, revision="")


def _revisions(written: Sequence[LocatedObject]) -> list[LocatedObject]:
    """Return the CompositionRevisions in the input files, and those of the Compositions.

    A Composition has the revisions that it would have after a user applied it.
    """
    there = {each.name: each for each in written if each.kind == COMPOSITION_REVISIONS.kind}
    for each in written:
        if each.kind != COMPOSITION_REVISIONS.kind:
            there |= {made.name: made for made in _made(each, [*there.values()])}
    return [*there.values()]


def _made(composition: LocatedObject, there: Sequence[LocatedObject]) -> Iterable[LocatedObject]:
    """Yield the CompositionRevisions that a Composition would have after a user applied it."""
    metadata = {"uid": "", **composition.obj["metadata"]}
    obj = {**composition.obj, "metadata": metadata}
    ours = {each.name: each for each in there if composition_of(each.obj) == composition.name}
    known = [_unowned(known_composition_revision(each.obj)) for each in ours.values()]
    changes = composition_changes(obj, known)
    for refusal in changes.refusals:
        raise located(refusal, composition)
    for each in revisions_after(changes, known):
        if each.name in ours:
            yield replace(ours[each.name], obj=_numbered(ours[each.name].obj, each))
        else:
            yield LocatedObject(composition.document, composition_revision_object(each, obj))


def _unowned(known: KnownCompositionRevision) -> KnownCompositionRevision:
    return replace(known, owner="")


def _numbered(obj: Object, known: KnownCompositionRevision) -> Object:
    metadata = {**obj["metadata"], "labels": dict(known.labels)}
    return {**obj, "metadata": metadata, "spec": {**obj["spec"], "revision": known.number}}


def _candidates(revisions: Sequence[LocatedObject]) -> list[Candidate]:
    """Return the Compositions to choose from. Each has the labels of its highest revision."""
    found: dict[str, Object] = {}
    for each in sorted(revisions, key=lambda each: int(each.obj["spec"]["revision"])):
        found[composition_of(each.obj)] = each.obj
    made = []
    for name, obj in found.items():
        target, labels = obj["spec"]["compositeTypeRef"], obj["metadata"].get("labels") or {}
        own = {key: text for key, text in labels.items() if key not in _SERVERS_OWN}
        made.append(Candidate(name, target["apiVersion"], target["kind"], own))
    return made


# Functions.


@dataclass(frozen=True, slots=True)
class Package:
    """A function revision, its package reference, and the object in a file from which it comes."""

    known: KnownFunctionRevision
    image: str
    written: LocatedObject

    @property
    def served(self) -> ServedRevision:
        """The revision to serve. Only a revision without an address runs on this machine."""
        known, document = self.known, self.written.document
        wanted = DesiredRevision(known.name, self.image, known.digest, known.address)
        return ServedRevision(wanted, document.place(), document.place("metadata", "annotations"))

    @property
    def obj(self) -> Object:
        """The FunctionRevision, with only the fields that decisions need."""
        known = self.known
        return {
            "metadata": {"name": known.name, "labels": dict(known.labels)},
            "spec": {
                "image": self.image,
                "revision": known.number,
                "digest": known.digest,
                "desiredState": "Active" if known.active else "Inactive",
            },
        }


Packages = Mapping[str, Package]
"""Function revisions, by their names."""


def with_annotations(written: LocatedObject, given: Mapping[str, str]) -> LocatedObject:
    """Return a copy of a Function or FunctionRevision with these annotations added.

    Crossplane's annotations for a function that runs already are converted to the annotation
    `polyver.dev/endpoint`.
    """
    metadata = written.obj["metadata"]
    said = {**(metadata.get("annotations") or {}), **given}
    runtime = said.get(_RUNTIME, "")
    if runtime == "Development" and not said.get(ENDPOINT):
        target = (said.get(_TARGET) or _USUAL).removeprefix("dns:").lstrip("/")
        said[ENDPOINT] = f"http://{target}"
    elif runtime not in ("", "Development", "Docker"):
        fact = f'unknown runtime "{runtime}"'
        hint = "Development calls a function that is already running"
        raise written.document.error(fact, "metadata", "annotations", _RUNTIME, hint=hint)
    return replace(written, obj={**written.obj, "metadata": {**metadata, "annotations": said}})


def function_named(written: LocatedObject) -> str:
    """Return the name of a Function, or of the Function to which a FunctionRevision belongs."""
    is_revision = written.kind == FUNCTION_REVISIONS.kind
    return function_of(written.obj) if is_revision else written.name


async def packages_of(
    functions: Sequence[LocatedObject], revision: LocatedObject, digest: Digest
) -> dict[str, Package]:
    """Return the function revisions that would exist after the called functions were installed.

    If a Function occurs several times, its packages are installed one after the other.
    """
    pipeline = pipeline_of(revision.obj)
    uses = uses_in([pipeline], {pipeline.name})
    found: dict[str, Package] = {}
    for each in functions:
        if each.kind == FUNCTION_REVISIONS.kind and function_of(each.obj) in pipeline.functions:
            found[each.name] = await _given(each, digest)
    for each in functions:
        if each.kind != FUNCTION_REVISIONS.kind and each.name in pipeline.functions:
            await _install(each, found, uses, digest)
    return found


async def _given(written: LocatedObject, digest: Digest) -> Package:
    spec, known = written.obj["spec"], known_revision(written.obj)
    if not spec.get("digest"):
        try:
            known = replace(known, digest=await digest(spec["image"], known.address))
        except PolyverError:
            # ignore the error here, because it is possible that no step calls this revision
            known = replace(known, digest=content_digest(spec["image"]))
    return Package(known, spec["image"], written)


async def _install(
    written: LocatedObject,
    found: dict[str, Package],
    uses: Sequence[StepFunctionUse],
    digest: Digest,
) -> None:
    """Change `found` to the revisions that would exist after a Function was installed."""
    function = read_function(written.obj)
    try:
        content = await digest(function.package, function.address)
    except PolyverError as error:
        raise written.document.error(error.fact, "spec", "package", hint=error.hint) from None
    ours = {name: each.known for name, each in found.items() if _owner(each.known) == function.name}
    plan = decide(function, [*ours.values()], content, uses)
    for refusal in plan.refusals:
        raise located(refusal, written)
    after = {each.name: each for each in results_of(plan, ours.values())}
    for name in ours.keys() - after.keys():
        del found[name]
    for name, known in after.items():
        before = found.get(name, Package(known, function.package, written))
        found[name] = replace(before, known=_activated(known, function))


def _owner(known: KnownFunctionRevision) -> str:
    return function_of({"metadata": {"labels": known.labels}})


def _activated(known: KnownFunctionRevision, function: DesiredFunction) -> KnownFunctionRevision:
    """Return the revision as active, because `polyver render` may call any revision.

    With automatic activation, return it unchanged.
    """
    return known if function.automatic else replace(known, active=True)


# Steps.


def read_choices(texts: Iterable[str]) -> dict[str, str]:
    """Parse `--revision`: the revision to call for a function, regardless of selectors."""
    found: dict[str, str] = {}
    for text in texts:
        function, _, revision = text.partition("=")
        if not function or not revision:
            hint = "write FUNCTION=REVISION"
            raise Misused(f"{text!r} does not choose a revision", at="--revision", hint=hint)
        found[function] = revision
    return found


def steps_of(
    revision: LocatedObject, asking: Composite, packages: Packages, choices: Mapping[str, str]
) -> tuple[ResolvedStep, ...]:
    """Choose the function revision for each step of a pipeline.

    `choices` has the revisions that `--revision` names, by function.
    """
    known = {name: each.known for name, each in packages.items()}
    chosen = {
        function: _chosen(function, text, revision, known) for function, text in choices.items()
    }
    obj = _choosing(revision.obj, chosen)
    there = [
        replace(each, known=replace(each.known, active=True)) if name in chosen.values() else each
        for name, each in packages.items()
    ]
    installed = FunctionLineages(each.obj for each in there)
    try:
        return resolve_steps(obj, asking, installed, several=True)
    except Refusal as refusal:
        raise located(refusal, revision) from None


def _chosen(
    function: str, text: str, revision: LocatedObject, known: Mapping[str, KnownFunctionRevision]
) -> str:
    called = pipeline_of(revision.obj).functions
    if function not in called:
        hint = f"it calls {listed(sorted(called))}"
        raise Misused(f"the pipeline does not call {function}", at="--revision", hint=hint)
    ours = [each for each in known.values() if _owner(each) == function]
    return revision_called(function, lineage_of(function, ours), text).name


def _choosing(revision: Object, chosen: Mapping[str, str]) -> Object:
    """Return a CompositionRevision whose steps reference the revisions that `--revision` names."""
    if not chosen:
        return revision
    made: Object = fresh(revision)
    for step in made["spec"]["pipeline"]:
        name = chosen.get(step["functionRef"]["name"])
        if name:
            step.pop("functionRevisionSelector", None)
            step["functionRevisionRef"] = {"name": name}
    return made
