"""Match conditions: CEL expressions that decide whether to call a webhook for a request.

A match condition has variables for the object, the old object, the request and the permissions of
the user.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from polyver.core import PolyverError
from polyver.languages.cel import _types as types
from polyver.languages.cel._authorizer import (
    AUTHORIZER,
    RESOURCE,
    Answers,
    AuthorizationQuery,
    Authorizer,
    ResourceCheck,
)
from polyver.languages.cel._checker import Checker, ExpressionTooLarge
from polyver.languages.cel._expression import Uncompilable
from polyver.languages.cel._parser import parse
from polyver.languages.cel._problems import format_problems
from polyver.languages.cel._program import CelProgram, Unusable
from polyver.languages.cel._tokens import CelProblem
from polyver.languages.cel._types import CelType
from polyver.languages.cel._validators import literal_problems
from polyver.languages.cel._values import Dictionary, List

__all__ = ["ConditionFailed", "ConditionVariables", "MatchCondition"]

_PREFIX = "kubernetes."
_TEXT = types.STRING
_KIND = {"group": _TEXT, "version": _TEXT, "kind": _TEXT}
_RESOURCE = {"group": _TEXT, "version": _TEXT, "resource": _TEXT}
_STRUCTS: Mapping[str, Mapping[str, CelType]] = {
    f"{_PREFIX}GroupVersionKind": _KIND,
    f"{_PREFIX}GroupVersionResource": _RESOURCE,
    f"{_PREFIX}UserInfo": {
        "username": _TEXT,
        "uid": _TEXT,
        "groups": types.list_of(_TEXT),
        "extra": types.map_of(_TEXT, types.list_of(_TEXT)),
    },
    f"{_PREFIX}AdmissionRequest": {
        "kind": types.struct(f"{_PREFIX}GroupVersionKind"),
        "resource": types.struct(f"{_PREFIX}GroupVersionResource"),
        "subResource": _TEXT,
        "requestKind": types.struct(f"{_PREFIX}GroupVersionKind"),
        "requestResource": types.struct(f"{_PREFIX}GroupVersionResource"),
        "requestSubResource": _TEXT,
        "name": _TEXT,
        "namespace": _TEXT,
        "operation": _TEXT,
        "userInfo": types.struct(f"{_PREFIX}UserInfo"),
        "dryRun": types.BOOL,
        "options": types.DYN,
    },
}
_VARIABLES: Mapping[str, CelType] = {
    "object": types.DYN,
    "oldObject": types.DYN,
    "namespaceObject": types.DYN,
    "request": types.struct(f"{_PREFIX}AdmissionRequest"),
    "authorizer": AUTHORIZER,
    "authorizer.requestResource": RESOURCE,
}


class ConditionFailed(PolyverError):
    """A match condition could not be evaluated for a request."""


class ConditionVariables:
    """The values of all variables that match conditions may read, for one request."""

    def __init__(
        self, request: Mapping[str, Any], answers: Answers, query: AuthorizationQuery
    ) -> None:
        """Read the variables from an AdmissionRequest.

        `answers` decides about authorization requests of the conditions. `query` is an
        authorization request for the resource of the AdmissionRequest; it has no verb yet.
        """
        self.values = {
            "object": _untyped(request.get("object")),
            "oldObject": _untyped(request.get("oldObject")),
            "namespaceObject": None,  # always null for webhooks
            "request": _untyped(
                {key: each for key, each in request.items() if key not in ("object", "oldObject")}
            ),
            "authorizer": Authorizer(answers),
            "authorizer.requestResource": ResourceCheck(answers, query),
        }


def _untyped(data: Any) -> Any:
    """Convert plain data without a schema to a CEL value."""
    match data:
        case dict():
            return Dictionary((key, _untyped(each)) for key, each in data.items())
        case list():
            return List([_untyped(each) for each in data])
    return data


@dataclass(frozen=True, slots=True)
class MatchCondition:
    """A compiled match condition.

    >>> request = {"object": {"a": 1}, "operation": "CREATE"}
    >>> variables = ConditionVariables(request, lambda question: False, AuthorizationQuery())
    >>> MatchCondition.compile('object.a == 1 && request.operation == "CREATE"').holds(variables)
    True
    """

    text: str
    program: CelProgram

    @classmethod
    def compile(cls, text: str) -> MatchCondition:
        """Parse and check a condition; raise `Uncompilable` if it is invalid."""
        tree, problems = parse(text)
        if problems or tree is None:
            raise _wrong(text, problems)
        checker = Checker(_VARIABLES, _STRUCTS)
        try:
            kind = checker.run(tree)
        except ExpressionTooLarge as problem:
            raise _wrong(text, [CelProblem(-1, str(problem))]) from None
        problems = checker.problems or literal_problems(tree)
        if problems:
            raise _wrong(text, problems)
        if kind != types.BOOL:
            raise Uncompilable(f"must evaluate to bool but got {kind}")
        try:
            return cls(text, CelProgram(tree, tuple(_VARIABLES)))
        except Unusable as problem:
            raise Uncompilable(f"program instantiation failed: {problem}") from problem

    def holds(self, variables: ConditionVariables) -> bool:
        """Report whether the condition is true.

        Raise `ConditionFailed` if it cannot be evaluated for the request.
        """
        outcome = self.program.evaluate(variables.values)
        if outcome.failure is not None:
            raise ConditionFailed(f"expression '{self.text}' resulted in error: {outcome.failure}")
        return outcome.value is True


def _wrong(text: str, problems: list[CelProblem]) -> Uncompilable:
    return Uncompilable(f"compilation failed: {format_problems(text, problems)}")
