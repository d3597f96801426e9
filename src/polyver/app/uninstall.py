"""`polyver uninstall`: remove what `polyver install` applied; objects of users are kept."""

from __future__ import annotations

import asyncio
from typing import Annotated

from cyclopts import App, Parameter

from polyver.cli.exit_codes import Misused
from polyver.cli.output import print_lines

app = App(name="uninstall")

_NAMESPACE = "polyver-system"


@app.default
def uninstall(
    *,
    namespace: str = _NAMESPACE,
    with_objects: Annotated[bool, Parameter(negative=())] = False,
    yes: Annotated[bool, Parameter(negative=())] = False,
    force: Annotated[bool, Parameter(negative=())] = False,
    context: str = "",
    dry_run: Annotated[bool, Parameter(negative=())] = False,
) -> None:
    """Remove polyver from a cluster; by default, CustomResourceDefinitions and objects stay.

    Example: polyver uninstall --dry-run

    Parameters
    ----------
    namespace
        The namespace of the installation.
    with_objects
        Also delete the CustomResourceDefinitions that `polyver install` has installed. This deletes
        all objects of their kinds, including Conversions. Without --yes, the command only prints
        how many objects it would delete.
    yes
        Allow --with-objects to delete the objects.
    force
        Remove polyver even if API servers need it to convert objects. Afterwards, clients can read
        each of these objects only in the version in which it is stored.
    context
        The context of the kubeconfig. Default: the current context.
    dry_run
        Print the names of the objects that the command would remove, and remove nothing.
    """
    if yes and not with_objects:
        raise Misused("--yes needs --with-objects", hint="omit it, or pass both")
    asyncio.run(_uninstall(namespace, context, with_objects, yes, force, dry_run=dry_run))


async def _uninstall(
    namespace: str, context: str, with_objects: bool, yes: bool, force: bool, *, dry_run: bool
) -> None:
    from polyver.app.installing import Remover
    from polyver.client.cluster import ClusterClient, find_access

    access = find_access(context)
    place = f"{access.server}, {access.place}"
    async with ClusterClient(access, agent="polyver-install") as client:
        remover = Remover(client, place, print_lines, namespace, dry_run=dry_run)
        await remover.remove(with_objects=with_objects, sure=yes, force=force)
