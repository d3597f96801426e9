"""Answers `polyver why app/NAME`, the question about an application."""

from __future__ import annotations

from polyver.capability.subjects import Subject, WhyQuestion

__all__ = ["SUBJECTS"]


def _why(question: WhyQuestion) -> None:
    from polyver.definitions.commands.applications import why_application

    why_application(
        question.name,
        question.namespace,
        question.context,
        question.output,
        explain=question.explain,
    )


SUBJECTS = (
    Subject(
        names=("app", "apps", "application", "applications", "applications.core.oam.dev"), why=_why
    ),
)
