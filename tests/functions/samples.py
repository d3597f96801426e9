"""Functions, catalogues and blueprints that tests begin with."""

from __future__ import annotations

from typing import Any

from polyver.functions import Duration, Registry
from polyver.functions.blueprints import Blueprint, blueprints_in
from polyver.functions.catalogue import FunctionCatalogue, read_catalogue
from polyver.functions.registering import Functions, known_functions
from polyver.kube.objects import load_manifests

CATALOGUE = """\
releases: [0.1.0, 0.2.0, 0.3.0]          # the last one is now
functions:
  Report:
    versions:
      v0.0.0: {stage: deprecated, since: 0.2.0, removedIn: 0.4.0, use: v0.1.0}
      v0.1.0: {stage: stable}
      v0.2.0: {stage: candidate}
      v0.0.9: {stage: removed, removedIn: 0.3.0, use: v0.1.0}
"""
SEED = """\
actions:
  tail:
    phases:
    - func: KubeExec
      funcVersion: v0.1.0
      name: tail
      args:
        namespace: default
        pod: timer
        container: timer
        command:
        - sh
        - "-c"
        - |
         /bin/tail_datetime.sh
"""
"""As the seed prints it."""
HEAD = """\
apiVersion: cr.kanister.io/v1alpha1
kind: Blueprint
metadata: {name: times, namespace: kanister}
"""


def registry() -> Registry:
    """KubeExec in the seed's versions, Report in those of the catalogue, and Plain in none."""
    found = Registry()

    @found.register("KubeExec")
    async def kube_exec(
        ctx: object, namespace: str, pod: str, container: str | None, command: list[str]
    ) -> dict[str, Any]:
        return {"version": "v0.0.0", "container": container}

    @found.register("KubeExec", version="v0.1.0", stable=True)
    async def kube_exec_v010(
        ctx: object,
        *,
        namespace: str,
        pod: str,
        container: str | None,
        command: list[str],
        timeout: Duration = "1m",  # type: ignore[assignment]
    ) -> dict[str, Any]:
        return {"version": "v0.1.0", "timeout": timeout}

    @found.register("KubeExec", version="v0.2.0")
    async def kube_exec_v020(
        ctx: object, namespace: str, pod: str, container: str | None, command: list[str]
    ) -> dict[str, Any]:
        return {"version": "v0.2.0"}

    for version in (None, "v0.1.0", "v0.2.0"):

        @found.register("Report", version=version)
        def report(ctx: object, text: str = "") -> dict[str, Any]:
            return {}

    @found.register("Plain")
    def plain(ctx: object, **further: object) -> dict[str, Any]:
        return further

    return found


def catalogue(text: str = CATALOGUE, source: str = "catalogue.yaml") -> FunctionCatalogue:
    [document] = load_manifests(text, source)
    return read_catalogue(document)


def known(text: str = CATALOGUE) -> Functions:
    return known_functions(registry(), [catalogue(text)])


def blueprint(actions: str = SEED) -> Blueprint:
    [(_, found, findings)] = blueprints_in(load_manifests(HEAD + actions, "bp.yaml"))
    assert findings == []
    assert found is not None
    return found


def phase(function: str, version: str = "", **fields: str) -> str:
    """A blueprint with one action of one phase."""
    said = {"func": function, "name": "only"} | fields
    said |= {"funcVersion": version} if version else {}
    text = ", ".join(f"{name}: {value}" for name, value in said.items())
    return f"actions: {{run: {{phases: [{{{text}}}]}}}}\n"
