"""The function versions that made an artifact: recorded in it, and checked when it is used."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from polyver.core import InvalidVersion, SemVer
from polyver.functions.actions._run import ActionRun

__all__ = ["made_with", "with_makers"]


def with_makers(action: ActionRun, artifacts: Mapping[str, Any]) -> dict[str, Any]:
    """Return artifacts, each with the functions and versions that its action called."""
    called = {
        (action.written(place).function, phase.version)
        for place, phase in enumerate(action.phases)
        if phase.version
    }
    makers = [{"name": name, "version": version} for name, version in sorted(called)]
    return {name: {**artifact, "functions": makers} for name, artifact in artifacts.items()}


def made_with(artifact: Mapping[str, Any]) -> dict[str, set[SemVer]]:
    """Return the versions of each function that made an artifact, as far as recorded."""
    found: dict[str, set[SemVer]] = {}
    for each in artifact.get("functions") or ():
        try:
            version = SemVer.complete(str(each.get("version") or ""))
        except InvalidVersion:
            continue  # written by hand, and not a version
        found.setdefault(str(each.get("name") or ""), set()).add(version)
    return found
