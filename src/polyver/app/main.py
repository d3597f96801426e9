"""The main function of the CLI: prints each error as one line, and returns the exit code."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path

from cyclopts import App, CycloptsError

from polyver import __version__
from polyver.app.capabilities import CAPABILITIES
from polyver.cli import exit_codes as _exit
from polyver.cli.output import CannotPrint, complain, flush
from polyver.core import PolyverError

app = App(
    name="polyver",
    version=__version__,
    version_flags=["--version"],
    help_format="markdown",
    suppress_keyboard_interrupt=False,
    help="""Run many versions of APIs, functions, definitions and compositions side by side.

Every command has --help with an example. Exit codes are listed in docs/reference/cli.md.""",
)
# The commands are given as names, not as imports: a command is loaded when it runs.
_COMMANDS = {
    **{name: f"polyver.app.{name}:app" for name in ("install", "run", "serve", "uninstall", "up")},
    **{
        name: f"polyver.app.commands.{name}:app"
        for name in ("impact", "plan", "resolve", "retire", "versions", "why")
    },
    **{name: at for each in CAPABILITIES for name, at in each.commands.items()},
}
for _name, _at in sorted(_COMMANDS.items()):
    app.command(_at, name=_name)


def load_all() -> None:
    """Import the modules of all commands, because `polyver --help` lists all commands."""
    for name in app:
        app[name]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code. Errors are printed without a traceback."""
    _prepare_streams()
    tokens = sys.argv[1:] if arguments is None else list(arguments)
    code = _exit.OK
    try:
        if tokens[:1] in ([], ["--help"], ["-h"]):
            load_all()
        app(tokens, exit_on_error=False, print_error=False, result_action="return_value")
        flush()
    except CycloptsError as error:
        complain(_usage(error))
        code = _exit.USAGE
    except PolyverError as error:
        complain(str(error))
        code = _exit.code(error)
        if isinstance(error, CannotPrint):
            _abandon_output()
    except KeyboardInterrupt:
        code = _exit.INTERRUPTED
    except BrokenPipeError:
        # The reader has closed the pipe, as in `polyver … | head`.
        _abandon_output()
    except OSError as error:
        complain(_refusal(error))
        code = _exit.INPUT
    except Exception as error:
        if os.environ.get("POLYVER_DEBUG"):
            raise
        complain(f"this is a bug in polyver: {type(error).__name__}: {error}")
        complain("run it again with POLYVER_DEBUG=1 for the details, and please report them")
        code = _exit.BUG
    return code


def _prepare_streams() -> None:
    """Make stdout and stderr accept any string; replace a closed stream by the null device."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, Path(os.devnull).open("w"))  # noqa: SIM115 - until the end
        else:
            stream.reconfigure(errors="backslashreplace")


def _abandon_output() -> None:
    """Redirect stdout to the null device, so that Python's flush at exit does not fail."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _refusal(error: OSError) -> str:
    """Return the message of an OSError, with the name of the file if the error has one."""
    reason = error.strerror or str(error)
    return f"{error.filename}: {reason}" if error.filename else f"the system refused: {reason}"


def _usage(error: CycloptsError) -> str:
    command = " ".join(["polyver", *(error.command_chain or ())])
    return f"{str(error).strip()} Try '{command} --help'."
