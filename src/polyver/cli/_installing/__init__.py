"""polyver on a cluster: what it consists of, how that gets there, and how it goes away again."""

from polyver.cli._installing.applying import Installer
from polyver.cli._installing.manifests import manifests
from polyver.cli._installing.parts import NAMESPACE, Installation
from polyver.cli._installing.removing import Remover

__all__ = ["NAMESPACE", "Installation", "Installer", "Remover", "manifests"]
