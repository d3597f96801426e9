"""Reads the input files of `polyver render`, and validates them by the schemas of their kinds."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

import msgspec

from polyver.capability import Refusal
from polyver.cli.exit_codes import Misused, RequestRefused, UnreadableInput
from polyver.cli.files import read_manifests
from polyver.cli.loading import documents_of
from polyver.cli.output import warn
from polyver.compositions.decisions import (
    CompositeKind,
    Secret,
    check_composition,
    check_definition,
    definition_crd,
    read_definition,
)
from polyver.compositions.kinds import (
    COMPOSITION_REVISIONS,
    COMPOSITIONS,
    DEFINITIONS,
    FUNCTION_REVISIONS,
    FUNCTIONS,
)
from polyver.compositions.names import COMPOSITION, PACKAGE, RESOURCE
from polyver.compositions.packages import check_package, check_reference
from polyver.core import listed
from polyver.core.plain import Object
from polyver.kube.objects import Document
from polyver.kube.objects.codec import prepare
from polyver.kube.objects.validation import conformed, field_path

if TYPE_CHECKING:
    from polyver.apis.declaring import Kind

__all__ = [
    "LocatedObject",
    "compositions_in",
    "functions_in",
    "located",
    "read_annotations",
    "read_composite_resource",
    "read_compositions",
    "read_context",
    "read_credentials",
    "read_functions",
    "read_observed",
    "read_required",
    "read_xrd",
]


@dataclass(frozen=True, slots=True)
class LocatedObject:
    """An object, and the document in an input file from which it was read."""

    document: Document
    obj: Object

    @property
    def name(self) -> str:
        return str(self.obj["metadata"].get("name") or "without a name")

    @property
    def kind(self) -> str:
        return str(self.obj["kind"])

    def __str__(self) -> str:
        return f"{self.kind} {self.name}"


def located(refusal: Refusal, written: LocatedObject) -> RequestRefused:
    """Convert a refusal to an error that names the file and the line of the refused field."""
    _, _, field = refusal.at.rpartition(", ")
    place = written.document.place(*field_path(field))
    return RequestRefused(refusal.fact, at=place, hint=refusal.hint)


class _Unnamed(msgspec.Struct):
    name: str = ""
    namespace: str = ""
    uid: str = ""
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}


class _Metadata(_Unnamed, kw_only=True):
    name: str


class _Observed(msgspec.Struct, rename="camel"):
    """The required fields of an observed resource. Unlike other objects, it may lack a name."""

    api_version: str
    kind: str
    metadata: _Unnamed = msgspec.field(default_factory=_Unnamed)


class _Any(msgspec.Struct, rename="camel"):
    """The required fields of an object that is not an observed resource."""

    api_version: str
    kind: str
    metadata: _Metadata


class _Composite(_Any):
    spec: dict[str, Any] = {}


prepare(_Any, _Composite, _Observed)


def _objects(path: str, shape: type[_Any | _Observed] = _Any) -> list[LocatedObject]:
    return _objects_in(documents_of([path]), shape)


def _objects_in(
    documents: Iterable[Document], shape: type[_Any | _Observed] = _Any
) -> list[LocatedObject]:
    found = []
    for each in documents:
        document = each.without_nulls()
        document.read(shape)
        assert isinstance(document.value, dict)
        given = document.value.get("metadata") or {}
        # Ignore the owners of fields: no object is applied.
        metadata = {k: v for k, v in given.items() if k != "managedFields"}
        found.append(LocatedObject(document, {**document.value, "metadata": metadata}))
    return found


def _only(path: str, what: str, shape: type[_Any] = _Any) -> LocatedObject:
    found = _objects(path, shape)
    if not found:
        raise UnreadableInput(f"there is no {what}", at=path)
    if len(found) > 1:
        fact = f"there is a second object: {found[1]}"
        raise found[1].document.error(fact, hint=f"one {what} is expected")
    return found[0]


def read_composite_resource(path: str) -> LocatedObject:
    """Read the composite resource, without validating it by a schema; `read_xrd` does that."""
    return _only(path, "composite resource", _Composite)


# Validation by kind.


@cache
def _schemas(kind: Kind) -> Mapping[str, Mapping[str, Any]]:
    definition = kind.definition()
    return {
        f"{definition.group}/{each.name}": each.schema
        for each in definition.versions
        if each.schema is not None
    }


def _of_kind(written: LocatedObject, kinds: Collection[Kind]) -> LocatedObject:
    """Validate an object by the schema of its kind, and return it with defaults."""
    known = {
        (version, kind.kind): each for kind in kinds for version, each in _schemas(kind).items()
    }
    api_version, kind = written.obj["apiVersion"], written.kind
    schema = known.get((api_version, kind))
    if schema is None:
        expected = listed([f"{kind} of {version}" for version, kind in known], most=4)
        fact = f"{kind} of {api_version} is not expected here"
        raise written.document.error(fact, "kind", hint=f"expected {expected}")
    return LocatedObject(written.document, conformed(written.document, schema))


def read_compositions(path: str) -> list[LocatedObject]:
    """Read the Compositions and CompositionRevisions. Raise an error if there are none."""
    found = compositions_in(documents_of([path]))
    if not found:
        raise UnreadableInput("there is no Composition", at=path)
    return found


def compositions_in(documents: Iterable[Document]) -> list[LocatedObject]:
    """Validate documents that are Compositions or CompositionRevisions."""
    kinds = (COMPOSITIONS, COMPOSITION_REVISIONS)
    found = [_of_kind(each, kinds) for each in _objects_in(documents)]
    for each in found:
        if each.kind == COMPOSITION_REVISIONS.kind:
            _check_label(each, COMPOSITION, "composition")
        _raise_first(check_composition(each.obj, several=True), each)
    _check_distinct(found)
    return found


def read_functions(path: str) -> list[LocatedObject]:
    """Read the Functions and FunctionRevisions.

    If a Function occurs several times, the command later treats its packages as if they were
    installed one after the other.
    """
    return functions_in(documents_of([path]))


def functions_in(documents: Iterable[Document]) -> list[LocatedObject]:
    """Validate documents that are Functions or FunctionRevisions."""
    kinds = (FUNCTIONS, FUNCTION_REVISIONS)
    found = [_of_kind(each, kinds) for each in _objects_in(documents)]
    for each in found:
        if each.kind == FUNCTION_REVISIONS.kind:
            _check_label(each, PACKAGE, "function")
            _raise_first(check_reference(each.obj["spec"]["image"], at="spec.image"), each)
        else:
            _raise_first(check_package(each.obj, several=True), each)
    _check_distinct(each for each in found if each.kind == FUNCTION_REVISIONS.kind)
    return found


def _check_label(written: LocatedObject, label: str, what: str) -> None:
    if not (written.obj["metadata"].get("labels") or {}).get(label):
        fact = f"{written.name} has no label that names its {what}"
        hint = f"the label {label} is needed"
        raise written.document.error(fact, "metadata", "labels", hint=hint)


def _check_distinct(written: Iterator[LocatedObject] | Sequence[LocatedObject]) -> None:
    known: dict[tuple[str, str], LocatedObject] = {}
    for each in written:
        before = known.setdefault((each.kind, each.name), each)
        if before is not each:
            fact = f"{each} is declared twice"
            hint = f"the first is at {before.document.place('metadata', 'name')}"
            raise each.document.error(fact, "metadata", "name", hint=hint)


def _raise_first(refusals: Sequence[Refusal], written: LocatedObject) -> None:
    for refusal in refusals:
        place = field_path(refusal.at)
        raise written.document.error(refusal.fact, *place, hint=refusal.hint)


def read_xrd(path: str, composite: LocatedObject) -> tuple[CompositeKind, Object]:
    """Read the CompositeResourceDefinition, and validate the composite resource by its schema.

    Return the defined kind, and the composite resource with defaults.
    """
    written = _of_kind(_only(path, "CompositeResourceDefinition"), (DEFINITIONS,))
    _raise_first(check_definition(written.obj), written)
    defined = read_definition(written.obj)
    kinds = {each["name"]: each for each in definition_crd(written.obj)["spec"]["versions"]}
    group, _, version = composite.obj["apiVersion"].rpartition("/")
    if (group, composite.kind) != (defined.group, defined.kind):
        fact = f"{defined.name} defines {defined.kind} of {defined.group}"
        hint = f"the composite resource is a {composite.kind} of {group}"
        raise written.document.error(fact, "spec", "names", "kind", hint=hint)
    if version not in kinds:
        fact = f"{defined.name} has no version {version}"
        hint = f"known: {listed([*kinds])}"
        raise composite.document.error(fact, "apiVersion", hint=hint)
    return defined, conformed(composite.document, kinds[version]["schema"]["openAPIV3Schema"])


# Other resources.


def read_observed(path: str, composite: LocatedObject) -> dict[str, Object]:
    """Read the observed composed resources. Return them by their names in the pipeline.

    Print a warning for each resource that has another owner, or no name in the pipeline: the
    controller would not pass it to functions. Like Crossplane's command, this function returns such
    a resource nevertheless.
    """
    found: dict[str, LocatedObject] = {}
    for each in _objects(path, _Observed):
        name = (each.obj["metadata"].get("annotations") or {}).get(RESOURCE) or ""
        if not name:
            place = each.document.place("metadata", "annotations")
            fact = f"{each} has no name in the pipeline"
            warn(f"{fact} ({place}); set the annotation {RESOURCE}")
        if name in found:
            place = each.document.place("metadata", "annotations")
            warn(f'"{name}" is {found[name]} and {each} ({place}); the last one is used')
        _warn_of_owner(each, composite)
        found[name] = each
    return {name: each.obj for name, each in found.items()}


def _warn_of_owner(written: LocatedObject, composite: LocatedObject) -> None:
    """Print a warning if the controller of a resource is not the composite resource.

    The controller of composite resources would not pass such a resource to functions.
    """
    about = composite.obj["metadata"]
    for place, owner in enumerate(written.obj["metadata"].get("ownerReferences") or ()):
        if not isinstance(owner, dict) or not owner.get("controller"):
            continue
        uid = about.get("uid") or owner.get("uid")
        same = (owner.get("kind"), owner.get("name"), owner.get("uid"))
        if same != (composite.kind, about["name"], uid):
            at = written.document.place("metadata", "ownerReferences", place)
            fact = f"{written} belongs to {owner.get('kind')} {owner.get('name')}"
            warn(f"{fact} ({at}); on a cluster {composite} would ignore it")


def read_required(paths: Sequence[str]) -> list[Object]:
    """Read the objects that functions may require."""
    return [each.obj for path in paths for each in _objects(path, _Observed)]


class _Secret(_Any, rename="camel"):
    data: dict[str, str] = {}
    string_data: dict[str, str] = {}


prepare(_Secret)


def read_credentials(path: str) -> dict[Secret, dict[str, bytes]]:
    """Read the Secrets. Return the data of each Secret, decoded, by its namespace and name."""
    found: dict[Secret, dict[str, bytes]] = {}
    for each in _objects(path, _Secret):
        if (each.obj["apiVersion"], each.kind) != ("v1", "Secret"):
            fact = f"{each.kind} of {each.obj['apiVersion']} is not expected here"
            raise each.document.error(fact, "kind", hint="expected Secret of v1")
        read = each.document.read(_Secret)
        data = {key: _decoded(each.document, key, text) for key, text in read.data.items()}
        data |= {key: text.encode() for key, text in read.string_data.items()}
        found[Secret(read.metadata.namespace or "default", read.metadata.name)] = data
    return found


def _decoded(document: Document, key: str, text: str) -> bytes:
    try:
        return base64.b64decode("".join(text.split()), validate=True)
    except (binascii.Error, ValueError):
        hint = "encode it, or write it under stringData"
        raise document.error("this is not base64", "data", key, hint=hint) from None


# The pipeline's context.


def read_context(files: Sequence[str], values: Sequence[str]) -> Object:
    """Build the initial context of the pipeline from files and values.

    If a key has both a file and a value, use the value.
    """
    found: Object = {}
    for text in files:
        key, path = _pair(text, "--context-files", "KEY=FILE")
        documents = read_manifests([path])
        if len(documents) != 1:
            fact = f"{path} contains {len(documents)} documents"
            raise UnreadableInput(fact, at="--context-files", hint="one is expected")
        found[key] = documents[0].value
    for text in values:
        key, written = _pair(text, "--context-values", "KEY=JSON")
        try:
            found[key] = msgspec.json.decode(written)
        except msgspec.DecodeError as error:
            hint = "write strings in double quotes"
            fact = f"the value of {key} is not JSON: {error}"
            raise Misused(fact, at="--context-values", hint=hint) from None
    return found


def read_annotations(texts: Sequence[str]) -> dict[str, str]:
    """Parse KEY=VALUE texts to the annotations that the command sets on all Functions."""
    return dict(_pair(text, "--function-annotations", "KEY=VALUE") for text in texts)


def _pair(text: str, option: str, form: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not key or not equals:
        raise Misused(f"{text!r} is not a pair", at=option, hint=f"write {form}")
    return key, value
