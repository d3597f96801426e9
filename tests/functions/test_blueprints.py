"""Blueprints, checked before anything runs: what is wrong, what will be, and who uses what."""

from __future__ import annotations

import pytest
from tests.functions.samples import CATALOGUE, HEAD, SEED, blueprint, known, phase

from polyver.core import SemVer
from polyver.functions.blueprints import (
    blueprints_in,
    check_blueprint,
    losses_at,
    requests_in,
    uses_in,
)
from polyver.kube.objects import InvalidManifest, load_manifests


def findings(text: str) -> list[str]:
    found: list[str] = []
    for _, read, malformed in blueprints_in(load_manifests(HEAD + text, "bp.yaml")):
        found += map(str, malformed)
        if read is not None:
            found += map(str, check_blueprint(read, known()))
    return found


ABOUT = "blueprint kanister/times, action run, phase only: "


def test_the_blueprint_of_the_seed_is_right() -> None:
    assert findings(SEED) == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            phase("KubeExce"),
            f"{ABOUT}there is no function KubeExce (bp.yaml:4, actions.run.phases[0].func); did "
            "you mean KubeExec?",
        ),
        (
            phase("KubeExec", "v0.9.0"),
            f"{ABOUT}KubeExec has no 0.9.0 (bp.yaml:4, actions.run.phases[0].funcVersion); known: "
            "v0.0.0, v0.1.0, v0.2.0; nearest: v0.0.0, v0.1.0, v0.2.0",
        ),
        (
            phase("Report", args="{txet: a}"),
            f"{ABOUT}Report v0.1.0: there is no argument txet (bp.yaml:4, "
            "actions.run.phases[0].args.txet); did you mean text?",
        ),
        (
            phase("Report", args="{text: [a]}"),
            f"{ABOUT}Report v0.1.0: expected string, found a list (bp.yaml:4, "
            "actions.run.phases[0].args.text)",
        ),
        (
            phase("Report", colour="red"),
            'unknown field "colour" (bp.yaml:4, actions.run.phases[0].colour)',
        ),
        (
            "actions:\n  run:\n    phases:\n    - name: only\n",
            '"func" is missing (bp.yaml:7, actions.run.phases[0].func)',
        ),
        (
            "actions:\n  run: []\n",
            'must be of type object: "array" (bp.yaml:5, actions.run)',
        ),
        (
            "actions:\n  run:\n    phases:\n    - {func: Plain, name: a}\n"
            "    deferPhase: {func: Plain, name: a}\n",
            "two phases have the name a (bp.yaml:8, actions.run.deferPhase.name); the first is "
            "actions.run.phases[0]; templates need unique names",
        ),
    ],
)
def test_a_mistake_is_told_with_its_line_and_its_field(text: str, expected: str) -> None:
    assert findings(text) == [expected]


def test_one_unknown_field_does_not_hide_the_other_mistakes() -> None:
    found = findings(phase("KubeExce", colour="red"))
    assert len(found) == 2


def test_what_is_deprecated_is_a_warning() -> None:
    [finding] = check_blueprint(blueprint(phase("Report", "v0.0.0")), known())
    assert not finding.is_error
    assert finding.fact == (
        f"{ABOUT}Report v0.0.0 is deprecated since 0.2.0 and will be removed in 0.4.0; use v0.1.0"
    )


def test_phases_need_no_name() -> None:
    nameless = (
        "actions: {run: {phases: [{func: Plain}, {func: Plain}], deferPhase: {func: Nope}}}\n"
    )
    [finding] = findings(nameless)
    assert finding.startswith("blueprint kanister/times, action run, phase deferPhase: there is no")


def test_another_api_version_is_refused() -> None:
    text = (HEAD + SEED).replace("v1alpha1", "v1")
    [(_, read, [finding])] = blueprints_in(load_manifests(text, "bp.yaml"))
    assert read is None
    assert str(finding) == (
        "cr.kanister.io/v1 is not known (bp.yaml:1, apiVersion); expected cr.kanister.io/v1alpha1"
    )


def test_an_action_without_phases_is_fine() -> None:
    assert findings("actions: {run: {}, other: {phases: []}}\n") == []
    assert findings("") == []


# What a release takes away.

OLD = phase("Report", "v0.0.0")


def losses(release: str, *texts: str) -> list[str]:
    return [
        str(each)
        for each in losses_at(SemVer.parse(release), [blueprint(text) for text in texts], known())
    ]


def test_what_stops_working_in_a_release_is_told() -> None:
    assert losses("0.4.0", OLD, SEED, phase("Report"), phase("Report", "v0.0.9")) == [
        "blueprint kanister/times, action run, phase only stops working in 0.4.0: Report v0.0.0 "
        "was removed in 0.4.0 (bp.yaml:4, actions.run.phases[0].funcVersion); use v0.1.0"
    ]
    assert losses("0.3.5", OLD) == []


def test_a_release_further_away_takes_what_was_announced_before_it() -> None:
    assert len(losses("0.9.0", OLD)) == 1


# Who uses what.

ACTION_SETS = """\
apiVersion: cr.kanister.io/v1alpha1
kind: ActionSet
metadata: {name: now, namespace: kanister}
spec:
  actions:
  - {name: run, blueprint: times, preferredVersion: v0.2.0}
---
apiVersion: cr.kanister.io/v1alpha1
kind: ActionSet
metadata: {generateName: elsewhere-, namespace: other}
spec:
  actions:
  - {name: run, blueprint: times, preferredVersion: v0.0.0}
"""


def test_a_use_is_told_with_what_it_asks_for_and_gets() -> None:
    requests = [each for _, each in requests_in(load_manifests(ACTION_SETS, "sets.yaml"))]
    blueprints = [blueprint(phase("Report")), blueprint(OLD), blueprint(phase("Report", "v0.0.9"))]
    uses = list(uses_in(blueprints, known(), requests))
    assert [(use.asker, use.asked, use.version) for use in uses] == [
        ("", "", "v0.1.0"),
        ("kanister/now", "v0.2.0", "v0.2.0"),
        ("", "v0.0.0", "v0.0.0"),
        ("", "v0.0.9", ""),
    ]
    assert [use.concerns(SemVer.parse("0.0.9")) for use in uses] == [False, False, False, True]
    assert [use.concerns(SemVer.parse("0.1.0")) for use in uses] == [True, False, False, False]


def test_an_action_set_that_is_wrong_is_an_error_with_its_place() -> None:
    wrong = ACTION_SETS.replace("name: run,", "")
    with pytest.raises(
        InvalidManifest, match=r'"name" is missing \(sets.yaml:6, spec.actions\[0\]'
    ):
        list(requests_in(load_manifests(wrong, "sets.yaml")))


def test_a_function_that_is_listed_and_not_registered_cannot_be_called() -> None:
    listed = CATALOGUE + "  Far: {versions: {v1.0.0: {stage: stable}}}\n"
    [finding] = check_blueprint(blueprint(phase("Far")), known(listed))
    assert finding.fact == f"{ABOUT}there is no function Far"
    assert finding.hint == "catalogue.yaml:9 lists it, but no code registers it"
