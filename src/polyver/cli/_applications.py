"""`polyver why app/NAME`: which versions an application on a cluster uses, and why not others."""

from __future__ import annotations

import asyncio
from typing import Any

from polyver.capabilities.definitions.choosing import Chosen, choose, lineage_in, resolution_data
from polyver.capabilities.definitions.kinds import (
    APPLICATIONS,
    DEFINITIONS,
    GROUP,
    STORED,
    VERSIONED,
)
from polyver.capabilities.definitions.uses import Use, check_application, uses_of
from polyver.cli._exit import Found, UnknownName, Unreadable
from polyver.cli._output import Format, emit, print_lines, print_table, warn
from polyver.client import Client, Resource, find
from polyver.core import Lineage, PolyverError
from polyver.objects.status import ApiError

__all__ = ["why_application"]

_APPLICATIONS = Resource(GROUP, STORED, APPLICATIONS.names.plural)
_DEFINITIONS = {kind.kind: Resource(GROUP, VERSIONED, kind.names.plural) for kind in DEFINITIONS}
_Homes = dict[tuple[str, str], dict[str, Lineage]]


def why_application(
    name: str, namespace: str, context: str, output: Format, *, explain: bool
) -> None:
    """Tell which versions an application on a cluster uses, and why."""
    from polyver.client.cluster import ClusterClient, find_access

    access = find_access(context)
    where = namespace or access.namespace

    async def read() -> tuple[dict[str, Any], _Homes]:
        async with ClusterClient(access) as client:
            try:
                return await _read(client, where, name)
            except ApiError as error:
                fact = f"the application {name} cannot be read: {error.message}"
                raise Unreadable(fact, at=f"{access.server}, {access.place}") from None

    _answer(*asyncio.run(read()), output, explain=explain)


async def _read(client: Client, namespace: str, name: str) -> tuple[dict[str, Any], _Homes]:
    """An application, and the lineages of all that it names."""
    application = await find(client, _APPLICATIONS, name, namespace)
    if application is None:
        raise UnknownName(f"there is no application {name} in the namespace {namespace}")
    homes: _Homes = {}
    for kind, definition in {(use.kind, use.definition) for use in uses_of(application)}:
        fields = f"metadata.name={definition}"
        found = (await client.list(_DEFINITIONS[kind], fields=fields)).items
        lineages = {each["metadata"]["namespace"]: lineage_in(each) for each in found}
        homes[kind, definition] = {k: v for k, v in lineages.items() if v is not None}
    return application, homes


def _answer(application: dict[str, Any], homes: _Homes, output: Format, *, explain: bool) -> None:
    check_application(application)
    answers = [(use, _asked(use, homes)) for use in uses_of(application)]
    errors = [answer for _, answer in answers if isinstance(answer, PolyverError)]
    chosen = [answer for _, answer in answers if isinstance(answer, Chosen)]
    if output is Format.TABLE:
        _print(chosen, explain=explain)
    else:
        said = [_data(each, explain=explain) for each in chosen]
        emit({"resolutions": said, "errors": [*map(str, errors)]}, output)
    if errors:
        raise Found("; ".join(map(str, errors)))


def _asked(use: Use, homes: _Homes) -> Chosen | PolyverError:
    try:
        return choose(use, homes[use.kind, use.definition])
    except PolyverError as error:
        return error


def _print(chosen: list[Chosen], *, explain: bool) -> None:
    rows = [
        [each.use.dependent.at, _wanted(each.use), each.resolution.release.name, _reason(each)]
        for each in chosen
    ]
    if rows:
        print_table(["PLACE", "ASKED FOR", "VERSION", "REASON"], rows)
    for each in chosen:
        for warning in each.resolution.warnings:
            warn(warning)
        rejected = [[other.release.name, other.why] for other in each.resolution.rejected]
        if rejected and explain:
            print_lines("", f"{each.use.dependent.at}:")
            print_table(["NOT CHOSEN", "WHY"], rejected)


def _wanted(use: Use) -> str:
    return f"{use.definition}@{use.requested}" if use.requested else use.definition


def _reason(chosen: Chosen) -> str:
    since = f", since {chosen.use.since}" if chosen.use.since else ""
    return f"{chosen.resolution.reason}{since}"


def _data(chosen: Chosen, *, explain: bool) -> dict[str, Any]:
    rejected = [
        {"release": other.release.name, "why": other.why} for other in chosen.resolution.rejected
    ]
    return resolution_data(chosen, now="") | ({"rejected": rejected} if explain else {})
