"""Templates render here to what Go's text/template and sprig make of them."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from polyver.languages.gotemplate import (
    ABSENT,
    FUNCTIONS,
    InvalidTemplate,
    RenderFailed,
    compile_template,
)

RECORDED = json.loads((Path(__file__).parents[1] / "peers/recorded_templates.json").read_text())
GROUPS: list[dict[str, Any]] = RECORDED["groups"]
CASES = [
    pytest.param(number, answer, id=f"{number}-{place}")
    for number, group in enumerate(GROUPS)
    for place, answer in enumerate(group["answers"])
]


def rendered(template: str, context: dict[str, Any]) -> dict[str, Any]:
    """What comes out, or what fails and in which line, as the recording has it."""
    try:
        made = compile_template(template, missing=context.get("missing", "error"))
        return {"output": made.render(context["data"])}
    except InvalidTemplate as problem:
        return {"phase": "parse", "line": problem.line}
    except RenderFailed as problem:
        return {"phase": "render", "line": problem.line}


@pytest.mark.parametrize(("number", "answer"), CASES)
def test_templates_render_as_in_go(number: int, answer: dict[str, Any]) -> None:
    found = rendered(answer["template"], GROUPS[number]["context"])
    if "output" in answer:
        assert found == {"output": answer["output"]}
    else:
        place = re.match(r"template: t:(\d+)", answer["error"])
        assert place is not None
        assert found == {"phase": answer["phase"], "line": int(place[1])}


def test_the_recording_has_results_and_mistakes_of_both_kinds() -> None:
    answers = [answer for group in GROUPS for answer in group["answers"]]
    phases = [answer.get("phase") for answer in answers]
    assert min(phases.count(phase) for phase in (None, "parse", "render")) > 40


def test_every_function_of_sprig_is_there_or_left_out_on_purpose() -> None:
    assert set(RECORDED["functions"]) == {
        *ABSENT,
        *(set(FUNCTIONS) & set(RECORDED["functions"])),
    }
    assert not set(ABSENT) & set(FUNCTIONS)


def test_every_function_is_called_in_the_recording() -> None:
    called = " ".join(answer["template"] for group in GROUPS for answer in group["answers"])
    names = set(re.findall(r"[\w]+", called))
    assert set(FUNCTIONS) - names == {
        *("fromJsonArray", "fromYamlArray", "mustFromYaml", "mustToYaml"),
    }
