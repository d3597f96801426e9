"""Kubernetes objects as plain data: metadata, patches, apply, schemas, selectors, tables.

The modules here do what kube-apiserver does with an object before it is stored or returned. Nothing
here does I/O.
"""

from polyver.kube.objects.codec import digest, encode_json
from polyver.kube.objects.metadata import Metadata, objects_of, type_of
from polyver.kube.objects.patch import (
    InvalidPatch,
    PatchFailed,
    apply_json_patch,
    apply_merge_patch,
)
from polyver.kube.objects.selection import (
    FieldRequirement,
    InvalidSelector,
    LabelRequirement,
    parse_field_selector,
    parse_label_selector,
)
from polyver.languages.values.manifests import Document, InvalidManifest, dump_yaml, load_manifests

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
    "type_of",
]
