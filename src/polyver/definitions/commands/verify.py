"""`polyver verify`: compares the versions of applications with a lock file."""

from __future__ import annotations

from typing import Annotated, Any

from cyclopts import App, Parameter

from polyver.cli.exit_codes import ProblemsFound
from polyver.cli.output import OutputFormat, emit, print_lines, print_table
from polyver.definitions.commands.lock import lock_in, read_state
from polyver.definitions.commands.state import Context, Files, Namespace
from polyver.definitions.locking import Difference, differences

app = App(name="verify")


@app.default
def verify(
    *,
    lock: str,
    file: Files = None,
    namespace: Namespace = "",
    context: Context = "",
    output: Annotated[OutputFormat, Parameter(name=["--output", "-o"])] = OutputFormat.TABLE,
) -> None:
    """Compare the versions in a lock file with the versions that applications use.

    The command reads the applications from a cluster or from files, and prints each difference. The
    exit code is 1 if there are differences.

    Example: polyver verify --lock platform.lock.yaml --context production

    Parameters
    ----------
    lock
        The lock file that `polyver lock` wrote, or '-' (standard input).
    file
        A file, a folder, or '-' (standard input), with applications and definitions; repeatable.
        Default: the applications and definitions of the cluster.
    namespace
        Compare only the applications in this namespace. Default: the namespace to which the lock
        file is limited, or all namespaces.
    output
        The output format.
    """
    wanted = lock_in(lock).inside(namespace)
    found = read_state(file, wanted.namespace, context)
    other = differences(wanted, found.lock, found.failures)
    _print(other, len(wanted.applications), output)
    if other:
        said = "1 difference" if len(other) == 1 else f"{len(other)} differences"
        raise ProblemsFound(f"{said} from the lock", at=lock)


def _print(other: list[Difference], applications: int, output: OutputFormat) -> None:
    if output is not OutputFormat.TABLE:
        emit({"differences": [_data(each) for each in other]}, output)
    elif other:
        columns = ("APPLICATION", "REFERENCE", "DEFINITION", "DIFFERENCE")
        print_table(columns, [(e.application, e.place, e.definition, e.fact) for e in other])
    else:
        said = (
            "1 application matches" if applications == 1 else f"{applications} applications match"
        )
        print_lines(f"{said} the lock")


def _data(each: Difference) -> dict[str, Any]:
    found = {
        "application": each.application,
        "place": each.place,
        "definition": each.definition,
        "what": each.what,
        "locked": each.locked,
        "found": each.found,
        "fact": each.fact,
    }
    return {name: text for name, text in found.items() if text}
