"""`polyver blueprint`: validates blueprints without running them."""

from __future__ import annotations

from functools import partial
from typing import Annotated, Any

from cyclopts import App, Parameter

from polyver.cli.exit_codes import Misused, ProblemsFound, UnknownName
from polyver.cli.files import read_manifests
from polyver.cli.output import OutputFormat, complain, emit, print_lines, warn
from polyver.core import Contradiction, SemVer, check_releases, listed
from polyver.functions.blueprints import (
    UNTIL,
    Blueprint,
    BlueprintFinding,
    blueprints_in,
    check_blueprint,
    losses_at,
)
from polyver.functions.catalogue import FunctionCatalogue
from polyver.functions.commands.catalogues import version_of
from polyver.functions.commands.functions import CatalogueFiles, FunctionFiles, Output, Traceback
from polyver.functions.loading import load_known
from polyver.functions.registering import Functions

app = App(
    name="blueprint",
    help="""Validate blueprints.

Example: polyver blueprint validate -f backup.yaml --functions functions.py""",
)


@app.command
def validate(
    *,
    file: Annotated[
        list[str], Parameter(name=["--file", "-f"], negative=(), allow_leading_hyphen=True)
    ],
    release: str | None = None,
    functions: FunctionFiles = None,
    catalogue: CatalogueFiles = None,
    output: Output = OutputFormat.TABLE,
    traceback: Traceback = False,
) -> None:
    """Check functions, versions, arguments and templates of blueprints without calling a function.

    For each value that a template reads, the command checks that the value will exist when the
    action runs. Such values are outputs of phases, artifacts, Secrets and ConfigMaps. An output
    exists if its phase runs earlier and the function of this phase declares the output. The command
    cannot check values that are known only when an action runs, such as options. It lists them as
    known only at run time.

    Example: polyver blueprint validate -f backup.yaml --functions functions.py --release 0.4.0

    Parameters
    ----------
    file
        A file or folder with blueprints, or '-' (standard input); repeatable. Objects that are not
        blueprints are ignored.
    release
        A future catalogue release. The command also reports the phases that this release will
        break, because it removes function versions.
    """
    known = load_known(functions, catalogue, traceback=traceback)
    later = _release(release, known)
    blueprints: list[Blueprint] = []
    findings: list[BlueprintFinding] = []
    read = list(blueprints_in(read_manifests(file)))
    if not read:
        raise UnknownName(f"there is no Blueprint in {listed(file)}")
    for _, blueprint, malformed in read:
        findings += malformed
        if blueprint is not None:
            blueprints.append(blueprint)
            findings += check_blueprint(blueprint, known)
    if later is not None:
        findings += losses_at(later, blueprints, known)
    _tell(findings, len(read), output)


def _release(text: str | None, known: Functions) -> SemVer | None:
    if text is None:
        return None
    wanted = version_of(text, "--release")
    if not known.catalogues:
        hint = "name one with --catalogue"
        raise Misused(
            "--release needs a catalogue, which lists removals", at="--release", hint=hint
        )
    if all(map(partial(_is_out, wanted), known.catalogues)):
        now = listed([f"{each.source} is at {each.now}" for each in known.catalogues])
        raise Misused(f"{wanted} is already released", at="--release", hint=now)
    return wanted


def _is_out(release: SemVer, catalogue: FunctionCatalogue) -> bool:
    try:
        check_releases((*catalogue.releases, release))
    except Contradiction:
        return True
    return False


def _tell(findings: list[BlueprintFinding], checked: int, output: OutputFormat) -> None:
    errors = [each for each in findings if each.is_error]
    unknown = [each for each in findings if each.is_unknown]
    if output is not OutputFormat.TABLE:
        emit({"blueprints": checked, "findings": [_data(each) for each in findings]}, output)
    else:
        for each in findings:
            if not each.is_unknown:
                (complain if each.is_error else warn)(str(each))
    blueprints = "1 blueprint" if checked == 1 else f"{checked} blueprints"
    if errors:
        wrong = "1 error" if len(errors) == 1 else f"{len(errors)} errors"
        raise ProblemsFound(f"{wrong} in {blueprints}")
    if output is OutputFormat.TABLE:
        if not unknown:
            print_lines(f"{blueprints} checked, no errors")
            return
        print_lines(f"{blueprints} checked, no errors", "", "known only at run time:")
        print_lines(*(f"  {each.fact.removesuffix(UNTIL)} ({each.place})" for each in unknown))


def _data(finding: BlueprintFinding) -> dict[str, Any]:
    severity = "error" if finding.is_error else "unknown" if finding.is_unknown else "warning"
    found = {"severity": severity, "fact": finding.fact, "place": finding.place}
    return found | {"path": finding.field} | ({"hint": finding.hint} if finding.hint else {})
