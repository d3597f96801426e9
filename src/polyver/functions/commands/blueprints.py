"""Reads Blueprints and ActionSets from files and clusters, for commands."""

from __future__ import annotations

from collections.abc import Sequence

from polyver.cli.cluster import CLUSTER, documents_on
from polyver.cli.files import read_manifests
from polyver.cli.output import warn
from polyver.client import GroupVersionResource
from polyver.functions.blueprints import Blueprint, blueprints_in
from polyver.kube.objects import Document

__all__ = ["ACTION_SETS", "BLUEPRINTS", "blueprints_among", "documents_in", "known_blueprints"]

ACTION_SETS = GroupVersionResource("cr.kanister.io", "v1alpha1", "actionsets")
BLUEPRINTS = GroupVersionResource("cr.kanister.io", "v1alpha1", "blueprints")


def documents_in(names: Sequence[str]) -> list[Document]:
    """Read the documents in files and folders, and the objects of clusters.

    The name `cluster:CONTEXT` means all Blueprints and ActionSets of the cluster with this context.
    """
    files = [name for name in names if not name.startswith(CLUSTER)]
    found = read_manifests(files) if files else []
    for name in names:
        if name.startswith(CLUSTER):
            found = [*found, *documents_on(name.removeprefix(CLUSTER), (BLUEPRINTS, ACTION_SETS))]
    return found


def blueprints_among(documents: Sequence[Document]) -> list[Blueprint]:
    """Parse the blueprints among the documents. Leave out invalid ones, with a warning."""
    found: list[Blueprint] = []
    for document, blueprint, findings in blueprints_in(documents):
        if blueprint is None:
            warn(f"a Blueprint is ignored ({document.place()}): {findings[-1]}")
        else:
            found.append(blueprint)
    return found


def known_blueprints(names: Sequence[str]) -> list[Blueprint]:
    """Read all blueprints in files, folders and clusters."""
    return blueprints_among(documents_in(names))
