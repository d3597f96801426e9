"""CustomResourceDefinitions: which names are accepted, what is served, and what goes with one."""

from polyver.kube.server.definitions._lifecycle import Definitions
from polyver.kube.server.definitions._removed_versions import DroppedVersions
from polyver.kube.server.definitions._rules import DefinitionRules

__all__ = ["DefinitionRules", "Definitions", "DroppedVersions"]
