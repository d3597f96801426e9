"""CEL rules of a schema, compiled once and evaluated for objects."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final

from polyver.core.plain import Schema
from polyver.kube.objects.schema._declared_paths import rule_path
from polyver.kube.objects.schema.structure import NEW, OldItems, StructuralSchema, is_unchanged
from polyver.kube.objects.status import Cause
from polyver.languages import cel
from polyver.languages.values.strings import shown

__all__ = ["MOST_COST", "Findings", "ValidationRules", "compile_rules", "has_rules"]

MOST_COST: Final = 10_000_000
"""The maximum cost of evaluating all rules for one object, in the units of cel-go."""
_LONGEST_MESSAGE: Final = 5 * 1024
_RULES = "x-kubernetes-validations"
_SPENT = "running out of cost budget, no further validation rules will be run"


def has_rules(schema: Schema) -> bool:
    """Report whether a schema, or a schema inside it, has a rule."""
    if schema.get(_RULES):
        return True
    inside = [*(schema.get("properties") or {}).values()]
    inside += [schema.get("items"), schema.get("additionalProperties")]
    return any(has_rules(each) for each in inside if isinstance(each, Mapping))


@dataclass(slots=True)
class Findings:
    """The results of evaluating rules: errors, warnings and the cost that is left.

    If a value breaks a rule but did not change in the update, this is only a warning.
    """

    left: int = MOST_COST
    """The cost that is left for further rules. If it is negative, no more rules are evaluated."""
    causes: list[Cause] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)

    @property
    def is_over(self) -> bool:
        return self.left < 0


class _Rule:
    """One compiled CEL rule of a schema, and the message for a value that breaks it."""

    def __init__(self, given: Schema, schema: Schema, environment: cel.CelEnvironment) -> None:
        self._given = given
        self.optional_old = bool(given.get("optionalOldSelf"))
        self.problem = ""
        self.path = rule_path(schema, given.get("fieldPath") or "") or ""
        self.expression: cel.Expression | None = None
        self._message: cel.Expression | None = None
        try:
            self.expression = environment.rule(_text(given), optional_old=self.optional_old)
            text = given.get("messageExpression")
            if text:
                self._message = environment.message(text, optional_old=self.optional_old)
        except cel.Uncompilable as problem:
            self.problem = f"rule compile error: {problem}"

    @property
    def name(self) -> str:
        """The rule in the words of an error: its `message`, or else its expression."""
        return ((self._given.get("message") or "") or (self._given.get("rule") or "")).strip()

    @property
    def uses_old(self) -> bool:
        return self.expression is not None and self.expression.uses_old

    def seen(self, variables: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the variables with which the rule is evaluated.

        They are `variables`, but with `optionalOldSelf`, oldSelf is an optional value.
        """
        if not self.optional_old:
            return variables
        old = variables.get("oldSelf")
        return {**variables, "oldSelf": cel.NONE if old is None else cel.Optional(old)}

    def refused(self, path: str, value: Any, kind: str, text: str) -> Cause:
        """Build the error for a value of the type `kind` that breaks the rule.

        `text` is the message, and `path` is the path of the value.
        """
        if self.path:
            path = f"{path}.{self.path}" if path else self.path
        shown_path = path or "<nil>"
        whole = kind in ("object", "array")
        match self._given.get("reason"):
            case "FieldValueForbidden":
                return Cause(shown_path, f"Forbidden: {text}", "FieldValueForbidden")
            case "FieldValueRequired":
                return Cause(shown_path, f"Required value: {text}", "FieldValueRequired")
            case "FieldValueDuplicate":
                found = "" if whole else f": {shown(value)}"
                return Cause(shown_path, f"Duplicate value{found}", "FieldValueDuplicate")
        return Cause(shown_path, f"Invalid value: {'' if whole else f'{shown(value)}: '}{text}")

    def message_for(self, variables: Mapping[str, Any], findings: Findings) -> str:
        """Return the result of messageExpression, or `message` if there is none or if it fails.

        As in kube-apiserver, oldSelf in messageExpression is never an optional value.
        """
        plain = (self._given.get("message") or "").strip() or f"failed rule: {self.name}"
        if self._message is None:
            return plain
        outcome = self._message.program.evaluate(variables)
        if outcome.cost > findings.left:
            findings.left = -1
            return f"messageExpression evaluation failed due to {_SPENT}"
        findings.left -= outcome.cost
        text = outcome.value.strip() if isinstance(outcome.value, str) else ""
        usable = text and "\n" not in text and len(text.encode()) <= _LONGEST_MESSAGE
        return text if usable else plain


