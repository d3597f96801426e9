"""Autoscalers in two versions: what one cannot say, its annotations carry."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from polyver.kube.objects.builtin import shape_of
from polyver.kube.objects.typed_bodies import decode_typed
from polyver.kube.server.kinds._builtin import defaults_of
from polyver.kube.server.kinds._scaling import to_v1, to_v2

SHAPE = shape_of("autoscaling", "v2", "HorizontalPodAutoscaler")
NAMES = st.sampled_from(["a", "b", "c"])
AMOUNTS = st.sampled_from(["1", "500m", "2Gi"])
COUNTS = st.integers(1, 100)
METRIC = st.fixed_dictionaries(
    {"name": NAMES}, optional={"selector": st.just({"matchLabels": {"a": "b"}})}
)
DESCRIBED = st.just({"kind": "X", "name": "y", "apiVersion": "ex.io/v1"})


def _target(**values: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    one_of = [
        st.fixed_dictionaries({"type": st.just(kind), kind[0].lower() + kind[1:]: value})
        for kind, value in values.items()
    ]
    return st.one_of(*one_of)


def _utilization() -> st.SearchStrategy[dict[str, Any]]:
    share = st.fixed_dictionaries({"type": st.just("Utilization"), "averageUtilization": COUNTS})
    return st.one_of(share, _target(AverageValue=AMOUNTS))


def _metric(kind: str, **fields: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    source = kind[0].lower() + kind[1:]
    return st.fixed_dictionaries({"type": st.just(kind), source: st.fixed_dictionaries(fields)})


EITHER = _target(Value=AMOUNTS, AverageValue=AMOUNTS)
# Not cpu with its share: there v1 has a field of its own, and so no order among others.
OTHERS = st.lists(
    st.one_of(
        _metric("Resource", name=st.just("memory"), target=_utilization()),
        _metric("ContainerResource", name=NAMES, container=NAMES, target=_utilization()),
        _metric("Pods", metric=METRIC, target=_target(AverageValue=AMOUNTS)),
        _metric("Object", metric=METRIC, describedObject=DESCRIBED, target=EITHER),
        _metric("External", metric=METRIC, target=EITHER),
    ),
    max_size=3,
)
POLICY = st.fixed_dictionaries({"type": st.just("Pods"), "value": COUNTS, "periodSeconds": COUNTS})
RULES = st.fixed_dictionaries(
    {"selectPolicy": st.sampled_from(["Max", "Min"]), "policies": st.lists(POLICY, min_size=1)},
    optional={"stabilizationWindowSeconds": st.integers(0, 100)},
)
CURRENT = st.lists(
    _metric("Resource", name=NAMES, current=st.fixed_dictionaries({"averageValue": AMOUNTS}))
    | _metric("Pods", metric=METRIC, current=st.fixed_dictionaries({"averageValue": AMOUNTS})),
    max_size=2,
)


@st.composite
def autoscalers(draw: st.DrawFn) -> dict[str, Any]:
    metrics = draw(OTHERS)
    if share := draw(st.none() | COUNTS):
        cpu = {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": share}}
        metrics = [*metrics, {"type": "Resource", "resource": cpu}]
    spec: dict[str, Any] = {"maxReplicas": draw(COUNTS), "metrics": metrics}
    spec["scaleTargetRef"] = {"kind": "Deployment", "name": "a", "apiVersion": "apps/v1"}
    if behaviour := draw(st.none() | st.fixed_dictionaries({"scaleUp": RULES, "scaleDown": RULES})):
        spec["behavior"] = behaviour
    status: dict[str, Any] = {"currentReplicas": draw(COUNTS), "currentMetrics": draw(CURRENT)}
    own = draw(st.dictionaries(NAMES, NAMES))
    metadata = {"name": "a", **({"annotations": own} if own else {})}
    obj = decode_typed({"metadata": metadata, "spec": spec, "status": status}, SHAPE).value
    return {"apiVersion": "autoscaling/v2", **defaults_of(SHAPE)(obj)}


@given(autoscalers())
def test_an_autoscaler_that_v1_shows_is_stored_as_it_was(obj: dict[str, Any]) -> None:
    assert to_v2(to_v1(obj)) == obj


@given(autoscalers())
def test_v1_has_a_field_for_the_share_of_cpu_alone(obj: dict[str, Any]) -> None:
    shown = to_v1(obj)
    shares = [
        metric["resource"]["target"]["averageUtilization"]
        for metric in obj["spec"]["metrics"]
        if metric["type"] == "Resource" and metric["resource"]["name"] == "cpu"
    ]
    assert shown["spec"].get("targetCPUUtilizationPercentage") == (shares[0] if shares else None)
    assert "metrics" not in shown["spec"]


@given(st.text() | st.sampled_from(["[1]", "{}", '[{"type":"Pods","pods":7}]', '{"ScaleUp":1}']))
def test_annotations_that_say_nothing_are_no_reason_to_fail(text: str) -> None:
    spec = {"maxReplicas": 3, "scaleTargetRef": {"kind": "X", "name": "y"}}
    names = ("metrics", "current-metrics", "behavior", "conditions")
    annotations = {f"autoscaling.alpha.kubernetes.io/{name}": text for name in names}
    obj = {"metadata": {"name": "a", "annotations": annotations}, "spec": spec}
    stored = to_v2(obj)
    assert stored["spec"]["maxReplicas"] == 3
    assert "annotations" not in stored["metadata"]
    json.dumps(stored)
