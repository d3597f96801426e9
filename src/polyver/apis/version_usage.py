"""The kind VersionUsage: the requests to each version of a kind, and the clients that sent them.

The embedded server, or the webhooks on a cluster, count the requests and write these objects. There
is one object for each kind. It has the name of the kind's CustomResourceDefinition.
"""

from __future__ import annotations

from typing import Annotated, Final, Literal

from polyver.apis.declaring import Field, Kind, ListMap
from polyver.apis.definition import Column
from polyver.client import GroupVersionResource

__all__ = ["VERSION_USAGES", "VERSION_USAGE_RESOURCE"]

VERSION_USAGES: Final = Kind(
    "VersionUsage", group="polyver.dev", scope="Cluster", categories=["polyver"]
)


@VERSION_USAGES.version(
    "v1alpha1",
    columns=[
        Column("Source", ".status.source"),
        Column("Since", ".status.since", "date"),
        Column("Age", ".metadata.creationTimestamp", "date"),
    ],
)
class VersionUsageV1Alpha1:
    """The requests to each version of a kind, and the clients that sent them.

    Each VersionUsage has the name of the CustomResourceDefinition of its kind. polyver writes these
    objects; it ignores changes by other clients.
    """

    class Status:
        class Version:
            class Client:
                user: str
                """The user who sent the requests, such as a service account."""
                agent: str | None = Field(name="userAgent", default=None)
                """The user agent of the client, such as kubectl/v1.33.2.

                It is missing if the requests were counted by a webhook, which does not see it,
                or if the user has sent requests with too many user agents.
                """
                requests: int
                """The number of requests since the client was added to the list."""
                last: str = Field(name="lastRequest")
                """The time of the last request."""

            version: str
            """The version in which clients sent requests."""
            requests: int
            """The number of requests of all clients since `since`."""
            last: str | None = Field(name="lastRequest", default=None)
            """The time of the last request; missing if there was none."""
            clients: list[Client] | None
            """The clients, most recent first. The list has a limited length.

            A client is removed 30 days after its last request.
            """
            others: int | None = Field(name="otherClients", default=None)
            """The number of requests by clients that are not in `clients`."""
            conversions: int | None
            """The number of objects that API servers converted to this version with the webhook.

            API servers convert objects when a client reads or writes them in this version, but also
            for their own purposes, such as server-side apply. A conversion names no client.
            """
            last_conversion: str | None = Field(name="lastConversion", default=None)
            """The time of the last conversion to this version."""

        since: str
        """The time from which requests were counted."""
        source: Literal["APIServer", "Webhooks"]
        """The component that counts.

        `APIServer` is the embedded server, which sees all requests. `Webhooks` see writes with
        their users, and conversions, but no other requests.
        """
        versions: Annotated[list[Version], ListMap("version")] | None
        """The versions of the kind for which something was counted."""

    status: Status | None


VERSION_USAGE_RESOURCE: Final = GroupVersionResource(
    VERSION_USAGES.group, "v1alpha1", VERSION_USAGES.names.plural, namespaced=False
)
