"""The builder of conversion rules. Each call adds one rule for conversions in both directions.

Users call the builder in the edges that they declare in Python. For a Conversion in YAML, polyver
reads each rule and calls the builder for it.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

from polyver.apis.conversion._block import FieldClaims, RuleBlock
from polyver.apis.conversion._preserved_fields import ANNOTATION, BESIDE
from polyver.apis.conversion.case_rules import DefaultRule, WhenRule
from polyver.apis.conversion.nested import (
    EachRule,
    KeyedRule,
    MoveRule,
    WrapRule,
    renamed_keys,
)
from polyver.apis.conversion.paths import NAMES, Path, parse_path
from polyver.apis.conversion.pattern_rule import PatternRule, template_of
from polyver.apis.conversion.recursion import RecurseRule, RepeatedRules
from polyver.apis.conversion.reversal import ReversedRule
from polyver.apis.conversion.rules import (
    CastRule,
    ConstRule,
    ConversionRule,
    DropRule,
    InvalidRule,
    ScaleRule,
    SplitRule,
    ValuesRule,
)
from polyver.apis.conversion.structure_rules import FieldsRule, ObjectRule, RenameKeysRule
from polyver.apis.conversion.text_rules import DurationRule, JoinRule, QuantityRule
from polyver.apis.conversion.value_rules import (
    CelRule,
    Fields,
    FunctionRule,
    ValueSide,
    names_of,
)
from polyver.apis.conversion.values import MISSING, TYPES, Type
from polyver.apis.conversion.when_building import WhenRules
from polyver.core import listed
from polyver.languages import cel
from polyver.languages.values.names import label_key_problems
from polyver.languages.values.strings import same

__all__ = ["InvalidRule", "Rules"]


Blocks = tuple[RepeatedRules, ...]


class Rules:
    """The rules between two versions.

    Each rule describes how a field of the first version is converted to the second version. polyver
    derives the conversion back from the same rule.

    >>> rules = Rules()
    >>> rules.move("spec.cronSpec", "spec.schedule")
    >>> rules.split("spec.hostPort", into=("spec.host", "spec.port"), separator=":")
    """

    def __init__(self, *, root: bool = True, place: str = "", around: int = 0) -> None:
        """Create a builder without rules. `place` is the file and line that declare the edge.

        `around` is the number of blocks around this block that `recurse` can apply again.
        """
        self._root = root
        self._around = around
        self._place = place
        self.reading = ""
        """The file and line of the rule that is read from YAML; empty for calls from Python."""
        self._rules: list[tuple[ConversionRule, Rules | WhenRules | None]] = []
        self._claims = FieldClaims()

    def move(self, source: str, target: str) -> None:
        """Add a rule for a field that has another path in the second version."""
        self._add(MoveRule(self._path(source), self._path(target), RuleBlock()))

    def split(
        self,
        source: str,
        *,
        into: Sequence[str],
        separator: str,
        types: Sequence[Type] | None = None,
        absent: str | None = None,
    ) -> None:
        """Add a rule for a string that is split into several fields in the second version."""
        if len(into) < 2:
            raise InvalidRule("split needs at least two fields to split into")
        if not separator:
            raise InvalidRule("split needs a separator that is not empty")
        text: Type = "string"
        kinds = tuple(types) if types else (text,) * len(into)
        if len(kinds) != len(into):
            raise InvalidRule(f"split has {len(into)} fields and {len(kinds)} types")
        for kind in kinds:
            _check_type(kind)
        if absent is not None and separator in absent:
            raise InvalidRule("the value for an absent part cannot contain the separator")
        targets = tuple(self._path(each) for each in into)
        self._add(SplitRule(self._path(source), targets, separator, kinds, absent))

    def wrap(self, source: str, target: str) -> Rules:
        """Add a rule for a value that becomes the first item of a list in the second version.

        Return an empty `Rules`, to which the caller adds rules for the fields inside of the value.
        """
        return self._nested(WrapRule(self._path(source), self._path(target), RuleBlock()))

    def values(self, at: str, words: Mapping[Any, Any], *, to: str = "") -> None:
        """Add a rule that maps each value of a field to another value in the second version.

        The keys of `words` are values of the first version. The field has the path `to` in the
        second version; by default the path `at`, as in the first.
        """
        if not words:
            raise InvalidRule("values needs at least one pair")
        for each in (*words, *words.values()):
            if type(each) not in (str, int, bool):
                raise InvalidRule(f"values can map strings, integers and booleans, not {each!r}")
        seen = Counter((type(each), each) for each in words.values())
        for value in words.values():
            if seen[type(value), value] > 1:
                sources = [repr(key) for key, each in words.items() if same(each, value)]
                fact = f"values maps {' and '.join(sources)} to {value!r}"
                raise InvalidRule(f"{fact}, so it cannot be converted back")
        self._add(ValuesRule(self._path(at), self._path(to or at), dict(words)))

    def cast(self, at: str, source: Type, target: Type, *, to: str = "") -> None:
        """Add a rule for a value that has another type in the second version.

        The field has the path `to` in the second version; by default the path `at`, as in the
        first.
        """
        _check_type(source)
        _check_type(target)
        self._add(CastRule(self._path(at), self._path(to or at), source, target))

    def scale(
        self,
        source: str,
        target: str,
        factor: float | str,
        *,
        types: Sequence[Type] = ("integer", "integer"),
    ) -> None:
        """Add a rule for a number that has another unit in the second version.

        The number in the second version is `factor` times the number in the first version.
        """
        try:
            exact = Fraction(repr(factor) if isinstance(factor, float) else factor)
        except (ValueError, ZeroDivisionError, TypeError):
            raise InvalidRule(f"{factor!r} is not a factor", hint="write 1000, or 1/1000") from None
        if exact <= 0:
            raise InvalidRule(
                f"scale by {factor} cannot be converted back", hint="use a positive factor"
            )
        if len(types) != 2 or not {*types} <= {"integer", "number"}:
            raise InvalidRule("the types of scale must be integer or number")
        self._add(ScaleRule(self._path(source), self._path(target), exact, types[0], types[1]))

    def duration(
        self,
        source: str,
        target: str,
        *,
        unit: str,
        types: Sequence[Type] = ("string", "integer"),
        form: str = "go",
    ) -> None:
        """Add a rule for a duration such as `1m30s` that is a number of units elsewhere.

        The unit is ns, us, ms, s, m or h. One of the types is string; the other type is integer or
        number. polyver writes durations as Go does (`5m0s`), or with the form `short` without
        zeros at the end (`5m`).
        """
        nanos = DurationRule.check(unit, form)
        paths = self._path(source), self._path(target)
        self._add(DurationRule(*paths, _text_and_number("duration", types), nanos, form))

    def quantity(
        self,
        source: str,
        target: str,
        *,
        unit: str = "",
        types: Sequence[Type] = ("string", "integer"),
        form: str = "",
    ) -> None:
        """Add a rule for a quantity such as `500m` or `1Gi` that is a number of units elsewhere.

        The unit is a suffix of quantities, such as m or Mi; by default, 1. One of the types is
        string; the other type is integer or number. The form of the quantities that polyver writes
        is `decimal` or `binary`; by default, that of the unit.
        """
        factor, form = QuantityRule.check(unit, form)
        paths = self._path(source), self._path(target)
        self._add(QuantityRule(*paths, _text_and_number("quantity", types), factor, form))

    def join(self, source: str, target: str, *, separator: str) -> None:
        """Add a rule for a list of strings that is one string in the second version."""
        if not separator:
            raise InvalidRule("join needs a separator that is not empty")
        self._add(JoinRule(self._path(source), self._path(target), separator))

    def pattern(
        self,
        source: str,
        pattern: str,
        *,
        into: Mapping[str, str],
        types: Mapping[str, Type] | None = None,
    ) -> None:
        """Add a rule for a string that is taken apart into several fields of the second version.

        The pattern is a regular expression. `into` has the path of the field for each of its named
        groups, and `types` the types of the fields that are no strings.
        """
        kinds = types or {}
        template = template_of(pattern, into, kinds)
        for kind in kinds.values():
            _check_type(kind)
        paths = tuple(self._path(each) for each in into.values())
        known = tuple(kinds.get(name, "string") for name in into)
        self._add(PatternRule(self._path(source), paths, (*into,), known, template))

    def rename_keys(self, at: str, words: Mapping[str, str], *, to: str = "") -> Rules:
        """Add a rule for a map with some keys that have other names in the second version.

        The keys of `words` are the names in the first version. The map has the path `to` in the
        second version; by default the path `at`, as in the first. Return an empty `Rules`, to which
        the caller adds rules for the fields inside of each value of the map.
        """
        if not words:
            raise InvalidRule("rename_keys needs at least one pair")
        names: dict[str, str] = {}
        for old, new in words.items():
            if names.setdefault(new, old) != old:
                fact = f"rename_keys renames {names[new]!r} and {old!r} to {new!r}"
                raise InvalidRule(f"{fact}, so it cannot be converted back")
        paths = self._path(at), self._path(to or at)
        return self._nested(RenameKeysRule(*paths, RuleBlock(), dict(words)))

    def object(
        self,
        source: str,
        target: str,
        *,
        field: str,
        constants: Mapping[str, Any] | None = None,
        references: Mapping[str, str] | None = None,
    ) -> None:
        """Add a rule for a scalar that is a field of an object in the second version.

        The other fields of the object have constant values, or are references: metadata.name or
        metadata.namespace of the object that is converted.
        """
        fixed, known = dict(constants or {}), dict(references or {})
        for name in (field, *fixed, *known):
            if not name:
                raise InvalidRule("a field of the object has no name")
            if (name == field) + (name in fixed) + (name in known) > 1:
                raise InvalidRule(f"object sets the field {name} twice")
        for name, each in fixed.items():
            if type(each) not in (str, int, float, bool):
                hint = "use strings, numbers and booleans"
                raise InvalidRule(f"{each!r} is not a constant for the field {name}", hint=hint)
        names = {name: _reference(each) for name, each in known.items()}
        self._add(ObjectRule(self._path(source), self._path(target), field, fixed, names))

    def fields(
        self,
        sources: Sequence[str] | Mapping[str, str],
        target: str,
        *,
        key: str = "",
        value: str = "",
    ) -> None:
        """Add a rule for several fields that are a list or a map in the second version.

        `sources` maps a name to the path of each field; in a sequence of paths, the last part of a
        path is the name of the field. Without `key`, the second version has a map from names to
        values. With `key`, it has a list, and the field `key` of each item is the name. The value
        is the field `value` of the item; by default, the item without its key.
        """
        pairs = (
            sources.items() if isinstance(sources, Mapping) else ((_last(p), p) for p in sources)
        )
        named = [(name, self._path(path)) for name, path in pairs]
        names = tuple(name for name, _ in named)
        if not names:
            raise InvalidRule("fields needs at least one field")
        for name in names:
            if names.count(name) > 1:
                hint = "map each name to the path of its field"
                raise InvalidRule(f"fields has two fields with the name {name}", hint=hint)
        if value and not key:
            raise InvalidRule("fields needs the name of the key field beside value")
        if key and key == value:
            raise InvalidRule(f"fields uses {key} as key and as value")
        paths = tuple(path for _, path in named)
        insides = (RuleBlock(),) * len(names)
        self._add(FieldsRule(paths, names, self._path(target), key, value, insides))

    def reverse(self) -> Rules:
        """Return a `Rules` for rules that are written from the second version to the first.

        For example, `reverse().join(…)` adds a rule for a string in the first version that is a
        list in the second version.
        """
        return _ReversedRules(self)

    def keyed(self, source: str, target: str, *, key: str, value: str = "") -> None:
        """Add a rule for a list that is a map in the second version.

        The field `key` of each item becomes the key in the map. The value in the map is the field
        `value` of the item; by default, the item without its key.
        """
        if not key:
            raise InvalidRule("keyed needs the name of the key field")
        if key == value:
            raise InvalidRule(f"keyed uses {key} as key and as value")
        self._add(KeyedRule(self._path(source), self._path(target), RuleBlock(), key, value))

    def drop(self, at: str) -> None:
        """Add a rule for a field that only the first version has.

        An object that is converted to the second version preserves the value.
        """
        self._add(DropRule(self._path(at)))

    def add(self, at: str) -> None:
        """Add a rule for a field that only the second version has.

        An object that is converted to the first version preserves the value.
        """
        self._add(DropRule(self._path(at), added=True))

    def const(self, at: str, value: Any = None, *, reference: str = "") -> None:
        """Add a rule for a field that only the second version has, and that is set to a constant.

        Instead of a constant, the value can be a reference: metadata.name or metadata.namespace of
        the object. If the object preserves a value for the field from an earlier conversion, this
        value is restored instead.
        """
        if value is None and not reference:
            raise InvalidRule("const needs a value")
        if value is not None and reference:
            raise InvalidRule("const has both a value and a reference")
        if reference:
            self._add(ConstRule(self._path(at), MISSING, _reference(reference)))
        else:
            self._add(ConstRule(self._path(at), value))

    def each(self, at: str, *, to: str = "", key: str | Sequence[str] = ()) -> Rules:
        """Add a rule for all items of a list, or for all values of a map.

        Return an empty `Rules`, to which the caller adds rules for the fields inside of each item
        or value.
        """
        keys = (key,) if isinstance(key, str) else tuple(key)
        if "" in keys:
            raise InvalidRule("the key of items has no name")
        each = EachRule(self._path(at), self._path(to or at), RuleBlock(), keys, keys)
        return self._nested(each)

    def recurse(self, at: str, *, to: str = "", key: str | Sequence[str] = (), up: int = 0) -> None:
        """Add a rule that applies the rules of this block again to a value of the same form.

        The value is an object, or a list of objects; `key` identifies the items of the list. With
        `up`, polyver applies the rules of a block around this block: 1 is the next one.
        """
        keys = (key,) if isinstance(key, str) else tuple(key)
        if "" in keys:
            raise InvalidRule("the key of items has no name")
        if self._around < 0:
            raise InvalidRule("recurse cannot be reversed", hint="write it outside of reverse")
        if not 0 <= up <= self._around:
            fact = f"recurse cannot go up {up} blocks: {self._around} are around its block"
            raise InvalidRule(fact)
        self._add(RecurseRule(self._path(at), self._path(to or at), up, keys))

    def within(self, at: str, *, to: str = "") -> Rules:
        """Add a rule for an object, whose path may differ in the second version.

        Return an empty `Rules`, to which the caller adds rules for the fields inside of the object.
        """
        return self._nested(MoveRule(self._path(at), self._path(to or at), RuleBlock()))

    def default(self, source: str, target: str, value: Any) -> None:
        """Add a rule for a field whose absence in the first version means a value in the second.

        An object without the field gets this value in the second version. If the field has this
        value in the second version, the first version does not have the field.
        """
        if value is None:
            raise InvalidRule("default needs a value")
        paths = self._deciding("default", source, target)
        self._add(DefaultRule(*paths, RuleBlock(), value))

    def when(self, source: str, *, to: str = "") -> WhenRules:
        """Add rules that depend on the value of a field, the deciding field.

        The deciding field has the path `to` in the second version; by default the path `source`,
        as in the first. Return an empty `WhenRules`, to which the caller adds the cases.
        """
        cases = WhenRules(lambda: Rules(root=self._root, around=self._around), root=self._root)
        self._add(WhenRule(*self._deciding("when", source, to or source)), cases)
        return cases

    def _deciding(self, name: str, source: str, target: str) -> tuple[Path, Path]:
        """Parse the paths of a rule that may write a value although it reads none.

        In whole objects, such a rule is run only if the object has the top-level field around it.
        """
        one, other = self._path(source), self._path(target)
        if self._root and one[0] != other[0]:
            fact = f"{source} and {target} of {name} are in different top-level fields"
            raise InvalidRule(fact, hint="use fields inside the same top-level field, such as spec")
        return one, other

    def cel(self, source: Fields, target: Fields, *, forward: str, back: str) -> None:
        """Add a rule that computes values by CEL expressions, one for each direction.

        In `forward`, the variable `self` is the value of the first version; in `back`, that of the
        second. A mapping of names to paths stands for several fields: `self` or the result is then
        an object with the values of the fields under these names.
        """
        sides = self._side(source), self._side(target)
        there = _expression("forward", forward, to=sides[1])
        self._add(CelRule(*sides, there, _expression("back", back, to=sides[0])))

    def convert(
        self,
        source: Fields,
        target: Fields,
        *,
        forward: Callable[[Any], Any],
        back: Callable[[Any], Any],
    ) -> None:
        """Add a rule that computes values by functions, one for each direction.

        `forward` gets the value of the first version and returns that of the second, and `back`
        does the opposite. A function that returns None leaves the field out. A mapping of names to
        paths stands for several fields: the function then gets or returns a dict with the values of
        the fields under these names.
        """
        for name, function in (("forward", forward), ("back", back)):
            if not callable(function):
                raise InvalidRule(f"{name} of convert is not a function")
        self._add(FunctionRule(self._side(source), self._side(target), forward, back))

    def _side(self, fields: Fields) -> ValueSide:
        names = names_of(fields)
        for name in names:
            if not name.isidentifier() or not name.isascii() or cel.escape(name) != name:
                hint = "use letters, digits and _, and no reserved word of CEL"
                raise InvalidRule(f"{name!r} cannot be the name of a field in a value", hint=hint)
        paths = [fields] if isinstance(fields, str) else [*fields.values()]
        if not paths:
            raise InvalidRule("the rule needs at least one field in each version")
        return ValueSide(tuple(map(self._path, paths)), tuple(names))

    def _nested(self, rule: ConversionRule) -> Rules:
        inside = Rules(root=False, around=self._around + 1)
        self._add(rule, inside)
        return inside

    def _add(self, rule: ConversionRule, inside: Rules | WhenRules | None = None) -> None:
        self._claims.add(rule)
        self._rules.append((replace(rule, place=self.reading or _caller()), inside))

    def _path(self, text: str) -> Path:
        path = parse_path(text)
        if not self._root:
            return path
        if path[0] in ("apiVersion", "kind"):
            raise InvalidRule(f"{text} is not a field that rules may change")
        allowed = len(path) == 3 and path[1] in ("labels", "annotations")
        if path[0] == "metadata" and not allowed:
            hint = 'name one of them: metadata.annotations["ex.io/mode"]'
            raise InvalidRule(
                f"{text} cannot be converted: of metadata, only labels and annotations can",
                hint=hint,
            )
        if allowed and path[0] == "metadata":
            _check_key(path[2], path[1])
        return path

    def block(self, around: Blocks = (), *, is_case: bool = False) -> RuleBlock:
        """Return the finished rules.

        `around` are the blocks around this block. With `is_case`, the rules are those of a case:
        they are a part of the block around them, not a block of their own.
        """
        repeated = RepeatedRules()
        blocks = around if is_case else (*around, repeated)
        made = [_completed(rule, inside, blocks) for rule, inside in self._rules]
        block = RuleBlock(tuple(made), root=self._root and not is_case, place=self._place)
        repeated.block = replace(block, root=False)
        return block


def _caller() -> str:
    """Return the file and line of the code that calls the builder: `kinds.py:7`."""
    frame = sys._getframe(1)
    while frame.f_globals.get("__name__") == __name__ and frame.f_back is not None:
        frame = frame.f_back
    return f"{frame.f_code.co_filename}:{frame.f_lineno}"


class _ReversedRules(Rules):
    """Adds each rule to another `Rules`, for the opposite direction."""

    def __init__(self, rules: Rules) -> None:
        super().__init__(root=rules._root, around=-1)
        self._whole = rules

    def _add(self, rule: ConversionRule, inside: Rules | WhenRules | None = None) -> None:
        self._whole._add(ReversedRule(rule), inside)


def _expression(name: str, text: str, *, to: ValueSide) -> cel.ValueExpression:
    try:
        made = cel.ValueExpression.compile(text)
    except cel.Uncompilable as error:
        raise InvalidRule(f"{name} is no valid CEL expression: {error.fact}") from None
    if to.names and not cel.fits_schema(made.type, {"type": "object"}):
        names = listed(to.names)
        fact = f"{name} returns {made.type}, and not a map with the names of the fields"
        raise InvalidRule(fact, hint=f"known: {names}")
    return made


def _completed(
    rule: ConversionRule, inside: Rules | WhenRules | None, blocks: Blocks
) -> ConversionRule:
    if isinstance(rule, RecurseRule) and rule.up < len(blocks):
        return replace(rule, repeated=blocks[-1 - rule.up])
    if inside is None:
        return rule
    if isinstance(rule, ReversedRule):
        return replace(rule, rule=_completed(rule.rule, inside, ()))
    if isinstance(inside, WhenRules):
        assert isinstance(rule, WhenRule)
        return inside.completed(rule, blocks)
    block = inside.block(blocks)
    if not isinstance(rule, EachRule):
        return replace(rule, inside=block)  # type: ignore[call-arg]
    return replace(rule, inside=block, target_keys=renamed_keys(rule.source_keys, block))


def _last(path: str) -> str:
    return parse_path(path)[-1]


def _reference(text: str) -> str:
    """Return the field of the metadata to which a reference refers."""
    first, _, name = text.partition(".")
    if first != "metadata" or name not in NAMES:
        hint = f"known: {listed([f'metadata.{each}' for each in NAMES])}"
        raise InvalidRule(f"{text!r} is not a reference", hint=hint)
    return name


def _check_key(key: str, place: str) -> None:
    """Raise an error if rules cannot write a label or an annotation with this key.

    An API server would refuse the key, or it is the key of an annotation for preserved fields.
    """
    if key in (ANNOTATION, BESIDE):
        raise InvalidRule(f"{key} is reserved for preserved fields")
    if problems := label_key_problems(key.lower() if place == "annotations" else key):
        raise InvalidRule(f"{key!r} cannot be one of {place}: {problems[0]}")


def _text_and_number(name: str, types: Sequence[Type]) -> tuple[Type, Type]:
    """Return the two types of a rule; raise an error unless it converts a string to a number."""
    if sorted(types) not in (["integer", "string"], ["number", "string"]):
        raise InvalidRule(
            f"{name} has the types {listed(types)}", hint="use string, and integer or number"
        )
    return types[0], types[1]


def _check_type(kind: str) -> None:
    if kind not in TYPES:
        raise InvalidRule(f"{kind!r} is not a type", hint=f"known: {listed(TYPES)}")
