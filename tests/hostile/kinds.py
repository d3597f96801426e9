"""The custom kinds that the hostile shapes are sent to."""

from __future__ import annotations

from typing import Any

GROUP = "hostile.example.com"
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
THINGS = f"/apis/{GROUP}/v1/namespaces/default/things"
OLD_THINGS = f"/apis/{GROUP}/v1alpha1/namespaces/default/things"
ROWS = f"/apis/{GROUP}/v1/namespaces/rows/things"
"""A namespace with many small objects."""

_TEXT = {"type": "string"}
_ENTRY = {
    "type": "object",
    "required": ["name"],
    "properties": {"name": _TEXT, "value": {"type": "string", "default": "v"}},
}
_SIZES = {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}}}
_ANY_SIZE = {"anyOf": [{"required": ["a"]}, {"required": ["b"]}, {"required": ["c"]}]}


def _list(items: Any, **more: Any) -> dict[str, Any]:
    return {"type": "array", "items": items} | more


def _rule(text: str) -> dict[str, Any]:
    return {"x-kubernetes-validations": [{"rule": text}]}


SPEC: dict[str, Any] = {
    "type": "object",
    "properties": {
        "plain": _list(_TEXT),
        "numbers": _list({"type": "integer"}),
        "either": _list({"x-kubernetes-int-or-string": True}),
        "entries": _list(
            _ENTRY, **{"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]}
        ),
        "distinct": _list(_TEXT, **{"x-kubernetes-list-type": "set"}),
        "groups": _list(
            _list(_TEXT, **{"x-kubernetes-list-type": "atomic"}),
            **{"x-kubernetes-list-type": "set"},
        ),
        "pattern": _list({"type": "string", "pattern": "^(a|aa|a*)*b$"}),
        "dates": _list({"type": "string", "format": "date-time"}),
        "chosen": _list({"type": "string", "enum": [f"value-{n}" for n in range(2000)]}),
        "sizes": _list(_SIZES | _ANY_SIZE | {"not": {"required": ["d"]}, "oneOf": [_ANY_SIZE]}),
        "filled": _list({"type": "object", "properties": {"x": {"type": "object", "default": {}}}}),
        "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
        "map": {"type": "object", "additionalProperties": _TEXT},
        "embedded": _list(
            {
                "type": "object",
                "x-kubernetes-embedded-resource": True,
                "x-kubernetes-preserve-unknown-fields": True,
            }
        ),
        "pairs": _list({"type": "string", "maxLength": 20}, maxItems=400)
        | _rule("self.all(x, self.exists(y, x == y))"),
        "each": _list({"type": "string", "maxLength": 30} | _rule("self.startsWith('n')")),
        "kept": _list(
            {
                "type": "object",
                "required": ["name"],
                "properties": {"name": {"type": "string", "maxLength": 30}, "value": _TEXT},
            }
            | _rule("self.name == oldSelf.name"),
            **{"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]},
        ),
        "matched": {"type": "string"} | _rule("self.matches('^(a|aa|a*)*b$')"),
        "split": {"type": "string"} | _rule("self.split(',').size() >= 0"),
    },
}


def _version(name: str, *, stored: bool, columns: int) -> dict[str, Any]:
    schema = {"type": "object", "properties": {"spec": SPEC, "status": _SIZES}}
    paths = [".spec.entries[*].name", ".spec.plain[*]", ".spec.map", ".metadata.labels"]
    return {
        "name": name,
        "served": True,
        "storage": stored,
        "schema": {"openAPIV3Schema": schema},
        "subresources": {"status": {}},
        "selectableFields": [{"jsonPath": ".spec.matched"}],
        "additionalPrinterColumns": [
            {"name": f"c{n}", "type": "string", "jsonPath": paths[n % len(paths)]}
            for n in range(columns)
        ],
    }


def definition(plural: str, kind: str, versions: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "metadata": {"name": f"{plural}.{GROUP}"},
        "spec": {
            "group": GROUP,
            "scope": "Namespaced",
            "names": {"plural": plural, "kind": kind},
            "versions": versions,
        },
    }


THING = definition(
    "things",
    "Thing",
    [_version("v1", stored=True, columns=8), _version("v1alpha1", stored=False, columns=1)],
)


def thing(name: str, /, version: str = "v1", **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": f"{GROUP}/{version}",
        "kind": "Thing",
        "metadata": {"name": name},
        "spec": spec,
    }
