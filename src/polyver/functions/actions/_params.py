"""Data for the templates of a blueprint, and rendering of arguments.

The names are Kanister's, so that existing blueprints have the same meaning here.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from polyver.core import PolyverError
from polyver.functions.actions._artifacts import with_makers
from polyver.functions.actions._run import ActionRun, RunState
from polyver.functions.registering import Function
from polyver.languages.gotemplate import TemplateError, render_value

__all__ = [
    "Objects",
    "params_of",
    "render_arguments",
    "render_artifacts",
    "workload_params",
]

_NO_PROFILES = "Profiles are not supported; use options, configMaps or secrets"


@dataclass(frozen=True, slots=True)
class Objects:
    """Objects that were read for one action."""

    object: Mapping[str, Any] | None = None
    config_maps: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    secrets: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    of_phases: Mapping[str, Mapping[str, Mapping[str, Any]]] = field(default_factory=dict)
    """The objects under `objects` of each phase, by phase and name."""


def params_of(action: ActionRun, objects: Objects) -> dict[str, Any]:
    """Return the data for the templates of an action in its current state."""
    spec: Mapping[str, Any] = action.snapshot.get("spec") or {}
    found: dict[str, Any] = {
        "Time": action.snapshot.get("time", ""),
        "Options": spec.get("options") or {},
        "ArtifactsIn": _artifacts(spec.get("artifacts") or {}),
        "ConfigMaps": {name: _data_object(each) for name, each in objects.config_maps.items()},
        "Secrets": {name: _data_object(each) for name, each in objects.secrets.items()},
        "Phases": _phases(action, objects),
        "PodOverride": spec.get("podOverride") or {},
        "PodLabels": spec.get("podLabels") or {},
        "PodAnnotations": spec.get("podAnnotations") or {},
        **(action.snapshot.get("workload") or {}),
    }
    found |= {"Object": objects.object} if objects.object is not None else {}
    deferred = action.deferred
    if deferred is not None and deferred.state is RunState.COMPLETE:
        found["DeferPhase"] = {"Output": deferred.output or {}}
    return found | {"ArtifactsOut": _known_artifacts(action, found)}


def _phases(action: ActionRun, objects: Objects) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for phase in action.phases:
        held = objects.of_phases.get(phase.name) or {}
        seen = {"Secrets": _of_kind(held, "Secret"), "ConfigMaps": _of_kind(held, "ConfigMap")}
        output = {"Output": phase.output or {}} if phase.state is RunState.COMPLETE else {}
        found[phase.name] = seen | output
    return found


def _of_kind(held: Mapping[str, Mapping[str, Any]], kind: str) -> dict[str, Any]:
    return {name: _data_object(each) for name, each in held.items() if each.get("kind") == kind}


def _data_object(obj: Mapping[str, Any]) -> dict[str, Any]:
    """Return a ConfigMap or a Secret as templates see it; binary values are left out."""
    metadata: Mapping[str, Any] = obj.get("metadata") or {}
    names = ("name", "namespace", "labels", "annotations")
    about = {
        name.capitalize(): metadata.get(name) or ("" if "name" in name else {}) for name in names
    }
    data: Mapping[str, str] = obj.get("data") or {}
    if obj.get("kind") == "Secret":
        texts = {name: _decoded(value) for name, value in data.items()}
        data = {name: text for name, text in texts.items() if text is not None}
    return {**about, "ObjectMeta": about, "Data": data, "Type": obj.get("type") or ""}


def _decoded(value: str) -> str | None:
    try:
        return base64.b64decode(value).decode()
    except (binascii.Error, UnicodeDecodeError):
        return None


def _artifacts(written: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: {
            "KeyValue": each.get("keyValue") or {},
            "KopiaSnapshot": each.get("kopiaSnapshot") or "",
        }
        for name, each in written.items()
    }


def _known_artifacts(action: ActionRun, params: Mapping[str, Any]) -> dict[str, Any]:
    """Return the output artifacts that use no phases, which templates may read in any phase."""
    written: Mapping[str, Any] = action.snapshot["action"].get("outputArtifacts") or {}
    found: dict[str, Any] = {}
    for name, artifact in written.items():
        try:
            rendered = render_value(artifact, {**params, "Phases": {}}, name=name)
        except PolyverError:
            continue  # reported at the end of the action
        assert isinstance(rendered, dict)
        found[name] = rendered
    return _artifacts(found)


def render_arguments(
    action: ActionRun, place: int, function: Function, params: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the rendered arguments of a phase; those that the function renders are unchanged."""
    phase = action.written(place)
    own = {each.name for each in function.arguments.fields if each.unrendered}
    name = f"{phase.at}.args"
    rendered = _rendered({k: v for k, v in phase.arguments.items() if k not in own}, params, name)
    return rendered | {k: v for k, v in phase.arguments.items() if k in own}


def render_artifacts(action: ActionRun, params: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the output artifacts of an action; None if it has none."""
    written: Mapping[str, Any] = action.snapshot["action"].get("outputArtifacts") or {}
    if not written:
        return None
    rendered = _rendered(written, params, f"actions.{action.name}.outputArtifacts")
    return with_makers(action, rendered)


def _rendered(value: Mapping[str, Any], params: Mapping[str, Any], name: str) -> dict[str, Any]:
    try:
        rendered = render_value(value, params, name=name)
    except TemplateError as error:
        if '"Profile"' in error.fact:
            raise PolyverError(error.fact, at=error.at, hint=_NO_PROFILES) from None
        raise
    assert isinstance(rendered, dict)
    return rendered


# The object of an action.


def workload_params(kind: str, obj: Mapping[str, Any], pods: Sequence[Mapping[str, Any]]) -> Any:
    """Return template data of an object, as `{"Deployment": {…}}`; empty for other kinds."""
    metadata: Mapping[str, Any] = obj.get("metadata") or {}
    about = {"Name": metadata.get("name", "")}
    if kind == "Namespace":
        return {"Namespace": about}
    about["Namespace"] = metadata.get("namespace", "")
    if kind == "PersistentVolumeClaim":
        return {"PVC": about}
    if kind not in ("Deployment", "StatefulSet", "DaemonSet", "DeploymentConfig"):
        return {}
    named = sorted(pods, key=lambda pod: str(pod["metadata"]["name"]))
    claims = {pod["metadata"]["name"]: _claims(pod.get("spec") or {}) for pod in named}
    return {
        kind: {
            **about,
            "Pods": [pod["metadata"]["name"] for pod in named],
            "Containers": [_containers(pod.get("spec") or {}) for pod in named],
            "PersistentVolumeClaims": claims,
        }
    }


def _containers(spec: Mapping[str, Any]) -> list[str]:
    return [each.get("name", "") for each in spec.get("containers") or ()]


def _claims(spec: Mapping[str, Any]) -> dict[str, str]:
    """Return the claims that a pod mounts, and their mount paths."""
    mounts = {
        mount["name"]: mount.get("mountPath", "")
        for container in spec.get("containers") or ()
        for mount in container.get("volumeMounts") or ()
    }
    return {
        volume["persistentVolumeClaim"]["claimName"]: mounts[volume["name"]]
        for volume in spec.get("volumes") or ()
        if "persistentVolumeClaim" in volume and volume["name"] in mounts
    }
