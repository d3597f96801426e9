"""`polyver packages`: the composition functions of a cluster, and their revisions."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, BinaryIO, Literal, NamedTuple

from cyclopts import App, Parameter

from polyver.cli.exit_codes import Misused, RequestRefused, UnknownName, UnreadableInput
from polyver.cli.files import data_folder
from polyver.cli.output import OutputFormat, emit, flush, print_lines, print_table, printing, warn
from polyver.client.field_managers import POLYVER
from polyver.compositions.runtime_choice import logs_folder

if TYPE_CHECKING:
    from polyver.client import Client
    from polyver.compositions.commands.functions_on_cluster import InstalledFunction

app = App(
    name="packages",
    help="""List composition functions, and activate or deactivate their revisions.

Example: polyver packages list""",
)

Output = Annotated[OutputFormat, Parameter(name=["--output", "-o"], help="The output format.")]
Context = Annotated[
    str, Parameter(help="The context of the kubeconfig. Default: the current context.")
]
Force = Annotated[
    bool,
    Parameter(
        negative=(),
        help=(
            "Deactivate the revision even if a step of a composition selects it. polyver records"
            " this in an annotation of the revision."
        ),
    ),
]
_EVERY = 0.2
State = Literal["Active", "Inactive"]


@app.command(name="list")
def list_packages(*, context: Context = "", output: Output = OutputFormat.TABLE) -> None:
    """List all composition functions of the cluster, with the states of their packages.

    Example: polyver packages list -o json
    """
    from polyver.compositions.commands.functions_on_cluster import all_installed, on_cluster

    found = [each.data for each in on_cluster(context, all_installed)]
    if output is not OutputFormat.TABLE:
        emit({"packages": found}, output)
        return
    columns = ("NAME", "INSTALLED", "HEALTHY", "ACTIVE", "REVISIONS", "CURRENT", "PACKAGE")
    print_table(columns, [_row(each) for each in found])


def _row(found: dict[str, Any]) -> tuple[str, ...]:
    active = [each for each in found["revisions"] if each["state"] == "Active"]
    return (
        found["name"],
        _condition(found, "Installed").get("status", ""),
        _condition(found, "Healthy").get("status", ""),
        str(len(active)),
        str(len(found["revisions"])),
        found["currentRevision"],
        found["package"],
    )


def _condition(found: dict[str, Any], kind: str) -> dict[str, Any]:
    return next((each for each in found["conditions"] if each["type"] == kind), {})


@app.command
def show(name: str, /, *, context: Context = "", output: Output = OutputFormat.TABLE) -> None:
    """Show a function's revisions, their endpoints, and the composition steps that select them.

    Example: polyver packages show function-patch-and-transform

    Parameters
    ----------
    name
        The function (NAME), or one of its revisions (NAME@REVISION). REVISION is the number of the
        revision, its whole name, or the part of its name after `NAME-`.
    """
    from polyver.compositions.commands.functions_on_cluster import named, revision_in

    function, revision = named(name)
    installed = _installed(context, function)
    found = installed.data
    if revision:
        only = revision_in(installed, revision).name
        found["revisions"] = [each for each in found["revisions"] if each["name"] == only]
    if output is not OutputFormat.TABLE:
        emit(found, output)
        return
    _print(found)


def _print(found: dict[str, Any]) -> None:
    limits = f"{found['activeRevisionLimit']} active of {found['revisionHistoryLimit'] or 'all'}"
    policy = found["revisionActivationPolicy"]
    print_lines(f"{found['name']}: {found['package']}", f"{policy}, {limits}")
    for each in found["conditions"]:
        told = f"{each['type']}={each['status']} ({each['reason']})"
        print_lines(f"{told}: {each['message']}" if each.get("message") else told)
    rows = [
        (
            str(each["revision"]),
            each["name"],
            each["state"],
            each["healthy"],
            each["endpoint"] or each["message"],
            ",".join(f"{key}={text}" for key, text in sorted(each["labels"].items())),
            ", ".join(each["selectedBy"]),
        )
        for each in reversed(found["revisions"])
    ]
    columns = ("REVISION", "NAME", "STATE", "HEALTHY", "ENDPOINT", "LABELS", "SELECTED BY")
    print_lines("")
    print_table(columns, rows)


def _installed(context: str, name: str) -> InstalledFunction:
    from polyver.compositions.commands.functions_on_cluster import installed_on, on_cluster

    return on_cluster(context, lambda client: installed_on(client, name))


@app.command
def activate(name: str, /, *, context: Context = "") -> None:
    """Activate a revision of a function that has `revisionActivationPolicy: Manual`.

    Example: polyver packages activate function-patch-and-transform@3

    Parameters
    ----------
    name
        The revision to activate, as NAME@REVISION. REVISION is the number of the revision, its
        whole name, or the part of its name after `NAME-`.
    """
    _set(name, "Active", context, force=False)


@app.command
def deactivate(name: str, /, *, context: Context = "", force: Force = False) -> None:
    """Deactivate a revision of a function that has `revisionActivationPolicy: Manual`.

    If a step of a composition selects the revision, the command refuses this without --force. If
    `strictReferences` of the Function is false, --force is not needed.

    Example: polyver packages deactivate function-patch-and-transform@2

    Parameters
    ----------
    name
        The revision to deactivate, as NAME@REVISION. REVISION is the number of the revision, its
        whole name, or the part of its name after `NAME-`.
    """
    _set(name, "Inactive", context, force=force)


def _set(text: str, state: State, context: str, *, force: bool) -> None:
    from polyver.compositions.commands.functions_on_cluster import (
        installed_on,
        named,
        on_cluster,
        revision_in,
    )

    name, revision = named(text)
    if not revision:
        raise Misused(f"{text!r} is not a revision", hint="write NAME@REVISION")

    async def write(client: Client) -> str:
        installed = await installed_on(client, name)
        wanted = revision_in(installed, revision).name
        change = _change(installed, wanted, state, force=force)
        if change is None:
            return f"{wanted} is already {state.lower()}"
        from polyver.compositions.controllers.packages import FUNCTION_REVISIONS

        await client.patch(FUNCTION_REVISIONS, wanted, change=change, manager=POLYVER)
        return f"{wanted} is now set to {state.lower()}"

    print_lines(on_cluster(context, write))


def _change(
    installed: InstalledFunction, name: str, state: State, *, force: bool
) -> dict[str, Any] | None:
    """Build the patch that sets the state of a revision; None if it already has this state.

    Raise RequestRefused if the state must not be changed.
    """
    from polyver.client import SystemClock, timestamp
    from polyver.compositions.names import FORCED
    from polyver.compositions.packages import read_function
    from polyver.core import listed

    [obj] = [each for each in installed.revisions if each["metadata"]["name"] == name]
    if obj["spec"]["desiredState"] == state:
        return None
    function = read_function(installed.function)
    if function.automatic:
        fact = f"{function.name} activates its revisions automatically"
        raise RequestRefused(fact, hint="set revisionActivationPolicy: Manual, and try again")
    users = installed.users.get(name, ()) if state == "Inactive" and function.strict else ()
    if users and not force:
        fact = f"{name} is selected by {listed(users)}"
        raise RequestRefused(fact, hint="make them select another revision, or use --force")
    known = {"resourceVersion": obj["metadata"]["resourceVersion"]}
    if users:
        warn(f"{listed(users)} can no longer use {name}")
        annotations = {FORCED: f"{state} {timestamp(SystemClock())}"}
        return {"metadata": {**known, "annotations": annotations}, "spec": {"desiredState": state}}
    return {"metadata": known, "spec": {"desiredState": state}}


@app.command
def logs(
    name: str,
    /,
    *,
    follow: Annotated[bool, Parameter(name=["--follow", "-F"], negative=())] = False,
    data: Path | None = None,
    context: Context = "",
) -> None:
    """Print the log of the process that serves a revision of a function.

    The log is a file in the data folder of `polyver up`. So the command works only on the machine
    on which `polyver up` runs. polyver keeps only the last part of each log.

    Example: polyver packages logs function-patch-and-transform --follow

    Parameters
    ----------
    name
        The function (NAME), or one of its revisions (NAME@REVISION). With NAME, the command prints
        the log of the current revision.
    follow
        After the existing lines, print each new line of the log, until you interrupt the command.
    data
        The data folder of `polyver up`. Default: `$XDG_DATA_HOME/polyver`, or
        `~/.local/share/polyver` if the variable is not set.
    """
    folder = logs_folder(data or data_folder())
    file = folder / f"{_revision(name, folder, context)}.log"
    older = file.with_name(f"{file.name}.1")
    _copy(older, _Seen())
    seen = _copy(file, _Seen())
    if not seen.file and not follow:
        hint = "pass the data folder of the control plane with --data"
        raise UnknownName(f"there is no log of {file.stem}", at=str(folder), hint=hint)
    while follow:
        time.sleep(_EVERY)
        if _is(older, seen):
            # print the rest of the old file after a log rotation, and then the new file
            _copy(older, seen)
        seen = _copy(file, seen)


def _revision(text: str, folder: Path, context: str) -> str:
    """Return the full name of a revision.

    If `folder` has a log with the given name, this is the name, and no cluster is read.
    """
    from polyver.compositions.commands.functions_on_cluster import named, revision_in

    name, revision = named(text)
    for known in (revision, f"{name}-{revision}"):
        if revision and (folder / f"{known}.log").is_file():
            return known
    installed = _installed(context, name)
    if revision:
        return revision_in(installed, revision).name
    current = (installed.function.get("status") or {}).get("currentRevision")
    if not current:
        raise UnknownName(f"{name} has no revision yet")
    return str(current)


class _Seen(NamedTuple):
    """The inode of a log file, and the number of its bytes that were printed.

    After log rotation, the file has another inode.
    """

    file: int = 0
    size: int = 0


def _is(path: Path, seen: _Seen) -> bool:
    try:
        return path.stat().st_ino == seen.file
    except OSError:
        return False


def _copy(path: Path, seen: _Seen) -> _Seen:
    """Print the new part of a log file. After log rotation, this is the whole file."""
    try:
        with path.open("rb") as file:
            found = os.fstat(file.fileno())
            is_same = found.st_ino == seen.file and found.st_size >= seen.size
            file.seek(seen.size if is_same else 0)
            _print_rest(file)
            return _Seen(found.st_ino, file.tell())
    except FileNotFoundError:
        return seen
    except BrokenPipeError:
        raise  # the reader of the standard output has closed it
    except OSError as error:
        raise UnreadableInput(f"{path} cannot be read: {error.strerror}") from None


def _print_rest(file: BinaryIO) -> None:
    flush()
    while piece := file.read(1 << 16):
        with printing():
            sys.stdout.buffer.write(piece)  # write bytes: the log may have any encoding
    with printing():
        sys.stdout.buffer.flush()
