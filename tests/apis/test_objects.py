"""Objects of declared classes: what is absent stays absent, and what is written was there."""

from __future__ import annotations

import enum
from datetime import UTC, datetime, timedelta
from typing import Any, Literal

import pytest

from polyver import apis

crontab = apis.Kind("CronTab", group="stable.example.com")
HEAD = {"apiVersion": "stable.example.com/v1", "kind": "CronTab"}


class Policy(enum.Enum):
    ALLOW = "Allow"
    FORBID = "Forbid"


@crontab.version("v1")
class CronTab(apis.Fields):
    """Runs a command on a schedule."""

    class Spec(apis.Fields):
        schedule: str
        replicas: int = 1
        policy: Policy | None = None
        mode: Literal["fast", "slow"] | None = None
        since: datetime | None = None
        ratio: float | None = None
        owner: apis.Nullable[str] = None
        extra: apis.Anything = None
        labels: dict[str, str] | None = None

        @property
        def is_daily(self) -> bool:
            return self.schedule == "@daily"

        def with_replicas(self, replicas: int) -> None:
            self.replicas = replicas

    metadata: dict[str, Any] | None = None
    spec: Spec | None = None
    status: dict[str, Any] | None = None

    @classmethod
    def named(cls, name: str) -> CronTab:
        return cls(metadata={"name": name})


def both_ways(spec: dict[str, Any]) -> dict[str, Any]:
    found = apis.to_object(apis.from_object(CronTab, {**HEAD, "spec": spec}))["spec"]
    assert isinstance(found, dict)
    return found


def test_nothing_is_filled_in() -> None:
    found = apis.from_object(CronTab, {**HEAD, "spec": {}})
    assert found.spec is not None
    assert found.metadata is None
    assert getattr(found.spec, "replicas", 1) is None
    assert apis.to_object(found) == {**HEAD, "spec": {}}
    assert apis.to_object(CronTab.Spec(schedule="@daily")) == {"schedule": "@daily"}


def test_a_partial_object_is_read() -> None:
    assert apis.to_object(apis.from_object(CronTab, HEAD)) == HEAD
    only = {**HEAD, "metadata": {"name": "a", "labels": {"x": "y"}}}
    assert apis.to_object(apis.from_object(CronTab, only)) == only


def test_the_data_stays_as_it_was_whatever_is_done_to_the_object() -> None:
    data = {**HEAD, "metadata": {"labels": {"a": "b"}}, "spec": {"extra": {"a": [1]}}}
    found: Any = apis.from_object(CronTab, data)
    found.metadata["labels"]["a"] = "c"
    found.spec.extra["a"].append(2)
    assert data == {**HEAD, "metadata": {"labels": {"a": "b"}}, "spec": {"extra": {"a": [1]}}}


def test_unknown_fields_are_passed_over() -> None:
    assert both_ways({"schedule": "@daily", "colour": "red"}) == {"schedule": "@daily"}


def test_null_is_a_value_where_a_class_says_so_and_nothing_elsewhere() -> None:
    spec = {"owner": None, "extra": None}
    assert both_ways(spec) == spec
    assert both_ways({"replicas": None}) == {}
    found = apis.from_object(CronTab, {**HEAD, "spec": {"owner": None}}).spec
    assert found is not None
    assert found.owner is None
    assert found.extra is apis.ABSENT


@pytest.mark.parametrize(
    "text",
    [
        "2026-01-02T03:04:05Z",
        "2026-01-02T03:04:05.5Z",
        "2026-01-02T03:04:05.123456789Z",
        "2026-01-02T03:04:05+02:00",
    ],
)
def test_a_time_is_written_as_it_was_read(text: str) -> None:
    assert both_ways({"since": text}) == {"since": text}


def test_a_time_is_one_to_calculate_with() -> None:
    found = apis.from_object(CronTab, {**HEAD, "spec": {"since": "2026-01-02T03:04:05Z"}}).spec
    assert found is not None
    assert found.since == datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
    assert found.since is not None
    found.since += timedelta(hours=1)
    assert apis.to_object(found) == {"since": "2026-01-02T04:04:05Z"}
    found.since = datetime(2026, 1, 2, tzinfo=UTC)
    assert apis.to_object(found) == {"since": "2026-01-02T00:00:00Z"}


def test_numbers_stay_what_they_are() -> None:
    assert repr(both_ways({"ratio": 1})) == "{'ratio': 1}"
    assert repr(both_ways({"ratio": 1.0})) == "{'ratio': 1.0}"


def test_a_choice_is_a_member_of_its_enum() -> None:
    found = apis.from_object(CronTab, {**HEAD, "spec": {"policy": "Forbid"}}).spec
    assert found is not None
    assert found.policy is Policy.FORBID
    assert apis.to_object(found) == {"policy": "Forbid"}


def test_what_an_older_schema_allowed_is_still_read() -> None:
    assert both_ways({"mode": "medium", "replicas": -5}) == {"mode": "medium", "replicas": -5}


def test_methods_and_properties_are_kept() -> None:
    spec = CronTab.Spec(schedule="@daily")
    spec.with_replicas(3)
    assert (spec.is_daily, spec.replicas) == (True, 3)
    assert CronTab.named("a").metadata == {"name": "a"}
    assert CronTab.__doc__ == "Runs a command on a schedule."


def test_a_field_that_is_misspelt_is_refused() -> None:
    spec = CronTab.Spec(schedule="@daily")
    with pytest.raises(AttributeError):
        spec.replcas = 3  # type: ignore[attr-defined]
    with pytest.raises(TypeError):
        CronTab.Spec(schedul="@daily")  # type: ignore[call-arg]


def test_objects_are_compared_by_value() -> None:
    assert CronTab.Spec(schedule="a") == CronTab.Spec(schedule="a")
    assert CronTab.Spec(schedule="a") != CronTab.Spec(schedule="b")


@pytest.mark.parametrize(
    ("spec", "says"),
    [
        (
            {"schedule": 5},
            'CronTab "nightly": expected a string, got an integer (spec.schedule)',
        ),
        ({"replicas": "3"}, 'CronTab "nightly": expected an integer, got a string (spec.replicas)'),
        ({"labels": {"a": 1}}, 'CronTab "nightly": expected a string, got an integer (spec.labels'),
        ({"policy": "Maybe"}, "invalid enum value 'Maybe' (spec.policy)"),
        ({"since": "soon"}, "(spec.since)"),
        ({"since": 5}, "(spec.since)"),
        ([], 'CronTab "nightly": expected a mapping, got a list (spec)'),
    ],
)
def test_what_a_class_cannot_hold_is_told_with_its_place(spec: Any, says: str) -> None:
    obj = {**HEAD, "metadata": {"name": "nightly"}, "spec": spec}
    with pytest.raises(apis.NotAsDeclared) as caught:
        apis.from_object(CronTab, obj)
    assert says in str(caught.value)
    assert "`" not in str(caught.value)


def test_an_object_of_another_version_or_kind_is_told() -> None:
    other = {"apiVersion": "stable.example.com/v2", "kind": "CronTab"}
    with pytest.raises(apis.NotAsDeclared, match=r"CronTab is in stable.example.com/v2, not in"):
        apis.from_object(CronTab, other)
    with pytest.raises(apis.NotAsDeclared, match="is not a version of CronTab; known: v1"):
        crontab.from_object(other)
    with pytest.raises(apis.NotAsDeclared, match="v1 Toy is not a version of CronTab"):
        crontab.from_object({**HEAD, "kind": "Toy"})
