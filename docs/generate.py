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

Errors and warnings go to standard error, one line each: the problem, its location in parentheses,
and what to do next.
"""


def compatibility() -> str:
    tables = "\n\n".join(rules_table(severity, RULES) for severity in FindingSeverity)
    return f"""<!-- Written by `make docs` from the rules themselves. -->
# Compatibility of API versions

polyver compares two versions of a schema or of a CustomResourceDefinition (CRD) and reports changes
that break existing objects or clients. `polyver check --against` prints them; in Python,
`compare_schemas(old, new)` and `compare_definitions(old, new)` of `polyver.apis.compatibility`
return them. The order of the arguments matters: a change that is breaking in one direction can be
safe in the other.

A finding has a version, a path, a rule, a severity, a fact and an advice.

| severity | meaning |
|---|---|
| breaking | existing objects or clients stop working |
| risky | they may stop working: it depends on their data, or the schema does not show it |
| safe | nothing stops working; reported only with `least=Severity.SAFE` |

| path | meaning |
|---|---|
| `spec.size` | a field of the objects |
| `spec.ports[].name` | a field of each item of a list |
| `spec.env{{}}` | each value of a map |
| `spec["a.b"]` | a field whose name contains a dot or another special character |
| `spec.scope`, `spec.versions[v1].served` | a field of the CRD |
| empty | the whole object |

{tables}

## Guarantee and its limits

Without a breaking or risky finding, every object that was valid before the change is valid
afterwards and keeps its data, except for new fields that have a default. Property tests generate
schemas, change them, and search for an object that violates this. The guarantee does not cover:

- CEL rules: polyver compares only their text. A new or changed rule is risky, whatever it says, and
  polyver does not check whether an unchanged rule still fits fields that changed.
- Lists in place of a string with a format: kube-apiserver accepts these. If the format is removed,
  it refuses them, and polyver reports nothing.
- Fields that a schema did not have, and that were dropped: they may be refused once the schema has
  them.
- Renamed fields: a removed field and a new one with the same schema may be a rename or not. The
  advice names the most similar field.

## Existing objects (ratcheting)

From Kubernetes 1.30 on, and on the embedded server, an update may leave a value unchanged that the
schema no longer allows. This helps existing objects but not clients that write new ones, so it does
not lower the severity of a finding. It does not help if a required field is missing, or if
alternatives (`anyOf`, `oneOf`, `allOf`, `not`) fail, unless the object that lacks the field, or to
which the alternatives apply, does not change at all.
"""


def checking() -> str:
    tables = "\n\n".join(
        rules_table(each, CHECKS) for each in (FindingSeverity.BREAKING, FindingSeverity.RISKY)
    )
    return f"""<!-- Written by `make docs` from the rules themselves. -->
# Findings of `polyver check`

`polyver check` and `polyver.testing.check_law` test the conversions of a kind and report these
findings; [how to test conversions](../how-to/test-conversions.md) shows examples. With `--against`
a file, a git revision or [a cluster](clusters.md), they also report the findings in
[compatibility](compatibility.md), and each field that the current conversions show differently from
the earlier ones.

