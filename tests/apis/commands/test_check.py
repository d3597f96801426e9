"""`polyver check`, as someone types it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.app.test_cli import Ran, piped
from tests.modules import forget_modules

EXAMPLES = Path(__file__).parents[3] / "examples"
BACKUPS = (EXAMPLES / "conversions" / "backups.yaml").read_text()
TOYS = """
from polyver import apis

toy = apis.Kind("Toy", group="ex.io")

@toy.version("v1")
class ToyV1:
    class Spec:
        size: int | None
        colour: str | None
        note: str | None
    spec: Spec

@toy.version("v2", storage=True)
class ToyV2:
    class Spec:
        length: int | None
        colour: str | None
    spec: Spec

@toy.converts("v1", "v2")
def up(obj: dict):
    spec = dict(obj["spec"])
    spec.pop("note", None)
    if "size" in spec:
        spec["length"] = spec.pop("size")
    # MISTAKE
    return {**obj, "spec": spec}

@toy.converts("v2", "v1")
def down(obj: dict):
    spec = dict(obj["spec"])
    if "length" in spec:
        spec["size"] = spec.pop("length")
    return {**obj, "spec": spec}
"""
RULED = """
from polyver import apis

toy = apis.Kind("Toy", group="ex.io")

@toy.version("v1")
class ToyV1:
    class Spec:
        size: int | None
    spec: Spec

@toy.version("v2", storage=True)
class ToyV2:
    class Spec:
        length: int | None
    spec: Spec

@toy.edge("v1", "v2")
def v1_v2(e):
    e.cast("spec.size", "integer", "string", to="spec.length")
"""


class Checks:
    """Runs the command in a folder of its own, each time with modules read anew."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys

    def __call__(self, *arguments: str) -> Ran:
        self.forget()
        return Ran(self._capsys, "check", *arguments)

    def data(self, *arguments: str) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self(*arguments, "-o", "json", "--seed", "1").out)
        return found

    def findings(self, *arguments: str) -> list[tuple[str, str, str]]:
        """The rule, the way and the field of each."""
        return [
            (each["rule"], " ".join(each["versions"]), each["path"])
            for each in self.data(*arguments)["findings"]
        ]

    def forget(self) -> None:
        forget_modules(Path.cwd())


@pytest.fixture
def run(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Checks]:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", sys.path[:])
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    Path("backups.yaml").write_text(BACKUPS)
    Path("toys.py").write_text(TOYS)
    checks = Checks(capsys)
    yield checks
    checks.forget()


def edited(old: str, new: str, *, text: str = BACKUPS) -> str:
    assert text.count(old) >= 1
    Path("backups.yaml").write_text(text.replace(old, new))
    return "backups.yaml"


def mistaken(line: str) -> str:
    Path("toys.py").write_text(TOYS.replace("# MISTAKE", line))
    return "toys.py"


def test_a_conversion_that_is_right_has_a_ledger_and_no_findings(run: Checks) -> None:
    ran = run("--conversions", "backups.yaml", "--seed", "1", "--examples", "60")
    assert (ran.code, ran.err) == (0, "")
    lines = [" ".join(line.split()) for line in ran.out.splitlines()]
    assert "spec.target split → spec.host, spec.port other values are preserved" in lines
    assert "spec.verbose preserved v1beta1 has no such field" in lines
    assert "kept: spec.schedule, spec.host, spec.port, spec.volumes" in lines
    assert "conversion.polyver.dev/carry" in ran.out
    assert lines[-1] == "1 kind, 60 objects tried (seed 1): no findings"


def test_json_has_the_ledger_of_every_way(run: Checks) -> None:
    found = run.data("--conversions", "backups.yaml", "--examples", "30")
    [kind] = found["kinds"]
    assert (kind["name"], kind["objects"]) == ("backups.shop.example.com", 30)
    ways = {(each["from"], each["to"]) for each in kind["ledgers"]}
    assert ways == {(a, b) for a in kind["versions"] for b in kind["versions"] if a != b}
    assert (found["seed"], found["findings"]) == (1, [])


