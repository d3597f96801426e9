"""The built-in kinds as discovery lists them; they are read from the file kinds.json."""

from __future__ import annotations

from functools import cache
from importlib.resources import files

import msgspec

from polyver.kube.objects.kinds import VERBS, ResourceKind, Subresource

__all__ = ["builtin_kinds"]


class _Part(msgspec.Struct):
    name: str
    verbs: tuple[str, ...] = ("get", "patch", "update")
    group: str | None = None
    version: str = ""
    kind: str = ""

    def as_subresource(self) -> Subresource:
        return Subresource(self.name, self.verbs, self.group, self.version, self.kind)


class _Kind(msgspec.Struct):
    version: str
    kind: str
    plural: str
    singular: str
    namespaced: bool
    group: str = ""
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    verbs: tuple[str, ...] = ()
    subresources: tuple[_Part, ...] = ()

    def as_kind(self) -> ResourceKind:
        return ResourceKind(
            self.group,
            self.version,
            self.kind,
            self.plural,
            self.singular,
            self.namespaced,
            short_names=self.short_names,
            categories=self.categories,
            verbs=self.verbs or VERBS,
            subresources=tuple(part.as_subresource() for part in self.subresources),
        )


_decoder = msgspec.json.Decoder(list[_Kind])


@cache
def builtin_kinds() -> tuple[ResourceKind, ...]:
    """Return all built-in kinds by group, in the order of kube-apiserver's discovery.

    >>> {kind.resource for kind in builtin_kinds() if "deploy" in kind.short_names}
    {'deployments.apps'}
    """
    encoded = files(__package__).joinpath("kinds.json").read_bytes()
    return tuple(each.as_kind() for each in _decoder.decode(encoded))
