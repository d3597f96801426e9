"""Print the result of `polyver check`: a ledger for every two versions, and the findings.

A ledger lists, for each field of a version, the result of converting the field to another version.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from difflib import unified_diff
from typing import Any

from polyver.apis.checking import ConversionFinding, Counterexample, FieldConversion, Ledger
from polyver.apis.compatibility import FindingSeverity
from polyver.apis.conversion import ANNOTATION
from polyver.apis.trials import CheckedKind, ConversionCheckResult, Progress
from polyver.cli.output import print_lines, print_table
from polyver.core import listed
from polyver.kube.objects import dump_yaml

__all__ = ["finding_lines", "print_text", "progress_bar"]


def _limit(path: Sequence[str]) -> str:
    in_annotation = path[-1] == ANNOTATION
    where = f"the annotation {ANNOTATION}" if in_annotation else f"the field {'.'.join(path)}"
    what = "all annotations" if in_annotation else "whole objects"
    return (
        f"Preserved fields are stored in {where}. A client that replaces {what} removes them, "
        "unless the admission webhook of polyver restores them."
    )


@contextmanager
def progress_bar(name: str, total: int) -> Iterator[Progress]:
    """Show a progress bar on a terminal; elsewhere do nothing."""
    if not sys.stderr.isatty() or not total:
        yield lambda _: None
        return
    from rich.console import Console
    from rich.progress import Progress as Bar

    with Bar(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(name, total=total)
        yield lambda count: bar.advance(task, count)


def print_text(
    checked: Sequence[tuple[CheckedKind, ConversionCheckResult]],
    findings: Sequence[ConversionFinding],
    seed: int,
    live: Mapping[str, int],
) -> None:
    """Print the ledgers, the findings and a summary.

    `live` are the numbers of compared objects of a cluster, by the name of their CRD.
    """
    for subject, one in checked:
        for ledger in one.ledgers:
            _print_ledger(subject, ledger)
    for path in dict.fromkeys(
        subject.converter.keeping.path
        for subject, one in checked
        if any(not fate.exact for ledger in one.ledgers for fate in ledger.fates)
    ):
        print_lines(_limit(path), "")
    for finding in findings:
        print_lines(*finding_lines(finding), "")
    for name, count in live.items():
        print_lines(f"{name}: {_count(count, 'object')} of the cluster compared")
    print_lines(_summary(checked, findings, seed))


# The ledger


def _print_ledger(subject: CheckedKind, ledger: Ledger) -> None:
    title = f"{subject.converter.kind} {ledger.source} → {ledger.target}"
    changed = [each for each in ledger.fates if each.how != "kept" or not each.exact]
    kept = [each.path for each in ledger.fates if each not in changed]
    if changed:
        print_table([title, "", ""], [_row(each) for each in changed])
    else:
        print_lines(title)
    if kept:
        print_lines(f"kept: {listed(kept)}")
    if ledger.observed:
        print_lines("observed on the test objects, because functions do not declare their changes")
    if not ledger.complete:
        print_lines(f"{ledger.source} has no schema: fields without a rule are copied")
    print_lines("")


def _row(fate: FieldConversion) -> tuple[str, str, str]:
    if fate.how == "carried":
        return fate.path, "preserved", fate.why
    to = "" if fate.to == (fate.path,) or not fate.to else f" → {', '.join(fate.to)}"
    rest = "" if fate.exact else fate.why or "other values are preserved"
    return fate.path, f"{', '.join(fate.rules) or fate.how}{to}", rest


# Findings


def finding_lines(finding: ConversionFinding) -> Iterator[str]:
    """Yield the lines of a finding: the problem, the advice, and the smallest wrong object."""
    way = " → ".join(finding.versions)
    seen = f" ({_count(finding.objects, 'object')}, such as {finding.object})"
    about = " ".join(filter(None, (finding.kind, way, finding.path)))
    head = f"{finding.place}: " if finding.place else ""
    fact = finding.fact + (seen if finding.objects else "")
    yield f"{head}{finding.severity.value} {finding.rule}: {about}: {fact}"
    yield f"  {finding.advice}"
    if finding.example is not None:
        yield from (f"  {line}" for line in _example(finding.example))


def _example(example: Counterexample) -> Iterator[str]:
    yield from _yaml(example.given)
    if example.edited is not None:
        yield from ("# after the edit", *_yaml(example.edited))
    if example.expected is not None and example.got is not None:
        pair = _yaml(example.expected), _yaml(example.got)
        yield from unified_diff(*pair, "expected", "found", lineterm="", n=1)


def _yaml(value: Any) -> list[str]:
    """Format a value as lines of YAML, with `apiVersion` and `kind` first.

    The annotation of preserved fields is left out.
    """
    if not isinstance(value, dict):
        return dump_yaml(value).splitlines()
    shown = _without_carry(value)
    first = {name: shown[name] for name in ("apiVersion", "kind") if name in shown}
    return dump_yaml(first | shown).splitlines()


def _without_carry(obj: dict[str, Any]) -> dict[str, Any]:
    metadata = obj.get("metadata")
    annotations = metadata.get("annotations") if isinstance(metadata, dict) else None
    if not isinstance(metadata, dict) or not isinstance(annotations, dict):
        return obj
    rest = {name: value for name, value in annotations.items() if name != ANNOTATION}
    kept = {name: value for name, value in metadata.items() if name != "annotations"}
    return {**obj, "metadata": {**kept, **({"annotations": rest} if rest else {})}}


def _summary(
    checked: Sequence[tuple[CheckedKind, ConversionCheckResult]],
    findings: Sequence[ConversionFinding],
    seed: int,
) -> str:
    objects = sum(one.objects for _, one in checked)
    tried = f", {_count(objects, 'object')} tried (seed {seed})" if objects else ""
    counts = {
        severity.value: sum(each.severity is severity for each in findings)
        for severity in FindingSeverity
        if severity is not FindingSeverity.SAFE
    }
    said = ", ".join(f"{count} {word}" for word, count in counts.items() if count)
    result = f"{_count(len(findings), 'finding')}: {said}" if findings else "no findings"
    kinds = {subject.name for subject, _ in checked} | {each.kind for each in findings}
    return f"{_count(len(kinds), 'kind')}{tried}: {result}"


def _count(number: int, word: str) -> str:
    return f"{number} {word}{'s' * (number != 1)}"
