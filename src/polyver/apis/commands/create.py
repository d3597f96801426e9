"""`polyver create`: create a kind in a new or existing project, or add a version to a kind."""

from __future__ import annotations

from typing import Annotated, Literal

from cyclopts import App, Parameter

from polyver.cli.output import print_lines, warn

app = App(
    name="create",
    help="""Create a kind in a new or existing project, or add a version to a kind.

Example: polyver create api --group stable.example.com --version v1 --kind CronTab""",
)


@app.command
def api(
    *,
    group: str,
    version: str,
    kind: str,
    storage: Annotated[bool, Parameter(negative=())] = False,
    plural: str = "",
    scope: Literal["Namespaced", "Cluster"] | None = None,
    output: str | None = None,
    dry_run: Annotated[bool, Parameter(negative=())] = False,
) -> None:
    """Create a kind with its controller and tests, or add a version to an existing kind.

    For the first version of a kind, the command writes a Python module with the kind and its
    controller, and a module with tests. If there is no project, the command also creates the
    project. For every other version, it copies the class of the version that is declared last. It
    adds an edge, which converts between the copied and the new version, and a test for the edge. In
    existing files, the command only adds text and sets the `storage` arguments of the versions.

    Example: polyver create api --group stable.example.com --version v2 --kind CronTab --storage

    Parameters
    ----------
    group
        The API group, which is a domain name, such as stable.example.com.
    version
        The API version, such as v1 or v2beta1.
    kind
        The kind in CamelCase, such as CronTab.
    storage
        Make this version the storage version. The first version of a kind always becomes the
        storage version.
    plural
        The plural name of the kind in lower case. Default: derived from the kind.
    scope
        The scope of the objects. Default: Namespaced.
    output
        The folder of the project. Default: the current folder.
    dry_run
        Write nothing. Print the names of the files that would be written or changed.
    """
    from polyver.apis.commands.scaffold import NewApi, plan, read_project, write_all

    project = read_project(output)
    wanted = NewApi(group, version, kind, storage, plural, scope)
    planned = plan(project, wanted)
    if not dry_run:
        write_all(planned.files)
    new, changed = ("would write", "would change") if dry_run else ("wrote", "changed")
    for file in planned.files:
        print_lines(f"{new if file.is_new else changed} {project.shown(file.path)}")
    if planned.added is None:
        return
    added = planned.added
    print_lines(f"{version} is a copy of {added.source}; the storage version is {added.stored}")
    if added.extend:
        warn(f"{added.extend} converts between all versions, but does not handle {version} yet")
