"""Which versions of functions made an artifact: noted on it, and read when it is used."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from polyver.core import InvalidVersion, SemVer
from polyver.functions.actions._run import ActionRun

__all__ = ["made_with", "with_makers"]


def with_makers(action: ActionRun, artifacts: Mapping[str, Any]) -> dict[str, Any]:
    """Artifacts, each with the functions and versions that the phases of its action called."""
    called = {
        (action.written(place).function, phase.version)
        for place, phase in enumerate(action.phases)
        if phase.version
    }
    makers = [{"name": name, "version": version} for name, version in sorted(called)]
    return {name: {**artifact, "functions": makers} for name, artifact in artifacts.items()}


def made_with(artifact: Mapping[str, Any]) -> dict[str, set[SemVer]]:
    """The versions of each function that made an artifact, as far as it says so."""
    found: dict[str, set[SemVer]] = {}
    for each in artifact.get("functions") or ():
        try:
            version = SemVer.complete(str(each.get("version") or ""))
        except InvalidVersion:
            continue  # it was written by hand, and says nothing
        found.setdefault(str(each.get("name") or ""), set()).add(version)
    return found
