"""Print the output of commands: tables for people, JSON and YAML for programs, errors on stderr."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from enum import Enum
from typing import Any

from polyver.core import PolyverError


class CannotPrint(PolyverError):
    """Standard output cannot be written, such as when the disk is full."""


class OutputFormat(Enum):
    """The output formats that the option `-o` can name."""

    TABLE = "table"
    JSON = "json"
    YAML = "yaml"


class ManifestFormat(Enum):
    """The output formats that the option `-o` can name in commands that write manifests."""

    YAML = "yaml"
    JSON = "json"


def manifests_text(objects: Sequence[dict[str, Any]], form: ManifestFormat) -> str:
    """Format objects as one string in YAML or JSON that kubectl can read."""
    from polyver.kube.objects import dump_yaml, encode_json

    if form is ManifestFormat.YAML:
        return "---\n".join(map(dump_yaml, objects))
    whole = {"apiVersion": "v1", "kind": "List", "items": [*objects]}
    shown = objects[0] if len(objects) == 1 else whole
    return f"{encode_json(shown, indent=2).decode()}\n"


def emit(data: object, output: OutputFormat) -> None:
    """Print data as JSON or YAML, for a program that reads the output."""
    from polyver.kube.objects import dump_yaml, encode_json

    text = dump_yaml(data) if output is OutputFormat.YAML else encode_json(data, indent=2).decode()
    print_lines(text.rstrip("\n"))


def print_lines(*lines: str) -> None:
    """Print lines unchanged, and flush: a program may read them from a pipe as progress."""
    with printing():
        for line in lines:
            sys.stdout.write(f"{line}\n")
        sys.stdout.flush()


@contextmanager
def printing() -> Iterator[None]:
    """Raise CannotPrint if writing to standard output fails during a `with` block.

    If the reader has closed a pipe, raise BrokenPipeError instead.
    """
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        raise CannotPrint(f"standard output cannot be written: {error.strerror}") from None


def flush() -> None:
    """Flush standard output."""
    with printing():
        sys.stdout.flush()


def print_table(
    columns: Sequence[str], rows: Sequence[Sequence[str]], *, wrapped: str = ""
) -> None:
    """Print a table without borders. On a terminal, use colours and shorten long cells.

    `wrapped` is the only column that becomes narrower on a narrow terminal; by default, all do.
    """
    from rich.console import Console
    from rich.table import Table

    table = Table(box=None, pad_edge=False, padding=(0, 3, 0, 0))
    for column in columns:
        table.add_column(column, overflow="fold", no_wrap=wrapped not in ("", column))
    for row in rows:
        table.add_row(*map(printable, row))
    console = Console(markup=False, highlight=False, emoji=False)
    if console.is_terminal:
        with printing():
            console.print(table)
        return
    plain = Console(markup=False, highlight=False, emoji=False, width=1_000_000)
    with plain.capture() as captured:
        plain.print(table)
    print_lines(*(line.rstrip() for line in captured.get().splitlines()))


def complain(message: str) -> None:
    """Print an error on stderr."""
    _say("error", "bold red", message)


def warn(message: str) -> None:
    """Print a warning on stderr."""
    _say("warning", "yellow", message)


def _say(word: str, style: str, message: str) -> None:
    from rich.console import Console

    # Standard output and standard error may be the same file; earlier output must come first.
    with suppress(OSError):  # the final flush of the command reports the error
        sys.stdout.flush()
    console = Console(stderr=True, markup=False, highlight=False, emoji=False, soft_wrap=True)
    console.print(f"{word}:", style=style, end=" ")
    console.print(printable(message))


def printable(text: str) -> str:
    """Return an untrusted string on one line, with its control characters escaped."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
