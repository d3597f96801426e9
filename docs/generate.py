"""Writes the pages of docs/reference that follow from the code; `--check` only compares."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path

from polyver.capabilities.apis.checking import RULES as CHECKS
from polyver.capabilities.apis.compatibility import RULES, Rule, Severity
from polyver.capabilities.apis.conversion import ANNOTATION
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


def compatibility() -> str:
    tables = "\n\n".join(rules_table(severity, RULES) for severity in Severity)
    return f"""<!-- Written by `make docs` from the rules themselves. -->
# Compatibility of API versions

What objects and clients of one schema or CustomResourceDefinition can no longer do when another
takes its place: `compare_schemas(old, new)` and `compare_definitions(old, new)` of
`polyver.capabilities.apis.compatibility`. The order matters: what is narrower in one direction is
wider in the other.

A finding has a version, a path, a rule, a severity, a fact and an advice.

| severity | meaning |
|---|---|
| breaking | existing objects or clients stop working |
| risky | they may: it depends on what they hold, or cannot be told from the schema |
| safe | nothing stops working; left out unless asked for with `least=Severity.SAFE` |

| path | what it names |
|---|---|
| `spec.size` | a field of the objects |
| `spec.ports[].name` | a field of each item of a list |
| `spec.env{{}}` | each value of a map |
| `spec["a.b"]` | a field whose name would be read as a path |
| `spec.scope`, `spec.versions[v1].served` | a place in the definition |
| empty | the whole object |

{tables}

## What it promises

Without a breaking or risky finding, every object that was right before is right afterwards, and
holds what it held, but for new fields that have a default. Property tests draw schemas, change
them, and look for an object that proves this wrong. What they do not cover:

- Rules in CEL are texts here: a new or changed one is risky, whatever it says, and nobody looks
  whether a rule that stayed still fits fields that changed.
- The real server takes a list where a text with a format should be. Without the format it is
  refused, and nothing is found.
- Fields that a schema does not know, and that were dropped, may be refused once it knows them.
- A name that is gone and a new one with the same schema may be a rename or not: the advice names
  the nearest one.

## Objects that are already there

From Kubernetes 1.30 on, an update may leave a value as it is that the schema has come to refuse,
as the embedded server lets it, too. This helps the objects that are there, not the clients that
write new ones, so it does not make a finding less bad. It does not help where a field is missing
that became required, or where alternatives (`anyOf`, `oneOf`, `allOf`, `not`) fail, unless nothing
at all changes in the object that lacks it, or to which they apply.
"""


def checking() -> str:
    tables = "\n\n".join(rules_table(each, CHECKS) for each in (Severity.BREAKING, Severity.RISKY))
    return f"""<!-- Written by `make docs` from the rules themselves. -->
# What a check finds

`polyver check` and `polyver.testing.check_law` find these in the conversions of a kind;
[how to test conversions](../how-to/test-conversions.md) shows them at work. With `--against`, what
[compatibility](compatibility.md) lists is found as well, beside a file, a git revision or
[a cluster](clusters.md). A finding has a kind, versions, a path, a
rule, a severity, a fact and an advice; one that was made with an object has the smallest that shows
it.

{tables}

## The ledger

For each way from one version to another, each field of the first is

| word | meaning |
|---|---|
| kept | at the same place, with the same value |
| moved | at another place, with the same value |
| transformed | made into another value, by the rules that are named |
| carried | not in the other version: kept in an annotation, put back when the object returns |

What is exact has a value in the other version for each of its own, so that nothing is ever carried.
The annotation is `{ANNOTATION}`.

Where functions convert, it is told as it was seen on the objects that were tried: `observed`.

A client that writes all annotations anew drops what is carried. polyver's admission puts it back,
on the embedded server and where it is installed on a cluster; elsewhere it is lost.
"""


def rules_table(severity: Severity, known: Mapping[str, Rule]) -> str:
    rules = [rule for rule in known.values() if rule.severity is severity]
    rows = [
        f"| `{rule.name}` | {rule.about} | {rule.advice.format(other='the new field')} |"
        for rule in rules
    ]
    head = "| rule | what is found | advice |\n|---|---|---|"
    return f"## {severity.value.capitalize()}\n\n{head}\n" + "\n".join(rows)


PAGES = {
    "reference/checking.md": checking,
    "reference/cli.md": command_line,
    "reference/compatibility.md": compatibility,
}


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
