"""The exit codes of all commands, and the errors that cause them."""

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
    """The user gave a name that does not exist in the files or on the cluster."""


class Misused(PolyverError):
    """Options or arguments are invalid, or contradict each other."""


class UnreadableInput(PolyverError):
    """A file or standard input cannot be read."""


class ProblemsFound(PolyverError):
    """A check found problems."""


class RequestRefused(PolyverError):
    """A command refused to do what the user requested, because a rule forbids it."""


class RunFailed(PolyverError):
    """The pipeline of a composition failed."""


class OutOfDate(PolyverError):
    """Existing files differ from the content that the command would write."""


def code(error: PolyverError) -> int:
    """Return the exit code for an error.

    Errors of a type that is not listed here get the exit code for unreadable input.
    """
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
