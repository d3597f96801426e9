"""Label and field selection of a list or a watch, on stored bytes with little decoding."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import msgspec
from msgspec import Struct

from polyver.kube.objects import (
    FieldRequirement,
    InvalidSelector,
    LabelRequirement,
    parse_field_selector,
    parse_label_selector,
)
from polyver.kube.objects.status import bad_request
from polyver.kube.server.options import ListOptions
from polyver.kube.server.resource import ServedResource
from polyver.kube.store import StoreEntry

__all__ = ["Selection", "read_selection"]


class _Metadata(Struct):
    name: str = ""
    namespace: str = ""
    labels: dict[str, str] = {}


class _Header(Struct):
    metadata: _Metadata


_header = msgspec.json.Decoder(_Header)
_NAMES = ("metadata.name", "metadata.namespace")


@dataclass(frozen=True, slots=True)
class Selection:
    """The labels and fields that objects must have; without any, everything matches."""

    resource: ServedResource
    labels: Sequence[LabelRequirement]
    fields: Sequence[FieldRequirement]

    @property
    def everything(self) -> bool:
        return not self.labels and not self.fields

    @property
    def name(self) -> str:
        """The only name that can match, if the fields require one."""
        names = [each.value for each in self.fields if each.equal and each.field == _NAMES[0]]
        return names[0] if names else ""

    async def matches(self, entry: StoreEntry) -> bool:
        """Report whether a stored object matches."""
        if self.everything:
            return True
        metadata = _header.decode(entry.value).metadata
        if not all(each.matches(metadata.labels) for each in self.labels):
            return False
        if not self.fields:
            return True
        known = {_NAMES[0]: metadata.name, _NAMES[1]: metadata.namespace}
        if all(each.field in known for each in self.fields):
            return all(each.matches(known.__getitem__) for each in self.fields)
        obj = await self.resource.decode(entry, kept=True)
        selectable = self.resource.selectable

        def value_of(field: str) -> str:
            return known[field] if field in known else selectable[field](obj)

        return all(each.matches(value_of) for each in self.fields)


def read_selection(resource: ServedResource, options: ListOptions) -> Selection:
    """Parse the selectors of a request; raise an error for fields that cannot be selected by."""
    try:
        labels = parse_label_selector(options.labels) if options.labels else ()
        fields = parse_field_selector(options.fields) if options.fields else ()
    except InvalidSelector as error:
        raise bad_request(str(error)) from None
    for requirement in fields:
        if requirement.field not in _NAMES and requirement.field not in resource.selectable:
            raise bad_request(_not_selectable(resource, requirement.field))
    return Selection(resource, labels, fields)


def _not_selectable(resource: ServedResource, field: str) -> str:
    if resource.kind.custom or resource.selectable:
        return f"field label not supported: {field}"
    return f'"{field}" is not a known field selector: only "metadata.name", "metadata.namespace"'
