"""Writes the pages that follow from the code or from measurements; `--check` only compares."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from polyver.apis.checking import RULES as CHECKS
from polyver.apis.compatibility import RULES, FindingRule, FindingSeverity
from polyver.apis.conversion import ANNOTATION
from polyver.app.main import app, load_all
from polyver.cli.exit_codes import MEANING
from polyver.languages.gotemplate import ABSENT, FUNCTIONS, RenderLimits
from polyver.languages.gotemplate._budget import DEEPEST
from polyver.languages.gotemplate._functions import TemplateFunction
from polyver.languages.gotemplate._methods import METHODS
from polyver.languages.gotemplate._values import Version

if TYPE_CHECKING:
    from bench.report import Report

HERE = Path(__file__).parent
sys.path.append(str(HERE.parent))  # where bench is, which nobody installs


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
    tables = "\n\n".join(rules_table(severity, RULES) for severity in FindingSeverity)
    return f"""<!-- Written by `make docs` from the rules themselves. -->
# Compatibility of API versions

What objects and clients of one schema or CustomResourceDefinition can no longer do when another
takes its place: `compare_schemas(old, new)` and `compare_definitions(old, new)` of
`polyver.apis.compatibility`. The order matters: what is narrower in one direction is
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
    tables = "\n\n".join(
        rules_table(each, CHECKS) for each in (FindingSeverity.BREAKING, FindingSeverity.RISKY)
    )
    return f"""<!-- Written by `make docs` from the rules themselves. -->
# Findings of a check

`polyver check` and `polyver.testing.check_law` report these findings for the conversions of a kind;
[how to test conversions](../how-to/test-conversions.md) shows examples. With `--against`, the
command also reports the findings of [compatibility](compatibility.md), compared with a file, a git
revision or [a cluster](clusters.md), and each field that the conversions show differently than
before. A finding has a kind, versions, a path, a rule, a severity, a fact and an advice; a finding
from a generated object has the smallest object that reproduces it.

{tables}

## The ledger

For each pair of versions, in both directions, the check prints how each field of the first version
is converted:

| word | meaning |
|---|---|
| kept | same path, same value |
| moved | another path, same value |
| transformed | another value, made by the rules that are named |
| preserved (`carried` in JSON) | not in the other version: kept in an annotation, and restored |

An exact conversion maps every value to one of the other version, so nothing needs to be preserved.
The annotation is `{ANNOTATION}`.

If functions convert, the result is what was observed on the generated objects: `observed`.

A client that replaces all annotations removes the preserved fields. The admission webhook of
polyver restores them, on the embedded server and where it is installed on a cluster; elsewhere they
are lost.
"""


def rules_table(severity: FindingSeverity, known: Mapping[str, FindingRule]) -> str:
    rules = [rule for rule in known.values() if rule.severity is severity]
    rows = [
        f"| `{rule.name}` | {rule.about} | {rule.advice.format(other='the new field')} |"
        for rule in rules
    ]
    head = "| rule | finding | advice |\n|---|---|---|"
    return f"## {severity.value.capitalize()}\n\n{head}\n" + "\n".join(rows)


