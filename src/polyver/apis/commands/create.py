"""`polyver create`: start a project of kinds, or add a version to one."""

from __future__ import annotations

from typing import Annotated, Literal

from cyclopts import App, Parameter

from polyver.cli.output import print_lines, warn

app = App(
    name="create",
    help="""Create a project with kinds, or extend one.

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

    The first version of a kind gets a module, a controller and tests, in a project that is created
    if needed. Every other version is a copy of the version that was declared last, with an edge
    (a conversion) between them and a table of tests. Existing files are only extended.

    Example: polyver create api --group stable.example.com --version v2 --kind CronTab --storage

    Parameters
    ----------
    group
        The API group, a domain name.
    version
        The API version: v1, v2beta1.
    kind
        The kind, in CamelCase.
    storage
        Make this version the storage version; the first version of a kind always is.
    plural
        The plural name, if it cannot be derived from the kind.
    scope
        The scope of the objects. Default: Namespaced.
    output
        The folder of the project. Default: the current folder.
    dry_run
        Write nothing; print the files that would be written.
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
