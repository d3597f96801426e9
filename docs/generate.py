"""Writes the pages of docs/reference that follow from the code; `--check` only compares."""

from __future__ import annotations

import sys
from pathlib import Path

from polyver.cli._app import app, load_all
from polyver.cli._exit import MEANING

HERE = Path(__file__).parent


def command_line() -> str:
    load_all()
    codes = "\n".join(f"| {code} | {meaning} |" for code, meaning in MEANING.items())
    return f"""<!-- Written by `make docs` from the commands themselves. -->
{app.generate_docs().rstrip()}

## Exit codes

| code | meaning |
|---|---|
{codes}

Errors and warnings go to standard error, one line each: the fact, the place in parentheses, and
what to do next.
"""


PAGES = {"reference/cli.md": command_line}


def main() -> int:
    stale = [name for name, write in PAGES.items() if read(HERE / name) != write()]
    if "--check" in sys.argv[1:]:
        for name in stale:
            print(f"docs/{name} is out of date: run `make docs`", file=sys.stderr)
        return 1 if stale else 0
    for name in stale:
        (HERE / name).write_text(PAGES[name]())
        print(f"wrote docs/{name}")
    return 0


def read(path: Path) -> str:
    return path.read_text() if path.exists() else ""


if __name__ == "__main__":
    sys.exit(main())
