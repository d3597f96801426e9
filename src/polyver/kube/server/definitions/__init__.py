"""CustomResourceDefinitions (CRDs): validation, accepted names, served kinds and cleanup."""

from polyver.kube.server.definitions._lifecycle import Definitions
from polyver.kube.server.definitions._removed_versions import DroppedVersions
from polyver.kube.server.definitions._rules import DefinitionRules

__all__ = ["DefinitionRules", "Definitions", "DroppedVersions"]
