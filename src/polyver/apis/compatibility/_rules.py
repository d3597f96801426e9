"""All rules of findings, with severity and advice; the reference documentation lists them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

__all__ = ["RULES", "FindingRule", "FindingSeverity"]


class FindingSeverity(Enum):
    """The degree to which a change breaks existing users."""

    BREAKING = "breaking"
    """Existing objects or clients stop working."""
    RISKY = "risky"
    """They may stop working: it depends on their data, or the schema does not show it."""
    SAFE = "safe"
    """Nothing stops working; the change is only reported."""

    @property
    def rank(self) -> int:
        """The position in order of severity; 0 is the worst."""
        return [*FindingSeverity].index(self)


@dataclass(frozen=True, slots=True)
class FindingRule:
    """A type of finding."""

    name: str
    severity: FindingSeverity
    about: str
    advice: str
    """One sentence; `{other}` stands for a field that the finding names."""


# From Kubernetes 1.30 on, kube-apiserver accepts updates that leave invalid values unchanged.
_KEPT = (
    "from Kubernetes 1.30 on, updates that leave such a value as it is still pass, but nobody can "
    "write it anew"
)
_KEPT_AROUND = (
    "from Kubernetes 1.30 on, updates still pass that change nothing at all beside or inside of it"
)

_BREAKING = {
    "field-removed": (
        "a field is gone, and what objects hold in it is dropped in silence",
        "Keep it, say in its description that it is deprecated, and leave it out of a new version "
        "that is converted to and from this one",
    ),
    "field-renamed": (
        "a field is gone, and a new one beside it has the same schema",
        "If it became {other}, keep this one and rename it in a new version, with a conversion "
        "that moves the value; nothing moves it within one version",
    ),
    "type-changed": (
        "values of the type that was there are refused",
        "Add a field of the new type beside it, or change the type in a new version with a "
        "conversion",
    ),
    "enum-added": (
        "any value was right, and only a few are now",
        f"List every value that is in use, or list them in a new version; {_KEPT}",
    ),
    "enum-narrowed": (
        "values of an enum are gone",
        f"Keep them, deprecate them first, or leave them out of a new version; {_KEPT}",
    ),
    "required-field-added": (
        "a new field is required and has no default",
        f"Give it a default, or make it optional; {_KEPT_AROUND}",
    ),
    "required-added": (
        "an optional field became required and has no default",
        f"Give it a default, or require it in a new version only; {_KEPT_AROUND}",
    ),
    "required-exposed": (
        "a required field lost its default, so whoever left it out is refused",
        "Keep the default, or make the field optional",
    ),
    "limit-added": (
        "a bound is new: of a number, a text, a list or a map",
        f"Take it back, or set it in a new version; {_KEPT}",
    ),
    "limit-tightened": (
        "a bound became tighter",
        f"Take it back, or tighten it in a new version; {_KEPT}",
    ),
    "nullable-removed": (
        "null meant something, and is now dropped or refused",
        "Keep nullable, or let absence mean what null meant in a new version with a conversion",
    ),
    "default-refused": (
        "a new field has a default that its own schema refuses, so every object without it is",
        "Choose a default that is right",
    ),
    "unknown-dropped": (
        "fields without a schema were kept, and are now dropped in silence",
        "Keep x-kubernetes-preserve-unknown-fields until every field that is in use has a schema",
    ),
    "values-narrowed": (
        "a map takes less than it did",
        "Keep additionalProperties as they were, and narrow them in a new version",
    ),
    "embedded-added": (
        "what is in a field must now be a whole object, with apiVersion, kind and metadata",
        "Set x-kubernetes-embedded-resource in a new version only",
    ),
    "embedded-removed": (
        "apiVersion, kind and metadata of an embedded object are no longer known",
        "Keep x-kubernetes-embedded-resource, or give these fields a schema of their own",
    ),
    "list-keyed": (
        "a list became a set or a map, or has other keys: doubles are refused, and ownership in "
        "server-side apply is by other keys",
        "Keep the list-type and its keys, and change them in a new version; an object that holds "
        "doubles can still be updated, but its owners in server-side apply are lost",
    ),
    "unique-added": (
        "uniqueItems is new",
        "The real server refuses uniqueItems: use x-kubernetes-list-type set in a new version",
    ),
    "identity-changed": (
        "the group, the plural, the kind or the scope of a definition changed",
        "The real server refuses this: make another definition, and copy the objects over",
    ),
    "stored-version-removed": (
        "a version is gone in which objects may be stored",
        "The real server refuses this: retire the version first, which rewrites what is stored "
        "and trims status.storedVersions",
    ),
    "served-version-removed": (
        "a served version is gone",
        "Deprecate it first, then unserve it, and drop it when nobody asks for it any more and no "
        "managedFields name it: they would keep appliers from applying",
    ),
    "version-unserved": (
        "a version is no longer served, so its clients get 404",
        "Deprecate it first, and unserve it when its clients have moved",
    ),
    "status-removed": (
        "the status subresource is gone: clients that write it get 404",
        "Keep it, and leave it out of a new version",
    ),
    "scale-removed": (
        "the scale subresource is gone, so autoscalers and kubectl scale fail",
        "Keep it, and leave it out of a new version",
    ),
    "selectable-removed": (
        "a field can no longer be selected by, and requests that do are refused",
        "Keep it among selectableFields, and leave it out of a new version",
    ),
}

_RISKY = {
    "field-claimed": (
        "a new field stands where unknown fields were kept: objects may hold something else in it",
        "Look at what objects hold there, or choose a name that none of them uses",
    ),
    "field-filled-in": (
        "a new field has a default, in an object whose number of fields, alternatives or rules "
        "are checked",
        "Make sure that an object with nothing but the default passes them, or drop the default",
    ),
    "type-widened": (
        "values of further types are right, which clients may not know how to read",
        "Tell clients before anyone writes such a value, or widen the type in a new version",
    ),
    "limit-changed": (
        "a bound or a multiple changed in a way that cannot be compared",
        f"Make sure that every value in use is still right; {_KEPT}",
    ),
    "pattern-changed": (
        "a pattern is new or another",
        f"Make sure that every text in use still matches; {_KEPT}",
    ),
    "format-changed": (
        "a format is new or another",
        f"Make sure that every value in use still has it; {_KEPT}",
    ),
    "default-changed": (
        "a default changed, for objects that left the field out, too",
        "Keep the default, and choose another in a new version",
    ),
    "default-removed": (
        "a default is gone, so readers find nothing where there was always something",
        "Keep the default, or let every reader cope with absence first",
    ),
    "default-added": (
        "a default is new in a field that was there: objects that left it out now have it",
        "Make sure that the default means what absence meant",
    ),
    "null-kept": (
        "null was dropped or replaced by the default, and is now kept where an enum, a number of "
        "fields, alternatives or rules are checked, or a default was meant",
        "Leave nullable away: absence says the same",
    ),
    "unknown-refused": (
        "fields without a schema were dropped, and are now refused",
        "Leave additionalProperties away: unknown fields are dropped, and clients that ask for it "
        "are told",
    ),
    "list-merged": (
        "a set or a map became atomic, so server-side apply replaces it as a whole",
        "Keep the list-type: appliers that own single items would take the others away",
    ),
    "map-merged": (
        "x-kubernetes-map-type changed, so server-side apply owns it in another way",
        "Keep the map-type, and change it in a new version",
    ),
    "alternatives-changed": (
        "anyOf, oneOf, allOf or not changed in a way that cannot be compared",
        f"Make sure that every object in use still passes; {_KEPT_AROUND}",
    ),
    "rule-added": (
        "a rule in CEL is new or another",
        "Make sure that every object in use passes, or let the rule look at what changes only, "
        "with oldSelf and optionalOldSelf",
    ),
    "keyword-changed": (
        "a keyword changed that is not known here",
        "Make sure that every object in use is still right",
    ),
    "storage-moved": (
        "another version is the one that is stored",
        "Keep the version that was stored until every object is rewritten and "
        "status.storedVersions trimmed; until then going back is possible",
    ),
    "names-changed": (
        "the singular, the list kind, a short name or a category changed or is gone",
        "Keep the names that people and scripts use, and add new ones beside them",
    ),
    "status-added": (
        "the status subresource is new: a status in a plain write is ignored",
        "Let every controller write to /status first, or add it in a new version",
    ),
    "scale-changed": (
        "the scale subresource reads or writes other fields",
        "Keep its paths, and change them in a new version",
    ),
    "conversion-changed": (
        "the strategy of conversion changed",
        "Make sure that every stored object can be read in every served version before and after: "
        "None changes nothing but apiVersion, and Webhook fails when nobody answers",
    ),
}

_SAFE = {
    "field-added": ("a field is new, and optional or filled in", "Nothing to do"),
    "field-freed": (
        "a field lost its schema, but is kept as it is",
        "Nothing to do; clients may find anything in it",
    ),
    "enum-widened": (
        "an enum has more values, or is gone",
        "Make sure that clients cope with values that they do not know",
    ),
    "required-removed": (
        "a required field became optional",
        "Make sure that readers cope with absence",
    ),
    "required-filled-in": (
        "a field is required, and has a default",
        "Nothing to do: the default fills it in wherever it is missing",
    ),
    "limit-widened": ("a bound is wider, or gone", "Make sure that readers cope with it"),
    "pattern-removed": ("a pattern is gone", "Make sure that readers cope with any text"),
    "format-widened": ("a format is wider, or gone", "Make sure that readers cope with it"),
    "nullable-added": ("null may be written", "Make sure that readers cope with null"),
    "unknown-kept": (
        "fields without a schema are kept, or no longer refused",
        "Nothing to do",
    ),
    "values-widened": ("a map takes more than it did", "Make sure that readers cope with it"),
    "unique-removed": ("uniqueItems are gone", "Nothing to do"),
    "alternatives-widened": (
        "an alternative is new, or a condition is gone",
        "Make sure that readers cope with it",
    ),
    "rule-removed": ("a rule in CEL is gone", "Make sure that readers cope with it"),
    "version-added": (
        "a version is new",
        "Make sure that conversion reaches it before it is served",
    ),
    "version-removed": (
        "a version is gone that was neither served nor stored",
        "Nothing to do",
    ),
    "version-served": ("a version is served that was not", "Nothing to do"),
    "version-deprecated": (
        "a version became deprecated, so its clients are warned",
        "Say in deprecationWarning what to use instead",
    ),
    "scale-added": ("the scale subresource is new", "Nothing to do"),
    "selectable-added": ("a further field can be selected by", "Nothing to do"),
    "columns-changed": (
        "the columns that kubectl get prints are others",
        "Nothing to do, unless scripts read them",
    ),
    "names-added": ("a short name or a category is new", "Nothing to do"),
}

_TABLES = {
    FindingSeverity.BREAKING: _BREAKING,
    FindingSeverity.RISKY: _RISKY,
    FindingSeverity.SAFE: _SAFE,
}

RULES: Mapping[str, FindingRule] = {
    name: FindingRule(name, severity, about, advice)
    for severity, table in _TABLES.items()
    for name, (about, advice) in table.items()
}
