"""The Kubernetes object language as plain data."""

from polyver.objects.codec import digest, encode_json
from polyver.objects.manifests import (
    Document,
    InvalidManifest,
    dump_yaml,
    load_manifests,
)
from polyver.objects.metadata import Metadata, objects_of
from polyver.objects.patch import InvalidPatch, PatchFailed, apply_json_patch, apply_merge_patch
from polyver.objects.selection import (
    FieldRequirement,
    InvalidSelector,
    LabelRequirement,
    parse_field_selector,
    parse_label_selector,
)

__all__ = [
    "Document",
    "FieldRequirement",
    "InvalidManifest",
    "InvalidPatch",
    "InvalidSelector",
    "LabelRequirement",
    "Metadata",
    "PatchFailed",
    "apply_json_patch",
    "apply_merge_patch",
    "digest",
    "dump_yaml",
    "encode_json",
    "load_manifests",
    "objects_of",
    "parse_field_selector",
    "parse_label_selector",
]
