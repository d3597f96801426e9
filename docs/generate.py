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
sys.path.append(str(HERE.parent))  # where bench and tests are, which nobody installs


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

polyver compares an earlier and a later state of a schema or of a CustomResourceDefinition (CRD). It
reports changes that break existing objects or clients as *findings*. `polyver check --against`
prints the findings. In Python, `compare_schemas(old, new)` and `compare_definitions(old, new)` of
`polyver.apis.compatibility` return a list of findings. The order of the arguments matters: a change
that is breaking in one direction can be safe in the opposite direction.

A finding has an API version, a path, a rule, a severity, a fact (what has changed) and an advice
(what you can do).

| severity | meaning |
|---|---|
| breaking | existing objects or clients stop working |
| risky | existing objects or clients may stop working: this depends on their data, or the schema \
does not show it |
| safe | objects and clients continue to work. The Python functions return safe findings only with \
`least=FindingSeverity.SAFE` |

| path of a finding | meaning |
|---|---|
| `spec.size` | a field of the objects |
| `spec.ports[].name` | a field of each item of a list |
| `spec.env{{}}` | each value of a map |
| `spec["a.b"]` | a field whose name contains a dot or another special character |
| `spec.scope`, `spec.versions[v1].served` | a field of the CRD |
| empty | the whole object |

{tables}

## Guarantee and its limits

If polyver reports no breaking and no risky finding, the following is guaranteed: every object that
was valid before the change is valid after the change. The object also keeps its data, and gets only
the defaults of new fields. Property tests check this guarantee: they generate schemas, change the
schemas, and search for an object that violates the guarantee. The guarantee does not cover these
cases:

- CEL rules: polyver compares only the text of a rule. A new or changed rule is always a risky
  finding. If a rule has not changed, but fields that it reads have changed, polyver does not check
  whether the rule still works.
- Fields whose schema is a string with a format: kube-apiserver also accepts a list as the value of
  such a field. If the format is removed, kube-apiserver refuses these lists, but polyver reports no
  finding.
- Fields that were not in the schema: API servers dropped these fields. If the new schema has such a
  field, API servers validate it, and may refuse a write that was accepted before.
- Renamed fields: if a field was removed and a new field has the same schema, polyver cannot
  determine whether the field was renamed. The advice names the most similar new field.

## Existing objects (ratcheting)

If the schema no longer allows a value of an existing object, updates of this object can still
succeed. kube-apiserver of Kubernetes 1.30 or newer, and polyver's embedded server, accept an update
that does not change the invalid value (ratcheting). Ratcheting does not lower the severity of a
finding, because clients that write new objects still fail.

If a required field is missing, or if alternatives (`anyOf`, `oneOf`, `allOf`, `not`) fail,
ratcheting applies only if the update changes nothing in a certain part of the object: the part that
lacks the field, or the part to which the alternatives apply.
"""


def checking() -> str:
    tables = "\n\n".join(
        rules_table(each, CHECKS) for each in (FindingSeverity.BREAKING, FindingSeverity.RISKY)
    )
    return f"""<!-- Written by `make docs` from the rules themselves. -->
# Findings of `polyver check`

`polyver check` and `polyver.testing.check_law` test the conversions of a kind and report the
findings on this page; [how to test conversions](../how-to/test-conversions.md) shows examples. The
option `--against` of `polyver check` names an earlier state of the kind: a file, a git revision or
[a cluster](clusters.md). With this option, `polyver check` also reports the findings in
[compatibility](compatibility.md). It also reports each field for which the earlier and the current
conversions return different values. The option `--live` compares the conversions of every object of
a cluster, too.

A finding has a kind, API versions, a path, a rule, a severity, a fact (what is wrong), an advice
(what you can do), and a place: the file and line of the conversion rule. For a rule in Python, this
is the line of the call; for a conversion function, the line of the function. If no rule names the
field, the place is that of the edge or of the kind.

`polyver check` prints the worst finding first. With `-o json`, each finding has the fields `rank`
(1 is the worst), `severity`, `rule`, `versions`, `path`, `fact`, `advice`, `place`, `file`, `line`
and `example`. The severity decides the rank first. With `--live`, the number of objects that show
the finding is next: the field `objects` of a finding is this number, and the field `object` names
one of the objects. Then, findings have the order of the tables on this page.

