"""Choose the capability that explains an object, or that lists the users of a release."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from polyver.capability.capability import Capability
from polyver.capability.subjects import ImpactQuestion, Subject, WhyQuestion

__all__ = ["explain_object", "list_users"]


def explain_object(capabilities: Sequence[Capability], question: WhyQuestion) -> None:
    """Print the versions that an object uses, and why.

    The question goes to the first capability that knows the kind of the object.
    """
    for subject in _subjects(capabilities, question.kind):
        if subject.why is not None:
            subject.why(question)
            return


def list_users(capabilities: Sequence[Capability], question: ImpactQuestion) -> None:
    """Print the users of a release.

    The first capability that knows the object in the question, such as a package, answers it.
    """
    for subject in _subjects(capabilities, question.text.partition("/")[0]):
        if subject.impact is not None:
            subject.impact(question)
            return


def _subjects(capabilities: Sequence[Capability], kind: str) -> Iterator[Subject]:
    """Yield the subjects that have the name `kind`, and then the subjects without names.

    A subject is one type of objects that a capability explains. A subject without names answers for
    all kinds that no other subject names.
    """
    subjects = [subject for each in capabilities for subject in each.subjects()]
    yield from (each for each in subjects if kind.lower() in each.names)
    yield from (each for each in subjects if not each.names)
