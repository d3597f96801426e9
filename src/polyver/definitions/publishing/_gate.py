"""The semver gate: an incompatible change of parameters needs a new major version.

In 0.x a new minor version is enough. Prereleases promise nothing, and are not compared.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import pairwise
from typing import Literal

from polyver.apis.compatibility import FindingSeverity, compare_schemas
from polyver.core import Lineage, Release, SemVer, Series, listed
from polyver.core.plain import ReadOnlyObject
from polyver.definitions.publishing._spec import Refusal, parameters_of, read_parameters, wrapped

__all__ = ["GatePolicy", "check_gate"]

GatePolicy = Literal["refuse", "warn"]


def check_gate(
    lineage: Lineage, contents: Mapping[SemVer, ReadOnlyObject], new: Mapping[SemVer, str]
) -> tuple[list[Refusal], list[str]]:
    """Return incompatible changes between neighbouring versions, and warnings.

    `new` has the path of each new version. Changes between older versions are only warnings.
    """
    finals = [each for each in lineage if not each.stage.is_gone and _is_final(each)]
    broken: list[Refusal] = []
    warnings: list[str] = []
    unread: dict[str, dict[SemVer, None]] = {}
    for low, high in pairwise(finals):
        one, other = low.version, high.version
        assert isinstance(one, SemVer)
        assert isinstance(other, SemVer)
        if _may_break(one, other):
            continue
        pair = (one, contents.get(one, {})), (other, contents.get(other, {}))
        for version, engine in _unread(*pair):
            unread.setdefault(engine, {})[version] = None
        at = new.get(other) or new.get(one)
        found = _broken(lineage.name, *pair, at or "")
        if at is None:
            warnings += [each.fact for each in found]
        else:
            broken += found
    return broken, [*warnings, *_told(lineage.name, unread)]


def _is_final(release: Release) -> bool:
    return isinstance(release.version, SemVer) and not release.version.is_prerelease


def _may_break(low: SemVer, high: SemVer) -> bool:
    safe = Series(low.major) if low.major else Series(0, low.minor)
    return high not in safe


_Version = tuple[SemVer, ReadOnlyObject]


def _unread(*versions: _Version) -> Iterator[tuple[SemVer, str]]:
    for version, content in versions:
        engines = [*(content.get("schematic") or {})]
        if engines and parameters_of(content) is None:
            yield version, engines[0]


def _told(name: str, unread: Mapping[str, Iterable[SemVer]]) -> Iterator[str]:
    for engine, versions in unread.items():
        fact = f"the parameters of {name} {listed([*map(str, versions)])} are in {engine}"
        yield f"{fact}, and cannot be compared"


def _broken(name: str, low: _Version, high: _Version, at: str) -> Iterator[Refusal]:
    before, after = parameters_of(low[1]), parameters_of(high[1])
    if before is None or after is None:
        return
    one, other = (wrapped(read_parameters(each)[0]) for each in (before, after))
    for finding in compare_schemas(one, other, least=FindingSeverity.BREAKING):
        parameter = finding.path.removeprefix("parameter").removeprefix(".") or "all parameters"
        fact = f"{name} {high[0]} breaks users of {low[0]}: {parameter}: {finding.fact}"
        place = f"{at}.schematic.gotemplate.parameters"
        yield Refusal("Breaking", fact, at=place, hint=f"publish it as {_next(high[0])}")


def _next(version: SemVer) -> str:
    if version.major:
        return f"{version.major + 1}.0.0"
    return f"0.{version.minor + 1}.0"
