"""A Conversion in YAML: what is read, and what is refused with file, line and rule."""

from __future__ import annotations

from typing import Any

import pytest
from tests.apis.conversions import EVERY_RULE

from polyver.apis.conversion import Converter, DeclaredConversion, read_conversions
from polyver.kube.objects import InvalidManifest, load_manifests

HEAD = """apiVersion: polyver.dev/v1alpha1
kind: Conversion
metadata:
  name: toys.ex.io
spec:
  group: ex.io
  kind: Toy
  versions: [v1, v2]
  edges:
  - from: v1
    to: v2
    rules:
"""
RULES = (
    "add, cast, cel, const, default, drop, duration, each, join, keyed, move, pattern, quantity, "
    "recurse, rename_keys, reverse, scale, split, values, when, within, wrap"
)
ONE_KEY = f"; which is one of {RULES}"
ONCE = "; name each field in one rule; fields inside a moved object belong to its own rules"
A_PATH = '; write it as spec.schedule, or metadata.annotations["ex.io/mode"]'
TYPES = "; known: string, integer, number, boolean"
IN_A_GROUP = "; put each part of the pattern that varies into a named group, such as (?P<name>.+)"
METADATA = (
    " cannot be converted: of metadata, only labels and annotations can",
    '; name one of them: metadata.annotations["ex.io/mode"]',
)


def read(text: str) -> DeclaredConversion:
    [found] = read_conversions(load_manifests(text, "toys.yaml"))
    return found


def refused(text: str) -> str:
    with pytest.raises(InvalidManifest) as caught:
        read(text)
    return str(caught.value)


def toy(*rules: str) -> str:
    return HEAD + "".join(f"    - {rule}\n" for rule in rules)


def test_a_conversion_says_what_it_says() -> None:
    found = read(EVERY_RULE)
    assert (found.name, found.group, found.kind, found.hub) == (
        "crontabs.stable.example.com",
        "stable.example.com",
        "CronTab",
        "v2",
    )
    assert found.versions == ("v1", "v2", "v3")
    assert [(edge.source, edge.target) for edge in found.edges] == [("v1", "v2"), ("v2", "v3")]
    names = "move split split wrap values cast scale keyed drop const each"
    assert [rule.name for rule in found.edges[0].block.rules] == names.split()


def test_other_manifests_are_passed_over() -> None:
    text = "apiVersion: v1\nkind: ConfigMap\n---\n" + toy() + "---\nkind: Conversion\n"
    assert read(text).kind == "Toy"


def test_a_conversion_needs_neither_rules_nor_a_name_nor_several_versions() -> None:
    assert len(read(HEAD.replace("    rules:\n", "")).edges) == 1
    assert read(toy().replace("  name: toys.ex.io", "  labels: {}")).name == ""
    alone = toy().partition("  edges:")[0].replace("[v1, v2]", "[v1]")
    assert read(alone).edges == ()


def converted(rule: str, spec: dict[str, Any]) -> Any:
    found = read(toy(rule))
    known = Converter(found.group, found.kind, found.versions, found.edges)
    made = known.convert({"apiVersion": "ex.io/v1", "kind": "Toy", "spec": spec}, "v2")
    assert known.convert(made, "v1")["spec"] == spec
    return made["spec"]


