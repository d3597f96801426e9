"""`polyver why`: print which versions an object uses and why, and which it would use now."""

from __future__ import annotations

from typing import Annotated

from cyclopts import App, Parameter

from polyver.app.capabilities import CAPABILITIES
from polyver.capability.subjects import WhyQuestion
from polyver.cli.exit_codes import Misused
from polyver.cli.output import OutputFormat
from polyver.functions.commands.functions import CatalogueFiles, FunctionFiles, Output, Traceback
from polyver.overview.subjects import explain_object

app = App(name="why")


@app.default
def why(
    name: str,
    /,
    *,
    namespace: Annotated[str, Parameter(name=["--namespace", "-n"])] = "",
    context: str = "",
    functions: FunctionFiles = None,
    catalogue: CatalogueFiles = None,
    explain: Annotated[bool, Parameter(negative=())] = False,
    output: Output = OutputFormat.TABLE,
    traceback: Traceback = False,
) -> None:
    """Show which versions an ActionSet, application, package or composite resource uses, and why.

    For an ActionSet, the command shows the version that each phase used, and the version that the
    phase would use now. To find this version, the command reads the functions of the server. If
    --functions or --catalogue is given, the command uses the functions of these options instead.
    For an application, the command shows the version of each definition that the application
    references. For a package, it shows the revision that each step of a composition uses. For a
    composite resource, it shows the composition, its revision, and the revision of each function:
    both the revisions in use, and the revisions that the composite resource would use now.

    Example: polyver why actionset/backup-1 -n shop --catalogue catalogue.yaml

    Parameters
    ----------
    name
        An ActionSet (actionset/NAME), an application (app/NAME), a function that compositions call
        (package/NAME) or a composite resource (xr/NAME or KIND/NAME).
    namespace
        The namespace of the object. Default: the namespace of the context.
    context
        The context of the kubeconfig. Default: the current context.
    explain
        For each other version, also show why the object would not use it now.
    """
    kind, slash, wanted = name.partition("/")
    if not slash or not kind or not wanted or "/" in wanted:
        fact = f"{name!r} is not an ActionSet, application, package or composite resource"
        raise Misused(fact, hint="write actionset/NAME, app/NAME, package/NAME or xr/NAME")
    question = WhyQuestion(
        kind=kind,
        name=wanted,
        namespace=namespace,
        context=context,
        functions=functions,
        catalogue=catalogue,
        output=output,
        explain=explain,
        traceback=traceback,
    )
    explain_object(CAPABILITIES, question)
