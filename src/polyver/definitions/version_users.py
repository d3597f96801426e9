"""Applications whose objects have a version of a kind that is to be retired."""

from __future__ import annotations

from polyver.capability.version_users import find_users
from polyver.client import Client, GroupVersionResource
from polyver.core.plain import Object
from polyver.definitions.kinds import APPLICATIONS, GROUP, STORED

__all__ = ["applications_with"]

_APPLICATIONS = GroupVersionResource(GROUP, STORED, APPLICATIONS.names.plural)


async def applications_with(client: Client, group: str, kind: str, version: str) -> list[str]:
    """Return the applications that apply objects of a version of a kind."""

    def applies(application: Object) -> bool:
        applied = (application.get("status") or {}).get("appliedResources") or ()
        wanted = (f"{group}/{version}", kind)
        return any((each["apiVersion"], each["kind"]) == wanted for each in applied)

    return await find_users(client, _APPLICATIONS, "Application", applies)
