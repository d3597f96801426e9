"""Server-side apply on plain data, and managedFields: who owns which field of an object.

A manager owns a field if it applied the field (the manager is then an applier) or wrote it by any
other request (then it is an updater). A configuration is the object that a client applies.
"""

from polyver.kube.objects.apply._apply import apply
from polyver.kube.objects.apply._entries import Entry, InvalidEntries, read_entries
from polyver.kube.objects.apply._fields import Fields
from polyver.kube.objects.apply._update import (
    Scope,
    resets_of,
    times_kept,
    track_scale,
    track_update,
)
from polyver.kube.objects.apply._versions import VersionChange, entries_in_version
from polyver.kube.objects.apply._walk import fields_of

__all__ = [
    "Entry",
    "Fields",
    "InvalidEntries",
    "Scope",
    "VersionChange",
    "apply",
    "entries_in_version",
    "fields_of",
    "read_entries",
    "resets_of",
    "times_kept",
    "track_scale",
    "track_update",
]
