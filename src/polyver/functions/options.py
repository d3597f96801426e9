"""The command-line options of the capability functions."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated

from cyclopts import Parameter

from polyver.cli.options import read_seconds
from polyver.functions.settings import DEFAULT_TIMEOUT, CallSettings, FunctionSettings

__all__ = ["FunctionOptions"]


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class FunctionOptions:
    """The options for functions that blueprints call.

    Attributes
    ----------
    functions
        A .py file or a module that registers functions for blueprints; repeatable. Functions of
        installed Python packages (entry point group polyver.functions) are always loaded.
    catalogue
        A catalogue file, which lists the versions of functions with their stages; repeatable.
    allow_command
        Allow blueprints to call the function Command. It runs programs on the machine, or in the
        container, in which polyver runs. With this option, everyone who may write blueprints can
        run programs there.
    function_timeout
        The maximum duration of each phase of an action, such as 90s, 1m30s or 2h.
    """

    functions: Annotated[list[str] | None, Parameter(negative=())] = None
    catalogue: Annotated[list[str] | None, Parameter(negative=())] = None
    allow_command: Annotated[bool, Parameter(negative=())] = False
    function_timeout: str = DEFAULT_TIMEOUT

    @property
    def given(self) -> str:
        """The names of the options that were set and need this capability, for messages.

        Empty if none of these options was set.
        """
        return "--functions and --catalogue" if self.functions or self.catalogue else ""

    def settings(self, *, enabled: bool, show_traceback: bool) -> FunctionSettings:
        """Check the options and return the settings that they express.

        Load the functions only if `enabled` is True.
        """
        seconds = read_seconds(self.function_timeout, "--function-timeout")
        calls = CallSettings(seconds, frozenset({"command"} if self.allow_command else ()))
        if not enabled:
            return FunctionSettings(None, calls)
        from polyver.functions.loading import load_functions

        named, listed_in = self.functions or (), self.catalogue or ()
        functions = load_functions(named, listed_in, show_traceback=show_traceback)
        return FunctionSettings(functions, calls)

    def arguments(self) -> Iterator[str]:
        """Yield the options as arguments for another command: `--functions`, `backup.py`.

        Options with their default value are left out.
        """
        for option, values in (("--functions", self.functions), ("--catalogue", self.catalogue)):
            for value in values or ():
                yield from (option, value)
        if self.allow_command:
            yield "--allow-command"
        if self.function_timeout != DEFAULT_TIMEOUT:
            yield from ("--function-timeout", self.function_timeout)
