"""Parameters: validated by a schema, with defaults; unknown ones are refused."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from polyver.core import PolyverError, listed
from polyver.core.plain import ReadOnlyObject
from polyver.definitions.publishing import read_parameters, wrapped
from polyver.definitions.rendering._engines import TemplateInput, UnfitParameters
from polyver.kube.objects.schema import compile_schema
from polyver.kube.objects.status import Cause

__all__ = ["InvalidParameters", "Parameters"]

_WRAPPER = "parameter"


class InvalidParameters(PolyverError):
    """An invalid schema of parameters."""


class Parameters:
    """A compiled schema of parameters."""

    def __init__(self, schema: ReadOnlyObject) -> None:
        read, problems = read_parameters(schema)
        for place, fact in problems:
            raise InvalidParameters(fact, at=f"parameters{place}")
        self.known = sorted(read.get("properties") or ())
        self._schema = compile_schema(wrapped(read))

    def fit(self, given: TemplateInput) -> dict[str, Any]:
        """Return the parameters with defaults; raise UnfitParameters with all problems."""
        found: dict[str, Any] = _copied(given.parameters)
        obj = {_WRAPPER: found}
        errors = [self._unknown(path, given) for path in self._schema.prune(obj)]
        self._schema.default(obj)
        errors += _wrong(self._schema.validate(obj), given)
        if errors:
            # Independent of the order in which the user wrote them.
            raise UnfitParameters(sorted(errors, key=lambda error: (error.at, error.fact)))
        return found

    def _unknown(self, path: str, given: TemplateInput) -> PolyverError:
        name = path.removeprefix(f"{_WRAPPER}.")
        known = f"known: {listed(self.known)}" if self.known else "there are none"
        hint = known if "." not in name else "see the schema of its parameters"
        fact = f"{given.template} has no parameter {name}"
        return PolyverError(fact, at=f"{given.properties}.{name}", hint=hint)


def _wrong(causes: list[Cause], given: TemplateInput) -> Iterator[PolyverError]:
    for cause in causes:
        name = cause.field.removeprefix(_WRAPPER).removeprefix(".")
        text = cause.message.replace(f"{cause.field} in body ", "")
        if not cause.field.startswith(_WRAPPER):  # a rule that could not be evaluated
            yield PolyverError(text, at=given.properties)
        elif not name:
            yield PolyverError(f"the parameters: {text}", at=given.properties)
        else:
            at = f"{given.properties}{'' if name.startswith('[') else '.'}{name}"
            yield PolyverError(f"parameter {name}: {text}", at=at)


def _copied(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _copied(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_copied(each) for each in value]
    return value
