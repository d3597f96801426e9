"""Find the line of code that raised an exception."""

from __future__ import annotations

import traceback
from pathlib import Path
from types import CodeType

__all__ = ["place_of"]


def place_of(error: BaseException, code: CodeType | None = None) -> str:
    """Return the file, line and function in which an exception was raised.

    With `code`, return the innermost line in the file of that code, if there is one. The author of
    the code knows that line, and may not know the lines of a library that the code called.

    >>> try:
    ...     1 / 0
    ... except ZeroDivisionError as error:
    ...     print(place_of(error).partition(":")[2])
    2 in <module>
    """
    frames = traceback.extract_tb(error.__traceback__)
    if not frames:
        return ""
    theirs = [each for each in frames if code is not None and each.filename == code.co_filename]
    found = (theirs or frames)[-1]
    return f"{Path(found.filename).name}:{found.lineno} in {found.name}"
