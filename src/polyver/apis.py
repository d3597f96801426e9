"""Declaring kinds: what a project imports to say what its API versions are."""

from typing import TYPE_CHECKING

from polyver.core.loading import imported_on_use

if TYPE_CHECKING:
    from polyver.capabilities.apis._crds import (
        crd_of,
    )
    from polyver.capabilities.apis._definition import (
        Column,
        DefinedVersion,
        Definition,
        InvalidKind,
        Names,
        Scale,
    )
    from polyver.capabilities.apis._manifests import (
        definitions_of,
    )
    from polyver.capabilities.apis.conversion import (
        CarryTooLarge,
        Converter,
        NotConvertible,
        Rules,
    )
    from polyver.capabilities.apis.declaring import (
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
    from polyver.objects.webhooks import (
        Webhook,
    )

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
        "polyver.capabilities.apis._crds": "crd_of",
        "polyver.capabilities.apis._definition": (
            "Column DefinedVersion Definition InvalidKind Names Scale"
        ),
        "polyver.capabilities.apis._manifests": "definitions_of",
        "polyver.capabilities.apis.conversion": ("CarryTooLarge Converter NotConvertible Rules"),
        "polyver.capabilities.apis.declaring": (
            "ABSENT Anything Atomic Description EmbeddedResource Field Fields Format Ge "
            "Granular Gt IntOrString Kind Le ListMap ListSet Lt MaxLength MinLength "
            "MultipleOf NotAsDeclared Nullable Outcome Pattern Preserve Problem Rule "
            "from_object part read_kinds to_object"
        ),
        "polyver.objects.webhooks": "Webhook",
    },
)