If polyver found the problem with an object, the finding contains the smallest object that shows the
problem. *Preserved fields* are fields that a version cannot express;
polyver keeps them in the annotation `{ANNOTATION}`
([conversion](conversion.md#preserved-fields)).

{tables}

## The ledger

`polyver check` also prints a *ledger* for each pair of versions. The ledger shows what happens to
each field when polyver converts an object from one version to the other version:

| word in the ledger | meaning |
|---|---|
| kept | the field has the same path and the same value in the other version |
| moved | the field has another path and the same value in the other version |
| transformed | the rules that the ledger names convert the value to another value |
| preserved (`carried` in JSON) | the other version does not have the field; polyver preserves the \
value and restores it later |

The conversion of a field is *exact* if the other version can express every value of the field, so
that polyver never needs to preserve the field.

If conversion functions convert between the versions, polyver cannot determine the result from
rules. The ledger then shows the results for the tested objects, and marks them as `observed`.

If a client replaces all annotations of an object, it removes the preserved fields. On the embedded
server, and on clusters with polyver's admission webhook, polyver restores the preserved fields; on
other clusters, they are lost.
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
language. Templates can call the functions of [sprig](https://masterminds.github.io/sprig/) and some
functions of Helm. polyver either renders a template to the same text as Go, or reports an error.
[Differences from Go](#differences-from-go) lists the exceptions. On this page, *function* means a
template function.

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

`compile_template` raises `InvalidTemplate` if the template cannot be parsed, and `render` raises
`RenderFailed` if the template cannot be rendered. Both messages contain the problem, the name of
the template, the line and the column, the expression in braces that has the problem, and a hint:

```text
.Options has no entry for key "pth" (bp:2:13, near {{{{ .Options.pth }}}}); did you mean path?
```

## The language

polyver supports the whole language: expressions in braces, trimming (`{{{{-`, `-}}}}`), comments,
pipelines, variables, `if`, `with`, `range` (over lists, integers, and mappings in the order of
their keys), `else if`, `else with`, `break`, `continue`, `define`, `template`, `block`,
parentheses, and fields of any value. polyver refuses complex numbers. `include NAME DATA`, a
function of Helm, renders the template NAME with DATA and returns the rendered text.

If a template reads a missing field, rendering fails. `compile_template` has the argument `missing`,
which works like the option `missingkey` in Go. With `missing="default"`, a missing field is null,
which is rendered as `<no value>`; with `missing="zero"`, a missing field has the zero value.

## Values

A template gets a copy of the data, so the function `set` does not change the caller's data. The
following table shows the type in Go that corresponds to each type of data:

| data | type in Go |
|---|---|
| integer | `int64`; an integer that needs more than 64 bits is a `float64` |
| float | `float64` |
| string | `string`; functions that count characters count the bytes of UTF-8 |
| true, false | `bool` |
| list | `[]interface {{}}` |
| mapping | `map[string]interface {{}}`; keys are strings |
| null | `nil` |
| time (`datetime`) | `time.Time` |

An integer that is written in a template, on the other hand, has the type `int`. The consequences
are the same as in Go. If `.size` is an integer and `.ratio` is a float, `eq .size 3` works, but
`eq .ratio 3` fails. `until` needs an `int`, so instead of `until .size` you must write
`until (int .size)`. Numbers that `fromJson` reads are `float64`.

## Functions

The table lists all functions with the types of their arguments. You can repeat an argument that is
followed by `…`.

{function_tables()}

A time has the methods {moments}. A version, which `semver` returns, has the methods {versions}.

With `functions={{"now": clock}}`, `compile_template` adds a Python function to a template: the
template can call the Python function `clock` under the name `now`. Such Python functions get
and return plain data. If such a function raises `PolyverError`, `ValueError` or `TypeError`,
rendering fails, and the message names the location of the call in the template.

## Missing functions

| functions of sprig that do not exist | reason, and what to use instead |
|---|---|
{absent_rows()}

## Differences from Go

- `keys` and `values` return lists that are sorted by key. In Go, these lists have a random order.
- `date` and similar functions accept a string in the format of RFC 3339 as a time. If a value is
  not a date, they fail; in Go, they use the current time.
- The local time zone is UTC. Times have a precision of microseconds, and years from 1 to 9999. If
  the layout of a date has no year, the year is 1. `durationRound` fails if its argument is a time.
- `printf` refuses a format that would show internal fields of a time or a version, such as `%d`.
- In the rendered text, U+FFFD replaces each byte that is not valid UTF-8.
- `toYaml` writes the string `<<` in quotes, so that YAML parsers read it as a string.
- `fromYaml` fails if the YAML is invalid; in Helm, it returns a mapping with the error. It parses
  YAML as kubectl does.
- `call` always fails, because data cannot contain functions.

## Limits

If a rendering exceeds a limit, it fails, and the message names the limit.
`render(data, limits=RenderLimits(steps=…, size=…))` sets the first two limits.

| subject | limit |
|---|---|
| steps of one rendering: each expression in braces, each call and each iteration is a step; large \
values count as several steps | {limits.steps} |
| characters of the rendered text, and of each intermediate string | {limits.size} |
| levels of nested blocks and templates, of parentheses, and of values | {DEEPEST} |
| width and precision in `printf` | 1000000 |
| characters of a regular expression | 1000 |

Regular expressions have Go's syntax. The time to match a string is proportional to the length of
the string.

## Comparison with Go

The repository contains the recorded results of Go 1.26 with sprig 3.3 for about 990 templates. The
tests render the same templates with polyver, and compare the results with the recordings. A result
is the rendered text, or an error with its line. The templates call
every function; half of the templates were generated at random. `make record` records the results
again.
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
by` a later decision. In the last case, the line also states the new rule. This table repeats the
status of each page.

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


def corpus_page() -> str:
    from tests.peers.conversions.page import page

    return page()


PAGES = {
    "decisions/README.md": decisions,
    "explanation/performance.md": performance,
    "explanation/scale.svg": scale,
    "reference/checking.md": checking,
    "reference/cli.md": command_line,
    "reference/compatibility.md": compatibility,
    "reference/corpus.md": corpus_page,
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