@pytest.mark.parametrize(
    ("rule", "old", "new"),
    [
        ("values: {at: spec.a, as: spec.b, map: {x: 1, 'true': false}}", {"a": "x"}, {"b": 1}),
        ("cast: {at: spec.a, as: spec.b, from: boolean, to: string}", {"a": True}, {"b": "true"}),
        ("scale: {from: spec.a, to: spec.b, factor: 1/60}", {"a": 120}, {"b": 2}),
        ("scale: {from: spec.a, to: spec.b, factor: 0.001}", {"a": 2000}, {"b": 2}),
        (
            "scale: {from: spec.a, to: spec.b, factor: 0.001, types: [integer, number]}",
            {"a": 1500},
            {"b": 1.5},
        ),
        (
            "each: {at: spec.a, as: spec.b, key: [x, w], rules: [{drop: {at: z}}]}",
            {"a": [{"x": 1, "w": 2, "z": 3}]},
            {"b": [{"x": 1, "w": 2}]},
        ),
        (
            "within: {at: spec.a, as: spec.b, rules: [{move: {from: x, to: w}}]}",
            {"a": {"x": 1}},
            {"b": {"w": 1}},
        ),
        (
            "wrap: {from: spec.a, to: spec.b, rules: [{move: {from: x, to: w}}]}",
            {"a": {"x": 1}},
            {"b": [{"w": 1}]},
        ),
        ("duration: {from: spec.a, to: spec.b, unit: s}", {"a": "5m0s"}, {"b": 300}),
        (
            "duration: {from: spec.a, to: spec.b, unit: m, types: [integer, string], form: short}",
            {"a": 90},
            {"b": "1h30m"},
        ),
        ("quantity: {from: spec.a, to: spec.b}", {"a": "1500"}, {"b": 1500}),
        ("quantity: {from: spec.a, to: spec.b, unit: Mi}", {"a": "1Gi"}, {"b": 1024}),
        (
            "quantity: {from: spec.a, to: spec.b, types: [number, string]}",
            {"a": 0.5},
            {"b": "500m"},
        ),
        ("quantity: {from: spec.a, to: spec.b, form: binary}", {"a": "1Ki"}, {"b": 1024}),
        ("join: {from: spec.a, to: spec.b, separator: ', '}", {"a": ["x", "w"]}, {"b": "x, w"}),
        (
            "reverse: {join: {from: spec.b, to: spec.a, separator: '-'}}",
            {"a": "x-w"},
            {"b": ["x", "w"]},
        ),
        (
            "reverse: {each: {at: spec.b, as: spec.a, rules: [{move: {from: w, to: x}}]}}",
            {"a": [{"x": 1}]},
            {"b": [{"w": 1}]},
        ),
        (
            "pattern: {from: spec.a, pattern: '(?P<x>q+)@(?P<w>.+)', into: {w: spec.b, x: spec.c}}",
            {"a": "q@r@s"},
            {"b": "r@s", "c": "q"},
        ),
        (
            "rename_keys: {at: spec.a, as: spec.b, map: {x: w}, rules: [{move: {from: p, to: q}}]}",
            {"a": {"x": {"p": 1}, "z": {"p": 2}}},
            {"b": {"w": {"q": 1}, "z": {"q": 2}}},
        ),
        ("reverse: {const: {at: spec.a, value: cron}}", {"a": "cron"}, {}),
        ("keyed: {from: spec.a, to: spec.b, key: name}", {"a": [{"name": "x"}]}, {"b": {"x": {}}}),
        ("const: {at: spec.a, value: {x: [1]}}", {}, {"a": {"x": [1]}}),
        ("move: {from: 'spec[\"a.b\"]', to: spec.b}", {"a.b": 1}, {"b": 1}),
    ],
)
def test_options_of_rules(rule: str, old: dict[str, Any], new: dict[str, Any]) -> None:
    assert converted(rule, old) == new


