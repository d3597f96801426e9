"""Functions as plain data, for `GET /functions` and the command line."""

from __future__ import annotations

from enum import Enum
from typing import Any

import msgspec

from polyver.core import UNSPECIFIED, NoMatch, Release, SemVer, resolve
from polyver.functions.policy import FUNCTIONS
from polyver.functions.registering._types import ArgumentField
from polyver.functions.registering.function import Function
from polyver.functions.registering.functions import Functions, KnownFunction

__all__ = ["function_data", "functions_data"]


def functions_data(functions: Functions) -> dict[str, Any]:
    """Return every function with its versions, arguments, stages and dates."""
    return {"functions": [function_data(known) for known in functions]}


def function_data(known: KnownFunction) -> dict[str, Any]:
    """Return one function; its versions are in ascending order."""
    found: dict[str, Any] = {"name": known.name}
    try:
        found["default"] = resolve(known.lineage, UNSPECIFIED, FUNCTIONS).release.name
    except NoMatch:
        found["default"] = None
    if known.catalogue is not None:
        found["release"] = str(known.catalogue.now)
    found["versioned"] = known.lineage.versioned
    found["versions"] = [_version(known, release) for release in known.lineage]
    return found


def _version(known: KnownFunction, release: Release) -> dict[str, Any]:
    assert isinstance(release.version, SemVer)
    notes, code = release.notes, known.code.get(release.version)
    found: dict[str, Any] = {"version": release.name, "stage": release.stage.value}
    found["registered"] = code is not None
    dates = {"since": notes.since, "removedIn": notes.removed_in}
    found |= {name: str(date) for name, date in dates.items() if date is not None}
    if notes.use:
        found["use"] = notes.use
    return found | (_code(code) if code is not None and not release.stage.is_gone else {})


def _code(function: Function) -> dict[str, Any]:
    found: dict[str, Any] = {"description": function.description} if function.description else {}
    found["idempotent"] = function.idempotent
    found |= {"sensitive": [*function.sensitive]} if function.sensitive else {}
    if function.outputs is not None:
        found["outputs"] = [*function.outputs.names]
        found["furtherOutputs"] = function.outputs.others
    found["arguments"] = [_argument(each) for each in function.arguments.fields]
    if function.arguments.further is not None:
        found["furtherArguments"] = function.arguments.further.schema
    return found


def _argument(argument: ArgumentField) -> dict[str, Any]:
    found: dict[str, Any] = {"name": argument.name, "required": argument.required}
    found |= {"type": argument.type.words, "schema": argument.type.schema}
    if not argument.required and argument.default is not None:
        found["default"] = msgspec.to_builtins(argument.default, enc_hook=_plain)
    return found | ({"description": argument.description} if argument.description else {})


def _plain(value: object) -> object:
    """Return a string for a value that JSON does not have."""
    if isinstance(value, Enum):
        return value.value
    return str(value)
