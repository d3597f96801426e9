"""`polyver impact`: list the users of a version, which a change of this version would affect."""

from __future__ import annotations

from typing import Annotated

from cyclopts import App, Parameter

from polyver.app.capabilities import CAPABILITIES
from polyver.capability.subjects import ImpactQuestion
from polyver.cli.cluster import CLUSTER
from polyver.cli.output import OutputFormat
from polyver.functions.commands.functions import CatalogueFiles, FunctionFiles, Output, Traceback
from polyver.overview.subjects import list_users

app = App(name="impact")


@app.default
def impact(
    name: str,
    /,
    *,
    file: Annotated[
        list[str] | None, Parameter(name=["--file", "-f"], negative=(), allow_leading_hyphen=True)
    ] = None,
    functions: FunctionFiles = None,
    catalogue: CatalogueFiles = None,
    output: Output = OutputFormat.TABLE,
    traceback: Traceback = False,
) -> None:
    """List every user of a function, a package or a composition, or of one version of it.

    For a function, the command lists each blueprint, action and phase that calls it. For a package
    (package/NAME or package/NAME@REVISION), it lists each step of a composition and each composite
    resource that uses the package. For a composition (composition/NAME or
    composition/NAME@REVISION), it lists the composite resources that use the composition, and the
    composite resources that would use it if polyver resolved their selectors again now.

    Example: polyver impact KubeExec@v0.1.0 -f blueprints/ --catalogue catalogue.yaml

    Parameters
    ----------
    name
        A function (NAME), one version of it (NAME@VERSION), a package (package/NAME or
        package/NAME@REVISION), or a composition (composition/NAME or composition/NAME@REVISION).
        For one version of a function, the list contains each phase that resolves to this version,
        and each phase that requests this version but resolves to no version.
    file
        A file or folder with blueprints and ActionSets, "-" (standard input), "cluster:" (the
        cluster of the current context) or "cluster:CONTEXT"; repeatable. Default: "cluster:".
        polyver reads ActionSets because an ActionSet may prefer a version of a function. For a
        cluster, polyver uses the functions that the cluster reports, unless --functions or
        --catalogue is given.
    """
    question = ImpactQuestion(
        text=name,
        files=file or [CLUSTER],
        functions=functions,
        catalogue=catalogue,
        output=output,
        traceback=traceback,
    )
    list_users(CAPABILITIES, question)
