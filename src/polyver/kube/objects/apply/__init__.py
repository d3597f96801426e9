"""Server-side apply on plain data, and managedFields: who owns which field of an object.

An owner is a manager that applied a field (an applier) or wrote it in another way (an updater). A
configuration is the object that a client applies.
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
from polyver.kube.objects.apply._walk import fields_of

__all__ = [
    "Entry",
    "Fields",
    "InvalidEntries",
    "Scope",
    "apply",
    "fields_of",
    "read_entries",
    "resets_of",
    "times_kept",
    "track_scale",
    "track_update",
]
