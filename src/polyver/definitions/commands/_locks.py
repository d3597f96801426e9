"""Lock files: read, and written atomically."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from polyver.cli.exit_codes import UnreadableInput
from polyver.cli.file_writes import File, write_all
from polyver.cli.files import read_manifests
from polyver.cli.output import print_lines, printing
from polyver.definitions.locking import Lock, read_lock
from polyver.kube.objects import dump_yaml

__all__ = ["lock_in", "write_lock"]


def lock_in(file: str) -> Lock:
    """Read the lock in a file."""
    documents = read_manifests([file])
    if len(documents) != 1:
        fact = f"{file} contains {len(documents)} documents, but a lock is one document"
        raise UnreadableInput(fact, hint="create it with polyver lock")
    return read_lock(documents[0])


def write_lock(data: dict[str, Any], output: str) -> None:
    """Write a lock to a file, or to standard output."""
    text = dump_yaml(data)
    if output == "-":
        with printing():
            sys.stdout.write(text)
        return
    path = Path(output)
    write_all([File(path, text, "" if path.exists() else None)])
    print_lines(f"wrote {output}")