def test_without_a_seed_one_is_drawn_and_printed(run: Checks) -> None:
    ran = run("--conversions", "backups.yaml", "--examples", "3")
    assert "3 objects tried (seed " in ran.out


@pytest.mark.parametrize(
    ("old", "new", "finding"),
    [
        ("spec.cron,", "spec.crom,", ("unknown-field", "v1alpha1", "spec.crom")),
        ("to: spec.schedule", "to: spec.plan", ("unknown-field", "v1beta1", "spec.plan")),
        (
            "keepDays: {type: string}",
            "keepDays: {type: boolean}",
            ("type", "v1alpha1", "spec.keepDays"),
        ),
        ("[string, integer]}", "[string, boolean]}", ("type", "v1beta1", "spec.port")),
        (
            "cast:  {at: spec.keepDays, from: string, to: integer}",
            "move:  {from: spec.volume, to: spec.volumes}",
            ("type", "v1alpha1 v1beta1", "spec.keepDays"),
        ),
        (
            "wrap:  {from: spec.volume, to: spec.volumes}",
            "move:  {from: spec.volume, to: spec.volumes}",
            ("type", "v1alpha1 v1beta1", "spec.volume"),
        ),
        (
            "wrap:  {from: spec.volume, to: spec.volumes}",
            "wrap:  {from: spec.volume, to: spec.mode}",
            ("type", "v1beta1", "spec.mode"),
        ),
        ("Full: full,", "Full: whole,", ("value", "v1", "spec.mode")),
        ("{Full: full, ", "{", ("unmapped", "v1beta1", "spec.mode")),
        (
            "  - from: v1beta1",
            "    - drop: {at: spec.keepDays}\n  - from: v1beta1",
            ("dropped-known", "v1beta1", "spec.keepDays"),
        ),
        (
            "  - from: v1beta1",
            "    - const: {at: spec.mode, value: Never}\n  - from: v1beta1",
            ("value", "v1beta1", "spec.mode"),
        ),
    ],
)
def test_rules_that_do_not_fit_the_schemas_are_found(
    run: Checks, old: str, new: str, finding: tuple[str, str, str]
) -> None:
    text = BACKUPS
    if finding[0] == "dropped-known":
        text = text.replace("    - cast:  {at: spec.keepDays, from: string, to: integer}\n", "")
    if "spec.volume, to: spec.volumes" in new and "cast" in old:
        text = text.replace("    - wrap:  {from: spec.volume, to: spec.volumes}\n", "")
    file = edited(old, new, text=text)
    assert finding in run.findings("--conversions", file, "--examples", "0")


def test_an_object_that_a_rule_takes_apart_may_be_a_text_elsewhere(run: Checks) -> None:
    ran = run(str(EXAMPLES / "kinds" / "cronjob.py"), "--examples", "0")
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.endswith("1 kind: no findings\n")


def test_a_finding_names_the_line_of_its_rule(run: Checks) -> None:
    file = edited("at: spec.keepDays, from: string", "at: spec.keepDays, from: boolean")
    [wrong] = run.data("--conversions", file, "--examples", "0")["findings"]
    line = (
        Path(file)
        .read_text()
        .splitlines()
        .index("    - cast:  {at: spec.keepDays, from: boolean, to: integer}")
        + 1
    )
    assert (wrong["rank"], wrong["file"], wrong["line"]) == (1, file, line)
    assert wrong["place"] == f"{file}:{line}, spec.edges[0].rules[2]"


def test_a_finding_about_a_rule_in_python_names_the_line_of_the_call(run: Checks) -> None:
    Path("toys.py").write_text(RULED)
    [wrong] = run.data("toys.py", "--examples", "0")["findings"]
    line = (
        RULED.splitlines().index('    e.cast("spec.size", "integer", "string", to="spec.length")')
        + 1
    )
    assert (wrong["rule"], wrong["file"], wrong["line"]) == ("type", "toys.py", line)


