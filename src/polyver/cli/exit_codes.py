"""What the exit codes of every command mean."""

from __future__ import annotations

from polyver.core import InvalidVersion, NoMatch, PolyverError

OK, NO, USAGE, INPUT, BUG, INTERRUPTED = 0, 1, 2, 3, 70, 130

MEANING = {
    OK: "done",
    NO: "the request is valid, but the result is negative: no match, a failed check, or a refused "
    "change",
    USAGE: "the command line is invalid",
    INPUT: "a file or standard input cannot be read, or output cannot be written; the message says "
    "which",
    BUG: "a bug in polyver; POLYVER_DEBUG=1 shows its traceback",
    INTERRUPTED: "interrupted",
}


class UnknownName(PolyverError):
    """A name that is in none of the files."""


class Misused(PolyverError):
    """Options or arguments that do not go together."""


class UnreadableInput(PolyverError):
    """A file, or standard input, that cannot be read."""


class ProblemsFound(PolyverError):
    """Something that a check found."""


class RequestRefused(PolyverError):
    """Something that was asked for and would break a rule."""


class RunFailed(PolyverError):
    """Something that was run and came to nothing."""


class OutOfDate(PolyverError):
    """Files that are not what they would be if they were written now."""


def code(error: PolyverError) -> int:
    """The exit code for an error; errors of other kinds come from what was read."""
    match error:
        case (
            RunFailed()
            | ProblemsFound()
            | NoMatch()
            | OutOfDate()
            | RequestRefused()
            | UnknownName()
        ):
            return NO
        case InvalidVersion() | Misused():
            return USAGE
        case _:
            return INPUT
