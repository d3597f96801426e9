"""`polyver create`: start a project of kinds, or add a version to one."""

from __future__ import annotations

from typing import Annotated, Literal

from cyclopts import App, Parameter

from polyver.cli.output import print_lines, warn

app = App(
    name="create",
    help="""Start a project of kinds, or add to one.

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
    """Write a kind with its controller and tests, or another version of one that is there.

    The first version of a kind gets a module, a controller and tests, in a project that is made
    if there is none. Every other version is a copy of the one that was declared last, with an edge
    between them and a table of tests. Files that are there are only added to.

    Example: polyver create api --group stable.example.com --version v2 --kind CronTab --storage

    Parameters
    ----------
    group
        The API group, a domain.
    version
        The API version: v1, v2beta1.
    kind
        The kind, in CamelCase.
    storage
        Store objects in this version from now on; the first version of a kind always is stored.
    plural
        What many of them are called, if it does not follow from the kind.
    scope
        Whether objects are in namespaces or not; Namespaced if nothing is said.
    output
        The folder of the project; without it, this one.
    dry_run
        Write nothing; say what would be.
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
    print_lines(f"{version} is a copy of {added.source}; {added.stored} is stored")
    if added.extend:
        warn(f"{added.extend} converts between all versions, and does not know {version} yet")
