"""Rules for strings that stand for numbers or lists: exact both ways, and what survives."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.apis.conversions import check_compiled, converter, crontab, of
from tests.apis.test_rules import OTHER, carry, edge

from polyver.apis.checking import ledger, rule_place
from polyver.apis.conversion import Rules
from polyver.languages.values.canonical_values import quantity_amount, quantity_text
from polyver.languages.values.durations import duration_text, nanoseconds, short_duration
from polyver.languages.values.strings import same

TEXT, WHOLE = {"type": "string"}, {"type": "integer"}
CONVERSION = """
apiVersion: polyver.dev/v1alpha1
kind: Conversion
spec:
  group: stable.example.com
  kind: CronTab
  versions: [v1, v2]
  edges:
  - from: v1
    to: v2
    rules:
    - duration: {from: spec.timeout, to: spec.timeoutSeconds, unit: s}
    - duration: {from: spec.periodMillis, to: spec.period, unit: ms, types: [integer, string], form: short}
    - quantity: {from: spec.memory, to: spec.memoryMi, unit: Mi}
    - quantity: {from: spec.cpu, to: spec.cores, types: [string, number]}
    - join:     {from: spec.hosts, to: spec.hostList, separator: ","}
    - reverse:  {join: {from: spec.args, to: spec.command, separator: " "}}
    - pattern:
        from: spec.address
        pattern: "(?P<host>[a-z.]+)(:(?P<port>[0-9]+))?"
        into: {host: spec.host, port: spec.port}
        types: {port: integer}
