"""Conversions for tests: the one that the reference prints, and any that can be drawn."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec
from hypothesis import note
from hypothesis import strategies as st

from polyver.apis.conversion import (
    Converter,
    DeclaredEdge,
    InvalidRule,
    InvalidRules,
    Rules,
    read_conversions,
)
from polyver.kube.objects import load_manifests
from polyver.languages.values.strings import same

Object = dict[str, Any]

EVERY_RULE = """
apiVersion: polyver.dev/v1alpha1
kind: Conversion
metadata:
  name: crontabs.stable.example.com
spec:
  group: stable.example.com
  kind: CronTab
  versions: [v1, v2, v3]
  hub: v2
  edges:
  - from: v1
    to: v2
    rules:
    - move:   {from: spec.cronSpec, to: spec.schedule}
    - split:
        from: spec.hostPort
        into: [spec.host, spec.port]
        separator: ":"
        types: [string, integer]
    - split:
        from: spec.times
        into: [spec.at.minute, spec.at.hour, spec.at.day]
        separator: " "
        absent: "*"
    - wrap:   {from: spec.image, to: spec.images}
    - values: {at: spec.policy, map: {Allow: allow, Forbid: forbid}}
    - cast:   {at: spec.replicas, from: string, to: integer}
    - scale:  {from: spec.timeoutSeconds, to: spec.timeoutMillis, factor: 1000}
    - keyed:  {from: spec.envList, to: spec.env, key: name, value: value}
    - drop:   {at: spec.legacyMode}
    - const:  {at: spec.engine, value: cron}
    - each:   {at: spec.containers, key: name, rules: [{move: {from: cmd, to: command}}]}
  - from: v2
    to: v3
    rules:
    - move:   {from: spec.images, to: spec.template.images}