def test_a_finding_about_a_function_names_its_line(run: Checks) -> None:
    file = mistaken("spec['odd'] = 1")
    [wrong] = [e for e in run.data(file, "--examples", "20")["findings"] if e["rule"] == "pruned"]
    assert (wrong["file"], wrong["line"]) == (
        file,
        TOYS.splitlines().index('@toy.converts("v1", "v2")') + 1,
    )


def test_the_worst_finding_is_first(run: Checks) -> None:
    text = BACKUPS.replace("{Full: full, ", "{").replace("to: spec.schedule", "to: spec.plan")
    Path("backups.yaml").write_text(text)
    found = run.data("--conversions", "backups.yaml", "--examples", "0")["findings"]
    ranks = [(each["rank"], each["severity"], each["rule"]) for each in found]
    assert ranks[0] == (1, "breaking", "unknown-field")
    assert ranks[-1] == (len(found), "risky", "unmapped")
    out = run("--conversions", "backups.yaml", "--examples", "0").out
    assert out.index("breaking unknown-field") < out.index("risky unmapped")


@pytest.mark.parametrize(
    "line",
    [
        'spec["length"] = __import__("random").random()',
        'spec["colour"] = str(__import__("uuid").uuid4())',
    ],
)
def test_a_function_that_is_not_deterministic_is_found_and_nothing_else(
    run: Checks, line: str
) -> None:
    found = run.data(mistaken(line), "--examples", "40")["findings"]
    [finding] = [
        each for each in found if each["severity"] == "breaking" and each["rule"] != "pruned"
    ]
    assert (finding["rule"], finding["versions"]) == ("not-deterministic", ["v1", "v2"])
    assert finding["fact"].startswith(
        ("converted twice, it is ", "converted again in the same way")
    )
    assert "report" not in finding["advice"]


def test_a_function_of_a_rule_that_is_not_deterministic_is_found(run: Checks) -> None:
    rule = '    e.convert("spec.size", "spec.length", forward=random, back=int)'
    body = "    return __import__('random').randint(0, 10**9)"
    text = RULED.partition("@toy.edge")[0] + f"def random(size):\n{body}\n\n"
    Path("toys.py").write_text(f'{text}@toy.edge("v1", "v2")\ndef v1_v2(e):\n{rule}\n')
    [wrong] = run.data("toys.py", "--examples", "40")["findings"]
    assert (wrong["rule"], wrong["path"]) == ("not-deterministic", "spec.length")
    assert Path("toys.py").read_text().splitlines()[wrong["line"] - 1] == rule


def test_a_function_with_a_state_is_not_deterministic(run: Checks) -> None:
    line = 'spec["length"] = len(SEEN.append(1) or SEEN)'
    Path("toys.py").write_text(TOYS.replace("# MISTAKE", line) + "\nSEEN: list[int] = []\n")
    rules = {rule for rule, _, _ in run.findings("toys.py", "--examples", "40")}
    assert rules == {"not-deterministic"}


def test_errors_of_construction_are_findings_with_places(run: Checks) -> None:
    file = edited("versions: [v1alpha1, v1beta1, v1]", "versions: [v1alpha1, v1beta1, v1, v2]")
    ran = run("--conversions", file, "--examples", "0")
    assert ran.code == 1
    assert "backups.yaml:67, spec.edges: breaking tree: backups.shop.example.com" in ran.out
    Path("toys.py").write_text(TOYS.replace('@toy.converts("v2", "v1")', ""))
    ran = run("toys.py", "--examples", "0")
    assert "toys.py:4: breaking tree: toys.ex.io: up converts v1 to v2, but no" in ran.out
    assert ran.err == "error: 1 breaking finding\n"


def test_a_kind_that_cannot_be_built_does_not_hide_the_others(run: Checks) -> None:
    Path("more.py").write_text(TOYS.replace('@toy.converts("v2", "v1")', "").replace("Toy", "Box"))
    rules = run.findings("more.py", mistaken("spec['odd'] = 1"), "--examples", "20")
    assert ("tree", "", "") in rules
    assert ("pruned", "v1 v2", "spec.odd") in rules