A finding has a kind, versions, a path, a rule, a severity, a fact and an advice. If it was found
with a generated object, it contains the smallest object that shows the problem. *Preserved fields*
are fields that a version cannot express; polyver keeps them in the annotation `{ANNOTATION}`
([conversion](conversion.md#preserved-fields)).

{tables}

## The ledger

The ledger lists what happens to each field of a version when it is converted to another version:

| word | meaning |
|---|---|
| kept | the same path, with the same value |
| moved | another path, with the same value |
| transformed | another value, made by the named rules |
| preserved (`carried` in JSON) | not in the other version: polyver restores the value later |

A conversion is *exact* if the other version has a value for every value, so that it never needs
preserved fields.

For conversions by functions, the ledger lists what was observed with the tested objects, and marks
it as `observed`.

A client that replaces all annotations removes the preserved fields. polyver's admission restores
them, on the embedded server and on clusters where it is installed; elsewhere they are lost.
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

[Blueprints](functions.md) and [definitions](definitions.md) contain templates in Go's template
language, with the functions of [sprig](https://masterminds.github.io/sprig/) and some of Helm.
polyver renders a template to the same text as Go or refuses it; [differences](#differences-from-go)
are listed below.

```python
from polyver.languages.gotemplate import compile_template, render_value

greeting = compile_template("Hello {{{{ .name | title }}}}!", name="greeting")
assert greeting.render({{"name": "ann"}}) == "Hello Ann!"

# Each string in a value is a template; other values do not change.
assert render_value({{"pods": ["{{{{ .pod }}}}"], "count": 2}}, {{"pod": "a"}}) == {{
    "pods": ["a"],
    "count": 2,
}}
```

`compile_template` raises `InvalidTemplate`, and `render` raises `RenderFailed`. Both messages
contain the problem, the name, line and column, the action around it, and what to do next:

```text
.Options has no entry for key "pth" (bp:2:13, near {{{{ .Options.pth }}}}); did you mean path?
```

## The language

The whole language is supported: actions and trimming (`{{{{-`, `-}}}}`), comments, pipelines,
variables, `if`, `with`, `range` (over lists, mappings in the order of their keys, and integers),
`else if`, `else with`, `break`, `continue`, `define`, `template`, `block`, parentheses and fields
of any value. Complex numbers are refused. `include NAME DATA`, from Helm, returns the output of a
template as a value.

A missing field is an error. With `missing="default"` it is null, which prints as `<no value>`; with
`missing="zero"` it is the zero value, as with the option `missingkey` in Go.

## Values

Templates get a copy of plain data, so `set` does not change the caller's data.

| data | in Go |
|---|---|
| integer | `int64`; beyond 64 bits `float64` |
| float | `float64` |
| string | `string`: functions that count characters count the bytes of UTF-8 |
| true, false | `bool` |
| list | `[]interface {{}}` |
| mapping | `map[string]interface {{}}`; keys are strings |
| null | `nil` |
| time (`datetime`) | `time.Time` |

An integer literal in a template is an `int`. As in Go, `eq .size 3` can compare it with an integer
of the data, `eq .ratio 3` refuses to compare it with a float, and instead of `until .size` you must
write `until (int .size)`. Numbers that `fromJson` reads are `float64`.

## Functions

The table lists the functions with the types of their arguments; an argument with `…` can be
repeated.

{function_tables()}

A time has the methods {moments}; a version has the methods {versions}.

`functions={{"now": clock}}` adds functions to a template. They get and return plain data; if one
raises `PolyverError`, `ValueError` or `TypeError`, the error names the location of the call.

## Missing functions

| functions | reason, and alternative |
|---|---|
{absent_rows()}

## Differences from Go

- `keys` and `values` are sorted by key. In Go their order is random.
- `date` and similar functions accept a string in RFC 3339 as a time, and refuse values that are not
  dates. Go uses the current time instead.
- The local time zone is UTC. Times have microseconds, and years from 1 to 9999; if a layout has no
  year, the year is 1. `durationRound` of a time is refused.
- `printf` refuses formats that would show the internal fields of a time or a version, such as `%d`.
- In the output, each byte that is not valid UTF-8 is replaced by U+FFFD.
- `toYaml` quotes `"<<"`, so that it stays a string.
- `fromYaml` refuses invalid YAML, where Helm returns a mapping with the error. It parses YAML as
  kubectl does.
- `call` always fails, because data contains no functions.

## Limits

Each limit has an error that names it. `render(data, limits=Limits(steps=…, size=…))` sets the first
two.

| subject | limit |
|---|---|
| steps of one rendering: actions, calls, iterations; large values count more | {limits.steps} |
| characters of the output, and of each intermediate string | {limits.size} |
| levels of nested blocks and templates, of parentheses, of values | {DEEPEST} |
| width and precision in `printf` | 1000000 |
| characters of a regular expression | 1000 |

Regular expressions have Go's syntax, and matching takes time linear in the length of the string.

## Comparison with Go

The results of Go 1.26 with sprig 3.3 for about 990 templates are recorded, and polyver is compared
with them: the output, or whether parsing or rendering fails, and in which line. The templates call
every function; half of them are generated at random. `make record` records the results again.
"""


_SHORT = {
    "map[string]interface {}": "mapping",
    "time.Time": "time",
    "*semver.Version": "version",
    "float64": "float",
    "texts": "strings",
}


def signature(function: TemplateFunction) -> str:
    words = [_SHORT.get(word, word) for word in function.takes]
    shown = " ".join([function.name, *words]) + ("…" if function.variadic else "")
    return f"`{shown}`"


def function_tables() -> str:
    groups: dict[str, list[str]] = {}
    for function in FUNCTIONS.values():
        groups.setdefault(function.group, []).append(signature(function))
    rows = [
        f"| {_SHORT.get(group, group)} | {', '.join(sorted(shown))} |"
        for group, shown in groups.items()
    ]
    return "| subject | functions |\n|---|---|\n" + "\n".join(rows)


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
