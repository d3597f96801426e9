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
    """Write a lock: the version and the digest that each place of each application has.

    The same result is the same text to the byte, on any cluster. What asks for an exact version
    or a series has the same result wherever the same versions are published; the newest at
    creation has not.

    An application that does not resolve cannot be locked. All of them are listed with all reasons
    on standard error, and nothing is written, unless --skip-unresolved leaves them out.

    Example: polyver lock --context staging -o platform.lock.yaml

    Parameters
    ----------
    file
        A file, a folder, or - for standard input, with applications and definitions; repeatable.
        Without any, those of a cluster.
    namespace
        Only the applications of this namespace: by default those of all.
    skip_unresolved
        Write the lock without the applications that do not resolve, and list these.
    output
        The file to write: by default, or with -, standard output.
    """
    found = read_state(file, namespace, context)
    report = warn if skip_unresolved else complain
    for name, reason in _unresolved(found):
        report(f"Application {name} cannot be locked: {reason}")
    if found.failures and not skip_unresolved:
        count, left = len(found.failures), len(found.lock.applications)
        fact = f"nothing was written: {count} of {count + left} applications do not resolve"
        raise ProblemsFound(fact, hint="repair them, or leave them out with --skip-unresolved")
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
