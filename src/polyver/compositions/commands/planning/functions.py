"""Serves the function revisions that a plan calls, on this machine or at given addresses."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from polyver.cli.exit_codes import Misused
from polyver.cli.output import warn
from polyver.compositions.calls import FunctionFailed, probe
from polyver.compositions.commands.rendering.function_calls import (
    FunctionNotServed,
    FunctionServer,
    ServedRevision,
)
from polyver.compositions.lineages import content_digest
from polyver.compositions.names import ENDPOINT
from polyver.compositions.packages import function_of
from polyver.compositions.runtimes import DesiredRevision
from polyver.core import PolyverError, listed
from polyver.core.plain import Object

__all__ = ["ADDRESS_HINT", "read_addresses", "records_references", "serve_functions"]

_OPTION = "--function-address"
ADDRESS_HINT = f"or pass the address at which it runs with {_OPTION}"
_PROBE = 10.0


def read_addresses(texts: Sequence[str]) -> dict[str, str]:
    """Parse `--function-address`: NAME=ADDRESS, with a Function or a FunctionRevision as NAME."""
    found: dict[str, str] = {}
    for text in texts:
        name, equals, address = text.partition("=")
        if not name or not equals or not address:
            raise Misused(f"{text!r} is not a pair", at=_OPTION, hint="write NAME=ADDRESS")
        if name in found:
            raise Misused(f"{name} has two addresses", at=_OPTION)
        found[name] = address
    return found


def records_references(revisions: Iterable[Object]) -> bool:
    """Report whether the control plane identifies packages by their references.

    It does so if functions run as Deployments. Otherwise it identifies them by their contents.
    """
    return any(
        _is_reference(each)
        for each in revisions
        if not (each["metadata"].get("annotations") or {}).get(ENDPOINT)
    )


def _is_reference(revision: Object) -> bool:
    spec = revision["spec"]
    return spec.get("digest") in (None, "", content_digest(spec["image"]))


async def serve_functions(
    served: FunctionServer,
    revisions: Sequence[Object],
    addresses: Mapping[str, str],
    places: Mapping[str, str],
) -> None:
    """Serve FunctionRevisions, and wait until all of them answer.

    `addresses` are those of `--function-address`. `places` are the places of Functions in files, by
    name. Raise FunctionNotServed if a revision cannot be served.
    """
    chosen = _chosen(revisions, addresses)
    wanted = [
        await _wanted(served, each, chosen[each["metadata"]["name"]], places) for each in revisions
    ]
    await served.serve(wanted)
    for each in wanted:
        if each.wanted.address:
            await _check(served, each)


def _chosen(revisions: Sequence[Object], addresses: Mapping[str, str]) -> dict[str, str]:
    """Return the address of each revision; empty for a revision that runs on this machine."""
    found: dict[str, str] = {}
    users: dict[str, list[str]] = {}
    for each in revisions:
        name, function = each["metadata"]["name"], function_of(each)
        if name not in addresses and function in addresses:
            users.setdefault(function, []).append(name)
        own = (each["metadata"].get("annotations") or {}).get(ENDPOINT, "")
        found[name] = addresses.get(name) or addresses.get(function) or own
    for function, names in users.items():
        if len(names) > 1:
            fact = f"the plan needs {len(names)} revisions of {function}: {listed(sorted(names))}"
            raise Misused(fact, at=_OPTION, hint="pass the address of each revision")
    unknown = sorted({*addresses} - {*found} - {function_of(each) for each in revisions})
    if unknown:
        known = listed(sorted(found)) or "none"
        fact = f"the plan does not call {listed(unknown)}"
        raise Misused(fact, at=_OPTION, hint=f"it calls the revisions {known}")
    return found


async def _wanted(
    served: FunctionServer, revision: Object, address: str, places: Mapping[str, str]
) -> ServedRevision:
    name, spec = revision["metadata"]["name"], revision["spec"]
    digest = spec.get("digest") or content_digest(spec["image"])
    in_file = "uid" not in revision["metadata"]
    at = places.get(function_of(revision), "") if in_file else ""
    at = at or f"FunctionRevision {name}"
    if not address and _is_reference(revision):
        digest = await _local_digest(served, spec["image"], at)
        warn(
            f"{name} runs with the package that --packages lists for {spec['image']}; the cluster "
            "does not record the content of this package, so it may differ"
        )
    wanted = DesiredRevision(name, spec["image"], digest, address)
    return ServedRevision(wanted, at, _OPTION if address else at, ADDRESS_HINT)


async def _local_digest(served: FunctionServer, package: str, at: str) -> str:
    try:
        return await served.digest(package, "")
    except PolyverError as error:
        raise FunctionNotServed(error.fact, at=at, hint=f"{error.hint}; {ADDRESS_HINT}") from None


async def _check(served: FunctionServer, each: ServedRevision) -> None:
    """Raise FunctionNotServed if a function does not answer at its address."""
    name, address = each.wanted.name, each.wanted.address
    try:
        await probe(await served.reach(name, ""), within=_PROBE)
    except FunctionFailed as error:
        hint = f"pass an address that this machine can reach with {_OPTION}"
        fact = f"{name} does not answer at {address}: {error.fact}"
        raise FunctionNotServed(fact, at=each.at, hint=hint) from None
