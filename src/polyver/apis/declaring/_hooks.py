"""Hooks: functions of a kind's author that fill in defaults of objects, or check objects.

A hook gets an object of the declared class, or plain data if its type hint is a dict. Admission
calls the hooks of a kind, through this module, at each write of an object.
"""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from polyver.apis.declaring._fields import shown_name
from polyver.apis.declaring._objects import NotAsDeclared, from_object, is_part, to_object
from polyver.apis.definition import InvalidKind
from polyver.core.plain import Object

__all__ = ["KindHook", "Outcome", "Problem", "defaulted", "make_hook", "problems"]


@dataclass(frozen=True, slots=True)
class Problem:
    """An error in an object, and its field.

    >>> print(Problem("spec.schedule", "is not in cron syntax"))
    spec.schedule: is not in cron syntax
    """

    path: str
    text: str

    def __str__(self) -> str:
        return f"{self.path}: {self.text}" if self.path else self.text


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result that the function of a controller returns for an object.

    >>> Outcome(status={"ready": True}, after=30)
    Outcome(status={'ready': True}, objects=None, after=30)
    """

    status: Any = None
    """The whole status, as plain data or as an object of the declared class.

    With None, the status is not changed.
    """
    objects: Sequence[Any] | None = None
    """All objects that must exist for this object.

    The controller applies them with an owner reference, so they are deleted together with their
    owner. It deletes an object that it applied earlier and that is not in this sequence. With None,
    it applies and deletes nothing.
    """
    after: float | None = None
    """Seconds after which the function is called again, even if nothing changes; None for never."""


@dataclass(frozen=True, slots=True)
class KindHook:
    """A function of the kind's author that takes objects of one version."""

    version: str
    function: Callable[..., Any]
    cls: type | None
    """The class that the function takes; None for plain data."""
    arguments: int

    @property
    def name(self) -> str:
        return shown_name(self.function)

    def taken(self, obj: Mapping[str, Any]) -> Any:
        """Copy an object to the form that the function takes: an object of a class, or plain data.

        The function may change this copy.
        """
        return copy.deepcopy(dict(obj)) if self.cls is None else from_object(self.cls, obj)


def make_hook(
    version: str, function: Callable[..., Any], names: Mapping[str, Any], *, most: int
) -> KindHook:
    """Build a hook from a user's function; the type hint of its first parameter is the class.

    `most` is the maximum number of parameters that the function may have.
    """
    known = getattr(function, "__globals__", {})
    try:
        signature = inspect.signature(function, eval_str=True, globals=known, locals=dict(names))
    except NameError as error:
        fact = f"{error.name} is not defined where {shown_name(function)} is declared"
        raise InvalidKind(fact, hint=f"declare {error.name} before it") from None
    given = [each for each in signature.parameters.values() if each.kind in _POSITIONAL]
    if not 1 <= len(given) <= most:
        wanted = "the object" if most == 1 else "the object, or the object and the old one"
        raise InvalidKind(f"{shown_name(function)} must take {wanted}")
    hint = given[0].annotation
    return KindHook(version, function, hint if is_part(hint) else None, len(given))


_POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


def defaulted(hooks: Iterable[KindHook], obj: Mapping[str, Any]) -> Object:
    """Call the hooks that set defaults; return the object with these defaults.

    Fields of the object that the class in a hook's type hint does not have are kept.
    """
    found: Object = dict(obj)
    for hook in hooks:
        given = hook.taken(found)
        before = to_object(given) if hook.cls else {}
        returned = hook.function(given)
        after = given if returned is None else returned
        found = after if hook.cls is None else _changed(found, before, to_object(after))
    return found


def _changed(whole: Any, before: Any, after: Any) -> Any:
    """Return the object `whole` with the changes that a hook has made.

    The changes are the differences between `before` and `after`. Both have only the fields that the
    class in the hook's type hint has; `whole` also has all other fields.
    """
    if before == after:
        return whole
    match whole, before, after:
        case dict(), dict(), dict():
            kept = {key: value for key, value in whole.items() if key in after or key not in before}
            new = {
                key: _changed(whole[key], before[key], value) if key in before else value
                for key, value in after.items()
            }
            return kept | new
        case list(), list(), list() if len(before) == len(after):
            return list(map(_changed, whole, before, after))
        case _:
            return after


def problems(
    hooks: Iterable[KindHook], obj: Mapping[str, Any], old: Mapping[str, Any] | None
) -> list[Problem]:
    """Call the hooks that check an object; return the problems that they find.

    If a hook raises ValueError, the message of the error is also a problem. `old` is the stored
    object that an update replaces, or None.
    """
    found: list[Problem] = []
    for hook in hooks:
        try:
            found += hook.function(*_arguments(hook, obj, old)) or ()
        except NotAsDeclared as error:
            found.append(Problem(error.at, error.fact))
        except ValueError as error:
            found.append(Problem("", str(error)))
    return list(dict.fromkeys(found))


def _arguments(hook: KindHook, obj: Mapping[str, Any], old: Mapping[str, Any] | None) -> list[Any]:
    given = [hook.taken(obj)]
    if hook.arguments > 1:
        given.append(None if old is None else hook.taken(old))
    return given
