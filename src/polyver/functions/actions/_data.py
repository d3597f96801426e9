"""Data of an action: parameters of its templates, rendered arguments, outputs and artifacts.

The parameters have the names that Kanister uses, so that existing blueprints have the same meaning
here.

The outputs of a phase are the values that its function returns. An output is sensitive if the
function or the phase declares it sensitive, or if it contains a value of a Secret. The status of an
ActionSet shows a mask instead of a sensitive output.

polyver records in each artifact which functions, in which versions, the action called to make it.
When an ActionSet that uses the artifact starts, polyver compares these versions with the versions
that this ActionSet calls.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from polyver.core import InvalidVersion, PolyverError, SemVer
from polyver.functions.actions._run import ActionRun, RunState
from polyver.functions.blueprints.templates import NO_PROFILES, WORKLOADS
from polyver.functions.registering import Function
from polyver.kube.objects.masking import MASK, Masks, is_masked
from polyver.languages.gotemplate import TemplateError, render_value

__all__ = [
    "Objects",
    "made_with",
    "masked_artifacts",
    "params_of",
    "render_arguments",
    "render_artifacts",
    "split_output",
    "with_makers",
    "with_outputs",
    "workload_params",
]

_ALL: Final = "*"


@dataclass(frozen=True, slots=True)
class Objects:
    """Objects that the controller has read from the API server for one action."""

    object: Mapping[str, Any] | None = None
    config_maps: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    secrets: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    of_phases: Mapping[str, Mapping[str, Mapping[str, Any]]] = field(default_factory=dict)
    """The objects that phases name in their field `objects`, by the names of phase and object."""


def params_of(action: ActionRun, objects: Objects) -> dict[str, Any]:
    """Build the data that the templates of an action can read in its current state."""
    spec: Mapping[str, Any] = action.snapshot.get("spec") or {}
    phases: dict[str, Any] = {}
    for phase in action.phases:
        held = objects.of_phases.get(phase.name) or {}
        seen = {"Secrets": _of_kind(held, "Secret"), "ConfigMaps": _of_kind(held, "ConfigMap")}
        output = {"Output": phase.output or {}} if phase.state is RunState.COMPLETE else {}
        phases[phase.name] = seen | output
    found: dict[str, Any] = {
        "Time": action.snapshot.get("time", ""),
        "Options": spec.get("options") or {},
        "ArtifactsIn": _artifacts(spec.get("artifacts") or {}),
        "ConfigMaps": {name: _data_object(each) for name, each in objects.config_maps.items()},
        "Secrets": {name: _data_object(each) for name, each in objects.secrets.items()},
        "Phases": phases,
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


def _of_kind(held: Mapping[str, Mapping[str, Any]], kind: str) -> dict[str, Any]:
    return {name: _data_object(each) for name, each in held.items() if each.get("kind") == kind}


def _data_object(obj: Mapping[str, Any]) -> dict[str, Any]:
    """Convert a ConfigMap or Secret to data for templates, without values that are not text."""
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
    """Render the output artifacts that do not need outputs of phases.

    The templates of all phases can read these artifacts.
    """
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
    """Render the templates in the arguments of a phase; `place` is the index of the phase.

    An argument whose templates the function renders itself is returned unchanged.
    """
    phase = action.written(place)
    own = {each.name for each in function.arguments.fields if each.unrendered}
    name = f"{phase.at}.args"
    rendered = _rendered({k: v for k, v in phase.arguments.items() if k not in own}, params, name)
    return rendered | {k: v for k, v in phase.arguments.items() if k in own}


def render_artifacts(action: ActionRun, params: Mapping[str, Any]) -> dict[str, Any] | None:
    """Render the output artifacts of an action; return None if the action declares none."""
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
            raise PolyverError(error.fact, at=error.at, hint=NO_PROFILES) from None
        raise
    assert isinstance(rendered, dict)
    return rendered


# The object of an action.


def workload_params(kind: str, obj: Mapping[str, Any], pods: Sequence[Mapping[str, Any]]) -> Any:
    """Build the data that templates read about the object of an action: `{"Deployment": {…}}`.

    The result is empty if the object is not a workload, a PersistentVolumeClaim or a Namespace.
    """
    metadata: Mapping[str, Any] = obj.get("metadata") or {}
    about = {"Name": metadata.get("name", "")}
    if kind == "Namespace":
        return {"Namespace": about}
    about["Namespace"] = metadata.get("namespace", "")
    if kind == "PersistentVolumeClaim":
        return {"PVC": about}
    if kind not in WORKLOADS:
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
    """Return the path at which a pod mounts each of its PersistentVolumeClaims, by claim name."""
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


# The function versions that made an artifact.


def with_makers(action: ActionRun, artifacts: Mapping[str, Any]) -> dict[str, Any]:
    """Record in each artifact the functions that the action called, with their versions."""
    called = {
        (action.written(place).function, phase.version)
        for place, phase in enumerate(action.phases)
        if phase.version
    }
    makers = [{"name": name, "version": version} for name, version in sorted(called)]
    return {name: {**artifact, "functions": makers} for name, artifact in artifacts.items()}


def made_with(artifact: Mapping[str, Any]) -> dict[str, set[SemVer]]:
    """Return the versions of the functions that made an artifact, by the name of the function.

    The artifact records these versions.
    """
    found: dict[str, set[SemVer]] = {}
    for each in artifact.get("functions") or ():
        try:
            version = SemVer.complete(str(each.get("version") or ""))
        except InvalidVersion:
            continue  # written by hand, and not a version
        found.setdefault(str(each.get("name") or ""), set()).add(version)
    return found


# Sensitive outputs.


def split_output(
    action: ActionRun, place: int, function: Function, output: Mapping[str, Any], masks: Masks
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Split the outputs of a phase into those for the status and the sensitive ones for a Secret.

    The outputs for the status have a mask instead of each sensitive value.
    """
    names = {*function.sensitive, *action.sensitive(place)}
    hidden = {
        key: value
        for key, value in output.items()
        if key in names or _ALL in names or masks.is_in({key: value})
    }
    shown = {masks.mask(key): MASK if key in hidden else each for key, each in output.items()}
    return shown, hidden


def with_outputs(action: ActionRun, kept: Mapping[int, Mapping[str, Any]]) -> ActionRun:
    """Return the action with its sensitive outputs instead of masks, as its templates read it.

    `kept` has the sensitive outputs of each phase, by the index of the phase.
    """
    for place, hidden in kept.items():
        call = action.calls[place]
        whole = replace(call, output={**(call.output or {}), **hidden})
        action = action.with_call(place, whole)
    return action


def masked_artifacts(spec: Mapping[str, Any]) -> list[str]:
    """Return the names of the input artifacts that contain a mask instead of a value.

    This happens if a user copies an artifact from the status of another ActionSet. The value cannot
    be recovered from its mask.
    """
    artifacts: Mapping[str, Any] = spec.get("artifacts") or {}
    return [name for name, each in artifacts.items() if is_masked(each)]
