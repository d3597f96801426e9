"""JSON patches and merge patches: apply them to plain data, and build a JSON patch.

No function changes its arguments.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from polyver.core import PolyverError
from polyver.kube.objects.codec import encode_json
from polyver.languages.values.json_values import DEEPEST
from polyver.languages.values.strings import same, without_nulls

__all__ = ["InvalidPatch", "PatchFailed", "apply_json_patch", "apply_merge_patch", "json_patch"]

_MOST_COPIED = 3 * 1024 * 1024


class InvalidPatch(PolyverError):
    """Raised if a patch has invalid syntax."""


class PatchFailed(PolyverError):
    """Raised if a patch cannot be applied to the object, because a path is missing or a test fails.

    The message is that of kube-apiserver.
    """


def apply_merge_patch(value: Any, patch: Any) -> Any:
    """Apply a merge patch (RFC 7386): merge mappings, remove keys with null, replace other values.

    As in kube-apiserver, nulls are also removed from mappings in a list of the patch, unless the
    list replaces a mapping.

    >>> apply_merge_patch({"a": 1, "b": {"c": 2}}, {"a": None, "b": {"d": 3}})
    {'b': {'c': 2, 'd': 3}}
    """
    if not isinstance(value, dict):
        return without_nulls(patch)
    if not isinstance(patch, dict):
        return patch
    merged = dict(value)
    for key, change in patch.items():
        if change is None:
            merged.pop(key, None)
        else:
            merged[key] = apply_merge_patch(merged.get(key), change)
    return merged


def apply_json_patch(value: Any, patch: Sequence[Any]) -> Any:
    """Apply a JSON patch (RFC 6902), with three deviations from the RFC, as in kube-apiserver.

    `replace` adds a missing key, `copy` from a missing key copies null, and the part of a path
    before its first slash is ignored.

    >>> apply_json_patch({"a": [1]}, [{"op": "add", "path": "/a/-", "value": 2}])
    {'a': [1, 2]}
    """
    patched = [copy.deepcopy(value)]
    copied = 0
    try:
        for operation in patch:
            copied += _Operation(operation).apply(patched)
            if copied > _MOST_COPIED:
                raise PatchFailed(f"more than {_MOST_COPIED} bytes are copied")
    except RecursionError:
        raise PatchFailed(_TOO_DEEP) from None
    if _is_deep(patched[0]):
        raise PatchFailed(_TOO_DEEP)
    return patched[0]


_TOO_DEEP = f"the result is nested deeper than {DEEPEST} levels"


def _is_deep(value: Any) -> bool:
    """Report whether a patched value nests deeper than a request body may.

    A patch can nest a value deeply by copying the value into itself.
    """
    level = [value]
    for _ in range(DEEPEST + 1):
        level = [inner for each in level for inner in _inside(each)]
        if not level:
            return False
    return True


def _inside(value: Any) -> Iterable[Any]:
    if isinstance(value, dict):
        return value.values()
    return value if isinstance(value, list) else ()


_NOTHING = object()


class _Operation:
    """One operation of a JSON patch.

    The functions take the patched value as the only item of a list (`root`), so that an operation
    can replace the whole value.
    """

    def __init__(self, operation: Any) -> None:
        if not isinstance(operation, dict):
            raise InvalidPatch("an operation of a JSON patch is not a mapping")
        self._operation = operation

    def apply(self, root: list[Any]) -> int:
        """Apply the operation to the value in `root`; return the number of bytes that it copies."""
        match self._operation.get("op"):
            case "add":
                self._add(root, "path", self._value())
            case "remove":
                self._remove(root, "path")
            case "replace":
                self._replace(root)
            case "move":
                self._add(root, "path", self._remove(root, "from"))
            case "copy":
                return self._copy(root)
            case "test":
                self._test(root)
            case other:
                raise PatchFailed(f"Unexpected kind: {other}")
        return 0

    def _copy(self, root: list[Any]) -> int:
        found = self._get(root, "from")
        found = None if found is _NOTHING else found
        size = len(encode_json(found))
        if size <= _MOST_COPIED:
            self._add(root, "path", copy.deepcopy(found))
        return size

    def _value(self) -> Any:
        if "value" not in self._operation:
            raise PatchFailed(f"{self._operation.get('op')} has no value")
        return copy.deepcopy(self._operation["value"])

    def _test(self, root: list[Any]) -> None:
        found = self._get(root, "path")
        if found is _NOTHING or not _same(found, self._operation.get("value")):
            raise PatchFailed(f"testing value {self._operation.get('path')} failed: test failed")

    def _get(self, root: list[Any], name: str) -> Any:
        holder, last = self._holder(root, name)
        if isinstance(holder, dict):
            return holder.get(str(last), _NOTHING)
        return holder[self._index(holder, last, name)]

    def _add(self, root: list[Any], name: str, value: Any) -> None:
        holder, last = self._holder(root, name)
        if isinstance(holder, dict):
            holder[str(last)] = value
        elif holder is root:
            root[0] = value
        elif last == "-":
            holder.append(value)
        else:
            holder.insert(self._index(holder, last, name, most=len(holder)), value)

    def _remove(self, root: list[Any], name: str) -> Any:
        holder, last = self._holder(root, name)
        if isinstance(holder, dict):
            if last not in holder:
                raise self._undone(name, f"Unable to remove nonexistent key: {last}: missing value")
            return holder.pop(str(last))
        if holder is root:
            raise PatchFailed("the whole object cannot be removed")
        return holder.pop(self._index(holder, last, name))

    def _replace(self, root: list[Any]) -> None:
        holder, last = self._holder(root, "path")
        if isinstance(holder, dict):
            holder[str(last)] = self._value()
        else:
            holder[self._index(holder, last, "path")] = self._value()

    def _holder(self, root: list[Any], name: str) -> tuple[Any, str | int]:
        """Return the mapping or list in which a path ends, and the last key or index."""
        path = self._operation.get(name)
        if not isinstance(path, str):
            raise PatchFailed(f"{name} is not a JSON pointer: {path}")
        # As in kube-apiserver, the part before the first slash is ignored.
        steps = [step.replace("~1", "/").replace("~0", "~") for step in path.split("/")[1:]]
        holder: Any = root
        last: str | int = 0
        for step in steps:
            holder = self._inside(holder, last, name)
            last = step
        if not isinstance(holder, dict | list):
            raise self._missing(name)
        return holder, last

    def _inside(self, holder: Any, step: str | int, name: str) -> Any:
        if isinstance(holder, dict) and step in holder:
            return holder[str(step)]
        if isinstance(holder, list):
            return holder[self._index(holder, step, name)]
        raise self._missing(name)

    def _index(
        self, items: list[Any], step: str | int, name: str, *, most: int | None = None
    ) -> int:
        most = len(items) - 1 if most is None else most
        text = str(step)
        # Python may refuse to parse a very long number, which is too large for an index anyway.
        if (
            not text.isdecimal()
            or len(text) > 20
            or (text != "0" and text.startswith("0"))
            or int(text) > most
        ):
            text = f"Unable to access invalid index: {step}: invalid index referenced"
            raise self._undone(name, text)
        return int(text)

    def _missing(self, name: str) -> PatchFailed:
        """Build the error for a path at which there is no value."""
        path, done = self._operation.get(name), self._operation.get("op")
        where = {"from": "from path", "path": "path"}[name]
        if name == "path" and done in ("move", "copy"):
            where = "destination path"
        shown = f'"{path}"' if done in ("add", "remove") else path
        doc = "" if done == "test" else "doc "
        text = f"{done} operation does not apply: {doc}is missing {where}: {shown}: missing value"
        return PatchFailed(text)

    def _undone(self, name: str, problem: str) -> PatchFailed:
        """Build the error for a path whose last key or index the operation cannot use.

        `problem` states why.
        """
        path, done = self._operation.get(name), self._operation.get("op")
        if done == "replace":
            text = f"replace operation does not apply: doc is missing key: {path}: missing value"
            return PatchFailed(text)
        shown = str(path).rpartition("/")[2] if (done, name) == ("move", "from") else path
        return PatchFailed(f"error in {done} for path: '{shown}': {problem}")


def _same(one: Any, other: Any) -> bool:
    """Report whether values are equal as JSON: true is not 1."""
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(_same(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(_same, one, other))
    return bool(one == other)


def json_patch(before: Any, after: Any) -> list[dict[str, Any]]:
    """Build the JSON patch that turns `before` into `after`.

    >>> json_patch({"a": 1, "b": {"c": [1, 2]}}, {"b": {"c": [1, 3]}})
    [{'op': 'remove', 'path': '/a'}, {'op': 'replace', 'path': '/b/c/1', 'value': 3}]
    """
    return list(_differences(before, after, ""))


def _differences(before: Any, after: Any, path: str) -> Iterator[dict[str, Any]]:
    match before, after:
        case dict(), dict():
            for key in before:
                inside = f"{path}/{_escaped(key)}"
                if key in after:
                    yield from _differences(before[key], after[key], inside)
                else:
                    yield {"op": "remove", "path": inside}
            for key in after:
                if key not in before:
                    yield {"op": "add", "path": f"{path}/{_escaped(key)}", "value": after[key]}
        case list(), list():
            yield from _item_differences(before, after, path)
        case _ if not same(before, after):
            yield {"op": "replace", "path": path, "value": after}


def _item_differences(before: list[Any], after: list[Any], path: str) -> Iterator[dict[str, Any]]:
    """Yield the operations that turn one list into another.

    Equal items at the beginning and at the end of the two lists need no operation.
    """
    most = min(len(before), len(after))
    start = next((n for n in range(most) if not same(before[n], after[n])), most)
    end = next((n for n in range(most - start) if not same(before[-1 - n], after[-1 - n])), None)
    end = most - start if end is None else end
    old, new = before[start : len(before) - end], after[start : len(after) - end]
    for number, (one, other) in enumerate(zip(old, new, strict=False), start):
        yield from _differences(one, other, f"{path}/{number}")
    both = start + min(len(old), len(new))
    for _ in old[len(new) :]:
        yield {"op": "remove", "path": f"{path}/{both}"}
    for number, value in enumerate(new[len(old) :], both):
        yield {"op": "add", "path": f"{path}/{number}", "value": value}


def _escaped(key: str) -> str:
    return key.replace("~", "~0").replace("/", "~1")