def test_functions_that_are_right_have_no_findings_and_an_observed_ledger(run: Checks) -> None:
    found = run.data("toys.py", "--examples", "100")
    assert found["findings"] == []
    [down, up] = found["kinds"][0]["ledgers"]
    assert (down["observed"], up["observed"]) == (True, True)
    fates = {each["path"]: each["how"] for each in up["fields"]}
    assert fates == {
        "spec.size": "transformed",
        "spec.colour": "kept",
        "spec.note": "carried",
    }


def test_a_value_that_is_swapped_for_one_input_is_found_and_shrunk(run: Checks) -> None:
    file = mistaken('if spec.get("colour") == "red": spec["length"] = 99')
    ran = run(file, "--seed", "1")
    assert ran.code == 1
    assert "breaking edit-lost: toys.ex.io v2 → v1 → v2 spec.size: " in ran.out
    found = run.data(file)["findings"]
    [lost] = [each for each in found if each["rule"] == "edit-lost"]
    given = lost["example"]["given"]
    assert (given["apiVersion"], given["metadata"]) == ("ex.io/v2", {"name": "a"})
    assert given["spec"] in ({"colour": "red"}, {"colour": "red", "length": 0})
    assert ran.err.endswith("; --seed 1 generates the same objects again\n")


def test_a_function_that_fails_for_one_input_is_found_and_shrunk(run: Checks) -> None:
    file = mistaken('if spec.get("colour") == "blue": spec["nothing"]["here"]')
    [found] = run.data(file)["findings"]
    assert (found["rule"], found["fact"].partition(" (and")[0]) == (
        "fails",
        "it cannot be converted: KeyError: 'nothing'",
    )
    assert found["example"]["given"]["spec"] == {"colour": "blue"}
    assert "Traceback" not in run(file).out


def test_what_functions_print_does_not_disturb(run: Checks) -> None:
    found = run.data(mistaken('print("converting")'), "--examples", "5")
    assert found["findings"] == []


def test_a_field_that_the_version_lacks_is_found(run: Checks) -> None:
    ran = run(mistaken('spec["size"] = 1'), "--seed", "1", "--examples", "30")
    assert "breaking pruned: toys.ex.io v1 → v2 spec.size: v2 has no such field" in ran.out
    # The smallest object, and what an API server would make of it.
    assert "  --- expected\n  +++ found\n" in ran.out
    assert "  -spec: {}\n  +spec:\n  +  size: 1\n" in ran.out


def test_metadata_that_may_not_change_is_found(run: Checks) -> None:
    file = mistaken('obj["metadata"]["labels"] = {"app": "not a value!"}')
    assert ("identity", "v1 v2", "metadata") in run.findings(file, "--examples", "30")


def test_an_object_that_the_other_version_refuses_is_risky(run: Checks) -> None:
    file = edited("schedule: {type: string}", "schedule: {type: string, minLength: 1}")
    ran = run("--conversions", file, "--seed", "1", "--examples", "100")
    assert "risky invalid: backups.shop.example.com v1alpha1 → v1" in ran.out
    assert (ran.code, ran.err) == (0, "")
    assert run("--conversions", file, "--seed", "1", "--examples", "100", "--strict").code == 1


def test_without_a_definition_objects_are_guessed_from_the_rules(run: Checks) -> None:
    Path("rules.yaml").write_text(BACKUPS.split("---\n")[1])
    ran = run("--conversions", "rules.yaml", "--seed", "1", "--examples", "60")
    assert ran.code == 0
    assert "risky no-schema: Backup of shop.example.com v1: v1 has no schema" in ran.out
    assert "v1 has no schema: fields without a rule are copied" in ran.out


