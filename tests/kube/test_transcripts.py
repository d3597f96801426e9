"""The transcripts that everything is compared with: one for each case, whole, and without noise."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from tests.kube.cases import Case, Step, known_differences, load_cases
from tests.kube.record import RECORDED, encoded, transcript

from polyver.kube.objects import InvalidManifest

CASES = load_cases()


def test_every_case_has_a_transcript_and_every_transcript_a_case() -> None:
    assert {path.stem for path in RECORDED.glob("*.json")} == set(CASES)


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_a_transcript_answers_every_step(case: Case) -> None:
    answers = transcript(case.case)
    assert answers is not None
    assert [answer["step"] for answer in answers] == [step.title for step in case.steps]
    assert len(case.case) <= 40, "it is a namespace and part of a group"


@pytest.mark.parametrize("path", sorted(RECORDED.glob("*.json")), ids=lambda path: path.stem)
def test_a_transcript_holds_nothing_that_differs_from_run_to_run(path: Path) -> None:
    text = path.read_text()
    assert text == encoded(json.loads(text))
    assert not re.search(r"127\.0\.0\.1:(?!1\b)\d", text)
    assert not re.search(r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-", text)
    assert not re.search(r'"resourceVersion": "[1-9]', text)
    for time in re.findall(r"\b20[2-9]\d-\d\d-\d\dT", text):
        assert time in cases_text(), "a time of the run and not of the case"


def cases_text() -> str:
    return "".join(path.read_text() for path in (RECORDED.parent / "cases").glob("*.yaml"))


def test_known_differences_name_steps_that_exist() -> None:
    for known in known_differences():
        cases = [
            case for case in CASES.values() if known.covers(case.case, known.step, known.field)
        ]
        assert cases or "*" in known.field
        assert all(0 <= known.step <= len(case.steps) for case in cases)
        assert known.reason


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("case: a\nabout: b\nsteps:\n- {body: 1}", "a step says exactly one thing to do (x.yaml:4"),
        ("case: a\nabout: b\nsteps:\n- {GET: /, kubectl: get}", "exactly one thing to do"),
        ("case: a\nabout: b\nsteps:\n- {GET: /, bodi: 1}", 'unknown field "bodi" (x.yaml:4'),
        (
            "case: a\nabout: b\nsteps: []\n---\ncase: a\nabout: b\nsteps: []",
            "two cases a (x.yaml:5",
        ),
        ("case: a\nsteps: []", '"about" is missing (x.yaml:1)'),
    ],
)
def test_a_case_that_makes_no_sense_is_refused(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "x.yaml").write_text(text)
    with pytest.raises(InvalidManifest) as caught:
        load_cases(tmp_path)
    assert message in str(caught.value)


def test_a_step_is_called_what_it_does() -> None:
    assert Step(get="/api").title == "GET /api"
    assert Step(kubectl="get pods").title == "kubectl get pods"
    assert Step(restart="controllers").title == "restart controllers"
