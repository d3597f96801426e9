"""Converts error messages of `cue` to errors with a position in the application or template."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from polyver.core import PolyverError
from polyver.definitions.cue._patches import Path
from polyver.definitions.rendering import TemplateInput, UnfitParameters
from polyver.languages.values.manifests import dotted

__all__ = ["ASKED", "Names", "problems_of"]

_STEP = r'(?:[\w#$-]+|"(?:[^"\\]|\\.)*")'
_PLACE: Final = re.compile(r"^\s+\S*?:(\d+):(\d+)$")
_PATH: Final = re.compile(rf"^({_STEP}(?:\.{_STEP})*): (?=\S)")
_ALTERNATIVES: Final = re.compile(r"^\d+ errors in empty disjunction$")
_INCOMPLETE: Final = re.compile(r"^incomplete value (.*)$")
_MOST: Final = 20
_THEIRS: Final = "only packages of the CUE standard library can be imported"
ASKED: Final = "polyverAsked"
"""Name of the field that polyver adds to a template, with the queried values."""
Names = Mapping[str, Path]
"""Paths of the queried values in the template, by their names in the query."""


@dataclass(slots=True)
class _Problem:
    path: Path
    text: str
    line: int = 0
    """The first line number in the template that `cue` names for the message; 0 if it names none.
    """


def problems_of(said: str, given: TemplateInput, *, names: Names, lines: int) -> PolyverError:
    """Convert the text that `cue` printed to standard error to one error.

    `lines` is the number of lines of the template. All lines after these were added by polyver, so
    they never occur in the error.
    """
    problems = [*_gathered(_read(said, names, lines))]
    unfit = [_unfit(each, given) for each in problems if each.path[:1] == ("parameter",)]
    if unfit:
        # Most other problems are consequences of invalid parameters.
        return UnfitParameters(sorted(unfit, key=lambda error: (error.at, error.fact))[:_MOST])
    if not problems:
        return PolyverError("cue failed without a message", at=given.at)
    first, more = problems[0], len(problems) - 1
    where = f"{given.at}, template of {given.template}{f':{first.line}' if first.line else ''}"
    path = f"{dotted(first.path)}: " if first.path else ""
    hint = _THEIRS if 'package "vela/' in first.text else f"and {more} more" if more else ""
    return PolyverError(f"{path}{first.text}", at=where, hint=hint)


def _read(said: str, names: Names, lines: int) -> Iterator[_Problem]:
    """Yield each message with its line in the template.

    `cue` prints the positions in the lines that follow the message.
    """
    problem: _Problem | None = None
    for line in said.splitlines():
        place = _PLACE.match(line)
        if place:
            if problem and int(place[1]) <= lines:
                problem.line = problem.line or int(place[1])
        elif line and not line[0].isspace():
            if problem:
                yield problem
            problem = _problem(line.removesuffix(":"), names)
    if problem:
        yield problem


def _problem(line: str, names: Names) -> _Problem:
    found = _PATH.match(f"{line} ")
    if found is None:
        return _Problem((), line)
    steps = [_step(each) for each in re.findall(_STEP, found[1])]
    if len(steps) > 1 and steps[0] == ASKED:
        steps = [*names.get(str(steps[1]), (steps[1],)), *steps[2:]]
    return _Problem(tuple(steps), line[found.end() :])


def _step(text: str) -> str | int:
    if text.startswith('"'):
        return text[1:-1]
    return int(text) if text.isdecimal() else text


def _gathered(problems: Iterable[_Problem]) -> Iterator[_Problem]:
    """Combine the messages about the alternatives of one CUE disjunction into one problem.

    A disjunction is a value with alternatives, such as `1 | 2`.
    """
    whole: _Problem | None = None
    for each in problems:
        if _ALTERNATIVES.match(each.text):
            if whole:
                yield whole
            whole = _Problem(each.path, "no alternative fits")
        elif whole and each.path[: len(whole.path)] == whole.path:
            whole.text += f"{':' if whole.line == 0 else ','} {each.text}"
            whole.line = whole.line or each.line
        else:
            if whole:
                yield whole
            whole = None
            yield each
    if whole:
        yield whole


def _unfit(problem: _Problem, given: TemplateInput) -> PolyverError:
    name = dotted(problem.path[1:])
    at = f"{given.properties}{'' if not name or name.startswith('[') else '.'}{name}"
    what = f"parameter {name}" if name else "the parameters"
    missing = _INCOMPLETE.match(problem.text)
    if missing:
        return PolyverError(
            f"{what} of {given.template} is missing", at=at, hint=f"it is {missing[1]}"
        )
    return PolyverError(f"{what}: {problem.text}", at=at)
