"""The installation of polyver on a cluster: builds, applies and removes its manifests."""

from polyver.app.installing.apply import Installer
from polyver.app.installing.manifests import manifests
from polyver.app.installing.options import NAMESPACE, Installation
from polyver.app.installing.removal import Remover

__all__ = ["NAMESPACE", "Installation", "Installer", "Remover", "manifests"]
