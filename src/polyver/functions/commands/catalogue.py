"""`polyver catalogue`: releases of a catalogue of functions."""

from __future__ import annotations

from functools import partial

from cyclopts import App

from polyver.functions.catalogue_edits import add_release
from polyver.functions.commands.catalogues import edit_catalogue, only_catalogue, version_of
from polyver.functions.commands.functions import CatalogueFiles, DryRun, Force, Users

app = App(
    name="catalogue",
    help="""Manage the releases of a catalogue of functions.

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
    """Add a release to a catalogue; versions that are announced for removal in it are removed.

    The release is refused if it removes a version less than two minor or major releases after its
    deprecation; patch releases do not count.

    Example: polyver catalogue release 0.4.0 -f blueprints/ --dry-run

    Parameters
    ----------
    version
        The release.
    """
    edit = partial(add_release, version=version_of(version, "VERSION"))
    holder = only_catalogue(catalogue)
    edit_catalogue(holder, edit, dry_run=dry_run, users=file or (), force=force)