def test_a_definition_may_be_among_the_kinds(run: Checks) -> None:
    crd, _, rules = BACKUPS.partition("---\n")
    Path("crd.yaml").write_text(crd)
    Path("rules.yaml").write_text(rules)
    arguments = ("crd.yaml", "--conversions", "rules.yaml", "--examples", "10")
    assert run.findings(*arguments) == []
    assert len(run.data(*arguments)["kinds"]) == 1


# What was before.


def test_against_a_file_tells_what_users_lose(run: Checks) -> None:
    before = BACKUPS.replace("schedule: {type: string}", "when: {type: string}")
    Path("before.yaml").write_text(before)
    arguments = ("--conversions", "backups.yaml", "--examples", "0", "--against")
    ran = run(*arguments, "before.yaml")
    assert ran.code == 1
    assert "breaking field-renamed: backups.shop.example.com v1 spec.when" in ran.out
    assert run(*arguments, "backups.yaml").code == 0


def test_a_kind_that_is_gone_is_found(run: Checks) -> None:
    findings = run.findings("toys.py", "--examples", "0", "--against", "backups.yaml")
    assert findings == [("kind-removed", "", "")]


def git(*arguments: str) -> None:
    identity = ("-c", "user.name=a", "-c", "user.email=a@ex.io")
    subprocess.run(["git", *identity, *arguments], check=True, capture_output=True)


@pytest.fixture
def repository(run: Checks) -> Checks:
    git("init", "--initial-branch", "main")
    git("add", ".")
    git("commit", "--message", "first")
    return run


def test_against_a_revision_reads_python_and_manifests_of_then(repository: Checks) -> None:
    Path("toys.py").write_text(TOYS.replace("colour: str | None", "tint: str | None"))
    edited("keepHours: {type: integer}", "keepHours: {type: integer, maximum: 9}")
    found = repository.findings(
        "toys.py", "--conversions", "backups.yaml", "--examples", "0", "--against", "main"
    )
    assert ("field-renamed", "v1", "spec.colour") in found
    assert ("limit-added", "v1", "spec.keepHours") in found


def test_kinds_that_the_project_names_are_compared(repository: Checks) -> None:
    Path("pyproject.toml").write_text('[tool.polyver]\nkinds = ["toys"]\n')
    git("add", ".")
    git("commit", "--message", "second")
    Path("toys.py").write_text(TOYS.replace("        note: str | None\n", ""))
    found = repository.findings("--examples", "0", "--against", "HEAD")
    assert ("field-removed", "v1", "spec.note") in found


def test_who_converts_is_compared_only_if_it_is_said(run: Checks) -> None:
    before = BACKUPS.replace(
        "  scope: Namespaced",
        "  conversion:\n    strategy: Webhook\n"
        "    webhook: {clientConfig: {url: 'https://a'}, conversionReviewVersions: [v1]}\n"
        "  scope: Namespaced",
    )
    Path("before.yaml").write_text(before)
    arguments = ("--conversions", "backups.yaml", "--examples", "0", "--against", "before.yaml")
    assert run.findings(*arguments) == []
    edited("  scope: Namespaced", "  conversion: {strategy: None}\n  scope: Namespaced")
    assert [rule for rule, _, _ in run.findings(*arguments)] == ["conversion-changed"]


def test_what_was_not_there_at_a_revision_is_new(repository: Checks) -> None:
    Path("new.py").write_text(TOYS.replace("Toy", "Box"))
    assert repository.findings("new.py", "--examples", "0", "--against", "HEAD") == []


# How conversions behaved before.

MOVE = "    - move:  {from: spec.cron, to: spec.schedule}\n"


