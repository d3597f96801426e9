"""Writes the reference page of the corpus, from its files and from the recorded answers of Go."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any

from tests.peers.conversions.corpus import MISSING, CorpusKind, Difference, corpus, reordered
from tests.peers.conversions.recorded import losses, recording

EXPRESSIONS = "expressions"
RULES = "rules"
FUNCTIONS = "functions"
MEANING = {
    RULES: "rules alone",
    EXPRESSIONS: "rules, and CEL expressions for some values",
    FUNCTIONS: "functions in Python for some values",
}


def page() -> str:
    kinds = corpus()
    return f"""<!-- Written by `make docs` from examples/corpus and recorded answers of Go code. -->
# Public kinds converted by rules

Many projects convert the API versions of their kinds with Go code of their own. The folder
[examples/corpus](../../examples/corpus) has conversions of {len(kinds)} such kinds for polyver. We wrote
these conversions, the CustomResourceDefinitions and the objects ourselves. They have the fields that
the conversion of a kind changes, and some of the other fields. To test all of them, run
`polyver check --conversions examples/corpus`.

{shares(kinds)} {little(kinds)}
Kinds whose versions have the same fields need no conversion code, and are not in the corpus.

For each kind, a program in Go calls the conversion functions of the project with
our objects, and [our tests](../../tests/apis/test_corpus.py) compare the results with those of
polyver:

- Every object is converted to every other version. The results must be equal, except for the
  differences that this page lists with their reasons. A field that Go writes with its zero value is
  equal to a missing field. Annotations in which the Go code or polyver keeps lost fields are
  ignored.
- Every result is converted back. polyver must return the original object. This page lists what
  the Go code loses or changes.
- Some results are edited before they are converted back. polyver must keep every field
  that the Go code keeps.

## Kinds

{table(kinds)}

- **needs**: {"; ".join(f"*{name}*: {text}" for name, text in MEANING.items())}.
- **ours**: the lines of the Conversion, without blank lines and comments, but with its header of
  about ten lines; or the lines of the rules and functions in Python.
- **Go**: the lines of the methods `ConvertTo` and `ConvertFrom`, and of all functions in the packages
  of the API that they call, without blank lines and comments. Lines in generated files are counted
  separately, after the plus sign. A function that several kinds use counts for each of them. Methods
  with other names, in other files, do not count. The Go code also converts fields that our
  CustomResourceDefinitions do not have. So the numbers show an order of magnitude, and no exact
  ratio.

## Differences and losses

{sections(kinds)}
"""


def shares(kinds: tuple[CorpusKind, ...]) -> str:
    found = [needs(kind) for kind in kinds]
    alone, expressions = found.count(RULES), found.count(EXPRESSIONS)
    functions = found.count(FUNCTIONS)
    text = f"""{alone + expressions} of the {len(kinds)} kinds need no code: {alone} need rules alone, and \
{expressions} also need CEL expressions for some values."""
    if functions:
        text += f" {functions} need functions in Python for some values."
    return text


def little(kinds: tuple[CorpusKind, ...]) -> str:
    names = [title(kind) for kind in kinds if len(rules(kind)) <= 3]
    return f"""{len(names)} kinds ({", ".join(names)}) have at most three rules, because their \
versions differ little."""


def needs(kind: CorpusKind) -> str:
    if kind.is_python:
        return FUNCTIONS
    return EXPRESSIONS if "cel" in rules(kind) else RULES


def rules(kind: CorpusKind) -> list[str]:
    """Return the names of all rules of a kind, also of those inside of other rules."""
    if kind.is_python:
        calls = (node for node in ast.walk(ast.parse(kind.path.read_text())))
        names = [node.attr for node in calls if isinstance(node, ast.Attribute)]
        return [name for name in names if name in RULE_NAMES]
    return [name for edge in kind.conversion["spec"]["edges"] for name in _rules(edge.get("rules"))]


RULE_NAMES = {"const", "convert", "each", "move", "when"}
"""The rules that the kinds in Python call."""


def _rules(value: Any) -> Iterator[str]:
    for rule in value or ():
        [(name, content)] = rule.items()
        if name == "reverse":
            yield from _rules([content])
            continue
        yield name
        yield from _rules(content.get("rules"))
        for case in [*content.get("cases", ()), content.get("otherwise", {})]:
            yield from _rules(case.get("rules"))


def table(kinds: tuple[CorpusKind, ...]) -> str:
    rows = [row(kind) for kind in kinds]
    head = "| kind | of | versions | needs | rules | ours | Go |\n|---|---|---|---|---|---|---|"
    return "\n".join([head, *rows])


def row(kind: CorpusKind) -> str:
    link = f"[{title(kind)}](../../examples/corpus/{kind.path.name})"
    count = len(rules(kind))
    lines = written_lines(kind)
    versions = ", ".join(kind.versions)
    return (
        f"| {link} | {kind.project} | {versions} | {needs(kind)} | {count} | {lines} |"
        f" {go_lines(kind)} |"
    )


def title(kind: CorpusKind) -> str:
    return kind.kind


def written_lines(kind: CorpusKind) -> int:
    text = kind.path.read_text()
    if kind.is_python:
        _, _, text = text.partition("\nData =")
    else:
        text, _, _ = text.partition("\n---\n")
    lines = (line.strip() for line in text.splitlines())
    return len([line for line in lines if line and not line.startswith("#")])


def go_lines(kind: CorpusKind) -> str:
    found = recording()["lines"].get(kind.name)
    if found is None:
        return ""
    generated = f" + {found['generated']}" if found["generated"] else ""
    return f"{found['written']}{generated}"


def sections(kinds: tuple[CorpusKind, ...]) -> str:
    return "\n\n".join(section(kind) for kind in kinds)


def section(kind: CorpusKind) -> str:
    parts = [f"### {title(kind)} ({kind.project})"]
    parts.append(differing(kind))
    parts.append(lost(kind))
    return "\n\n".join(parts)


def differing(kind: CorpusKind) -> str:
    if not kind.program:
        return "The Go code was not run."
    if not kind.differences:
        return "polyver's results equal those of the Go code."
    rows = [
        f"- `{each.path}`{f' in {each.to}' if each.to else ''}: {each.reason}"
        for each in kind.differences
    ]
    return "\n".join(["Results that differ:", "", *rows])


def lost(kind: CorpusKind) -> str:
    """List the fields that the Go code loses or changes between two versions, and back."""
    found: dict[tuple[str, str, str], None] = {}
    for walk, each in losses(kind):
        found[walk.source, walk.to, f"{verb(each)} `{each.path}`"] = None
    if not found:
        return "The Go code loses nothing of our objects."
    ways: dict[tuple[str, str], list[str]] = {}
    for source, to, text in found:
        ways.setdefault((source, to), []).append(text)
    rows = [f"- {source} → {to} → {source}: {', '.join(texts)}" for (source, to), texts in ways.items()]
    order = f" Lists that it makes of maps are in a random order." if kind.shuffled else ""
    return "\n".join([f"The Go code loses or changes fields of our objects.{order}", "", *rows])


def verb(difference: Difference) -> str:
    if difference.ours is MISSING:
        return "loses"
    if difference.go is MISSING:
        return "adds"
    return "reorders" if reordered(difference.go, difference.ours) else "changes"
