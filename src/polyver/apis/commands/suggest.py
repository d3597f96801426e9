"""`polyver suggest`: draft a Conversion from the schemas of the versions of a kind."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

from cyclopts import App, Parameter, validators

from polyver.cli.cluster import CLUSTER
from polyver.cli.exit_codes import Misused, ProblemsFound, UnknownName, UnreadableInput
from polyver.cli.output import ManifestFormat, OutputFormat, emit, print_lines, warn
from polyver.core import KubeVersion, listed

if TYPE_CHECKING:
    from polyver.apis.checking import ConversionFinding
    from polyver.apis.definition import DefinedVersion, Definition
    from polyver.apis.suggesting import SuggestedConversion

app = App(name="suggest")

_MOST_REPAIRS = 6


@app.default
def suggest(
    old: str,
    new: str | None = None,
    *,
    kind: str | None = None,
    confidence: Annotated[int, Parameter(validator=validators.Number(gte=0, lte=100))] = 60,
    examples: Annotated[int, Parameter(validator=validators.Number(gte=0))] = 200,
    seed: int = 0,
    form: Annotated[ManifestFormat, Parameter(name=["-o"])] = ManifestFormat.YAML,
    traceback: Annotated[bool, Parameter(negative=())] = False,
) -> None:
    """Draft the Conversion of a kind from the schemas of its versions, and print it.

    The command finds fields that have another name, path, type or unit in the other version, and
    writes a rule for each. A comment above the rule has its confidence and its reason. Fields for
    which no rule is found are listed as preserved. `polyver check` accepts the result: rules that
    it refuses are left out.

    The result is a draft. The command compares names, types, descriptions and fields inside, so it
    cannot know what a field means. Review each rule.

    Example: polyver suggest cluster: config/crds/crontabs.yaml > conversion.yaml

    Parameters
    ----------
    old
        The earlier versions: a file or folder with CustomResourceDefinitions, a Python module or
        .py file with kinds, 'cluster:' (the cluster of the current context), or 'cluster:CONTEXT'.
    new
        The later versions, in the same form. If both have the same version, the schema of NEW is
        used. Default: OLD has all versions.
    kind
        The name of the CustomResourceDefinition, such as crontabs.stable.example.com. Default: all
        kinds with several versions; for a cluster, the kinds in the other argument.
    confidence
        The least confidence of a rule, in percent. Less likely pairs of fields are listed as
        preserved.
    examples
        The number of objects to generate for the check of the draft. Generating objects requires
        the Python package hypothesis. With 0, only the types are checked.
    seed
        The seed of the generated objects.
    form
        The output format. JSON has the Conversion, and the confidence and reason of each rule as
        fields.
    traceback
        Also print the Python traceback if your code raises an exception while polyver imports it.
    """
    from polyver.apis.suggesting import suggest as draft
    from polyver.apis.suggesting import suggestion_data, suggestion_text

    drafts = []
    left: list[ConversionFinding] = []
    for definition, versions in _kinds(old, new, kind, show_traceback=traceback):
        drafted = draft(definition, versions, minimum=confidence / 100)
        made, findings = _checked(drafted, examples, seed)
        drafts.append(made)
        left += findings
    if form is ManifestFormat.JSON:
        found = [suggestion_data(each) for each in drafts]
        emit(found[0] if len(found) == 1 else found, OutputFormat.JSON)
    else:
        print_lines("---\n".join(map(suggestion_text, drafts)).removesuffix("\n"))
    for each in left:
        warn(f"{each.rule}: {each.path}: {each.fact}")
    if left:
        raise ProblemsFound("polyver check refuses the draft", hint="correct the schemas")


def _checked(
    drafted: SuggestedConversion, examples: int, seed: int
) -> tuple[SuggestedConversion, Sequence[ConversionFinding]]:
    """Check a draft as `polyver check` does; leave out the rules with breaking findings.

    Return the draft, and the breaking findings that are left.
    """
    from polyver.apis.commands.check import run_checks
    from polyver.apis.compatibility import FindingSeverity
    from polyver.apis.trials import CheckedKind

    found: list[ConversionFinding] = []
    for _ in range(_MOST_REPAIRS):
        name = drafted.definition.name
        subject = CheckedKind(drafted.converter(), drafted.schemas, name)
        [(_, result)] = run_checks([subject], examples, seed)
        found = [each for each in result.findings if each.severity is FindingSeverity.BREAKING]
        if not found:
            break
        drafted = drafted.without(found)
    return drafted, found


# The kinds and their versions.


def _kinds(
    old: str, new: str | None, kind: str | None, *, show_traceback: bool
) -> Iterator[tuple[Definition, list[str]]]:
    """Yield each kind with the versions of OLD and NEW, and the names of these versions.

    Older versions come first.
    """
    before, after = _loaded(old, new, kind, show_traceback=show_traceback)
    both = [name for name in before if new is None or name in after]
    wanted = both if kind is None else [name for name in both if name == kind]
    if not wanted:
        known = listed(sorted({*before, *after})) or "none"
        sources = old if new is None else f"{old} and {new}"
        raise UnknownName(f"{kind or 'a common kind'} is not in {sources}", hint=f"known: {known}")
    few = []
    for name in wanted:
        definition, versions = _joined(before[name], after.get(name))
        if len(versions) > 1:
            yield definition, versions
        else:
            few.append(f"{name} has only the version {listed(versions)}")
    if len(few) == len(wanted):
        hint = "give the changed schema another version, or pass the other version as NEW"
        raise UnreadableInput(few[0], at=old if new is None else f"{old} and {new}", hint=hint)
    for each in few:
        warn(f"{each}: nothing is suggested")


def _loaded(
    old: str, new: str | None, kind: str | None, *, show_traceback: bool
) -> tuple[Mapping[str, Definition], Mapping[str, Definition]]:
    """Load the kinds of OLD and of NEW, by name. A cluster is read after the other argument."""
    found: dict[str, Mapping[str, Definition]] = {}
    names = [kind] if kind else []
    sources = [old] if new is None else [old, new]
    for source in sorted(sources, key=lambda each: each.startswith(CLUSTER)):
        if not source.startswith(CLUSTER):
            found[source] = _declared(source, show_traceback=show_traceback)
            names = names or [*found[source]]
        elif names:
            found[source] = _on_cluster(source, names)
        else:
            raise Misused(f"{source} has many kinds", hint="name one of them with --kind")
    return found[old], found[new] if new is not None else {}


def _declared(source: str, *, show_traceback: bool) -> dict[str, Definition]:
    from polyver.apis.commands.kinds import find_kinds

    kinds = find_kinds([source], show_traceback=show_traceback)
    found = [each.unconnected_definition() for each in kinds]
    return {each.name: each for each in found}


def _on_cluster(source: str, names: Sequence[str]) -> dict[str, Definition]:
    from polyver.apis.conversion_kind import definition_of
    from polyver.cli.cluster import definitions_on

    server, found = definitions_on(source.removeprefix(CLUSTER), names)
    if lacking := [name for name in names if name not in found]:
        warn(f"{server} does not have {listed(lacking)}")
    return {name: definition_of(crd) for name, crd in found.items()}


def _joined(old: Definition, new: Definition | None) -> tuple[Definition, list[str]]:
    """Return the kind with the versions of both definitions, and their names in order of age."""
    later = {each.name: each for each in new.versions} if new else {}
    earlier = {each.name: each for each in old.versions}
    for name, version in earlier.items():
        if name in later and later[name].schema != version.schema and len(later) > 1:
            warn(f"{old.name} {name} differs in OLD and NEW: the schema of NEW is used")
    names = sorted(earlier, key=KubeVersion.parse)
    names += sorted({*later} - {*earlier}, key=KubeVersion.parse)
    versions = [_with_schema(later.get(name) or earlier[name], new or old) for name in names]
    if new is not None:
        stored = {each.name for each in new.versions if each.storage}
        versions = [replace(each, storage=each.name in stored) for each in versions]
    return replace(new or old, versions=tuple(versions)), names


def _with_schema(version: DefinedVersion, definition: Definition) -> DefinedVersion:
    if version.schema is None:
        raise UnreadableInput(
            f"{version.name} of {definition.name} has no schema",
            at=definition.place,
            hint="add its openAPIV3Schema",
        )
    return version
