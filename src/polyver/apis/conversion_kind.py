"""The kind Conversion. Each Conversion declares how to convert the objects of another kind.

Users apply Conversions to a server.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal

from polyver.apis.checking import check_acknowledged, check_types, check_writing
from polyver.apis.conversion import Converter, DeclaredConversion, build_converter, read_conversion
from polyver.apis.declaring import Anything, Field, Kind, ListMap
from polyver.apis.definition import Column, Definition
from polyver.apis.manifests import definitions_of
from polyver.core import PolyverError
from polyver.kube.objects import Document, encode_json, load_manifests

__all__ = [
    "CONVERSIONS",
    "FORCED",
    "converter_left",
    "converter_of",
    "definition_of",
    "needed_versions",
    "place_of",
    "versions_in_use",
]

FORCED: Final = "conversion.polyver.dev/remove-by-force"
"""Annotation with which a user permits the deletion of a Conversion that its kind still needs.

Its value must list all versions of the kind that are in use, separated by commas.
"""

CONVERSIONS: Final = Kind(
    "Conversion", group="polyver.dev", scope="Cluster", categories=["polyver"]
)


@CONVERSIONS.version(
    "v1alpha1",
    columns=[
        Column("Kind", ".spec.kind"),
        Column("Versions", ".spec.versions"),
        Column("Serving", '.status.conditions[?(@.type=="Serving")].status'),
        Column("Age", ".metadata.creationTimestamp", "date"),
    ],
)
class ConversionV1Alpha1:
    """The conversion between the versions of a kind.

    Each Conversion must have the name of the CustomResourceDefinition of its kind.
    """

    class Spec:
        class Edge:
            source: str = Field(name="from")
            """The version from which the rules convert."""
            target: str = Field(name="to")
            """The version to which the rules convert."""
            rules: list[Anything] | None
            """The rules, which work in both directions. Each rule is an object with one key.

            The key is the name of the rule: add, cast, cel, const, default, drop, duration, each,
            join, keyed, move, pattern, quantity, recurse, rename_keys, reverse, scale, split,
            values, when, within or wrap. For example:
            `{move: {from: spec.cronSpec, to: spec.schedule}}`.
            """

        group: str
        """The API group of the kind."""
        kind: str
        """The kind whose objects are converted, such as CronTab."""
        versions: list[str]
        """All versions of the kind, including those that are not served."""
        hub: str | None
        """The hub: the version in the centre of the tree of edges. This field is optional."""

        class Preserved:
            version: str
            """The version that has the fields."""
            fields: list[str] | None
            """Fields that another version cannot express: spec.mode, spec.ports[].name."""
            editsLose: list[str] | None  # noqa: N815 - the name in YAML
            """Lists in which an edit of an item in another version may lose data: spec.ports[]."""

        completeness: Literal["acknowledged"] | None
        """If it is acknowledged, each field that a version cannot express must be named.

        It must be named in a rule drop or add, or in the field preserved. This field is optional.
        """
        preserved: list[Preserved] | None
        """Fields of which the author has decided that polyver preserves them."""
        edges: list[Edge] | None
        """The edges: pairs of versions with the rules between them.

        The edges must connect all versions to one tree.
        """

    class Status:
        class Condition:
            type: str
            status: str
            reason: str
            message: str
            since: str = Field(name="lastTransitionTime")
            generation: int | None = Field(name="observedGeneration", default=None)

        conditions: Annotated[list[Condition], ListMap("type")] | None
        """The conditions of this Conversion. `Serving` states whether the Conversion is in use."""

    spec: Spec
    status: Status | None


def converter_of(conversion: Mapping[str, Any], crd: Mapping[str, Any] | None) -> Converter:
    """Build the converter of a Conversion. If the CRD is given, the converter uses its schemas.

    Raise an error if the Conversion does not fit the CRD: if it has other versions than the CRD, if
    a rule writes a field that does not exist, if a rule does not fit the type of its field, or if
    nobody has decided to preserve a field, although the Conversion requires it.
    """
    declared, definition = _read(conversion, crd)
    if definition is None:
        return build_converter(declared)
    made = build_converter(declared, definition)
    check_writing(declared, definition)
    check_types(declared, definition)
    schemas = {each.name: each.schema for each in definition.versions if each.schema is not None}
    check_acknowledged(declared, made, schemas, definition.name)
    return made


def converter_left(conversion: Mapping[str, Any], crd: Mapping[str, Any]) -> Converter:
    """Build a converter for a Conversion that no longer fits its CRD, because the CRD has changed.

    The converter uses the CRD's schemas for the versions that the Conversion names. If a rule
    writes to a field that does not exist, the converter preserves the written value.
    """
    declared, definition = _read(conversion, crd)
    known = definition.versions if definition else ()
    return Converter(
        declared.group,
        declared.kind,
        declared.versions,
        declared.edges,
        hub=declared.hub,
        schemas={
            each.name: each.schema
            for each in known
            if each.schema is not None and each.name in declared.versions
        },
    )


def _read(
    conversion: Mapping[str, Any], crd: Mapping[str, Any] | None
) -> tuple[DeclaredConversion, Definition | None]:
    document = _document(conversion)
    declared = read_conversion(document)
    if crd is None:
        return declared, None
    definition = definition_of(crd)
    if (declared.group, declared.kind) != (definition.group, definition.kind):
        fact = f"{definition.name} defines {definition.kind}, not {declared.kind}"
        raise document.error(fact, "spec", "kind")
    return declared, definition


def versions_in_use(crd: Mapping[str, Any]) -> list[str]:
    """Return the versions of a kind that are served, or in which objects are stored."""
    stored = (crd.get("status") or {}).get("storedVersions") or ()
    versions = crd["spec"]["versions"]
    found = [each["name"] for each in versions if each.get("served", True) or each.get("storage")]
    return list(dict.fromkeys([*found, *stored]))


def needed_versions(conversion: Mapping[str, Any], crd: Mapping[str, Any] | None) -> list[str]:
    """Return the versions in use for which a Conversion is needed; [] if it may be deleted.

    If a needed Conversion were deleted, objects would lose data. The list is empty if the kind has
    only one version in use, or if the Conversion is for another kind. It is also empty if an
    annotation of the Conversion names all versions in use: with this annotation, the user permits
    the deletion.
    """
    used = versions_in_use(crd) if crd is not None and _is_for(conversion, crd) else []
    annotations = conversion["metadata"].get("annotations") or {}
    forced = {each.strip() for each in str(annotations.get(FORCED, "")).split(",")}
    return [] if len(used) < 2 or forced >= {*used} else used


def _is_for(conversion: Mapping[str, Any], crd: Mapping[str, Any]) -> bool:
    spec, defined = conversion.get("spec") or {}, crd["spec"]
    return (spec.get("group"), spec.get("kind")) == (defined["group"], defined["names"]["kind"])


def definition_of(crd: Mapping[str, Any]) -> Definition:
    """Parse a CustomResourceDefinition that was read from a server."""
    [found] = definitions_of([_document(crd)])
    return found


def _document(obj: Mapping[str, Any]) -> Document:
    name = f"{obj['kind']}/{obj['metadata'].get('name', '')}"
    [found] = load_manifests(encode_json(obj).decode(), name)
    return found


def place_of(error: PolyverError) -> str:
    """Return the path of the field that an error names, without the manifest's file and line."""
    return error.at.partition(", ")[2]
