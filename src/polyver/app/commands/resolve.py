"""`polyver resolve`: print the release that a selector matches in manifest files, and why."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches
from typing import Annotated, Any

from cyclopts import App, Parameter

from polyver.app.capabilities import CAPABILITIES
from polyver.capability import FoundLineage, LineageReader
from polyver.cli.exit_codes import Misused, UnknownName, UnreadableInput
from polyver.cli.files import read_manifests
from polyver.cli.output import OutputFormat, emit, print_lines, print_table, warn
from polyver.core import (
    UNSPECIFIED,
    NoMatch,
    Policy,
    Rejection,
    Resolution,
    Selector,
    listed,
)
from polyver.core import resolve as choose

_READERS: tuple[LineageReader, ...] = tuple(
    each.reader() for each in CAPABILITIES if each.reader is not None
)
_POLICIES = {policy.name: policy for reader in _READERS for policy in reader.policies}

_POLICY_HELP = (
    "The policy that chooses the release. Default: the policy for an object that uses NAME and has"
    " no annotation or field that selects another policy. Other policies for definitions:"
    " definitions-follow resolves NAME as for an application with the annotation"
    ' app.oam.dev/autoUpdate: "true"; definitions-exact as for an application with the annotation'
    ' app.oam.dev/autoUpdate: "false"; definitions-prereleases may also choose a prerelease. For'
    " definitions with numbered revisions, the only policy is definitions-legacy. Another policy"
    " for compositions: compositions-manual resolves NAME as for a composite resource with"
    f" compositionUpdatePolicy: Manual. All policies: {', '.join(_POLICIES)}."
)

app = App(name="resolve")


@app.default
def resolve(
    name: str,
    /,
    *,
    file: Annotated[
        list[str], Parameter(name=["--file", "-f"], negative=(), allow_leading_hyphen=True)
    ],
    policy: Annotated[str | None, Parameter(help=_POLICY_HELP)] = None,
    output: Annotated[OutputFormat, Parameter(name=["--output", "-o"])] = OutputFormat.TABLE,
    explain: Annotated[bool, Parameter(negative=())] = False,
) -> None:
    """Show which release NAME[@SELECTOR] resolves to, and why.

    Example: polyver resolve my-component@1.2 -f definitions.yaml --explain

    Parameters
    ----------
    name
        The name of a definition, function, package, composition or kind, with an optional selector.
        Examples: web, web@1, web@1.2 or web@1.2.3 for a definition; KubeExec@v0.1.0 for a function
        of a catalogue; NAME@channel=alpha (a label) or NAME@REVISION for a package or a
        composition; CronTab@v1 for a kind.
    file
        A file or folder with manifests, or "-" for standard input; repeatable. polyver reads
        component, trait, policy and workflow-step definitions, function catalogues,
        FunctionRevisions, CompositionRevisions and CustomResourceDefinitions, and ignores other
        objects.
    output
        The output format.
    explain
        For each other release, also show why it was not chosen.
    """
    name, at, text = name.partition("@")
    reader, found = _find(name, file)
    chosen_policy = _policy(policy, found)
    selector = reader.selector(text, found.lineage) if at else UNSPECIFIED
    try:
        resolution = choose(found.lineage, selector, chosen_policy)
    except NoMatch as error:
        if explain and output is OutputFormat.TABLE:
            _print_rejected(error.rejected)
        raise
    for warning in resolution.warnings:
        warn(warning)
    if output is OutputFormat.TABLE:
        _print(found, resolution, explain=explain)
    else:
        emit(_data(found, selector, chosen_policy, resolution, explain=explain), output)


def _find(name: str, files: Sequence[str]) -> tuple[LineageReader, FoundLineage]:
    documents = read_manifests(files)
    everything = [(reader, found) for reader in _READERS for found in reader.lineages(documents)]
    matching = {
        found.path: (reader, found) for reader, found in everything if _is_named(found, name)
    }
    where = listed(files)
    for _, found in everything:
        if found.path in matching and matching[found.path][1].lineage.releases != (
            found.lineage.releases
        ):
            raise UnreadableInput(
                f"{found.path} is declared twice, with different releases", at=where
            )
    if len(matching) == 1:
        return next(iter(matching.values()))
    if matching:
        paths = listed(list(matching))
        raise Misused(f"{name} is ambiguous in {where}", hint=f"write one of {paths}")
    known = sorted({found.lineage.name for _, found in everything})
    if not known:
        raise UnknownName(f"{where} contains nothing that can be resolved")
    close = get_close_matches(name, known, n=1)
    hint = f"did you mean {close[0]}?" if close else f"known: {listed(known)}"
    raise UnknownName(f"there is no {name} in {where}", hint=hint)


def _is_named(found: FoundLineage, name: str) -> bool:
    return f"/{found.path}".casefold().endswith(f"/{name}".casefold()) and (
        found.lineage.name == name.rpartition("/")[2]
    )


def _policy(name: str | None, found: FoundLineage) -> Policy:
    if name is None:
        return found.policies[0]
    if name not in _POLICIES:
        raise Misused(f"there is no policy {name}", hint=f"known: {listed(list(_POLICIES))}")
    if _POLICIES[name] not in found.policies:
        fitting = listed([policy.name for policy in found.policies])
        raise Misused(
            f"the policy {name} does not apply to {found.path}", hint=f"use one of {fitting}"
        )
    return _POLICIES[name]


def _print(found: FoundLineage, resolution: Resolution, *, explain: bool) -> None:
    release = resolution.release
    row = [found.lineage.name, release.name, release.stage.value, resolution.reason]
    print_table(["NAME", "RELEASE", "STAGE", "REASON"], [row])
    if explain:
        print_lines("")
        _print_rejected(resolution.rejected)


def _print_rejected(rejected: Sequence[Rejection]) -> None:
    if rejected:
        rows = [[rejection.release.name, rejection.why] for rejection in rejected]
        print_table(["NOT CHOSEN", "WHY"], rows)


def _data(
    found: FoundLineage,
    selector: Selector,
    policy: Policy,
    resolution: Resolution,
    *,
    explain: bool,
) -> dict[str, Any]:
    release = resolution.release
    data: dict[str, Any] = {
        "name": found.lineage.name,
        "selector": str(selector),
        "policy": policy.name,
        "release": release.name,
        "version": str(release.version),
        "digest": release.digest,
        "stage": release.stage.value,
        "reason": resolution.reason,
        "warnings": list(resolution.warnings),
    }
    if explain:
        data["rejected"] = [
            {"release": rejection.release.name, "why": rejection.why}
            for rejection in resolution.rejected
        ]
    return data