@pytest.mark.parametrize(
    ("rule", "fact", "place", "hint"),
    [
        # What is no rule
        ("spec.a", "expected a mapping, got a string", "", ""),
        ("[1]", "expected a mapping, got a list", "", ""),
        ("{}", "a rule is a mapping with one key", "", ONE_KEY),
        ("move:", "a rule is a mapping with one key", "", ONE_KEY),
        (
            "{drop: {at: spec.a}, add: {at: spec.b}}",
            "a rule is a mapping with one key",
            "",
            ONE_KEY,
        ),
        ("rename: {from: spec.a}", "'rename' is not a rule", ".rename", f"; known: {RULES}"),
        ("move: spec.a", "expected a mapping, got a string", ".move", ""),
        # Fields of rules
        ("move: {from: spec.a}", '"to" is missing', ".move", ""),
        ("move: {from: spec.a, to: spec.b, at: c}", 'unknown field "at"', ".move", ""),
        (
            "move: {from: 5, to: spec.b}",
            "expected a string, got an integer",
            ".move.from",
            "; put it in quotes",
        ),
        ("split: {from: spec.a, into: [spec.b, spec.c]}", '"separator" is missing', ".split", ""),
        ("const: {at: spec.a, value: null}", '"value" is missing', ".const", ""),
        # Paths
        ("drop: {at: ''}", "'' is not the path of a field", ".drop", A_PATH),
        ("drop: {at: spec..a}", "'spec..a' is not the path of a field", ".drop", A_PATH),
        ("drop: {at: .spec.a}", "'.spec.a' is not the path of a field", ".drop", A_PATH),
        ("drop: {at: spec.a.}", "'spec.a.' is not the path of a field", ".drop", A_PATH),
        ("drop: {at: 'spec.a[0]'}", "'spec.a[0]' is not the path of a field", ".drop", A_PATH),
        ("drop: {at: 'spec[\"a]'}", "'spec[\"a]' is not the path of a field", ".drop", A_PATH),
        (
            "drop: {at: 'spec[\"a\"]b'}",
            "'spec[\"a\"]b' is not the path of a field",
            ".drop",
            A_PATH,
        ),
        ("drop: {at: kind}", "kind is not a field that rules may change", ".drop", ""),
        ("add: {at: apiVersion}", "apiVersion is not a field that rules may change", ".add", ""),
        ("drop: {at: metadata}", f"metadata{METADATA[0]}", ".drop", METADATA[1]),
        ("drop: {at: metadata.name}", f"metadata.name{METADATA[0]}", ".drop", METADATA[1]),
        ("drop: {at: metadata.labels}", f"metadata.labels{METADATA[0]}", ".drop", METADATA[1]),
        (
            "move: {from: spec.a, to: metadata.labels.a.b}",
            f"metadata.labels.a.b{METADATA[0]}",
            ".move",
            METADATA[1],
        ),
        (
            "drop: {at: 'metadata.annotations[\"conversion.polyver.dev/carry\"]'}",
            "conversion.polyver.dev/carry is reserved for preserved fields",
            ".drop",
            "",
        ),
        # Fields that one rule has twice
        (
            "split: {from: spec.a, into: [spec.b, spec.b], separator: ':'}",
            "the rule split writes spec.b twice",
            ".split",
            "",
        ),
        (
            "split: {from: spec.a, into: [spec.b, spec.b.c], separator: ':'}",
            "the rule split writes spec.b.c twice",
            ".split",
            "",
        ),
        # What has no way back, or makes no sense
        (
            "split: {from: spec.a, into: [spec.b], separator: ':'}",
            "split needs at least two fields to split into",
            ".split",
            "",
        ),
        (
            "split: {from: spec.a, into: [spec.b, spec.c], separator: ''}",
            "split needs a separator that is not empty",
            ".split",
            "",
        ),
        (
            "split: {from: spec.a, into: [spec.b, spec.c], separator: ':', types: [string]}",
            "split has 2 fields and 1 types",
            ".split",
            "",
        ),
        (
            "split: {from: spec.a, into: [spec.b, spec.c], separator: ':', types: [string, int]}",
            "'int' is not a type",
            ".split",
            TYPES,
        ),
        (
            "split: {from: spec.a, into: [spec.b, spec.c], separator: ':', absent: 'a:'}",
            "the value for an absent part cannot contain the separator",
            ".split",
            "",
        ),
        (
            "values: {at: spec.a, map: {a: x, b: x}}",
            "values maps 'a' and 'b' to 'x', so it cannot be converted back",
            ".values",
            "",
        ),
        ("values: {at: spec.a, map: {}}", "values needs at least one pair", ".values", ""),
        (
            "values: {at: spec.a, map: {a: [1]}}",
            "values can map strings, integers and booleans, not [1]",
            ".values",
            "",
        ),
        (
            "values: {at: spec.a, map: {a: 1.5}}",
            "values can map strings, integers and booleans, not 1.5",
            ".values",
            "",
        ),
        (
            "values: {at: spec.a, map: {yes: x}}",
            "true is not a string",
            ".values.map.true",
            "; put it in quotes",
        ),
        ("cast: {at: spec.a, from: string, to: int}", "'int' is not a type", ".cast", TYPES),
        ("cast: {at: spec.a, from: text, to: integer}", "'text' is not a type", ".cast", TYPES),
        (
            "scale: {from: spec.a, to: spec.b, factor: 0}",
            "scale by 0 cannot be converted back",
            ".scale",
            "; use a positive factor",
        ),
        (
            "scale: {from: spec.a, to: spec.b, factor: -1}",
            "scale by -1 cannot be converted back",
            ".scale",
            "; use a positive factor",
        ),
        (
            "scale: {from: spec.a, to: spec.b, factor: 1/0}",
            "'1/0' is not a factor",
            ".scale",
            "; write 1000, or 1/1000",
        ),
        (
            "scale: {from: spec.a, to: spec.b, factor: 10, types: [integer, string]}",
            "the types of scale must be integer or number",
            ".scale",
            "",
        ),
        (
            "keyed: {from: spec.a, to: spec.b, key: ''}",
            "keyed needs the name of the key field",
            ".keyed",
            "",
        ),
        (
            "keyed: {from: spec.a, to: spec.b, key: name, value: name}",
            "keyed uses name as key and as value",
            ".keyed",
            "",
        ),
        ("each: {at: spec.a, key: ''}", "the key of items has no name", ".each", ""),
        ("each: {at: spec.a, key: [a, '']}", "the key of items has no name", ".each", ""),
        (
            "duration: {from: spec.a, to: spec.b}",
            '"unit" is missing',
            ".duration",
            "",
        ),
        (
            "duration: {from: spec.a, to: spec.b, unit: d}",
            "'d' is not a unit of durations",
            ".duration",
            "; known: ns, us, ms, s, m, h",
        ),
        (
            "duration: {from: spec.a, to: spec.b, unit: s, form: long}",
            "'long' is not a form of durations",
            ".duration",
            "; known: go, short",
        ),
        (
            "duration: {from: spec.a, to: spec.b, unit: s, types: [integer, integer]}",
            "duration has the types integer, integer",
            ".duration",
            "; use string, and integer or number",
        ),
        (
            "quantity: {from: spec.a, to: spec.b, unit: Kb}",
            "'Kb' is not a unit of quantities",
            ".quantity",
            "; write a suffix such as m, k, Ki, Gi",
        ),
        (
            "quantity: {from: spec.a, to: spec.b, form: hex}",
            "'hex' is not a form of quantities",
            ".quantity",
            "; known: decimal, binary",
        ),
        (
            "quantity: {from: spec.a, to: spec.b, types: [string, boolean]}",
            "quantity has the types string, boolean",
            ".quantity",
            "; use string, and integer or number",
        ),
        (
            "join: {from: spec.a, to: spec.b, separator: ''}",
            "join needs a separator that is not empty",
            ".join",
            "",
        ),
        (
            "pattern: {from: spec.a, pattern: 'v(?P<x>.)', into: {}}",
            "the group x has no field",
            ".pattern",
            "; add it to into",
        ),
        (
            "pattern: {from: spec.a, pattern: 'v(?P<x>.)', into: {x: spec.b, w: spec.c}}",
            "the pattern has no group w",
            ".pattern",
            "; known: x",
        ),
        (
            "pattern: {from: spec.a, pattern: 'v(?P<x>.)', into: {x: spec.b}, types: {x: int}}",
            "'int' is not a type",
            ".pattern",
            TYPES,
        ),
        (
            "pattern: {from: spec.a, pattern: 'v.', into: {x: spec.b}}",
            "the pattern has a character that varies and is not in a named group",
            ".pattern",
            IN_A_GROUP,
        ),
        (
            "pattern: {from: spec.a, pattern: '(a|b)(?P<x>.)', into: {x: spec.b}}",
            "the pattern has alternatives (|) that are not in a named group",
            ".pattern",
            IN_A_GROUP,
        ),
        (
            "pattern: {from: spec.a, pattern: 'a*(?P<x>.)', into: {x: spec.b}}",
            "the pattern repeats a part that is not in a named group",
            ".pattern",
            IN_A_GROUP,
        ),
        (
            "pattern: {from: spec.a, pattern: '(http://)?(?P<x>.)', into: {x: spec.b}}",
            "the pattern has an optional part without a named group",
            ".pattern",
            IN_A_GROUP,
        ),
        (
            "pattern: {from: spec.a, pattern: 'v1', into: {}}",
            "the pattern has no named group",
            ".pattern",
            "; write (?P<name>…)",
        ),
        (
            "pattern: {from: spec.a, pattern: '(?P<x>', into: {x: spec.b}}",
            "error parsing regexp: missing closing ): `(?P<x>`",
            ".pattern",
            "",
        ),
        (
            "rename_keys: {at: spec.a, map: {}}",
            "rename_keys needs at least one pair",
            ".rename_keys",
            "",
        ),
        (
            "rename_keys: {at: spec.a, map: {a: x, b: x}}",
            "rename_keys renames 'a' and 'b' to 'x', so it cannot be converted back",
            ".rename_keys",
            "",
        ),
        (
            "rename_keys: {at: spec.a, map: {yes: x}}",
            "true is not a string",
            ".rename_keys.map.true",
            "; put it in quotes",
        ),
        (
            "reverse: {join: {from: spec.a, to: spec.b, separator: ''}}",
            "join needs a separator that is not empty",
            ".reverse.join",
            "",
        ),
        (
            "reverse: {rename: {}}",
            "'rename' is not a rule",
            ".reverse.rename",
            f"; known: {RULES}",
        ),
        (
            "reverse: {}",
            "a rule is a mapping with one key",
            ".reverse",
            ONE_KEY,
        ),
        (
            "reverse: {move: {from: spec.y, to: spec.b}}",
            "rule 1 (move) writes spec.y already",
            ".reverse.move",
            ONCE,
        ),
        # Rules inside of rules
        (
            "each: {at: spec.a, rules: [x]}",
            "a rule is a mapping with one key",
            ".each.rules[0]",
            ONE_KEY,
        ),
        ("each: {at: spec.a, rules: x}", "expected a list, got a string", ".each.rules", ""),
        (
            "each: {at: spec.a, rules: [{drop: {at: a}}, {drop: {at: a.b}}]}",
            "rule 1 (drop) reads a already, and this one reads a.b",
            ".each.rules[1].drop",
            ONCE,
        ),
        (
            "within: {at: a, rules: [{each: {at: b, rules: [{cast: {at: c, from: x, to: x}}]}}]}",
            "'x' is not a type",
            ".within.rules[0].each.rules[0].cast",
            TYPES,
        ),
        (
            "wrap: {from: spec.a, to: spec.b, rules: [{rename: {}}]}",
            "'rename' is not a rule",
            ".wrap.rules[0].rename",
            f"; known: {RULES}",
        ),
    ],
)
def test_a_rule_that_cannot_be_is_refused(rule: str, fact: str, place: str, hint: str) -> None:
    text = toy("move: {from: spec.x, to: spec.y}", rule)
    assert refused(text) == f"{fact} (toys.yaml:14, spec.edges[0].rules[1]{place}){hint}"


