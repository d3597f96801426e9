"""Ask the Go code of other projects to convert the objects of the corpus, and keep the results.

`make record` runs this; tests compare with the recording and need no Go.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from typing import Any

from tests.peers.conversions.corpus import (
    HERE,
    RECORDED,
    CorpusKind,
    Object,
    Walked,
    corpus,
    edited,
    sorted_lists,
    version_of,
    walks,
)


def main() -> int:
    kinds = [kind for kind in corpus() if kind.program]
    try:
        recorded = {name: walked(name, of(kinds, name)) for name in programs(kinds)}
        counted = lines(kinds)
    except (OSError, subprocess.CalledProcessError) as error:
        sys.stderr.write(f"the peers could not be asked: {error}; Go is needed\n")
        return 1
    answers = sorted(
        (row for rows in recorded.values() for row in rows),
        key=lambda row: (row["kind"], row["object"], row["to"], row.get("edit", -1)),
    )
    rows = [json.dumps(each, ensure_ascii=False, sort_keys=True) for each in answers]
    text = ",\n".join(rows)
    RECORDED.write_text(f'{{"lines": {json.dumps(counted, indent=1)},\n"walks": [\n{text}\n]}}\n')
    return 0


def programs(kinds: Sequence[CorpusKind]) -> list[str]:
    return sorted({kind.program for kind in kinds})


def of(kinds: Sequence[CorpusKind], program: str) -> list[CorpusKind]:
    return [kind for kind in kinds if kind.program == program]


def walked(program: str, kinds: Sequence[CorpusKind]) -> list[Object]:
    """Let a Go program walk all walks of its kinds: there, edited, and back."""
    planned = [(kind, walk, obj) for kind in kinds for walk, obj in walks(kind)]
    views = ask(program, [(kind, obj, walk.to) for kind, walk, obj in planned])
    found: list[Walked] = []
    for (kind, walk, _), view in zip(planned, views, strict=True):
        change = None if walk.edit is None else kind.edits[walk.edit]
        found.append(Walked(edited(view, change) if change else view))
    backs = ask(
        program,
        [
            (kind, each.view, version_of(obj))
            for (kind, _, obj), each in zip(planned, found, strict=True)
        ],
    )
    rows = []
    for (kind, walk, _), each, back in zip(planned, found, backs, strict=True):
        row: Object = {"kind": walk.kind, "object": walk.object, "to": walk.to}
        row |= {} if walk.edit is None else {"edit": walk.edit}
        # Sorted, so that a recording changes only with the Go code.
        made = {"view": each.view, "back": back}
        rows.append(row | sorted_lists(made, kind.shuffled))
    return rows


def ask(program: str, asked: Sequence[tuple[CorpusKind, Object, str]]) -> list[Object]:
    questions = [{"kind": kind.kind, "object": obj, "to": to} for kind, obj, to in asked]
    answers = go(["run", "."], program, json.dumps(questions))
    for (kind, obj, to), answer in zip(asked, answers, strict=True):
        if "error" in answer:
            name = obj["metadata"]["name"]
            raise SystemExit(f"{kind.name} {name} to {to}: {answer['error']}")
    return [answer["object"] for answer in answers]


def lines(kinds: Sequence[CorpusKind]) -> Any:
    """Count the lines of Go that convert each kind."""
    asked = {}
    for kind in kinds:
        listed = go(["list", "-m", "-json", kind.module], kind.program, "")
        folders = [f"{listed['Dir']}/{folder}" for folder in kind.folders]
        asked[kind.name] = {"folders": folders, "type": kind.kind}
    return go(["run", "."], "count", json.dumps(asked))


def go(arguments: Sequence[str], program: str, text: str) -> Any:
    command = ["go", *arguments]
    made = subprocess.run(command, cwd=HERE / program, input=text, text=True, stdout=-1, check=True)
    return json.loads(made.stdout)


if __name__ == "__main__":
    sys.exit(main())
