"""Answers `polyver why` and `polyver impact` about packages and compositions."""

from __future__ import annotations

from polyver.capability.subjects import ImpactQuestion, Subject, WhyQuestion
from polyver.cli.cluster import CLUSTER
from polyver.cli.exit_codes import Misused
from polyver.compositions.settings import PACKAGE_NAMES

__all__ = ["SUBJECTS"]

_COMPOSITIONS = ("composition", "compositions", "compositions.apiextensions.crossplane.io")


def _why_package(question: WhyQuestion) -> None:
    from polyver.compositions.commands.functions_on_cluster import why_package

    why_package(question.name, question.context, question.output, explain=question.explain)


def _why_composite(question: WhyQuestion) -> None:
    from polyver.compositions.commands.composites import why_composite

    why_composite(
        question.kind,
        question.name,
        question.namespace,
        question.context,
        question.output,
        explain=question.explain,
    )


def _impact_of_package(question: ImpactQuestion) -> None:
    from polyver.compositions.commands.functions_on_cluster import impact_of_package

    impact_of_package(question.text, _context(question), question.output)


def _impact_of_composition(question: ImpactQuestion) -> None:
    from polyver.compositions.commands.composites import impact_of_composition

    impact_of_composition(question.text, _context(question), question.output)


def _context(question: ImpactQuestion) -> str:
    """Return CONTEXT from `--file cluster:CONTEXT`. Raise Misused for any other value."""
    if len(question.files) > 1 or not question.files[0].startswith(CLUSTER):
        hint = f"omit --file, or write {CLUSTER}CONTEXT"
        fact = "packages and compositions are read from one cluster"
        raise Misused(fact, at="--file", hint=hint)
    return question.files[0].removeprefix(CLUSTER)


SUBJECTS = (
    Subject(names=PACKAGE_NAMES, why=_why_package, impact=_impact_of_package),
    Subject(names=_COMPOSITIONS, impact=_impact_of_composition),
    Subject(why=_why_composite),  # a composite resource has a kind of the user
)
