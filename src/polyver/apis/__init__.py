"""Public API for declaring kinds and their API versions in Python."""

from typing import TYPE_CHECKING

from polyver.core.loading import imported_on_use

if TYPE_CHECKING:
    from polyver.apis.conversion import CarryTooLarge, Converter, NotConvertible, Rules
    from polyver.apis.crds import crd_of
    from polyver.apis.declaring import (
        ABSENT,
        Anything,
        Atomic,
        Description,
        EmbeddedResource,
        Field,
        Fields,
        Format,
        Ge,
        Granular,
        Gt,
        IntOrString,
        Kind,
        Le,
        ListMap,
        ListSet,
        Lt,
        MaxLength,
        MinLength,
        MultipleOf,
        NotAsDeclared,
        Nullable,
        Outcome,
        Pattern,
        Preserve,
        Problem,
        Rule,
        from_object,
        part,
        read_kinds,
        to_object,
    )
    from polyver.apis.definition import (
        Column,
        DefinedVersion,
        Definition,
        InvalidKind,
        Names,
        Scale,
    )
    from polyver.apis.manifests import definitions_of
    from polyver.kube.objects.webhooks import Webhook

__all__ = [
    "ABSENT",
    "Anything",
    "Atomic",
    "CarryTooLarge",
    "Column",
    "Converter",
    "DefinedVersion",
    "Definition",
    "Description",
    "EmbeddedResource",
    "Field",
    "Fields",
    "Format",
    "Ge",
    "Granular",
    "Gt",
    "IntOrString",
    "InvalidKind",
    "Kind",
    "Le",
    "ListMap",
    "ListSet",
    "Lt",
    "MaxLength",
    "MinLength",
    "MultipleOf",
    "Names",
    "NotAsDeclared",
    "NotConvertible",
    "Nullable",
    "Outcome",
    "Pattern",
    "Preserve",
    "Problem",
    "Rule",
    "Rules",
    "Scale",
    "Webhook",
    "crd_of",
    "definitions_of",
    "from_object",
    "part",
    "read_kinds",
    "to_object",
]

__getattr__ = imported_on_use(
    __name__,
    {
        "polyver.apis.crds": "crd_of",
        "polyver.apis.definition": ("Column DefinedVersion Definition InvalidKind Names Scale"),
        "polyver.apis.manifests": "definitions_of",
        "polyver.apis.conversion": ("CarryTooLarge Converter NotConvertible Rules"),
        "polyver.apis.declaring": (
            "ABSENT Anything Atomic Description EmbeddedResource Field Fields Format Ge "
            "Granular Gt IntOrString Kind Le ListMap ListSet Lt MaxLength MinLength "
            "MultipleOf NotAsDeclared Nullable Outcome Pattern Preserve Problem Rule "
            "from_object part read_kinds to_object"
        ),
        "polyver.kube.objects.webhooks": "Webhook",
    },
)
