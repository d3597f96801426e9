"""`polyver app`: the history of an application, rollback, and its lock."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

from cyclopts import App, Parameter

from polyver.cli.cluster import on_cluster
from polyver.cli.exit_codes import Misused, ProblemsFound, RequestRefused, UnknownName
from polyver.cli.files import read_manifests
from polyver.cli.output import (
    ManifestFormat,
    OutputFormat,
    emit,
    manifests_text,
    print_lines,
    print_table,
)
from polyver.client.field_managers import POLYVER
from polyver.core import PolyverError, listed
from polyver.core.plain import Object
from polyver.definitions._manifests import applications_in
from polyver.definitions.commands.lock import lock_in
from polyver.definitions.commands.ownership import owner_of, replace_for
from polyver.definitions.commands.state import (
    APPLICATIONS_ON,
    Context,
    Files,
    application_on,
    history_on,
    state_of,
)
from polyver.definitions.history import (
    LAST_APPLIED,
    RecordedRevision,
    earlier,
    history_of,
    returned,
)
from polyver.definitions.locking import Locked, Named, lock_text, places_of, with_lock
from polyver.definitions.names import LOCK, PUBLISH_VERSION
from polyver.definitions.resolution import choose_all, used_of
from polyver.definitions.uses import is_held
from polyver.kube.objects.status import ApiError

if TYPE_CHECKING:
    from polyver.client import Client
    from polyver.client.cluster import ClusterAccess

app = App(
    name="app",
    help="""Show the history of an application, roll it back, and lock its versions.