def test_a_move_that_became_a_drop_is_found_with_the_smallest_object(run: Checks) -> None:
    Path("before.yaml").write_text(BACKUPS)
    edited(MOVE, "    - drop: {at: spec.cron}\n    - add: {at: spec.schedule}\n")
    arguments = ("--conversions", "backups.yaml", "--examples", "60", "--against", "before.yaml")
    found = [each for each in run.data(*arguments)["findings"] if each["rule"] == "view-changed"]
    by_field = {(each["versions"][-1], each["path"]): each for each in found}
    lost = by_field["v1beta1", "spec.schedule"]
    assert lost["severity"] == "breaking"
    assert lost["versions"] == ["v1alpha1", "v1beta1"]
    assert lost["fact"].startswith('in v1beta1 it was "", and is now absent')
    assert lost["example"]["given"]["spec"] == {"cron": ""}
    assert lost["example"]["expected"]["spec"] == {"schedule": ""}
    assert lost["example"]["got"]["spec"] == {}
    assert ("v1alpha1", "spec.cron") in by_field
    ran = run(*arguments, "--seed", "1")
    assert ran.code == 1
    assert "view-changed: backups.shop.example.com v1alpha1 → v1beta1 spec.schedule:" in ran.out


def test_conversions_that_do_the_same_in_other_words_are_not_found(run: Checks) -> None:
    Path("before.yaml").write_text(BACKUPS)
    edited(
        MOVE, MOVE.replace("- move:  ", "- within: ").replace("to:", "as:").replace("from:", "at:")
    )
    arguments = ("--conversions", "backups.yaml", "--examples", "60", "--against", "before.yaml")
    assert run.findings(*arguments) == []


def test_a_narrowed_enum_is_found_with_an_object_that_is_refused(run: Checks) -> None:
    Path("before.yaml").write_text(BACKUPS)
    edited("[Full, Incremental]", "[Full]")
    arguments = ("--conversions", "backups.yaml", "--examples", "60", "--against", "before.yaml")
    found = [
        e for e in run.data(*arguments)["findings"] if e["rule"] in ("enum-narrowed", "refused")
    ]
    narrowed = found[0]
    assert (narrowed["rule"], narrowed["versions"], narrowed["path"]) == (
        "enum-narrowed",
        ["v1beta1"],
        "spec.mode",
    )
    assert narrowed["example"]["given"]["spec"] in (
        {"mode": "Incremental"},
        {"mode": "incremental"},
    )


def test_without_hypothesis_changes_of_schemas_are_found_without_an_example(
    tmp_path: Path,
) -> None:
    (tmp_path / "hypothesis.py").write_text("raise ImportError")
    crd = BACKUPS.partition("---\n")[0]
    (tmp_path / "before.yaml").write_text(crd)
    (tmp_path / "now.yaml").write_text(crd.replace("[Full, Incremental]", "[Full]"))
    before, now = (str(tmp_path / name) for name in ("before.yaml", "now.yaml"))
    ran = piped("check", now, "--against", before, PYTHONPATH=_path(tmp_path))
    assert ran.returncode == 1
    assert "breaking enum-narrowed" in ran.stdout
    assert "no example is shown for backups.shop.example.com v1beta1: generating" in ran.stderr


def test_a_limit_of_a_kind_with_one_version_is_found_with_an_object(run: Checks) -> None:
    crd = BACKUPS.partition("---\n")[0]
    one = crd[: crd.index("  - name: v1alpha1")] + crd[crd.index("  - name: v1\n") :]
    Path("before.yaml").write_text(one)
    limited = one.replace("host: {type: string}", "host: {type: string, maxLength: 1}")
    Path("now.yaml").write_text(limited)
    [wrong] = run.data("now.yaml", "--examples", "60", "--against", "before.yaml")["findings"]
    assert (wrong["rule"], wrong["versions"], wrong["path"]) == ("limit-added", ["v1"], "spec.host")
    assert len(wrong["example"]["given"]["spec"]["host"]) == 2


EDGE = BACKUPS[BACKUPS.index("  - from: v1alpha1") : BACKUPS.index("  - from: v1beta1")]


