"""Reads of Functions and FunctionRevisions from an API server."""

from __future__ import annotations

from collections.abc import Sequence

from polyver.client import Client, GroupVersionResource, find
from polyver.compositions import kinds
from polyver.compositions.controllers.packages._dependents import NoDependents, Users
from polyver.compositions.kinds import GROUP, STORED
from polyver.compositions.names import PACKAGE
from polyver.compositions.packages import StepFunctionUse
from polyver.core.plain import Object
from polyver.languages.values.names import label_value_problems

__all__ = ["FUNCTIONS", "FUNCTION_REVISIONS", "ClientFunctionLookup"]

FUNCTIONS = GroupVersionResource(GROUP, STORED, kinds.FUNCTIONS.names.plural, namespaced=False)
FUNCTION_REVISIONS = GroupVersionResource(
    GROUP, STORED, kinds.FUNCTION_REVISIONS.names.plural, namespaced=False
)


class ClientFunctionLookup:
    """Functions, their revisions and their users on an API server."""

    def __init__(self, client: Client, users: Users | None = None) -> None:
        self._client = client
        self._users = users or NoDependents()

    async def function(self, name: str) -> Object | None:
        """Return a Function, or None if there is none of that name."""
        return await find(self._client, FUNCTIONS, name) if name else None

    async def revisions(self, function: str) -> list[Object]:
        """Return the FunctionRevisions of a function."""
        if not function or label_value_problems(function):
            return []  # not a valid label value, so there are none
        labels = f"{PACKAGE}={function}"
        return (await self._client.list(FUNCTION_REVISIONS, labels=labels)).items

    async def uses(self, function: str) -> Sequence[StepFunctionUse]:
        """Return the steps of compositions that call a function."""
        return await self._users.uses(function)
