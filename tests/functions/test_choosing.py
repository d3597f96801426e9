"""Which version a phase gets, what whoever runs it is told, and what stops an action."""

from __future__ import annotations

import pytest
from tests.functions.samples import CATALOGUE, SEED, blueprint, known, phase

from polyver.core import PolyverError
from polyver.functions import Registry
from polyver.functions.blueprints import ActionRefused, ResolvedPhase, resolve_action
from polyver.functions.registering import functions_data, known_functions

LATER = CATALOGUE.replace("0.3.0]", "0.3.0, 0.4.0]")
EXEC = {"args": '{namespace: a, pod: b, command: ["ls"]}'}


def chosen(
    function: str, version: str = "", *, preferred: str = "", text: str = CATALOGUE
) -> ResolvedPhase:
    arguments = EXEC if function == "KubeExec" else {}
    found = resolve_action(
        known(text), blueprint(phase(function, version, **arguments)), "run", preferred=preferred
    )
    return found.phases[0]


def refused(function: str, version: str = "", *, preferred: str = "", text: str = CATALOGUE) -> str:
    with pytest.raises(ActionRefused) as error:
        chosen(function, version, preferred=preferred, text=text)
    [problem] = error.value.problems
    return str(problem)


# The seed's test cases.


def test_blueprints_with_user_specified_function_versions() -> None:
    """The seed's second test case, with the blueprint that it prints."""
    found = resolve_action(known(), blueprint(SEED), "tail")
    [tail] = found.phases
    assert (tail.version, tail.resolution.reason) == ("v0.1.0", "exact version")
    assert found.warnings == ()
    for version in ("v0.0.0", "v0.1.0", "v0.2.0"):
        asked = resolve_action(known(), blueprint(SEED.replace("v0.1.0", version)), "tail")
        assert asked.phases[0].version == version
        assert f"v{asked.phases[0].function.version}" == version


def test_existing_functions_and_blueprints_continue_to_work() -> None:
    """The seed's third test case: nobody who knows nothing of versions has to change anything."""
    found = chosen("Plain")
    assert (found.version, found.warnings) == ("v0.0.0", ())
    without = SEED.replace("      funcVersion: v0.1.0\n", "")
    assert resolve_action(known(), blueprint(without), "tail").phases[0].version == "v0.1.0"


# funcVersion → preferredVersion → stable → v0.0.0.


@pytest.mark.parametrize(
    ("version", "preferred", "expected", "reason"),
    [
        ("v0.2.0", "v0.0.0", "v0.2.0", "exact version"),
        ("", "v0.2.0", "v0.2.0", "the preferred version"),
        ("", "", "v0.1.0", "stable version"),
        ("v0.2", "", "v0.2.0", "exact version"),
        ("0.2.0", "", "v0.2.0", "exact version"),
        ("", "v0.2", "v0.2.0", "the preferred version"),
    ],
)
def test_who_asks_first_is_heard(version: str, preferred: str, expected: str, reason: str) -> None:
    found = chosen("KubeExec", version, preferred=preferred)
    assert (found.version, found.resolution.reason, found.warnings) == (expected, reason, ())


def test_without_a_stable_version_v000_is_used() -> None:
    registry = Registry()
    registry.register("Old")(lambda ctx: None)
    registry.register("Old", version="v1.0.0")(lambda ctx: None)
    found = resolve_action(known_functions(registry), blueprint(phase("Old")), "run")
    assert found.phases[0].version == "v0.0.0"


def test_a_preferred_version_that_a_function_lacks_falls_back_to_its_stable_one() -> None:
    found = chosen("KubeExec", preferred="v0.9.0")
    assert found.version == "v0.1.0"
    assert found.warnings == (
        "blueprint kanister/times, action run, phase only: KubeExec has no 0.9.0, the preferred "
        "version: v0.1.0 is used",
    )


def test_a_function_without_versions_answers_any_request() -> None:
    for found in (chosen("Plain", "v7.0.0"), chosen("Plain", preferred="v7.0.0")):
        assert found.version == "v0.0.0"
        [warning] = found.warnings
        assert warning.endswith("Plain registers no versions: v0.0.0 answers for 7.0.0")


def test_a_deprecated_version_warns_with_everything_that_one_needs_to_know() -> None:
    expected = (
        "blueprint kanister/times, action run, phase only: Report v0.0.0 is deprecated since 0.2.0 "
        "and will be removed in 0.4.0; use v0.1.0"
    )
    assert chosen("Report", "v0.0.0").warnings == (expected,)
    assert chosen("Report", preferred="v0.0.0").warnings == (expected,)


ABOUT = "blueprint kanister/times, action run, phase only: "
PLACE = "(actions.run.phases[0].funcVersion)"