@pytest.mark.parametrize("versions", ["[v1alpha1, v1beta1, v1]", "[v1beta1, v1]"])
def test_a_dropped_edge_is_found_with_an_object_that_cannot_be_read(
    run: Checks, versions: str
) -> None:
    Path("before.yaml").write_text(BACKUPS)
    edited(EDGE, "", text=BACKUPS.replace("[v1alpha1, v1beta1, v1]", versions))
    arguments = ("--conversions", "backups.yaml", "--examples", "30", "--against", "before.yaml")
    found = {each["rule"]: each for each in run.data(*arguments)["findings"]}
    assert "tree" in found
    lost = found["unconverted"]
    assert (lost["severity"], lost["versions"][-1]) == ("breaking", "v1alpha1")
    assert lost["fact"].startswith("v1alpha1 could be converted before, and no edge connects it")
    assert lost["example"]["given"]["kind"] == "Backup"


def test_a_dropped_edge_in_python_is_found_with_an_object(repository: Checks) -> None:
    Path("toys.py").write_text(RULED)
    git("commit", "--all", "--message", "rules")
    text, _, _ = RULED.partition("@toy.edge")
    Path("toys.py").write_text(text)
    arguments = ("toys.py", "--examples", "30", "--against", "HEAD")
    rules = {rule for rule, _, _ in repository.findings(*arguments)}
    assert rules == {"tree", "unconverted"}


def test_a_version_that_is_removed_is_found_with_an_object(run: Checks) -> None:
    Path("before.yaml").write_text(BACKUPS)
    crd, _, conversion = BACKUPS.partition("---\n")
    start, end = crd.index("  - name: v1alpha1"), crd.index("  - name: v1beta1")
    text = f"{crd[:start]}{crd[end:]}---\n{conversion}".replace("[v1alpha1, ", "[")
    Path("backups.yaml").write_text(text.replace(EDGE, ""))
    arguments = ("--conversions", "backups.yaml", "--examples", "30", "--against", "before.yaml")
    [removed] = [e for e in run.data(*arguments)["findings"] if e["severity"] == "breaking"]
    assert removed["rule"] == "served-version-removed"
    assert removed["example"]["expected"]["apiVersion"] == "shop.example.com/v1alpha1"


def test_a_changed_view_names_the_line_of_the_new_rule(run: Checks) -> None:
    Path("before.yaml").write_text(BACKUPS)
    edited("factor: 24", "factor: 12")
    arguments = ("--conversions", "backups.yaml", "--examples", "60", "--against", "before.yaml")
    found = [e for e in run.data(*arguments)["findings"] if e["rule"] == "view-changed"]
    lines = Path("backups.yaml").read_text().splitlines()
    assert found
    assert {"factor: 12" in lines[each["line"] - 1] for each in found} == {True}


def test_an_item_of_a_list_is_compared_by_its_fields(run: Checks) -> None:
    item = "{type: object, properties: {size: {type: string}}}"
    text = BACKUPS.replace("items: {type: string}", f"items: {item}").replace(WRAP, "")
    Path("before.yaml").write_text(text)
    rule = "    - each: {at: spec.volumes, rules: [{values: {at: size, map: {a: b}}}]}\n"
    Path("backups.yaml").write_text(text + rule)
    arguments = ("--conversions", "backups.yaml", "--examples", "90", "--against", "before.yaml")
    found = [e for e in run.data(*arguments)["findings"] if e["rule"] == "view-changed"]
    assert {each["path"] for each in found} == {"spec.volumes[].size"}
    assert {each["line"] for each in found} == {len((text + rule).splitlines())}


WRAP = "    - wrap:  {from: spec.volume, to: spec.volumes}\n"


def test_functions_that_were_not_deterministic_are_not_compared(repository: Checks) -> None:
    mistaken('spec["length"] = __import__("random").random()')
    git("commit", "--all", "--message", "random")
    Path("toys.py").write_text(TOYS)
    ran = repository("toys.py", "--examples", "30", "--against", "HEAD")
    assert "the earlier functions of toys.ex.io are not deterministic" in ran.err
    assert "view-changed" not in ran.out


