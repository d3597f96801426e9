"""The URL paths of each kind, with their operations, for OpenAPI documents."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

from polyver.kube.objects.kinds import ResourceKind, Subresource
from polyver.kube.server._openapi_schemas import component_name
from polyver.kube.server._openapi_types import META, PARAMETERS, referring

__all__ = ["part_component", "paths_of"]

Item = dict[str, object]

_LISTING = (
    "allowWatchBookmarks continue fieldSelector labelSelector limit resourceVersion"
    " resourceVersionMatch sendInitialEvents timeoutSeconds watch"
).split()
_DELETING_MANY = (
    "continue dryRun fieldSelector gracePeriodSeconds labelSelector limit orphanDependents"
    " propagationPolicy resourceVersion resourceVersionMatch sendInitialEvents timeoutSeconds"
).split()
_DELETING = "dryRun gracePeriodSeconds orphanDependents propagationPolicy".split()
_WRITING = "dryRun fieldManager fieldValidation".split()
_PATCHING = [*_WRITING, "force"]
_PATCHES = ("application/json-patch+json", "application/merge-patch+json")
_APPLY = "application/apply-patch+yaml"
_STRATEGIC = "application/strategic-merge-patch+json"
_SERVED = ("application/json", "application/yaml")
_STREAMED = ("application/json", "application/json;stream=watch", "application/yaml")
# The parameters that kube-apiserver gives to operations of custom kinds, if they differ from the
# parameters for built-in kinds.
_OF_CUSTOM_KINDS = {"get": ("resourceVersion",), "deletecollection": tuple(_LISTING)}
_MEANINGS = {"200": "OK", "201": "Created", "202": "Accepted", "401": "Unauthorized"}


@dataclass(frozen=True, slots=True)
class _OperationSpec:
    """An operation at a URL path, such as the creation of an object."""

    verb: str
    method: str
    action: str
    prefix: str
    words: str
    codes: tuple[str, ...]
    parameters: tuple[str, ...] = ()
    body: str = ""


_COLLECTION = (
    _OperationSpec("list", "get", "list", "list", "List or watch", ("200",), tuple(_LISTING)),
    _OperationSpec(
        "create",
        "post",
        "post",
        "create",
        "Create",
        ("200", "201", "202"),
        tuple(_WRITING),
        "object",
    ),
    _OperationSpec(
        "deletecollection",
        "delete",
        "deletecollection",
        "delete",
        "Delete several",
        ("200",),
        tuple(_DELETING_MANY),
        "options",
    ),
)
_SINGLE = (
    _OperationSpec("get", "get", "get", "read", "Read", ("200",)),
    _OperationSpec(
        "update", "put", "put", "replace", "Replace", ("200", "201"), tuple(_WRITING), "object"
    ),
    _OperationSpec(
        "delete",
        "delete",
        "delete",
        "delete",
        "Delete",
        ("200", "202"),
        tuple(_DELETING),
        "options",
    ),
    _OperationSpec(
        "patch", "patch", "patch", "patch", "Change", ("200", "201"), tuple(_PATCHING), "patch"
    ),
)
_PART = (_SINGLE[0], _SINGLE[1], _COLLECTION[1], _SINGLE[3])


def paths_of(kind: ResourceKind) -> Iterator[tuple[str, Item]]:
    """Yield each URL path of a kind, with the OpenAPI path item that describes its operations."""
    root = f"/apis/{kind.api_version}" if kind.group else f"/api/{kind.api_version}"
    if kind.namespaced:
        if "list" in kind.verbs:
            yield f"{root}/{kind.plural}", _everywhere(kind)
        root = f"{root}/namespaces/{{namespace}}"
    collection = f"{root}/{kind.plural}"
    yield from _present(collection, _operations(kind, _COLLECTION), kind, named=False)
    single = f"{collection}/{{name}}"
    yield from _present(single, _operations(kind, _SINGLE), kind, named=True)
    for part in kind.subresources:
        operations = _part_operations(kind, part)
        yield from _present(f"{single}/{part.name}", operations, kind, named=True)


def part_component(kind: ResourceKind, part: Subresource) -> str:
    """Return the name of the schema component that describes a subresource."""
    if part.group is None:
        return component_name(kind, part.kind)
    return component_name(
        ResourceKind(part.group, part.version, part.kind, "", "", namespaced=False)
    )


def _everywhere(kind: ResourceKind) -> Item:
    name = f"list{_title(kind)}{kind.kind}ForAllNamespaces"
    operation = _operation(kind, _COLLECTION[0], name, component_name(kind, kind.list_kind))
    return _item({"get": operation}, [])


def _present(
    path: str, operations: dict[str, Item], kind: ResourceKind, *, named: bool
) -> Iterator[tuple[str, Item]]:
    if not operations:
        return
    shared = []
    if kind.namespaced:
        shared.append(_in_path("namespace", "The namespace of the object."))
    if named:
        shared.append(_in_path("name", f"The name of the {kind.kind}."))
    yield path, _item(operations, shared)


def _item(operations: dict[str, Item], shared: list[Item]) -> Item:
    """Build a path item from its operations, and the parameters that all operations share.

    As in kube-apiserver, if there is only one operation, all its parameters count as shared.
    """
    shared = [*shared, _parameter("pretty")]
    if len(operations) == 1:
        ((method, operation),) = operations.items()
        parameters = operation.pop("parameters", None)
        shared += parameters if isinstance(parameters, list) else []
        operations = {method: operation}
    return {**operations, "parameters": sorted(shared, key=lambda each: str(each["name"]))}


def _operations(kind: ResourceKind, specs: tuple[_OperationSpec, ...]) -> dict[str, Item]:
    own, listed = component_name(kind), component_name(kind, kind.list_kind)
    scope = "Namespaced" if kind.namespaced else ""
    made = {}
    for spec in specs:
        if spec.verb not in kind.verbs:
            continue
        many = "Collection" if spec.verb == "deletecollection" else ""
        name = f"{spec.prefix}{_title(kind)}{many}{scope}{kind.kind}"
        made[spec.method] = _operation(kind, spec, name, listed if spec.verb == "list" else own)
    return made


def _part_operations(kind: ResourceKind, part: Subresource) -> dict[str, Item]:
    scope = "Namespaced" if kind.namespaced else ""
    end = f"{scope}{kind.kind}{part.name[:1].upper()}{part.name[1:]}"
    component = part_component(kind, part)
    mark = _mark(kind)
    if not kind.custom and part.group is not None:
        mark = {"group": part.group, "version": part.version, "kind": part.kind}
    made = {}
    for spec in _PART:
        if spec.verb in part.verbs:
            name = f"{spec.prefix}{_title(kind)}{end}"
            operation = _operation(kind, spec, name, component)
            words = f"{spec.words} the {part.name} of a {kind.kind}."
            made[spec.method] = {
                **operation,
                "description": words,
                "x-kubernetes-group-version-kind": mark,
            }
    return made


def _operation(kind: ResourceKind, spec: _OperationSpec, name: str, component: str) -> Item:
    served = _STREAMED if spec.verb == "list" and not kind.custom else _SERVED
    answer = f"{META}Status" if spec.method == "delete" else component
    codes = ("200",) if kind.custom and spec.verb == "patch" else spec.codes
    names = _OF_CUSTOM_KINDS.get(spec.verb, spec.parameters) if kind.custom else spec.parameters
    words = _words(kind.group)
    return {
        "tags": [f"{words[:1].lower()}{words[1:]}_{kind.version}"],
        "description": f"{spec.words} objects of the kind {kind.kind}.",
        "operationId": name,
        **({"parameters": [_parameter(each) for each in names]} if names else {}),
        **_request(kind, spec, component),
        "responses": {
            **{code: _answer(code, answer, served) for code in codes},
            "401": {"description": _MEANINGS["401"]},
        },
        "x-kubernetes-action": spec.action,
        "x-kubernetes-group-version-kind": _mark(kind),
    }


def _request(kind: ResourceKind, spec: _OperationSpec, component: str) -> Item:
    if spec.verb == "deletecollection" and kind.custom:
        return {}
    if spec.body == "options":
        content = _content(f"{META}DeleteOptions", _SERVED if kind.custom else ("*/*",))
        return {"requestBody": {"content": content}}
    if spec.body == "patch":
        forms = (*_PATCHES, *(() if kind.custom else (_STRATEGIC,)), _APPLY)
        return {"requestBody": {"content": _content(f"{META}Patch", forms), "required": True}}
    if spec.body == "object":
        content = _content(component, _SERVED if kind.custom else ("*/*",))
        return {"requestBody": {"content": content, "required": True}}
    return {}


def _answer(code: str, component: str, served: tuple[str, ...]) -> Item:
    return {"description": _MEANINGS[code], "content": _content(component, served)}


def _content(component: str, media: tuple[str, ...]) -> Item:
    schema = {"schema": referring(component)}
    return dict.fromkeys(media, schema)


@cache
def _parameter(name: str) -> Item:
    kind, description = PARAMETERS[name]
    schema = {"type": kind, "uniqueItems": True}
    return {"name": name, "in": "query", "description": description, "schema": schema}


def _in_path(name: str, description: str) -> Item:
    schema = {"type": "string", "uniqueItems": True}
    place = {"name": name, "in": "path", "description": description}
    return {**place, "required": True, "schema": schema}


def _mark(kind: ResourceKind) -> Item:
    return {"group": kind.group, "version": kind.version, "kind": kind.kind}


_WORDS = re.compile(r"[^A-Za-z0-9]+")


@cache
def _words(group: str) -> str:
    """Convert the name of an API group to the form that operation IDs have: `RbacAuthorization`."""
    text = (group or "core").removesuffix(".k8s.io")
    return "".join(word[:1].upper() + word[1:] for word in _WORDS.split(text))


def _title(kind: ResourceKind) -> str:
    return f"{_words(kind.group)}{kind.version[:1].upper()}{kind.version[1:]}"