@dataclass(frozen=True, slots=True)
class _Before:
    """A value in an update, together with the same value before the update.

    `around` has the mapping or list that contains the value, also with its value before the update.
    """

    value: Any = NEW
    old: Any = NEW
    structure: StructuralSchema | None = None
    around: _Before | None = None
    root: bool = False

    def inside(self, key: str) -> _Before:
        """Return the value of the field `key`, together with its value before the update."""
        if self.old is NEW:
            return self
        if self.root and key in ("apiVersion", "kind"):
            return _Before()
        known = isinstance(self.old, Mapping) and isinstance(self.value, Mapping)
        structure = self.structure.child(key) if self.structure else None
        if not known or key not in self.old or key not in self.value or structure is None:
            return _Before(around=self)
        return _Before(self.value[key], self.old[key], structure, self)

    def item(self, number: int, olds: OldItems) -> _Before:
        """Return the list item with the index `number`, together with the item before the update.

        `olds` has the items of the list before the update.
        """
        if self.old is NEW:
            return self
        old = olds.like(self.value[number])
        structure = self.structure.items if self.structure else None
        if old is NEW or old is None:
            return _Before(around=self)
        return _Before(self.value[number], old, structure, self)

    @property
    def is_same(self) -> bool:
        """True if the update did not change the value.

        If the old value is unknown, the answer is that of the nearest mapping or list around the
        value whose old value is known.
        """
        if self.old is not NEW:
            return is_unchanged(self.value, self.old, self.structure)
        return self.around is not None and self.around.is_same


