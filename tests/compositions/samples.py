"""Functions and their revisions for tests."""

from __future__ import annotations

import hashlib
from typing import Any

from polyver.compositions.packages import StepFunctionUse
from polyver.core import UNSPECIFIED, Dependent, Exact, Labels, Selector

Object = dict[str, Any]
GROUP = "pkg.crossplane.io"
SEED = "xpkg.crossplane.io/crossplane-contrib/function-patch-and-transform"


def digest_of(package: str) -> str:
    """What the content of a package is in tests: the text of its reference."""
    return f"sha256:{hashlib.sha256(package.encode()).hexdigest()}"


def package(version: str, name: str = "resize") -> str:
    return f"xpkg.example.org/functions/{name}:{version}"


def function(
    name: str = "resize",
    version: str = "v1",
    *,
    kind: str = "Function",
    labels: dict[str, str] | None = None,
    annotations: dict[str, str] | None = None,
    **spec: Any,
) -> Object:
    return {
        "apiVersion": f"{GROUP}/v1",
        "kind": kind,
        "metadata": {"name": name, "labels": labels or {}, "annotations": annotations or {}},
        "spec": {"package": package(version, name), **spec},
    }


def seed(*, version: str = "v0.8.2", **labels: str) -> Object:
    """The Function as the seed prints it; with a label as it is printed the second time."""
    about = {"labels": {key.replace("_", "-"): text for key, text in labels.items()}}
    return {
        "apiVersion": f"{GROUP}/v1",
        "kind": "Function",
        "metadata": {"name": "function-patch-and-transform", **(about if labels else {})},
        "spec": {
            "package": f"{SEED}:{version}",
            "revisionHistoryLimit": 4,
            "activeRevisionLimit": 2,
        },
    }


def use(
    name: str, selector: Selector = UNSPECIFIED, *, function: str = "resize", step: str = "run"
) -> StepFunctionUse:
    return StepFunctionUse(
        Dependent(f"CompositionRevision {name}", f"spec.pipeline[{step}]"), function, selector
    )


def by_label(**labels: str) -> Labels:
    return Labels.of(labels)


def by_name(name: str) -> Exact:
    return Exact(name)
