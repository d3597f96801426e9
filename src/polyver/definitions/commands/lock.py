"""`polyver lock`: writes the version of each reference of all applications to a file."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

from cyclopts import App, Parameter

from polyver.cli.cluster import on_cluster
from polyver.cli.exit_codes import ProblemsFound
from polyver.cli.output import complain, warn
from polyver.core import PolyverError
from polyver.definitions.commands._locks import write_lock
from polyver.definitions.commands.state import Context, Files, Namespace, state_in, state_on
from polyver.definitions.locking import LockOf, lock_data, lock_of

app = App(name="lock")


@app.default
def lock(
    *,
    file: Files = None,
    namespace: Namespace = "",
    context: Context = "",
    skip_unresolved: Annotated[bool, Parameter(negative=())] = False,
    output: Annotated[str, Parameter(name=["--output", "-o"])] = "-",
) -> None:
    """Write a lock: the version and digest of each reference of each application.

    The output is deterministic: the same versions give the same bytes on any cluster. A request
    for an exact version or a series resolves equally wherever the same versions are published; a
    request without a version depends on the time of creation.

    An application that cannot be resolved cannot be locked. Such applications are listed with all
    reasons on standard error, and nothing is written unless --skip-unresolved is given.

    Example: polyver lock --context staging -o platform.lock.yaml

    Parameters
    ----------
    file
        A file, a folder, or - for standard input, with applications and definitions; repeatable.
        Default: the applications and definitions of the cluster.
    namespace
        Only lock the applications of this namespace. Default: all namespaces.
    skip_unresolved
        Write the lock without the applications that cannot be resolved, and list them.
    output
        The file to write. Default, or with -: standard output.
    """
    found = read_state(file, namespace, context)
    report = warn if skip_unresolved else complain
    for name, reason in _unresolved(found):
        report(f"Application {name} cannot be locked: {reason}")
    if found.failures and not skip_unresolved:
        count, left = len(found.failures), len(found.lock.applications)
        fact = f"nothing was written: {count} of {count + left} applications are unresolved"
        raise ProblemsFound(fact, hint="fix them, or skip them with --skip-unresolved")
    write_lock(lock_data(found.lock), output)


def _unresolved(found: LockOf) -> Iterator[tuple[str, PolyverError]]:
    """Yield each reason of each application that does not resolve."""
    for name, errors in found.failures.items():
        yield from (("/".join(name), error) for error in errors)


def read_state(files: list[str] | None, namespace: str, context: str) -> LockOf:
    """Return the lock of the applications in files, or on a cluster."""
    if files:
        state = state_in(files, namespace)
    else:
        state = on_cluster(context, lambda client, _: state_on(client, namespace))
    return lock_of(state.applications, state.homes, namespace=namespace)
