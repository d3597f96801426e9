"""The Kubernetes object language as plain data."""

from polyver.objects.codec import decode_json, digest, encode_json
from polyver.objects.manifests import (
    Document,
    InvalidManifest,
    dump_yaml,
    load_manifests,
)
from polyver.objects.metadata import Metadata, objects_of

__all__ = [
    "Document",
    "InvalidManifest",
    "Metadata",
    "decode_json",
    "digest",
    "dump_yaml",
    "encode_json",
    "load_manifests",
    "objects_of",
]
