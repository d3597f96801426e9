"""`polyver check`: test the conversions of kinds, and find incompatible changes of kinds."""

from __future__ import annotations

import os
import secrets
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass, replace
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
    live: Annotated[bool, Parameter(negative=())] = False,
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
        and the current conversions, and reports each field that differs, and each object that the
        current schemas refuse. With --examples 0, no objects are generated.
    live
        Also convert every object of a cluster with the earlier and the current conversions. The
        cluster is that of --against, or else that of the current context. The command only reads
        from the cluster.
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
    if live and against is None:
        hint = "--against cluster: compares with the conversions on the cluster"
        raise Misused("--live needs --against, which names the earlier conversions", hint=hint)
    seed = secrets.randbelow(2**32) if seed is None else seed
    loaded = load_subjects(kinds, conversions, show_traceback=traceback)
    checked = [*run_checks(loaded.subjects, examples, seed)]
    findings = [*loaded.findings, *(each for _, one in checked for each in one.findings)]
    objects: dict[str, int] = {}
    if against is not None:
        asked = _Comparison(against, kinds, conversions, examples, seed, live)
        changes, objects = asked.run(loaded)
        findings += changes
    findings = [_shown(each) for each in ranked(findings)]
    if form is _CheckFormat.JSON:
        emit(_data(checked, findings, seed, objects), OutputFormat.JSON)
    else:
        print_text(checked, findings, seed, objects)
    _conclude(findings, seed, strict=strict)


@dataclass(frozen=True, slots=True)
class _Comparison:
    """A comparison with an earlier state, as the arguments of the command describe it."""

    against: str
    kinds: Sequence[str]
    conversions: Sequence[str]
    examples: int
    seed: int
    live: bool

    def run(self, loaded: LoadedKinds) -> tuple[list[ConversionFinding], dict[str, int]]:
        """Compare the loaded kinds with their earlier state.

        Return a finding for each change, and the numbers of compared objects of a cluster.
        """
        from polyver.apis.commands._against import behaving, compared, earlier, merged
        from polyver.cli.cluster import CLUSTER

        of_cluster = self.against.startswith(CLUSTER)
        context = self.against.removeprefix(CLUSTER) if of_cluster else ""
        names = [*loaded.definitions]
        with earlier(self.against, names, self.kinds, self.conversions) as before:
            found = [*compared(loaded, before, self.against)]
            # Conversion functions may print. On stdout, that would mix with the findings.
            with redirect_stdout(sys.stderr):
                seen, objects = behaving(
                    loaded,
                    before,
                    self.against,
                    examples=self.examples,
                    seed=self.seed,
                    live=context if self.live else None,
                )
        return merged([*found, *seen]), objects


def run_checks(
    subjects: Sequence[CheckedKind], examples: int, seed: int
) -> Iterator[tuple[CheckedKind, ConversionCheckResult]]:
    """Check kinds, with a progress bar for each; yield each kind with its result."""
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
    live: Mapping[str, int],
) -> dict[str, Any]:
    from polyver.apis.conversion.paths import show_path

    return {
        "seed": seed,
        "live": live,
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
