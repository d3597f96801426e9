"""How objects do, by what they say of themselves."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from polyver.kube.objects.health import HEALTHY, health_of

Object = dict[str, Any]
CRD = "apiextensions.k8s.io/v1 CustomResourceDefinition"


def obj(kind: str, status: Any = None, spec: Any = None, **metadata: Any) -> Object:
    version, _, name = kind.rpartition(" ")
    made: Object = {"apiVersion": version, "kind": name, "metadata": {"name": "a", **metadata}}
    return made | ({"status": status} if status is not None else {}) | {"spec": spec or {}}


def conditions(**states: str) -> Object:
    told = [{"type": name, "status": status} for name, status in states.items()]
    return {"conditions": told}


ALL = {"replicas": 3, "updatedReplicas": 3, "availableReplicas": 3, "readyReplicas": 3}


@pytest.mark.parametrize(
    "found",
    [
        obj("v1 ConfigMap"),
        obj("apps/v1 Deployment", {**ALL, "observedGeneration": 2}, {"replicas": 3}, generation=2),
        obj("apps/v1 Deployment", {"observedGeneration": 1}, {"replicas": 0}, generation=1),
        obj("apps/v1 StatefulSet", ALL, {"replicas": 3}),
        obj(
            "apps/v1 StatefulSet",
            {**ALL, "updatedReplicas": 1},
            {"replicas": 3, "updateStrategy": {"rollingUpdate": {"partition": 2}}},
        ),
        obj("apps/v1 ReplicaSet", ALL, {"replicas": 3}),
        obj(
            "apps/v1 DaemonSet",
            {"desiredNumberScheduled": 2, "updatedNumberScheduled": 2, "numberReady": 2},
        ),
        obj("batch/v1 Job", conditions(Complete="True")),
        obj("batch/v1 Job", spec={"suspend": True}),
        obj("batch/v1 CronJob"),
        obj("v1 Pod", {"phase": "Running", **conditions(Ready="True")}),
        obj("v1 Pod", {"phase": "Succeeded"}),
        obj("v1 PersistentVolumeClaim", {"phase": "Bound"}),
        obj("v1 Service", spec={"type": "ClusterIP"}),
        obj(
            "v1 Service",
            {"loadBalancer": {"ingress": [{"ip": "10.0.0.1"}]}},
            {"type": "LoadBalancer"},
        ),
        obj(CRD, conditions(NamesAccepted="True", Established="True")),
        obj("ex.io/v1 Widget", {"phase": "anything"}),
        obj("ex.io/v1 Widget", conditions(Ready="True")),
    ],
    ids=lambda found: found["kind"],
)
def test_what_does_well(found: Object) -> None:
    assert health_of(found) == HEALTHY


@pytest.mark.parametrize(
    ("found", "message"),
    [
        (obj("apps/v1 Deployment", {}, {}), "0 of 1 replicas are up to date"),
        (
            obj("apps/v1 Deployment", {**ALL, "availableReplicas": 1}, {"replicas": 3}),
            "1 of 3 replicas are available",
        ),
        (obj("apps/v1 Deployment", ALL, {"replicas": 2}), "1 old replicas still exist"),
        (
            obj(
                "apps/v1 Deployment",
                {**ALL, "observedGeneration": 1},
                {"replicas": 3},
                generation=2,
            ),
            "its controller has not observed the last change",
        ),
        (
            obj(
                "apps/v1 Deployment",
                {
                    "conditions": [
                        {
                            "type": "Progressing",
                            "status": "False",
                            "reason": "ProgressDeadlineExceeded",
                            "message": "timed out",
                        }
                    ]
                },
            ),
            "timed out",
        ),
        (obj("apps/v1 StatefulSet", {}, {"replicas": 2}), "0 of 2 replicas are ready"),
        (obj("apps/v1 DaemonSet", {}), "has no status yet"),
        (
            obj(
                "apps/v1 DaemonSet",
                {"desiredNumberScheduled": 2, "updatedNumberScheduled": 2, "numberReady": 1},
            ),
            "1 of 2 pods are ready",
        ),
        (obj("batch/v1 Job", {"succeeded": 1}, {"completions": 3}), "1 of 3 pods have succeeded"),
        (obj("batch/v1 Job", conditions(Failed="True")), "has failed"),
        (obj("v1 Pod", {"phase": "Failed", "message": "evicted"}), "is Failed, not ready: evicted"),
        (
            obj(
                "v1 Pod",
                {
                    "phase": "Pending",
                    "containerStatuses": [
                        {"name": "web", "state": {"waiting": {"reason": "ErrImagePull"}}}
                    ],
                },
            ),
            "is Pending, not ready: container web: ErrImagePull",
        ),
        (obj("v1 PersistentVolumeClaim", {"phase": "Lost"}), "is Lost, not Bound"),
        (obj("v1 Service", spec={"type": "LoadBalancer"}), "has no address yet"),
        (obj(CRD), "is not Established yet"),
        (obj("ex.io/v1 Widget", conditions(Ready="False")), "is not Ready"),
        (
            obj(
                "ex.io/v1 Widget",
                {"conditions": [{"type": "Ready", "status": "True", "observedGeneration": 1}]},
                generation=2,
            ),
            "its controller has not observed the last change",
        ),
        (obj("v1 ConfigMap", deletionTimestamp="2026-01-01T00:00:00Z"), "is being deleted"),
    ],
)
def test_what_does_not_says_what_is_missing(found: Object, message: str) -> None:
    health = health_of(found)
    assert (health.healthy, health.message) == (False, message)


NAMES = st.sampled_from(
    "conditions type status replicas phase containerStatuses state waiting loadBalancer".split()
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=4),
    max_leaves=8,
)
KINDS = st.sampled_from(
    ["apps/v1 Deployment", "apps/v1 StatefulSet", "apps/v1 DaemonSet", "batch/v1 Job", "v1 Pod"]
)


@given(KINDS, JSON, JSON)
def test_whatever_an_object_says_there_is_an_answer(kind: str, status: Any, spec: Any) -> None:
    found = health_of(obj(kind, status, spec))
    assert found.healthy is (found.message == "")
