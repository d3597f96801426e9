"""Stores the complete results of preflights in RolloutReports."""

from __future__ import annotations

from polyver.client import Client, find
from polyver.client.field_managers import POLYVER
from polyver.core.plain import Object, ReadOnlyObject
from polyver.kube.objects.status import ApiError
from polyver.rollouts.names import REPORTS_ON
from polyver.rollouts.reports import report_object

__all__ = ["store_report"]


async def store_report(client: Client, rollout: ReadOnlyObject, data: ReadOnlyObject) -> Object:
    """Store the complete result of a preflight in a RolloutReport.

    Return fields for the result in the status of the Rollout: `report` with the name of the
    RolloutReport or, if it cannot be stored, `note` with the reason.
    """
    wanted, metadata = report_object(rollout, data), rollout["metadata"]
    try:
        found = await find(client, REPORTS_ON, metadata["name"], metadata["namespace"])
        if found is None or not _has(found, wanted):
            await client.apply(REPORTS_ON, wanted, manager=POLYVER, force=True)
    except ApiError as error:
        return {"note": f"the complete result could not be stored: {error}"}
    return {"report": metadata["name"]}


def _has(found: Object, wanted: Object) -> bool:
    owners, mine = (each["metadata"].get("ownerReferences") for each in (found, wanted))
    return found.get("preflight") == wanted["preflight"] and bool(owners == mine)
