"""All comparison rules, with severity and advice; the reference documentation lists the rules."""

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
    """Existing objects or clients may stop working. This depends on the stored data, or on
    something that the schema does not state.
    """
    SAFE = "safe"
    """Nothing stops working; the change is only reported."""

    @property
    def rank(self) -> int:
        """The position in the order of severities; 0 is the worst severity."""
        return [*FindingSeverity].index(self)


@dataclass(frozen=True, slots=True)
class FindingRule:
    """A type of finding."""

    name: str
    severity: FindingSeverity
    about: str
    advice: str
    """One sentence of advice. It may contain `{other}`, which is replaced by a field that the
    finding names.
    """


# From Kubernetes 1.30 on, kube-apiserver accepts an update of an object with an invalid value if
# the update does not change this value.
_KEPT = (
    "from Kubernetes 1.30 on, updates that do not change such a value still pass, but it cannot be "
    "written again"
)
_KEPT_AROUND = "from Kubernetes 1.30 on, updates still pass if nothing beside or inside it changes"

_BREAKING = {
    "field-removed": (
        "a field was removed; API servers silently drop its data from objects",
        "Keep it, mark it as deprecated in its description, and remove it in a new version with a "
        "conversion",
    ),
    "field-renamed": (
        "a field was removed, and a new one beside it has the same schema",
        "If it was renamed to {other}, keep it, and rename it in a new version with a conversion "
        "that moves the value; no conversion moves it within one version",
    ),
    "type-changed": (
        "values of the old type are refused",
        "Add a field of the new type beside it, or change the type in a new version with a "
        "conversion",
    ),
    "enum-added": (
        "any value was valid, and now only some are",
        f"List every value that is in use, or list them in a new version; {_KEPT}",
    ),
    "enum-narrowed": (
        "values were removed from an enum",
        f"Keep them, deprecate them first, or remove them in a new version; {_KEPT}",
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
        "a required field lost its default, so objects without the field are refused",
        "Keep the default, or make the field optional",
    ),
    "limit-added": (
        "there is a new limit for a number, a string, a list or a map",
        f"Remove it, or set it in a new version; {_KEPT}",
    ),
    "limit-tightened": (
        "a limit became tighter",
        f"Restore it, or tighten it in a new version; {_KEPT}",
    ),
    "nullable-removed": (
        "null was a valid value, and is now dropped or refused",
        "Keep nullable, or remove it in a new version, with a conversion in which absence means "
        "what null meant",
    ),
    "default-refused": (
        "a new field has a default that its own schema refuses, so every object without the field"
        " is refused",
        "Choose a valid default",
    ),
    "unknown-dropped": (
        "fields without a schema were kept, and are now silently dropped",
        "Keep x-kubernetes-preserve-unknown-fields until every field that is in use has a schema",
    ),
    "values-narrowed": (
        "a map accepts fewer values",
        "Keep additionalProperties as they were, and narrow them in a new version",
    ),
    "embedded-added": (
        "the value of a field must now be a whole object, with apiVersion, kind and metadata",
        "Set x-kubernetes-embedded-resource in a new version only",
    ),
    "embedded-removed": (
        "the schema no longer has apiVersion, kind and metadata of an embedded object",
        "Keep x-kubernetes-embedded-resource, or give these fields a schema of their own",
    ),
    "list-keyed": (
        "a list became a set or a map, or has other keys: duplicates are refused, and server-side"
        " apply tracks owners by other keys",
        "Keep the list-type and its keys, and change them in a new version; an object with "
        "duplicates can still be updated, but its owners in server-side apply are lost",
    ),
    "unique-added": (
        "uniqueItems was added",
        "kube-apiserver refuses uniqueItems: use x-kubernetes-list-type set in a new version",
    ),
    "identity-changed": (
        "the group, the plural, the kind or the scope of a CustomResourceDefinition changed",
        "kube-apiserver refuses this: create another CustomResourceDefinition, and copy the "
        "objects",
    ),
    "stored-version-removed": (
        "a version was removed in which objects may be stored",
        "kube-apiserver refuses this: retire the version first, which rewrites stored objects and"
        " trims status.storedVersions",
    ),
    "served-version-removed": (
        "a served version was removed",
        "Deprecate it first, then unserve it, and drop it when no client uses it and no "
        "managedFields name it: such entries would make server-side apply fail",
    ),
    "version-unserved": (
        "a version is no longer served, so its clients get 404",
        "Deprecate it first, and unserve it when its clients have moved",
    ),
    "status-removed": (
        "the status subresource was removed: clients that write it get 404",
        "Keep it, and remove it in a new version",
    ),
    "scale-removed": (
        "the scale subresource was removed, so autoscalers and kubectl scale fail",
        "Keep it, and remove it in a new version",
    ),
    "selectable-removed": (
        "a field was removed from selectableFields, and requests that select by it are refused",
        "Keep it in selectableFields, and remove it in a new version",
    ),
}

