"""Definitions, Compositions, composite resources and FunctionRevisions for tests."""

from __future__ import annotations

import hashlib
from typing import Any

from polyver.compositions.decisions import Composite, read_composite, read_definition
from polyver.compositions.names import PACKAGE, revision_name
from polyver.kube.objects import load_manifests

Object = dict[str, Any]
GROUP = "custom-api.example.org"
KIND = "AcmeBucket"
VERSION = f"{GROUP}/v1alpha1"
FUNCTION = "function-patch-and-transform"
ALPHA = {"release-channel": "alpha"}

SEED_COMPOSITION = """
apiVersion: apiextensions.crossplane.io/v1
kind: Composition
metadata:
  name: example
  labels:
    release-channel: alpha
spec:
  compositeTypeRef:
    apiVersion: custom-api.example.org/v1alpha1
    kind: AcmeBucket
  mode: Pipeline
  pipeline:
  - step: patch-and-transform
    functionRef:
      name: function-patch-and-transform
    functionRevisionSelector:
      matchLabels:
        release-channel: alpha
    input:
      apiVersion: pt.fn.crossplane.io/v1beta1
      kind: Resources
      resources: []
"""

SEED_BUCKET = """
apiVersion: custom-api.example.org/v1alpha1
kind: AcmeBucket
metadata:
  name: my-bucket
spec:
  compositionUpdatePolicy: Manual
  compositionRevisionSelector:
    matchLabels:
      release-channel: alpha
"""


def manifest(text: str) -> Object:
    """The one object of a manifest, as a server has it."""
    [document] = load_manifests(text, "seed.yaml")
    obj: Object = document.value  # type: ignore[assignment]
    obj["metadata"]["uid"] = f"uid-of-{obj['metadata']['name']}"
    return obj


def version(name: str = "v1alpha1", *, referenceable: bool = True, **spec: Object) -> Object:
    fields = {"type": "object", "properties": spec or {"size": {"type": "integer"}}}
    return {
        "name": name,
        "served": True,
        "referenceable": referenceable,
        "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": fields}}},
    }


def definition(*versions: Object, **spec: Any) -> Object:
    return {
        "apiVersion": "apiextensions.crossplane.io/v1",
        "kind": "CompositeResourceDefinition",
        "metadata": {"name": f"acmebuckets.{GROUP}", "uid": "uid-of-definition"},
        "spec": {
            "group": GROUP,
            "names": {"kind": KIND, "plural": "acmebuckets"},
            "versions": [*versions] or [version()],
            **spec,
        },
    }


def step(name: str = "run", function: str = FUNCTION, **more: Any) -> Object:
    return {"step": name, "functionRef": {"name": function}, **more}


def composition(
    name: str = "example",
    *steps: Object,
    labels: dict[str, str] | None = None,
    api_version: str = VERSION,
    **spec: Any,
) -> Object:
    return {
        "apiVersion": "apiextensions.crossplane.io/v1",
        "kind": "Composition",
        "metadata": {"name": name, "uid": f"uid-of-{name}", "labels": labels or {}},
        "spec": {
            "compositeTypeRef": {"apiVersion": api_version, "kind": KIND},
            "mode": "Pipeline",
            "pipeline": [*steps] or [step()],
            **spec,
        },
    }


def bucket(*, labels: dict[str, str] | None = None, namespace: str = "", **spec: Any) -> Object:
    metadata = {"name": "my-bucket", "uid": "7d3a", "labels": labels or {}}
    metadata |= {"namespace": namespace} if namespace else {}
    return {"apiVersion": VERSION, "kind": KIND, "metadata": metadata, "spec": spec}


def composite(obj: Object | None = None, **defined: Any) -> Composite:
    found = obj if obj is not None else bucket()
    return read_composite(found, read_definition(definition(**defined)))


def digest_of(content: str) -> str:
    return f"sha256:{hashlib.sha256(content.encode()).hexdigest()}"


def name_of(content: str, function: str = FUNCTION) -> str:
    return revision_name(function, digest_of(content))


def function_revision(
    content: str,
    number: int,
    *,
    active: bool = True,
    function: str = FUNCTION,
    labels: dict[str, str] | None = None,
) -> Object:
    """A FunctionRevision with some content, as the server has it."""
    found: Object = {
        "apiVersion": "pkg.crossplane.io/v1",
        "kind": "FunctionRevision",
        "metadata": {
            "name": name_of(content, function),
            "labels": {**(labels or {}), PACKAGE: function},
        },
        "spec": {
            "desiredState": "Active" if active else "Inactive",
            "image": f"xpkg.example.org/{function}:{content}",
            "revision": number,
            "digest": digest_of(content),
        },
    }
    if active:
        found["status"] = {"endpoint": f"127.0.0.1:{9000 + number}"}
    return found