Example: polyver app rollback shop --to 3""",
)

_TRIES = 5
Inside = Annotated[
    str,
    Parameter(
        name=["--namespace", "-n"],
        help="The namespace of the application. Default: the namespace of the context.",
    ),
]
Output = Annotated[OutputFormat, Parameter(name=["--output", "-o"], help="The output format.")]


@app.command
def history(
    name: str,
    /,
    *,
    namespace: Inside = "",
    context: Context = "",
    output: Output = OutputFormat.TABLE,
) -> None:
    """List the revisions of an application, with the versions of definitions in each revision.

    Example: polyver app history shop -n default

    Parameters
    ----------
    name
        The name of the application.
    """

    async def read(client: Client, access: ClusterAccess) -> list[RecordedRevision]:
        where = namespace or access.namespace
        await application_on(client, name, where)
        return history_of(await history_on(client, name, where))

    found = on_cluster(context, read)
    if output is not OutputFormat.TABLE:
        emit({"revisions": [_data(each) for each in found]}, output)
        return
    rows = [
        (str(each.number), each.name, each.made, _versions(each), _same(each)) for each in found
    ]
    print_table(("REVISION", "NAME", "CREATED", "VERSIONS", "SAME AS"), rows)


def _versions(each: RecordedRevision) -> str:
    said = [f"{place.definition.rpartition('/')[2]} {place.version}" for place in each.places]
    return ", ".join(dict.fromkeys(said))


def _same(each: RecordedRevision) -> str:
    return "" if each.same_as is None else str(each.same_as)


def _data(each: RecordedRevision) -> Object:
    found: Object = {"revision": each.number, "name": each.name, "made": each.made}
    found |= {"sameAs": each.same_as} if each.same_as is not None else {}
    found |= {"publishVersion": each.published} if each.published is not None else {}
    return found | {"resolutions": [place.data for place in each.places]}


@app.command
def rollback(
    name: str,
    /,
    *,
    to: str = "",
    namespace: Inside = "",
    context: Context = "",
    dry_run: Annotated[bool, Parameter(negative=())] = False,
) -> None:
    """Roll an application back to the spec and the versions of an earlier revision.

    The command also locks the application to these versions. Without the lock, a reference that
    requests a series, such as 1.2, would immediately move to the newest release of the series
    again. `polyver app unlock` removes the lock. The controller records the state after the
    rollback as a new revision.

    Example: polyver app rollback shop --to 3

    Parameters
    ----------
    name
        The name of the application.
    to
        The number or the name of the revision to return to. Default: the newest revision whose
        content or publishVersion differs from that of the current revision.
    dry_run
        Change nothing, and print the revision and the versions to which the application would
        return.
    """

    async def roll(client: Client, access: ClusterAccess) -> RecordedRevision:
        where = namespace or access.namespace
        for left in reversed(range(_TRIES)):
            application = await application_on(client, name, where)
            target = _target(name, history_of(await history_on(client, name, where)), to)
            wanted = returned(application, target)
            await _check(client, wanted, target)
            if dry_run:
                break
            try:
                await _replace(client, application, wanted)
            except ApiError as error:
                # Another client has changed the application: read it again.
                if error.code != 409 or not left:
                    raise
            else:
                break
        return target

    target = on_cluster(context, roll)
    said = "would have" if dry_run else "has"
    print_lines(f"{name} {said} the spec and the versions of {target.name}: {_versions(target)}")
    if not dry_run:
        print_lines(f"it is locked to them; to unlock: polyver app unlock {name}")


def _target(name: str, history: Sequence[RecordedRevision], to: str) -> RecordedRevision:
    try:
        return earlier(name, history, to)
    except PolyverError as error:
        raise UnknownName(error.fact, hint=error.hint) from None


async def _check(client: Client, wanted: Object, target: RecordedRevision) -> None:
    """Raise RequestRefused if the application cannot return to the revision `target`.

    This is the case if one of its references would not resolve, or if polyver would keep its
    current versions until the annotation publishVersion changes.
    """
    state = await state_of(client, wanted)
    _, errors = choose_all(wanted, state.homes)
    name = wanted["metadata"]["name"]
    if errors:
        told = "; ".join(map(str, errors))
        raise RequestRefused(f"{name} cannot return to {target.name}: {told}")
    used = [used_of(each) for each in (wanted.get("status") or {}).get("resolutions") or ()]
    if is_held(wanted) and [*target.resolutions] != used:
        fact = f"{name} is already published as {target.published}, like {target.name}"
        raise RequestRefused(fact, hint=f"change {PUBLISH_VERSION} first")


async def _replace(client: Client, application: Object, wanted: Object) -> None:
    await replace_for(
        client,
        APPLICATIONS_ON,
        wanted,
        owner=owner_of(application),
        manager=POLYVER,
        annotations=frozenset({LAST_APPLIED, PUBLISH_VERSION}),
    )


@app.command(name="lock")
def lock_(
    name: str = "",
    /,
    *,
    lock: str = "",
    file: Files = None,
    namespace: Inside = "",
    context: Context = "",
    output: Annotated[ManifestFormat, Parameter(name=["--output", "-o"])] = ManifestFormat.YAML,
) -> None:
    """Lock an application to exact versions of definitions.

    A locked application uses exactly these versions. If one of them is not available, the status of
    the application reports an error. With --file, the command changes no cluster: it adds the locks
    to the applications in the files and prints them, as input for `kubectl apply -f -`.

    Example: polyver app lock -f shop.yaml --lock platform.lock.yaml | kubectl apply -f -

    Parameters
    ----------
    name
        The name of the application on the cluster. Pass either NAME or --file.
    lock
        The lock file that `polyver lock` wrote. Default: lock the versions that the application on
        the cluster uses now.
    file
        A file, a folder, or '-' (standard input), with the applications to lock; repeatable.
        Requires --lock.
    output
        The output format of the applications that --file prints.
    """
    if bool(name) is bool(file):
        raise Misused("pass either an application or files")
    if file:
        _print_locked(file, lock, namespace, output)
        return

    async def put(client: Client, access: ClusterAccess) -> tuple[Locked, ...]:
        where = namespace or access.namespace
        application = await application_on(client, name, where)
        places = _part(lock, (where, name)) if lock else await _in_use(client, application)
        await _annotate(client, application, lock_text(places))
        return places

    places = on_cluster(context, put)
    said = ", ".join(dict.fromkeys(f"{each.definition} {each.version}" for each in places))
    print_lines(f"{name} is locked: {said}")


def _part(lock: str, named: Named) -> tuple[Locked, ...]:
    return _parts(lock, [named])[0]


def _parts(lock: str, wanted: Sequence[Named]) -> list[tuple[Locked, ...]]:
    """Read the lock file `lock`, and return the lock entries of each application in `wanted`.

    Raise UnknownName if the file does not contain one of these applications.
    """
    known = lock_in(lock).applications
    missing = ["/".join(each) for each in wanted if each not in known]
    if missing:
        verb = "is" if len(missing) == 1 else "are"
        raise UnknownName(f"{listed(missing)} {verb} not in the lock", at=lock)
    return [known[each] for each in wanted]


async def _in_use(client: Client, application: Object) -> tuple[Locked, ...]:
    state = await state_of(client, application)
    chosen, errors = choose_all(application, state.homes)
    if errors:
        raise ProblemsFound("; ".join(map(str, errors)))
    return places_of(chosen)


def _print_locked(files: list[str], lock: str, namespace: str, output: ManifestFormat) -> None:
    if not lock:
        raise Misused("files need a lock", hint="pass --lock FILE")
    found = applications_in(read_manifests(files), namespace or "default")
    if not found:
        raise UnknownName("there is no application in the files")
    named = [(each["metadata"]["namespace"], each["metadata"]["name"]) for _, each in found]
    made = []
    for (document, _), places in zip(found, _parts(lock, named), strict=True):
        assert isinstance(document.value, dict)
        made.append(with_lock(document.value, places))
    print_lines(manifests_text(made, output).rstrip("\n"))


async def _annotate(client: Client, application: Object, text: str | None) -> None:
    metadata = application["metadata"]
    change = {"metadata": {"annotations": {LOCK: text}}}
    names = metadata["name"], metadata["namespace"]
    await client.patch(APPLICATIONS_ON, *names, change=change, manager=POLYVER)


@app.command
def unlock(name: str, /, *, namespace: Inside = "", context: Context = "") -> None:
    """Remove the lock of an application.

    The application then uses the versions that its spec requests.

    Example: polyver app unlock shop

    Parameters
    ----------
    name
        The name of the application.
    """

    async def take(client: Client, access: ClusterAccess) -> bool:
        application = await application_on(client, name, namespace or access.namespace)
        if LOCK not in (application["metadata"].get("annotations") or {}):
            return False
        await _annotate(client, application, None)
        return True

    taken = on_cluster(context, take)
    print_lines(f"{name} is {'no longer locked' if taken else 'not locked'}")
