"""One way to print: tables for people, JSON and YAML for programs, complaints on stderr."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from enum import Enum
from typing import Any

from polyver.core import PolyverError


class CannotPrint(PolyverError):
    """Standard output that takes nothing more, as on a full disk."""


class OutputFormat(Enum):
    """What `-o` takes."""

    TABLE = "table"
    JSON = "json"
    YAML = "yaml"


class ManifestFormat(Enum):
    """What `-o` takes where manifests are written, which are no tables."""

    YAML = "yaml"
    JSON = "json"


def manifests_text(objects: Sequence[dict[str, Any]], form: ManifestFormat) -> str:
    """Objects as one text that kubectl reads."""
    from polyver.kube.objects import dump_yaml, encode_json

    if form is ManifestFormat.YAML:
        return "---\n".join(map(dump_yaml, objects))
    whole = {"apiVersion": "v1", "kind": "List", "items": [*objects]}
    shown = objects[0] if len(objects) == 1 else whole
    return f"{encode_json(shown, indent=2).decode()}\n"


def emit(data: object, output: OutputFormat) -> None:
    """Print data for a program."""
    from polyver.kube.objects import dump_yaml, encode_json

    text = dump_yaml(data) if output is OutputFormat.YAML else encode_json(data, indent=2).decode()
    print_lines(text.rstrip("\n"))


def print_lines(*lines: str) -> None:
    """Print lines as they are, at once: some are progress, and standard output may be a pipe."""
    with printing():
        for line in lines:
            sys.stdout.write(f"{line}\n")
        sys.stdout.flush()


@contextmanager
def printing() -> Iterator[None]:
    """Turn a refusal of standard output into CannotPrint, unless the reader has gone."""
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        raise CannotPrint(f"standard output cannot be written: {error.strerror}") from None


def flush() -> None:
    """Have everything printed that was written."""
    with printing():
        sys.stdout.flush()


def print_table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a table without borders; away from a terminal it is neither coloured nor cut."""
    from rich.console import Console
    from rich.table import Table

    table = Table(box=None, pad_edge=False, padding=(0, 3, 0, 0))
    for column in columns:
        table.add_column(column, overflow="fold")
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
    """Say on stderr what went wrong."""
    _say("error", "bold red", message)


def warn(message: str) -> None:
    """Say on stderr what the user should know."""
    _say("warning", "yellow", message)


def _say(word: str, style: str, message: str) -> None:
    from rich.console import Console

    # Where both go to one file, what was printed before stands before.
    with suppress(OSError):  # nobody reads it any more, and the end of the command says so
        sys.stdout.flush()
    console = Console(stderr=True, markup=False, highlight=False, emoji=False, soft_wrap=True)
    console.print(f"{word}:", style=style, end=" ")
    console.print(printable(message))


def printable(text: str) -> str:
    """Text from anywhere in one line that a terminal takes for nothing but text."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
