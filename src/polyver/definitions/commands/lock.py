"""`polyver lock`: writes a lock file with the versions that all applications use.

`polyver verify` and `polyver app lock` also call functions of this module.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

from cyclopts import App, Parameter

from polyver.cli.cluster import on_cluster
from polyver.cli.exit_codes import ProblemsFound, UnreadableInput
from polyver.cli.file_writes import File, write_all
from polyver.cli.files import read_manifests
from polyver.cli.output import complain, print_lines, printing, warn
from polyver.definitions.commands.state import Context, Files, Namespace, state_in, state_on
from polyver.definitions.locking import Lock, LockOf, lock_data, lock_of, read_lock
from polyver.kube.objects import dump_yaml

__all__ = ["lock_in", "write_lock"]

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
    """Write a lock file: the versions and digests of the definitions that applications use.

    If the applications of two clusters use the same versions, their lock files are identical. A
    reference that requests an exact version or a series resolves to the same version on all
    clusters with the same published versions. If a reference requests no version, its version
    depends on when the application was created.

    If a reference of an application cannot be resolved, the application cannot be locked. The
    command prints the reasons to standard error, and then writes no lock file unless
    --skip-unresolved is set.

    Example: polyver lock --context staging -o platform.lock.yaml

    Parameters
    ----------
    file
        A file, a folder, or '-' (standard input), with applications and definitions; repeatable.
        Default: the applications and definitions of the cluster.
    namespace
        Lock only the applications in this namespace. Default: the applications in all namespaces.
    skip_unresolved
        Write a lock file without the applications that cannot be resolved, and print the reasons as
        warnings.
    output
        The file to write, or '-' (standard output). Default: '-'.
    """
    found = read_state(file, namespace, context)
    report = warn if skip_unresolved else complain
    for name, errors in found.failures.items():
        for reason in errors:
            report(f"Application {'/'.join(name)} cannot be locked: {reason}")
    if found.failures and not skip_unresolved:
        count, left = len(found.failures), len(found.lock.applications)
        fact = f"nothing was written: {count} of {count + left} applications are unresolved"
        raise ProblemsFound(fact, hint="fix them, or skip them with --skip-unresolved")
    write_lock(lock_data(found.lock), output)


def read_state(files: list[str] | None, namespace: str, context: str) -> LockOf:
    """Compute a lock of the applications in files, or on a cluster if there are no files."""
    if files:
        state = state_in(files, namespace)
    else:
        state = on_cluster(context, lambda client, _: state_on(client, namespace))
    return lock_of(state.applications, state.homes, namespace=namespace)


def lock_in(file: str) -> Lock:
    """Read a lock file."""
    documents = read_manifests([file])
    if len(documents) != 1:
        fact = f"{file} contains {len(documents)} documents, but a lock is one document"
        raise UnreadableInput(fact, hint="create it with polyver lock")
    return read_lock(documents[0])


def write_lock(data: dict[str, Any], output: str) -> None:
    """Write a lock to the file `output`, or to standard output if `output` is `-`."""
    text = dump_yaml(data)
    if output == "-":
        with printing():
            sys.stdout.write(text)
        return
    path = Path(output)
    write_all([File(path, text, "" if path.exists() else None)])
    print_lines(f"wrote {output}")
