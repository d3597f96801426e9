"""The entries of metadata.managedFields: owners, their fields, times and API versions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple

from polyver.core import PolyverError
from polyver.kube.objects.apply._fields import (
    LEAF,
    Fields,
    InvalidFields,
    json_text,
    read_fields,
    union,
)

__all__ = [
    "Entry",
    "InvalidEntries",
    "ManagerIdentifier",
    "OwnedFields",
    "Owners",
    "capped",
    "read_entries",
    "resets",
    "stored_entries",
    "write_entries",
]

Entry = dict[str, Any]
MOST_UPDATERS = 10
ANCIENT = "ancient-changes"


class InvalidEntries(PolyverError):
    """Raised if managedFields that a client has sent cannot be parsed."""


class ManagerIdentifier(NamedTuple):
    """The identity of an owner: manager, operation (Apply or Update), API version and subresource.

    An applier is one owner in all API versions, so its `api_version` is empty. An updater is a
    separate owner in each API version in which it wrote.
    """

    manager: str
    operation: str
    api_version: str
    subresource: str

    @property
    def applies(self) -> bool:
        return self.operation == "Apply"

    @property
    def text(self) -> str:
        """The identity as one string, by which owners are sorted."""
        parts = zip(("manager", "operation", "apiVersion", "subresource"), self, strict=True)
        return ",".join(f'"{key}":{json_text(each)}' for key, each in parts if each) + "}"

    @property
    def shown(self) -> str:
        """The name of the owner in the message of a conflict: `"kubectl-edit" using v1`."""
        where = f' with subresource "{self.subresource}"' if self.subresource else ""
        return f'"{self.manager}"{where}' + ("" if self.applies else f" using {self.api_version}")


class OwnedFields(NamedTuple):
    """The fields of an owner, their API version, and the time of the owner's last change.

    The API version is the one in which the owner wrote these fields.
    """

    api_version: str
    fields: Fields
    time: str | None = None


Owners = dict[ManagerIdentifier, OwnedFields]


def stored_entries(entries: Iterable[Entry] | None) -> Owners:
    """Convert stored managedFields entries, which are valid, to owners."""
    return {_identity(entry): _owned(entry, entry.get("fieldsV1", LEAF)) for entry in entries or ()}


def read_entries(entries: Iterable[Any]) -> Owners:
    """Convert managedFields entries from a client to owners; raise `InvalidEntries` on errors."""
    owners: Owners = {}
    for entry in entries:
        if not isinstance(entry, dict) or entry.get("operation") not in ("Apply", "Update"):
            raise InvalidEntries("operation must be `Apply` or `Update`")
        if not entry.get("apiVersion"):
            raise InvalidEntries("apiVersion must not be empty")
        if entry.get("fieldsType") != "FieldsV1":
            raise InvalidEntries("fieldsType must be FieldsV1")
        try:
            fields = read_fields(entry.get("fieldsV1") or LEAF)
            owners[_identity(entry)] = _owned({**entry, "time": _time(entry.get("time"))}, fields)
        except (InvalidFields, ValueError, TypeError) as error:
            raise InvalidEntries(str(error)) from error
    return owners


def _identity(entry: Entry) -> ManagerIdentifier:
    operation = entry["operation"]
    version = "" if operation == "Apply" else entry["apiVersion"]
    return ManagerIdentifier(
        entry.get("manager") or "", operation, version, entry.get("subresource") or ""
    )


def _owned(entry: Entry, fields: Fields) -> OwnedFields:
    return OwnedFields(entry["apiVersion"], fields, entry.get("time"))


def _time(given: object) -> str | None:
    if given is None:
        return None
    when = datetime.fromisoformat(str(given)).astimezone(UTC)
    return when.strftime("%Y-%m-%dT%H:%M:%SZ")


def resets(entries: Sequence[Any] | None) -> bool:
    """Report whether a client wants to remove all owners: it sent managedFields [] or [{}]."""
    if not entries:
        return entries is not None
    entry = entries[0]
    return len(entries) == 1 and isinstance(entry, dict) and not any(map(_is_set, entry.values()))


def _is_set(value: object) -> bool:
    return value is not None and value != ""


def write_entries(owners: Owners) -> list[Entry]:
    """Convert owners to managedFields entries, in kube-apiserver's order.

    Appliers come first. Then the order is by time and by name.
    """
    entries: list[Entry] = []
    for identity, owned in sorted(owners.items(), key=_rank):
        entry = {
            "manager": identity.manager,
            "operation": identity.operation,
            "apiVersion": owned.api_version,
            "time": owned.time,
            "fieldsType": "FieldsV1",
            "fieldsV1": owned.fields,
            "subresource": identity.subresource,
        }
        entries.append(
            {key: each for key, each in entry.items() if each is not None and each != ""}
        )
    return entries


def _rank(item: tuple[ManagerIdentifier, OwnedFields]) -> tuple[str, ...]:
    identity, owned = item
    seconds = owned.time or ""
    return identity.operation, seconds, identity.manager, owned.api_version, identity.subresource


def capped(owners: Owners) -> Owners:
    """Limit the number of updaters (owners by other writes than apply) to ten.

    If there are more, the oldest updaters of each API version are merged into one entry.
    """
    updaters = [identity for identity in owners if not identity.applies]
    excess = len(updaters) - MOST_UPDATERS
    if excess <= 0:
        return owners
    updaters.sort(key=lambda identity: (owners[identity].time or "", identity.text))
    left, first = dict(owners), dict[str, ManagerIdentifier]()
    for identity in updaters:
        if excess <= 0:
            break
        if first.setdefault(identity.api_version, identity) is not identity:
            _bury(left, first[identity.api_version], identity)
            excess -= 1
    return left


def _bury(owners: Owners, first: ManagerIdentifier, identity: ManagerIdentifier) -> None:
    """Move the fields of the updater `identity` to the entry `ancient-changes` of its API version.

    If there is no such entry yet, first rename the entry of the updater `first` to
    `ancient-changes`.
    """
    version, fields, time = owners.pop(identity)
    bucket = ManagerIdentifier(ANCIENT, "Update", identity.api_version, "")
    if bucket not in owners:
        owners[bucket] = owners.pop(first)
    owners[bucket] = OwnedFields(version, union(fields, owners[bucket].fields), time)
