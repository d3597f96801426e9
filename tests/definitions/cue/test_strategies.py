"""The comments of patches are found wherever they stand, and nothing else is taken for one."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from polyver.definitions.cue._patches import tags_above, tags_of


def test_comments_belong_to_the_field_below_them() -> None:
    exported = '''\
metadata: annotations: {
	"a.b/c": "x"
	// +patchStrategy=retainKeys
	d: "// +patchKey=no"
}
spec: {
	// +usage=Some words that are no tag
	// +patchKey=name
	containers: [{
		name: "a"
		// +patchStrategy=replace
		args: ["{", """
			// +patchKey=no
			]}
			"""]
	}, {
		// +patchKey=ip
		hosts: []
	}]
	// +patchKey=mode
	rest: {}
}
'''
    assert tags_of(exported) == {
        ("metadata", "annotations", "d"): {"patchStrategy": "retainKeys"},
        ("spec", "containers"): {"patchKey": "name"},
        ("spec", "containers", 0, "args"): {"patchStrategy": "replace"},
        ("spec", "containers", 1, "hosts"): {"patchKey": "ip"},
        ("spec", "rest"): {"patchKey": "mode"},
    }


def test_comments_above_a_field_at_the_top_are_found() -> None:
    template = "// +patchKey=a\nother: 1\n// Words.\n// +patchStrategy=jsonPatch\npatch: {}\n"
    assert tags_above(template, "patch") == {"patchStrategy": "jsonPatch"}
    assert tags_above("x: {\n\t// +patchStrategy=jsonPatch\n\tpatch: {}\n}", "patch") == {}


TAGS = st.none() | st.sampled_from(["name", "ip", "a.b,c"])
TEXTS = st.text("ab{}[]:,\"\\/+ #'\n", max_size=6)
DATA = st.recursive(
    TEXTS | st.integers() | st.booleans() | st.none(),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(TEXTS.filter(bool), st.tuples(TAGS, inner), max_size=3)
    ),
    max_leaves=12,
)


def written(value: Any, path: tuple[str | int, ...], found: dict[Any, Any]) -> str:
    """Data as cue writes it, with comments above some of its fields."""
    if isinstance(value, list):
        items = [written(each, (*path, place), found) for place, each in enumerate(value)]
        return f"[{', '.join(items)}]"
    if not isinstance(value, dict):
        return json.dumps(value)
    return f"{{\n{fields(value, path, found)}}}"


def fields(value: dict[str, Any], path: tuple[str | int, ...], found: dict[Any, Any]) -> str:
    text = ""
    for name, (tag, inner) in value.items():
        here = (*path, name)
        if tag is not None:
            found[here] = {"patchKey": tag}
            text += f"\t// +patchKey={tag}\n"
        text += f"{json.dumps(name)}: {written(inner, here, found)}\n"
    return text


@given(st.dictionaries(TEXTS.filter(bool), st.tuples(TAGS, DATA), max_size=4))
def test_all_comments_are_found_and_no_others(data: dict[str, Any]) -> None:
    expected: dict[Any, Any] = {}
    text = fields(data, (), expected)
    assert tags_of(text) == expected
