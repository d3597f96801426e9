"""Validation of a Composition by itself."""

from __future__ import annotations

from collections.abc import Iterator

from polyver.capability import Refusal
from polyver.compositions._function_references import (
    REVISION_FIELDS,
    labels_in,
    mapping,
    named,
    switched_off,
)
from polyver.compositions.names import COMPOSITION, LONGEST_LABEL, PACKAGE
from polyver.core.plain import ReadOnlyObject
from polyver.languages.values.names import label_key_problems, label_value_problems

__all__ = ["check_composition", "check_pipeline", "check_step", "composition_warnings"]


def check_composition(obj: ReadOnlyObject, *, several: bool) -> list[Refusal]:
    """Return all problems of a Composition; `several` enables the feature FunctionRevisions."""
    found = [*_check_name(obj["metadata"].get("name", ""))]
    names: set[str] = set()
    for place, step in enumerate(obj["spec"].get("pipeline") or ()):
        at = f"spec.pipeline[{place}]"
        if step["step"] in names:
            fact = f'there are two steps "{step["step"]}"'
            found.append(Refusal("InvalidPipeline", fact, at=f"{at}.step"))
        names.add(step["step"])
        found += check_step(step, at, several=several)
    if not names:
        fact, hint = "it has no steps", "name at least one function"
        found.append(Refusal("InvalidPipeline", fact, at="spec.pipeline", hint=hint))
    return found


def _check_name(name: str) -> Iterator[Refusal]:
    if len(name) > LONGEST_LABEL:
        fact = f"its name has {len(name)} characters, more than {LONGEST_LABEL}"
        hint = f"it is the value of the label {COMPOSITION}"
        yield Refusal("InvalidName", fact, at="metadata.name", hint=hint)


def check_pipeline(obj: ReadOnlyObject) -> list[Refusal]:
    """Return a refusal for each field of the steps that needs the feature FunctionRevisions."""
    return [
        refusal
        for place, step in enumerate(obj["spec"].get("pipeline") or ())
        for refusal in switched_off(step, f"spec.pipeline[{place}]")
    ]


def check_step(step: ReadOnlyObject, at: str, *, several: bool) -> Iterator[Refusal]:
    """Yield the problems of a step; `at` is its path."""
    if not several:
        yield from switched_off(step, at)
    yield from _check_labels(step, f"{at}.functionRevisionSelector.matchLabels")
    for place, each in enumerate(step.get("credentials") or ()):
        if each["source"] == "Secret" and not each.get("secretRef"):
            fact = f'the secret of the credentials "{each["name"]}" is missing'
            place_of = f"{at}.credentials[{place}].secretRef"
            yield Refusal("InvalidPipeline", fact, at=place_of)
    required = mapping(step.get("requirements")).get("requiredResources") or ()
    for place, each in enumerate(required):
        if bool(each.get("name")) == bool(each.get("matchLabels")):
            fact = f'"{each["requirementName"]}" needs either a name or labels'
            place_of = f"{at}.requirements.requiredResources[{place}]"
            yield Refusal("InvalidPipeline", fact, at=place_of)


def _check_labels(step: ReadOnlyObject, at: str) -> Iterator[Refusal]:
    wanted = labels_in(step.get("functionRevisionSelector"))
    for key, value in wanted.items():
        for problem in (*label_key_problems(key), *label_value_problems(value)):
            yield Refusal("InvalidSelector", f"{key}={value} is not a label: {problem}", at=at)
    function = named(step.get("functionRef"))
    if wanted.get(PACKAGE, function) != function:
        fact = f"{PACKAGE}={wanted[PACKAGE]} selects revisions of another function"
        yield Refusal("InvalidSelector", fact, at=at, hint=f"the step calls {function}")


def composition_warnings(obj: ReadOnlyObject) -> list[str]:
    """Return warnings about valid but probably unintended fields."""
    return [
        f"spec.pipeline[{place}]: functionRevisionRef and functionRevisionSelector are both "
        "set; functionRevisionRef is used"
        for place, step in enumerate(obj["spec"].get("pipeline") or ())
        if all(step.get(name) is not None for name in REVISION_FIELDS)
    ]
