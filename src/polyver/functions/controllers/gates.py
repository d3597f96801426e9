"""Reads and writes the gates of function versions.

Each read is a consistent request to the API server: it contains every gate and every policy that
was written before the read.
"""

from __future__ import annotations

from typing import Final

from polyver.capability.gates import SYSTEM_NAMESPACE
from polyver.capability.rollouts import holding_policy
from polyver.client import Client, GroupVersionResource, find
from polyver.client.field_managers import POLYVER
from polyver.core import Gate
from polyver.core.plain import Object
from polyver.functions.gates import (
    RECORD,
    GateRecord,
    gated,
    lineage_name,
    read_record,
    record_data,
    unrecorded,
    with_gate,
    with_stable_versions,
)
from polyver.functions.registering import Functions
from polyver.kube.objects.status import ApiError

__all__ = ["CONFIG_MAPS", "FunctionGates"]

CONFIG_MAPS: Final = GroupVersionResource("", "v1", "configmaps")


class FunctionGates:
    """Reads and writes the record of gates: which stable versions of functions have a gate."""

    def __init__(self, client: Client, functions: Functions) -> None:
        self._client = client
        self._functions = functions

    async def functions(self) -> Functions:
        """Return the functions, with the gate of each version.

        If a Ready policy targets a function, a version that has just become stable has a closed
        gate, even if the stored record does not have it yet. This applies only to functions that
        are in the record.
        """
        record, _ = await self._read()
        return gated(self._functions, record)

    async def recorded(self) -> GateRecord:
        """Add the versions that have become stable to the stored record, and return the record."""
        while True:
            record, config_map = await self._read()
            if config_map is None or read_record(config_map) == record:
                return record
            if await self._write(record, config_map):
                return record

    async def write(self, function: str, version: str, gate: Gate | None) -> GateRecord:
        """Store the gate of a version in the record, and return the record.

        If `gate` is None, all blueprints may use the version.
        """
        while True:
            record, config_map = await self._read()
            record = with_gate(record, function, version, gate)
            if await self._write(record, config_map):
                return record

    async def _read(self) -> tuple[GateRecord, Object | None]:
        """Return the record with the versions that are stable now, and its ConfigMap.

        The second value is None if the ConfigMap does not exist.
        """
        config_map = await find(self._client, CONFIG_MAPS, RECORD, SYSTEM_NAMESPACE)
        record = read_record(config_map)
        policies = {
            each.name: await holding_policy(self._client, lineage_name(each.name), {})
            for each in unrecorded(record, self._functions)
        }
        return with_stable_versions(record, self._functions, policies), config_map

    async def _write(self, record: GateRecord, config_map: Object | None) -> bool:
        """Write the record; return False if another client has changed it meanwhile."""
        metadata = {"name": RECORD, "namespace": SYSTEM_NAMESPACE}
        made = config_map or {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}
        made = {**made, "data": {**(made.get("data") or {}), **record_data(record)}}
        try:
            if config_map is None:
                await self._client.create(CONFIG_MAPS, made, manager=POLYVER)
            else:
                await self._client.update(CONFIG_MAPS, made, manager=POLYVER)
        except ApiError as error:
            passing = ("AlreadyExists",) if config_map is None else ("Conflict", "NotFound")
            if error.reason not in passing:
                raise
            return False
        return True
