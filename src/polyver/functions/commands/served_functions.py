"""The functions of a control plane, read from `GET /functions`.

The API server of `polyver up` serves the path `/functions`, but kube-apiserver does not. On a
cluster, polyver therefore sends the request through kube-apiserver's proxy to the Service of
polyver.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from polyver.capability.gates import gate_from_data
from polyver.cli.exit_codes import UnreadableInput
from polyver.cli.output import warn
from polyver.core import InvalidVersion, Lineage, Notes, PolyverError, Release, SemVer, Stage
from polyver.functions.loading import load_known
from polyver.functions.registering import (
    ANYTHING,
    ArgumentField,
    Arguments,
    Function,
    Functions,
    KnownFunction,
    functions_data,
)
from polyver.kube.objects.status import ApiError

__all__ = ["ServedFunctions", "asked_functions", "functions_on", "warn_of_differences"]

PATH = "/functions"
_THROUGH = "/api/v1/namespaces/{}/services/https:polyver:443/proxy/functions"
_NAMESPACE = "polyver-system"


@dataclass(frozen=True, slots=True)
class ServedFunctions:
    """The functions that the blueprints of a control plane can call, as it reports them."""

    server: str
    data: dict[str, Any]

    @property
    def known(self) -> Functions:
        """The functions as a `Functions` object. They have no code, so calling them is an error."""
        return Functions({each["name"]: _known(each, self.server) for each in self._functions})

    @property
    def _functions(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.data.get("functions") or []
        return found


def asked_functions(
    context: str,
    functions: Sequence[str] | None,
    catalogue: Sequence[str] | None,
    *,
    traceback: bool,
) -> Functions:
    """Return the functions from the options `--functions` and `--catalogue`.

    If neither option is set, return the functions of the control plane. Otherwise, warn about
    differences from the functions of the control plane.
    """
    if not functions and not catalogue:
        return functions_on(context).known
    known = load_known(functions, catalogue, traceback=traceback)
    try:
        warn_of_differences(known, functions_on(context))
    except PolyverError as error:
        warn(f"the given functions were not compared with those of the server: {error}")
    return known


def functions_on(context: str) -> ServedFunctions:
    """Read the functions of a control plane. Raise UnreadableInput if this fails."""
    from polyver.client.cluster import ClusterClient, find_access

    access = find_access(context)

    async def ask() -> dict[str, Any]:
        async with ClusterClient(access) as client:
            try:
                return await client.document(PATH)
            except ApiError as error:
                if error.code not in (403, 404):
                    raise
            return await client.document(_THROUGH.format(_NAMESPACE))

    try:
        return ServedFunctions(access.server, asyncio.run(ask()))
    except ApiError as error:
        fact = f"{access.server} does not list its functions: {error.message}"
        hint = "run polyver there with the capability functions, or pass code with --functions"
        raise UnreadableInput(fact, at=access.place, hint=hint) from None


def warn_of_differences(known: Functions, served: ServedFunctions) -> None:
    """Warn about each function whose local versions or stages differ from those on the server."""
    here = {each["name"]: each for each in functions_data(known)["functions"]}
    there = {each["name"]: each for each in served.data.get("functions") or ()}
    for name in sorted(here.keys() | there.keys()):
        one, other = _versions(here.get(name)), _versions(there.get(name))
        if one != other:
            fact = f"{name} is {other or 'missing'} on {served.server}, and {one or 'missing'} here"
            warn(f"{fact}; the local functions are used")


def _versions(function: dict[str, Any] | None) -> str:
    """Return the versions of a function with their stages: `v0.1.0 stable, v0.2.0 candidate`.

    Removed versions are left out.
    """
    versions = (function or {}).get("versions") or ()
    usable = [each for each in versions if each["stage"] != "removed"]
    return ", ".join(f"{each['version']} {each['stage']}" for each in usable)


def _known(data: dict[str, Any], server: str) -> KnownFunction:
    name, code = data["name"], {}
    releases = [_release(each) for each in data.get("versions") or ()]
    for each, release in zip(data.get("versions") or (), releases, strict=True):
        version = release.version
        if each.get("registered") and isinstance(version, SemVer):
            code[version] = Function(name, version, _elsewhere, _arguments(each), server)
    lineage = Lineage(name, releases, versioned=bool(data.get("versioned")))
    earlier = [lineage.get(each) for each in data.get("earlier") or ()]
    return KnownFunction(lineage, code, earlier=tuple(each for each in earlier if each))


def _arguments(data: dict[str, Any]) -> Arguments:
    """Return the arguments of a version by their names. Their types are not compared here."""
    fields = [
        ArgumentField(each["name"], each["name"], ANYTHING, bool(each.get("required")))
        for each in data.get("arguments") or ()
    ]
    return Arguments(tuple(fields), ANYTHING if "furtherArguments" in data else None)


def _elsewhere(*_: object) -> None:
    raise PolyverError("this function is on a server, and cannot be called locally")


def _release(data: dict[str, Any]) -> Release:
    notes = Notes(_date(data, "since"), _date(data, "removedIn"), use=data.get("use") or "")
    version = SemVer.complete(data["version"])
    gate = gate_from_data(data["gate"]) if "gate" in data else None
    name = data["version"]
    return Release(version, stage=Stage(data["stage"]), gate=gate, notes=notes, name=name)


def _date(data: dict[str, Any], name: str) -> SemVer | None:
    try:
        return SemVer.complete(data[name]) if name in data else None
    except InvalidVersion:
        return None
