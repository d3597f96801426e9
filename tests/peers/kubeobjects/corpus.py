"""Strategic merge patches to ask about: by hand for what matters, at random for the rest."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

Question = dict[str, Any]

_CONTAINERS = [
    {
        "name": "one",
        "image": "one:1",
        "env": [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}],
        "ports": [{"containerPort": 80, "protocol": "TCP"}, {"containerPort": 53}],
        "args": ["a", "b"],
        "resources": {"limits": {"cpu": "1"}},
    },
    {"name": "two", "image": "two:1", "volumeMounts": [{"name": "v", "mountPath": "/v"}]},
    {"name": "three", "image": "three:1"},
]
_POD_SPEC = {
    "containers": _CONTAINERS,
    "initContainers": [{"name": "init", "image": "init:1"}],
    "volumes": [{"name": "v", "emptyDir": {}}, {"name": "w", "configMap": {"name": "c"}}],
    "tolerations": [{"key": "a", "operator": "Exists"}],
    "imagePullSecrets": [{"name": "s"}],
    "hostAliases": [{"ip": "1.2.3.4", "hostnames": ["a", "b"]}],
    "topologySpreadConstraints": [{"topologyKey": "zone", "maxSkew": 1}],
    "nodeSelector": {"a": "b"},
    "securityContext": {"runAsUser": 1, "sysctls": [{"name": "a", "value": "b"}]},
}
_METADATA = {
    "name": "a",
    "labels": {"l": "1", "m": "2"},
    "annotations": {"n": "x"},
    "finalizers": ["ex.io/one", "ex.io/two", "ex.io/three"],
    "ownerReferences": [
        {"apiVersion": "v1", "kind": "ConfigMap", "name": "o", "uid": "u1"},
        {"apiVersion": "v1", "kind": "ConfigMap", "name": "p", "uid": "u2"},
    ],
}


def _object(api_version: str, kind: str, **rest: Any) -> dict[str, Any]:
    return {"apiVersion": api_version, "kind": kind, "metadata": _METADATA, **rest}


POD = _object("v1", "Pod", spec=_POD_SPEC)
DEPLOYMENT = _object(
    "apps/v1",
    "Deployment",
    spec={
        "replicas": 1,
        "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1}},
        "template": {"metadata": {"labels": {"a": "b"}}, "spec": _POD_SPEC},
    },
    status={"conditions": [{"type": "Available", "status": "True"}, {"type": "Progressing"}]},
)
SERVICE = _object(
    "v1",
    "Service",
    spec={
        "selector": {"a": "b"},
        "clusterIPs": ["10.0.0.1", "10.0.0.2"],
        "ports": [
            {"name": "http", "port": 80, "protocol": "TCP"},
            {"name": "dns", "port": 53, "protocol": "UDP"},
            {"name": "more", "port": 81},
        ],
    },
)
ACCOUNT = _object(
    "v1",
    "ServiceAccount",
    secrets=[{"name": "a"}, {"name": "b"}],
    imagePullSecrets=[{"name": "c"}],
)
NODE = _object(
    "v1",
    "Node",
    spec={"podCIDRs": ["10.0.0.0/24"], "taints": [{"key": "a", "effect": "NoSchedule"}]},
    status={
        "addresses": [{"type": "InternalIP", "address": "1.1.1.1"}],
        "conditions": [{"type": "Ready", "status": "True"}, {"type": "Other", "status": "False"}],
    },
)
BUDGET = _object(
    "policy/v1", "PodDisruptionBudget", spec={"selector": {"matchLabels": {"a": "b", "c": "d"}}}
)
CONFIG = _object("v1", "ConfigMap", data={"a": "1", "b": "2"})
CLAIM = _object(
    "v1",
    "PersistentVolumeClaim",
    spec={"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
)
DEFINITION = _object(
    "apiextensions.k8s.io/v1",
    "CustomResourceDefinition",
    spec={
        "names": {"plural": "widgets", "shortNames": ["w"]},
        "versions": [{"name": "v1", "schema": {"openAPIV3Schema": {"type": "object"}}}],
    },
)
WEBHOOKS = _object(
    "admissionregistration.k8s.io/v1",
    "ValidatingWebhookConfiguration",
    webhooks=[
        {"name": "a", "clientConfig": {"url": "u"}, "rules": [{"operations": ["*"]}]},
        {"name": "b", "clientConfig": {"service": {"name": "s", "namespace": "n"}}},
    ],
)
ORIGINALS = [
    POD,
    DEPLOYMENT,
    SERVICE,
    ACCOUNT,
    NODE,
    BUDGET,
    CONFIG,
    CLAIM,
    DEFINITION,
    WEBHOOKS,
]
KEYS = {
    "containers": "name",
    "initContainers": "name",
    "volumes": "name",
    "env": "name",
    "volumeMounts": "mountPath",
    "imagePullSecrets": "name",
    "hostAliases": "ip",
    "topologySpreadConstraints": "topologyKey",
    "ownerReferences": "uid",
    "secrets": "name",
    "conditions": "type",
    "addresses": "type",
    "webhooks": "name",
    "tolerations": "key",
    "versions": "name",
    "taints": "key",
    "rules": "operations",
}
"""What items are told apart by, where that is one thing; ports have two names for it."""

_SPECIFIC: list[tuple[dict[str, Any], dict[str, Any]]] = [
    (SERVICE, {}),
    (SERVICE, {"$patch": "delete"}),
    (SERVICE, {"$patch": "replace", "metadata": {"name": "a", "labels": None}}),
    (SERVICE, {"$patch": "merge"}),
    (SERVICE, {"$patch": 5}),
    (SERVICE, {"$patch": None}),
    (SERVICE, {"$patch": [1, "a", None, {"b": True}]}),
    (SERVICE, {"metadata": None}),
    (SERVICE, {"metadata": "text"}),
    (SERVICE, {"metadata": {"labels": {"$patch": "delete"}}}),
    (SERVICE, {"metadata": {"labels": {"$patch": "replace", "x": "y", "z": None}}}),
    (SERVICE, {"metadata": {"labels": {"$retainKeys": ["l"], "l": "2"}}}),
    (SERVICE, {"metadata": {"labels": {"$retainKeys": ["l"], "m": "2"}}}),
    (SERVICE, {"metadata": {"labels": {"$retainKeys": ["l"], "m": None}}}),
    (SERVICE, {"metadata": {"labels": {"$retainKeys": "l"}}}),
    (SERVICE, {"metadata": {"labels": {"$retainKeys": [{}]}}}),
    (SERVICE, {"metadata": {"labels": {"$retainKeys": [1, None, "l"]}}}),
    (SERVICE, {"metadata": {"$deleteFromPrimitiveList/finalizers": ["ex.io/one", "nope"]}}),
    (SERVICE, {"metadata": {"$deleteFromPrimitiveList/finalizers": None}}),
    (SERVICE, {"metadata": {"$deleteFromPrimitiveList/finalizers": "ex.io/one"}}),
    (SERVICE, {"metadata": {"$deleteFromPrimitiveList/finalizers": [1]}}),
    (SERVICE, {"metadata": {"$deleteFromPrimitiveList/finalizers": [{}]}}),
    (SERVICE, {"metadata": {"$deleteFromPrimitiveList/nothing": ["x"]}}),
    (SERVICE, {"metadata": {"$deleteFromPrimitiveList/": ["x"]}}),
    (SERVICE, {"metadata": {"$deleteFromPrimitiveList": ["x"]}}),
    (SERVICE, {"metadata": {"$deleteFromPrimitiveLists/finalizers": ["x"]}}),
    (SERVICE, {"spec": {"$deleteFromPrimitiveList/clusterIPs": ["10.0.0.1"]}}),
    (SERVICE, {"spec": {"$deleteFromPrimitiveList/ports": [{"port": 80}]}}),
    (SERVICE, {"spec": {"$deleteFromPrimitiveList/selector": {"a": "b"}}}),
    (SERVICE, {"metadata": {"$setElementOrder/finalizers": ["ex.io/two", "ex.io/one"]}}),
    (SERVICE, {"metadata": {"$setElementOrder/finalizers": []}}),
    (SERVICE, {"metadata": {"$setElementOrder/finalizers": [], "finalizers": ["x", "y"]}}),
    (SERVICE, {"metadata": {"$setElementOrder/finalizers": None}}),
    (SERVICE, {"metadata": {"$setElementOrder/finalizers": {}}}),
    (SERVICE, {"metadata": {"$setElementOrder/finalizers": [{}]}}),
    (SERVICE, {"metadata": {"$setElementOrder/finalizers": ["x"], "finalizers": "x"}}),
    (SERVICE, {"metadata": {"$setElementOrder/finalizers": ["x"], "finalizers": None}}),
    (SERVICE, {"metadata": {"$setElementOrder/finalizers": ["x"], "finalizers": ["x", "y"]}}),
    (SERVICE, {"metadata": {"$setElementOrder/finalizers": ["y", "x"], "finalizers": ["x", "y"]}}),
    (SERVICE, {"metadata": {"$setElementOrder/labels": ["x"]}}),
    (SERVICE, {"metadata": {"$setElementOrder/name": ["x"]}}),
    (SERVICE, {"metadata": {"$setElementOrder/nothing": ["x"]}}),
    (SERVICE, {"metadata": {"$setElementOrder": ["x"]}}),
    (SERVICE, {"metadata": {"$setElementOrders/x": ["x"]}}),
    (SERVICE, {"metadata": {"labels": {"$setElementOrder/x": ["x"]}}}),
    (SERVICE, {"metadata": {"finalizers": [["x"]]}}),
    (SERVICE, {"metadata": {"finalizers": [1]}}),
    (SERVICE, {"metadata": {"finalizers": [None]}}),
    (SERVICE, {"metadata": {"finalizers": [{"a": 1.5}]}}),
    (SERVICE, {"metadata": {"finalizers": []}}),
    (SERVICE, {"metadata": {"finalizers": ["ex.io/two", "x", "x", "ex.io/one"]}}),
    (SERVICE, {"spec": {"ports": [["x"]]}}),
    (SERVICE, {"spec": {"ports": ["x"]}}),
    (SERVICE, {"spec": {"ports": [None]}}),
    (SERVICE, {"spec": {"ports": []}}),
    (SERVICE, {"spec": {"ports": [{}]}}),
    (SERVICE, {"spec": {"ports": [{"port": 80.0, "name": "x"}]}}),
    (SERVICE, {"spec": {"ports": [{"port": "80", "name": "x"}]}}),
    (SERVICE, {"spec": {"ports": [{"port": None, "name": "x"}]}}),
    (SERVICE, {"spec": {"ports": [{"port": {}, "name": "x"}]}}),
    (SERVICE, {"spec": {"ports": [{"port": 80, "name": None, "nodePort": None}]}}),
    (SERVICE, {"spec": {"ports": [{"port": 99, "name": None, "x": {"$patch": "delete"}}]}}),
    (SERVICE, {"spec": {"ports": [{"$patch": "delete", "port": 80}, {"$patch": "replace"}]}}),
    (SERVICE, {"spec": {"ports": [{"$patch": "replace"}]}}),
    (SERVICE, {"spec": {"ports": [{"$patch": "delete"}]}}),
    (SERVICE, {"spec": {"ports": [{"$patch": "merge", "port": 80}]}}),
    (SERVICE, {"spec": {"ports": [{"$patch": True, "port": 1e21, "x": 1e6, "y": 0.00001}]}}),
    (SERVICE, {"spec": {"ports": [{"x": [1.5, 1e20, -0.5, 123456789.5, 1e-7], "y": True}]}}),
    (SERVICE, {"spec": {"ports": [{"port": 80, "$patch": "delete"}, {"port": 80, "name": "new"}]}}),
    (SERVICE, {"spec": {"externalName": {"a": None, "b": {"$patch": "x"}, "c": [{"d": None}]}}}),
    (SERVICE, {"spec": {"externalIPs": ["1"], "$setElementOrder/externalIPs": ["1"]}}),
    (SERVICE, {"nothing": {"a": {"$patch": "delete"}, "b": [{"$patch": "delete"}, {"c": None}]}}),
    (SERVICE, {"nothing": {"$patch": "delete"}}),
    (SERVICE, {"spec": {"selector": {"a": {"x": "y"}}}}),
    (_object("v1", "Service", spec={"ports": []}), {"spec": {"ports": []}}),
    (_object("v1", "Service", spec={"ports": []}), {"spec": {"ports": [{"port": 1}]}}),
    (_object("v1", "Service", spec={"ports": []}), {"spec": {"$setElementOrder/ports": []}}),
    (_object("v1", "Service", spec={}), {"spec": {"$setElementOrder/ports": [{"port": 1}]}}),
    (_object("v1", "Service", spec={"ports": [{"x": 1}]}), {"spec": {"ports": [{"port": 1}]}}),
    (
        SERVICE,
        {"spec": {"$setElementOrder/ports": [{"port": 1}, {"port": 53}], "ports": [{"port": 1}]}},
    ),
    (
        SERVICE,
        {
            "spec": {
                "$setElementOrder/ports": [{"port": 1}],
                "ports": [{"port": 1}, {"port": 80, "$patch": "delete"}],
            }
        },
    ),
    (
        SERVICE,
        {
            "spec": {
                "$setElementOrder/ports": [{"port": 1}, {"port": 2}],
                "ports": [{"port": 1}, {"$patch": "replace"}, {"port": 2}],
            }
        },
    ),
    (SERVICE, {"spec": {"$setElementOrder/ports": [{"x": 1}], "ports": [{"port": 1}]}}),
    (SERVICE, {"spec": {"$setElementOrder/ports": ["x"], "ports": [{"port": 1}]}}),
    (SERVICE, {"spec": {"$setElementOrder/ports": [{"x": 1}]}}),
    (SERVICE, {"spec": {"$setElementOrder/ports": [], "ports": [{"port": 1}, {"port": 2}]}}),
    (BUDGET, {"spec": {"selector": {"matchLabels": {"a": None, "x": "y"}}}}),
    (BUDGET, {"spec": {"selector": {"$patch": "delete"}}}),
    (DEPLOYMENT, {"spec": {"strategy": {"$retainKeys": ["type"], "type": "Recreate"}}}),
    (DEPLOYMENT, {"spec": {"strategy": {"$retainKeys": [], "type": "Recreate"}}}),
    (POD, {"spec": {"volumes": [{"name": "v", "$retainKeys": ["name", "secret"], "secret": {}}]}}),
    (POD, {"spec": {"$setElementOrder/tolerations": [{"key": "a"}]}}),
    (POD, {"spec": {"tolerations": [{"key": "b", "value": None, "$patch": "replace"}]}}),
    (POD, {"spec": {"containers": [{"name": "one", "args": [None, {"$patch": "delete"}]}]}}),
    (
        _object(
            "apiextensions.k8s.io/v1",
            "CustomResourceDefinition",
            spec={"conversion": {"webhook": {"clientConfig": {"service": {"name": "a"}}}}},
        ),
        {"spec": {"conversion": {"webhook": {"clientConfig": {"service": {"path": "/"}}}}}},
    ),
    (
        _object(
            "apps/v1", "ControllerRevision", data={"spec": {"a": {"b": 1}, "c": [1]}, "d": [2]}
        ),
        {"data": {"spec": {"a": {"b": 2}}}},
    ),
    (_object("apps/v1", "ControllerRevision", data={"d": [2]}), {"data": {"d": [3]}}),
]


def questions(*, seed: int = 1, each: int = 30) -> list[Question]:
    """All that is asked: (original, patch) pairs with the kind that they are of."""
    chance = random.Random(seed)
    pairs = [*_SPECIFIC]
    for original in ORIGINALS:
        pairs += [(original, _Change(chance).of_map(original, depth=0)) for _ in range(each)]
    return [_question(original, patch) for original, patch in pairs]


def _question(original: dict[str, Any], patch: dict[str, Any]) -> Question:
    kind = {"apiVersion": original["apiVersion"], "kind": original["kind"]}
    return {**kind, "original": original, "patch": patch}


class _Change:
    """Patches at random that have something to do with the object: most of them make sense."""

    def __init__(self, chance: random.Random) -> None:
        self._chance = chance

    def _happens(self, likely: float) -> bool:
        return self._chance.random() < likely

    def of_map(self, value: dict[str, Any], *, depth: int) -> dict[str, Any]:
        patch: dict[str, Any] = {}
        for key, each in value.items():
            if key not in {"apiVersion", "kind"} and self._happens(0.6 if depth < 2 else 0.4):
                patch |= self._of_field(key, each, depth)
        patch |= {key: each for key, each in self._extra() if depth}
        if depth > 1 and self._happens(0.04):
            patch["$patch"] = self._chance.choice(["replace", "delete"])
        if depth > 1 and self._happens(0.06):
            patch["$retainKeys"] = [*patch, *self._some(list(value))]
        return patch

    def _extra(self) -> Iterator[tuple[str, Any]]:
        if self._happens(0.1):
            yield self._chance.choice(["x", "y"]), self._chance.choice([None, 1, "t", {"z": None}])

    def _of_field(self, key: str, value: Any, depth: int) -> dict[str, Any]:
        if self._happens(0.06):
            return {key: self._chance.choice([None, None, "text", 1, [], {}])}
        match value:
            case dict():
                return {key: self.of_map(value, depth=depth + 1)}
            case [dict(), *_]:
                return self._of_items(key, value, depth)
            case list():
                return self._of_scalars(key, value)
            case _:
                return {key: self._chance.choice([value, None, "new", 7, True])}

    def _of_items(self, name: str, value: list[Any], depth: int) -> dict[str, Any]:
        key = KEYS.get(name) or ("containerPort" if "containerPort" in value[0] else "port")
        items = [self._of_item(item, key, depth) for item in self._some(value)]
        items += [{key: new, "name": "n"} | {key: new} for new in self._some(["k1", "k2", 90])]
        if self._happens(0.5):
            self._chance.shuffle(items)
        patch: dict[str, Any] = {name: items}
        if self._happens(0.4):
            patch[f"$setElementOrder/{name}"] = self._order(value, items, key)
        if self._happens(0.05):
            items.append({"$patch": "replace"})
        if self._happens(0.1):
            del patch[name]
        return patch

    def _of_item(self, item: dict[str, Any], key: str, depth: int) -> dict[str, Any]:
        if key not in item:
            return item
        if self._happens(0.25):
            return {key: item[key], "$patch": "delete"}
        changed = {part: each for part, each in item.items() if part != key}
        named = {} if self._happens(0.02) else {key: item[key]}
        return self.of_map(changed, depth=depth + 1) | named

    def _order(self, value: list[Any], items: list[Any], key: str) -> list[Any]:
        """An order that fits the patch, most of the time: kubectl's own does."""
        wanted = [item[key] for item in items if key in item and "$patch" not in item]
        others = [item[key] for item in value if key in item and item[key] not in wanted]
        for other in self._some(others):
            wanted.insert(self._chance.randint(0, len(wanted)), other)
        if self._happens(0.1):
            self._chance.shuffle(wanted)
        return [{key: each} for each in wanted]

    def _of_scalars(self, name: str, value: list[Any]) -> dict[str, Any]:
        patch: dict[str, Any] = {}
        wanted = [*self._some(value), *self._some(["n1", "n2"])]
        if self._happens(0.7):
            self._chance.shuffle(wanted)
            patch[name] = wanted
        if self._happens(0.3):
            gone = [item for item in value if item not in wanted]
            patch[f"$deleteFromPrimitiveList/{name}"] = [*self._some(gone), "other"]
        if self._happens(0.4):
            order = [*wanted]
            for each in self._some([item for item in value if item not in wanted]):
                order.insert(self._chance.randint(0, len(order)), each)
            patch[f"$setElementOrder/{name}"] = order
        return patch

    def _some(self, items: list[Any]) -> list[Any]:
        return [item for item in items if self._happens(0.5)]
