"""`polyver lock`: which version each place of all applications has, as a file to compare with."""

from __future__ import annotations

from typing import Annotated

from cyclopts import App, Parameter

from polyver.capabilities.definitions.locking import LockOf, lock_data, lock_of
from polyver.cli._exit import Found
from polyver.cli._locks import write_lock
from polyver.cli._resolving import Context, Files, Namespace, on_cluster, state_in, state_on
from polyver.core import listed

app = App(name="lock")


@app.default
def lock(
    *,
    file: Files = None,
    namespace: Namespace = "",
    context: Context = "",
    output: Annotated[str, Parameter(name=["--output", "-o"])] = "-",
) -> None:
    """Write a lock: the version and the digest that each place of each application has.

    The same result is the same text to the byte, on any cluster. What asks for an exact version
    or a series has the same result wherever the same versions are published; the newest at
    creation has not.

    Example: polyver lock --context staging -o platform.lock.yaml

    Parameters
    ----------
    file
        A file, a folder, or - for standard input, with applications and definitions; repeatable.
        Without any, those of a cluster.
    namespace
        Only the applications of this namespace: by default those of all.
    output
        The file to write: by default, or with -, standard output.
    """
    found = read_state(file, namespace, context)
    if found.failures:
        told = ["/".join(name) for name in found.failures]
        first = next(iter(found.failures.values()))[0]
        raise Found(f"{listed(told)} cannot be locked: {first}")
    write_lock(lock_data(found.lock), output)


def read_state(files: list[str] | None, namespace: str, context: str) -> LockOf:
    """What there is, as a lock."""
    if files:
        state = state_in(files, namespace)
    else:
        state = on_cluster(context, lambda client, _: state_on(client, namespace))
    return lock_of(state.applications, state.homes, namespace=namespace)
