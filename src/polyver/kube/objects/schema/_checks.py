"""Compiles a schema to checks that find all errors in a value, with kube-apiserver's messages.

If a value fits no alternative of an anyOf or oneOf, kube-apiserver reports the errors of only one
alternative: the one for which it made the most checks. So each check here returns the number of
checks that kube-apiserver would have made.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from polyver.kube.objects.schema._errors import ValidationReport
from polyver.kube.objects.schema._numbers import NumberConstraints, read_numbers
from polyver.kube.objects.schema.structure import NEW, OldItems, StructuralSchema, is_unchanged
from polyver.languages.regexp import InvalidPattern, compile_pattern
from polyver.languages.values.formats import text_format
from polyver.languages.values.strings import as_number, is_integral, quoted, same

__all__ = ["Checks"]

_MOST: Final = 2**63 - 1
_NAMES: dict[type, tuple[str, str]] = {
    bool: ("boolean", ""),
    str: ("string", ""),
    int: ("integer", "int64"),
    float: ("number", "float64"),
    list: ("array", ""),
    dict: ("object", ""),
}
_RIGHT: dict[str, type] = {name: kind for kind, (name, _) in _NAMES.items()}
_SIMPLE: dict[str, tuple[type, int]] = {"string": (str, 7), "boolean": (bool, 6)}
_SIMPLE |= {"integer": (int, 8), "number": (int, 8)}


class Checks:
    """Checks a value, and the values inside it, against the constraints of one schema."""

    __slots__ = (
        "_alternatives",
        "_enum",
        "_enum_texts",
        "_fields",
        "_forbids",
        "_format",
        "_items",
        "_length",
        "_most_items",
        "_nullable",
        "_numbers",
        "_pattern",
        "_required",
        "_right",
        "_sizes",
        "_structure",
        "_text_format",
        "_types",
        "_values",
        "simple",
        "simple_count",
    )

    def __init__(self, schema: Mapping[str, Any], structure: StructuralSchema | None) -> None:
        self._structure = structure
        self._types: tuple[str, ...] = (schema["type"],) if schema.get("type") else ()
        if schema.get("x-kubernetes-int-or-string"):
            self._types = ("integer", "string")
        self._format = _format_of(schema, self._types)
        self._right = _RIGHT.get(self._types[0]) if len(self._types) == 1 else None
        self._nullable = bool(schema.get("nullable"))
        self._alternatives = _read_alternatives(schema, structure)
        self._numbers: NumberConstraints = read_numbers(schema, self._types, self._format)
        self._text_format = text_format(self._format) if self._format else None
        self._length = (schema.get("minLength"), schema.get("maxLength"))
        pattern = schema.get("pattern") or ""
        self._pattern = (_matcher(pattern), pattern) if pattern else None
        values = schema.get("enum") or []
        self._enum = [as_number(each) if type(each) is int else each for each in values]
        self._enum_texts = frozenset(each for each in values if isinstance(each, str))
        fields, others = schema.get("properties") or {}, schema.get("additionalProperties")
        items = schema.get("items")
        inner = structure or StructuralSchema()
        self._fields = {key: Checks(each, inner.fields.get(key)) for key, each in fields.items()}
        self._values = Checks(others, inner.values) if isinstance(others, Mapping) else None
        self._forbids = others is False
        self._required = tuple(schema.get("required") or ())
        sizes = (schema.get("minProperties"), schema.get("maxProperties"))
        self._sizes = None if sizes == (None, None) else sizes
        self._items = Checks(items, inner.items) if isinstance(items, Mapping) else None
        self._most_items = (schema.get("minItems"), schema.get("maxItems"))
        self.simple, self.simple_count = self._read_simple()

    def _read_simple(self) -> tuple[type | None, int]:
        """Return the Python type whose values are all valid, and the number of checks per value.

        The type is None if the schema has constraints other than a type.
        """
        if len(self._types) != 1 or self._alternatives or self._enum:
            return None, 0
        if self._pattern or self._length != (None, None) or self._text_format:
            return None, 0
        return _SIMPLE.get(self._types[0], (None, 0)) if self._numbers.trivial else (None, 0)

    def check(self, value: Any, path: str, old: Any, report: ValidationReport) -> int:
        """Check a value in an update, and return the number of checks.

        Errors are dropped if the update does not change the value.
        """
        before = len(report.causes)
        count = self.run(value, path, old, report)
        if len(report.causes) > before and is_unchanged(value, old, self._structure):
            del report.causes[before:]
        return count

    def run(self, value: Any, path: str, old: Any, report: ValidationReport) -> int:
        """Check a value and all values inside it; return the number of checks.

        `old` is the value before the update. Errors are added to `report`.
        """
        if value is None:
            return self._run_null(path, report)
        kind = type(value)
        if kind is int and not -_MOST <= value <= _MOST:
            value = as_number(value)
            kind = type(value)
        count = 4  # kube-apiserver's checks of alternatives (two), enum and type
        if kind is self._right:
            count += 2
        elif self._types or self._format:
            count += 1 + self._check_type(value, path, report)
        if self._alternatives is not None:
            count += self._alternatives.run(value, path, old, report)
        if kind is not dict:
            count += self._check_other(value, path, old, report)
        if self._enum and not self._is_known(value):
            report.unsupported(path, value, self._enum)
        if kind is dict:
            count += 1 + self._check_fields(value, path, old, report)
        return count

    def _check_other(self, value: Any, path: str, old: Any, report: ValidationReport) -> int:
        if type(value) is str:
            return 1 + self._check_text(value, path, report)
        if type(value) is list:
            return 2 + self._check_items(value, path, old, report)
        if type(value) is bool:
            return 0
        self._numbers.check(value, path, report)
        return 2

    def _is_known(self, value: Any) -> bool:
        if value.__class__ is str:
            return value in self._enum_texts
        return any(_equals(value, each) for each in self._enum)

    def _run_null(self, path: str, report: ValidationReport) -> int:
        right = not self._types or self._nullable
        if not right:
            report.wrong_type(path, ",".join(self._types), "null")
        if self._enum:
            report.unsupported(path, None, self._enum)
        return int(right)

    def _check_type(self, value: Any, path: str, report: ValidationReport) -> int:
        name, form = _NAMES[type(value)]
        right = name in self._types or self._is_near(value, name)
        if type(value) in (str, list):
            # Where a string with a format is expected, kube-apiserver accepts a list.
            if self._format and not {"number", "integer"} & {*self._types}:
                return 1
        elif self._format and not right and form != self._format:
            report.wrong_type(path, self._format, form)
            return 0
        if not right:
            report.wrong_type(path, ",".join(self._types), name)
        return int(right)

    def _is_near(self, value: Any, name: str) -> bool:
        """Report whether a number with the type `name` is valid although its type is not allowed.

        1 is valid where a number is required, and 1.0 where an integer is required.
        """
        if name == "integer":
            return "number" in self._types
        return name == "number" and "integer" in self._types and is_integral(value)

    def _check_text(self, value: str, path: str, report: ValidationReport) -> int:
        least, most = self._length
        if most is not None and len(value) > most:
            report.too_long(path, most)
        elif least is not None and len(value) < least:
            report.invalid(path, value, f"{path} in body should be at least {least} chars long")
        elif self._pattern is not None and not self._pattern[0](value):
            text = f"{path} in body should match '{self._pattern[1]}'"
            report.invalid(path, value, text)
        if self._text_format is None:
            return 0
        if not self._text_format(value):
            report.wrong_type(path, self._format, value)
        return 1

    def _check_items(self, value: list[Any], path: str, old: Any, report: ValidationReport) -> int:
        items, count = self._items, 0
        olds = None if old is NEW or items is None else OldItems(old, self._structure)
        for number, item in enumerate(value if items is not None else ()):
            assert items is not None
            if type(item) is items.simple and type(item) is not int:
                count += items.simple_count
            elif olds is None:
                count += items.run(item, f"{path}[{number}]", NEW, report)
            else:
                count += items.check(item, f"{path}[{number}]", olds.like(item), report)
        least, most = self._most_items
        if least is not None and len(value) < least:
            report.invalid(path, len(value), f"{path} in body should have at least {least} items")
        if most is not None and len(value) > most:
            report.too_many(path, len(value), most)
        return count

    def _check_fields(
        self, value: dict[str, Any], path: str, old: Any, report: ValidationReport
    ) -> int:
        if self._sizes is not None:
            _check_size(self._sizes, value, path, report)
        fields, values = self._fields, self._values
        count = 0
        for key, inside in value.items():
            checks = fields.get(key, values)
            if checks is None:
                if self._forbids:
                    report.invalid(path, key, f"{path}.{key} in body is a forbidden property")
                continue
            kind = type(inside)
            if kind is checks.simple and (kind is not int or -_MOST <= inside <= _MOST):
                count += checks.simple_count
                continue
            inner = f"{path}.{key}" if path or key not in fields else key
            if old is NEW:
                count += checks.run(inside, inner, NEW, report)
            else:
                count += checks.check(inside, inner, self._old_field(old, key, path), report)
        for key in self._required:
            if key not in value:
                report.required(f"{path}.{key}")
        return count

    def _old_field(self, old: Any, key: str, path: str) -> Any:
        known = self._structure is not None and self._structure.child(key) is not None
        # Do not compare apiVersion and kind: both objects were converted to the requested version.
        if not known or (not path and key in ("apiVersion", "kind")):
            return NEW
        return old.get(key, NEW) if isinstance(old, dict) else NEW


def _check_size(
    sizes: tuple[int | None, int | None], value: dict[str, Any], path: str, report: ValidationReport
) -> None:
    least, most = sizes
    if least is not None and len(value) < least:
        text = f"{path} in body should have at least {least} properties"
        report.invalid(path, len(value), text)
    if most is not None and len(value) > most:
        report.too_many(path, len(value), most)


def _format_of(schema: Mapping[str, Any], types: tuple[str, ...]) -> str:
    """Return the format in the schema, or "" if kube-apiserver ignores it for the type."""
    form: str = schema.get("format") or ""
    match types:
        case ("integer",):
            return form if form in ("int32", "int64") else ""
        case ("number",):
            return form if form in ("float", "double") else ""
        case () | ("string",) | ("integer", "string"):
            return form if text_format(form) else ""
        case _:
            return ""


def _matcher(pattern: str) -> Callable[[str], bool]:
    """Build a function that reports whether a string matches a pattern.

    If the pattern is invalid, no string matches.
    """
    try:
        return compile_pattern(pattern)
    except InvalidPattern:
        return lambda _: False


def _equals(value: Any, known: Any) -> bool:
    """Report whether `value` equals `known`, a value of an enum.

    As in kube-apiserver, a number is converted to the type of `known` before the comparison.
    """
    if isinstance(value, bool) or isinstance(known, bool | list | dict) or known is None:
        return same(value, known)
    if isinstance(value, int) and isinstance(known, str):
        # kube-apiserver converts an integer to the character with that code point.
        return known == (chr(value) if 0 <= value <= 0x10FFFF else "\ufffd")
    if not isinstance(value, int | float) or isinstance(known, str):
        return same(value, known)
    if isinstance(known, float):
        return bool(float(value) == known)
    return bool(int(value) == known)


class Alternatives:
    """The checks of the keywords anyOf, oneOf, allOf and not."""

    __slots__ = ("_all", "_any", "_not", "_one", "_simple")

    def __init__(
        self,
        *,
        any_of: tuple[Checks, ...],
        one_of: tuple[Checks, ...],
        all_of: tuple[Checks, ...],
        none_of: Checks | None,
    ) -> None:
        self._any, self._one, self._all, self._not = any_of, one_of, all_of, none_of
        simple = {option.simple: option.simple_count for option in any_of}
        self._simple = simple if None not in simple and len(simple) == len(any_of) else {}
        """For an anyOf in which each alternative only states a type: the number of checks by type.

        Empty for any other anyOf.
        """

    def run(self, value: Any, path: str, old: Any, report: ValidationReport) -> int:
        count = 0
        if self._any:
            count += self._run_any(value, path, old, report)
        if self._one:
            count += self._run_one(value, path, old, report)
        if self._all:
            count += self._run_all(value, path, old, report)
        if self._not is not None:
            inner = report.inner()
            self._not.run(value, path, old, inner)
            if not inner.causes:
                report.general(f"{quoted(path)} must not validate the schema (not)")
        return count

    def _run_any(self, value: Any, path: str, old: Any, report: ValidationReport) -> int:
        if type(value) in self._simple:
            return self._simple[type(value)]
        best: tuple[int, ValidationReport] | None = None
        for option in self._any:
            inner = report.inner()
            count = option.run(value, path, old, inner)
            if not inner.causes:
                return count
            if best is None or count > best[0]:
                best = (count, inner)
        report.general(f"{quoted(path)} must validate at least one schema (anyOf)")
        return _adopt(best, report)

    def _run_one(self, value: Any, path: str, old: Any, report: ValidationReport) -> int:
        best: tuple[int, ValidationReport] | None = None
        right: list[int] = []
        for option in self._one:
            inner = report.inner()
            count = option.run(value, path, old, inner)
            if not inner.causes:
                right.append(count)
            elif best is None or count > best[0]:
                best = (count, inner)
        if len(right) == 1:
            return right[0]
        found = f"Found {len(right)} valid alternatives" if right else "Found none valid"
        report.general(f"{quoted(path)} must validate one and only one schema (oneOf). {found}")
        return 0 if right else _adopt(best, report)

    def _run_all(self, value: Any, path: str, old: Any, report: ValidationReport) -> int:
        count = right = 0
        for option in self._all:
            before = len(report.causes)
            count += option.run(value, path, old, report)
            right += len(report.causes) == before
        if right != len(self._all):
            none = "" if right else ". None validated"
            report.general(f"{quoted(path)} must validate all the schemas (allOf){none}")
        return count


def _adopt(best: tuple[int, ValidationReport] | None, report: ValidationReport) -> int:
    if best is None:
        return 0
    report.causes += best[1].causes
    return best[0]


def _read_alternatives(
    schema: Mapping[str, Any], structure: StructuralSchema | None
) -> Alternatives | None:
    if not any(schema.get(name) for name in ("anyOf", "oneOf", "allOf")) and "not" not in schema:
        return None

    def read(name: str) -> tuple[Checks, ...]:
        return tuple(Checks(each, structure) for each in schema.get(name) or ())

    none_of = schema.get("not")
    return Alternatives(
        any_of=read("anyOf"),
        one_of=read("oneOf"),
        all_of=read("allOf"),
        none_of=Checks(none_of, structure) if none_of is not None else None,
    )
