"""`polyver check`: test the conversions of kinds, and find incompatible changes of kinds."""

from __future__ import annotations

import os
import secrets
import sys
from collections.abc import Iterator, Sequence
from contextlib import redirect_stdout
from dataclasses import replace
from enum import Enum
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import App, Parameter, validators

from polyver.cli.exit_codes import Misused, ProblemsFound
from polyver.cli.files import data_folder
from polyver.cli.output import OutputFormat, emit

if TYPE_CHECKING:
    from polyver.apis.checking import ConversionFinding
    from polyver.apis.commands._subjects import LoadedKinds
    from polyver.apis.trials import CheckedKind, ConversionCheckResult

app = App(name="check")


class _CheckFormat(Enum):
    """The output formats of `polyver check`, which are the values of its option `-o`."""

    TEXT = "text"
    JSON = "json"


@app.default
def check(
    *kinds: str,
    conversions: Annotated[tuple[str, ...], Parameter(name=["--conversions"], negative=())] = (),
    examples: Annotated[int, Parameter(validator=validators.Number(gte=0))] = 500,
    seed: int | None = None,
    against: str | None = None,
    strict: Annotated[bool, Parameter(negative=())] = False,
    form: Annotated[_CheckFormat, Parameter(name=["-o"])] = _CheckFormat.TEXT,
    traceback: Annotated[bool, Parameter(negative=())] = False,
) -> None:
    """Test conversions with generated objects, and check conversion rules against the schemas.

    With --against, the command also reports incompatible changes since an earlier state.

    The command prints how each field is converted between every two versions of a kind. Then it
    prints each finding, with the smallest object that reproduces the finding. The exit code is 1 if
    a finding is breaking.

    Example: polyver check myproject.kinds --against main

    Parameters
    ----------
    kinds
        The kinds: modules (myproject.kinds), .py files, files with CustomResourceDefinitions, or
        folders of these. Default, without --conversions: the modules that pyproject.toml lists
        ([tool.polyver] kinds = ["myproject.kinds"]).
    conversions
        A file or folder with Conversions and their CustomResourceDefinitions; repeatable.
    examples
        The number of objects to generate for each kind. Generating objects requires the Python
        package hypothesis. With 0, no objects are generated and hypothesis is not needed.
    seed
        The seed of the generated objects. The same seed generates the same objects. Default: a
        random seed, which the command prints.
    against
        The earlier state to compare with: a file or folder with CustomResourceDefinitions and
        Conversions; a git revision, from which the command reads the same kinds; 'cluster:' (the
        cluster of the current context); or 'cluster:CONTEXT'. The command reports incompatible
        changes of CustomResourceDefinitions. It also converts generated objects with the earlier
        and the current conversions, and reports each field that differs. With --examples 0, only
        CustomResourceDefinitions are compared.
    strict
        Exit with code 1 if there is any finding, even if no finding is breaking.
    form
        The output format.
    traceback
        Also print the Python traceback if your code raises an exception while polyver imports it.
    """
    from polyver.apis.checking import ranked
    from polyver.apis.commands._subjects import load_subjects
    from polyver.apis.commands.check_output import print_text

    if against == "":
        raise Misused("--against is empty")
    seed = secrets.randbelow(2**32) if seed is None else seed
    loaded = load_subjects(kinds, conversions, show_traceback=traceback)
    checked = [*_checked(loaded.subjects, examples, seed)]
    findings = [*loaded.findings, *(each for _, one in checked for each in one.findings)]
    if against is not None:
        findings += _compared(loaded, against, kinds, conversions, examples=examples, seed=seed)
    findings = [_shown(each) for each in ranked(findings)]
    if form is _CheckFormat.JSON:
        emit(_data(checked, findings, seed), OutputFormat.JSON)
    else:
        print_text(checked, findings, seed)
    _conclude(findings, seed, strict=strict)


def _compared(
    loaded: LoadedKinds,
    against: str,
    kinds: Sequence[str],
    conversions: Sequence[str],
    *,
    examples: int,
    seed: int,
) -> list[ConversionFinding]:
    """Compare the loaded kinds with their earlier state; return a finding for each change."""
    from polyver.apis.commands._against import behaving, compared, earlier

    with earlier(against, [*loaded.definitions], kinds, conversions) as before:
        found = [*compared(loaded.definitions, before, against)]
        # Conversion functions may print. On stdout, that would mix with the findings.
        with redirect_stdout(sys.stderr):
            seen = behaving(loaded.subjects, before, against, examples=examples, seed=seed)
            return [*found, *seen]


def _checked(
    subjects: Sequence[CheckedKind], examples: int, seed: int
) -> Iterator[tuple[CheckedKind, ConversionCheckResult]]:
    from polyver.apis.commands.check_output import progress_bar
    from polyver.apis.trials import check as run

    if "hypothesis" not in sys.modules:
        # Hypothesis would leave a folder in the current directory.
        os.environ.setdefault("HYPOTHESIS_STORAGE_DIRECTORY", str(data_folder() / "hypothesis"))
    for subject in subjects:
        # Conversion functions may print. On stdout, that would mix with the findings.
        with progress_bar(subject.name, examples) as progress, redirect_stdout(sys.stderr):
            yield subject, run(subject, examples=examples, seed=seed, progress=progress)


def _data(
    checked: Sequence[tuple[CheckedKind, ConversionCheckResult]],
    findings: Sequence[ConversionFinding],
    seed: int,
) -> dict[str, Any]:
    from polyver.apis.conversion.paths import show_path

    return {
        "seed": seed,
        "kinds": [
            {
                "name": subject.name,
                "place": subject.place,
                "versions": list(subject.converter.versions),
                "carry": show_path(subject.converter.keeping.path),
                "objects": one.objects,
                "ledgers": [each.as_data() for each in one.ledgers],
            }
            for subject, one in checked
        ],
        "findings": [{"rank": n, **each.as_data()} for n, each in enumerate(findings, 1)],
    }


def _shown(finding: ConversionFinding) -> ConversionFinding:
    """Return a finding whose file is relative to the current folder."""
    from polyver.cli.code import shown_places

    return replace(finding, place=shown_places(finding.place))


def _conclude(findings: Sequence[ConversionFinding], seed: int, *, strict: bool) -> None:
    from polyver.apis.compatibility import FindingSeverity

    bad = [each for each in findings if strict or each.severity is FindingSeverity.BREAKING]
    if bad:
        drawn = any(each.example for each in bad)
        hint = f"--seed {seed} generates the same objects again" if drawn else ""
        word = "" if strict else "breaking "
        raise ProblemsFound(f"{len(bad)} {word}finding{'s' * (len(bad) > 1)}", hint=hint)