"""


def converter(text: str, schemas: Mapping[str, Any] | None = None) -> Converter:
    [found] = read_conversions(load_manifests(text, "conversion.yaml"))
    return Converter(
        found.group, found.kind, found.versions, found.edges, hub=found.hub, schemas=schemas
    )


def crontab(version: str, **spec: Any) -> Object:
    return {
        "apiVersion": f"stable.example.com/{version}",
        "kind": "CronTab",
        "metadata": {"name": "a"},
        "spec": spec,
    }


def of(**properties: Any) -> Object:
    return {"type": "object", "properties": properties}


def listed(**properties: Any) -> Object:
    return {"type": "array", "items": of(**properties)}


TEXT, WHOLE = {"type": "string"}, {"type": "integer"}
TEXTS = {"type": "array", "items": TEXT}
MAP = {"type": "object", "additionalProperties": TEXT}
ANYTHING = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
V2 = {
    "schedule": TEXT,
    "host": TEXT,
    "port": {"type": "integer", "default": 80},
    "at": {
        "type": "object",
        "default": {},
        "properties": {"minute": {"type": "string", "default": "5"}, "hour": TEXT, "day": TEXT},
    },
    "policy": TEXT,
    "replicas": WHOLE,
    "timeoutMillis": WHOLE,
    "env": MAP,
    "engine": TEXT,
    "containers": listed(name=TEXT, command=TEXT, extra=TEXT),
}
SCHEMAS = {
    "v1": of(
        spec=of(
            cronSpec=TEXT,
            hostPort=TEXT,
            times=TEXT,
            image=TEXT,
            policy=TEXT,
            replicas=TEXT,
            timeoutSeconds={"type": "integer", "default": 30},
            envList=listed(name=TEXT, value=TEXT, note=TEXT),
            legacyMode=ANYTHING,
            containers=listed(name=TEXT, cmd=TEXT, debug=TEXT),
            only1=of(a=TEXT, b=WHOLE),
        ),
        status=of(ready=WHOLE),
    ),
    "v2": of(spec=of(**V2, images=TEXTS, only2=TEXT)),
    "v3": of(
        spec=of(
            **V2
            | {
                "schedule": {"type": "string", "default": "x"},
                "replicas": {"type": "integer", "default": 1},
                "template": of(images=TEXTS),
                "only3": listed(name=TEXT),
            }
        )
    ),
}

_MEASURES = ["5m", "1h0m0s", "2d", "1Gi", "500m"]
_STRINGS = ["", "a", "b:1", "x:y:2", "5 * 3", "* * *", "1 2", "Allow", "allow", "08", "abc", "*"]
_WORDS = st.sampled_from([*_STRINGS, "7", *_MEASURES])
_ITEMS = st.lists(
    st.fixed_dictionaries({}, optional=dict.fromkeys(["name", "value", "cmd", "x"], _WORDS))
    | _WORDS,
    max_size=3,
)
VALUES = st.recursive(
    _WORDS | st.integers(-3, 2500) | st.booleans() | st.none(),
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.dictionaries(
            st.sampled_from(["name", "value", "cmd", "a", "b", "x"]), inner, max_size=3
        )
        | _ITEMS
    ),
    max_leaves=5,
)
_NAMED = st.builds(lambda name, value: {"name": name, "value": value}, _WORDS, _WORDS)
_COMMANDS = st.builds(lambda name, cmd: {"name": name, "cmd": cmd}, _WORDS, _WORDS)
PLAUSIBLE: dict[str, st.SearchStrategy[Any]] = {
    "hostPort": st.sampled_from(["h:1", "h:80", "h", ":7", "h:08", "a:b:1"]),
    "times": st.sampled_from(["5 * 3", "* * 1", "1 2 3", "* * *", "1 2"]),
    "port": st.integers(0, 9),
    "at": st.dictionaries(st.sampled_from(["minute", "hour", "day"]), _WORDS, max_size=3),
    "images": st.lists(_WORDS, max_size=2),
    "template": st.fixed_dictionaries({"images": st.lists(_WORDS, max_size=2)}),
    "policy": st.sampled_from(["Allow", "Forbid", "allow", "forbid"]),
    "replicas": st.sampled_from(["1", "7", 1, 7]),
    "timeoutSeconds": st.integers(0, 3),
    "timeoutMillis": st.sampled_from([0, 1000, 1500]),
    "envList": st.lists(_NAMED, max_size=3)
    | st.lists(_NAMED, max_size=3, unique_by=lambda item: item["name"]).map(
        lambda items: sorted(items, key=lambda item: item["name"])
    ),
    "env": st.dictionaries(_WORDS, _WORDS, max_size=3),
    "containers": st.lists(_COMMANDS, max_size=3),
    "engine": st.sampled_from(["cron", "other"]),
}
_METADATA = st.sampled_from(
    [
        {},
        {"name": "a"},
        {"name": "a", "annotations": {}},
        {"name": "a", "annotations": {"b": "c"}, "labels": {"d": "e"}},
    ]
)


def objects(names: list[str]) -> st.SearchStrategy[Object]:
    """Objects with these fields in their spec, whatever they hold, and partial ones."""
    odd = st.fixed_dictionaries({}, optional=dict.fromkeys(names, VALUES)) | VALUES
    usual = {name: PLAUSIBLE.get(name, _WORDS) for name in names}
    spec = st.fixed_dictionaries({}, optional=usual) | odd
    fields = {"metadata": _METADATA, "spec": spec, "status": VALUES}
    return st.fixed_dictionaries({}, optional=fields)


EVERY_FIELD = sorted(
    {name for each in SCHEMAS.values() for name in each["properties"]["spec"]["properties"]}
)

_PATHS = ["spec.a", "spec.b", "spec.x", "spec.n.a", "spec.n.b", "spec.m.a", "spec.a.x", "spec.b.x"]
_PATHS += ["status.a", 'metadata.annotations["ex.io/a"]', "metadata.labels.b"]
_FIELDS = ["name", "value", "cmd", "a", "b", "x"]


@st.composite
def drawn_rules(draw: st.DrawFn, *, depth: int = 0) -> Rules:
    """Rules of all kinds, as many as fit together."""
    rules = Rules(root=depth == 0)
    paths = _PATHS if depth == 0 else _FIELDS
    for _ in range(draw(st.integers(0, 6 if depth == 0 else 2))):
        one, two, three = (draw(st.sampled_from(paths)) for _ in range(3))
        name = draw(st.sampled_from([*_DRAWN, *(_DEEP if depth < 2 else ())]))
        try:
            inside = {**_DRAWN, **_DEEP}[name](rules, one, two, three)
        except (InvalidRule, InvalidRules):
            continue
        if inside is not None:
            inside._rules = draw(drawn_rules(depth=depth + 1))._rules
        try:
            rules.block()
        except (InvalidRule, InvalidRules):  # the cases of `when` are checked last
            rules._rules.pop()
    return rules


def _when(rules: Rules, one: str, other: str, third: str, *, to: list[Any]) -> None:
    cases = rules.when(one, to=other)
    cases.case(["allow", None], to=to).const(third, "cron")
    cases.case(["b:1", 7]).cast(third, "string", "integer")
    cases.otherwise().each(third).move("a", "b")


def _when_a_boolean(rules: Rules, one: str, other: str) -> None:
    cases = rules.when(one, to=other)
    cases.case(True, to="=~")
    cases.case([None, False], to="=")
    cases.otherwise()


def _doubled(value: Any) -> Any:
    return value * 2 if type(value) in (int, str) else None


def _halved(value: Any) -> Any:
    if type(value) is str:
        return value[: len(value) // 2]
    return value // 2 if type(value) is int else None


_DRAWN: dict[str, Callable[[Rules, str, str, str], Rules | None]] = {
    "move": lambda rules, a, b, _: rules.move(a, b),
    "split": lambda rules, a, b, c: rules.split(
        a, into=[b, c], separator=":", types=["string", "integer"]
    ),
    "split with a text for none": lambda rules, a, b, c: rules.split(
        a, into=[b, c], separator=" ", absent="*"
    ),
    "values": lambda rules, a, b, _: rules.values(a, {"Allow": "allow", "a": True}, to=b),
    "cast": lambda rules, a, b, _: rules.cast(a, "string", "integer", to=b),
    "cast back": lambda rules, a, b, _: rules.cast(a, "boolean", "string", to=b),
    "scale": lambda rules, a, b, _: rules.scale(a, b, 1000),
    "scale down": lambda rules, a, b, _: rules.scale(a, b, "1/7", types=("number", "integer")),
    "duration": lambda rules, a, b, _: rules.duration(a, b, unit="m"),
    "duration of a number": lambda rules, a, b, _: rules.duration(
        a, b, unit="s", types=("number", "string"), form="short"
    ),
    "quantity": lambda rules, a, b, _: rules.quantity(a, b, unit="Mi"),
    "quantity of a number": lambda rules, a, b, _: rules.quantity(a, b, types=("number", "string")),
    "pattern": lambda rules, a, b, c: rules.pattern(
        a, "(?P<b>[^:]*)(:(?P<c>[0-9]+))?", into={"b": b, "c": c}, types={"c": "integer"}
    ),
    "join": lambda rules, a, b, _: rules.join(a, b, separator=" "),
    "cel": lambda rules, a, b, _: rules.cel(a, b, forward="self + ':1'", back="self.split(':')[0]"),
    "cel for several fields": lambda rules, a, b, c: rules.cel(
        a,
        {"one": b, "two": c},
        forward="{'one': self.split(':')[0], 'two': int(self.split(':')[1])}",
        back="self.one + ':' + string(self.two)",
    ),
    "cel for any value": lambda rules, a, b, _: rules.cel(
        a, b, forward="[self]", back="size(self) == 1 ? self[0] : null"
    ),
    "default": lambda rules, a, b, _: rules.default(a, b, "a"),
    "default of an object": lambda rules, a, b, _: rules.default(a, b, {"x": "a"}),
    "when": lambda rules, a, b, c: _when(rules, a, b, c, to=["Allow", "a"]),
    "when without mapping": lambda rules, a, b, c: _when(rules, a, b, c, to=["allow", None]),
    "when a boolean": lambda rules, a, b, _: _when_a_boolean(rules, a, b),
    "convert": lambda rules, a, b, _: rules.convert(a, b, forward=_doubled, back=_halved),
    "keyed": lambda rules, a, b, _: rules.keyed(a, b, key="name", value="value"),
    "keyed by the rest": lambda rules, a, b, _: rules.keyed(a, b, key="name"),
    "recurse": lambda rules, a, b, _: rules.recurse(a, to=b, key="name"),
    "recurse by position": lambda rules, a, *_: rules.recurse(a),
    "drop": lambda rules, a, *_: rules.drop(a),
    "add": lambda rules, a, *_: rules.add(a),
    "const": lambda rules, a, *_: rules.const(a, "cron"),
    "join reversed": lambda rules, a, b, _: rules.reverse().join(a, b, separator=":"),
    "split reversed": lambda rules, a, b, c: rules.reverse().split(a, into=[b, c], separator=":"),
    "keyed reversed": lambda rules, a, b, _: rules.reverse().keyed(a, b, key="name"),
    "when reversed": lambda rules, a, b, c: _when(rules.reverse(), a, b, c, to=["Allow", None]),
    "default reversed": lambda rules, a, b, _: rules.reverse().default(a, b, "a"),
    "cel reversed": lambda rules, a, b, _: rules.reverse().cel(
        a, b, forward="self + ':1'", back="self.split(':')[0]"
    ),
    "drop reversed": lambda rules, a, *_: rules.reverse().drop(a),
    "const reversed": lambda rules, a, *_: rules.reverse().const(a, "cron"),
}
_DEEP: dict[str, Callable[[Rules, str, str, str], Rules | None]] = {
    "wrap": lambda rules, a, b, _: rules.wrap(a, b),
    "each": lambda rules, a, b, _: rules.each(a, to=b, key="name"),
    "each by position": lambda rules, a, b, _: rules.each(a, to=b),
    "within": lambda rules, a, b, _: rules.within(a, to=b),
    "rename_keys": lambda rules, a, b, _: rules.rename_keys(
        a, {"a": "b", "x": "name", "name": "y"}, to=b
    ),
    "rename_keys reversed": lambda rules, a, b, _: rules.reverse().rename_keys(
        a, {"value": "x"}, to=b
    ),
    "wrap reversed": lambda rules, a, b, _: rules.reverse().wrap(a, b),
    "each reversed": lambda rules, a, b, _: rules.reverse().each(a, to=b, key="name"),
    "within reversed": lambda rules, a, b, _: rules.reverse().within(a, to=b),
}


@st.composite
def drawn_converters(draw: st.DrawFn) -> Converter:
    """Trees of two or three versions, with any rules."""
    versions = ["v1", "v2", "v3"][: draw(st.integers(2, 3))]
    edges = [
        DeclaredEdge(draw(st.sampled_from(versions[:number])), target, draw(drawn_rules()).block())
        for number, target in enumerate(versions)
        if number
    ]
    note("; ".join(f"{edge.source} to {edge.target}: {edge.block.rules}" for edge in edges))
    return Converter("stable.example.com", "CronTab", versions, edges)


DRAWN_FIELDS = ["a", "b", "x", "n", "m", "other"]


def interpreted(known: Converter, obj: Object, target: str) -> Object:
    source = known.version_of(obj)
    rest = {name: value for name, value in obj.items() if name != "apiVersion"}
    if source != target:
        rest = known.interpreted(rest, source, target)
    return {**rest, "apiVersion": f"{known.group}/{target}"}


def check_compiled(known: Converter, obj: Object, target: str) -> None:
    expected = interpreted(known, obj, target)
    assert same(known.convert(obj, target), expected)
    raw = known.convert_raw(msgspec.json.encode(obj), target)
    assert same(msgspec.json.decode(raw), expected)