def templates() -> str:
    limits = RenderLimits()
    moments, versions = (
        ", ".join(map(signature, table.functions.values())) for table in METHODS.values()
    )
    assert list(METHODS)[1] is Version
    return f"""<!-- Written by `make docs` from the functions themselves. -->
# Templates

Blueprints and component definitions are written in Go's template language, with the functions of
[sprig](https://masterminds.github.io/sprig/) and the few that Helm has beside them. A template
that Go renders, renders here to the same text, or is refused; what is different is listed below.

```python
from polyver.languages.gotemplate import compile_template, render_value

greeting = compile_template("Hello {{{{ .name | title }}}}!", name="greeting")
assert greeting.render({{"name": "ann"}}) == "Hello Ann!"

# Each text inside of a value is a template; all else stays as it is.
assert render_value({{"pods": ["{{{{ .pod }}}}"], "count": 2}}, {{"pod": "a"}}) == {{
    "pods": ["a"],
    "count": 2,
}}
```

`compile_template` raises `InvalidTemplate`, and `render` raises `RenderFailed`. Both tell the fact,
the name, line and column, the action around the place, and what to do next:

```text
.Options has no entry for key "pth" (bp:2:13, near {{{{ .Options.pth }}}}); did you mean path?
```

## The language

All of it: actions and trimming (`{{{{-`, `-}}}}`), comments, pipelines, variables, `if`, `with`,
`range` (lists, mappings by their keys, whole numbers), `else if`, `else with`, `break`, `continue`,
`define`, `template`, `block`, parentheses, fields of anything that has some. Complex numbers are
refused. `include NAME DATA`, from Helm, is `template` as a value.

A field that is not there is an error. `missing="default"` makes it nothing, which is written as
`<no value>`, and `missing="zero"` what is empty, as the option `missingkey` does in Go.

## Values

Templates see plain data alone, and a copy of it, so that `set` changes nothing outside.

| data | in Go |
|---|---|
| whole number | `int64`; past 64 bits `float64` |
| number with a point | `float64` |
| text | `string`: what counts characters counts the bytes of UTF-8 |
| true, false | `bool` |
| list | `[]interface {{}}` |
| mapping | `map[string]interface {{}}`; keys are texts |
| null | `nil` |
| moment (`datetime`) | `time.Time` |

A whole number that is written in a template is an `int`. As in Go, `eq .size 3` compares it with
data, `eq .ratio 3` refuses to compare a float with it, and `until .size` asks for
`until (int .size)`. What `fromJson` reads is `float64`.

## Functions

With the types of their arguments; `…` may come any number of times.

{function_tables()}

A moment answers {moments}; a version answers {versions}.

`functions={{"now": clock}}` gives a template more of them. They get plain data and return plain
data; a `PolyverError`, `ValueError` or `TypeError` of theirs is told with the place of the call.

## What is left out

| functions | why, and what instead |
|---|---|
{absent_rows()}

## What is different from Go

- `keys` and `values` are sorted by key. In Go their order is left to chance.
- `date` and the like take a text in RFC 3339 as the moment that it names, and refuse what is no
  date. In Go the present time takes their place.
- The local zone is UTC. Moments have microseconds, and years from 1 to 9999; a year that a layout
  does not say is 1. `durationRound` of a moment is refused.
- Where `printf` would show the inside of a moment or a version, as `%d` does, it refuses.
- What is not UTF-8 at the end is written as U+FFFD, one for each byte.
- `toYaml` writes `"<<"` in quotation marks, so that it stays a text.
- `fromYaml` refuses what is no YAML, where Helm returns a mapping with the error, and reads YAML
  as kubectl does.
- `call` finds nothing to call, because data has no functions.

## Limits

Each has an error that names it. `render(data, limits=Limits(steps=…, size=…))` sets the first two.

| what | most |
|---|---|
| steps of one rendering: actions, calls, turns; what is large counts more | {limits.steps} |
| characters of the output, and of each text on the way | {limits.size} |
| levels of blocks and templates inside of each other, of parentheses, of values | {DEEPEST} |
| width and precision in `printf` | 1000000 |
| characters of a regular expression | 1000 |

Regular expressions are those of Go, and take no more time than the text is long.

## How it was compared

What Go 1.26 with sprig 3.3 says to some 990 templates is recorded and
compared with: the output, or whether reading or rendering fails, and in which line. They call every
function; half of them are drawn by chance. `make record` asks again.
"""


_SHORT = {
    "map[string]interface {}": "mapping",
    "time.Time": "moment",
    "*semver.Version": "version",
    "string": "text",
    "float64": "float",
}


def signature(function: TemplateFunction) -> str:
    words = [_SHORT.get(word, word) for word in function.takes]
    shown = " ".join([function.name, *words]) + ("…" if function.variadic else "")
    return f"`{shown}`"


def function_tables() -> str:
    groups: dict[str, list[str]] = {}
    for function in FUNCTIONS.values():
        groups.setdefault(function.group, []).append(signature(function))
    rows = [f"| {group} | {', '.join(sorted(shown))} |" for group, shown in groups.items()]
    return "| for | functions |\n|---|---|\n" + "\n".join(rows)


def absent_rows() -> str:
    reasons: dict[str, list[str]] = {}
    for name, reason in ABSENT.items():
        reasons.setdefault(reason, []).append(f"`{name}`")
    return "\n".join(f"| {', '.join(names)} | {reason} |" for reason, names in reasons.items())


FIGURES = "<!-- Written by `make docs` from bench/results.json. -->\n"
END = "<!-- End of the figures. -->"


def performance() -> str:
    from bench.report import markdown

    before, after = read(HERE / "explanation" / "performance.md").split(FIGURES)
    _, after = after.split(END)
    return f"{before}{FIGURES}{markdown(figures())}{END}{after}"


def scale() -> str:
    from bench.__main__ import TITLE
    from bench.chart import chart

    return chart(figures().curves, title=TITLE)


def figures() -> Report:
    from bench.report import read as read_report

    return read_report(HERE.parent / "bench" / "results.json")


TITLE_LINE = re.compile(r"# (\d+)\. (.+)")
STATUS_LINE = re.compile(r"^Status: (.+)$", re.MULTILINE)


def decisions() -> str:
    rows = "\n".join(decision_row(page) for page in sorted((HERE / "decisions").glob("[0-9]*.md")))
    return f"""<!-- Written by `make docs` from the pages themselves. -->
# Decisions

One page for each decision that someone could reverse: status, context, choice, consequences. The
title says what was decided. Numbers are never reused; some were never used.

The line `Status:` of a page is `in force`, `superseded by` a later decision, or `partly superseded
by` one, with the part that no longer holds. This table repeats it.

| number | decision | status |
|---|---|---|
{rows}
"""


def decision_row(page: Path) -> str:
    text = page.read_text()
    title, status = TITLE_LINE.match(text), STATUS_LINE.search(text)
    if title is None or status is None or int(title[1]) != int(page.name[:4]):
        raise SystemExit(f"docs/decisions/{page.name} needs `# NUMBER. TITLE` and `Status: …`")
    return f"| [{page.name[:4]}]({page.name}) | {title[2]} | {status[1]} |"


PAGES = {
    "decisions/README.md": decisions,
    "explanation/performance.md": performance,
    "explanation/scale.svg": scale,
    "reference/checking.md": checking,
    "reference/cli.md": command_line,
    "reference/compatibility.md": compatibility,
    "reference/templates.md": templates,
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
