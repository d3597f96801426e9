"""The seed's Composition and composite resource on a server, composed by hand, step by step."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest
from tests.compositions import composing
from tests.walks.support import Walk, eventually

from polyver.apis.crds import crd_of
from polyver.compositions import decisions as compositions
from polyver.compositions import pipeline
from polyver.compositions.kinds import COMPOSITION_GROUP, COMPOSITION_KINDS
from polyver.compositions.messages import Ready, Resource, Response, State

Object = dict[str, Any]
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
KINDS = f"/apis/{COMPOSITION_GROUP}/v1"
NOW = "2026-01-01T00:00:00Z"


def define(walk: Walk, crd: Object) -> None:
    walk.request("POST", DEFINITIONS, crd)
    group, plural = crd["spec"]["group"], crd["spec"]["names"]["plural"]
    for version in crd["spec"]["versions"]:
        path = f"/apis/{group}/{version['name']}/{plural}"
        eventually(partial(walk.request, "GET", path))


@pytest.fixture
def kinds(walk: Walk) -> Iterator[Walk]:
    """A walk with the kinds of compositions; nobody acts on them."""
    crds = [crd_of(kind.definition()) for kind in COMPOSITION_KINDS]
    for crd in crds:
        define(walk, crd)
    yield walk
    for crd in crds:
        path = f"{DEFINITIONS}/{crd['metadata']['name']}"
        walk.request("DELETE", path)
        eventually(partial(_is_gone, walk, path))


def _is_gone(walk: Walk, path: str) -> bool:
    return walk.request("GET", path) is None


def test_what_is_decided_for_the_seed_is_what_a_server_takes(kinds: Walk) -> None:
    walk = kinds
    buckets = f"/apis/{walk.group}/v1alpha1/acmebuckets"
    defined = definition(walk)
    define(walk, compositions.definition_crd(defined))
    written = composing.manifest(composing.SEED_COMPOSITION)
    written["spec"]["compositeTypeRef"]["apiVersion"] = f"{walk.group}/v1alpha1"
    composition = walk.request("POST", f"{KINDS}/compositions", written)

    def planned() -> compositions.Changes:
        there = walk.request("GET", f"{KINDS}/compositionrevisions")["items"]
        known = [compositions.known_composition_revision(each) for each in there]
        return compositions.composition_changes(composition, known)

    made = planned().create
    assert made is not None
    revision = walk.request(
        "POST",
        f"{KINDS}/compositionrevisions",
        compositions.composition_revision_object(made, composition),
    )
    assert planned().is_empty
    bucket = composing.manifest(composing.SEED_BUCKET)
    bucket["apiVersion"] = f"{walk.group}/v1alpha1"
    bucket = walk.request("POST", buckets, bucket)
    outcome, bucket = composed(walk, defined, composition, revision, bucket)
    bucket = walk.request("PUT", f"{buckets}/my-bucket", bucket)
    [wanted] = outcome.apply
    there = walk.request("POST", f"/api/v1/namespaces/{walk.namespace}/configmaps", wanted.obj)
    conditions = pipeline.composite_conditions(bucket, outcome, now=NOW)
    bucket["status"] = {**outcome.status, "conditions": conditions}
    bucket = walk.request("PUT", f"{buckets}/my-bucket/status", bucket)
    assert bucket["spec"]["compositionRevisionRef"] == {"name": revision["metadata"]["name"]}
    assert bucket["spec"]["resourceRefs"] == [*outcome.references]
    assert [each["status"] for each in bucket["status"]["conditions"]] == ["True", "True"]
    assert bucket["status"]["pipeline"][0]["revision"] == composing.name_of("a")
    assert pipeline.observe(bucket, [(there, {})]).keys() == {"settings"}
    walk.request("DELETE", f"{DEFINITIONS}/acmebuckets.{walk.group}")


def definition(walk: Walk) -> Object:
    found = composing.definition(
        composing.version(), composing.version("v1beta1", referenceable=False), group=walk.group
    )
    found["metadata"] = {"name": f"acmebuckets.{walk.group}"}
    made: Object = walk.request("POST", f"{KINDS}/compositeresourcedefinitions", found)
    assert compositions.check_definition(made) == []
    return made


def composed(
    walk: Walk, defined: Object, composition: Object, revision: Object, bucket: Object
) -> tuple[pipeline.PipelineOutcome, Object]:
    """What comes of a pipeline with one function, and the bucket that notes it."""
    about = compositions.read_definition(defined)
    asking = compositions.read_composite(bucket, about)
    chosen = compositions.choose_composition(
        asking, about, [compositions.candidate_of(composition)]
    )
    found = compositions.choose_revision(asking, chosen.composition, [revision])
    installed = compositions.FunctionLineages(
        [composing.function_revision("a", 1, labels=composing.ALPHA)]
    )
    steps = compositions.resolve_steps(revision, asking, installed, several=True)
    run = pipeline.start(State(Resource(bucket)), steps)
    call = pipeline.decide(run)
    assert isinstance(call, pipeline.CallStep)
    settings = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"namespace": walk.namespace},
        "data": {"region": "eu-north"},
    }
    desired = State(resources={"settings": Resource(settings, ready=Ready.TRUE)})
    outcome = pipeline.conclude(pipeline.answered(run, call.number, Response(desired=desired)))
    noted = asking.written(
        compositionRef={"name": chosen.composition},
        compositionRevisionRef={"name": found.release.name},
        resourceRefs=[*outcome.references],
    )
    return outcome, {**bucket, "spec": {**bucket["spec"], **noted["spec"]}}