_RISKY = {
    "field-claimed": (
        "a new field has a name where unknown fields were preserved: objects may have other data "
        "in it",
        "Check the data of objects there, or choose a name that none of them uses",
    ),
    "field-filled-in": (
        "a new field has a default, in an object with a limited number of fields, alternatives or"
        " CEL rules",
        "Make sure that an object with only the default passes them, or remove the default",
    ),
    "type-widened": (
        "values of further types are valid, which clients may not be able to read",
        "Inform clients before such a value is written, or widen the type in a new version",
    ),
    "limit-changed": (
        "a limit or a multiple changed in a way that cannot be compared",
        f"Make sure that every value in use is still valid; {_KEPT}",
    ),
    "pattern-changed": (
        "a pattern was added or changed",
        f"Make sure that every string in use still matches; {_KEPT}",
    ),
    "format-changed": (
        "a format was added or changed",
        f"Make sure that every value in use has the format; {_KEPT}",
    ),
    "default-changed": (
        "a default changed, also for existing objects without the field",
        "Keep the default, and choose another in a new version",
    ),
    "default-removed": (
        "a default was removed, so readers find no value where there always was one",
        "Keep the default, or prepare every reader for a missing value first",
    ),
    "default-added": (
        "an existing field got a default: objects without the field now have it",
        "Make sure that the default means what absence meant",
    ),
    "null-kept": (
        "null was dropped or replaced by the default, and is now kept where an enum, a number of "
        "fields, alternatives or CEL rules are checked, or where a default was meant",
        "Remove nullable: a missing value means the same",
    ),
    "unknown-refused": (
        "fields without a schema were dropped, and are now refused",
        "Remove additionalProperties: unknown fields are then dropped, and clients can request a "
        "warning or an error",
    ),
    "list-merged": (
        "a set or a map became atomic, so server-side apply replaces it as a whole",
        "Keep the list-type: clients that apply single items would remove the others",
    ),
    "map-merged": (
        "x-kubernetes-map-type changed, so server-side apply tracks owners in another way",
        "Keep the map-type, and change it in a new version",
    ),
    "alternatives-changed": (
        "anyOf, oneOf, allOf or not changed in a way that cannot be compared",
        f"Make sure that every object in use still passes; {_KEPT_AROUND}",
    ),
    "rule-added": (
        "a CEL rule was added or changed",
        "Make sure that every object in use passes, or let the rule check only changes, with "
        "oldSelf and optionalOldSelf",
    ),
    "keyword-changed": (
        "a keyword changed that polyver does not know",
        "Make sure that every object in use is still valid",
    ),
    "storage-moved": (
        "the storage version changed",
        "Serve the old storage version until every object is rewritten and status.storedVersions "
        "is trimmed; until then you can go back",
    ),
    "names-changed": (
        "the singular, the list kind, a short name or a category was changed or removed",
        "Keep the names that people and scripts use, and add new ones beside them",
    ),
    "status-added": (
        "the status subresource was added: a status in a write to the main resource is ignored",
        "Let every controller write to /status first, or add it in a new version",
    ),
    "scale-changed": (
        "the scale subresource reads or writes other fields",
        "Keep its paths, and change them in a new version",
    ),
    "conversion-changed": (
        "the conversion strategy changed",
        "Make sure that every stored object can be read in every served version before and after:"
        " None changes only apiVersion, and Webhook fails when the webhook does not answer",
    ),
}

_SAFE = {
    "field-added": (
        "a field was added that is optional or has a default",
        "Nothing to do",
    ),
    "field-freed": (
        "a field lost its schema, but its data is kept",
        "Nothing to do; clients may find any data in it",
    ),
    "enum-widened": (
        "an enum has more values, or was removed",
        "Make sure that clients accept unknown values",
    ),
    "required-removed": (
        "a required field became optional",
        "Make sure that readers accept a missing value",
    ),
    "required-filled-in": (
        "a field is required, and has a default",
        "Nothing to do: the default is set wherever the field is missing",
    ),
    "limit-widened": (
        "a limit is wider, or was removed",
        "Make sure that readers accept the new values",
    ),
    "pattern-removed": (
        "a pattern was removed",
        "Make sure that readers accept any string",
    ),
    "format-widened": (
        "a format is wider, or was removed",
        "Make sure that readers accept the new values",
    ),
    "nullable-added": (
        "null is valid",
        "Make sure that readers accept null",
    ),
    "unknown-kept": (
        "fields without a schema are kept, or no longer refused",
        "Nothing to do",
    ),
    "values-widened": (
        "a map accepts more values",
        "Make sure that readers accept the new values",
    ),
    "unique-removed": (
        "uniqueItems was removed",
        "Nothing to do",
    ),
    "alternatives-widened": (
        "an alternative was added, or a condition was removed",
        "Make sure that readers accept the new values",
    ),
    "rule-removed": (
        "a CEL rule was removed",
        "Make sure that readers accept the new values",
    ),
    "version-added": (
        "a version was added",
        "Make sure that a conversion for it exists before it is served",
    ),
    "version-removed": (
        "a version was removed that was neither served nor stored",
        "Nothing to do",
    ),
    "version-served": (
        "a version is now served",
        "Nothing to do",
    ),
    "version-deprecated": (
        "a version became deprecated, so its clients get warnings",
        "Name the replacement in deprecationWarning",
    ),
    "scale-added": (
        "the scale subresource was added",
        "Nothing to do",
    ),
    "selectable-added": (
        "a field was added to selectableFields",
        "Nothing to do",
    ),
    "columns-changed": (
        "the columns of kubectl get changed",
        "Nothing to do, unless scripts read them",
    ),
    "names-added": (
        "a short name or a category was added",
        "Nothing to do",
    ),
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
