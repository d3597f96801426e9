"""Convert objects with the kinds of another git revision of a project, in a separate process.

The process reads the kinds from the files of that revision, and writes a description of the kinds
as one line to standard output. Then it reads requests from standard input, one per line: an object
and a target version. For each request it writes one line: the converted object, or an error.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from polyver.apis.trials import CheckedKind, EarlierConversions
from polyver.cli.exit_codes import UnreadableInput
from polyver.core.plain import Object

__all__ = ["Key", "answer", "behaviour_in"]

Key = tuple[str, str]
_RUN = "import sys; from polyver.apis.commands._behaviour import answer; answer(sys.argv[1:])"


class NotConvertedThen(Exception):
    """Raised if a conversion fails in the earlier revision; the message is that of the failure."""


@contextmanager
def behaviour_in(
    folder: Path, names: Sequence[str], revision: str
) -> Iterator[dict[Key, EarlierConversions]]:
    """Run a process that converts with the kinds in a folder, until the `with` block ends.

    Yield the conversions of these kinds, by group and kind. Each call of a conversion sends a
    request to the process.
    """
    with subprocess.Popen(  # noqa: S603 - this Python
        [sys.executable, "-c", _RUN, *names],
        cwd=folder,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as process:
        try:
            yield _described(process, revision)
        finally:
            assert process.stdin
            process.stdin.close()


def _described(process: subprocess.Popen[str], revision: str) -> dict[Key, EarlierConversions]:
    def convert(key: Key, obj: Object, version: str) -> tuple[Object, Object]:
        made = _asked(process, {"kind": key, "object": obj, "to": version}, revision)
        if "error" in made:
            raise NotConvertedThen(made["error"])
        return made["stored"], made["visible"]

    def before(each: Object) -> EarlierConversions:
        key = (each["group"], each["kind"])
        versions = tuple(each["versions"])
        return EarlierConversions(versions, each["schemas"], lambda obj, to: convert(key, obj, to))

    found = _asked(process, None, revision)
    return {(each["group"], each["kind"]): before(each) for each in found["kinds"]}


def _asked(process: subprocess.Popen[str], question: Object | None, revision: str) -> Object:
    assert process.stdin
    assert process.stdout
    if question is not None:
        process.stdin.write(json.dumps(question) + "\n")
        process.stdin.flush()
    line = process.stdout.readline()
    if not line:
        raise UnreadableInput(f"the conversions of {revision} ended during the comparison")
    found: Object = json.loads(line)
    return found


# The functions below run in the other process.


def answer(names: Sequence[str]) -> None:
    """Read requests from standard input, and write one answer to standard output for each.

    If the code of the kinds prints text, the text goes to standard error.
    """
    from polyver.apis.commands.kinds import load_kinds

    with os.fdopen(os.dup(sys.stdout.fileno()), "w") as out:
        os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
        subjects = [CheckedKind.of(kind) for kind in load_kinds(names)]
        known = {(each.converter.group, each.converter.kind): each for each in subjects}
        print(
            json.dumps({"kinds": [_description(each) for each in subjects]}), file=out, flush=True
        )
        for line in sys.stdin:
            asked = json.loads(line)
            told = _converted(known[tuple(asked["kind"])], asked["object"], asked["to"])
            print(json.dumps(told), file=out, flush=True)


def _description(subject: CheckedKind) -> Object:
    converter = subject.converter
    return {
        "group": converter.group,
        "kind": converter.kind,
        "versions": list(converter.versions),
        "schemas": dict(subject.schemas),
    }


def _converted(subject: CheckedKind, obj: Object, version: str) -> Object:
    try:
        stored, visible = EarlierConversions.of(subject).convert(obj, version)
    except Exception as error:  # users' code may raise anything
        return {"error": f"{type(error).__name__}: {error}"}
    return {"stored": stored, "visible": visible}