class ValidationRules:
    """The compiled CEL rules of a schema and of the schemas inside it."""

    def __init__(self, schema: Schema, structure: StructuralSchema, *, root: bool = False) -> None:
        self._schema = schema
        self._structure = structure
        self._root = root or bool(schema.get("x-kubernetes-embedded-resource"))
        self._type: str = schema.get("type") or ""
        self._own = self._compile(schema.get(_RULES) or ())
        fields = schema.get("properties") or {}
        self._fields = {
            name: ValidationRules(each, structure.fields[name])
            for name, each in fields.items()
            if has_rules(each)
        }
        self._values = self._below("additionalProperties", structure.values)
        self._items = self._below("items", structure.items)

    def _below(self, name: str, structure: StructuralSchema | None) -> ValidationRules | None:
        inside = self._schema.get(name)
        if not isinstance(inside, Mapping) or structure is None or not has_rules(inside):
            return None
        return ValidationRules(inside, structure)

    def _compile(self, given: Any) -> list[_Rule]:
        declared_type = cel.declared(self._schema, "selfType", root=self._root) if given else None
        if declared_type is None:
            return []
        environment = cel.CelEnvironment(declared_type)
        return [_Rule(each, self._schema, environment) for each in given if _text(each)]

    @cached_property
    def _cel_schema(self) -> cel.CelSchema:
        return cel.CelSchema(self._schema, root=self._root)

    def check(self, value: Any, old: Any, findings: Findings) -> None:
        """Evaluate the rules for an object.

        `old` is the object before the update, or None for a create.
        """
        before = _Before(value, old, self._structure, root=True) if old is not None else _Before()
        self._check(value, old, "", before, findings)

    def check_default(self, value: Any, path: str, findings: Findings) -> None:
        """Evaluate the rules for a default value: first as in an update, then as in a create.

        In the first evaluation, the old value is the default itself. If it finds an error, there is
        no second evaluation.
        """
        known = len(findings.causes)
        self._check(value, value, path, _Before(), findings)
        if len(findings.causes) == known:
            self._check(value, None, path, _Before(), findings)

    def _check(self, value: Any, old: Any, path: str, before: _Before, findings: Findings) -> None:
        if value is None or findings.is_over:
            return
        if self._own:
            self._check_own(value, old, path, before, findings)
        if isinstance(value, list):
            self._check_items(value, old, path, before, findings)
        elif isinstance(value, dict):
            self._check_fields(value, old if isinstance(old, dict) else {}, path, before, findings)

    def _check_items(
        self, value: list[Any], old: Any, path: str, before: _Before, findings: Findings
    ) -> None:
        if self._items is None:
            return
        olds = OldItems(old, self._structure)
        for number, item in enumerate(value):
            was = olds.like(item)
            inner = before.item(number, olds)
            was = None if was is NEW else was
            self._items._check(item, was, f"{path}[{number}]", inner, findings)

    def _check_fields(
        self,
        value: dict[str, Any],
        old: Mapping[str, Any],
        path: str,
        before: _Before,
        findings: Findings,
    ) -> None:
        for key in value if self._values is not None else ():
            assert self._values is not None
            inner = before.inside(key)
            self._values._check(value[key], old.get(key), f"{path}[{key}]", inner, findings)
        for key, rules in self._fields.items():
            if key in value:
                where = f"{path}.{key}" if path else key
                rules._check(value[key], old.get(key), where, before.inside(key), findings)

    def _check_own(
        self, value: Any, old: Any, path: str, before: _Before, findings: Findings
    ) -> None:
        if findings.left <= 0:
            self._stop(path, f"validation failed due to {_SPENT}", findings)
            return
        variables = {"self": _seen(value, self._cel_schema)}
        if old is not None:
            variables["oldSelf"] = _seen(old, self._cel_schema)
        for rule in self._own:
            if findings.is_over:
                return
            if self._breaks(rule, variables, path, findings):
                text = rule.message_for(variables, findings)
                cause = rule.refused(path, value, self._type, text)
                if before.is_same and not rule.uses_old:
                    findings.warnings.append(f"{cause.field}: {cause.message}")
                else:
                    findings.causes.append(cause)

    def _breaks(
        self, rule: _Rule, variables: Mapping[str, Any], path: str, findings: Findings
    ) -> bool:
        """Report whether a value breaks a rule. If the rule cannot be evaluated, add an error."""
        if rule.expression is None:
            findings.causes.append(self._failed(path, rule.problem))
            return False
        seen = rule.seen(variables)
        if rule.uses_old and "oldSelf" not in seen:
            return False
        outcome = rule.expression.program.evaluate(seen)
        if outcome.cost > findings.left:
            self._stop(path, f"validation failed due to {_SPENT}", findings)
            return False
        findings.left -= outcome.cost
        if outcome.failure is not None:
            self._fail(rule, outcome.failure, path, findings)
        return outcome.failure is None and outcome.value is not True

    def _fail(self, rule: _Rule, failure: str, path: str, findings: Findings) -> None:
        if failure.startswith("operation cancelled: actual cost limit exceeded"):
            text = "no further validation rules will be run due to call cost exceeds limit for rule"
            self._stop(path, f"'{failure}': {text}: {rule.name}", findings)
        elif failure.startswith("no such overload"):
            text = "call arguments did not match a supported operator, function or macro signature"
            text = f"'{failure}': {text} for rule: {rule.name}"
            findings.causes.append(self._failed(path, text))
        else:
            text = f"{failure} evaluating rule: {rule.name}"
            findings.causes.append(self._failed(path, text))

    def _failed(self, path: str, text: str) -> Cause:
        return Cause(path or "<nil>", f"Invalid value: {shown(self._type)}: {text}")

    def _stop(self, path: str, text: str, findings: Findings) -> None:
        findings.causes.append(self._failed(path, text))
        findings.left = -1


def _text(rule: Schema) -> str:
    text: str = rule.get("rule") or ""
    return text if text.strip() else ""


def _seen(value: Any, schema: cel.CelSchema) -> Any:
    """Convert a value to the form that CEL rules read.

    A value that does not fit its schema becomes an error, which a rule gets when it reads the
    value.
    """
    try:
        return cel.to_value(value, schema)
    except cel.CelEvaluationError as problem:
        return problem


def compile_rules(
    schema: Schema, structure: StructuralSchema, *, root: bool = True
) -> ValidationRules | None:
    """Compile the rules of a schema; return None if it has no rules."""
    return ValidationRules(schema, structure, root=root) if has_rules(schema) else None
