"""`polyver catalogue`: adds catalogue releases to a catalogue of functions."""

from __future__ import annotations

from functools import partial

from cyclopts import App

from polyver.functions.catalogue_edits import add_release
from polyver.functions.commands.catalogues import edit_catalogue, only_catalogue, version_of
from polyver.functions.commands.functions import CatalogueFiles, DryRun, Force, Users

app = App(
    name="catalogue",
    help="""Manage the releases of your product in a catalogue of functions.

Example: polyver catalogue release 0.4.0""",
)


@app.command
def release(
    version: str,
    /,
    *,
    catalogue: CatalogueFiles = None,
    file: Users = None,
    force: Force = False,
    dry_run: DryRun = False,
) -> None:
    """Add a catalogue release, and remove the function versions whose removal is due.

    A catalogue release is one release of the product that ships the functions. For each deprecated
    function version, the catalogue names the catalogue release that removes it. It must be at least
    the second minor or major release after the deprecation. If the new catalogue release would
    remove a function version too early, the command refuses it.

    Example: polyver catalogue release 0.4.0 -f blueprints/ --dry-run

    Parameters
    ----------
    version
        The version of the new catalogue release, such as 0.4.0.
    """
    edit = partial(add_release, version=version_of(version, "VERSION"))
    holder = only_catalogue(catalogue)
    edit_catalogue(holder, edit, dry_run=dry_run, users=file or (), force=force)
