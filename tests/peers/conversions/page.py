"""Writes the reference page of the corpus, from its files and from the recorded answers of Go."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from typing import Any

from tests.peers.conversions.corpus import MISSING, CorpusKind, Difference, corpus, reordered
from tests.peers.conversions.recorded import losses, losses_after_edits, recording

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
[examples/corpus](../../examples/corpus/README.md) has conversions of {len(kinds)} such kinds for
polyver, with a CustomResourceDefinition and sample objects for each kind. They are written for
polyver, and have the fields that the conversion of a kind changes, and some of the other fields.
Kinds whose versions have the same fields need no conversion code, and are not in the folder.

{shares(kinds)}
{little(kinds)}

`polyver check --conversions examples/corpus` tests the conversions with generated objects.
[Tests of polyver](../../tests/apis/test_corpus.py) compare them with the Go code, which programs in
[tests/peers/conversions](../../tests/peers/conversions) have called with the sample objects:

- Every object is converted to every other version. The results must be equal, except for the
  differences that this page lists with their reasons. A field that Go writes with its zero value is
  equal to a missing field. Annotations in which the Go code or polyver keeps lost fields are
  ignored.
- Every result is converted back. polyver must return the original object. This page lists the
  fields of the objects that the Go code loses or changes.
- Some results are edited before they are converted back. polyver must keep every field that the Go
  code keeps.

## Kinds

{table(kinds)}

| column | meaning |
|---|---|
| needs | {"; ".join(f"*{name}*: {text}" for name, text in MEANING.items())} |
| polyver | the lines of the Conversion, without blank lines and comments, but with its header of \
about ten lines; for functions, the lines of the rules and functions in Python |
| Go | the lines of the methods `ConvertTo` and `ConvertFrom` and of all functions that they call \
in the packages of the API, without blank lines and comments; the lines in generated files follow \
after the plus sign |

The lines of Go show an order of magnitude, and no exact ratio. The Go code also converts fields
that the CustomResourceDefinitions in examples/corpus do not have. A function that several kinds
call counts for each of them. Calls are followed by the name of the function; methods with other
names do not count if they are in another file.

## Differences and losses

{sections(kinds)}
"""


def shares(kinds: Sequence[CorpusKind]) -> str:
    found = [needs(kind) for kind in kinds]
    alone, expressions = found.count(RULES), found.count(EXPRESSIONS)
    others = [title(kind) for kind in kinds if needs(kind) == FUNCTIONS]
    return f"""**{alone + expressions} of the {len(kinds)} kinds need no code.** {alone} kinds need
rules alone; {expressions} kinds also need CEL expressions for some values. A pair of functions in
Python converts one value of the kind {", ".join(others)}."""


def little(kinds: Sequence[CorpusKind]) -> str:
    found = [kind for kind in kinds if len(rules(kind)) <= 3 and written_lines(kind) <= 20]
    names = ", ".join(map(title, found))
    return f"""The versions of {len(found)} kinds differ little, and at most three short rules
convert them: {names}."""


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


def table(kinds: Sequence[CorpusKind]) -> str:
    rows = [row(kind) for kind in kinds]
    head = "| kind | of | versions | needs | rules | polyver | Go |\n|---|---|---|---|---|---|---|"
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


def sections(kinds: Sequence[CorpusKind]) -> str:
    return "\n\n".join(section(kind) for kind in kinds)


def section(kind: CorpusKind) -> str:
    parts = [f"### {title(kind)} ({kind.project})"]
    parts.append(differing(kind))
    parts.append(lost(kind))
    if edits := edited_lists(kind):
        parts.append(edits)
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
    ways: dict[str, dict[str, None]] = {}
    for walk, each in losses(kind):
        way = f"{walk.source} → {walk.to} → {walk.source}"
        ways.setdefault(way, {})[f"{verb(each)} `{each.path}`"] = None
    for walk, each in losses_after_edits(kind):
        fields = ", ".join(f"`{path.replace('/', '.')}`" for path in (walk.change or {})["set"])
        way = f"{walk.source} → {walk.to} → {walk.source}, after an edit of {fields} in {walk.to}"
        ways.setdefault(way, {})[f"{verb(each)} `{each.path}`"] = None
    if not ways:
        return "The Go code loses nothing of these objects."
    rows = [f"- {way}: {', '.join(texts)}" for way, texts in ways.items()]
    order = " Lists that it makes of maps are in a random order." if kind.shuffled else ""
    return "\n".join([f"The Go code loses or changes fields.{order}", "", *rows])


def edited_lists(kind: CorpusKind) -> str:
    """List where polyver loses data if a client edits an item of a list."""
    found = [each for each in kind.checked(examples=0) if each.rule == "edits-lose"]
    if not found:
        return ""
    rows = [f"`{each.path}` ({' → '.join(each.versions)})" for each in found]
    fact = """If a client edits an item of a list in a version that cannot express the whole item,
polyver loses the rest of the item, because nothing identifies the items:"""
    return f"{fact} {', '.join(rows)}."


def verb(difference: Difference) -> str:
    if difference.ours is MISSING:
        return "loses"
    if difference.go is MISSING:
        return "adds"
    return "reorders" if reordered(difference.go, difference.ours) else "changes"
