"""Preserved fields in the items of lists: compiled rules do what the interpreter does."""

from __future__ import annotations

import copy

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.apis.conversions import Object, check_compiled, converter, crontab

KNOWN = converter("""
apiVersion: polyver.dev/v1alpha1
kind: Conversion
metadata: {name: crontabs.stable.example.com}
spec:
  group: stable.example.com
  kind: CronTab
  versions: [v1, v2]
  edges:
  - from: v1
    to: v2
    rules:
    - each:
        at: spec.containers
        key: name
        rules:
        - move: {from: cmd, to: command}
        - cast: {at: size, from: string, to: integer}
        - drop: {at: debug}
        - add: {at: extra}
""")
_ITEM = {
    "cmd": st.sampled_from(["run", "stop"]),
    "command": st.sampled_from(["run", 5]),
    "size": st.sampled_from(["1", "x", "08", 7, None]),
    "debug": st.sampled_from([1, {"a": [None]}]),
    "extra": st.sampled_from(["e", []]),
}
NAMES = st.sampled_from(["a", "b", "c", "=d", 5])


def items() -> st.SearchStrategy[Object]:
    return st.fixed_dictionaries({"name": NAMES}, optional=_ITEM)


@given(
    st.lists(items(), max_size=4, unique_by=lambda item: str(item["name"])) | st.lists(items()),
    st.lists(items(), max_size=2),
    st.integers(0, 4),
    st.booleans(),
)
@settings(max_examples=150)
def test_compiled_rules_preserve_and_restore_items_as_the_interpreter_does(
    before: list[Object], more: list[Object], left: int, turned: bool
) -> None:
    first, other = ("v2", "v1") if turned else ("v1", "v2")
    obj = crontab(first, containers=before)
    check_compiled(KNOWN, obj, other)
    view = copy.deepcopy(KNOWN.convert(obj, other))
    check_compiled(KNOWN, view, first)
    assert KNOWN.convert(view, first) == obj
    spec = view.setdefault("spec", {})
    kept = spec.get("containers", [])
    for item in kept[:1]:
        item["size"] = 3 if other == "v2" else "3"
    spec["containers"] = [*more, *kept[left:], *kept[:left]]
    check_compiled(KNOWN, view, first)
