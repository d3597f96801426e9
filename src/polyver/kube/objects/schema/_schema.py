"""The compiled schema of one API version of a custom resource."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import cached_property
from typing import Any, Final

from polyver.kube.objects.schema._checks import Checks
from polyver.kube.objects.schema._conforming import complete, fill_in, prune
from polyver.kube.objects.schema._embedded_resources import check_embedded, coerce_embedded
from polyver.kube.objects.schema._errors import ValidationReport
from polyver.kube.objects.schema._quick import Quick
from polyver.kube.objects.schema._rules import Findings, compile_rules
from polyver.kube.objects.schema.structure import NEW, StructuralSchema, read_structure, shape_of
from polyver.kube.objects.status import Cause
from polyver.languages.regexp import InvalidPattern, read_pattern
from polyver.languages.values.strings import as_number, shown

__all__ = ["Schema", "compile_schema", "is_valid"]

_MOST_STATES: Final = 100
_BLOCKING: Final = frozenset(
    f"FieldValue{each}"
    for each in ("NotSupported", "Required", "TooLong", "TooMany", "TypeInvalid")
)
_UNCHECKED: Final = Cause(
    "<nil>",
    "Invalid value: null: some validation rules were not checked because the object was invalid; "
    "correct the existing errors to complete validation",
)


class Schema:
    """Prunes, defaults and validates objects of one API version of a custom resource.

    >>> schema = compile_schema({
    ...     "type": "object",
    ...     "properties": {"size": {"type": "integer", "default": 1, "maximum": 9}},
    ... })
    >>> thing = {"apiVersion": "ex.io/v1", "kind": "Thing", "colour": "red"}
    >>> schema.prune(thing)
    ['colour']
    >>> schema.default(thing)
    >>> thing["size"]
    1
    >>> schema.validate(thing | {"size": 10})[0].message
    'Invalid value: 10: size in body should be less than or equal to 9'
    """

    def __init__(self, schema: Mapping[str, Any]) -> None:
        self._schema = schema
        self.shape = shape_of(schema, root=True)
        self._structure = read_structure(schema)
        self._rules = compile_rules(schema, self._structure)
        self._root = replace(self._structure, embedded=True)
        self._checks = Checks(schema, self._structure)
        status = (schema.get("properties") or {}).get("status")
        structure = self._structure.fields.get("status")
        self._status = Checks(status, structure) if status is not None else None

    @cached_property
    def costly(self) -> bool:
        """True if the patterns of the schema make validation slow even for a small object."""
        return any(map(_is_large, _patterns(self._schema)))

    @cached_property
    def _quick(self) -> Quick:
        # Built when the first object needs it, because many served kinds have no objects.
        return Quick(self._schema)

    def prune(self, obj: dict[str, Any]) -> list[str]:
        """Drop unknown fields, in place, and return their paths.

        The paths are in the order of kube-apiserver's warnings. The object's own metadata is not
        pruned, but the metadata of embedded resources is. If the metadata of an embedded resource
        cannot be decoded, raise `MalformedMetadata`.
        """
        if self._quick.fits(obj):
            return []
        dropped: list[str] = []
        prune(obj, self._root, "", dropped)
        dropped.sort()
        if self._structure.has_embedded:
            more: list[str] = []
            coerce_embedded(obj, self._structure, "", more)
            dropped += sorted(more)
        return dropped

    def conform(self, obj: dict[str, Any], *, drop_nulls: bool = True) -> list[str]:
        """Prune `obj` itself and add defaults; return the paths of the dropped fields."""
        if self._quick.fits(obj):
            complete(obj, self._structure)
            return []
        dropped = self.prune(obj)
        self.default(obj, drop_nulls=drop_nulls)
        return dropped

    def default(self, obj: dict[str, Any], *, drop_nulls: bool = True) -> None:
        """Add defaults, in place, and drop nulls that the schema does not allow.

        With `drop_nulls=False` the nulls stay, so that validation refuses them. kube-apiserver does
        this for the result of server-side apply.
        """
        if not drop_nulls and not self._structure.has_defaults:
            return
        if not self._quick.fits(obj):
            fill_in(obj, self._structure, drop=drop_nulls)
        elif self._structure.has_defaults:
            complete(obj, self._structure)

    def validate(self, obj: dict[str, Any]) -> list[Cause]:
        """Return all errors of a new object, except errors in its own metadata."""
        causes: list[Cause] = []
        if not self._quick.fits(obj):
            report = ValidationReport()
            self._checks.run(obj, "", NEW, report)
            causes += dict.fromkeys(report.causes)
        causes += check_embedded(obj, self._structure, "")
        causes += _check_lists(obj, self._structure, "")
        return self._completed(causes, obj)

    def validate_update(self, new: dict[str, Any], old: Mapping[str, Any]) -> list[Cause]:
        """Return all errors of an updated object, except errors of values that did not change."""
        causes: list[Cause] = []
        if not self._quick.fits(new):
            report = ValidationReport()
            self._checks.check(new, "", old, report)
            causes += dict.fromkeys(report.causes)
        causes += check_embedded(new, self._structure, "")
        return self._completed(causes + self._new_doubles(new, old), new, old)

    def validate_status(self, new: dict[str, Any], old: Mapping[str, Any]) -> list[Cause]:
        """Return all errors in the status of an updated object.

        As in kube-apiserver, the paths in the messages begin inside the status: `ready`, not
        `status.ready`.
        """
        report = ValidationReport("status")
        if self._status is not None and "status" in new:
            self._status.check(new["status"], "", old.get("status", NEW), report)
        causes = list(dict.fromkeys(report.causes))
        return self._completed(causes + self._new_doubles(new, old), new, old)

    def tolerated(self, new: dict[str, Any], old: Mapping[str, Any]) -> list[str]:
        """Return a warning for each CEL rule that is broken by a value that did not change."""
        if self._rules is None:
            return []
        findings = Findings()
        self._rules.check(new, old, findings)
        return findings.warnings

    def _new_doubles(self, new: dict[str, Any], old: Mapping[str, Any]) -> list[Cause]:
        causes = _check_lists(new, self._structure, "")
        return [] if causes and _check_lists(old, self._structure, "") else causes

    def _completed(
        self, causes: list[Cause], new: dict[str, Any], old: Mapping[str, Any] | None = None
    ) -> list[Cause]:
        """Add the errors of CEL rules to `causes`.

        If `causes` has errors such as a wrong type, the rules are not evaluated, and an error
        states this.
        """
        if self._rules is None:
            return causes
        if any(cause.reason in _BLOCKING for cause in causes):
            return [*causes, _UNCHECKED]
        findings = Findings()
        self._rules.check(new, old, findings)
        return causes + findings.causes


def compile_schema(schema: Mapping[str, Any]) -> Schema:
    """Compile the openAPIV3Schema of a version; `check_schema` must have found no error in it."""
    return Schema(copy.deepcopy(schema))


def is_valid(schema: Mapping[str, Any]) -> Callable[[Any], bool]:
    """Build a function that reports whether a schema allows a value.

    >>> is_valid({"type": "integer", "maximum": 9})(10)
    False
    """
    checks = Checks(schema, None)

    def holds(value: Any) -> bool:
        report = ValidationReport()
        checks.run(value, "", NEW, report)
        return not report.causes

    return holds


def _patterns(value: Any) -> Iterator[str]:
    """Yield all patterns in a schema."""
    if isinstance(value, Mapping):
        found = value.get("pattern")
        if isinstance(found, str):
            yield found
        value = list(value.values())
    if isinstance(value, list):
        for each in value:
            yield from _patterns(each)


def _is_large(pattern: str) -> bool:
    """Report whether matching a pattern is slow because its automaton has many states."""
    try:
        return read_pattern(pattern).states > _MOST_STATES
    except InvalidPattern:
        return False


def _check_lists(value: Any, schema: StructuralSchema | None, path: str) -> list[Cause]:
    """Return an error for each duplicate in the set and map lists of a value."""
    if schema is None or not schema.has_lists:
        return []
    causes: list[Cause] = []
    if type(value) is dict:
        for key, inner in schema.listed:
            if key in value:
                causes += _check_lists(value[key], inner, f"{path}.{key}" if path else key)
        if schema.values is not None and schema.values.has_lists:
            for key, inside in value.items():
                causes += _check_lists(inside, schema.values, f"{path}[{key}]")
    elif type(value) is list:
        causes += _check_duplicates(value, schema, path)
        if schema.items is not None and schema.items.has_lists:
            for number, item in enumerate(value):
                causes += _check_lists(item, schema.items, f"{path}[{number}]")
    return causes


def _check_duplicates(value: list[Any], schema: StructuralSchema, path: str) -> list[Cause]:
    if schema.list_type == "set" and not _all_differ(value):
        return [_twice(path, number, value[number]) for number in _repeated(value)]
    if schema.list_type != "map":
        return []
    keys = schema.keys
    for number, item in enumerate(value):
        if item is not None and type(item) is not dict:
            text = "must be an object for an array of list-type map"
            return [Cause(f"{path}[{number}]", f"Invalid value: {shown(item)}: {text}")]
    if _all_differ([tuple(map((item or {}).get, keys)) for item in value]):
        return []
    found = [{key: item[key] for key in keys if key in item} if item else {} for item in value]
    return [_twice(path, number, found[number]) for number in _repeated(found)]


def _twice(path: str, number: int, value: Any) -> Cause:
    return Cause(f"{path}[{number}]", f"Duplicate value: {shown(value)}", "FieldValueDuplicate")


def _all_differ(items: list[Any]) -> bool:
    """Report whether all items certainly differ from each other.

    False means that they may be equal: a quick check cannot decide it, for example for 1 and true.
    """
    try:
        return len(set(items)) == len(items)
    except TypeError:
        return False


def _repeated(items: Iterable[Any]) -> list[int]:
    """Return the position of the second occurrence of each item that occurs several times."""
    times: dict[object, int] = {}
    repeated: list[int] = []
    for number, item in enumerate(items):
        key = _identity(item)
        times[key] = times.get(key, 0) + 1
        if times[key] == 2:
            repeated.append(number)
    return repeated


def _identity(item: Any) -> object:
    if isinstance(item, dict):
        return frozenset((key, _identity(value)) for key, value in item.items())
    if isinstance(item, list):
        return tuple(map(_identity, item))
    if isinstance(item, int | float) and not isinstance(item, bool):
        item = as_number(item)
    return (type(item), item)