def test_a_label_that_no_server_would_take_is_refused() -> None:
    for path in ("labels", "annotations"):
        says = refused(toy(f"move: {{from: spec.a, to: 'metadata.{path}[\"no key!\"]'}}"))
        assert says.startswith(f"'no key!' cannot be one of {path}: name part must consist of")
        assert says.endswith("(toys.yaml:13, spec.edges[0].rules[0].move)")


MOVE = "move: {from: spec.a, to: spec.b}"


@pytest.mark.parametrize(
    ("first", "second", "fact"),
    [
        (MOVE, "move: {from: spec.c, to: spec.b}", "rule 1 (move) writes spec.b already"),
        (MOVE, "const: {at: spec.b, value: 1}", "rule 1 (move) writes spec.b already"),
        (MOVE, "drop: {at: spec.a}", "rule 1 (move) reads spec.a already"),
        (
            MOVE,
            "drop: {at: spec.a.c}",
            "rule 1 (move) reads spec.a already, and this one reads spec.a.c",
        ),
        (
            "move: {from: spec.a.c, to: spec.d}",
            MOVE,
            "rule 1 (move) reads spec.a.c already, and this one reads spec.a",
        ),
        (
            MOVE,
            "add: {at: spec.b.c}",
            "rule 1 (move) writes spec.b already, and this one writes spec.b.c",
        ),
        (
            "each: {at: spec.a, rules: []}",
            "keyed: {from: spec.a, to: spec.c, key: name}",
            "rule 1 (each) reads spec.a already",
        ),
    ],
)
def test_two_rules_for_one_field_are_refused(first: str, second: str, fact: str) -> None:
    rule = second.partition(":")[0]
    place = f"(toys.yaml:14, spec.edges[0].rules[1].{rule})"
    assert refused(toy(first, second)) == f"{fact} {place}{ONCE}"