"""  # noqa: E501
SCHEMAS = {
    "v1": of(
        spec=of(
            timeout=TEXT,
            periodMillis={**WHOLE, "minimum": 0, "maximum": 10**6},
            memory=TEXT,
            cpu={"x-kubernetes-int-or-string": True},
            hosts={"type": "array", "items": TEXT},
            command=TEXT,
            address=TEXT,
        )
    ),
    "v2": of(
        spec=of(
            timeoutSeconds={**WHOLE, "default": 30},
            period={**TEXT, "default": "1s"},
            memoryMi=WHOLE,
            cores={"type": "number"},
            hostList=TEXT,
            host=TEXT,
            port={**WHOLE, "default": 80},
            args={"type": "array", "items": TEXT},
        )
    ),
}
PLAIN, KNOWN = converter(CONVERSION), converter(CONVERSION, SCHEMAS)
FIELDS = sorted(
    {name for each in SCHEMAS.values() for name in each["properties"]["spec"]["properties"]}
)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ({"timeout": "5m0s"}, {"timeoutSeconds": 300}),
        ({"timeout": "-1h0m1s"}, {"timeoutSeconds": -3601}),
        ({"timeout": "0s"}, {"timeoutSeconds": 0}),
        ({"periodMillis": 90_000}, {"period": "1m30s"}),
        ({"periodMillis": 3_600_000}, {"period": "1h"}),
        ({"periodMillis": 1_200_000}, {"period": "20m"}),
        ({"periodMillis": 1500}, {"period": "1.5s"}),
        ({"memory": "1Gi"}, {"memoryMi": 1024}),
        ({"memory": "3Mi"}, {"memoryMi": 3}),
        ({"cpu": "500m"}, {"cores": 0.5}),
        ({"cpu": "2"}, {"cores": 2}),
        ({"cpu": "-100m"}, {"cores": -0.1}),
        ({"hosts": ["a", "b"]}, {"hostList": "a,b"}),
        ({"hosts": ["", ""]}, {"hostList": ","}),
        ({"hosts": []}, {"hostList": ""}),
        ({"command": "run it"}, {"args": ["run", "it"]}),
        ({"address": "a.b:80"}, {"host": "a.b", "port": 80}),
        ({"address": "a.b"}, {"host": "a.b"}),
        ({}, {}),
    ],
)
def test_a_rule_reads_both_ways(old: dict[str, Any], new: dict[str, Any]) -> None:
    assert same(PLAIN.convert(crontab("v1", **old), "v2"), crontab("v2", **new))
    assert same(PLAIN.convert(crontab("v2", **new), "v1"), crontab("v1", **old))


LOSSY: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    ("v1", {"timeout": "5m"}, {"timeoutSeconds": 300}),
    ("v1", {"timeout": "1500ms"}, {"timeoutSeconds": 1}),
    ("v1", {"timeout": "1d"}, {}),
    ("v1", {"timeout": 5}, {}),
    ("v1", {"timeout": None}, {}),
    ("v1", {"timeout": "9999999999h"}, {}),
    ("v2", {"timeoutSeconds": 2**62}, {}),
    ("v2", {"timeoutSeconds": 10**400}, {}),
    ("v2", {"timeoutSeconds": 1.5}, {"timeout": "1.5s"}),
    ("v2", {"timeoutSeconds": True}, {}),
    ("v2", {"period": "1h0m0s"}, {"periodMillis": 3_600_000}),
    ("v2", {"period": "1ns"}, {"periodMillis": 0}),
    ("v1", {"memory": "1024Mi"}, {"memoryMi": 1024}),
    ("v1", {"memory": "1"}, {"memoryMi": 1}),
    ("v1", {"memory": "-1500Ki"}, {"memoryMi": -2}),
    ("v1", {"memory": "1 Gi"}, {}),
    ("v1", {"memory": "1e999"}, {}),
    ("v1", {"memory": {"a": 1}}, {}),
    ("v2", {"memoryMi": 2**50}, {}),
    ("v1", {"cpu": 2}, {"cores": 2}),
    ("v1", {"cpu": "0.5"}, {"cores": 0.5}),
    ("v1", {"cpu": ""}, {}),
    ("v1", {"cpu": "."}, {}),
    ("v2", {"cores": 1e-12}, {"cpu": "1n"}),
    ("v2", {"cores": 1e308}, {}),
    ("v1", {"hosts": ["a,b", "c"]}, {"hostList": "a,b,c"}),
    ("v1", {"hosts": [""]}, {"hostList": ""}),
    ("v1", {"hosts": ["a", 1]}, {}),
    ("v1", {"hosts": "a,b"}, {}),
    ("v2", {"hostList": ["a"]}, {}),
    ("v2", {"args": ["a b"]}, {"command": "a b"}),
    ("v1", {"address": "a:080"}, {"host": "a", "port": 80}),
    ("v1", {"address": "A:80"}, {}),
    ("v1", {"address": ["a"]}, {}),
    ("v2", {"host": "a", "port": "80"}, {"address": "a"}),
    ("v2", {"port": 80}, {}),
    ("v2", {"host": "A"}, {}),
    ("v2", {"host": "a", "port": -1}, {}),
]


@pytest.mark.parametrize(("version", "spec", "shown"), LOSSY)
def test_what_a_rule_cannot_express_survives(
    version: str, spec: dict[str, Any], shown: dict[str, Any]
) -> None:
    obj, other = crontab(version, **spec), OTHER[version]
    made = PLAIN.convert(obj, other)
    assert same(made["spec"], shown)
    assert [*carry(made)] == [version]
    assert same(PLAIN.convert(made, version), obj)
    check_compiled(PLAIN, obj, other)
    check_compiled(PLAIN, made, version)
    for name in [*shown][:1]:
        made["spec"][name] = {"timeoutSeconds": 7, "hostList": "x", "host": "b"}.get(
            name, "changed"
        )
        assert not same(PLAIN.convert(made, version)["spec"], spec)


DURATIONS = ["5m", "5m0s", "1h0m0s", "-2s", "0", ".5s", "1500ms", "1d"]
QUANTITIES = ["1Gi", "1024Mi", "500m", "1e3", "12E", "1.5", "-1", "9" * 30, "1e-20", "+1"]
WORDS = st.sampled_from(["", " ", ",", "a b", "a,b", "a.b:80", "a:080", *DURATIONS, *QUANTITIES])
ANY = (
    WORDS
    | st.integers(-(2**70), 2**70)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.none()
    | st.booleans()
    | st.lists(WORDS | st.none(), max_size=3)
    | st.dictionaries(WORDS, WORDS, max_size=1)
)


@given(st.dictionaries(st.sampled_from(FIELDS), ANY), st.sampled_from(["v1", "v2"]))
def test_hostile_values_survive_compiled_or_not(spec: dict[str, Any], version: str) -> None:
    for known in (PLAIN, KNOWN):
        obj = crontab(version, **spec)
        if version in known.schemas:
            known.schemas[version].prune(obj)
        made = known.convert(obj, OTHER[version])
        assert same(known.convert(made, version), obj)
        if all(-(2**63) <= each < 2**64 for each in spec.values() if type(each) is int):
            check_compiled(known, obj, OTHER[version])
            check_compiled(known, made, version)


def test_the_ledger_names_what_is_exact() -> None:
    there, back = ledger(KNOWN, SCHEMAS, "v1", "v2"), ledger(KNOWN, SCHEMAS, "v2", "v1")
    assert there is not None
    assert back is not None
    assert {each.path: each.exact for each in there.fates} == {
        "spec.timeout": False,
        "spec.periodMillis": True,
        "spec.memory": False,
        "spec.cpu": False,
        "spec.hosts": False,
        "spec.command": True,
        "spec.address": False,
    }
    assert {each.path: (each.to, each.rules, each.exact) for each in back.fates} == {
        "spec.timeoutSeconds": (("spec.timeout",), ("duration",), False),
        "spec.period": (("spec.periodMillis",), ("duration",), False),
        "spec.memoryMi": (("spec.memory",), ("quantity",), False),
        "spec.cores": (("spec.cpu",), ("quantity",), False),
        "spec.hostList": (("spec.hosts",), ("join",), True),
        "spec.args": (("spec.command",), ("join",), False),
        "spec.host": (("spec.address",), ("pattern",), False),
        "spec.port": (("spec.address",), ("pattern",), False),
    }


def test_rules_can_be_reversed_in_python() -> None:
    def rules(e: Rules) -> None:
        e.reverse().wrap("spec.images", "spec.image")
        e.reverse().within("spec.new", to="spec.old").move("b", "a")

    known = edge(rules)
    old = crontab("v1", image=["x"], old={"a": 1})
    assert known.convert(old, "v2") == crontab("v2", images="x", new={"b": 1})


def test_a_finding_names_the_line_of_a_rule_inside_of_a_reversed_rule() -> None:
    text = (
        CONVERSION.partition("    - duration")[0]
        + """\
    - reverse:
        within:
          at: spec.a
          rules:
          - move: {from: x, to: z}
"""
    )
    schemas = {"v1": of(spec=of(a=of(z=WHOLE))), "v2": of(spec=of(a=of(x=TEXT)))}
    known = converter(text, schemas)
    assert rule_place(known, ["v1", "v2"], "spec.a.z", "v1").startswith("conversion.yaml:16,")
    assert rule_place(known, ["v1", "v2"], "spec.a.x", "v2").startswith("conversion.yaml:16,")


@given(st.integers(-(2**63) + 1, 2**63 - 1))
def test_durations_are_read_as_they_are_written(nanos: int) -> None:
    text = duration_text(nanos)
    assert nanoseconds(text) == nanos
    assert nanoseconds(short_duration(text)) == nanos


@given(st.integers(-(2**63), 2**63 - 1), st.sampled_from([1, 10**3, 10**9, 2**20]), st.booleans())
def test_quantities_are_read_as_they_are_written(number: int, parts: int, binary: bool) -> None:
    amount = quantity_amount(f"{number}n")
    assert amount is not None
    amount *= parts
    assert quantity_amount(quantity_text(amount, binary=binary)) == amount
