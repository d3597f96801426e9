"""The tree of API versions, and the conversions between them.

The tree is checked for completeness when it is built.

An edge of the tree connects two versions. Between any two versions there is exactly one conversion
path. Without a path, an object could not be served in both versions. Two paths could give different
results.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from polyver.core.errors import PolyverError, listed
from polyver.core.versions import KubeVersion

__all__ = ["ConversionTree", "Edge", "Hop", "InvalidTree"]

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Edge(Generic[T]):
    """Two connected versions, and the converters between them.

    `forward` converts from `source` to `target`, and `back` in the opposite direction. None means
    that there is no converter for this direction.
    """

    source: str
    target: str
    forward: T | None
    back: T | None

    def __str__(self) -> str:
        return f"{self.source} ⇄ {self.target}"


@dataclass(frozen=True, slots=True)
class Hop(Generic[T]):
    """One direction of an edge, with the converter for that direction."""

    source: str
    target: str
    convert: T


class InvalidTree(PolyverError):
    """The edges do not form a valid tree; `problems` has a sentence for each error."""

    def __init__(self, problems: Sequence[str]) -> None:
        super().__init__("; ".join(problems))
        self.problems = tuple(problems)


class ConversionTree(Generic[T]):
    """Versions and the edges between them.

    >>> edges = [Edge("v1", "v2", "up", "down"), Edge("v2", "v3", "up", "down")]
    >>> tree = ConversionTree(versions=["v1", "v2", "v3"], edges=edges)
    >>> [f"{hop.source} to {hop.target}: {hop.convert}" for hop in tree.way("v3", "v1")]
    ['v3 to v2: down', 'v2 to v1: down']
    """

    def __init__(
        self, *, versions: Iterable[str], edges: Iterable[Edge[T]], hub: str | None = None
    ) -> None:
        self.versions = tuple(versions)
        self.edges = tuple(edges)
        problems = _problems(self.versions, self.edges, hub)
        if problems:
            raise InvalidTree(problems)
        self.hub = hub
        self._parents = self._rooted(hub or self.versions[0])

    def _rooted(self, root: str) -> dict[str, tuple[int, Hop[T], Hop[T]]]:
        """Find the depth of each version in the tree, and the hops to and from its parent.

        The root itself has no entry.
        """
        neighbours: dict[str, list[tuple[str, Hop[T], Hop[T]]]] = {v: [] for v in self.versions}
        for edge in self.edges:
            assert edge.forward is not None
            assert edge.back is not None
            forward = Hop(edge.source, edge.target, edge.forward)
            back = Hop(edge.target, edge.source, edge.back)
            neighbours[edge.source].append((edge.target, back, forward))
            neighbours[edge.target].append((edge.source, forward, back))
        parents: dict[str, tuple[int, Hop[T], Hop[T]]] = {}
        level, depth = [root], 0
        while level:
            depth += 1
            found = [
                (child, up, down)
                for version in level
                for child, up, down in neighbours[version]
                if child != root and child not in parents
            ]
            parents |= {child: (depth, up, down) for child, up, down in found}
            level = [child for child, _, _ in found]
        return parents

    def way(self, source: str, target: str) -> tuple[Hop[T], ...]:
        """Return the hops from one version to another; empty if the two versions are the same."""
        for version in (source, target):
            if version not in self.versions:
                raise InvalidTree([f"{version} is not one of {listed(self.versions)}"])
        up: list[Hop[T]] = []
        down: list[Hop[T]] = []
        while source != target:
            if self._depth(source) >= self._depth(target):
                _, hop, _ = self._parents[source]
                up.append(hop)
                source = hop.target
            else:
                _, _, hop = self._parents[target]
                down.append(hop)
                target = hop.source
        return (*up, *reversed(down))

    def _depth(self, version: str) -> int:
        return self._parents[version][0] if version in self._parents else 0


def _problems(versions: Sequence[str], edges: Sequence[Edge[T]], hub: str | None) -> list[str]:
    problems = [f"{version} is declared twice" for version in _doubled(versions)]
    if not versions:
        problems.append("no version is declared")
    if hub is not None and hub not in versions:
        problems.append(f"the hub {hub} is not declared")
    for edge in edges:
        problems += _edge_problems(edge, versions)
    pairs = [" ⇄ ".join(sorted((edge.source, edge.target), key=_order)) for edge in edges]
    problems += [f"{pair} has two edges" for pair in _doubled(pairs)]
    return problems or _shape_problems(versions, edges, hub)


def _edge_problems(edge: Edge[T], versions: Sequence[str]) -> list[str]:
    ends = dict.fromkeys((edge.source, edge.target))
    problems = [
        f"the edge {edge} names {version}, which is not declared"
        for version in ends
        if version not in versions
    ]
    if edge.source == edge.target:
        problems.append(f"an edge leads from {edge.source} to itself")
    if edge.forward is None:
        problems.append(f"{edge.source} cannot be converted to {edge.target}")
    if edge.back is None:
        problems.append(f"{edge.source} cannot be converted back from {edge.target}")
    return problems


def _shape_problems(
    versions: Sequence[str], edges: Sequence[Edge[T]], hub: str | None
) -> list[str]:
    """Return the errors in the shape of the tree: cycles, and versions that are not connected."""
    group = {version: {version} for version in versions}
    problems: list[str] = []
    for edge in edges:
        joined = group[edge.source]
        if edge.target in joined:
            problems.append(f"the edge {edge} closes a cycle: a conversion path exists already")
            continue
        joined |= group[edge.target]
        for version in group[edge.target]:
            group[version] = joined
    root = hub or max(versions, key=lambda version: (len(group[version]), _order(version)))
    missing = sorted((v for v in versions if v not in group[root]), key=_order, reverse=True)
    if missing:
        problems.append(f"no edge leads to {listed(missing)} from {root}")
    return problems


def _doubled(names: Sequence[str]) -> list[str]:
    return [name for name in dict.fromkeys(names) if names.count(name) > 1]


def _order(version: str) -> KubeVersion:
    return KubeVersion.parse(version)