def test_a_field_may_be_read_by_one_rule_and_written_by_another() -> None:
    read(toy(MOVE, "move: {from: spec.b, to: spec.a}"))


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        (
            "name: toys.ex.io",
            "name: toys",
            "toys is not the name of a CRD of ex.io (toys.yaml:4, metadata.name); "
            "use the CRD's name, PLURAL.ex.io",
        ),
        (
            "name: toys.ex.io",
            "name: toys.other.ex.io",
            "toys.other.ex.io is not the name of a CRD of ex.io (toys.yaml:4, metadata.name); "
            "use the CRD's name, PLURAL.ex.io",
        ),
        (
            "name: toys.ex.io",
            "name: .ex.io",
            ".ex.io is not the name of a CRD of ex.io (toys.yaml:4, metadata.name); "
            "use the CRD's name, PLURAL.ex.io",
        ),
        (
            "  group: ex.io",
            "  group: ''",
            "a kind with conversions needs a group (toys.yaml:6, spec.group)",
        ),
        ("  kind: Toy\n", "", '"kind" is missing (toys.yaml:5, spec)'),
        ("  kind: Toy\n", "  kind: Toy\n  x: 1\n", 'unknown field "x" (toys.yaml:5, spec)'),
        ("[v1, v2]", "[]", "no version is declared (toys.yaml:8, spec.versions)"),
        ("[v1, v2]", "v1", "expected a list, got a string (toys.yaml:8, spec.versions)"),
        ("[v1, v2]", "[v1, v2, v1]", "v1 is declared twice (toys.yaml:9, spec.edges)"),
        ("[v1, v2]", "[v1, v2, v3]", "no edge leads to v3 from v2 (toys.yaml:9, spec.edges)"),
        ("[v1, v2]", "[v1, v2]\n  hub: v9", "the hub v9 is not declared (toys.yaml:9, spec.hub)"),
        ("to: v2", "to: v9", "v9 is not declared (toys.yaml:11, spec.edges[0].to); known: v1, v2"),
        (
            "from: v1",
            "from: v9",
            "v9 is not declared (toys.yaml:10, spec.edges[0].from); known: v1, v2",
        ),
        ("to: v2", "to: v1", "an edge leads from v1 to itself (toys.yaml:9, spec.edges)"),
        ("    to: v2\n", "", '"to" is missing (toys.yaml:10, spec.edges[0])'),
        ("to: v2\n", "to: v2\n    x: 1\n", 'unknown field "x" (toys.yaml:10, spec.edges[0])'),
        (
            "  edges:\n",
            "  edges:\n  - {from: v2, to: v1}\n",
            "v1 ⇄ v2 has two edges (toys.yaml:9, spec.edges)",
        ),
        (
            "[v1, v2]\n  edges:\n",
            "[v1, v2, v3]\n  edges:\n  - {from: v2, to: v3}\n  - {from: v3, to: v1}\n",
            "the edge v1 ⇄ v2 closes a cycle: a conversion path exists already"
            " (toys.yaml:9, spec.edges)",
        ),
    ],
)
def test_a_conversion_that_cannot_be_is_refused(old: str, new: str, says: str) -> None:
    text = toy(MOVE)
    assert old in text
    assert refused(text.replace(old, new, 1)) == says
