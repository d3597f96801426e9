"""Expressions in CEL mean here what they mean to the libraries that Kubernetes has for them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from polyver.languages.cel import (
    NONE,
    CelEnvironment,
    CelResult,
    CelSchema,
    Expression,
    Optional,
    Uncompilable,
    Unusable,
    declared,
    to_value,
)
from polyver.languages.cel._conversions import double_text
from polyver.languages.cel._data import Unknown
from polyver.languages.cel._declarations import FUNCTIONS
from polyver.languages.cel._moments import timestamp_text
from polyver.languages.cel._values import CelDuration, List, Map, Opaque, Timestamp, TypeValue, Uint

RECORDED = json.loads((Path(__file__).parents[1] / "peers/recorded_cel.json").read_text())
GROUPS: list[dict[str, Any]] = RECORDED["groups"]
OLD_NAMES = ("_in_ ", "in ", "__not_strictly_false__ ")  # which no expression can write
RULES = [
    pytest.param(number, answer, id=f"{number}-{place}")
    for number, group in enumerate(GROUPS)
    for place, answer in enumerate(group["answers"])
]


def seen(group: dict[str, Any]) -> dict[str, Any]:
    """What the variables of a group are."""
    place = CelSchema(group["schema"], root=group.get("root", False))
    found = {"self": to_value(group["self"], place)}
    old = group.get("oldSelf")
    if old is not None:
        found["oldSelf"] = to_value(old, place)
    if group.get("optionalOldSelf"):
        found["oldSelf"] = NONE if old is None else Optional(found["oldSelf"])
    return found


def environment(number: int) -> CelEnvironment:
    group = GROUPS[number]
    place = declared(group["schema"], "selfType", root=group.get("root", False))
    assert place is not None
    return CelEnvironment(place)


def shown(value: Any) -> dict[str, Any]:
    """A value with its type, as the recording has it."""
    known = SHOWN.get(type(value))
    if known is not None:
        return known(value)
    if isinstance(value, List):
        return {"list": [shown(item) for item in value.items]}
    if isinstance(value, Map):
        return {"map": [[shown(key), found(value, key)] for key in value]}
    assert isinstance(value, Opaque)
    return {value.type_name: str(value) if value.type_name.startswith("net.") else True}


SHOWN: dict[type, Callable[[Any], dict[str, Any]]] = {
    type(None): lambda _: {"null": True},
    bool: lambda value: {"bool": value},
    int: lambda value: {"int": str(value)},
    Uint: lambda value: {"uint": str(int(value))},
    float: lambda value: {"double": double_text(value)},
    str: lambda value: {"string": value},
    bytes: lambda value: {"bytes": value.hex()},
    CelDuration: lambda value: {"duration": str(value.nanos)},
    Timestamp: lambda value: {"timestamp": timestamp_text(value)},
    TypeValue: lambda value: {"type": value.name},
    Unknown: lambda _: {"unknown": True},
    Optional: lambda value: {"optional": shown(value.value)} if value.present else {"none": True},
}


def found(value: Map, key: Any) -> dict[str, Any]:
    inside, there = value.find(key)
    return shown(inside) if there else {"error": True}


def ordered(value: Any) -> Any:
    """The same whatever the order of keys, and without the texts of amounts and addresses."""
    if isinstance(value, list):
        return [ordered(item) for item in value]
    if not isinstance(value, dict):
        return value
    if "map" in value:
        return {"map": sorted((ordered(pair) for pair in value["map"] or ()), key=str)}
    return {
        key: True if key.startswith("kubernetes.") else ordered(inside)
        for key, inside in value.items()
    }


def compiled(number: int, rule: str) -> Expression | str:
    """An expression, or why it is none."""
    optional = bool(GROUPS[number].get("optionalOldSelf"))
    try:
        return environment(number).compile(rule, optional_old=optional)
    except Uncompilable as problem:
        return str(problem)
    except Unusable as problem:
        return f"program: {problem}"


def evaluated(number: int, rule: str) -> CelResult:
    expression = compiled(number, rule)
    assert isinstance(expression, Expression)
    return expression.program.evaluate(seen(GROUPS[number]))


@pytest.mark.parametrize(("number", "answer"), RULES)
def test_expressions_mean_what_they_mean_to_kubernetes(number: int, answer: Any) -> None:
    found = compiled(number, answer["rule"])
    if "issues" in answer:
        assert found == answer["issues"]
        return
    assert isinstance(found, Expression), found
    outcome = found.program.evaluate(seen(GROUPS[number]))
    assert str(found.type) == answer["type"]
    if answer.get("failed", "").startswith("internal error"):
        assert outcome.failure is not None  # where the library itself stumbles
        return
    assert outcome.failure == answer.get("failed")
    if outcome.failure is None:
        assert ordered(shown(outcome.value)) == ordered(answer["value"])


@pytest.mark.parametrize(("number", "answer"), RULES)
def test_what_an_expression_may_cost_is_what_kubernetes_says(number: int, answer: Any) -> None:
    found = compiled(number, answer["rule"])
    if isinstance(found, Expression):
        assert str(found.most) == answer["most"]


@pytest.mark.parametrize(("number", "answer"), RULES)
def test_running_an_expression_costs_about_what_it_costs_there(number: int, answer: Any) -> None:
    if "value" in answer:
        cost = evaluated(number, answer["rule"]).cost
        assert answer["cost"] / 2 - 3 <= cost <= answer["cost"] * 2 + 3


def test_the_functions_are_those_of_kubernetes() -> None:
    ours = {
        f"{name} {each.id} {'.' if each.member else ''}({', '.join(map(str, each.args))}) "
        f"{each.result}"
        for name, overloads in FUNCTIONS.items()
        for each in overloads
    }
    theirs = {line for line in RECORDED["functions"] if not line.startswith(OLD_NAMES)}
    assert ours == theirs