def test_functions_of_a_revision_are_compared_with_those_of_now(repository: Checks) -> None:
    text = TOYS.replace(
        'spec["length"] = spec.pop("size")', 'spec["length"] = spec.pop("size") + 1'
    )
    text = text.replace(
        'spec["size"] = spec.pop("length")', 'spec["size"] = spec.pop("length") - 1'
    )
    arguments = ("toys.py", "--examples", "40", "--against", "main")
    assert repository.findings(*arguments) == []
    Path("toys.py").write_text(text)
    found = [each for each in repository.findings(*arguments) if each[0] == "view-changed"]
    assert ("view-changed", "v1 v2", "spec.length") in found
    assert ("view-changed", "v2 v1", "spec.size") in found


def test_manifests_of_a_revision_are_compared_with_those_of_now(repository: Checks) -> None:
    edited(MOVE, "    - drop: {at: spec.cron}\n    - add: {at: spec.schedule}\n")
    arguments = ("--conversions", "backups.yaml", "--examples", "40", "--against", "HEAD")
    assert ("view-changed", "v1alpha1 v1beta1", "spec.schedule") in repository.findings(*arguments)


def test_an_object_that_could_be_converted_then_and_cannot_now_is_found(
    repository: Checks,
) -> None:
    mistaken('assert "colour" not in spec')
    found = repository.findings("toys.py", "--examples", "60", "--against", "main")
    assert any(rule == "view-changed" and path == "" for rule, _, path in found)


def test_who_has_no_conversions_to_compare_with_is_told(run: Checks) -> None:
    Path("before.yaml").write_text(BACKUPS.split("---\n")[0])
    ran = run("--conversions", "backups.yaml", "--examples", "9", "--against", "before.yaml")
    text = "before.yaml has no conversions of backups.shop.example.com: only schemas are compared"
    assert (ran.code, text in ran.err) == (0, True)


@pytest.mark.parametrize("revision", ["nowhere", "--output=x"])
def test_a_revision_that_is_none_is_told(repository: Checks, revision: str) -> None:
    ran = repository("toys.py", "--examples", "0", f"--against={revision}")
    assert ran.code in (2, 3)
    assert f"error: {revision} is neither a file nor a git revision" in ran.err
    assert ran.err.count("\n") == 1


# Hypothesis.


def test_hypothesis_is_not_imported_unless_objects_are_drawn(tmp_path: Path) -> None:
    """Also where it is not installed at all."""
    (tmp_path / "hypothesis.py").write_text("raise ImportError")
    arguments = ("check", "--conversions", str(EXAMPLES / "conversions" / "backups.yaml"))
    ran = piped(*arguments, "--examples", "0", PYTHONPATH=_path(tmp_path))
    assert (ran.returncode, ran.stderr) == (0, "")
    ran = piped(*arguments, PYTHONPATH=_path(tmp_path))
    assert ran.returncode == 3
    assert ran.stderr == (
        "error: generating objects needs hypothesis, which is not installed; "
        "pip install hypothesis, or use --examples 0\n"
    )


def _path(folder: Path) -> str:
    return os.pathsep.join(filter(None, [str(folder), os.environ.get("PYTHONPATH", "")]))


def test_nothing_is_left_where_it_is_run(tmp_path: Path) -> None:
    arguments = (
        "check",
        "--conversions",
        str(EXAMPLES / "conversions" / "backups.yaml"),
        "--examples",
        "3",
    )
    command = [str(Path(sys.executable).parent / "polyver"), *arguments]
    data = {"XDG_DATA_HOME": str(tmp_path / "data")}
    folder = tmp_path / "project"
    folder.mkdir()
    subprocess.run(command, cwd=folder, env={**os.environ, **data}, check=True, capture_output=True)
    assert list(folder.iterdir()) == []


def test_no_kind_at_all_is_told(run: Checks) -> None:
    Path("empty.yaml").write_text("a: 1\n")
    ran = run("--conversions", "empty.yaml")
    assert ran.code == 3
    assert ran.err.startswith("error: ")
