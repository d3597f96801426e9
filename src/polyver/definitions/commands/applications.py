"""`polyver why app/NAME`: the versions that an application uses, and why."""

from __future__ import annotations

from typing import Any

from polyver.cli.cluster import on_cluster
from polyver.cli.exit_codes import ProblemsFound
from polyver.cli.output import OutputFormat, emit, print_lines, print_table, warn
from polyver.client import Client
from polyver.client.cluster import ClusterAccess
from polyver.core import FailedMove, PolyverError
from polyver.definitions.commands.state import ApplicationsSnapshot, application_on, state_of
from polyver.definitions.resolution import ChosenVersion, choose, resolution_data
from polyver.definitions.uses import DefinitionUse, check_application, uses_of

__all__ = ["why_application"]


def why_application(
    name: str, namespace: str, context: str, output: OutputFormat, *, explain: bool
) -> None:
    """Print the versions that an application on a cluster uses, and the reasons."""

    async def read(client: Client, access: ClusterAccess) -> ApplicationsSnapshot:
        found = await application_on(client, name, namespace or access.namespace)
        return await state_of(client, found)

    _answer(on_cluster(context, read), output, explain=explain)


def _answer(state: ApplicationsSnapshot, output: OutputFormat, *, explain: bool) -> None:
    [application] = state.applications
    check_application(application)
    answers = [(use, _asked(use, state)) for use in uses_of(application)]
    errors = [answer for _, answer in answers if isinstance(answer, PolyverError)]
    chosen = [answer for _, answer in answers if isinstance(answer, ChosenVersion)]
    if output is OutputFormat.TABLE:
        _print(chosen, explain=explain)
    else:
        said = [_data(each, explain=explain) for each in chosen]
        emit({"resolutions": said, "errors": [*map(str, errors)]}, output)
    if errors:
        raise ProblemsFound("; ".join(map(str, errors)))


def _asked(use: DefinitionUse, state: ApplicationsSnapshot) -> ChosenVersion | PolyverError:
    try:
        return choose(use, state.homes(use.kind, use.definition))
    except PolyverError as error:
        return error


def _print(chosen: list[ChosenVersion], *, explain: bool) -> None:
    rows = [
        [each.use.dependent.at, _wanted(each.use), each.resolution.release.name, _reason(each)]
        for each in chosen
    ]
    if rows:
        print_table(["REFERENCE", "REQUESTS", "VERSION", "REASON"], rows)
    for each in chosen:
        for warning in each.resolution.warnings:
            warn(warning)
        if failed := _failed_move(each):
            warn(f"{each.use.dependent.at}: {failed.why}")
        rejected = [[other.release.name, other.why] for other in each.resolution.rejected]
        if rejected and explain:
            print_lines("", f"{each.use.dependent.at}:")
            print_table(["NOT CHOSEN", "WHY"], rejected)


def _failed_move(chosen: ChosenVersion) -> FailedMove | None:
    """Return the failed move that made a reference keep its release.

    Return None if no move failed, or if the reference has a lock.
    """
    failed = chosen.use.dependent.failed_move
    kept = chosen.resolution.release.pin == chosen.use.dependent.pin
    return failed if kept and chosen.use.dependent.lock is None else None


def _wanted(use: DefinitionUse) -> str:
    return f"{use.definition}@{use.requested}" if use.requested else use.definition


def _reason(chosen: ChosenVersion) -> str:
    since = f", since {chosen.use.since}" if chosen.use.since else ""
    return f"{chosen.resolution.reason}{since}"


def _data(chosen: ChosenVersion, *, explain: bool) -> dict[str, Any]:
    rejected = [
        {"release": other.release.name, "why": other.why} for other in chosen.resolution.rejected
    ]
    found = resolution_data(chosen, now="") | ({"rejected": rejected} if explain else {})
    if failed := _failed_move(chosen):
        found["failedMove"] = {"version": failed.to.release, "message": failed.why}
    return found