@pytest.mark.parametrize(
    ("function", "version", "expected"),
    [
        ("KubeExec", "v0.3.0", f"KubeExec has no 0.3.0 {PLACE}; known: v0.0.0, v0.1.0, v0.2.0"),
        ("Report", "v0.0.9", f"Report v0.0.9 was removed in 0.3.0 {PLACE}; use v0.1.0"),
        ("KubeExec", "newest", f'"newest" is not a semantic version: .* {PLACE}'),
        ("Plain", "newest", f'"newest" is not a semantic version: .* {PLACE}'),
        ("Plain", "v1.x", f'"v1.x" is not a semantic version: .* {PLACE}'),
        (
            "KubeExce",
            "",
            r"there is no function KubeExce \(actions.run.phases\[0\].func\); did you",
        ),
    ],
)
def test_what_cannot_be_had_stops_the_action(function: str, version: str, expected: str) -> None:
    import re

    found = refused(function, version)
    pattern = expected if "\\" in expected else re.escape(expected).replace(r"\.\*", ".*")
    assert re.match(re.escape(ABOUT) + pattern, found), found


def test_a_version_past_its_removal_stops_the_action() -> None:
    expected = f"{ABOUT}Report v0.0.0 was removed in 0.4.0 "
    assert refused("Report", "v0.0.0", text=LATER) == f"{expected}{PLACE}; use v0.1.0"
    # A wish for what was removed is an error, too.
    wished = refused("Report", preferred="v0.0.0", text=LATER)
    assert wished == f"{expected}(actions.run.phases[0]); use v0.1.0"


def test_a_malformed_preferred_version_is_one_error_at_its_place() -> None:
    asked = blueprint(phase("Plain"))
    with pytest.raises(ActionRefused) as error:
        resolve_action(
            known(), asked, "run", preferred="new", at="spec.actions[0].preferredVersion"
        )
    [problem] = error.value.problems
    assert problem.fact.startswith('blueprint kanister/times, action run: "new" is not a semantic')
    assert problem.at == "spec.actions[0].preferredVersion"


SEVERAL = """\
actions:
  run:
    phases:
    - {func: Report, name: one, funcVersion: v0.0.0}
    - {func: Report, name: two}
    - {func: KubeExec, name: three, args: {namespace: a, pod: "{{ .x }}", command: [ls]}}
    deferPhase: {func: Report, name: last, funcVersion: v0.0.0}
"""


def test_all_phases_are_decided_at_once_and_the_deferred_one_with_them() -> None:
    found = resolve_action(known(), blueprint(SEVERAL), "run", preferred="v0.2.0")
    assert [each.version for each in found.phases] == ["v0.0.0", "v0.2.0", "v0.2.0"]
    assert found.deferred is not None
    assert found.deferred.version == "v0.0.0"
    assert [warning.split(":")[0].rpartition(" ")[2] for warning in found.warnings] == [
        "one",
        "last",
    ]


def test_everything_that_is_in_the_way_is_said_at_once() -> None:
    broken = SEVERAL.replace("v0.0.0", "v9").replace("pod", "pdo")
    with pytest.raises(ActionRefused) as error:
        resolve_action(known(), blueprint(broken), "run")
    facts = [problem.fact.partition(", phase ")[2] for problem in error.value.problems]
    assert [fact.partition(":")[0] for fact in facts] == ["one", "three", "three", "last"]
    assert "there is no argument pdo" in facts[1]
    assert "the argument pod is missing" in facts[2]


def test_a_promotion_does_not_change_an_action_that_was_resolved() -> None:
    before = resolve_action(known(), blueprint(phase("Report")), "run").phases[0]
    promoted = CATALOGUE.replace("stage: stable", "stage: candidate").replace(
        "v0.2.0: {stage: candidate", "v0.2.0: {stage: stable"
    )
    assert chosen("Report", text=promoted).version == "v0.2.0"
    assert before.version == "v0.1.0"


def test_an_unknown_action_is_an_error_that_names_those_there_are() -> None:
    with pytest.raises(PolyverError, match="has no action tali; known: tail"):
        resolve_action(known(), blueprint(SEED), "tali")


# What there is, told.


def test_everything_about_functions_is_told_as_plain_data() -> None:
    found = {each["name"]: each for each in functions_data(known())["functions"]}
    assert [*found] == ["KubeExec", "Plain", "Report"]
    report = found["Report"]
    assert (report["default"], report["release"], report["versioned"]) == ("v0.1.0", "0.3.0", True)
    assert [(each["version"], each["stage"]) for each in report["versions"]] == [
        ("v0.0.0", "deprecated"),
        ("v0.0.9", "removed"),
        ("v0.1.0", "stable"),
        ("v0.2.0", "candidate"),
    ]
    old = report["versions"][0]
    assert (old["since"], old["removedIn"], old["use"]) == ("0.2.0", "0.4.0", "v0.1.0")
    gone = report["versions"][1]
    assert (gone["registered"], "arguments" in gone) == (False, False)
    timeout = found["KubeExec"]["versions"][1]["arguments"][-1]
    assert timeout == {
        "name": "timeout",
        "required": False,
        "type": "duration",
        "schema": {"type": "string", "format": "duration"},
        "default": "1m",
    }
