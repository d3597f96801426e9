"""Strategic merge patches: merge patches that merge lists of built-in kinds by a key of the items.

The order of items in the result, the directives (fields such as `$patch`) and the error messages
are those of kube-apiserver, even where they are surprising, because `kubectl apply` and
`kubectl edit` depend on them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from polyver.core.plain import Object
from polyver.kube.objects.merge_order import (
    Identity,
    go_text,
    go_type,
    identity,
    in_order,
    interleaved,
)
from polyver.kube.objects.status import ApiError, bad_request
from polyver.kube.objects.type_shapes import Shape
from polyver.languages.values.strings import without_nulls

__all__ = ["apply_strategic_merge"]

_DIRECTIVE = "$patch"
_RETAIN = "$retainKeys"
_DELETE_FROM = "$deleteFromPrimitiveList"
_ORDER = "$setElementOrder"
_NOTHING = object()


def apply_strategic_merge(
    value: Mapping[str, Any], patch: Mapping[str, Any], shape: Shape
) -> Object:
    """Apply a strategic merge patch to an object; the arguments are not changed.

    >>> ports = Shape("array", items=Shape("object"), merges=True, merge_key="port")
    >>> service = Shape("object", fields={"ports": ports})
    >>> apply_strategic_merge(
    ...     {"ports": [{"port": 80}, {"port": 53}]},
    ...     {"ports": [{"port": 80, "name": "web"}, {"port": 53, "$patch": "delete"}]},
    ...     service,
    ... )
    {'ports': [{'port': 80, 'name': 'web'}]}
    """
    try:
        return _merge_maps(value, patch, shape)
    except RecursionError:
        raise bad_request("the patch is nested too deeply") from None


def _merge_maps(original: Mapping[str, Any], patch: Mapping[str, Any], shape: Shape) -> Object:
    if _DIRECTIVE in patch:
        return _directed(patch)
    merged, changes = _retained(dict(original), dict(patch))
    _merge_ordered(merged, changes, shape)
    for key, change in changes.items():
        _merge_field(merged, key, change, shape)
    return merged


def _directed(patch: Mapping[str, Any]) -> Object:
    match patch[_DIRECTIVE]:
        case "replace":
            return {key: value for key, value in patch.items() if key != _DIRECTIVE}
        case "delete":
            return {}
        case other:
            raise _unknown_directive(other, patch)


def _merge_field(merged: Object, key: str, change: Any, shape: Shape) -> None:
    deletes = key.startswith(_DELETE_FROM)
    if deletes:
        key = _listed(key, "invalid patch format of primitive list") or key
    if change is None:
        merged.pop(key, None)
        return
    before = merged.get(key, _NOTHING)
    match before, change:
        case dict(), dict():
            inner = _field(shape, key)
            merged[key] = change if inner.replaces else _merge_maps(before, change, inner)
        case list(), list():
            inner = _list_field(shape, key)
            if deletes or inner.merges:
                change, _ = _merge_lists(before, change, inner, deletes=deletes)
            merged[key] = change
        case _ if not deletes:
            _take(merged, key, change)


def _take(merged: Object, key: str, change: Any) -> None:
    """Set the field `key` to `change`, the value in the patch, without merging it."""
    taken = _plain(without_nulls(change))
    if taken is _NOTHING:
        merged.pop(key, None)
    else:
        merged[key] = taken


def _plain(value: Any) -> Any:
    """Remove mappings that have the directive `$patch` from a value.

    Return `_NOTHING` if the value itself has this directive.
    """
    match value:
        case dict() if _DIRECTIVE in value:
            return _NOTHING
        case dict():
            kept = {key: _plain(each) for key, each in value.items()}
            return {key: each for key, each in kept.items() if each is not _NOTHING}
        case list():
            return [each for each in map(_plain, value) if each is not _NOTHING]
        case _:
            return value


# Directives that apply to fields beside them


def _retained(merged: Object, changes: Object) -> tuple[Object, Object]:
    """Apply the directive `$retainKeys`, which lists the fields to keep: drop all other fields.

    Raise an error if the patch changes a field that the directive does not list.
    """
    if _RETAIN not in changes:
        return merged, changes
    named = changes.pop(_RETAIN)
    wrong = bad_request("invalid patch format of retainKeys")
    if not isinstance(named, list):
        raise wrong
    names = {identity(name) for name in named}
    beside = (_DELETE_FROM, _ORDER)
    for key, change in changes.items():
        if change is not None and not key.startswith(beside) and identity(key) not in names:
            raise wrong
    return {key: each for key, each in merged.items() if identity(key) in names}, changes


def _merge_ordered(merged: Object, changes: Object, shape: Shape) -> None:
    """Merge each list for which the patch has a directive `$setElementOrder`.

    These lists are removed from `changes`.
    """
    for directive in [key for key in changes if key.startswith(_ORDER)]:
        order = _as_list(changes.pop(directive))
        key = _listed(directive, "invalid patch format of setElementOrder list")
        before = _as_list(merged[key]) if key in merged else None
        change = _as_list(changes[key]) if key in changes else None
        inner = _list_field(shape, key)
        _check_order(change or [], order, inner.merge_key)
        if before is None and change is None:
            continue
        merged[key] = _ordered(before, change, order, inner)
        changes.pop(key, None)


def _ordered(
    before: list[Any] | None, change: list[Any] | None, order: list[Any], shape: Shape
) -> list[Any]:
    """Merge a list, and sort it by `order`: the items of `$setElementOrder` in the patch.

    Items that are not in `order` keep their positions as far as possible.
    """
    server_order = before or []
    if before is None:
        merged = _plain(change)
    elif change is None:
        merged = before
    elif shape.merges:
        merged, server_order = _merge_lists(before, change, shape, deletes=False)
    else:
        merged = change
    named, others = _split(merged, order, shape.merge_key)
    maps = _holds_maps(before or [], change or [])
    return _in_both_orders(named, others, order, server_order, shape.merge_key if maps else None)


def _check_order(change: list[Any], order: list[Any], key: str) -> None:
    """Raise an error if the items in a patch of a list are not sorted like `$setElementOrder`."""
    if not change or not order:
        return
    items = [item for item in change if not _is_deletion(_as_map(item))] if key else change
    index = 0
    for other in order:
        while index < len(items) and _is_directive(items[index]):
            index += 1
        if index < len(items) and _same_item(items[index], other, key):
            index += 1
    if index < len(items):
        raise _refused(
            f"The order in patch list:\n{go_text(change)}\n doesn't match "
            f"{_ORDER} list:\n{go_text(order)}\n"
        )


def _same_item(item: Any, other: Any, key: str) -> bool:
    if not key:
        return identity(item) == identity(other)
    return _key_of(item, key) == _key_of(other, key)


# Lists


def _merge_lists(
    original: list[Any], patch: list[Any], shape: Shape, *, deletes: bool
) -> tuple[list[Any], list[Any]]:
    """Return the merged list, and the old list as kube-apiserver has it after the merge.

    The second list decides the order of items that the patch does not name. It can differ from
    `original`, because kube-apiserver overwrites items of the old list during the merge.
    """
    if not original and not patch:
        return original, original
    if not _holds_maps(original, patch):
        return _merge_scalars(original, patch, shape.merge_key, deletes=deletes), original
    if not shape.merge_key:
        raise _refused("cannot merge lists without merge key for struct")
    return _merge_items(original, patch, shape)


def _merge_scalars(original: list[Any], patch: list[Any], key: str, *, deletes: bool) -> list[Any]:
    if deletes:
        gone = {identity(item) for item in patch}
        return [item for item in original if identity(item) not in gone]
    merged = list({identity(item): item for item in [*original, *patch]}.values())
    named, others = _split(merged, patch, key)
    return _in_both_orders(named, others, patch, original, None)


def _merge_items(
    original: list[Any], patch: list[Any], shape: Shape
) -> tuple[list[Any], list[Any]]:
    key = shape.merge_key
    kept, plain, replaces = _undirected(original, patch, key)
    start, plain = (plain, []) if replaces else (kept, plain)
    merged = _with_items(start, plain, shape)
    # kube-apiserver overwrites the old list while it merges. Later it reads the old list again, and
    # gets the first items of the merged list.
    seen = (kept if replaces else merged)[: len(original)]
    named, others = _split(merged, plain, key)
    server_order = start if replaces else kept
    return _in_both_orders(named, others, plain, server_order, key), seen


def _undirected(
    original: list[Any], patch: list[Any], key: str
) -> tuple[list[Any], list[Any], bool]:
    """Apply the directives (items with `$patch`) in a patch of a list.

    Return the old items that stay, the items of the patch that are not directives, and True if a
    directive replaces the whole list.
    """
    plain: list[Any] = []
    gone: set[Identity | None] = set()
    replaces = False
    for item in patch:
        match item.get(_DIRECTIVE, _NOTHING):
            case "delete":
                gone.add(_key_of(item, key))
            case "replace":
                replaces = True
            case "merge":
                raise _refused("merging lists cannot yet be specified in the patch")
            case other if other is not _NOTHING:
                raise _unknown_directive(other, item)
            case _:
                plain.append(item)
    kept = [each for each in original if _found_key(each, key) not in gone] if gone else original
    return kept, plain, replaces


def _with_items(original: list[Any], patch: list[Any], shape: Shape) -> list[Any]:
    merged = list(original)
    indexes: dict[Identity | None, int] = {}
    for index, item in enumerate(merged):
        indexes.setdefault(_found_key(item, shape.merge_key), index)
    for item in patch:
        key = _key_of(item, shape.merge_key)
        if key not in indexes:
            indexes[key] = len(merged)
            merged.append(item)
        else:
            index = indexes[key]
            merged[index] = _merge_maps(merged[index], item, shape.items or Shape())
    return merged


def _split(items: Sequence[Any], named: Sequence[Any], key: str) -> tuple[list[Any], list[Any]]:
    """Divide items into two lists: those that are also in `named`, and all others.

    Items are compared by their field `key`, or as a whole if `key` is empty.
    """
    if key:
        keys: set[Identity | None] = {_found_key(_as_map(each), key) for each in named}
        inside = [_key_of(item, key) in keys for item in items]
    else:
        keys = {identity(each) for each in named}
        inside = [identity(item) in keys for item in items]
    pairs = list(zip(items, inside, strict=True))
    return [item for item, found in pairs if found], [item for item, found in pairs if not found]


def _in_both_orders(
    named: list[Any], others: list[Any], order: list[Any], server_order: list[Any], key: str | None
) -> list[Any]:
    """Merge two lists: `named` sorted like `order`, and `others` sorted like `server_order`."""
    if key is None:
        wanted, known = _ranks(map(identity, order)), _ranks(map(identity, server_order))
        named = in_order([(identity(item), item) for item in named], wanted)
        others = in_order([(identity(item), item) for item in others], known)
        return interleaved(others, named, known, identity)
    wanted = _ranks([_key_of(item, key) for item in order])
    known = _ranks([_key_of(item, key) for item in server_order])
    named, others = (_deletions_last(named, wanted, key), _deletions_last(others, known, key))
    return interleaved(others, named, known, lambda item: _key_of(item, key))


def _deletions_last(items: list[Any], ranks: dict[Identity, int], key: str) -> list[Any]:
    pairs = [(_key_of(item, key), item) for item in items]
    kept = in_order([pair for pair in pairs if not _is_deletion(pair[1])], ranks)
    return kept + [item for _, item in pairs if _is_deletion(item)]


def _ranks(keys: Iterable[Identity]) -> dict[Identity, int]:
    ranks: dict[Identity, int] = {}
    for rank, key in enumerate(keys):
        ranks.setdefault(key, rank)
    return ranks


# Helpers and errors


def _is_directive(item: Any) -> bool:
    return isinstance(item, dict) and _DIRECTIVE in item


def _is_deletion(item: Mapping[str, Any]) -> bool:
    return item.get(_DIRECTIVE) == "delete"


def _key_of(item: Any, key: str) -> Identity:
    found = _found_key(_as_map(item), key)
    if found is None:
        raise _refused(f"map: {go_text(item)} does not contain declared merge key: {key}")
    return found


def _found_key(item: Mapping[str, Any], key: str) -> Identity | None:
    return identity(item[key]) if key in item else None


def _holds_maps(*lists: list[Any]) -> bool:
    """Report whether the items of the lists are mappings; raise an error if their types differ."""
    kinds = list(dict.fromkeys(go_type(item) for items in lists for item in items))
    if not kinds:
        raise _refused("no elements in any of the given slices")
    if kinds[0] == "[]interface {}":
        raise ApiError(
            422,
            "Invalid",
            "the server rejected our request due to an error in our request",
            details={},
        )
    if len(kinds) > 1:
        raise _refused(f"list element types are not identical: {go_text(list(lists))}")
    return kinds[0].startswith("map")


def _field(shape: Shape, key: str) -> Shape:
    if shape.values is not None and not shape.fields:
        raise _refused("merging an object in json but data type is not struct, instead is: map")
    if key not in shape.fields:
        name = shape.name.rpartition(".")[2]
        raise _refused(f'unable to find api field in struct {name} for the json field "{key}"')
    return shape.fields[key]


def _list_field(shape: Shape, key: str) -> Shape:
    found = _field(shape, key)
    if found.type != "array":
        raise _refused("expected slice or array type, but got: struct")
    return found


def _listed(directive: str, problem: str) -> str:
    """Return the name of the list in a directive such as `$setElementOrder/ports`."""
    prefix, slash, name = directive.partition("/")
    if not slash or prefix not in (_DELETE_FROM, _ORDER):
        raise bad_request(problem)
    return name


def _as_list(value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise _refused(f"expected a []interface {{}}, but received a {go_type(value)}")
    return value


def _as_map(value: Any) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise _refused(f"expected a map[string]interface {{}}, but received a {go_type(value)}")
    return value


def _unknown_directive(directive: Any, patch: Mapping[str, Any]) -> ApiError:
    shown = go_type(None) if directive is None else go_text(directive, "s")
    return _refused(f"unknown patch type: {shown} in map: {go_text(patch)}")


def _refused(message: str) -> ApiError:
    return ApiError(500, "", message)
