"""Gates of rollouts on function versions, and the record in which they are stored.

A version of a function is released when it becomes stable in the catalogue. No object stores this
release, so a ConfigMap has the record: the versions of each function that were stable, the newest
last, each open or with a gate.

A blueprint that a gate does not admit keeps the version that was stable before. If no such version
is open and can still be used, the stable version is open for all.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

import msgspec

from polyver.capability.gates import SYSTEM_NAMESPACE, LineageName, gate_data, gate_from_data
from polyver.core import Gate, Lineage, PolyverError, Release
from polyver.core.plain import ReadOnlyObject
from polyver.functions.policy import FUNCTIONS
from polyver.functions.registering import Functions, KnownFunction
from polyver.kube.objects import encode_json

__all__ = [
    "RECORD",
    "GateRecord",
    "StableVersion",
    "gated",
    "lineage_name",
    "read_record",
    "record_data",
    "unrecorded",
    "with_gate",
    "with_stable_versions",
]

RECORD: Final = "polyver-function-rollouts"
"""The name of the ConfigMap in polyver's namespace that stores the record of gates."""
_KEY: Final = "functions.json"
_GROUP, _KIND = "polyver.dev", "BlueprintFunction"
_OPEN, _CLOSED = "open", "closed"


@dataclass(frozen=True, slots=True)
class StableVersion:
    """A version of a function that is or was stable. Without a gate, all blueprints may use it."""

    version: str
    gate: Gate | None = None


GateRecord = Mapping[str, tuple[StableVersion, ...]]
"""The versions of each function that were stable, the newest last."""


def lineage_name(function: str) -> LineageName:
    """Return the name by which policies and rollouts target a function."""
    return LineageName(_GROUP, _KIND, "", function)


# The ConfigMap.


def read_record(config_map: ReadOnlyObject | None) -> GateRecord:
    """Read the record from its ConfigMap. Raise an error if somebody has made it unreadable."""
    text = ((config_map or {}).get("data") or {}).get(_KEY)
    if not text:
        return {}
    try:
        data = msgspec.json.decode(text)
        return {name: tuple(map(_stable_version, each)) for name, each in data.items()}
    except (AttributeError, KeyError, TypeError, ValueError):
        at = f"ConfigMap {SYSTEM_NAMESPACE}/{RECORD}, data[{_KEY}]"
        hint = "correct it, or delete the ConfigMap, which opens all versions"
        raise PolyverError(
            "the gates of function versions cannot be read", at=at, hint=hint
        ) from None


def _stable_version(data: Mapping[str, Any]) -> StableVersion:
    gate = None if data["state"] == _OPEN else gate_from_data(data["gate"])
    return StableVersion(str(data["version"]), gate)


def record_data(record: GateRecord) -> dict[str, str]:
    """Convert the record to the field `data` of its ConfigMap: one key with JSON."""
    data = {name: [*map(_data, each)] for name, each in sorted(record.items())}
    return {_KEY: msgspec.json.format(encode_json(data), indent=2).decode()}


def _data(each: StableVersion) -> dict[str, Any]:
    if each.gate is None:
        return {"version": each.version, "state": _OPEN}
    return {"version": each.version, "state": _CLOSED, "gate": gate_data(each.gate)}


# Changes of the record.


def unrecorded(record: GateRecord, functions: Functions) -> Iterator[KnownFunction]:
    """Yield the functions whose stable version is not the newest in the record.

    A function without a record is left out: no policy has applied to it, so its versions are open.
    """
    for name, versions in record.items():
        known = functions.known.get(name)
        stable = known.stable if known is not None else None
        newest = versions[-1].version if versions else ""
        if known is not None and stable is not None and newest not in ("", stable.name):
            yield known


def with_stable_versions(
    record: GateRecord, functions: Functions, policies: Mapping[str, str]
) -> GateRecord:
    """Return the record in which the last version of each function is its stable version.

    `policies` has the names of the Ready policies, by function. If a function has a policy, its
    version that becomes stable for the first time is closed. A version that becomes stable again
    keeps its gate, or stays open.
    """
    found = dict(record)
    for known in unrecorded(record, functions):
        assert known.stable is not None
        name, policy = known.stable.name, policies.get(known.name, "")
        new = StableVersion(name, Gate(policy) if policy else None)
        mine = next((each for each in record[known.name] if each.version == name), new)
        others = (each for each in record[known.name] if each.version != name)
        found[known.name] = (*others, mine)
    return found


def with_gate(record: GateRecord, function: str, version: str, gate: Gate | None) -> GateRecord:
    """Return the record with `gate` as the gate of a version; None opens the version.

    If the record does not have the version, add it as the newest one.
    """
    known = record.get(function, ())
    made = StableVersion(version, gate)
    changed = tuple(made if each.version == version else each for each in known)
    return {**record, function: changed if made in changed else (*known, made)}


# Functions with gates.


def gated(functions: Functions, record: GateRecord) -> Functions:
    """Return the functions with the gates of the record added to their versions."""
    names: Collection[str] = record.keys() & functions.known.keys()
    if not names:
        return functions
    changed = {name: _gated(functions.known[name], record[name]) for name in names}
    return replace(functions, known={**functions.known, **changed})


def _gated(known: KnownFunction, recorded: tuple[StableVersion, ...]) -> KnownFunction:
    gates = {each.version: each.gate for each in recorded}
    stable, lineage = known.stable, known.lineage
    name = stable.name if stable is not None else ""
    releases = [replace(each, gate=gates.get(each.name)) for each in lineage]
    usable = {each.name: each for each in releases if _is_usable(each, known)}
    names = [each.version for each in reversed(recorded) if each.version != name]
    earlier = tuple(usable[each] for each in names if each in usable)
    if all(each.gate is not None for each in earlier):
        # Nothing else can be used, so the stable version is open.
        releases = [replace(each, gate=None) if each.name == name else each for each in releases]
    is_held = any(each.gate is not None for each in releases if each.name == name)
    return replace(
        known,
        lineage=Lineage(lineage.name, releases, versioned=lineage.versioned),
        earlier=earlier if is_held else (),
    )


def _is_usable(release: Release, known: KnownFunction) -> bool:
    return release.stage in FUNCTIONS.usable and release.version in known.code
