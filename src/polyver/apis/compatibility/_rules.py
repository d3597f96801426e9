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
    """A comparison rule: a type of change, with the severity and the advice of its findings."""

    name: str
    severity: FindingSeverity
    about: str
    advice: str
    """One sentence of advice. It may contain `{other}`, which stands for the name of a field.

    Each finding replaces `{other}` by a field, for example by the new field of a renamed field.
    """


# From Kubernetes 1.30 on, kube-apiserver accepts an update of an object with an invalid value if
# the update does not change this value.
_KEPT = (
    "from Kubernetes 1.30 on, an update that does not change such a value still succeeds, but no "
    "client can write the value again"
)
_KEPT_AROUND = (
    "from Kubernetes 1.30 on, an update still succeeds if it changes nothing in the affected part "
    "of the object"
)

_BREAKING = {
    "field-removed": (
        "a field was removed; API servers silently drop its data from objects",
        "Keep the field, mark it as deprecated in its description, and remove it in a new version "
        "with a conversion",
    ),
    "field-renamed": (
        "a field was removed, and a new field beside it has the same schema",
        "If the field was renamed to {other}, keep the old name here, and rename the field in a "
        "new version with a conversion that moves the value; without a new version, the value is "
        "lost",
    ),
    "type-changed": (
        "the type of a field changed, so API servers refuse values of the old type",
        "Add a second field with the new type, or change the type in a new version with a "
        "conversion",
    ),
    "enum-added": (
        "any value was valid, and now only the listed values are valid",
        f"List every value that is in use, or add the list in a new version only; {_KEPT}",
    ),
    "enum-narrowed": (
        "values were removed from an enum",
        f"Keep the values and deprecate them, or remove them in a new version only; {_KEPT}",
    ),
    "required-field-added": (
        "a new field is required and has no default",
        f"Give the field a default, or make it optional; {_KEPT_AROUND}",
    ),
    "required-added": (
        "an optional field became required and has no default",
        f"Give the field a default, or require it in a new version only; {_KEPT_AROUND}",
    ),
    "required-exposed": (
        "a required field lost its default, so objects without the field are refused",
        "Keep the default, or make the field optional",
    ),
    "limit-added": (
        "there is a new limit for a number, a string, a list or a map",
        f"Remove the limit, or set it in a new version only; {_KEPT}",
    ),
    "limit-tightened": (
        "a limit became tighter",
        f"Restore the limit, or tighten it in a new version only; {_KEPT}",
    ),
    "nullable-removed": (
        "null was a valid value, and is now dropped or refused",
        "Keep nullable, or remove it in a new version with a conversion that turns null into an "
        "absent field",
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
        "a map accepts fewer keys or values than before",
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
        " apply identifies the items in another way",
        "Keep the list-type and its keys, and change them in a new version; an object with "
        "duplicates can still be updated, but server-side apply no longer knows which field "
        "manager owns which item",
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
        "kube-apiserver refuses this: first rewrite the stored objects, and remove the version "
        "from status.storedVersions",
    ),
    "served-version-removed": (
        "a served version was removed",
        "First deprecate the version, and then stop serving it; remove it when no client uses it "
        "and no managedFields name it, because such entries make server-side apply fail",
    ),
    "version-unserved": (
        "a version is no longer served, so its clients get 404",
        "First deprecate the version, and stop serving it when its clients use another version",
    ),
    "status-removed": (
        "the status subresource was removed: clients that write the status get 404",
        "Keep the subresource, and leave it out in a new version only",
    ),
    "scale-removed": (
        "the scale subresource was removed, so autoscalers and kubectl scale fail",
        "Keep the subresource, and leave it out in a new version only",
    ),
    "selectable-removed": (
        "a field was removed from selectableFields, and requests that select by it are refused",
        "Keep the field in selectableFields, and remove it in a new version",
    ),
}

_RISKY = {
    "field-claimed": (
        "a new field was added to a part of the object that preserved unknown fields: objects may "
        "already have other data under this name",
        "Check the data of existing objects, or choose a name that no object uses",
    ),
    "field-filled-in": (
        "a new field has a default, and the schema of its object has alternatives, CEL rules or a"
        " limit on the number of fields",
        "Make sure that an object with only the default is valid, or remove the default",
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
        "Keep the default, and choose another default in a new version",
    ),
    "default-removed": (
        "a default was removed, so readers may find no value in a field that always had a value",
        "Keep the default, or first make sure that every reader accepts a missing value",
    ),
    "default-added": (
        "an existing field got a default: objects without the field now have it",
        "Make sure that the default has the same meaning as the absent field had before",
    ),
    "null-kept": (
        "null was dropped or replaced by the default, and is now kept; an enum, a limit on the "
        "number of fields, an alternative or a CEL rule may refuse it, and the default is not set",
        "Remove nullable: clients can leave the field out instead",
    ),
    "unknown-refused": (
        "fields without a schema were dropped, and are now refused",
        "Remove additionalProperties: unknown fields are then dropped, and clients can request a "
        "warning or an error",
    ),
    "list-merged": (
        "a set or a map became atomic, so server-side apply replaces it as a whole",
        "Keep the list-type: a client that applies some items would remove the items of other "
        "clients",
    ),
    "map-merged": (
        "x-kubernetes-map-type changed, so server-side apply tracks owners in another way",
        "Keep the map-type, and change it in a new version",
    ),
    "alternatives-changed": (
        "anyOf, oneOf, allOf or not changed in a way that cannot be compared",
        f"Make sure that every object in use is still valid; {_KEPT_AROUND}",
    ),
    "rule-added": (
        "a CEL rule was added or changed, and may refuse existing objects",
        "Make sure that every object in use is valid, or write the rule with oldSelf and "
        "optionalOldSelf, so that it checks only changed values",
    ),
    "keyword-changed": (
        "a keyword that polyver does not know has changed",
        "Make sure that every object in use is still valid",
    ),
    "storage-moved": (
        "the storage version changed",
        "Serve the old storage version until you have rewritten every object and removed the "
        "version from status.storedVersions; until then, you can undo the change",
    ),
    "names-changed": (
        "the singular, the list kind, a short name or a category was changed or removed",
        "Keep the names that people and scripts use, and add further names",
    ),
    "status-added": (
        "the status subresource was added: a status in a write to the main resource is ignored",
        "First change every controller so that it writes to /status, or add the subresource in a "
        "new version only",
    ),
    "scale-changed": (
        "the scale subresource reads or writes other fields",
        "Keep the paths of the scale subresource, and change them in a new version",
    ),
    "conversion-changed": (
        "the conversion strategy changed",
        "Make sure that every stored object can be read in every served version, before and after"
        " the change: the strategy None changes only apiVersion, and with the strategy Webhook, "
        "reads fail when the webhook does not answer",
    ),
}

_SAFE = {
    "field-added": (
        "a field was added that is optional or has a default",
        "Nothing to do",
    ),
    "field-freed": (
        "the schema no longer describes a field, but API servers do not prune it",
        "Make sure that clients accept a value of any type in this field",
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
        "a field became required, and has a default",
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
        "null became a valid value of a field",
        "Make sure that readers accept null",
    ),
    "unknown-kept": (
        "fields without a schema are kept, or no longer refused",
        "Nothing to do",
    ),
    "values-widened": (
        "a map accepts more keys or values than before",
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
        "Make sure that a conversion to and from the version exists before the version is served",
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
        "Nothing to do, unless scripts read the output of kubectl get",
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
